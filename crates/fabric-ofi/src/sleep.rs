//! Sleep of the program's threads: one `poll` over the provider's descriptor and over a descriptor that this process's threads
//! ring.
//!
//! Contract. Several threads may sleep. One of these threads, the leader, polls. The other threads wait for the doorbell, which the
//! leader rings after every poll. Before the leader polls, it asks the provider (`fi_trywait`) if a sleep on the descriptor is
//! safe. If not, the leader does not sleep, and the next poll of the provider is not skipped.
//!
//! A provider without a descriptor is polled every 50 us to 1 ms. A provider that has no room for kept operations is polled at
//! the same times, because no event reports that there is room again.

use crate::access::PollingThread;
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

/// Duration of the first nap, and the maximum duration of a nap.
const NAP: Duration = Duration::from_micros(50);
pub const NAP_MOST: Duration = Duration::from_millis(1);

/// Maximum number of successive sleeps that the provider's descriptor may end without a result. After that, the descriptor is
/// ignored until a poll finds something, and sleeps are naps. With some providers the descriptor stays readable for long, and a
/// waiting thread would take a whole processor.
const USELESS_MOST: u32 = 8;

/// Time limit from which on a sleep counts as unlimited.
const FOREVER: Duration = Duration::from_secs(1 << 30);

pub struct OfiSleeper {
    /// Endpoints of all rails.
    objects: Vec<Arc<Objects>>,
    doorbell: Doorbell,
    /// Descriptor that threads of this process ring. Other fabrics also watch it.
    own: EventFd,
    /// Descriptor that rings another fabric of this process.
    other: OnceLock<OwnedFd>,
    leader: Mutex<()>,
    sleepers: AtomicU32,
    /// True if sleeps must be naps: operations are kept for which the provider has no room, or rails are being tried or shut.
    naps: AtomicBool,
    /// Number of successive naps that no event has ended early.
    idle: AtomicU32,
    /// True while the provider may collect bytes before its descriptor becomes readable.
    collecting: AtomicBool,
    /// True if the provider has something that only a poll advances.
    must_look: AtomicBool,
    /// Number of successive sleeps that the provider's descriptor has ended without a result.
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
            collecting: AtomicBool::new(false),
            must_look: AtomicBool::new(false),
            useless: AtomicU32::new(0),
        })
    }

    /// Lets `other` wake the program's threads when it becomes readable. A thread that `other` has woken reads all bytes from
    /// `other`. Only the first call has an effect.
    pub fn watch(&self, other: OwnedFd) {
        let _ = self.other.set(other);
    }

    pub fn set_naps(&self, naps: bool) {
        self.naps.store(naps, Ordering::Relaxed);
    }

    /// Returns true if the next poll must not be skipped, and clears this mark.
    #[inline]
    pub fn take_must_look(&self) -> bool {
        self.must_look.load(Ordering::Relaxed) && self.must_look.swap(false, Ordering::Relaxed)
    }

    /// Marks that the next poll of the provider must not be skipped.
    pub fn look_next(&self) {
        self.must_look.store(true, Ordering::Relaxed);
    }

    /// Notes that a poll has found something.
    #[inline]
    pub fn found(&self) {
        if self.useless.load(Ordering::Relaxed) != 0 {
            self.useless.store(0, Ordering::Relaxed);
        }
    }

    /// Returns true if the provider's descriptor is not ignored at the moment.
    fn is_trusted(&self) -> bool {
        self.useless.load(Ordering::Relaxed) < USELESS_MOST
    }

    /// Returns the provider's descriptor of each rail that has a descriptor.
    pub fn provider(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        let all =
            self.objects.iter().flat_map(|objects| [objects.wait(), objects.signal()]).flatten();
        // SAFETY: `borrow_raw` needs a descriptor that is open as long as the borrow. These descriptors belong to the completion
        // queues of `objects`, which stay open as long as `self`.
        all.map(|fd| unsafe { BorrowedFd::borrow_raw(fd) })
    }

    /// Tells the provider which threads poll from now on.
    pub fn set_poller(&self, poller: PollingThread) {
        self.objects.iter().for_each(|objects| objects.set_poller(poller));
    }

    /// Lets the provider collect bytes during a sleep of the helper. Returns true if the provider collects bytes. Then the sleep
    /// needs a limit.
    ///
    /// Each byte must wake a sleeping thread of the program. Before such a thread sleeps, it first counts itself as a sleeper, and
    /// then checks if bytes are collected. The order here is reversed, so at least one of the two threads ends the collecting.
    pub fn begin_collecting(&self) -> bool {
        self.collecting.store(true, Ordering::SeqCst);
        let collects =
            self.objects.iter().fold(false, |any, objects| objects.begin_collecting() | any);
        if !collects {
            self.collecting.store(false, Ordering::SeqCst);
            return false;
        }
        let alone = self.sleepers.load(Ordering::SeqCst) == 0;
        if !alone {
            self.end_collecting();
        }
        alone
    }

    /// Lets each byte that comes make the provider's descriptor readable.
    pub fn end_collecting(&self) {
        self.objects.iter().for_each(|objects| objects.end_collecting());
        self.collecting.store(false, Ordering::SeqCst);
    }

    /// Ends the collecting of bytes, if a sleep of the helper has begun it.
    pub fn stop_collecting(&self) {
        if self.collecting.load(Ordering::SeqCst) {
            self.end_collecting();
        }
    }

    /// Returns true if a rail has no descriptor.
    fn is_blind(&self) -> bool {
        self.objects.iter().any(|objects| objects.wait().is_none())
    }

    /// Returns true if a sleep is safe now: the next arrival or completion makes a descriptor readable. A rail without a
    /// descriptor counts as safe, because sleeps are naps then.
    pub fn may_sleep(&self) -> bool {
        self.objects.iter().all(|objects| objects.wait().is_none() || objects.may_sleep())
    }

    /// Returns true if sleeps must be naps, because some events do not make a descriptor readable.
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

    /// Polls as the leader. Returns true if something ended the poll before the time limit.
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

/// Returns true if a descriptor in `all` became readable within `limit`.
pub fn any_ready(all: &mut [PollFd<'_>], limit: Duration) -> bool {
    // `ppoll` accepts no more seconds than a signed number holds. No caller waits that long.
    let limit = (limit < FOREVER).then(|| TimeSpec::from_duration(limit));
    ppoll(all, limit, None).unwrap_or(0) > 0
}

/// Empties a descriptor that was rung.
pub fn drain(bell: &PollFd<'_>) {
    let mut bytes = [0u8; 64];
    while nix::unistd::read(bell.as_fd(), &mut bytes).is_ok_and(|count| count > 0) {}
}

impl Sleep for OfiSleeper {
    fn arm(&self) -> Token {
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        // If threads use the library under a lock, the helper may be in an armed sleep while a thread of the program waits.
        self.stop_collecting();
        // The next poll is the last poll before the sleep, so it must not be skipped.
        self.look_next();
        self.doorbell.arm()
    }

    fn sleep(&self, token: Token, limit: Duration) {
        let longest = self.longest(limit);
        let Ok(_leader) = self.leader.try_lock() else {
            self.doorbell.sleep(token, longest);
            return;
        };
        // Check for rings since `arm`. A thread that rings also writes to the descriptor, but an earlier leader rings only the
        // doorbell.
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
        // The other threads have slept until now. One of them leads next.
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
        // The write fails only if the counter is full. A full counter is also readable.
        let _ = self.own.write(1);
    }
}
