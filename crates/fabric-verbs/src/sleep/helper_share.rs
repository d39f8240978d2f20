//! The part of the sleeper that belongs to the helper thread: its rings and armings, and the events for which it wakes.

use crate::adapter::object::ArmFor;
use crate::rail::Base;
use crate::sleep::wake_descriptor::WakeDescriptor;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering, fence};
use std::sync::{Arc, OnceLock};
use weft_fabric::wait::Token;

/// The part of a [`crate::sleep::VerbsSleeper`] that belongs to the helper thread.
pub struct HelperShare {
    /// Number of rings so far, which is used as the token.
    rings: AtomicU32,
    /// True after a thread has requested the place of the helper. Only this thread posts, or a thread that runs after this thread.
    exists: AtomicBool,
    own: WakeDescriptor,
    other: OnceLock<OwnedFd>,
    /// Number of armings for the helper that have not been undone yet.
    announced: AtomicU32,
    /// True while the completion of an operation is awaited.
    awaited: AtomicBool,
    /// True while work is kept, or a connection is being made.
    busy: AtomicBool,
    /// True if the helper does not wake for completions of operations.
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

    /// Sets the second descriptor that ends sleeps, like [`crate::sleep::VerbsSleeper::watch`].
    pub fn watch(&self, other: OwnedFd) {
        let _ = self.other.set(other);
    }

    /// Permits the helper to arm from now on. The thread that uses the fabric calls this function.
    pub fn exist(&self) {
        self.exists.store(true, Ordering::Relaxed);
    }

    #[inline]
    fn is_announced(&self) -> bool {
        if !self.exists.load(Ordering::Relaxed) {
            return false;
        }
        // The fence orders the caller's store to `awaited` or `busy` before this load. So either the thread that arms sees this
        // store, or this load sees the arming.
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
            bases.iter().for_each(|base| base.departures.arm(ArmFor::Any));
        }
    }

    pub fn ignore_ends(&self) {
        self.ignores_ends.store(true, Ordering::Relaxed);
    }

    /// Notes that this process awaits the completion of an operation, or no longer awaits it.
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

    /// Rings the helper after a thread of the program has taken an event, because the event may have been meant for the helper.
    pub fn event_taken(&self) {
        if self.announced.load(Ordering::SeqCst) != 0 {
            self.ring();
        }
    }

    /// Counts an arming for the helper. Returns the token at the time of the arming.
    pub fn announce(&self) -> Token {
        self.announced.fetch_add(1, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        self.token()
    }

    /// Undoes one arming for the helper.
    pub fn disarm(&self) {
        self.announced.fetch_sub(1, Ordering::SeqCst);
    }

    /// Returns the current token.
    pub fn token(&self) -> Token {
        Token(self.rings.load(Ordering::SeqCst))
    }

    /// Returns true while work is kept, or a connection is being made.
    pub fn is_busy(&self) -> bool {
        self.busy.load(Ordering::Relaxed)
    }

    /// Returns true while the completion of an operation is awaited.
    pub fn awaits(&self) -> bool {
        self.awaited.load(Ordering::Relaxed)
    }

    /// Returns the descriptors on which threads and another fabric ring the helper (-1 stands for no descriptor).
    pub fn descriptors(&self) -> [RawFd; 2] {
        [self.own.fd(), self.other.get().map_or(-1, OwnedFd::as_raw_fd)]
    }

    /// Rings the helper.
    pub fn ring(&self) {
        self.rings.fetch_add(1, Ordering::SeqCst);
        self.own.ring();
    }
}
