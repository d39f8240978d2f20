//! A helper thread: asleep in the kernel, woken by solicited messages, at work while the main thread
//! is outside the library.
//!
//! Contract. The helper sleeps at a place of its own, [`crate::Fabric::helper`]; peers ring there only
//! while it is announced ([`Sleep::arm`]). It works only by the [`Handover`]. What is solicited while
//! the main thread is inside is the main thread's own business until it leaves:
//!
//! ```text
//!   helper                                main thread
//!   announce                              enter ... poll ... leave:
//!   main inside ?                           inside = 0
//!     no:  work; nothing moved: sleep       light fence
//!     yes: announcement back                refused ?
//!          refused = 1                        enter; take `refused` back:
//!          heavy fence                        announce for the helper, look once, leave
//!          main inside ? sleep, unannounced
//!          take `refused` back
//! ```
//! So a main thread that stays inside is not disturbed twice, peers ring for nobody, and a main thread
//! that leaves pays one look, no system call. Nothing is lost: what came before the announcement is
//! seen by the look that follows it, what comes after rings. `refused` is taken back by exactly one
//! side: if by the main thread, the announcement that it made is the helper's.

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
pub struct Helper {
    handover: Handover,
    /// The helper sleeps unannounced: the main thread announces it when it leaves.
    refused: AtomicBool,
    over: AtomicBool,
    rounds: AtomicU64,
    refusals: AtomicU64,
}

/// What a helper has done so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HelperCounts {
    /// Times that it worked.
    pub rounds: u64,
    /// Times that it found the main thread inside.
    pub refusals: u64,
}

impl Default for Helper {
    fn default() -> Helper {
        Helper::new()
    }
}

impl Helper {
    pub fn new() -> Helper {
        Helper {
            handover: Handover::new(),
            refused: AtomicBool::new(false),
            over: AtomicBool::new(false),
            rounds: AtomicU64::new(0),
            refusals: AtomicU64::new(0),
        }
    }

    // ---- the main thread ----------------------------------------------------------------------

    /// The main thread enters the library; waits while the helper works. Once for each `leave`, and
    /// not again before it.
    #[inline(always)]
    pub fn enter(&self) {
        self.handover.go_in();
    }

    /// The main thread leaves the library. If the helper was turned away meanwhile, the main thread
    /// announces it at `place` and looks for it.
    #[inline(always)]
    pub fn leave(&self, place: &dyn Sleep, look: impl FnMut() -> bool) {
        if self.go_out() {
            self.announce(place, look);
        }
    }

    /// True if the helper was turned away.
    #[inline(always)]
    fn go_out(&self) -> bool {
        self.handover.go_out();
        self.handover.light_fence();
        self.refused.load(Ordering::Relaxed)
    }

    #[cold]
    fn announce(&self, place: &dyn Sleep, mut look: impl FnMut() -> bool) {
        // The helper may be turned away by this, too: if it has taken `refused` back first.
        loop {
            self.handover.go_in();
            if self.refused.swap(false, Ordering::AcqRel) {
                place.arm();
                if look() {
                    // There may be more.
                    place.ring();
                }
            }
            if !self.go_out() {
                return;
            }
        }
    }

    // ---- the helper ---------------------------------------------------------------------------

    /// The helper's life at `place`, until [`Helper::stop`]. `work` moves on what it can and says
    /// whether anything moved: then it is called again before the helper sleeps.
    pub fn run(&self, place: &dyn Sleep, mut work: impl FnMut() -> bool) {
        let mut token = place.arm();
        while !self.over.load(Ordering::Acquire) {
            if let Some(help) = self.handover.help() {
                count(&self.rounds);
                let moved = work();
                drop(help);
                if !moved {
                    place.sleep(token, Duration::MAX);
                }
                place.disarm();
            } else {
                count(&self.refusals);
                self.stand_back(place, token);
            }
            token = place.arm();
        }
        place.disarm();
    }

    /// The main thread is inside: it will announce the helper when it leaves.
    fn stand_back(&self, place: &dyn Sleep, token: Token) {
        place.disarm();
        self.refused.store(true, Ordering::Release);
        self.handover.heavy_fence();
        // A ring of whoever ends the helper is one since `token`.
        if self.handover.is_inside() && !self.over.load(Ordering::Acquire) {
            place.sleep(token, Duration::MAX);
        }
        if !self.refused.swap(false, Ordering::AcqRel) {
            // The main thread has announced us, or is about to.
            place.disarm();
        }
    }

    /// The same life where a lock protects the library: `alone` runs its argument under it.
    pub fn run_locked(
        &self,
        place: &dyn Sleep,
        alone: impl Fn(&mut dyn FnMut()),
        mut work: impl FnMut() -> bool,
    ) {
        while !self.over.load(Ordering::Acquire) {
            let token = place.arm();
            let mut moved = false;
            alone(&mut || {
                // Who ends the helper may hold the lock, and this one may have waited for it.
                if !self.over.load(Ordering::Acquire) {
                    count(&self.rounds);
                    moved = work();
                }
            });
            if !moved {
                place.sleep(token, Duration::MAX);
            }
            place.disarm();
        }
    }

    /// Ends the helper, from any other thread: it works no more once its thread has been joined.
    pub fn stop(&self, place: &dyn Sleep) {
        self.over.store(true, Ordering::Release);
        place.ring();
    }

    pub fn counts(&self) -> HelperCounts {
        HelperCounts {
            rounds: self.rounds.load(Ordering::Relaxed),
            refusals: self.refusals.load(Ordering::Relaxed),
        }
    }
}

/// Only the helper counts.
fn count(of: &AtomicU64) {
    of.store(of.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::super::Doorbell;
    use super::*;
    use std::sync::Arc;
    use std::sync::mpsc;

    struct All {
        helper: Helper,
        place: Doorbell,
        messages: AtomicU64,
        seen: AtomicU64,
    }

    impl All {
        fn new() -> Arc<All> {
            let zero = || AtomicU64::new(0);
            let (helper, place) = (Helper::new(), Doorbell::new());
            Arc::new(All { helper, place, messages: zero(), seen: zero() })
        }

        fn send(&self) {
            self.messages.fetch_add(1, Ordering::Release);
            self.place.wake();
        }

        /// Takes what has arrived; called by one side at a time.
        fn look(&self) -> bool {
            let seen = self.seen.load(Ordering::Relaxed);
            let sent = self.messages.load(Ordering::Acquire);
            self.seen.store(sent, Ordering::Relaxed);
            sent != seen
        }
    }

    fn helped(all: &Arc<All>, told: Option<mpsc::Sender<u64>>) -> std::thread::JoinHandle<()> {
        let all = all.clone();
        std::thread::spawn(move || {
            let work = || {
                let moved = all.look();
                if let (true, Some(told)) = (moved, &told) {
                    told.send(all.seen.load(Ordering::Relaxed)).unwrap();
                }
                moved
            };
            all.helper.run(&all.place, work);
        })
    }

    #[test]
    fn messages_are_seen_while_the_main_thread_is_outside() {
        let all = All::new();
        let (tell, told) = mpsc::channel();
        let thread = helped(&all, Some(tell));
        for i in 1..=if cfg!(miri) { 5 } else { 1000 } {
            all.send();
            assert_eq!(told.recv().unwrap(), i);
        }
        all.helper.stop(&all.place);
        thread.join().unwrap();
    }

    #[test]
    fn messages_are_seen_by_who_leaves_or_by_the_helper() {
        let all = All::new();
        let thread = helped(&all, None);
        for i in 1..=if cfg!(miri) { 20 } else { 20_000u64 } {
            all.helper.enter();
            if i % 3 != 0 {
                all.send();
            }
            if i % 7 == 0 {
                std::thread::yield_now();
            }
            all.helper.leave(&all.place, || all.look());
            if i % 3 == 0 {
                all.send();
            }
            while all.seen.load(Ordering::Relaxed) < i {
                std::thread::yield_now();
            }
        }
        all.helper.stop(&all.place);
        thread.join().unwrap();
        // Nobody is announced any more.
        let before = all.place.arm();
        all.place.disarm();
        all.place.wake();
        assert_eq!(all.place.arm(), before);
    }

    #[test]
    fn who_is_turned_away_once_is_not_rung_for_again() {
        let all = All::new();
        all.helper.enter();
        let thread = helped(&all, None);
        while !all.helper.refused.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
        for _ in 0..100 {
            all.send();
        }
        assert_eq!(all.helper.counts(), HelperCounts { rounds: 0, refusals: 1 });
        all.helper.leave(&all.place, || all.look());
        assert_eq!(all.seen.load(Ordering::Relaxed), 100);
        all.helper.stop(&all.place);
        thread.join().unwrap();
    }

    #[test]
    fn a_lock_takes_the_place_of_the_hand_over() {
        let all = All::new();
        let lock = Arc::new(std::sync::Mutex::new(()));
        let thread = {
            let (all, lock) = (all.clone(), lock.clone());
            std::thread::spawn(move || {
                let alone = |work: &mut dyn FnMut()| {
                    let _held = lock.lock().unwrap();
                    work();
                };
                all.helper.run_locked(&all.place, alone, || all.look());
            })
        };
        for i in 1..=if cfg!(miri) { 5 } else { 1000 } {
            let held = lock.lock().unwrap();
            all.send();
            drop(held);
            while all.seen.load(Ordering::Relaxed) < i {
                std::thread::yield_now();
            }
        }
        all.helper.stop(&all.place);
        thread.join().unwrap();
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::super::Doorbell;
    use super::*;
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;
    use loom::sync::atomic::AtomicU32;

    /// What the model's threads share: `seen` is the library's state, `messages` the network's.
    struct All {
        helper: Helper,
        place: Doorbell,
        messages: AtomicU32,
        seen: UnsafeCell<u32>,
    }

    impl All {
        fn new() -> Arc<All> {
            let (helper, place) = (Helper::new(), Doorbell::new());
            let (messages, seen) = (AtomicU32::new(0), UnsafeCell::new(0));
            Arc::new(All { helper, place, messages, seen })
        }

        /// Touches what only one side may touch at a time; true once the message is there.
        fn look(&self) -> bool {
            let sent = self.messages.load(Ordering::Acquire);
            // SAFETY: exclusive by the hand-over, which the checker checks.
            self.seen.with_mut(|seen| unsafe { *seen = sent });
            sent == 1
        }
    }

    /// A peer sends while the main thread goes in and out. Whoever sees the message ends the helper;
    /// if nobody does, it sleeps for ever, and the checker reports a deadlock.
    #[test]
    fn loom_a_message_is_seen_by_the_main_thread_or_the_helper() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(|| {
            let all = All::new();
            let helper = {
                let all = all.clone();
                let work = {
                    let all = all.clone();
                    move || {
                        if all.look() {
                            all.helper.stop(&all.place);
                        }
                        // True would only add a round.
                        false
                    }
                };
                loom::thread::spawn(move || all.helper.run(&all.place, work))
            };
            let peer = {
                let all = all.clone();
                loom::thread::spawn(move || {
                    all.messages.fetch_add(1, Ordering::Release);
                    all.place.wake();
                })
            };
            all.helper.enter();
            let mut saw = false;
            let look = || {
                saw |= all.look();
                false
            };
            all.helper.leave(&all.place, look);
            if saw {
                all.helper.stop(&all.place);
            }
            peer.join().unwrap();
            helper.join().unwrap();
        });
    }
}
