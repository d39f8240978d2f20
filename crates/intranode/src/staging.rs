//! The staging pool: memory of a process from which receivers of the same node copy payloads out while it copies them in
//! ([`crate::pipelined`]).
//!
//! A line that another processor has read a moment ago is slow to write, unless that took it to itself. So there are two
//! rings of places:
//!
//! ```text
//!   short payloads     NARROW bytes, which stay in the caches      the receiver takes the lines
//!   the others         the rest, more than the caches have         they are out of the receiver's by then
//!                      between far caches a few payloads' worth    the receiver takes the lines
//!                      so, too, where ranks share processors       they are in the caches that it comes to
//! ```
//! Contract. A place belongs to its sender from when it is taken until the receiver, which is told of it by an offer, gives it
//! back by ATS. Places are taken around a ring in turn, and given back in any order; no two that are taken overlap.
//!
//! Memory: as many bytes a process as it is told, made by the first payload that needs it, only where memory of the node
//! is plenty. Without it, or while it is full, payloads go by the cheapest other protocol.

use crate::pipelined::{HEAD, SHORT};
use std::collections::VecDeque;
use weft_fabric::{Fabric, FabricExt, Region, RemoteAddr, Sge};

/// Bytes of a pool, if nobody says otherwise: several payloads as long as may be staged.
pub const USUAL: usize = 5 << 20;

/// Places begin at multiples of this; payloads of a page's multiple would otherwise all begin at the same
/// place of the caches.
const STEP: usize = 256;

/// Bytes of the ring for short payloads, of a pool that has some left for others: a part of the cache that a processor has
/// for itself.
const NARROW: usize = 256 << 10;

/// Of the wide ring, payloads' worth that are used between far caches and where ranks share processors: more than one for
/// each rank, as ranks go ahead of each other.
const FEW: usize = 12;

/// Payloads in a ring at once.
const PLACES: usize = 1 << 10;

/// In an offer's request: a place, and no request; and that it is in the narrow ring.
const STAGED: u32 = 1 << 31;
const ON_NARROW: u32 = 1 << 30;
const NUMBER: u32 = ON_NARROW - 1;

/// Whether what is offered is staged: it is there to be copied, and its sender waits for nothing.
pub fn is_staged(request: u32) -> bool {
    request & STAGED != 0
}

/// Largest payload that a pool of `size` bytes has places for, in bytes: some at a time.
pub fn largest(size: usize) -> usize {
    size / 4
}

/// Which bytes of a ring are taken.
struct Places {
    /// Of those taken and not yet reusable, the oldest first: where each ends, and whether it is given back.
    taken: VecDeque<(usize, bool)>,
    /// Number of the oldest; it wraps.
    first: u32,
    /// Where the oldest begins, and where the next may.
    tail: usize,
    head: usize,
}

impl Places {
    fn new() -> Places {
        Places { taken: VecDeque::with_capacity(PLACES), first: 0, tail: 0, head: 0 }
    }

    /// A place of `len` bytes in the first `size`, which are not fewer: its number, and where it begins. Places beyond
    /// may be taken from before.
    fn take(&mut self, len: usize, size: usize) -> Option<(u32, usize)> {
        if self.taken.len() == PLACES {
            return None;
        }
        let len = len.next_multiple_of(STEP);
        if self.taken.is_empty() {
            // From where it stands, so that even payloads one at a time go around.
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
            // What is left behind this place belongs to it.
            false if len <= self.tail => 0,
            false => return None,
        };
        self.head = at + len;
        self.taken.push_back((self.head, false));
        // It travels beside two bits of other meaning.
        Some((self.first.wrapping_add(self.taken.len() as u32 - 1) & NUMBER, at))
    }

    /// Of `number` what a place's has counts. `None`: no such place is taken.
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

/// A process's pool.
pub struct ProcessStaging {
    size: usize,
    made: Option<Rings>,
    /// There is no memory for one.
    none: bool,
    /// Ranks that take turns on a processor; 1: each has its own.
    ranks_each: u32,
}

/// The memory: the wide ring, then the narrow one.
struct Rings {
    region: Region,
    narrow: Places,
    wide: Places,
    /// Bytes of both.
    sizes: (usize, usize),
}

impl Rings {
    fn new(region: Region, size: usize) -> Rings {
        let narrow = if size >= 4 * NARROW { NARROW } else { 0 };
        let sizes = (narrow, (size - narrow) / STEP * STEP);
        Rings { region, narrow: Places::new(), wide: Places::new(), sizes }
    }

    /// The number of a place of `len` bytes with the ring's bit, and where it begins; of the wide ring in a `few`
    /// payloads' worth, if there is room.
    fn take(&mut self, len: usize, few: bool) -> Option<(u32, usize)> {
        let (narrow, wide) = self.sizes;
        if len <= HEAD + SHORT
            && narrow > 0
            && let Some((number, at)) = self.narrow.take(len, narrow)
        {
            return Some((number | ON_NARROW, wide + at));
        }
        let part = wide.min(FEW * len.next_multiple_of(STEP));
        let near = if few { self.wide.take(len, part) } else { None };
        near.or_else(|| self.wide.take(len, wide))
    }
}

impl ProcessStaging {
    /// One of `size` bytes, made when it is needed; none if that is 0.
    pub fn new(size: usize, ranks_each: u32) -> ProcessStaging {
        ProcessStaging { size, made: None, none: size == 0, ranks_each }
    }

    /// A free place for `payload`, where peers of the node see what is copied in, whose caches may be `apart`: what an offer says as its request,
    /// where it is, and the place. `None`: there is none.
    pub fn place<F: Fabric>(
        &mut self,
        fabric: &F,
        payload: Sge,
        apart: bool,
    ) -> Option<(u32, RemoteAddr, Sge)> {
        if self.none || payload.len() > largest(self.size) || payload.is_phantom() {
            return None;
        }
        if self.made.is_none() {
            let region = fabric.allocate_spare(self.size).ok();
            self.made = region.map(|region| Rings::new(region, self.size));
            self.none = self.made.is_none();
        }
        let rings = self.made.as_mut()?;
        let len = HEAD + payload.len();
        let (number, at) = rings.take(len, self.ranks_each > 1 || apart)?;
        let region = rings.region;
        Some((number | STAGED, region.at(at), region.local.part(at, len)))
    }

    /// Its receiver has what an offer with this request named. `None`: there is nothing there.
    pub fn give(&mut self, request: u32) -> Option<()> {
        let rings = self.made.as_mut()?;
        let narrow = request & ON_NARROW != 0;
        if narrow { &mut rings.narrow } else { &mut rings.wide }.give(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_do_not_overlap_and_all_come_back() {
        const SIZE: usize = 16 * STEP;
        // Numbers wrap on the way, as they travel and as they are counted.
        let mut places = Places { first: ON_NARROW - 500, ..Places::new() };
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
            // Now and then a part of it only.
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
}
