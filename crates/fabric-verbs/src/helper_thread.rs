//! The sleep of the helper thread: its own `poll` over the completion channels.
//!
//! Contract. The helper and the sleepers of the program share the completion queues and their channels. An adapter raises one
//! event per arming, whichever side armed, and the side that takes the event takes it from the other.
//!
//! - The program's threads arm for any completion. The helper arms for solicited arrivals and connect requests; if an
//!   operation is awaited here, also for its completion; and while work is kept or a connection is being made, for everything
//!   (credits, room in the window).
//! - An arming for everything stands until its event, even if the other side arms for less in the meantime.
//! - A side that takes an event rings the other side if it has armed. The other side arms again, and polls. So no arming is
//!   lost without a ring.
//! - So if the network ends a sleep of the program's threads, the helper may wake once for nothing: it finds the threads
//!   inside and stands back until they leave.
//! - The set of events for the helper depends on later actions of the main thread. An operation with a completion arms for
//!   that completion before it is posted ([`HelperShare::expect`]). The first kept work, or the first connect request, rings
//!   ([`HelperShare::set_busy`]). Both do so only while the helper has armed; if it arms afterwards, it sees the flags, which
//!   are set before.

use crate::rail::Base;
use crate::sleep::{VerbsSleeper, WakeDescriptor};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use weft_fabric::wait::{Sleep, Token};

/// Maximum sleep while work is kept or a connect request awaits its answer.
const WHILE_BUSY: Duration = Duration::from_millis(10);

/// The helper's share of a [`VerbsSleeper`].
pub struct HelperShare {
    /// Number of rings so far; its value is the token.
    rings: AtomicU32,
    /// True once the helper's place was requested. The thread that posts is the thread that requested it, or runs after it.
    exists: AtomicBool,
    own: WakeDescriptor,
    other: OnceLock<OwnedFd>,
    /// Number of armings for the helper that are not yet disarmed.
    announced: AtomicU32,
    /// True while the completion of an operation is awaited.
    awaited: AtomicBool,
    /// True while work is kept, or a connection is being made.
    busy: AtomicBool,
    /// True if completions of operations do not concern the helper.
    ignores_ends: AtomicBool,
}

impl HelperShare {
    pub fn new() -> io::Result<HelperShare> {
        Ok(HelperShare {
            rings: AtomicU32::new(0),
            exists: AtomicBool::new(false),
            own: WakeDescriptor::new()?,
            other: OnceLock::new(),
            announced: AtomicU32::new(0),
            awaited: AtomicBool::new(false),
            busy: AtomicBool::new(false),
            ignores_ends: AtomicBool::new(false),
        })
    }

    /// Sets the second descriptor that ends sleeps, like [`VerbsSleeper::watch`].
    pub fn watch(&self, other: OwnedFd) {
        let _ = self.other.set(other);
    }

    /// Permits the helper to arm from now on. The thread that uses the fabric calls it.
    pub fn exist(&self) {
        self.exists.store(true, Ordering::Relaxed);
    }

    #[inline]
    fn is_announced(&self) -> bool {
        if !self.exists.load(Ordering::Relaxed) {
            return false;
        }
        // Either the thread that arms sees the flag that was set before, or this load sees the arming.
        fence(Ordering::SeqCst);
        self.announced.load(Ordering::Relaxed) != 0
    }

    /// Announces that an operation with a completion is about to be posted.
    #[inline]
    pub fn expect(&self, bases: &[Arc<Base>]) {
        if self.ignores_ends.load(Ordering::Relaxed) {
            return;
        }
        self.awaited.store(true, Ordering::Relaxed);
        if self.is_announced() {
            bases.iter().for_each(|base| base.departures.arm(false));
        }
    }

    pub fn ignore_ends(&self, ignore: bool) {
        self.ignores_ends.store(ignore, Ordering::Relaxed);
    }

    /// Sets the flag that the completion of an operation is awaited.
    #[inline]
    pub fn set_awaited(&self, awaited: bool) {
        let awaited = awaited && !self.ignores_ends.load(Ordering::Relaxed);
        if self.awaited.load(Ordering::Relaxed) != awaited {
            self.awaited.store(awaited, Ordering::Relaxed);
        }
    }

    #[inline]
    pub fn set_busy(&self, busy: bool) {
        if self.busy.load(Ordering::Relaxed) != busy {
            self.busy.store(busy, Ordering::Relaxed);
            if busy && self.is_announced() {
                self.ring();
            }
        }
    }

    /// Rings the helper: the program's threads have taken an event that may have been meant for it.
    pub fn event_taken(&self) {
        if self.announced.load(Ordering::SeqCst) != 0 {
            self.ring();
        }
    }

    fn ring(&self) {
        self.rings.fetch_add(1, Ordering::SeqCst);
        self.own.ring();
    }
}

/// The place where the helper sleeps. One thread sleeps at a time; any thread may arm for it, and ring.
pub struct SleepPlace(pub Arc<VerbsSleeper>);

impl Sleep for SleepPlace {
    fn arm(&self) -> Token {
        let helping = &self.0.helping;
        helping.announced.fetch_add(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        let token = Token(helping.rings.load(Ordering::SeqCst));
        let busy = helping.busy.load(Ordering::Relaxed);
        let awaited = helping.awaited.load(Ordering::Relaxed);
        for base in &self.0.bases {
            base.arrivals.arm(!busy);
            base.datagrams.arm(true);
            if busy || awaited {
                base.departures.arm(false);
            }
        }
        token
    }

    fn sleep(&self, token: Token, limit: Duration) {
        let (sleeper, helping) = (&*self.0, &self.0.helping);
        sleeper.note_slept();
        let busy = helping.busy.load(Ordering::Relaxed);
        let limit = if busy { limit.min(WHILE_BUSY) } else { limit };
        if helping.rings.load(Ordering::SeqCst) != token.0 {
            return;
        }
        let other = helping.other.get().map_or(-1, OwnedFd::as_raw_fd);
        let polled = sleeper.poll([helping.own.fd(), other], false, limit);
        if polled.event {
            sleeper.event_taken();
        }
    }

    fn disarm(&self) {
        self.0.helping.announced.fetch_sub(1, Ordering::SeqCst);
    }

    fn ring(&self) {
        self.0.helping.ring();
    }

    fn may_have_rung(&self, token: Token) -> bool {
        self.0.helping.rings.load(Ordering::SeqCst) != token.0
    }
}
