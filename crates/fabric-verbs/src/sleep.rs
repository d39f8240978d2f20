//! Where a process sleeps: one `poll` over the completion channels of all rails and a descriptor by
//! which its own threads ring.
//!
//! Contract. Several threads may sleep; one of them, the leader, polls the descriptors, and the others
//! wait for the doorbell, which the leader rings for whatever ends its poll. `arm` asks the adapters
//! for events, so what arrives between it and the sleep makes a descriptor readable; what had arrived
//! before is seen by the poll of the caller.
//!
//! The helper thread has a place of its own beside this one: see `helper.rs`.
//!
//! A silent flag is a plain write, which raises no event: while there are such flags, sleeps are naps
//! of 50 us to 1 ms.

use crate::helper::HelperShare;
use crate::rail::Base;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;
use weft_fabric::wait::{Doorbell, Sleep, Token};

/// First and longest nap while there are silent flags.
const NAP: Duration = Duration::from_micros(50);
const NAP_MOST: Duration = Duration::from_millis(1);

/// A descriptor of this process by which its threads ring.
pub struct WakeDescriptor(OwnedFd);

impl WakeDescriptor {
    pub fn new() -> io::Result<WakeDescriptor> {
        // SAFETY: no pointers.
        let fd = unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: a new descriptor that nobody else has.
        Ok(WakeDescriptor(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    pub fn fd(&self) -> RawFd {
        self.0.as_raw_fd()
    }

    pub fn ring(&self) {
        let one = 1u64;
        // SAFETY: writes 8 bytes from `one`; does not block. If the count is full, it is readable.
        unsafe { libc::write(self.fd(), (&raw const one).cast(), 8) };
    }
}

/// What a poll came to.
#[derive(Debug, Clone, Copy)]
pub struct Polled {
    /// Something ended it before its time.
    pub ready: bool,
    /// It has taken events of the adapters.
    pub event: bool,
}

pub struct VerbsSleeper {
    bell: Doorbell,
    own: WakeDescriptor,
    pub helping: HelperShare,
    /// What another fabric of this process is rung by.
    other: OnceLock<OwnedFd>,
    leader: Mutex<()>,
    /// Threads that have armed.
    sleepers: AtomicU32,
    pub bases: Vec<Arc<Base>>,
    /// Longest sleep in nanoseconds, for deadlines of the fabric itself.
    limit: AtomicU64,
    silent: AtomicBool,
    /// Naps in a row that nothing has ended.
    naps: AtomicU32,
    /// Somebody has slept since the last look: time has passed.
    slept: AtomicBool,
    /// An adapter has something to say besides completions.
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

    /// Ends sleeps when `other` is readable, too; it is emptied then. Only the first one counts.
    pub fn watch(&self, other: OwnedFd) {
        let _ = self.other.set(other);
    }

    /// No sleep is longer than this.
    pub fn set_limit(&self, limit: Duration) {
        let limit = u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
        if self.limit.load(Ordering::Relaxed) != limit {
            self.limit.store(limit, Ordering::Relaxed);
        }
    }

    /// Whether there are flags that wake nobody.
    pub fn set_silent(&self, silent: bool) {
        self.silent.store(silent, Ordering::Relaxed);
    }

    /// Whether anybody has slept since the last call.
    pub fn take_slept(&self) -> bool {
        self.slept.load(Ordering::Relaxed) && self.slept.swap(false, Ordering::Relaxed)
    }

    /// Whether an adapter had something to say since the last call.
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

    /// Time passes, by which things are done.
    pub fn note_slept(&self) {
        self.slept.store(true, Ordering::Relaxed);
    }

    /// The helper has taken an event that may have been meant for somebody here.
    pub fn event_taken(&self) {
        if self.sleepers.load(Ordering::SeqCst) != 0 {
            self.ring();
        }
    }

    /// Polls two descriptors that are rung by (-1: there is none), the channels, and, with
    /// `asynchronous`, what else the adapters may have to say.
    pub fn poll(&self, rung: [RawFd; 2], asynchronous: bool, longest: Duration) -> Polled {
        let entry = |fd: RawFd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        // Two of each rail. The system passes over negative ones.
        let mut all = [entry(-1); 2 + 2 * crate::RAILS_MAX];
        (all[0], all[1]) = (entry(rung[0]), entry(rung[1]));
        for (i, base) in self.bases.iter().enumerate() {
            all[2 + 2 * i] = entry(base.channel.fd());
            if asynchronous {
                all[3 + 2 * i] = entry(base.channel.context.async_fd());
            }
        }
        let time = libc::timespec {
            tv_sec: longest.as_secs().min(i32::MAX as u64) as libc::time_t,
            tv_nsec: longest.subsec_nanos().into(),
        };
        let n = 2 + 2 * self.bases.len();
        // SAFETY: `n` valid entries, a valid time; no signal mask.
        let ready = unsafe { libc::ppoll(all.as_mut_ptr(), n as u64, &time, std::ptr::null()) };
        if ready <= 0 {
            return Polled { ready: false, event: false };
        }
        let mut event = false;
        for entry in all[..2].iter().filter(|entry| entry.revents != 0) {
            let mut bytes = [0u8; 8];
            // SAFETY: reads at most 8 bytes into `bytes`; does not block.
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
            base.arrivals.arm(false);
            base.datagrams.arm(false);
            // What is waited for may be the end of a write or a read of ours.
            base.departures.arm(false);
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
        // Rings since `arm`: those of threads also wrote to the descriptor, those of an earlier
        // leader did not.
        let now = self.bell.arm();
        self.bell.disarm();
        if now != token {
            return;
        }
        let other = self.other.get().map_or(-1, OwnedFd::as_raw_fd);
        let Polled { ready, event } = self.poll([self.own.fd(), other], true, longest);
        if event {
            self.helping.event_taken();
        }
        if ready {
            self.naps.store(0, Ordering::Relaxed);
        } else {
            self.naps.fetch_add(1, Ordering::Relaxed);
        }
        // The others sleep until now; one of them leads next.
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
