//! A payload that one process copies into a staging buffer while another process copies it out.
//!
//! ```text
//!   memory:     head, one line: produced (8) | asked (8) | -        payload
//!   producer:   open;  tell the consumer;  copy a part, produced = its end;  the next part ...;   asked?  wake the consumer
//!   consumer:   copy up to produced;  nothing new for a while?  asked = 1, look once more, go on with other work
//! ```
//! Contract. There is one producer and one consumer. The head is reset before the consumer learns of it, and the memory is reused
//! only after the consumer is done. Bytes up to `produced` were written before `produced` was (release, acquire). Each side has a
//! sequentially consistent fence: the producer between its last store of `produced` and its load of `asked`, the consumer between
//! its store of `asked` and its last load of `produced`. So a consumer that stops polling because a part is missing will be woken.
//!
//! Cost: in addition to two simultaneous copies, a line goes back and forth once for each part. In two cases the consumer takes the
//! lines for its processor after it has read them ([`crate::CacheLines::take_lines`]): for short payloads, whose memory is reused
//! soon, and between far caches.

use crate::lines::{CacheLines, CachePath};
use crate::{interleaved, staged};
use weft_fabric::{Copies, Sge};

#[cfg(loom)]
use loom::sync::atomic::{AtomicU64, Ordering, fence};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// Size of a head, in bytes. It stands before the payload.
pub const HEAD: usize = 64;

/// Maximum length of a short payload, in bytes: the size of first-level caches. The memory of short payloads is reused soon, while
/// it is still in the caches.
pub const SHORT: usize = 32 << 10;

/// Minimum and maximum length of a part, in bytes. A part is an eighth of a payload, within these bounds.
const SHORTEST: usize = 2 << 10;
const LONGEST: usize = 16 << 10;

/// Returns the number of bytes that a producer publishes at once, for a payload of `len` bytes.
pub fn part(len: usize) -> usize {
    part_within(len, LONGEST)
}

fn part_within(len: usize, longest: usize) -> usize {
    (len / 8).clamp(SHORTEST, longest).next_multiple_of(HEAD)
}

/// Maximum number of successive polls without new data. A part that is under way arrives earlier.
const LOOKS: u32 = 256;

/// The head in shared memory. Before the reset, the memory is zeroed or holds arbitrary old content.
#[repr(C, align(64))]
struct PipelineHead {
    produced: AtomicU64,
    asked: AtomicU64,
}

impl PipelineHead {
    fn reset(&self) {
        self.produced.store(0, Ordering::Relaxed);
        self.asked.store(0, Ordering::Relaxed);
    }

    fn publish(&self, produced: u64) {
        self.produced.store(produced, Ordering::Release);
    }

    /// Ends the publication. Returns true if the producer must wake the consumer.
    fn end(&self) -> bool {
        fence(Ordering::SeqCst);
        self.asked.load(Ordering::Relaxed) != 0
    }

    fn seen(&self) -> u64 {
        self.produced.load(Ordering::Acquire)
    }

    /// Announces that the consumer stops polling, and returns the value of `produced` after the announcement. If this value shows
    /// further bytes, the consumer continues.
    fn ask(&self) -> u64 {
        self.asked.store(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        self.seen()
    }
}

/// The result of a consumer's call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consumed {
    /// The whole payload was copied.
    Whole,
    /// Only this number of bytes was copied so far. The producer will wake this process.
    Part(usize),
    /// The head names more bytes than the payload has.
    Corrupt,
}

/// A head and a payload in memory that both processes see.
#[derive(Clone, Copy)]
pub struct Pipelined<'m> {
    head: &'m PipelineHead,
    payload: Sge,
}

impl Pipelined<'_> {
    /// Finds the head and the payload in `memory`, which both processes see. `memory` is [`HEAD`] bytes longer than the payload.
    /// Returns `None` if the memory is a phantom, is too short, or is not aligned to a cache line.
    pub fn at(memory: &Sge) -> Option<Pipelined<'_>> {
        let aligned = memory.ptr().addr().is_multiple_of(align_of::<PipelineHead>());
        if memory.is_phantom() || memory.len() < HEAD || !aligned {
            return None;
        }
        // SAFETY: the pointer is aligned and lies inside memory that the caller of `Sge::new` promised to be valid. The
        // contract says that while the words are a head, both processes access them only by atomics.
        let head = unsafe { &*memory.ptr().cast::<PipelineHead>() };
        Some(Pipelined { head, payload: memory.part(HEAD, memory.len() - HEAD) })
    }

    /// Resets the head, before the consumer learns of it.
    pub fn open(&self) {
        self.head.reset();
    }

    /// Copies `source`, which is as long as the payload, for the consumer. Returns true if the producer must wake the consumer.
    pub fn produce(&self, source: Sge, copies: &Copies) -> bool {
        let len = source.len();
        let past = copies.is_told_past(len);
        let rest = match past || copies.is_past_for_one(len) {
            true => CachePath::Past,
            false => CachePath::Through,
        };
        // Distant data are read from many pages at once.
        let longest = if copies.interleaves() { interleaved::MOST } else { LONGEST };
        let part = part_within(len, longest);
        let mut at = 0;
        while at < len {
            let next = part.min(len - at);
            let (to, from) = (self.payload.part(at, next), source.part(at, next));
            match at {
                0 => staged::write(copies, to, from, past),
                _ => to.copy_for_others(from, rest, copies),
            }
            at += next;
            self.head.publish(at as u64);
        }
        self.head.end()
    }

    /// Copies the published bytes after the first `from` bytes into `into`, which is at most as long as the payload. If bytes are
    /// missing, waits for them for a short time.
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
        // The memory has an extra line, so that the head can be aligned to a line.
        vec![!0; (len + HEAD) / 16 + 8]
    }

    fn memory(of: &mut [u128], len: usize) -> Sge {
        let first = of.as_mut_ptr().cast::<u8>();
        // SAFETY: `of` has room for `HEAD + len` bytes from the next line on, and outlives all uses of the `Sge` here.
        unsafe { Sge::new(first.add(first.align_offset(HEAD)), HEAD + len) }
    }

    fn sge(of: &mut [u8]) -> Sge {
        // SAFETY: `of` outlives the `Sge`.
        unsafe { Sge::new(of.as_mut_ptr(), of.len()) }
    }

    /// Memory that two threads share in these tests.
    struct Across(Sge);
    // SAFETY: the two threads keep the contract of [`Pipelined`].
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
            let head =
                Arc::new(PipelineHead { produced: AtomicU64::new(9), asked: AtomicU64::new(9) });
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
