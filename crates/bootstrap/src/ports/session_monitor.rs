//! A session whose members stay connected. Each member is informed when a member ends without having left, and when all members
//! have left.
//!
//! ```text
//!   member ── leave ──► the port's thread
//!          ◄── lost (place) ── of a member that ended before it left
//!          ◄── over ────────── all members have left, or are lost
//! ```
//! There is a connection for each member, not for each pair. So all members are informed of the end of a process, even members
//! that have exchanged no message with it.

use super::Stream;
use crate::calls::start_thread;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::Shutdown;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Message of a member that leaves.
const LEAVE: u8 = b'L';

/// Message to members that the member at a place is lost.
const LOST: u8 = b'X';
/// Message to members that all members have left or are lost.
const OVER: u8 = b'O';
const WORD: usize = 5;

fn word(kind: u8, place: usize) -> [u8; WORD] {
    let mut bytes = [kind; WORD];
    bytes[1..].copy_from_slice(&(place as u32).to_le_bytes());
    bytes
}

/// Reports lost members to the remaining members, until all members have left.
pub(super) fn attend(streams: &[Stream]) {
    let mut staying: Vec<usize> = (0..streams.len()).collect();
    let mut there = staying.clone();
    let tell = |whom: &[usize], word: [u8; WORD]| {
        for &place in whom {
            // An error is ignored, because reading finds members that are gone.
            let _ = (&streams[place]).write_all(&word);
        }
    };
    while !staying.is_empty() {
        let entry = |&place: &usize| PollFd::new(streams[place].as_fd(), PollFlags::POLLIN);
        let mut all: Vec<PollFd<'_>> = staying.iter().map(entry).collect();
        match poll(&mut all, PollTimeout::NONE) {
            Ok(_) => {}
            Err(Errno::EINTR) => continue,
            // No member can be read any more. The connections end, which informs all members.
            Err(_) => return,
        }
        let ready = staying.iter().zip(&all).filter(|(_, one)| one.any().unwrap_or(false));
        for place in ready.map(|(&place, _)| place).collect::<Vec<_>>() {
            let mut said = [0];
            let left = matches!((&streams[place]).read(&mut said), Ok(1)) && said[0] == LEAVE;
            staying.retain(|&one| one != place);
            if !left {
                there.retain(|&one| one != place);
                tell(&there, word(LOST, place));
            }
        }
    }
    tell(&there, word(OVER, 0));
}

/// State that the listening thread and its owner share.
#[derive(Default)]
struct Heard {
    lost: Mutex<VecDeque<usize>>,
    over: AtomicBool,
}

/// A member's connection to the session. A member that drops it without having left counts as lost for the other members.
pub struct SessionMonitor {
    stream: Stream,
    heard: Arc<Heard>,
}

impl SessionMonitor {
    /// Begins to listen. `holder` is the place of the process that has opened the port. Another thread calls `wake` when a member
    /// is lost or the session has ended.
    pub(super) fn begin(
        stream: Stream,
        holder: usize,
        wake: impl Fn() + Send + 'static,
    ) -> io::Result<SessionMonitor> {
        stream.set_read_timeout(None)?;
        let (heard, reader) = (Arc::new(Heard::default()), stream.try_clone()?);
        let tell = heard.clone();
        start_thread("weft-monitor", move || {
            loop {
                let mut said = [0; WORD];
                let known = (&reader).read_exact(&mut said).map(|()| said);
                let lost = match known {
                    Ok([OVER, ..]) => break,
                    Ok([LOST, place @ ..]) => u32::from_le_bytes(place) as usize,
                    _ => holder,
                };
                tell.lost.lock().unwrap_or_else(PoisonError::into_inner).push_back(lost);
                if known.is_err() {
                    break;
                }
                wake();
            }
            tell.over.store(true, Ordering::Release);
            wake();
        })?;
        Ok(SessionMonitor { stream, heard })
    }

    /// Leaves the session: this process does not need the other members any more.
    pub fn leave(&self) {
        let _ = (&self.stream).write_all(&[LEAVE]);
    }

    /// Returns true if all members have left or are lost.
    pub fn is_over(&self) -> bool {
        self.heard.over.load(Ordering::Acquire)
    }

    /// Takes the place of the next lost member.
    pub fn take_lost(&self) -> Option<usize> {
        self.heard.lost.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }
}

impl Drop for SessionMonitor {
    fn drop(&mut self) {
        // The shutdown ends the listening thread.
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}
