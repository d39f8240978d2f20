//! Sleep of the helper thread.
//!
//! Contract. Only one thread, the helper, sleeps here. Any thread may call `arm` for the helper, and may ring. While no thread has
//! armed, only rings wake the helper, because then a thread of the program is inside the library and handles everything. `arm`
//! enables the provider's descriptors in an epoll set, for one event each. This takes effect even for a thread that already sleeps.
//! So an event that is pending at `arm`, or comes later, ends the sleep. `disarm` disables the descriptors again. Otherwise, the
//! answer to each operation of a program's thread would wake the helper, too. If the provider has no descriptor, sleeps are short
//! naps while a thread has armed.
//!
//! Before each armed sleep the helper asks the provider if it may sleep, as the [`OfiSleeper`] does. The provider then also takes
//! its own signals back.
//!
//! During an armed sleep the kernel may collect the data of reads before it makes a descriptor readable. Then the kernel wakes the
//! helper once for many bytes. Such a sleep has a limit, because the peer may wait for bytes that are held back.
//!
//! The helper cannot know the purpose of a message before the message is read, so every arrival wakes the helper, not only a
//! solicited arrival.

use crate::access::PollingThread;
use crate::sleep::{NAP_MOST, OfiSleeper, any_ready, drain};
use nix::poll::{PollFd, PollFlags};
use nix::sys::epoll::{Epoll, EpollCreateFlags, EpollEvent, EpollFlags};
use nix::sys::eventfd::{EfdFlags, EventFd};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use weft_fabric::wait::{Sleep, Token};

/// Maximum duration of a sleep during which the kernel collects bytes. If both ends of a connection collect, they wait for each
/// other at most this long.
const COLLECTING_MOST: Duration = Duration::from_millis(4);

/// Place where the helper thread sleeps, next to the [`OfiSleeper`] of the program's threads.
pub struct HelperPlace {
    sleeper: Arc<OfiSleeper>,
    /// Epoll set of the provider's descriptors. `arm` enables each descriptor for one event.
    armed: Epoll,
    own: EventFd,
    /// Descriptor by which another fabric of this process also wakes the helper.
    other: OnceLock<OwnedFd>,
    announced: AtomicU32,
    rings: AtomicU32,
    /// True if `arm` has enabled the descriptors, and neither an event nor `disarm` has disabled them since. If threads call `arm`
    /// and `disarm` at the same time, the value may be wrong. Then the helper is woken once without need, or a system call is made
    /// without need.
    enabled: AtomicBool,
}

impl HelperPlace {
    pub fn new(sleeper: Arc<OfiSleeper>) -> io::Result<HelperPlace> {
        let armed = Epoll::new(EpollCreateFlags::EPOLL_CLOEXEC)?;
        for fd in sleeper.provider() {
            armed.add(fd, EpollEvent::new(EpollFlags::EPOLLONESHOT, 0))?;
        }
        let own = EventFd::from_value_and_flags(0, EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK)?;
        let (other, announced, rings, enabled) = Default::default();
        Ok(HelperPlace { sleeper, armed, own, other, announced, rings, enabled })
    }

    /// Lets `other` wake the helper, as [`OfiSleeper::watch`] does for the program's threads.
    pub fn watch(&self, other: OwnedFd) {
        let _ = self.other.set(other);
    }

    /// Lets the next event of each descriptor wake the helper.
    fn enable(&self) {
        self.enabled.store(true, Ordering::Relaxed);
        self.wait_for(EpollFlags::EPOLLIN);
    }

    fn wait_for(&self, events: EpollFlags) {
        for fd in self.sleeper.provider() {
            let mut event = EpollEvent::new(events | EpollFlags::EPOLLONESHOT, 0);
            // The descriptor was added in `new`, so this cannot fail.
            let _ = self.armed.modify(fd, &mut event);
        }
    }
}

impl Sleep for HelperPlace {
    fn arm(&self) -> Token {
        if self.announced.fetch_add(1, Ordering::SeqCst) == 0 {
            self.sleeper.set_poller(PollingThread::Helper);
        }
        let token = Token(self.rings.load(Ordering::SeqCst));
        // The poll that follows must not be skipped.
        self.sleeper.look_next();
        self.enable();
        token
    }

    fn sleep(&self, token: Token, limit: Duration) {
        if self.rings.load(Ordering::SeqCst) != token.0 {
            return;
        }
        let announced = self.announced.load(Ordering::SeqCst) > 0;
        let collects = announced && self.sleeper.begin_collecting();
        // A thread that disarms meanwhile first takes the announcement back, and then ends the collecting. Here the order is
        // reversed, so at least one of the two threads ends the collecting.
        if collects && self.announced.load(Ordering::SeqCst) == 0 {
            self.sleeper.end_collecting();
        }
        if announced && !self.sleeper.may_sleep() {
            if collects {
                self.sleeper.end_collecting();
            }
            self.sleeper.look_next();
            return;
        }
        let naps = announced && self.sleeper.needs_naps();
        let limit = match (naps, collects) {
            (true, _) => limit.min(NAP_MOST),
            (false, true) => limit.min(COLLECTING_MOST),
            (false, false) => limit,
        };
        let entry = |fd| PollFd::new(fd, PollFlags::POLLIN);
        let mut all = vec![entry(self.armed.0.as_fd()), entry(self.own.as_fd())];
        all.extend(self.other.get().map(|other| entry(other.as_fd())));
        let ready = any_ready(&mut all, limit);
        if collects {
            self.sleeper.end_collecting();
        }
        if !ready {
            if naps || collects {
                self.sleeper.look_next();
            }
            return;
        }
        all[1..].iter().filter(|bell| bell.any().unwrap_or(false)).for_each(drain);
        if all[0].any().unwrap_or(false) {
            // The event has also disabled the descriptor.
            self.enabled.store(false, Ordering::Relaxed);
            let mut events = [EpollEvent::empty()];
            let _ = self.armed.wait(&mut events, 0u8);
            self.sleeper.look_next();
        }
    }

    fn disarm(&self) {
        if self.announced.fetch_sub(1, Ordering::SeqCst) == 1 {
            self.sleeper.set_poller(PollingThread::Program);
            // The program's thread polls from now on, and needs each byte as soon as it comes.
            self.sleeper.stop_collecting();
            if self.enabled.swap(false, Ordering::Relaxed) {
                self.wait_for(EpollFlags::empty());
            }
            // Another thread may have called `arm` before the descriptors were disabled here. Then `arm` has lost its effect, so
            // the descriptors are enabled again.
            if self.announced.load(Ordering::SeqCst) > 0 {
                self.enable();
            }
        }
    }

    fn ring(&self) {
        self.rings.fetch_add(1, Ordering::SeqCst);
        // The write fails only if the counter is full. A full counter is also readable.
        let _ = self.own.write(1);
    }

    fn may_have_rung(&self, token: Token) -> bool {
        self.rings.load(Ordering::SeqCst) != token.0
    }
}
