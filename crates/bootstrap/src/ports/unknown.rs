//! Those who have connected to a port and have not said who they are. The port's own thread hears all of them, and waits for none: so
//! that whoever says little, slowly or nothing costs a descriptor for a few seconds, and no thread.
//!
//! ```text
//!   connects ──► told a number ──► heard as it comes ──► knows the secret: its wish, and it is no stranger any more
//!                                       │                does not: goes
//!                                       ├── the greeting is not over after five seconds, however much was said: goes
//!                                       └── too many others have come since: goes
//! ```

use super::Stream;
use super::greeting::{self, GREETING, SAID, Wish};
use super::secret;
use nix::poll::{PollFd, PollFlags};
use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// Those at once. Beyond them, who has waited longest goes.
pub(super) const UNKNOWN: usize = 256;

/// What has become of somebody.
enum Hearing {
    /// There is more to say.
    Little,
    Wish(Wish),
    Nobody,
}

/// One of them.
struct Unknown {
    stream: Stream,
    /// What it was told.
    number: u128,
    said: [u8; SAID],
    have: usize,
    since: Instant,
}

impl Unknown {
    /// Tells it a number. An error: it has gone already.
    fn greet(stream: Stream) -> io::Result<Unknown> {
        stream.set_nonblocking(true)?;
        let number = secret()?;
        // A new connection has room for that.
        (&stream).write_all(&number.to_le_bytes())?;
        Ok(Unknown { stream, number, said: [0; SAID], have: 0, since: Instant::now() })
    }

    /// Takes what it has said.
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

/// All of them, in the order in which they have come.
pub(super) struct Strangers {
    port: u128,
    waiting: VecDeque<Unknown>,
}

impl Strangers {
    /// Nobody yet; `port`: the secret of the port.
    pub fn new(port: u128) -> Strangers {
        Strangers { port, waiting: VecDeque::new() }
    }

    /// Takes somebody who has connected, and returns what those want who could wait no longer.
    pub fn add(&mut self, stream: Stream) -> Option<(Wish, Stream)> {
        let Ok(one) = Unknown::greet(stream) else { return None };
        self.waiting.push_back(one);
        if self.waiting.len() > UNKNOWN { self.dismiss() } else { None }
    }

    /// Sends away who has waited longest, unless it has said what it wants by now.
    pub fn dismiss(&mut self) -> Option<(Wish, Stream)> {
        let mut one = self.waiting.pop_front()?;
        match one.hear(self.port) {
            Hearing::Wish(wish) => Some((wish, one.stream)),
            Hearing::Little | Hearing::Nobody => None,
        }
    }

    /// Whether nobody is waiting.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// What to wait for.
    pub fn polled(&self) -> impl Iterator<Item = PollFd<'_>> {
        self.waiting.iter().map(|one| PollFd::new(one.stream.as_fd(), PollFlags::POLLIN))
    }

    /// How long to wait for it; `None`: for ever.
    pub fn time_left(&self) -> Option<Duration> {
        self.waiting.front().map(|one| GREETING.saturating_sub(one.since.elapsed()))
    }

    /// Hears those that have spoken, in the order of [`Strangers::polled`], and sends away whose time is over. Returns what those
    /// want who know the secret.
    pub fn hear(&mut self, spoke: &[bool]) -> Vec<(Wish, Stream)> {
        let mut known = Vec::new();
        for (at, mut one) in std::mem::take(&mut self.waiting).into_iter().enumerate() {
            let spoke = spoke.get(at).is_some_and(|&spoke| spoke);
            match if spoke { one.hear(self.port) } else { Hearing::Little } {
                Hearing::Wish(wish) => known.push((wish, one.stream)),
                // Who spoke was heard first: this process may have been stopped meanwhile.
                Hearing::Little if one.since.elapsed() < GREETING => self.waiting.push_back(one),
                Hearing::Little | Hearing::Nobody => {}
            }
        }
        known
    }
}
