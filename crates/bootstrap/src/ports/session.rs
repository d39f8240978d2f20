//! A session. In each round every member sends bytes and receives the bytes of all members.

use super::greeting::Wish;
use super::session_monitor::{SessionMonitor, attend};
use super::{Invitation, Stream, greet};
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use std::io::{self, Error, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

/// Maximum length of a member's bytes in a round.
const LONGEST: usize = 1 << 20;

/// Value in place of a length: the member sends no more, but stays connected.
const STAYS: u32 = u32::MAX;

/// Sends bytes after their length.
pub(super) fn say(mut stream: &Stream, bytes: &[u8]) -> io::Result<()> {
    let whole = [&(bytes.len() as u32).to_le_bytes()[..], bytes].concat();
    stream.write_all(&whole)
}

/// Receives bytes that [`say`] sends. Returns `None` if the member sends no more, but stays connected.
fn hear_member(mut stream: &Stream) -> io::Result<Option<Vec<u8>>> {
    let mut len = [0; 4];
    stream.read_exact(&mut len)?;
    let len = u32::from_le_bytes(len);
    if len == STAYS {
        return Ok(None);
    }
    if len as usize > LONGEST {
        return Err(ErrorKind::InvalidData.into());
    }
    let mut bytes = vec![0; len as usize];
    stream.read_exact(&mut bytes)?;
    Ok(Some(bytes))
}

/// Receives bytes of a member. Fails if the member sends no more.
pub(super) fn hear(stream: &Stream) -> io::Result<Vec<u8>> {
    hear_member(stream)?.ok_or_else(|| ErrorKind::InvalidData.into())
}

/// Interval between two checks for the end of a process for which the members wait.
const LOOK: Duration = Duration::from_millis(50);

/// Returns true if the other end of a connection is closed, even if there is still data to read.
fn is_gone(stream: &Stream) -> bool {
    // POLLIN is not requested, because unread data must not end the poll.
    let end = PollFlags::from_bits_retain(libc::POLLRDHUP);
    matches!(poll(&mut [PollFd::new(stream.as_fd(), end)], PollTimeout::ZERO), Ok(1..))
}

/// Waits until all members have come. Fails as soon as a member has gone, or the root of the calling job while its members are
/// still missing, so that no member waits for a job that has ended.
fn gather(
    members: &Receiver<(usize, Stream)>,
    caller: &Stream,
    all: usize,
    patience: Duration,
) -> io::Result<Vec<Stream>> {
    let end = Instant::now() + patience;
    let mut streams: Vec<Option<Stream>> = (0..all).map(|_| None).collect();
    let mut missing = all;
    while missing > 0 {
        let left = end.saturating_duration_since(Instant::now());
        match members.recv_timeout(left.min(LOOK)) {
            Ok((place, stream)) => {
                if let Some(free @ None) = streams.get_mut(place) {
                    stream.set_read_timeout(Some(patience))?;
                    stream.set_write_timeout(Some(patience))?;
                    *free = Some(stream);
                    missing -= 1;
                }
            }
            Err(_) if left.is_zero() => return Err(ErrorKind::TimedOut.into()),
            Err(_) if streams.iter().flatten().chain([caller]).any(is_gone) => {
                return Err(ErrorKind::ConnectionAborted.into());
            }
            Err(_) => {}
        }
    }
    Ok(streams.into_iter().flatten().collect())
}

/// Passes on the bytes of `all` members until a member ends, which ends all connections. If all members stop sending in the same
/// round, waits until they have left. `caller` is the connection to the calling job's root, which keeps it open until all members
/// have come.
pub(super) fn serve(
    members: &Receiver<(usize, Stream)>,
    caller: &Stream,
    all: usize,
    patience: Duration,
) -> io::Result<()> {
    let streams = gather(members, caller, all, patience)?;
    loop {
        let heard = streams.iter().map(hear_member).collect::<io::Result<Vec<_>>>()?;
        let said: Vec<_> = heard.iter().flatten().collect();
        match said.len() {
            0 => break,
            some if some < all => return Err(ErrorKind::InvalidData.into()),
            _ => {}
        }
        // A complete round is delivered to all remaining members, even if a member has gone.
        let mut sent = Ok(());
        for stream in &streams {
            sent = sent.and(said.iter().try_for_each(|bytes| say(stream, bytes)));
        }
        sent?;
    }
    attend(&streams);
    Ok(())
}

/// A process of a session.
#[derive(Debug)]
pub struct Member {
    stream: Stream,
    all: usize,
    holder: usize,
}

impl Member {
    /// Takes a place in a session. `patience` is the maximum wait for other members, in each round.
    pub fn join(invitation: &Invitation, place: usize, patience: Duration) -> io::Result<Member> {
        let stream = greet(&invitation.port, Wish::Take(invitation.session, place as u64))?;
        stream.set_read_timeout(Some(patience))?;
        stream.set_write_timeout(Some(patience))?;
        Ok(Member { stream, all: invitation.all, holder: invitation.root })
    }

    /// Returns the same member for another thread.
    pub fn try_clone(&self) -> io::Result<Member> {
        Ok(Member { stream: self.stream.try_clone()?, ..*self })
    }

    /// Sends `bytes`, at most 1 MiB, and returns the bytes of all members, by place. Waits for all members. Fails if a member is
    /// gone or too slow, which ends the session for all members.
    pub fn exchange(&self, bytes: &[u8]) -> io::Result<Vec<Vec<u8>>> {
        let said = say(&self.stream, bytes);
        let heard = said.and_then(|()| (0..self.all).map(|_| hear(&self.stream)).collect());
        heard.map_err(|error| {
            let why = match error.kind() {
                ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset | ErrorKind::BrokenPipe => {
                    "another process of the two jobs has ended"
                }
                ErrorKind::WouldBlock | ErrorKind::TimedOut => {
                    "another process of the two jobs does not answer (WEFT_CONNECT_TIMEOUT sets how long all wait)"
                }
                _ => return error,
            };
            Error::new(error.kind(), why)
        })
    }

    /// Stays in the session after the last round. When another member ends, another thread calls `wake`. Either all members call
    /// this function, or no member does.
    pub fn stay(self, wake: impl Fn() + Send + 'static) -> io::Result<SessionMonitor> {
        (&self.stream).write_all(&STAYS.to_le_bytes())?;
        SessionMonitor::begin(self.stream, self.holder, wake)
    }
}
