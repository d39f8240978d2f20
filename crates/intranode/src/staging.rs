//! The staging pool: memory of a process into which a sender copies payloads, while receivers of the same node copy them out
//! ([`crate::pipelined`]).
//!
//! A line that another processor has just read is slow to write, unless that processor took the line to itself. So there are
//! three rings of places:
//!
//! ```text
//!   narrow ring, short payloads      NARROW bytes, which stay in the caches     the receiver takes the lines
//!   near ring, other payloads        room for a few payloads                    lines have left the receiver's first cache by then,
//!   wide ring, if that is blocked    room for a few payloads                    or the receiver takes them
//! ```
//! So a sender touches few pages, and leaves its second-level cache to the program. If a few payloads are unread, the next payload goes
//! by another protocol, in which its sender waits for the receiver. A payload that stays unread for long blocks the places of a ring
//! behind it that are free again; then the next payloads go on in the wide ring.
//!
//! A ring's first payload touches its own pages. The second payload provides the pages of a few payloads of its length at once, and the
//! first payload that finds these places unread provides as many again.
//!
//! Contract. A place belongs to its sender as soon as it is taken. An offer gives the receiver the address of the place, and the
//! receiver gives the place back by ATS. Places are taken around a ring in turn, and given back in any order. No two taken places
//! overlap.
//!
//! Memory: each process has a pool of the given size. The first payload that needs the pool creates it, but only where the node has
//! plenty of memory. If there is no pool, or no place, payloads go by the cheapest other protocol.

use crate::pipelined::{HEAD, SHORT};
use std::collections::VecDeque;
use std::ops::Range;
use weft_fabric::{Fabric, FabricExt, Region, RemoteAddr, Sge};

/// Default size of a pool, in bytes: room for several payloads of the maximum length.
pub const USUAL: usize = 5 << 20;

/// Alignment of places, in bytes. Without it, payloads whose length is a multiple of a page would all begin in the same set of the
/// caches.
const STEP: usize = 256;

/// Size of the ring for short payloads, in bytes, in a pool that has enough memory for both rings. The ring takes only a part of a
/// processor's private cache.
const NARROW: usize = 256 << 10;

/// Number of payloads of the same length through whose places a ring goes if no more payloads are unread. Each rank needs room for
/// several payloads, because ranks go ahead of each other. Ten payloads use all these places, so later payloads find their pages.
const FEW: usize = 8;

/// Maximum number of payloads of the same length that have places in the near ring, or in the wide ring, at the same time. The narrow
/// ring has no such bound, because it is small.
const MOST_UNREAD: usize = 16;

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
    /// Offset of the ring in the pool.
    start: usize,
    /// Maximum number of payloads of the same length at the same time.
    most_unread: usize,
    /// End of the bytes whose pages are there, or `None` before the first payload.
    ready: Option<usize>,
    /// Places that are not reusable yet, the oldest first: the end of each place, and true if the receiver has given it back.
    taken: VecDeque<(usize, bool)>,
    /// Number of the oldest place. Numbers wrap.
    first: u32,
    /// Start of the oldest place, and earliest start of the next place.
    tail: usize,
    head: usize,
}

impl Places {
    fn new(start: usize, most_unread: usize) -> Places {
        let taken = VecDeque::with_capacity(PLACES);
        Places { start, most_unread, ready: None, taken, first: 0, tail: 0, head: 0 }
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

    /// Takes a place within room for [`FEW`] payloads of this length, or else within room for `most_unread` payloads, in a ring of
    /// `size` bytes. `ring`: the bit of this ring.
    fn take_few(&mut self, len: usize, size: usize, ring: u32) -> Option<TakenPlace> {
        let room = |payloads: usize| size.min(payloads * len.next_multiple_of(STEP));
        let (end, (number, at)) = [FEW, self.most_unread]
            .into_iter()
            .find_map(|payloads| Some((room(payloads), self.take(len, room(payloads))?)))?;
        let ready = self.ready.unwrap_or(end);
        self.ready = Some(self.ready.map_or(0, |ready| ready.max(end)));
        let cold = (end > ready).then(|| self.start + ready..self.start + end);
        Some(TakenPlace { number: number | ring, at: self.start + at, cold })
    }

    /// Returns true if free bytes lie behind a payload that is unread.
    fn is_blocked(&self) -> bool {
        self.taken.iter().any(|&(_, given)| given)
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

/// A place that was taken for a payload.
struct TakenPlace {
    /// The place's number with the bit of its ring.
    number: u32,
    /// Start of the place in the pool.
    at: usize,
    /// Bytes of the pool that this payload and the next payloads use, and whose pages are to be provided.
    cold: Option<Range<usize>>,
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
        let sizes = RingSizes::new(pool);
        let few = |start| Places::new(start, MOST_UNREAD);
        let narrow = Places::new(sizes.near + sizes.wide, PLACES);
        Rings { near: few(0), wide: few(sizes.near), narrow, sizes }
    }

    /// Takes a place of `len` bytes. Returns `None` if a few payloads are unread.
    fn take(&mut self, len: usize) -> Option<TakenPlace> {
        let is_short = len <= HEAD + SHORT && self.sizes.narrow > 0;
        let (ring, size, bit) = match is_short {
            true => (&mut self.narrow, self.sizes.narrow, ON_NARROW),
            false => (&mut self.near, self.sizes.near, ON_NEAR),
        };
        let place = ring.take_few(len, size, bit);
        if place.is_some() || len.next_multiple_of(STEP) <= size && !ring.is_blocked() {
            return place;
        }
        self.wide.take_few(len, self.sizes.wide, 0)
    }

    /// Returns true if any payload is unread.
    fn any_unread(&self) -> bool {
        // The oldest place of a ring is unread: places that are given back end with the places before them.
        [&self.near, &self.wide, &self.narrow].iter().any(|ring| !ring.taken.is_empty())
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
        let TakenPlace { number, at, cold } = rings.take(len)?;
        if let Some(cold) = cold {
            fabric.populate(region.local.part(cold.start, cold.len()));
        }
        Some((number | STAGED, region.at(at), region.local.part(at, len)))
    }

    /// Returns true if receivers have not given back all places.
    pub fn any_unread(&self) -> bool {
        self.made.as_ref().is_some_and(|pool| pool.rings.any_unread())
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
        let mut places = Places { first: NUMBER - 500, ..Places::new(0, PLACES) };
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
                let Some(TakenPlace { number, at, .. }) = rings.take(len) else {
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
                let number = rings.take(len).expect("the others have been read").number;
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

    /// A few payloads have places at the same time. The second payload provides the pages of half of them, and the first payload beyond
    /// these pages provides the others. The next rounds use the same pages.
    #[test]
    fn a_few_payloads_have_places_on_pages_that_are_provided_at_once() {
        for len in [20 << 10, HEAD + SHORT, 64 << 10, 128 << 10] {
            let mut rings = Rings::new(USUAL);
            let (mut cold, mut end) = (Vec::new(), 0);
            for _ in 0..3 {
                let mut places = Vec::new();
                while let Some(place) = rings.take(len) {
                    end = end.max(place.at + len);
                    cold.extend(place.cold);
                    places.push(place.number);
                }
                let size = if len <= HEAD + SHORT { rings.sizes.narrow } else { rings.sizes.near };
                let most = MOST_UNREAD.min(size / len);
                assert!((most - 1..=most).contains(&places.len()), "{len}: {}", places.len());
                for number in places {
                    assert!(rings.ring(number).give(number).is_some());
                }
            }
            assert!(cold.len() <= 2 && cold[cold.len() - 1].end >= end, "{len}: {cold:?}, {end}");
        }
    }
}
