//! A payload that one process copies into a staging buffer which another sees, and which follows: both copy at once.
//!
//! ```text
//!   memory:     head, one line: produced (8) | asked (8) | -        payload
//!   producer:   open;  tell the consumer where;  copy a part, produced = its end;  the next ...;   asked?  wake the consumer
//!   consumer:   copy up to produced;  nothing new for a while?  asked = 1, look once more, go and do something else
//! ```
//! Contract. One producer and one consumer. The head is reset before the consumer hears of it, and the memory used again
//! after the consumer is done. What is copied up to `produced` was written before `produced` was (release, acquire). The
//! last store of `produced` and the look at `asked`, and the store of `asked` and the last look at `produced`, have a
//! sequentially consistent fence in between on each side: so a consumer that finds something missing and goes away is
//! woken.
//!
//! Cost: a line that goes to and fro once a part, beside two copies at the same time. The consumer takes the lines to itself
//! when it has read them ([`crate::Lines::take_lines`]): of short payloads, whose memory is used again soon, and between far
//! caches.

use crate::lines::Lines;
use crate::{interleaved, staged};
use weft_fabric::{Copies, Sge};

#[cfg(loom)]
use loom::sync::atomic::{AtomicU64, Ordering, fence};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// Bytes of a head, which stands before the payload.
pub const HEAD: usize = 64;

/// Payloads up to here are short, in bytes, as first-level caches are: their memory is to be used again soon, while the
/// caches have it.
pub const SHORT: usize = 32 << 10;

/// Parts, in bytes: an eighth of a payload, within these.
const SHORTEST: usize = 2 << 10;
const LONGEST: usize = 16 << 10;

/// Bytes that a producer tells of at a time, of a payload of `len`.
pub fn part(len: usize) -> usize {
    part_within(len, LONGEST)
}

fn part_within(len: usize, longest: usize) -> usize {
    (len / 8).clamp(SHORTEST, longest).next_multiple_of(HEAD)
}

/// Fruitless looks of a consumer in a row: a part that is under way comes before that.
const LOOKS: u32 = 256;

/// Shared memory that is zeroed or has been used for anything.
#[repr(C, align(64))]
struct Head {
    produced: AtomicU64,
    asked: AtomicU64,
}

impl Head {
    fn reset(&self) {
        self.produced.store(0, Ordering::Relaxed);
        self.asked.store(0, Ordering::Relaxed);
    }

    fn publish(&self, produced: u64) {
        self.produced.store(produced, Ordering::Release);
    }

    /// Nothing more will be published. True: the consumer is to be woken.
    fn end(&self) -> bool {
        fence(Ordering::SeqCst);
        self.asked.load(Ordering::Relaxed) != 0
    }

    fn seen(&self) -> u64 {
        self.produced.load(Ordering::Acquire)
    }

    /// The consumer goes away unless `seen` says now that it need not.
    fn ask(&self) -> u64 {
        self.asked.store(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        self.seen()
    }
}

/// What a consumer has found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consumed {
    /// All of it.
    Whole,
    /// So many bytes so far; its producer will wake this process.
    Part(usize),
    /// More than there can be.
    Corrupt,
}

/// A head and a payload.
#[derive(Clone, Copy)]
pub struct Pipelined<'m> {
    head: &'m Head,
    payload: Sge,
}

impl Pipelined<'_> {
    /// In `memory` that both see, [`HEAD`] bytes longer than the payload. `None`: it is no
    /// memory, too short, or does not begin with a cache line.
    pub fn at(memory: &Sge) -> Option<Pipelined<'_>> {
        let aligned = memory.ptr().addr().is_multiple_of(align_of::<Head>());
        if memory.is_phantom() || memory.len() < HEAD || !aligned {
            return None;
        }
        // SAFETY: aligned and inside of memory that was promised to be valid; by contract, the two processes reach
        // these words by atomics alone while they are a head.
        let head = unsafe { &*memory.ptr().cast::<Head>() };
        Some(Pipelined { head, payload: memory.part(HEAD, memory.len() - HEAD) })
    }

    /// Before the consumer hears of it.
    pub fn open(&self) {
        self.head.reset();
    }

    /// Copies `source`, as long as the payload, for the consumer. True: that is to be woken.
    pub fn produce(&self, source: Sge, copies: &Copies) -> bool {
        let len = source.len();
        let past = copies.is_told_past(len);
        let rest_past = past || copies.is_past_for_one(len);
        // What is far is read many pages at once.
        let longest = if copies.interleaves() { interleaved::MOST } else { LONGEST };
        let part = part_within(len, longest);
        let mut at = 0;
        while at < len {
            let next = part.min(len - at);
            let (to, from) = (self.payload.part(at, next), source.part(at, next));
            match at {
                0 => staged::write(copies, to, from, past),
                _ => to.copy_for_others(from, rest_past, copies),
            }
            at += next;
            self.head.publish(at as u64);
        }
        self.head.end()
    }

    /// Copies what is there behind the first `from` bytes into `into`, as long as the payload or shorter, and for a
    /// while what comes.
    pub fn consume(&self, from: usize, into: Sge, copies: &Copies) -> Consumed {
        let (mut at, total) = (from, into.len());
        let soon = self.payload.len() <= SHORT;
        let mut looks = 0;
        while at < total {
            let mut seen = self.head.seen() as usize;
            if seen <= at && looks == LOOKS {
                seen = self.head.ask() as usize;
                if seen <= at {
                    return Consumed::Part(at);
                }
            }
            if seen <= at {
                looks += 1;
                std::hint::spin_loop();
                continue;
            }
            if seen > self.payload.len() {
                return Consumed::Corrupt;
            }
            let next = seen.min(total) - at;
            let (into, found) = (into.part(at, next), self.payload.part(at, next));
            match at {
                0 => staged::read(copies, into, found, soon),
                _ => staged::read_more(copies, into, found, soon),
            }
            at += next;
            looks = 0;
        }
        Consumed::Whole
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::Arc;
    use weft_fabric::CopyModel;

    fn copies() -> Copies {
        Copies::new(Arc::new(CopyModel::GENERIC))
    }

    fn filled(len: usize, seed: u8) -> Vec<u8> {
        (0..len).map(|i| (i as u8).wrapping_mul(31) ^ seed).collect()
    }

    fn lines(len: usize) -> Vec<u128> {
        // A line more than needed, to begin with one.
        vec![!0; (len + HEAD) / 16 + 8]
    }

    fn memory(of: &mut [u128], len: usize) -> Sge {
        let first = of.as_mut_ptr().cast::<u8>();
        // SAFETY: inside of `of`, which outlives what is made of it here.
        unsafe { Sge::new(first.add(first.align_offset(HEAD)), HEAD + len) }
    }

    fn sge(of: &mut [u8]) -> Sge {
        // SAFETY: `of` outlives it.
        unsafe { Sge::new(of.as_mut_ptr(), of.len()) }
    }

    /// What crosses threads here.
    struct Across(Sge);
    // SAFETY: the two sides keep the contract of a pipelined.
    unsafe impl Send for Across {}

    #[test]
    fn a_consumer_that_follows_gets_every_byte() {
        let lens =
            if cfg!(miri) { vec![1, 5000] } else { vec![1, 63, 64, 2048, 2049, 40_000, 300_000] };
        for len in lens {
            let mut room = lines(len);
            let memory = memory(&mut room, len);
            Pipelined::at(&memory).unwrap().open();
            let mut source = filled(len, len as u8);
            let (writer, data) = (Across(memory), Across(sge(&mut source)));
            std::thread::scope(|scope| {
                scope.spawn(move || {
                    let (writer, data) = (&writer, &data);
                    Pipelined::at(&writer.0).unwrap().produce(data.0, &copies());
                });
                let mut got = vec![0; len];
                let mut at = 0;
                loop {
                    match Pipelined::at(&memory).unwrap().consume(at, sge(&mut got), &copies()) {
                        Consumed::Whole => break,
                        Consumed::Part(so_far) => at = so_far,
                        Consumed::Corrupt => panic!("corrupt"),
                    }
                    std::thread::yield_now();
                }
                assert_eq!(got, filled(len, len as u8));
            });
        }
    }

    #[test]
    fn a_consumer_may_want_less_and_is_told_to_come_back() {
        let mut room = lines(10_000);
        let memory = memory(&mut room, 10_000);
        let pipelined = Pipelined::at(&memory).unwrap();
        pipelined.open();
        let (mut source, mut got) = (filled(10_000, 7), vec![0; 9_000]);
        assert_eq!(pipelined.consume(0, sge(&mut got), &copies()), Consumed::Part(0));
        assert!(pipelined.produce(sge(&mut source), &copies()), "somebody waits");
        assert!(pipelined.consume(0, sge(&mut got), &copies()) == Consumed::Whole);
        assert_eq!(got, filled(9_000, 7));
        pipelined.open();
        assert!(!pipelined.produce(sge(&mut source), &copies()), "nobody waits");
    }

    #[test]
    fn nonsense_is_found_out() {
        let mut room = lines(100);
        let memory = memory(&mut room, 100);
        let pipelined = Pipelined::at(&memory).unwrap();
        pipelined.head.publish(101);
        assert_eq!(pipelined.consume(0, sge(&mut [0; 100]), &copies()), Consumed::Corrupt);
        assert!(Pipelined::at(&memory.part(8, 100)).is_none());
        assert!(Pipelined::at(&memory.part(0, HEAD - 1)).is_none());
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use loom::sync::Arc;

    #[test]
    fn loom_who_goes_away_is_woken() {
        loom::model(|| {
            let head = Arc::new(Head { produced: AtomicU64::new(9), asked: AtomicU64::new(9) });
            head.reset();
            let writer = head.clone();
            let roused = loom::thread::spawn(move || {
                writer.publish(1);
                writer.publish(2);
                writer.end()
            });
            let there = head.seen() == 2 || head.ask() == 2;
            assert!(roused.join().unwrap() || there);
        });
    }
}
