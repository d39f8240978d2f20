//! A helper thread. The thread sleeps in the kernel, is woken by solicited messages, and works while the main thread is outside
//! of the library and has outstanding operations.
//!
//! Contract. The helper sleeps at a place of its own, [`crate::FabricExt::helper`]. Peers ring there only while the helper is
//! announced ([`Sleep::arm`]). The helper works only while it holds the [`Handover`], and only if the main thread has left the
//! library with outstanding operations. While the main thread is inside, the helper leaves solicited messages to it:
//!
//! ```text
//!   helper                                main thread
//!   announce                              enter ... poll ... leave:
//!   main outside, helper wanted ?           set `wanted`; inside = 0
//!     yes: work; nothing moved: sleep       light fence
//!     no:  take the announcement back       announced == wanted ? done
//!          heavy fence                        enter; wanted:  announce for the helper, look once
//!          wanted now ? again                        else:    take the announcement back
//!          sleep, unannounced                 leave again
//! ```
//! So a main thread that stays inside is disturbed at most once, peers do not ring in vain, and a main thread that leaves pays
//! only for one look, without a system call. No message is lost: the look after the announcement sees earlier messages, and later
//! messages ring. Exactly one side withdraws an announcement: the side that clears `announced`.

use super::handover::Handover;
use super::{Sleep, Token};
use std::time::Duration;

// The counts are not part of the model, so they do not use loom's atomics.
use std::sync::atomic::AtomicU64;

#[cfg(loom)]
use loom::sync::atomic::{AtomicBool, Ordering};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicBool, Ordering};

/// A helper, and its shared state with the main thread.
#[derive(Debug)]
pub struct HelperHandle {
    handover: Handover,
    /// True if the helper is armed at its place, by itself or by the main thread.
    announced: AtomicBool,
    /// True if the main thread has left the library, or is about to leave it, with outstanding operations.
    wanted: AtomicBool,
    over: AtomicBool,
    rounds: AtomicU64,
    refusals: AtomicU64,
    signals: AtomicU64,
}

/// Counts of the actions of a helper so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HelperCounts {
    /// Number of times that the helper worked.
    pub rounds: u64,
    /// Number of times that the helper found the main thread inside, or no outstanding operation.
    pub refusals: u64,
    /// Number of times that the helper signalled the main thread.
    pub signals: u64,
}

/// The action of the helper when it is woken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HelperTurn {
    /// The helper works itself.
    Work,
    /// The helper signals the main thread, whose signal handler does the work.
    Signal,
}

impl Default for HelperHandle {
    fn default() -> HelperHandle {
        HelperHandle::new()
    }
}

impl HelperHandle {
    /// Creates a helper that is not announced yet, with the main thread outside of the library.
    pub fn new() -> HelperHandle {
        HelperHandle {
            handover: Handover::new(),
            announced: AtomicBool::new(false),
            wanted: AtomicBool::new(false),
            over: AtomicBool::new(false),
            rounds: AtomicU64::new(0),
            refusals: AtomicU64::new(0),
            signals: AtomicU64::new(0),
        }
    }

    // ---- the main thread ----------------------------------------------------------------------

    /// Enters the library as the main thread. Waits while the helper works. Calls of `enter` and `leave` alternate.
    #[inline(always)]
    pub fn enter(&self) {
        self.handover.go_in();
    }

    /// Leaves the library as the main thread. If operations are outstanding (`wanted` returns true) and the helper is not
    /// announced, announces the helper at `place`, and then calls `look` on its behalf.
    #[inline(always)]
    pub fn leave(&self, place: &dyn Sleep, wanted: impl Fn() -> bool, look: impl FnMut() -> bool) {
        let now = wanted();
        self.wanted.store(now, Ordering::Relaxed);
        if self.go_out() != now {
            self.announce(place, wanted, look);
        }
    }

    /// Leaves the exclusion. Returns true if the helper is announced.
    #[inline(always)]
    fn go_out(&self) -> bool {
        self.handover.go_out();
        self.handover.light_fence();
        self.announced.load(Ordering::Relaxed)
    }

    #[cold]
    fn announce(
        &self,
        place: &dyn Sleep,
        wanted: impl Fn() -> bool,
        mut look: impl FnMut() -> bool,
    ) {
        loop {
            self.handover.go_in();
            if wanted() && !self.announced.swap(true, Ordering::AcqRel) {
                place.arm();
                look_well(place, &mut look);
            }
            // The look may have completed the outstanding operations.
            let now = wanted();
            self.wanted.store(now, Ordering::Relaxed);
            if !now {
                self.take_back(place);
            }
            // During this entry the helper may have found the main thread inside and gone to sleep, so the loop checks again.
            if self.go_out() == now {
                return;
            }
        }
    }

    /// Withdraws the announcement. The main thread calls this inside the library, before it waits: the main thread itself makes
    /// all progress then, so peers need not ring.
    #[inline]
    pub fn stand_down(&self, place: &dyn Sleep) {
        if self.announced.load(Ordering::Relaxed) {
            self.take_back(place);
        }
    }

    /// Calls `look` in a signal handler on the main thread, unless the main thread is inside or the helper works. `look` returns
    /// true if it has to leave work to the helper.
    ///
    /// If the handler has interrupted the library, the main thread will announce the helper when it leaves.
    pub fn interrupt(&self, place: &dyn Sleep, look: impl FnOnce() -> bool) {
        if self.handover.is_inside() {
            return self.take_back(place);
        }
        // If the helper is inside, it works until nothing moves, so the handler need not look.
        let more = self.handover.try_to_go_in() && look();
        // During this entry the helper may have found the main thread inside and gone to sleep, so it is rung.
        if !self.go_out() || more {
            place.ring();
        }
    }

    fn take_back(&self, place: &dyn Sleep) {
        if self.announced.swap(false, Ordering::AcqRel) {
            place.disarm();
        }
    }

    // ---- the helper ---------------------------------------------------------------------------

    /// Runs the helper at `place` until [`HelperHandle::stop`]. `work` makes progress and returns true if anything moved. Then
    /// `work` is called again before the helper sleeps.
    pub fn run(&self, place: &dyn Sleep, work: impl FnMut() -> bool) {
        self.run_by(place, || HelperTurn::Work, work, || ());
    }

    /// Runs the helper as [`HelperHandle::run`] does. Whenever the helper could work, `turn` decides between work and a call of
    /// `signal`. `turn` is called while the main thread is kept out.
    pub fn run_by(
        &self,
        place: &dyn Sleep,
        turn: impl Fn() -> HelperTurn,
        mut work: impl FnMut() -> bool,
        signal: impl Fn(),
    ) {
        while !self.over.load(Ordering::Acquire) {
            let token = self.arm(place);
            if self.over.load(Ordering::Acquire) {
                break;
            }
            let help = self.handover.help().filter(|_| self.wanted.load(Ordering::Relaxed));
            let Some(help) = help else {
                count(&self.refusals);
                self.stand_back(place, token);
                continue;
            };
            let moved = match turn() {
                HelperTurn::Work => {
                    count(&self.rounds);
                    let moved = work();
                    drop(help);
                    moved
                }
                HelperTurn::Signal => {
                    drop(help);
                    count(&self.signals);
                    signal();
                    false
                }
            };
            if !moved {
                place.sleep(token, Duration::MAX);
            }
            self.take_back(place);
        }
        self.take_back(place);
    }

    fn arm(&self, place: &dyn Sleep) -> Token {
        let token = place.arm();
        if self.announced.swap(true, Ordering::AcqRel) {
            // The main thread had announced the helper before.
            place.disarm();
        }
        token
    }

    /// Sleeps without an announcement, because the main thread is inside or no operation is outstanding. The main thread
    /// announces the helper when it leaves with outstanding operations.
    fn stand_back(&self, place: &dyn Sleep, token: Token) {
        self.take_back(place);
        self.handover.heavy_fence();
        let due = !self.handover.is_inside() && self.wanted.load(Ordering::Relaxed);
        // If `over` is still false here, the ring of the thread that ends the helper comes after `token` and is not missed.
        if !due && !self.over.load(Ordering::Acquire) {
            self.sleep_unannounced(place, token);
        }
        self.take_back(place);
    }

    /// Sleeps until a ring, or until the main thread has announced the helper. An event of an adapter that was armed earlier does not
    /// end the sleep. The helper does not arm the adapter again, so each adapter wakes it at most once.
    fn sleep_unannounced(&self, place: &dyn Sleep, token: Token) {
        loop {
            place.sleep(token, Duration::MAX);
            if self.announced.load(Ordering::Acquire) || place.may_have_rung(token) {
                return;
            }
        }
    }

    /// Runs the helper as [`HelperHandle::run`] does, for a library that a lock protects. `alone` runs its argument under the
    /// lock. `wanted` returns true if an operation is outstanding.
    pub fn run_locked(
        &self,
        place: &dyn Sleep,
        alone: impl Fn(&mut dyn FnMut()),
        wanted: impl Fn() -> bool,
        mut work: impl FnMut() -> bool,
    ) {
        while !self.over.load(Ordering::Acquire) {
            let token = self.arm(place);
            let mut then = Then::Ends;
            alone(&mut || {
                // The thread that ends the helper may hold the lock while the helper waits for it. The ring of that thread may
                // have come before `token`, and there is no further ring.
                if self.over.load(Ordering::Acquire) {
                    return;
                }
                if wanted() {
                    count(&self.rounds);
                    then = if work() { Then::Again } else { Then::Sleeps };
                } else {
                    count(&self.refusals);
                    self.take_back(place);
                    then = Then::Rests;
                }
            });
            match then {
                Then::Again | Then::Ends => {}
                Then::Sleeps => place.sleep(token, Duration::MAX),
                Then::Rests => self.sleep_unannounced(place, token),
            }
            self.take_back(place);
        }
    }

    /// Announces the helper at `place`, and calls `look` on its behalf. Called by a thread of the program that is about to give up
    /// the lock while an operation is outstanding.
    #[inline]
    pub fn leave_locked(&self, place: &dyn Sleep, mut look: impl FnMut() -> bool) {
        if !self.announced.swap(true, Ordering::AcqRel) {
            place.arm();
            look_well(place, &mut look);
        }
    }

    /// Ends the helper, from any other thread. The helper does no more work once its thread has been joined.
    pub fn stop(&self, place: &dyn Sleep) {
        self.over.store(true, Ordering::Release);
        place.ring();
    }

    /// Returns the counts so far. The counts are read without a lock, so they may belong to different moments.
    pub fn counts(&self) -> HelperCounts {
        HelperCounts {
            rounds: self.rounds.load(Ordering::Relaxed),
            refusals: self.refusals.load(Ordering::Relaxed),
            signals: self.signals.load(Ordering::Relaxed),
        }
    }
}

/// The action of a helper after it has given up the lock.
enum Then {
    /// Something moved: the helper looks again.
    Again,
    /// Nothing moved: the helper sleeps, announced.
    Sleeps,
    /// No operation is outstanding: the helper sleeps, not announced.
    Rests,
    Ends,
}

/// Calls `look` until nothing moves any more. After 16 calls, leaves the rest to the helper at `place`.
fn look_well(place: &dyn Sleep, look: &mut impl FnMut() -> bool) {
    const LOOKS: usize = 16;
    if (0..LOOKS).all(|_| look()) {
        place.ring();
    }
}

/// Increments a count. An atomic addition is not needed, since only the helper counts.
fn count(of: &AtomicU64) {
    of.store(of.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

#[cfg(all(test, not(loom)))]
mod tests;

#[cfg(all(test, loom))]
mod models;
