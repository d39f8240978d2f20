//! What becomes of a session whose members stay connected: they hear when one of them ends without having left, and when all have left.
//!
//! ```text
//!   member ── leave ──► the port's thread
//!          ◄── lost (place) ── of a member that ended before it left
//!          ◄── over ────────── all have left, or are lost
//! ```
//! A connection for each member and not for each pair: so the end of a process is seen by all, whoever has talked to it.

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

/// What a member says when it leaves.
const LEAVE: u8 = b'L';

/// What members hear: this, and a place.
const LOST: u8 = b'X';
const OVER: u8 = b'O';
const WORD: usize = 5;

fn word(kind: u8, place: usize) -> [u8; WORD] {
    let mut bytes = [kind; WORD];
    bytes[1..].copy_from_slice(&(place as u32).to_le_bytes());
    bytes
}

/// Passes on who is lost, until all have left.
pub(super) fn attend(streams: &[Stream]) {
    let mut staying: Vec<usize> = (0..streams.len()).collect();
    let mut there = staying.clone();
    let tell = |whom: &[usize], word: [u8; WORD]| {
        for &place in whom {
            // Who is gone is seen by itself.
            let _ = (&streams[place]).write_all(&word);
        }
    };
    while !staying.is_empty() {
        let entry = |&place: &usize| PollFd::new(streams[place].as_fd(), PollFlags::POLLIN);
        let mut all: Vec<PollFd<'_>> = staying.iter().map(entry).collect();
        match poll(&mut all, PollTimeout::NONE) {
            Ok(_) => {}
            Err(Errno::EINTR) => continue,
            // Nobody is heard any more: the connections end, and all know it.
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

/// What the thread that listens and its owner share.
#[derive(Default)]
struct Heard {
    lost: Mutex<VecDeque<usize>>,
    over: AtomicBool,
}

/// A member's part in a session. Whoever drops it without having left counts as lost for the others.
pub struct SessionMonitor {
    stream: Stream,
    heard: Arc<Heard>,
}

impl SessionMonitor {
    /// Begins to listen. `holder`: the place of the process whose port it is. `wake` is called, by another thread, when there is
    /// something to hear.
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

    /// Says that this process needs the others no more.
    pub fn leave(&self) {
        let _ = (&self.stream).write_all(&[LEAVE]);
    }

    /// Whether all have left, or are lost.
    pub fn is_over(&self) -> bool {
        self.heard.over.load(Ordering::Acquire)
    }

    /// The next one that is lost, by place.
    pub fn take_lost(&self) -> Option<usize> {
        self.heard.lost.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }
}

impl Drop for SessionMonitor {
    fn drop(&mut self) {
        // Its thread ends.
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}
