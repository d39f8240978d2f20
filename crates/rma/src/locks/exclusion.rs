//! Exclusion of accumulates if processors see the memory. An operation takes the exclusion once, or not at all for a single word.
//!
//! ```text
//!   single   one element that is a word:  announce ── no holder? ── the processor updates the word atomically ── recall
//!   whole    anything else:               hold ── no announcement? ── read, reduce, write ── give back
//!
//!   the target's line    | holder | first to wait | bits of origins that have ever announced |
//!   each origin's line   | target + 1 while the origin updates a single element of that target |
//! ```
//! Contract.
//! - While a rank holds the exclusion, no other rank changes elements of that target, and no rank that keeps this contract reads a
//!   half-written update. Single updates do not take the exclusion, because the processor makes them atomic.
//! - An origin announces and then looks for a holder. A holder takes the exclusion and then looks for announcements. All these
//!   accesses are sequentially consistent. So if a single update and a whole update meet, at least one of them sees the other. A
//!   single update that sees a holder gives way. A whole update that sees an announcement waits. The bit of an origin is set before
//!   its first announcement, so a holder need not look at the line of an origin whose bit is not set.
//! - An origin that finds a holder sleeps in the queue of the target's guard ([`super::ticket_lock`]). The first waiter of the
//!   queue writes its rank next to the holder's word. The holder reads this rank after it has given the exclusion back, and rings
//!   the first waiter. Other origins may take the exclusion in between, because a waiter that sleeps or is descheduled must not
//!   hold up running origins. Once the first waiter has tried [`PATIENCE`] times, no other origin may take the exclusion before it.
//!
//! Cost: in addition to the update itself, a single update needs an exchange on its own line, and reads of other lines. A whole
//! update needs a compare-and-swap and an exchange on the target's line. A process that is descheduled during a single update
//! delays only whole updates. A holder that is descheduled delays all updates, so a holder must not wait for any event.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Release, SeqCst};

/// A word that all origins see: an atomic of the processor or, in tests, of the model checker. Accesses are sequentially
/// consistent, unless the method's name says otherwise.
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
// The model checker implements sequential consistency only for fences, so each write is followed by a fence.
#[cfg(loom)]
word!(loom::sync::atomic::AtomicU64, loom::sync::atomic::fence(SeqCst));

/// Number of words of the target's line.
pub const WORDS: usize = 8;
const HOLDER: usize = 0;
const FIRST: usize = 1;
const BITS: usize = 2;
/// Number of bits for origins. If there are more origins, they share bits.
const ORIGINS: usize = 64 * (WORDS - BITS);

/// Flag of the first waiter. If it is set, other origins may not take the exclusion before this waiter.
const PRESSING: u64 = 1 << 32;
/// Number of tries after which the first waiter sets `PRESSING`.
pub const PATIENCE: usize = 64;

/// The exclusion of one target, as one origin uses it.
pub struct TargetExclusion<'w, W> {
    /// The line of [`WORDS`] words of the target.
    pub line: &'w [W],
    pub target: usize,
    pub me: usize,
}

impl<W: LockWord> TargetExclusion<'_, W> {
    fn mark(&self) -> u64 {
        self.me as u64 + 1
    }

    /// Notes that this origin makes announcements. One call per target is enough.
    pub fn register(&self) {
        let bit = self.me % ORIGINS;
        self.line[BITS + bit / 64].add_bits(1 << (bit % 64));
    }

    /// Announces a single update in this origin's own line. Returns false if there is a holder. Then the caller must recall the
    /// announcement without doing the update.
    #[inline(always)]
    pub fn announce(&self, own: &W) -> bool {
        own.exchange(self.target as u64 + 1);
        self.line[HOLDER].now() == 0
    }

    /// Recalls the announcement. Returns the rank of the holder, if there is a holder. The caller must ring this rank, because the
    /// holder may sleep until the update has ended. A rank that becomes the holder after this call needs no ring, because it still
    /// polls the announcements.
    #[inline(always)]
    pub fn recall(&self, own: &W) -> Option<usize> {
        own.clear_released();
        rank(self.line[HOLDER].now())
    }

    /// Takes the exclusion, unless it is held or the first waiter has set `PRESSING`.
    #[inline(always)]
    pub fn hold(&self) -> bool {
        self.line[FIRST].now() & PRESSING == 0 && self.take()
    }

    #[inline(always)]
    fn take(&self) -> bool {
        self.line[HOLDER].replace(0, self.mark())
    }

    /// Notes that this origin is the first waiter. The origin must hold the guard.
    pub fn come_first(&self) {
        self.line[FIRST].exchange(self.mark());
    }

    /// Takes the exclusion as the first waiter, after `tried` tries.
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

    /// Notes that this origin is no longer the first waiter.
    pub fn leave(&self) {
        self.line[FIRST].clear_released();
    }

    /// Returns true if one of `origins` has announced an update of this target. `own` returns an origin's line.
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

    /// Gives the exclusion back. Returns the rank of the first waiter, which the caller must ring.
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

    /// Repeats under the exclusion a single update that found a holder.
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

    /// Tries a single update without waiting. Returns true if the update was done.
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

    /// Tries a whole update without waiting. Returns true if the update was done.
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
                // If a wake-up is lost, the waiter stays parked for ever, and the checker reports this.
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
