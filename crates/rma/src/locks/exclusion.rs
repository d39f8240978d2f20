//! How accumulates exclude each other where processors see the memory: one exclusion an operation, or none for one word.
//!
//! ```text
//!   single   one element that is a word:  announce ── nobody holds? ── the processor updates it at once ── recall
//!   whole    anything else:               hold ── nobody has announced? ── read, reduce, write ── give back
//!
//!   the target's line    | holder | first to wait | bits of origins that have ever announced |
//!   each origin's line   | target + 1 while it is at a single element of that target |
//! ```
//! Contract.
//! - While a rank holds, nobody else changes elements of that target, and nobody who keeps to this reads half of what it
//!   writes. Singles do not exclude each other: the processor does.
//! - Who announces looks for a holder afterwards, who holds looks for announcements afterwards, all sequentially
//!   consistent, so that one of two who meet sees the other: the single one gives way, the whole one waits. The bit of an
//!   origin is set before its first announcement, so who sees no bit need not look at that origin's line.
//! - Who finds a holder waits in the queue of the target's guard ([`super::ticket_lock`]), asleep. The first of the queue says so
//!   beside the holder, who looks there after giving back, and rings it. Others may take the exclusion in between, since a
//!   waiter that sleeps or is off its processor must not hold up those that run; but not once the first has
//!   tried [`PATIENCE`] times.
//!
//! Cost: a single one has an exchange of its own line more than the update itself, and lines that are only read; a whole
//! one a compare-and-swap and an exchange of the target's line. A process that is descheduled at a single element holds up
//! whole ones alone; one that holds, all others, for as long as it takes to reduce: none of them may wait for anything then.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Release, SeqCst};

/// A word that all origins see: of the processor, or of the model checker. Sequentially consistent, unless its name says
/// otherwise.
pub trait LockWord {
    fn now(&self) -> u64;
    fn clear_released(&self);
    fn exchange(&self, new: u64);
    fn add_bits(&self, bits: u64);
    fn replace(&self, old: u64, new: u64) -> bool;
}

macro_rules! word {
    ($atomic:ty $(, $ordered:expr)?) => {
        impl LockWord for $atomic {
            #[inline(always)]
            fn now(&self) -> u64 {
                self.load(SeqCst)
            }
            #[inline(always)]
            fn clear_released(&self) {
                self.store(0, Release);
            }
            #[inline(always)]
            fn exchange(&self, new: u64) {
                self.swap(new, SeqCst);
                $($ordered;)?
            }
            fn add_bits(&self, bits: u64) {
                self.fetch_or(bits, SeqCst);
                $($ordered;)?
            }
            #[inline(always)]
            fn replace(&self, old: u64, new: u64) -> bool {
                let replaced = self.compare_exchange(old, new, SeqCst, SeqCst).is_ok();
                $($ordered;)?
                replaced
            }
        }
    };
}
word!(AtomicU64);
// The model checker takes sequential consistency from fences alone: what follows a write comes after it.
#[cfg(loom)]
word!(loom::sync::atomic::AtomicU64, loom::sync::atomic::fence(SeqCst));

/// Words of the target's line.
pub const WORDS: usize = 8;
const HOLDER: usize = 0;
const FIRST: usize = 1;
const BITS: usize = 2;
/// Origins share a bit where there are more of them than bits.
const ORIGINS: usize = 64 * (WORDS - BITS);

/// Of the first to wait: others no longer come between.
const PRESSING: u64 = 1 << 32;
/// How often it tries before.
pub const PATIENCE: usize = 64;

/// The exclusion of one target, for one origin.
pub struct TargetExclusion<'w, W> {
    /// The target's [`WORDS`].
    pub line: &'w [W],
    pub target: usize,
    pub me: usize,
}

impl<W: LockWord> TargetExclusion<'_, W> {
    fn mark(&self) -> u64 {
        self.me as u64 + 1
    }

    /// Says that this origin will announce. Once is enough.
    pub fn register(&self) {
        let bit = self.me % ORIGINS;
        self.line[BITS + bit / 64].add_bits(1 << (bit % 64));
    }

    /// Announces a single update by this origin's own line. False: somebody holds; it is to be recalled, and not done.
    #[inline(always)]
    pub fn announce(&self, own: &W) -> bool {
        own.exchange(self.target as u64 + 1);
        self.line[HOLDER].now() == 0
    }

    /// The update is done. Who is to be rung: a holder that may wait for it. It may be missed by a hair's breadth; then
    /// that one is still looking.
    #[inline(always)]
    pub fn recall(&self, own: &W) -> Option<usize> {
        own.clear_released();
        rank(self.line[HOLDER].now())
    }

    /// Takes the exclusion, if nobody has it or presses for it.
    #[inline(always)]
    pub fn hold(&self) -> bool {
        self.line[FIRST].now() & PRESSING == 0 && self.take()
    }

    #[inline(always)]
    fn take(&self) -> bool {
        self.line[HOLDER].replace(0, self.mark())
    }

    /// This origin is the first to wait; the guard is held.
    pub fn come_first(&self) {
        self.line[FIRST].exchange(self.mark());
    }

    /// Takes the exclusion as the first to wait, who has tried so often before.
    pub fn hold_first(&self, tried: usize) -> bool {
        if self.take() {
            self.line[FIRST].clear_released();
            return true;
        }
        if tried == PATIENCE {
            self.line[FIRST].exchange(self.mark() | PRESSING);
            return self.hold_first(tried + 1);
        }
        false
    }

    /// The first to wait gives up.
    pub fn leave(&self) {
        self.line[FIRST].clear_released();
    }

    /// Whether one of `origins` has announced an update of this target; `own` finds an origin's line.
    #[inline(always)]
    pub fn is_announced<'o>(&self, origins: usize, own: impl Fn(usize) -> Option<&'o W>) -> bool
    where
        W: 'o,
    {
        let mark = self.target as u64 + 1;
        let at_it = |origin| own(origin).is_some_and(|own| own.now() == mark);
        for (word, bits) in self.line[BITS..].iter().enumerate().take(origins.div_ceil(64)) {
            let mut left = bits.now();
            while left != 0 {
                let first = 64 * word + left.trailing_zeros() as usize;
                if (first..origins).step_by(ORIGINS).any(at_it) {
                    return true;
                }
                left &= left - 1;
            }
        }
        false
    }

    /// Gives the exclusion back. Who is to be rung: the first to wait.
    #[inline(always)]
    pub fn give_back(&self) -> Option<usize> {
        self.line[HOLDER].exchange(0);
        rank(self.line[FIRST].now() & !PRESSING)
    }
}

fn rank(mark: u64) -> Option<usize> {
    mark.checked_sub(1).map(|rank| rank as usize)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    fn line() -> Vec<AtomicU64> {
        (0..WORDS).map(|_| AtomicU64::new(0)).collect()
    }

    #[test]
    fn every_origin_is_looked_at_once_it_is_registered() {
        let ranks = 2 * ORIGINS + 5;
        for me in [0, 63, 64, ORIGINS - 1, ORIGINS, ranks - 1] {
            let line = line();
            let one = TargetExclusion { line: &line, target: 7, me };
            let own: Vec<_> = (0..ranks).map(|_| AtomicU64::new(0)).collect();
            let find = |rank: usize| own.get(rank);
            own[me].store(8, SeqCst);
            assert!(!one.is_announced(ranks, find), "not registered");
            one.register();
            assert!(one.is_announced(ranks, find), "{me}");
            own[me].store(7, SeqCst);
            assert!(!one.is_announced(ranks, find), "of another target");
        }
    }

    #[test]
    fn the_first_to_wait_is_rung_and_in_the_end_preferred() {
        let line = line();
        let [a, b, c] = [0, 1, 2].map(|me| TargetExclusion { line: &line, target: 0, me });
        assert!(a.hold() && !b.hold());
        b.come_first();
        assert!(!b.hold_first(0));
        assert_eq!(a.give_back(), Some(1));
        assert!(c.hold(), "others come between");
        assert!(!b.hold_first(PATIENCE));
        assert_eq!(c.give_back(), Some(1));
        assert!(!c.hold(), "but not for ever");
        assert!(b.hold_first(PATIENCE + 1));
        assert_eq!(b.give_back(), None);
        assert!(c.hold());
    }

    #[test]
    fn a_single_update_gives_way_to_a_holder() {
        let (line, own) = (line(), AtomicU64::new(0));
        let [a, b] = [0, 1].map(|me| TargetExclusion { line: &line, target: 0, me });
        a.register();
        assert!(a.announce(&own) && b.hold() && b.is_announced(2, |_| Some(&own)));
        assert_eq!(a.recall(&own), Some(1));
        assert!(!b.is_announced(2, |_| Some(&own)) && !a.announce(&own));
        assert_eq!((a.recall(&own), b.give_back()), (Some(1), None));
        assert!(a.announce(&own) && a.recall(&own).is_none());
    }
}

#[cfg(all(test, loom))]
mod loom_models {
    use super::*;
    use loom::sync::Arc;
    use loom::sync::atomic::AtomicU64;
    use loom::sync::atomic::Ordering::Relaxed;
    use loom::thread;

    struct Shared {
        line: Vec<AtomicU64>,
        own: Vec<AtomicU64>,
        elements: [AtomicU64; 2],
    }

    fn shared(ranks: usize) -> Arc<Shared> {
        let word = |_| AtomicU64::new(0);
        let (line, own) = ((0..WORDS).map(word).collect(), (0..ranks).map(word).collect());
        Arc::new(Shared { line, own, elements: [word(0), word(0)] })
    }

    /// Adds one to every element, as a vectorised reduction does: reads, then writes.
    fn reduce(shared: &Shared) {
        let [a, b] = &shared.elements;
        let (x, y) = (a.load(Relaxed), b.load(Relaxed));
        a.store(x + 1, Relaxed);
        b.store(y + 1, Relaxed);
    }

    fn whole(shared: &Shared, me: usize) {
        let one = TargetExclusion { line: &shared.line, target: 0, me };
        while !one.hold() {
            thread::yield_now();
        }
        while one.is_announced(shared.own.len(), |rank| shared.own.get(rank)) {
            thread::yield_now();
        }
        reduce(shared);
        one.give_back();
    }

    fn single(shared: &Shared, me: usize) {
        let one = TargetExclusion { line: &shared.line, target: 0, me };
        one.register();
        if one.announce(&shared.own[me]) {
            shared.elements[0].fetch_add(1, Relaxed);
            one.recall(&shared.own[me]);
        } else {
            one.recall(&shared.own[me]);
            whole_of_one(shared, one);
        }
    }

    /// What a single update does that found a holder.
    fn whole_of_one(shared: &Shared, one: TargetExclusion<'_, AtomicU64>) {
        while !one.hold() {
            thread::yield_now();
        }
        while one.is_announced(shared.own.len(), |rank| shared.own.get(rank)) {
            thread::yield_now();
        }
        let was = shared.elements[0].load(Relaxed);
        shared.elements[0].store(was + 1, Relaxed);
        one.give_back();
    }

    #[test]
    fn loom_no_update_is_lost_between_a_single_and_a_whole_one() {
        loom::model(|| {
            let shared = shared(2);
            let other = shared.clone();
            let thread = thread::spawn(move || single(&other, 1));
            whole(&shared, 0);
            thread.join().unwrap();
            let [a, b] = &shared.elements;
            assert_eq!((a.load(Relaxed), b.load(Relaxed)), (2, 1));
        });
    }

    /// Without waiting: whether it was done.
    fn try_single(shared: &Shared, me: usize) -> bool {
        let one = TargetExclusion { line: &shared.line, target: 0, me };
        one.register();
        let free = one.announce(&shared.own[me]);
        if free {
            shared.elements[0].fetch_add(1, Relaxed);
        }
        one.recall(&shared.own[me]);
        free
    }

    /// The same.
    fn try_whole(shared: &Shared, me: usize) -> bool {
        let one = TargetExclusion { line: &shared.line, target: 0, me };
        if !one.hold() {
            return false;
        }
        let free = !one.is_announced(shared.own.len(), |rank| shared.own.get(rank));
        if free {
            reduce(shared);
        }
        one.give_back();
        free
    }

    #[test]
    fn loom_what_is_done_at_once_is_not_lost() {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(|| {
            let shared = shared(3);
            let others: [fn(&Shared, usize) -> bool; 2] = [try_single, try_whole];
            let threads: Vec<_> = (1..)
                .zip(others)
                .map(|(me, change)| {
                    let other = shared.clone();
                    thread::spawn(move || u64::from(change(&other, me)))
                })
                .collect();
            let mut wholes = u64::from(try_whole(&shared, 0));
            let done: Vec<u64> = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
            wholes += done[1];
            let [a, b] = &shared.elements;
            assert_eq!((a.load(Relaxed), b.load(Relaxed)), (wholes + done[0], wholes));
        });
    }

    #[test]
    fn loom_the_first_to_wait_is_woken() {
        loom::model(|| {
            let shared = shared(2);
            let other = shared.clone();
            let first = thread::spawn(move || {
                let one = TargetExclusion { line: &other.line, target: 0, me: 1 };
                one.come_first();
                // A wake that got lost leaves it parked for ever, which the checker reports.
                while !one.hold_first(0) {
                    thread::park();
                }
                reduce(&other);
                assert_eq!(one.give_back(), None);
            });
            let one = TargetExclusion { line: &shared.line, target: 0, me: 0 };
            if one.hold() {
                reduce(&shared);
                if one.give_back() == Some(1) {
                    first.thread().unpark();
                }
            }
            first.join().unwrap();
        });
    }
}
