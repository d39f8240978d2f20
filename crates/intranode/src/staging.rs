//! The staging pool: memory of a process into which a sender copies payloads, while receivers of the same node copy them out
//! ([`crate::pipelined`]).
//!
//! A line that another processor has just read is slow to write, unless that processor took the line to itself. So there are
//! three rings of places:
//!
//! ```text
//!   narrow ring, short payloads      NARROW bytes, which stay in the caches     the receiver takes the lines
//!   near ring, other payloads        room for a few payloads                    lines have left the receiver's first cache by then,
//!   wide ring, if that is full       the rest                                   or the receiver takes them
//! ```
//! So a sender whose payloads are read soon touches few pages, and leaves its second-level cache to the program. A payload that
//! stays unread for long blocks the places of one ring behind it, and the next payloads go on in the wide ring.
//!
//! Contract. A place belongs to its sender as soon as it is taken. An offer gives the receiver the address of the place, and the
//! receiver gives the place back by ATS. Places are taken around a ring in turn, and given back in any order. No two taken places
//! overlap.
//!
//! Memory: each process has a pool of the given size. The first payload that needs the pool creates it, but only where the node has
//! plenty of memory. If there is no pool, or the pool is full, payloads go by the cheapest other protocol.

use crate::pipelined::{HEAD, SHORT};
use std::collections::VecDeque;
use weft_fabric::{Fabric, FabricExt, Region, RemoteAddr, Sge};

/// Default size of a pool, in bytes: room for several payloads of the maximum length.
pub const USUAL: usize = 5 << 20;

/// Alignment of places, in bytes. Without it, payloads whose length is a multiple of a page would all begin in the same set of the
/// caches.
const STEP: usize = 256;

/// Size of the ring for short payloads, in bytes, in a pool that has enough memory for both rings. The ring takes only a part of a
/// processor's private cache.
const NARROW: usize = 256 << 10;

/// Number of payloads of the same length that the near ring has room for. Each rank needs room for several payloads, because ranks
/// go ahead of each other. Likewise for the part of the narrow ring that is used if no more payloads are under way.
const FEW: usize = 8;

/// Share of the near ring in the memory that the narrow ring leaves: one part of this number of parts.
const NEAR_SHARE: usize = 4;

/// Maximum number of payloads in a ring at the same time.
const PLACES: usize = 1 << 10;

/// Bits of an offer's request number: the number names a place instead of a request (`STAGED`); the place is in the narrow ring
/// (`ON_NARROW`), or in the near ring (`ON_NEAR`).
const STAGED: u32 = 1 << 31;
const ON_NARROW: u32 = 1 << 30;
const ON_NEAR: u32 = 1 << 29;
const NUMBER: u32 = ON_NEAR - 1;

/// Returns true if an offered payload is staged: it can be copied at once, and its sender does not wait.
pub fn is_staged(request: u32) -> bool {
    request & STAGED != 0
}

/// Returns the maximum payload, in bytes, that goes through a pool of `size` bytes. The pool has several places of this length.
pub fn largest(size: usize) -> usize {
    size / 4
}

/// The taken bytes of a ring.
struct Places {
    /// Places that are not reusable yet, the oldest first: the end of each place, and true if the receiver has given it back.
    taken: VecDeque<(usize, bool)>,
    /// Number of the oldest place. Numbers wrap.
    first: u32,
    /// Start of the oldest place, and earliest start of the next place.
    tail: usize,
    head: usize,
}

impl Places {
    fn new() -> Places {
        Places { taken: VecDeque::with_capacity(PLACES), first: 0, tail: 0, head: 0 }
    }

    /// Takes a place of `len` bytes within the first `size` bytes. Returns its number and its start. Places beyond `size` may have
    /// been taken before.
    fn take(&mut self, len: usize, size: usize) -> Option<(u32, usize)> {
        let len = len.next_multiple_of(STEP);
        if self.taken.len() == PLACES || len > size {
            return None;
        }
        if self.taken.is_empty() {
            // Starts at the current position, so that even single payloads go around the ring.
            self.tail = self.head;
        }
        let around = self.head < self.tail || self.head == self.tail && !self.taken.is_empty();
        let at = match around {
            true if len <= self.tail - self.head => self.head,
            true => return None,
            false if len <= size.saturating_sub(self.head) => self.head,
            false if self.taken.is_empty() => {
                self.tail = 0;
                0
            }
            // Starts again at 0. The skipped bytes behind the last place become free together with this place.
            false if len <= self.tail => 0,
            false => return None,
        };
        self.head = at + len;
        self.taken.push_back((self.head, false));
        // The number is sent together with three bits of other meaning.
        Some((self.first.wrapping_add(self.taken.len() as u32 - 1) & NUMBER, at))
    }

    /// Takes a place as [`Places::take`] does: within room for [`FEW`] payloads of this length if there is a free place.
    fn take_near(&mut self, len: usize, size: usize) -> Option<(u32, usize)> {
        let few = size.min(FEW * len.next_multiple_of(STEP));
        self.take(len, few).or_else(|| self.take(len, size))
    }

    /// Gives the place with this number back; only the bits of `NUMBER` count. Returns `None` if no such place is taken.
    fn give(&mut self, number: u32) -> Option<()> {
        let nth = (number.wrapping_sub(self.first) & NUMBER) as usize;
        let (_, given) = self.taken.get_mut(nth).filter(|(_, given)| !given)?;
        *given = true;
        while let Some(&(end, true)) = self.taken.front() {
            self.taken.pop_front();
            self.first = self.first.wrapping_add(1);
            self.tail = end;
        }
        Some(())
    }
}

/// The pool of a process.
pub struct ProcessStaging {
    size: usize,
    made: Option<Pool>,
    /// True if the process has no pool: its size is 0, or there was no memory for it.
    none: bool,
}

/// The memory, and the places in it.
struct Pool {
    region: Region,
    rings: Rings,
}

/// The rings, in the order of their memory.
struct Rings {
    near: Places,
    wide: Places,
    narrow: Places,
    /// Sizes of the rings, in bytes.
    sizes: RingSizes,
}

/// Sizes of the rings in a pool, in bytes.
#[derive(Clone, Copy)]
struct RingSizes {
    near: usize,
    wide: usize,
    narrow: usize,
}

impl RingSizes {
    fn new(pool: usize) -> RingSizes {
        let narrow = if pool >= 4 * NARROW { NARROW } else { 0 };
        let near = (pool - narrow) / NEAR_SHARE / STEP * STEP;
        RingSizes { near, wide: (pool - narrow - near) / STEP * STEP, narrow }
    }
}

impl Rings {
    fn new(pool: usize) -> Rings {
        let [near, wide, narrow] = std::array::from_fn(|_| Places::new());
        Rings { near, wide, narrow, sizes: RingSizes::new(pool) }
    }

    /// Takes a place of `len` bytes. Returns the place's number with the ring's bit, and its start.
    fn take(&mut self, len: usize) -> Option<(u32, usize)> {
        let RingSizes { near, wide, narrow } = self.sizes;
        if len <= HEAD + SHORT
            && narrow > 0
            && let Some((number, at)) = self.narrow.take_near(len, narrow)
        {
            return Some((number | ON_NARROW, near + wide + at));
        }
        if let Some((number, at)) = self.near.take_near(len, near) {
            return Some((number | ON_NEAR, at));
        }
        self.wide.take(len, wide).map(|(number, at)| (number, near + at))
    }

    /// Returns the ring of the place with this request.
    fn ring(&mut self, request: u32) -> &mut Places {
        if request & ON_NARROW != 0 {
            &mut self.narrow
        } else if request & ON_NEAR != 0 {
            &mut self.near
        } else {
            &mut self.wide
        }
    }
}

impl ProcessStaging {
    /// Creates a pool of `size` bytes, which gets its memory when it is first needed. If `size` is 0, the pool never gets memory.
    pub fn new(size: usize) -> ProcessStaging {
        ProcessStaging { size, made: None, none: size == 0 }
    }

    /// Takes a place for `payload` in memory that peers of the node see. Returns the request number for the offer, the address of
    /// the place for peers, and the place itself. Returns `None` if there is no free place.
    pub fn place<F: Fabric>(&mut self, fabric: &F, payload: Sge) -> Option<(u32, RemoteAddr, Sge)> {
        if self.none || payload.len() > largest(self.size) || payload.is_phantom() {
            return None;
        }
        if self.made.is_none() {
            let region = fabric.allocate_spare(self.size).ok();
            self.made = region.map(|region| Pool { region, rings: Rings::new(self.size) });
            self.none = self.made.is_none();
        }
        let Pool { region, rings } = self.made.as_mut()?;
        let len = HEAD + payload.len();
        let (number, at) = rings.take(len)?;
        Some((number | STAGED, region.at(at), region.local.part(at, len)))
    }

    /// Gives back the place of an offer with this request, after the receiver has copied the payload. Returns `None` if there is no
    /// such place.
    pub fn give(&mut self, request: u32) -> Option<()> {
        self.made.as_mut()?.rings.ring(request).give(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_do_not_overlap_and_all_come_back() {
        const SIZE: usize = 16 * STEP;
        // Numbers wrap during the test, both as sent in an offer and as counted.
        let mut places = Places { first: NUMBER - 500, ..Places::new() };
        let mut live: Vec<(u32, usize, usize)> = Vec::new();
        let (mut refused, mut around, mut word) = (0, 0, 1u64);
        for _ in 0..20_000 {
            word = word.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let (choice, len) = (word >> 60, 1 + (word >> 40) as usize % (7 * STEP));
            if choice < 8 && !live.is_empty() {
                let (number, ..) = live.swap_remove((word >> 33) as usize % live.len());
                assert!(places.give(number).is_some());
                assert!(places.give(number).is_none(), "given back twice");
                continue;
            }
            let before = places.head;
            // At random, the place must be within the first half of the ring.
            let size = if word >> 20 & 3 == 0 { SIZE / 2 } else { SIZE };
            let Some((number, at)) = places.take(len, size) else {
                refused += 1;
                assert!(!live.is_empty(), "an empty pool has room for anything");
                continue;
            };
            around += usize::from(at < before);
            assert!(at + len <= SIZE);
            let apart = |&(_, other, n): &_| at + len <= other || other + n <= at;
            assert!(live.iter().all(apart), "{at} {len} among {live:?}");
            live.push((number, at, len));
        }
        assert!(refused > 100 && around > 100, "{refused} {around}");
        assert!(live.drain(..).all(|(number, ..)| places.give(number).is_some()));
        assert!(places.taken.is_empty());
    }

    /// Payloads of all lengths, read in nearly the order in which they came, in pools of all sizes: no two places overlap, and the
    /// longest payload has room in an empty pool.
    #[test]
    fn places_of_all_rings_do_not_overlap() {
        let (mut word, runs) = (1u64, if cfg!(miri) { 4 } else { 400 });
        let mut random = |below: usize| {
            word = word.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (word >> 33) as usize % below
        };
        for run in 0..runs {
            let pools = [16 * STEP, 64 << 10, 100_000, 300_000, 4 * NARROW, USUAL];
            let pool = pools[run % pools.len()];
            let mut rings = Rings::new(pool);
            let mut live: VecDeque<(u32, usize, usize)> = VecDeque::new();
            for _ in 0..400 {
                if random(2) == 0 && !live.is_empty() {
                    let nth = if random(4) == 0 { random(live.len()) } else { 0 };
                    let (number, ..) = live.remove(nth).expect("there are so many");
                    assert!(rings.ring(number).give(number).is_some());
                    continue;
                }
                let (most, shift) = (largest(pool), random(8));
                let len = HEAD + most - random((most >> shift).max(1)).min(most - 1);
                let Some((number, at)) = rings.take(len) else {
                    assert!(!live.is_empty(), "{len} bytes in an empty pool of {pool}");
                    continue;
                };
                assert!(at + len <= pool, "{at} {len} in {pool}");
                let apart = |&(_, other, n): &_| at + len <= other || other + n <= at;
                assert!(live.iter().all(apart), "{at} {len} among {live:?} in {pool}");
                live.push_back((number, at, len));
            }
        }
    }

    /// Payloads of one length, of which one stays unread: the others never lack a place, and use few bytes.
    #[test]
    fn a_payload_that_stays_unread_leaves_room_for_others() {
        for len in [1 << 10, HEAD + SHORT, 64 << 10, 256 << 10] {
            let mut rings = Rings::new(USUAL);
            let mut unread = None;
            for round in 0..400 {
                let (number, _) = rings.take(len).expect("more than half of the pool is free");
                if round == 2 {
                    unread = Some(number);
                } else {
                    assert!(rings.ring(number).give(number).is_some());
                }
            }
            let number = unread.expect("the payload of round 2");
            assert!(rings.ring(number).give(number).is_some());
            let rings = [&rings.near, &rings.wide, &rings.narrow];
            assert!(rings.iter().all(|ring| ring.taken.is_empty()), "{len}");
        }
    }

    /// As many payloads are under way as the pool has room for.
    #[test]
    fn payloads_under_way_use_the_whole_pool() {
        for len in [HEAD + SHORT, 64 << 10, 256 << 10] {
            let mut rings = Rings::new(USUAL);
            let mut places = Vec::new();
            while let Some((_, at)) = rings.take(len) {
                assert!(
                    places.iter().all(|&other| at + len <= other || other + len <= at),
                    "{len}"
                );
                places.push(at);
            }
            assert!(places.len() * len > USUAL / 5 * 3, "{len}: {} places", places.len());
        }
    }
}
