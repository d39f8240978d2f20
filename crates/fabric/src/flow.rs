//! A payload that one process pours into memory which another sees, and which follows: both copy at once.
//!
//! ```text
//!   memory:     head, one line: poured (8) | asked (8) | -        payload
//!   writer:     open;  tell the reader where;  copy a part, poured = its end;  the next ...;   asked?  rouse the reader
//!   reader:     copy up to poured;  nothing new for a while?  asked = 1, look once more, go and do something else
//! ```
//! Contract. One writer and one reader. The head is reset before the reader hears of it, and the memory used again
//! after the reader is done. What is copied up to `poured` was written before `poured` was (release, acquire). The
//! last store of `poured` and the look at `asked`, and the store of `asked` and the last look at `poured`, have a
//! sequentially consistent fence in between on each side: so a reader that finds something missing and goes away is
//! roused.
//!
//! Cost: a line that goes to and fro once a part, beside two copies at the same time. The reader takes the lines to itself
//! when it has read them ([`Sge::take_lines`]): of short payloads, whose memory is used again soon, and between far caches.

use crate::memory::Sge;
use crate::{afar, pace};

#[cfg(loom)]
use loom::sync::atomic::{AtomicU64, Ordering, fence};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// Bytes of a head, which stands before the payload.
pub const HEAD: usize = 64;

/// Payloads up to here are short, in bytes: their memory is to be used again soon, while the caches have it.
pub const SHORT: usize = 32 << 10;

/// Parts, in bytes: an eighth of a payload, within these.
const SHORTEST: usize = 2 << 10;
const LONGEST: usize = 16 << 10;

/// Fruitless looks of a reader in a row: about as long as it takes to copy the longest part from afar.
const LOOKS: u32 = 256;

/// Shared memory that is zeroed or has been used for anything.
#[repr(C, align(64))]
struct Head {
    poured: AtomicU64,
    asked: AtomicU64,
}

impl Head {
    fn reset(&self) {
        self.poured.store(0, Ordering::Relaxed);
        self.asked.store(0, Ordering::Relaxed);
    }

    fn publish(&self, poured: u64) {
        self.poured.store(poured, Ordering::Release);
    }

    /// Nothing more will be published. True: the reader is to be roused.
    fn end(&self) -> bool {
        fence(Ordering::SeqCst);
        self.asked.load(Ordering::Relaxed) != 0
    }

    fn seen(&self) -> u64 {
        self.poured.load(Ordering::Acquire)
    }

    /// The reader goes away unless `seen` says now that it need not.
    fn ask(&self) -> u64 {
        self.asked.store(1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        self.seen()
    }
}

/// What a reader has found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Followed {
    /// All of it.
    Whole,
    /// So many bytes so far; its writer will rouse this process.
    Part(usize),
    /// More than there can be.
    Corrupt,
}

/// A head and a payload.
#[derive(Clone, Copy)]
pub struct Flow<'m> {
    head: &'m Head,
    payload: Sge,
}

impl Flow<'_> {
    /// In `memory` that the writer and the reader see, [`HEAD`] bytes longer than the payload. `None`: it is no
    /// memory, too short, or does not begin with a cache line.
    pub fn at(memory: &Sge) -> Option<Flow<'_>> {
        let aligned = memory.ptr().addr().is_multiple_of(align_of::<Head>());
        if memory.is_phantom() || memory.len() < HEAD || !aligned {
            return None;
        }
        // SAFETY: aligned and inside of memory that was promised to be valid; by contract, the two processes reach
        // these words by atomics alone while they are a head.
        let head = unsafe { &*memory.ptr().cast::<Head>() };
        Some(Flow { head, payload: memory.part(HEAD, memory.len() - HEAD) })
    }

    /// Before the reader hears of it.
    pub fn open(&self) {
        self.head.reset();
    }

    /// Copies `source`, as long as the payload, for the reader. True: that is to be roused.
    pub fn pour(&self, source: Sge) -> bool {
        let len = source.len();
        let past = pace::is_told_past(len);
        let rest_past = past || pace::is_poured_past(len);
        // What is far is read many pages at once.
        let longest = if pace::is_wide() { afar::MOST } else { LONGEST };
        let part = (len / 8).clamp(SHORTEST, longest).next_multiple_of(HEAD);
        let mut at = 0;
        while at < len {
            let next = part.min(len - at);
            let (to, from) = (self.payload.part(at, next), source.part(at, next));
            match at {
                0 => pace::pour(to, from, past),
                _ => to.copy_for_others(from, rest_past),
            }
            at += next;
            self.head.publish(at as u64);
        }
        self.head.end()
    }

    /// Copies what is there behind the first `from` bytes into `into`, as long as the payload or shorter, and for a
    /// while what comes.
    pub fn follow(&self, from: usize, into: Sge) -> Followed {
        let (mut at, total) = (from, into.len());
        let soon = self.payload.len() <= SHORT;
        let mut looks = 0;
        while at < total {
            let mut seen = self.head.seen() as usize;
            if seen <= at && looks == LOOKS {
                seen = self.head.ask() as usize;
                if seen <= at {
                    return Followed::Part(at);
                }
            }
            if seen <= at {
                looks += 1;
                std::hint::spin_loop();
                continue;
            }
            if seen > self.payload.len() {
                return Followed::Corrupt;
            }
            let next = seen.min(total) - at;
            let (into, found) = (into.part(at, next), self.payload.part(at, next));
            match at {
                0 => pace::take_fresh(into, found, soon),
                _ => pace::take_more(into, found, soon),
            }
            at += next;
            looks = 0;
        }
        Followed::Whole
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

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
    // SAFETY: the two sides keep the contract of a flow.
    unsafe impl Send for Across {}

    #[test]
    fn a_reader_that_follows_gets_every_byte() {
        let lens =
            if cfg!(miri) { vec![1, 5000] } else { vec![1, 63, 64, 2048, 2049, 40_000, 300_000] };
        for len in lens {
            let mut room = lines(len);
            let memory = memory(&mut room, len);
            Flow::at(&memory).unwrap().open();
            let mut source = filled(len, len as u8);
            let (writer, data) = (Across(memory), Across(sge(&mut source)));
            std::thread::scope(|scope| {
                scope.spawn(move || {
                    let (writer, data) = (&writer, &data);
                    Flow::at(&writer.0).unwrap().pour(data.0);
                });
                let mut got = vec![0; len];
                let mut at = 0;
                loop {
                    match Flow::at(&memory).unwrap().follow(at, sge(&mut got)) {
                        Followed::Whole => break,
                        Followed::Part(so_far) => at = so_far,
                        Followed::Corrupt => panic!("corrupt"),
                    }
                    std::thread::yield_now();
                }
                assert_eq!(got, filled(len, len as u8));
            });
        }
    }

    #[test]
    fn a_reader_may_want_less_and_is_told_to_come_back() {
        let mut room = lines(10_000);
        let memory = memory(&mut room, 10_000);
        let flow = Flow::at(&memory).unwrap();
        flow.open();
        let (mut source, mut got) = (filled(10_000, 7), vec![0; 9_000]);
        assert_eq!(flow.follow(0, sge(&mut got)), Followed::Part(0));
        assert!(flow.pour(sge(&mut source)), "somebody waits");
        assert!(flow.follow(0, sge(&mut got)) == Followed::Whole);
        assert_eq!(got, filled(9_000, 7));
        flow.open();
        assert!(!flow.pour(sge(&mut source)), "nobody waits");
    }

    #[test]
    fn nonsense_is_found_out() {
        let mut room = lines(100);
        let memory = memory(&mut room, 100);
        let flow = Flow::at(&memory).unwrap();
        flow.head.publish(101);
        assert_eq!(flow.follow(0, sge(&mut [0; 100])), Followed::Corrupt);
        assert!(Flow::at(&memory.part(8, 100)).is_none());
        assert!(Flow::at(&memory.part(0, HEAD - 1)).is_none());
    }
}

#[cfg(all(test, loom))]
mod loom_tests {
    use super::*;
    use loom::sync::Arc;

    #[test]
    fn loom_who_goes_away_is_roused() {
        loom::model(|| {
            let head = Arc::new(Head { poured: AtomicU64::new(9), asked: AtomicU64::new(9) });
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
