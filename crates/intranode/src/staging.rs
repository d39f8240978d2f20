//! The staging pool: memory of a process into which a sender copies payloads, while receivers of the same node copy them out
//! ([`crate::pipelined`]).
//!
//! A line that another processor has just read is slow to write, unless that processor took the line to itself. So there are two
//! rings of places:
//!
//! ```text
//!   narrow ring, short payloads      NARROW bytes, which stay in the caches     the receiver takes the lines
//!   wide ring, other payloads        the rest, more than the caches hold        lines have left the receiver's caches by then
//!     between far caches             room for a few payloads                    the receiver takes the lines
//!     if ranks share processors      room for a few payloads                    lines are in the caches of the next rank
//! ```
//! Contract. A place belongs to its sender from when it is taken. An offer tells the receiver of the place, and the receiver
//! gives it back by ATS. Places are taken around a ring in turn, and given back in any order. No two taken places overlap.
//!
//! Memory: each process has a pool of the given size. The first payload that needs the pool creates it, but only where the node
//! has plenty of memory. Without a pool, or while it is full, payloads go by the cheapest other protocol.

use crate::pipelined::{HEAD, SHORT};
use std::collections::VecDeque;
use weft_fabric::{Fabric, FabricExt, Region, RemoteAddr, Sge};

/// Default size of a pool, in bytes: room for several payloads of the maximum length.
pub const USUAL: usize = 5 << 20;

/// Alignment of places, in bytes. Without it, payloads whose length is a multiple of a page would all begin at the same place
/// of the caches.
const STEP: usize = 256;

/// Size of the ring for short payloads, in bytes, in a pool that has enough memory for both rings. The ring fits into a part of
/// a processor's private cache.
const NARROW: usize = 256 << 10;

/// Number of payloads for which the wide ring has room between far caches, and if ranks share processors. Each rank needs room for
/// several payloads, because ranks go ahead of each other.
const FEW: usize = 12;

/// Maximum number of payloads in a ring at the same time.
const PLACES: usize = 1 << 10;

/// Bits of an offer's request number: the number names a place instead of a request (`STAGED`); the place is in the narrow ring
/// (`ON_NARROW`).
const STAGED: u32 = 1 << 31;
const ON_NARROW: u32 = 1 << 30;
const NUMBER: u32 = ON_NARROW - 1;

/// Returns true if an offered payload is staged: it can be copied at once, and its sender waits for nothing.
pub fn is_staged(request: u32) -> bool {
    request & STAGED != 0
}

/// Returns the maximum payload, in bytes, that goes through a pool of `size` bytes. The pool has several places of this length.
pub fn largest(size: usize) -> usize {
    size / 4
}

/// The taken bytes of a ring.
struct Places {
    /// Places that are not reusable yet, the oldest first: the end of each place, and true if the place was given back.
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

    /// Takes a place of `len` bytes (at most `size`) within the first `size` bytes. Returns its number and its start. Places
    /// beyond `size` may have been taken before.
    fn take(&mut self, len: usize, size: usize) -> Option<(u32, usize)> {
        if self.taken.len() == PLACES {
            return None;
        }
        let len = len.next_multiple_of(STEP);
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
            // The bytes that are skipped behind the last place belong to this place.
            false if len <= self.tail => 0,
            false => return None,
        };
        self.head = at + len;
        self.taken.push_back((self.head, false));
        // The number is sent together with two bits of other meaning.
        Some((self.first.wrapping_add(self.taken.len() as u32 - 1) & NUMBER, at))
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
    made: Option<Rings>,
    /// True if the process has no pool: its size is 0, or there was no memory for it.
    none: bool,
    /// Number of ranks that take turns on a processor; 1 if each rank has its own processor.
    ranks_each: u32,
}

/// The memory: the wide ring, then the narrow ring.
struct Rings {
    region: Region,
    narrow: Places,
    wide: Places,
    /// Sizes of the narrow and the wide ring, in bytes.
    sizes: (usize, usize),
}

impl Rings {
    fn new(region: Region, size: usize) -> Rings {
        let narrow = if size >= 4 * NARROW { NARROW } else { 0 };
        let sizes = (narrow, (size - narrow) / STEP * STEP);
        Rings { region, narrow: Places::new(), wide: Places::new(), sizes }
    }

    /// Takes a place of `len` bytes. Returns the place's number with the ring's bit, and its start. If `few` is set, only the part
    /// of the wide ring for a few payloads is used, if they fit.
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
    /// Creates a pool of `size` bytes, which gets its memory when it is first needed. If `size` is 0, the pool never gets memory.
    pub fn new(size: usize, ranks_each: u32) -> ProcessStaging {
        ProcessStaging { size, made: None, none: size == 0, ranks_each }
    }

    /// Takes a place for `payload` in memory that peers of the node see. `apart`: the caches of the peers may be far. Returns the
    /// request of the offer, the address of the place for peers, and the place itself. `None`: there is no free place.
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

    /// Gives the place of an offer with this request back, after its receiver has copied it. Returns `None` if there is no such
    /// place.
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
        // Numbers wrap during the test, both as sent in an offer and as counted.
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
}
