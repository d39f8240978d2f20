//! A helper thread: asleep in the kernel, woken by solicited messages, at work while the main thread
//! is outside the library and something is outstanding.
//!
//! Contract. The helper sleeps at a place of its own, [`crate::FabricExt::helper`]; peers ring there only
//! while it is announced ([`Sleep::arm`]). It works only by the [`Handover`], and only if the main thread
//! has left with something outstanding. What is solicited while the main thread is inside is the main
//! thread's own business until it leaves:
//!
//! ```text
//!   helper                                main thread
//!   announce                              enter ... poll ... leave:
//!   main outside, and wants it ?            say whether it is wanted; inside = 0
//!     yes: work; nothing moved: sleep       light fence
//!     no:  take the announcement back       announced == wanted ? done
//!          heavy fence                        enter; wanted:  announce for the helper, look once
//!          is it now ? again                         if not:  take the announcement back
//!          sleep, unannounced                 leave again
//! ```
//! So a main thread that stays inside is not disturbed twice, peers ring for nobody, and a main thread
//! that leaves pays one look, no system call. Nothing is lost: what came before the announcement is
//! seen by the look that follows it, what comes after rings. The announcement is taken back by exactly
//! one side, the one that finds it standing.

use super::handover::Handover;
use super::{Sleep, Token};
use std::time::Duration;

// Counts are no part of the model.
use std::sync::atomic::AtomicU64;

#[cfg(loom)]
use loom::sync::atomic::{AtomicBool, Ordering};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicBool, Ordering};

/// One helper, and what it shares with the main thread.
#[derive(Debug)]
pub struct HelperHandle {
    handover: Handover,
    /// The helper is armed at its place, by itself or by the main thread.
    announced: AtomicBool,
    /// The main thread has left, or is about to leave, with something outstanding.
    wanted: AtomicBool,
    over: AtomicBool,
    rounds: AtomicU64,
    refusals: AtomicU64,
    signals: AtomicU64,
}

/// What a helper has done so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HelperCounts {
    /// Times that it worked.
    pub rounds: u64,
    /// Times that it found the main thread inside, or nothing outstanding.
    pub refusals: u64,
    /// Times that it signalled the main thread.
    pub signals: u64,
}

/// What the helper does when it is woken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HelperTurn {
    /// It works itself.
    Work,
    /// It signals the main thread, which works in the handler.
    Signal,
}

impl Default for HelperHandle {
    fn default() -> HelperHandle {
        HelperHandle::new()
    }
}

impl HelperHandle {
    /// Not announced yet, and the main thread is outside of the library.
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

    /// The main thread enters the library; waits while the helper works. Once for each `leave`, and
    /// not again before it.
    #[inline(always)]
    pub fn enter(&self) {
        self.handover.go_in();
    }

    /// The main thread leaves the library. If something is outstanding, as `wanted` says, and the helper is
    /// not announced, the main thread announces it at `place` and looks for it.
    #[inline(always)]
    pub fn leave(&self, place: &dyn Sleep, wanted: impl Fn() -> bool, look: impl FnMut() -> bool) {
        let now = wanted();
        self.wanted.store(now, Ordering::Relaxed);
        if self.go_out() != now {
            self.announce(place, wanted, look);
        }
    }

    /// Whether the helper is announced.
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
            // It may have been there.
            let now = wanted();
            self.wanted.store(now, Ordering::Relaxed);
            if !now {
                self.take_back(place);
            }
            // The helper may be turned away by this, too.
            if self.go_out() == now {
                return;
            }
        }
    }

    /// The main thread, inside, is about to wait: it moves everything on itself, and nobody need ring.
    #[inline]
    pub fn stand_down(&self, place: &dyn Sleep) {
        if self.announced.load(Ordering::Relaxed) {
            self.take_back(place);
        }
    }

    /// In a signal handler on the main thread: does `look`, unless that is inside, or the helper works. True of
    /// `look`: there is more than it can do.
    ///
    /// If it has interrupted the library, the main thread will announce the helper when it leaves.
    pub fn interrupt(&self, place: &dyn Sleep, look: impl FnOnce() -> bool) {
        if self.handover.is_inside() {
            return self.take_back(place);
        }
        // A helper that is in looks until nothing moves.
        let more = self.handover.try_to_go_in() && look();
        // It may have been turned away.
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

    /// The helper's life at `place`, until [`HelperHandle::stop`]. `work` moves on what it can and says
    /// whether anything moved: then it is called again before the helper sleeps.
    pub fn run(&self, place: &dyn Sleep, work: impl FnMut() -> bool) {
        self.run_by(place, || HelperTurn::Work, work, || ());
    }

    /// The same; `turn` says, whenever the helper could work, whether it shall `signal` instead. It is
    /// called while the main thread is kept out.
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
            // The main thread has announced us.
            place.disarm();
        }
        token
    }

    /// The main thread is inside, or nothing is outstanding: it will announce the helper when it leaves
    /// with something.
    fn stand_back(&self, place: &dyn Sleep, token: Token) {
        self.take_back(place);
        self.handover.heavy_fence();
        let due = !self.handover.is_inside() && self.wanted.load(Ordering::Relaxed);
        // A ring of whoever ends the helper is one since `token`.
        if !due && !self.over.load(Ordering::Acquire) {
            self.sleep_unannounced(place, token);
        }
        self.take_back(place);
    }

    /// Sleeps until somebody rings for it, or the main thread has announced it: an adapter that was armed before
    /// raises its event all the same, and to arm it again would raise the next.
    fn sleep_unannounced(&self, place: &dyn Sleep, token: Token) {
        loop {
            place.sleep(token, Duration::MAX);
            if self.announced.load(Ordering::Acquire) || place.may_have_rung(token) {
                return;
            }
        }
    }

    /// The same life where a lock protects the library: `alone` runs its argument under it. `wanted` says
    /// whether anything is outstanding.
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
                // Who ends the helper may hold the lock, and this one may have waited for it; its ring may
                // have come before `token`, and nobody rings again.
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

    /// A thread of the program is about to give the lock up: it announces the helper at `place` if
    /// something is outstanding, and looks for it.
    #[inline]
    pub fn leave_locked(&self, place: &dyn Sleep, wanted: bool, mut look: impl FnMut() -> bool) {
        if wanted && !self.announced.swap(true, Ordering::AcqRel) {
            place.arm();
            look_well(place, &mut look);
        }
    }

    /// Ends the helper, from any other thread: it works no more once its thread has been joined.
    pub fn stop(&self, place: &dyn Sleep) {
        self.over.store(true, Ordering::Release);
        place.ring();
    }

    /// How often it worked, was refused and signalled so far; read without a lock, so that they may
    /// be of different moments.
    pub fn counts(&self) -> HelperCounts {
        HelperCounts {
            rounds: self.rounds.load(Ordering::Relaxed),
            refusals: self.refusals.load(Ordering::Relaxed),
            signals: self.signals.load(Ordering::Relaxed),
        }
    }
}

/// What a helper does when it has given the lock up.
enum Then {
    /// Something moved: it looks again.
    Again,
    /// Nothing moved: it sleeps, announced.
    Sleeps,
    /// Nothing is outstanding: it sleeps, not announced.
    Rests,
    Ends,
}

/// Looks until nothing moves any more, or else leaves the rest to the helper at `place`.
fn look_well(place: &dyn Sleep, look: &mut impl FnMut() -> bool) {
    const LOOKS: usize = 16;
    if (0..LOOKS).all(|_| look()) {
        place.ring();
    }
}

/// Only the helper counts.
fn count(of: &AtomicU64) {
    of.store(of.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

#[cfg(all(test, not(loom)))]
mod tests;

#[cfg(all(test, loom))]
mod models;
