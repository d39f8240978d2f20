//! Where a process sleeps: one `poll` over the provider's descriptor and one by which its own threads ring.
//!
//! Contract. Several threads may sleep; one of them, the leader, polls, and the others wait for the doorbell, which the leader
//! rings for whatever ends its poll. Before it polls, the leader asks the provider (`fi_trywait`) whether what has come would
//! show: else it does not sleep, and the next look is a real one.
//!
//! A provider without a descriptor is looked at every 50 us to 1 ms; so is one that has no room for what is kept, as it says
//! nothing when there is room again.

use crate::object::Objects;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::eventfd::{EfdFlags, EventFd};
use nix::sys::time::TimeSpec;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use weft_fabric::wait::{Doorbell, Sleep, Token};

/// First and longest nap.
const NAP: Duration = Duration::from_micros(50);
pub const NAP_MOST: Duration = Duration::from_millis(1);

/// Sleeps in a row that the provider's descriptor may end for nothing; then it is not waited for until something was found, and
/// sleeps are naps: with some providers it stays readable for long, and who waits would take a whole processor.
const USELESS_MOST: u32 = 8;

/// Longer sleeps have no end of their own.
const FOREVER: Duration = Duration::from_secs(1 << 30);

pub struct OfiSleeper {
    /// Of all rails.
    objects: Vec<Arc<Objects>>,
    doorbell: Doorbell,
    /// Rung by threads of this process; others watch it, too.
    own: EventFd,
    /// What another fabric of this process is rung by.
    other: OnceLock<OwnedFd>,
    leader: Mutex<()>,
    sleepers: AtomicU32,
    /// Something is kept for which the provider has no room.
    naps: AtomicBool,
    /// Naps in a row that nothing has ended.
    idle: AtomicU32,
    /// The provider has something that only a look moves on.
    must_look: AtomicBool,
    /// Times in a row that the provider's descriptor has ended a sleep for nothing.
    useless: AtomicU32,
}

impl OfiSleeper {
    pub fn new(objects: Vec<Arc<Objects>>) -> io::Result<OfiSleeper> {
        let flags = EfdFlags::EFD_CLOEXEC | EfdFlags::EFD_NONBLOCK;
        Ok(OfiSleeper {
            objects,
            doorbell: Doorbell::new(),
            own: EventFd::from_value_and_flags(0, flags)?,
            other: OnceLock::new(),
            leader: Mutex::new(()),
            sleepers: AtomicU32::new(0),
            naps: AtomicBool::new(false),
            idle: AtomicU32::new(0),
            must_look: AtomicBool::new(false),
            useless: AtomicU32::new(0),
        })
    }

    /// Ends sleeps when `other` is readable, too; it is emptied then. Only the first one counts.
    pub fn watch(&self, other: OwnedFd) {
        let _ = self.other.set(other);
    }

    pub fn set_naps(&self, naps: bool) {
        self.naps.store(naps, Ordering::Relaxed);
    }

    /// Whether a look is due whatever else holds.
    #[inline]
    pub fn take_must_look(&self) -> bool {
        self.must_look.load(Ordering::Relaxed) && self.must_look.swap(false, Ordering::Relaxed)
    }

    /// The next look is a real one.
    pub fn look_next(&self) {
        self.must_look.store(true, Ordering::Relaxed);
    }

    /// A look has found something.
    #[inline]
    pub fn found(&self) {
        if self.useless.load(Ordering::Relaxed) != 0 {
            self.useless.store(0, Ordering::Relaxed);
        }
    }

    /// Whether the provider's descriptor tells the truth at the moment.
    fn is_trusted(&self) -> bool {
        self.useless.load(Ordering::Relaxed) < USELESS_MOST
    }

    /// The provider's descriptors of all rails, if it has any.
    pub fn provider(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let all =
            self.objects.iter().flat_map(|objects| [objects.wait(), objects.signal()]).flatten();
        // SAFETY: the queues', which are open as long as `objects`.
        all.map(|fd| unsafe { BorrowedFd::borrow_raw(fd) })
    }

    /// Says whether the program computes, or looks by itself.
    pub fn leave_unattended(&self, unattended: bool) {
        self.objects.iter().for_each(|objects| objects.leave_unattended(unattended));
    }

    /// Whether some rail has no descriptor.
    fn is_blind(&self) -> bool {
        self.objects.iter().any(|objects| objects.wait().is_none())
    }

    /// Whether what comes from now on shows at the descriptor; without one, sleeps are naps.
    pub fn may_sleep(&self) -> bool {
        self.objects.iter().all(|objects| objects.wait().is_none() || objects.may_sleep())
    }

    /// Whether something may come that shows at no descriptor.
    pub fn needs_naps(&self) -> bool {
        self.is_blind() || self.naps.load(Ordering::Relaxed) || !self.is_trusted()
    }

    fn longest(&self, limit: Duration) -> Duration {
        if !self.needs_naps() {
            return limit;
        }
        let doublings = self.idle.load(Ordering::Relaxed).min(8);
        limit.min((NAP * (1 << doublings)).min(NAP_MOST))
    }

    /// Polls as the leader; true if something ended it before its time.
    fn lead(&self, longest: Duration) -> bool {
        let entry = |fd| PollFd::new(fd, PollFlags::POLLIN);
        let mut all = vec![entry(self.own.as_fd())];
        if let Some(other) = self.other.get() {
            all.push(entry(other.as_fd()));
        }
        let rung = all.len();
        if self.is_trusted() {
            all.extend(self.provider().map(entry));
        }
        let ready = any_ready(&mut all, longest);
        all[..rung].iter().filter(|bell| bell.any().unwrap_or(false)).for_each(drain);
        if all[rung..].iter().any(|queue| queue.any().unwrap_or(false)) {
            self.useless.fetch_add(1, Ordering::Relaxed);
            self.look_next();
        }
        ready
    }
}

/// Whether one of `all` became readable within `limit`.
pub fn any_ready(all: &mut [PollFd<'_>], limit: Duration) -> bool {
    // The system takes no longer time than a signed number of seconds holds; nobody waits that long.
    let limit = (limit < FOREVER).then(|| TimeSpec::from_duration(limit));
    ppoll(all, limit, None).unwrap_or(0) > 0
}

/// Empties what somebody has rung by.
pub fn drain(bell: &PollFd<'_>) {
    let mut bytes = [0u8; 64];
    while nix::unistd::read(bell.as_fd(), &mut bytes).is_ok_and(|count| count > 0) {}
}

impl Sleep for OfiSleeper {
    fn arm(&self) -> Token {
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        // The look that follows is the last before the sleep.
        self.look_next();
        self.doorbell.arm()
    }

    fn sleep(&self, token: Token, limit: Duration) {
        let longest = self.longest(limit);
        let Ok(_leader) = self.leader.try_lock() else {
            self.doorbell.sleep(token, longest);
            return;
        };
        // Rings since `arm`: those of threads also wrote to the descriptor, those of an earlier leader did not.
        let now = self.doorbell.arm();
        self.doorbell.disarm();
        if now != token {
            return;
        }
        if !self.may_sleep() {
            self.look_next();
            return;
        }
        if self.lead(longest) {
            self.idle.store(0, Ordering::Relaxed);
        } else {
            self.idle.fetch_add(1, Ordering::Relaxed);
            self.look_next();
        }
        // The others sleep until now; one of them leads next.
        if self.sleepers.load(Ordering::SeqCst) > 1 {
            self.doorbell.ring();
        }
    }

    fn disarm(&self) {
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
        self.doorbell.disarm();
    }

    fn ring(&self) {
        self.doorbell.ring();
        // A full count is readable, too.
        let _ = self.own.write(1);
    }
}
