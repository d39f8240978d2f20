//! Payloads set down where the receiver's processor sees them: between eager messages and those that are
//! fetched from the program's memory.
//!
//! ```text
//!   sender:    Rts(place) ──>   payload ──copy──> shelf        the send is over: the buffer is free
//!   receiver:                   shelf ──copy──> buffer         and follows ([`weft_fabric::flow`]),
//!                                                              <── Fin: the place is free
//! ```
//! Each end copies once, at the same time, and no system call is needed; to fetch from the program's memory takes one
//! a message, which costs more than a second copy of a payload of this size. A receiver that looked too early and
//! did something else is told by Whole.
//!
//! Places are taken around the shelf in turn, and given back in any order. It is larger than the caches of
//! one processor: a line that another one has read a moment ago is slow to write.
//!
//! Memory: one shelf of [`crate::Limits::shelf`] bytes a process, made by the first payload that needs it, only where
//! memory of the node is plenty. Without it, or while it is full, payloads are fetched.

use std::collections::VecDeque;
use weft_fabric::flow::HEAD;
use weft_fabric::{Fabric, Region, RemoteAddr, Sge};

/// Payloads up to here are sent at once, where their receiver looks anyway, in bytes.
pub const LEAST: usize = 8 << 10;

/// Payloads above are fetched or copied by both ends, in bytes.
pub const MOST: usize = 1 << 20;

/// Payloads above rouse the receiver's helper, which copies while the program computes, in bytes.
pub const QUIET: usize = 256 << 10;

/// Bytes of a shelf, if nobody says otherwise.
pub const USUAL: usize = 5 << 20;

/// Places begin at multiples of this; payloads of a page's multiple would otherwise all begin at the same
/// place of the caches.
const STEP: usize = 256;

/// Payloads on a shelf at once.
const PLACES: usize = 1 << 10;

/// In an offer's request: a place on the shelf, and no request.
const SHELVED: u32 = 1 << 31;

/// Whether what is offered lies on a shelf: it is there to be copied, and its sender waits for nothing.
pub fn is_shelved(request: u32) -> bool {
    request & SHELVED != 0
}

/// Which bytes of a shelf are taken.
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

    /// A place of `len` bytes, not longer than the shelf of `size` bytes: its number, and where it begins.
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
            false if len <= size - self.head => self.head,
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
        Some((self.first.wrapping_add(self.taken.len() as u32 - 1), at))
    }

    /// `None`: no such place is taken.
    fn give(&mut self, number: u32) -> Option<()> {
        // Numbers travel in 31 bits.
        let nth = (number.wrapping_sub(self.first) & !SHELVED) as usize;
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

/// A process's shelf.
pub struct Shelf {
    size: usize,
    made: Option<(Region, Places)>,
    /// There is no memory for one.
    none: bool,
}

impl Shelf {
    /// One of `size` bytes, made when it is needed; none if that is 0.
    pub fn new(size: usize) -> Shelf {
        Shelf { size, made: None, none: size == 0 }
    }

    /// A free place for `payload`, where peers of the node see what is poured: what an offer says as its request,
    /// where it is, and the place. `None`: there is none.
    pub fn place<F: Fabric>(&mut self, fabric: &F, payload: Sge) -> Option<(u32, RemoteAddr, Sge)> {
        if self.none || payload.len() > MOST.min(self.size / 4) || payload.is_phantom() {
            return None;
        }
        if self.made.is_none() {
            self.made = fabric.allocate_spare(self.size).ok().map(|region| (region, Places::new()));
            self.none = self.made.is_none();
        }
        let (region, places) = self.made.as_mut()?;
        let len = HEAD + payload.len();
        let (number, at) = places.take(len, self.size)?;
        Some((number | SHELVED, region.at(at), region.local.part(at, len)))
    }

    /// Its receiver has what an offer with this request named. `None`: there is nothing there.
    pub fn give(&mut self, request: u32) -> Option<()> {
        let (_, places) = self.made.as_mut()?;
        places.give(request & !SHELVED)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_do_not_overlap_and_all_come_back() {
        const SIZE: usize = 16 * STEP;
        // Numbers wrap on the way, as they travel and as they are counted.
        let mut places = Places { first: SHELVED - 500, ..Places::new() };
        let mut live: Vec<(u32, usize, usize)> = Vec::new();
        let (mut refused, mut around, mut word) = (0, 0, 1u64);
        for _ in 0..20_000 {
            word = word.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            let (choice, len) = (word >> 60, 1 + (word >> 40) as usize % (7 * STEP));
            if choice < 8 && !live.is_empty() {
                let (number, ..) = live.swap_remove((word >> 33) as usize % live.len());
                assert!(places.give(number & !SHELVED).is_some());
                assert!(places.give(number & !SHELVED).is_none(), "given back twice");
                continue;
            }
            let before = places.head;
            let Some((number, at)) = places.take(len, SIZE) else {
                refused += 1;
                assert!(!live.is_empty(), "an empty shelf has room for anything");
                continue;
            };
            around += usize::from(at < before);
            assert!(at + len <= SIZE);
            let apart = |&(_, other, n): &_| at + len <= other || other + n <= at;
            assert!(live.iter().all(apart), "{at} {len} among {live:?}");
            live.push((number, at, len));
        }
        assert!(refused > 100 && around > 100, "{refused} {around}");
        assert!(live.drain(..).all(|(number, ..)| places.give(number & !SHELVED).is_some()));
        assert!(places.taken.is_empty());
    }
}
