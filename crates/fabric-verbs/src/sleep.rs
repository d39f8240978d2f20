//! The sleep of a process: one `poll` over the completion channels of all rails, and over a descriptor on which threads of the
//! process ring.
//!
//! Contract. Several threads may sleep. One of these threads, the leader, polls the descriptors. The other threads wait for the
//! doorbell, which the leader rings when its poll ends. `arm` requests events from the adapters, so an arrival between `arm` and
//! the sleep makes a descriptor readable. The caller polls after `arm`, and so finds messages that arrived before `arm`.
//!
//! The helper thread sleeps in its own place: see `helper_thread.rs`.
//!
//! A silent flag is set by a plain write, which raises no event. So a process with silent flags only takes naps of 50 us to 1 ms.

pub mod helper_share;
pub mod helper_thread;
pub mod wake_descriptor;

use crate::adapter::object::ArmFor;
use crate::rail::Base;
use crate::sleep::helper_share::HelperShare;
use crate::sleep::wake_descriptor::WakeDescriptor;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use weft_fabric::wait::{Doorbell, Sleep, Token};

/// Length of the first nap, and maximum length of a nap, of a process with silent flags.
const NAP: Duration = Duration::from_micros(50);
const NAP_MOST: Duration = Duration::from_millis(1);

/// Events of the adapters that end a poll.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PollScope {
    /// Events of the completion channels.
    Completions,
    /// Also asynchronous events.
    AllEvents,
}

/// Result of a poll.
#[derive(Debug, Clone, Copy)]
pub struct Polled {
    /// True if a descriptor ended the poll before the time limit.
    pub ready: bool,
    /// True if events of the adapters were taken.
    pub event: bool,
}

pub struct VerbsSleeper {
    bell: Doorbell,
    own: WakeDescriptor,
    pub helping: HelperShare,
    /// Descriptor on which another fabric of this process rings to end the sleep.
    other: OnceLock<OwnedFd>,
    leader: Mutex<()>,
    /// Number of threads that have armed and not yet disarmed.
    sleepers: AtomicU32,
    pub bases: Vec<Arc<Base>>,
    /// Maximum duration of a sleep, in nanoseconds. It depends on the deadlines of the fabric itself.
    limit: AtomicU64,
    silent: AtomicBool,
    /// Number of consecutive naps that timed out.
    naps: AtomicU32,
    /// True if a thread has slept since the last call of [`VerbsSleeper::take_slept`], so that time has passed.
    slept: AtomicBool,
    /// True if an adapter has announced an asynchronous event.
    asynchronous: AtomicBool,
}

impl VerbsSleeper {
    pub fn new(bases: Vec<Arc<Base>>) -> io::Result<VerbsSleeper> {
        Ok(VerbsSleeper {
            bell: Doorbell::new(),
            own: WakeDescriptor::new()?,
            helping: HelperShare::new()?,
            other: OnceLock::new(),
            leader: Mutex::new(()),
            sleepers: AtomicU32::new(0),
            bases,
            limit: AtomicU64::new(u64::MAX),
            silent: AtomicBool::new(false),
            naps: AtomicU32::new(0),
            slept: AtomicBool::new(false),
            asynchronous: AtomicBool::new(false),
        })
    }

    /// Lets `other` end sleeps when it becomes readable. After such a sleep, all bytes are read from `other`. Only the first call
    /// has an effect.
    pub fn watch(&self, other: OwnedFd) {
        let _ = self.other.set(other);
    }

    /// Sets the maximum duration of a sleep.
    pub fn set_limit(&self, limit: Duration) {
        let limit = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
        if self.limit.load(Ordering::Relaxed) != limit {
            self.limit.store(limit, Ordering::Relaxed);
        }
    }

    /// Sets whether this process has silent flags. Writes to silent flags do not wake a sleeper, so sleeps become naps.
    pub fn set_silent(&self, silent: bool) {
        self.silent.store(silent, Ordering::Relaxed);
    }

    /// Returns true if a thread has slept since the last call.
    pub fn take_slept(&self) -> bool {
        self.slept.load(Ordering::Relaxed) && self.slept.swap(false, Ordering::Relaxed)
    }

    /// Returns true if an adapter has announced an asynchronous event since the last call.
    pub fn take_asynchronous(&self) -> bool {
        self.asynchronous.swap(false, Ordering::Relaxed)
    }

    fn longest(&self, limit: Duration) -> Duration {
        let mut longest = limit.min(Duration::from_nanos(self.limit.load(Ordering::Relaxed)));
        if self.silent.load(Ordering::Relaxed) {
            let doublings = self.naps.load(Ordering::Relaxed).min(8);
            longest = longest.min((NAP * (1 << doublings)).min(NAP_MOST));
        }
        longest
    }

    /// Records that time has passed. The next poll then does the work that is due.
    pub fn note_slept(&self) {
        self.slept.store(true, Ordering::Relaxed);
    }

    /// Rings the sleepers after the helper has taken an event, because the event may have been meant for a sleeper.
    pub fn event_taken(&self) {
        if self.sleepers.load(Ordering::SeqCst) != 0 {
            self.ring();
        }
    }

    /// Polls the descriptors of `scope`, and the descriptors `rung`, on which threads ring (-1 stands for no descriptor).
    pub fn poll(&self, rung: [RawFd; 2], scope: PollScope, longest: Duration) -> Polled {
        let entry = |fd: RawFd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        // Two entries per rail. `ppoll` ignores negative descriptors.
        let mut all = [entry(-1); 2 + 2 * crate::RAILS_MAX];
        (all[0], all[1]) = (entry(rung[0]), entry(rung[1]));
        for (i, base) in self.bases.iter().enumerate() {
            all[2 + 2 * i] = entry(base.channel.fd());
            if scope == PollScope::AllEvents {
                all[3 + 2 * i] = entry(base.channel.context.async_fd());
            }
        }
        let time = libc::timespec {
            tv_sec: longest.as_secs().min(i32::MAX as u64) as libc::time_t,
            tv_nsec: longest.subsec_nanos().into(),
        };
        let n = 2 + 2 * self.bases.len();
        // SAFETY: `ppoll` needs `n` valid entries and a valid time; it takes no signal mask here.
        let ready = unsafe { libc::ppoll(all.as_mut_ptr(), n as u64, &time, std::ptr::null()) };
        if ready <= 0 {
            return Polled { ready: false, event: false };
        }
        let mut event = false;
        for entry in all[..2].iter().filter(|entry| entry.revents != 0) {
            let mut bytes = [0u8; 8];
            // SAFETY: `read` needs room for 8 bytes: `bytes` has it. The descriptor does not block.
            while unsafe { libc::read(entry.fd, bytes.as_mut_ptr().cast(), bytes.len()) } > 0 {}
        }
        for (i, base) in self.bases.iter().enumerate() {
            if all[2 + 2 * i].revents != 0 {
                event |= base.channel.drain();
            }
            if all[3 + 2 * i].revents != 0 {
                self.asynchronous.store(true, Ordering::Relaxed);
            }
        }
        Polled { ready: true, event }
    }
}

impl Sleep for VerbsSleeper {
    fn arm(&self) -> Token {
        self.sleepers.fetch_add(1, Ordering::SeqCst);
        let token = self.bell.arm();
        for base in &self.bases {
            base.arrivals.arm(ArmFor::Any);
            base.datagrams.arm(ArmFor::Any);
            // The sleeper may wait for the completion of its own write or read.
            base.departures.arm(ArmFor::Any);
        }
        token
    }

    fn sleep(&self, token: Token, limit: Duration) {
        self.note_slept();
        let longest = self.longest(limit);
        let Ok(_leader) = self.leader.try_lock() else {
            self.bell.sleep(token, longest);
            return;
        };
        // Checks for rings since `arm`. A thread that rings also writes to the descriptor, but an earlier leader rings only the
        // doorbell.
        let now = self.bell.arm();
        self.bell.disarm();
        if now != token {
            return;
        }
        let other = self.other.get().map_or(-1, OwnedFd::as_raw_fd);
        let Polled { ready, event } =
            self.poll([self.own.fd(), other], PollScope::AllEvents, longest);
        if event {
            self.helping.event_taken();
        }
        if ready {
            self.naps.store(0, Ordering::Relaxed);
        } else {
            self.naps.fetch_add(1, Ordering::Relaxed);
        }
        // The other threads have slept until now. The ring wakes them, and one of them leads next.
        if self.sleepers.load(Ordering::SeqCst) > 1 {
            self.bell.ring();
        }
    }

    fn disarm(&self) {
        self.sleepers.fetch_sub(1, Ordering::SeqCst);
        self.bell.disarm();
    }

    fn ring(&self) {
        self.bell.ring();
        self.own.ring();
    }
}
