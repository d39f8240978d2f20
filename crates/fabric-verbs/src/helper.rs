//! Where the helper thread sleeps: a `poll` of its own over the completion channels.
//!
//! Contract. Both places share the queues and their channels; an adapter raises one event for one
//! arming, whoever armed, and whoever takes it takes it from the other.
//!
//! - The program's threads ask for any completion, the helper for solicited arrivals and connect requests;
//!   if an operation is awaited here, for its end; and while something is kept back or a connection is
//!   being made, for everything: credits, room in the window.
//! - An arming for everything stands until its event, also if the other side asks for less then.
//! - Whoever takes an event rings the other place if somebody there has armed: they arm again, and
//!   look. So an arming is lost to nobody without a ring.
//! - So a sleep of the program's threads that the network ends may wake the helper for nothing, once: it
//!   finds them inside and stands back until they leave.
//! - What the helper asks for depends on what the main thread does later. An operation with a
//!   completion arms for its end before it is posted ([`HelperShare::expect`]); what is kept first, or
//!   greeted first, rings ([`HelperShare::set_busy`]). Both only while the helper has armed; when it arms
//!   afterwards, it sees the flags, which are set before.

use crate::rail::Base;
use crate::sleep::{VerbsSleeper, WakeDescriptor};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};
use std::sync::{Arc, OnceLock};
use std::time::Duration;
use weft_fabric::wait::{Sleep, Token};

/// Longest sleep while something is kept back or a connect request waits for its answer.
const WHILE_BUSY: Duration = Duration::from_millis(10);

/// The helper's share of a [`VerbsSleeper`].
pub struct HelperShare {
    /// Rings so far: what a token is.
    rings: AtomicU32,
    /// Somebody has asked for the place. Who posts is the one who asked, or comes after.
    exists: AtomicBool,
    own: WakeDescriptor,
    other: OnceLock<OwnedFd>,
    /// Armed, by whoever arms for the helper.
    announced: AtomicU32,
    /// The end of an operation is awaited.
    awaited: AtomicBool,
    /// Something is kept back, or a connection is being made.
    busy: AtomicBool,
    /// Ends of operations are nothing to it.
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

    /// As [`VerbsSleeper::watch`].
    pub fn watch(&self, other: OwnedFd) {
        let _ = self.other.set(other);
    }

    /// From here on the helper may arm. Called by the thread that uses the fabric.
    pub fn exist(&self) {
        self.exists.store(true, Ordering::Relaxed);
    }

    #[inline]
    fn is_announced(&self) -> bool {
        if !self.exists.load(Ordering::Relaxed) {
            return false;
        }
        // Either the flag before is seen by who arms, or this sees the arming.
        fence(Ordering::SeqCst);
        self.announced.load(Ordering::Relaxed) != 0
    }

    /// An operation whose completion is asked for is about to be posted.
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

    /// Nothing is awaited any more.
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

    /// The program's threads have taken an event that may have been meant for the helper.
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

/// Where the helper sleeps. One thread at a time; any thread may arm for it, and ring.
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
