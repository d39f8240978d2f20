//! A helper thread: asleep in the kernel, woken by solicited messages, at work while the main thread
//! is outside the library and something is outstanding.
//!
//! Contract. The helper sleeps at a place of its own, [`crate::Fabric::helper`]; peers ring there only
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
pub struct Helper {
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
pub enum Turn {
    /// It works itself.
    Work,
    /// It signals the main thread, which works in the handler.
    Signal,
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

    /// The helper's life at `place`, until [`Helper::stop`]. `work` moves on what it can and says
    /// whether anything moved: then it is called again before the helper sleeps.
    pub fn run(&self, place: &dyn Sleep, work: impl FnMut() -> bool) {
        self.run_by(place, || Turn::Work, work, || ());
    }

    /// The same; `turn` says, whenever the helper could work, whether it shall `signal` instead. It is
    /// called while the main thread is kept out.
    pub fn run_by(
        &self,
        place: &dyn Sleep,
        turn: impl Fn() -> Turn,
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
                Turn::Work => {
                    count(&self.rounds);
                    let moved = work();
                    drop(help);
                    moved
                }
                Turn::Signal => {
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
            let (mut moved, mut rests) = (false, false);
            alone(&mut || {
                // Who ends the helper may hold the lock, and this one may have waited for it.
                if self.over.load(Ordering::Acquire) {
                    return;
                }
                if wanted() {
                    count(&self.rounds);
                    moved = work();
                } else {
                    count(&self.refusals);
                    self.take_back(place);
                    rests = true;
                }
            });
            if rests {
                self.sleep_unannounced(place, token);
            } else if !moved {
                place.sleep(token, Duration::MAX);
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

    pub fn counts(&self) -> HelperCounts {
        HelperCounts {
            rounds: self.rounds.load(Ordering::Relaxed),
            refusals: self.refusals.load(Ordering::Relaxed),
            signals: self.signals.load(Ordering::Relaxed),
        }
    }
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

    impl All {
        /// Waits until the helper has stood back so many times, and sleeps.
        fn stands_back(&self, times: u64) {
            let back = || self.helper.counts().refusals >= times;
            while !back() || self.helper.announced.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
            std::thread::sleep(Duration::from_millis(20));
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
        all.helper.enter();
        all.helper.leave(&all.place, || true, || all.look());
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
            all.helper.leave(&all.place, || true, || all.look());
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
        all.stands_back(1);
        for _ in 0..100 {
            all.send();
        }
        assert_eq!(all.helper.counts(), HelperCounts { rounds: 0, refusals: 1, signals: 0 });
        all.helper.leave(&all.place, || true, || all.look());
        assert_eq!(all.seen.load(Ordering::Relaxed), 100);
        all.helper.stop(&all.place);
        thread.join().unwrap();
    }

    #[test]
    fn nobody_rings_while_nothing_is_outstanding() {
        let all = All::new();
        let thread = helped(&all, None);
        all.stands_back(1);
        let before = all.helper.counts();
        for wanted in [false, true, false] {
            all.helper.enter();
            all.helper.leave(&all.place, || wanted, || all.look());
        }
        for _ in 0..100 {
            all.send();
        }
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!((all.helper.counts(), all.seen.load(Ordering::Relaxed)), (before, 0));
        all.helper.enter();
        all.helper.leave(&all.place, || true, || all.look());
        assert_eq!(all.seen.load(Ordering::Relaxed), 100);
        all.helper.stop(&all.place);
        thread.join().unwrap();
    }

    #[test]
    fn the_main_thread_is_signalled_in_its_turn() {
        let all = All::new();
        let (tell, told) = mpsc::channel();
        let thread = {
            let all = all.clone();
            let signal = move || tell.send(()).unwrap();
            std::thread::spawn(move || {
                let never = || panic!("the helper works");
                all.helper.run_by(&all.place, || Turn::Signal, never, signal);
            })
        };
        all.stands_back(1);
        all.helper.enter();
        all.helper.leave(&all.place, || true, || all.look());
        all.send();
        told.recv().unwrap();
        assert_eq!(all.helper.counts().signals, 1);
        // The signal is late: the library is entered, and left again with the message unseen.
        all.helper.enter();
        all.helper.interrupt(&all.place, || panic!("inside"));
        all.helper.leave(&all.place, || true, || all.look());
        assert_eq!(all.seen.load(Ordering::Relaxed), 1);
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
                all.helper.run_locked(&all.place, alone, || true, || all.look());
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
    use loom::sync::atomic::AtomicU32;
    use loom::sync::{Arc, Condvar, Mutex};

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
        check(&[true], 3);
    }

    /// The same where the main thread first leaves with nothing outstanding.
    #[test]
    fn loom_a_helper_that_is_not_wanted_is_announced_when_it_is() {
        check(&[false, true], 2);
    }

    /// A peer sends, the helper signals, and the handler runs on the main thread: while it is outside, or late, when
    /// it has entered again. Whoever sees the message ends the helper.
    #[test]
    fn loom_a_message_is_seen_by_the_handler_or_by_who_leaves() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(2);
        model.check(|| {
            let all = All::new();
            let signalled = Arc::new((Mutex::new(false), Condvar::new()));
            let helper = {
                let (all, signalled) = (all.clone(), signalled.clone());
                let signal = move || {
                    *signalled.0.lock().unwrap() = true;
                    signalled.1.notify_one();
                };
                loom::thread::spawn(move || {
                    all.helper.run_by(&all.place, || Turn::Signal, || false, signal);
                })
            };
            let peer = {
                let all = all.clone();
                loom::thread::spawn(move || {
                    all.messages.fetch_add(1, Ordering::Release);
                    all.place.wake();
                })
            };
            let saw = std::cell::Cell::new(false);
            let look = || saw.set(saw.get() | all.look());
            let handler = || {
                all.helper.interrupt(&all.place, || {
                    look();
                    false
                })
            };
            all.helper.enter();
            // One that is late.
            if std::mem::replace(&mut *signalled.0.lock().unwrap(), false) {
                handler();
            }
            let left = || {
                look();
                false
            };
            all.helper.leave(&all.place, || true, left);
            while !saw.get() {
                let mut signal = signalled.0.lock().unwrap();
                while !*signal {
                    signal = signalled.1.wait(signal).unwrap();
                }
                *signal = false;
                drop(signal);
                handler();
            }
            all.helper.stop(&all.place);
            peer.join().unwrap();
            helper.join().unwrap();
        });
    }

    fn check(leaves: &'static [bool], preemptions: usize) {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(preemptions);
        model.check(move || {
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
            let mut saw = false;
            for &wanted in leaves {
                all.helper.enter();
                let look = || {
                    saw |= all.look();
                    false
                };
                all.helper.leave(&all.place, || wanted, look);
            }
            if saw {
                all.helper.stop(&all.place);
            }
            peer.join().unwrap();
            helper.join().unwrap();
        });
    }
}
