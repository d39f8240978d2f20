//! Connections to a port whose peers have not yet proved that they know the secret. The port's own thread reads all of them
//! without waiting. So a stranger that sends slowly, or sends little or nothing, costs only a descriptor for a few seconds, and
//! no thread.
//!
//! ```text
//!   connects ──► gets a number ──► is read as bytes come ──► knows the secret: its wish is granted
//!                                       │                    does not know it: is dropped
//!                                       ├── the greeting is incomplete after five seconds: is dropped
//!                                       └── too many strangers have connected since: is dropped
//! ```

use super::Stream;
use super::greeting::{self, GREETING, SAID, Wish};
use super::secret;
use nix::poll::{PollFd, PollFlags};
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// Maximum number of strangers at a time. Another stranger replaces the stranger that has waited longest.
pub(super) const UNKNOWN: usize = 256;

/// State of a stranger's greeting.
enum Hearing {
    /// The greeting is incomplete.
    Little,
    Wish(Wish),
    Nobody,
}

/// A connection of a stranger.
struct Unknown {
    stream: Stream,
    /// The number that the port sent to the stranger.
    number: u128,
    said: [u8; SAID],
    have: usize,
    since: Instant,
}

impl Unknown {
    /// Sends a number to a stranger. Fails if the stranger has already gone.
    fn greet(stream: Stream) -> io::Result<Unknown> {
        stream.set_nonblocking(true)?;
        let number = secret()?;
        // The send buffer of a new connection has room for the number.
        (&stream).write_all(&number.to_le_bytes())?;
        Ok(Unknown { stream, number, said: [0; SAID], have: 0, since: Instant::now() })
    }

    /// Reads what the stranger has sent so far.
    fn hear(&mut self, port: u128) -> Hearing {
        while self.have < SAID {
            match (&self.stream).read(&mut self.said[self.have..]) {
                Ok(count) if count > 0 => self.have += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Hearing::Little,
                _ => return Hearing::Nobody,
            }
        }
        let Some((wish, answer)) = greeting::judge(port, self.number, &self.said) else {
            return Hearing::Nobody;
        };
        let known = (&self.stream).write_all(&answer);
        match known.and_then(|()| self.stream.set_nonblocking(false)) {
            Ok(()) => Hearing::Wish(wish),
            Err(_) => Hearing::Nobody,
        }
    }
}

/// A process that knows the secret of the port.
pub(super) struct KnownProcess {
    pub wish: Wish,
    pub stream: Stream,
}

/// All strangers, in the order of their connections.
pub(super) struct Strangers {
    port: u128,
    waiting: VecDeque<Unknown>,
}

impl Strangers {
    /// Creates an empty list. `port` is the secret of the port.
    pub fn new(port: u128) -> Strangers {
        Strangers { port, waiting: VecDeque::new() }
    }

    /// Adds a new connection. If there are too many strangers, dismisses the oldest stranger, and returns its wish if it has sent
    /// a valid greeting.
    pub fn add(&mut self, stream: Stream) -> Option<KnownProcess> {
        let Ok(one) = Unknown::greet(stream) else { return None };
        self.waiting.push_back(one);
        if self.waiting.len() > UNKNOWN { self.dismiss() } else { None }
    }

    /// Dismisses the stranger that has waited longest. Returns its wish if its complete greeting has come by now and is valid.
    pub fn dismiss(&mut self) -> Option<KnownProcess> {
        let mut one = self.waiting.pop_front()?;
        match one.hear(self.port) {
            Hearing::Wish(wish) => Some(KnownProcess { wish, stream: one.stream }),
            Hearing::Little | Hearing::Nobody => None,
        }
    }

    /// Returns true if there is no stranger.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Returns the strangers' descriptors to poll.
    pub fn polled(&self) -> impl Iterator<Item = PollFd<'_>> {
        self.waiting.iter().map(|one| PollFd::new(one.stream.as_fd(), PollFlags::POLLIN))
    }

    /// Returns the time until the oldest stranger is dropped. `None` means that there is no stranger.
    pub fn time_left(&self) -> Option<Duration> {
        self.waiting.front().map(|one| GREETING.saturating_sub(one.since.elapsed()))
    }

    /// Reads from the strangers for which `spoke` is true, in the order of [`Strangers::polled`], and drops strangers whose time
    /// has run out. Returns the wishes of the strangers that know the secret.
    pub fn hear(&mut self, spoke: &[bool]) -> Vec<KnownProcess> {
        let mut known = Vec::new();
        for (at, mut one) in std::mem::take(&mut self.waiting).into_iter().enumerate() {
            let spoke = spoke.get(at).is_some_and(|&spoke| spoke);
            match if spoke { one.hear(self.port) } else { Hearing::Little } {
                Hearing::Wish(wish) => known.push(KnownProcess { wish, stream: one.stream }),
                // The bytes of a stranger are read before its time is checked: this process itself may have been stopped for a
                // while.
                Hearing::Little if one.since.elapsed() < GREETING => self.waiting.push_back(one),
                Hearing::Little | Hearing::Nobody => {}
            }
        }
        known
    }
}
