//! Payloads set down where the receiver's processor sees them: between eager messages and those that are
//! fetched from the program's memory.
//!
//! ```text
//!   sender:    Rts(place) ──>   payload ──copy──> shelf        the send is over: the buffer is free
//!   receiver:                   shelf ──copy──> buffer         and follows ([`weft_intranode::pipelined`]),
//!                                                              <── Fin: the place is free
//! ```
//! Each end copies once, at the same time, and no system call is needed; to fetch from the program's memory takes one
//! a message, which costs more than a second copy of a payload of this size. A receiver that looked too early and
//! did something else is told by Whole.
//!
//! A line that another processor has read a moment ago is slow to write, unless that took it to itself. So there are two
//! boards:
//!
//! ```text
//!   short payloads     NARROW bytes, which stay in the caches      the receiver takes the lines
//!   the others         the rest, more than the caches have         they are out of the receiver's by then
//!                      between far caches a few payloads' worth    the receiver takes the lines
//!                      so, too, where ranks share processors       they are in the caches that it comes to
//! ```
//! (Measured, half a round trip of 16 KiB: 1.03 us for 1.2 near, 3.2 for 3.9 far; of 64 KiB far 7 for 10. To take the lines
//! of 64 KiB costs as much as it brings near. A scatter of 256 KiB to 4 ranks on 2 processors: 32 us for 50.) Places are
//! taken around a board in turn, and given back in any order.
//!
//! Not put down is what many wait for: the sender would copy all of it alone. A sender that serves several says
//! [`crate::Mode::Fetched`], and receivers that can fetch what is not sent at once, beside each other (a scatter of 64 KiB to
//! 4 ranks on 2 processors: 8 us for 12, of 256 KiB 38 for 67).
//!
//! Memory: one shelf of [`crate::Limits::shelf`] bytes a process, made by the first payload that needs it, only where
//! memory of the node is plenty. Without it, or while it is full, payloads are fetched.

use crate::written;
use std::collections::VecDeque;
use weft_fabric::{Copies, Fabric, Region, RemoteAddr, Sge};
use weft_intranode::pipelined::{HEAD, SHORT};

/// Payloads up to here are sent at once, where their receiver looks anyway, in bytes.
pub const LEAST: usize = 8 << 10;

/// Payloads above are fetched or copied by both ends, in bytes.
pub const MOST: usize = 1 << 20;

/// Where so many ranks and more take turns on a processor, payloads above this are fetched, in bytes: what is put down is
/// out of the caches when its receiver's turn comes (measured, 8 ranks on 2 processors, a gather of 256 KiB: 193 us for
/// 139; with 4 ranks 62 for 57, and a broadcast 46 for 53).
const CROWD: u32 = 3;
const CROWDED_MOST: usize = 128 << 10;

/// Where pages are dear ([`Copies::pages_are_dear`]) payloads up to here are put down all the same (measured on Zen 4, a scatter to 4
/// ranks on 2 processors, us, fetched and put down: 64 KiB 15 and 9, 256 KiB 46 and 32, 512 KiB 90 and 92; to 8 ranks 64 KiB
/// 43 and 25, 128 KiB 59 and 61; a gather of 128 KiB from 4 ranks 34, written by them, and 16).
const DEAR_MOST: usize = 256 << 10;

/// Between caches that are far from each other payloads above this are fetched, in bytes: the second copy is the one that
/// costs (measured, half a round trip: 32 KiB in 2.6 us for 4.9, 256 KiB in 8.7 for 22).
pub const FAR_MOST: usize = 16 << 10;

/// The same of what is sent in [`crate::Mode::Relayed`] (measured, a broadcast whose root changes: 64 KiB in 13.8 us for 8.2,
/// 256 KiB in 15 for 22).
pub const FAR_RELAYED: usize = 128 << 10;

/// Payloads above rouse the receiver's helper, which copies while the program computes, in bytes.
pub const QUIET: usize = 256 << 10;

/// Bytes of a shelf, if nobody says otherwise.
pub const USUAL: usize = 5 << 20;

/// Places begin at multiples of this; payloads of a page's multiple would otherwise all begin at the same
/// place of the caches.
const STEP: usize = 256;

/// Bytes of the board for short payloads, of a shelf that has some left for others.
const NARROW: usize = 256 << 10;

/// Of the wide board, payloads' worth that are used between far caches and where ranks share processors (measured, 4 ranks on
/// 2 processors, bcast of 64 KiB: with 4 of them 15 us, with 12 7: ranks go ahead of each other).
const FEW: usize = 12;

/// Payloads on a board at once.
const PLACES: usize = 1 << 10;

/// In an offer's request: a place on the shelf, and no request; and that it is on the narrow board.
const SHELVED: u32 = 1 << 31;
const ON_NARROW: u32 = 1 << 30;
const NUMBER: u32 = ON_NARROW - 1;

/// Whether what is offered lies on a shelf: it is there to be copied, and its sender waits for nothing.
pub fn is_shelved(request: u32) -> bool {
    request & SHELVED != 0
}

/// Which bytes of a board are taken.
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

/// A process's shelf.
pub struct Shelf {
    size: usize,
    made: Option<Boards>,
    /// There is no memory for one.
    none: bool,
    /// [`crate::Limits::ranks_each`].
    ranks_each: u32,
}

/// The memory: the wide board, then the narrow one.
struct Boards {
    region: Region,
    narrow: Places,
    wide: Places,
    /// Bytes of both.
    sizes: (usize, usize),
}

impl Boards {
    fn new(region: Region, size: usize) -> Boards {
        let narrow = if size >= 4 * NARROW { NARROW } else { 0 };
        let sizes = (narrow, (size - narrow) / STEP * STEP);
        Boards { region, narrow: Places::new(), wide: Places::new(), sizes }
    }

    /// The number of a place of `len` bytes with the board's bit, and where it begins; of the wide board in a `few`
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

impl Shelf {
    /// One of `size` bytes, made when it is needed; none if that is 0.
    pub fn new(size: usize, ranks_each: u32) -> Shelf {
        Shelf { size, made: None, none: size == 0, ranks_each }
    }

    /// Whether `len` bytes for a receiver that `can_fetch` them are better fetched; between far caches, from more than
    /// `far_most` on.
    pub fn is_crowded(
        &self,
        copies: &Copies,
        len: usize,
        can_fetch: bool,
        far_most: usize,
    ) -> bool {
        can_fetch
            && (self.is_out_of_caches(len)
                || self.ranks_each == 1 && len > far_most && copies.is_still_far())
    }

    /// Whether `len` bytes that are sent in [`crate::Mode::Fetched`] are left for their receiver to fetch: all that is not sent
    /// `at_once`, but where that costs more than to copy them.
    pub fn is_fetched(&self, copies: &Copies, len: usize, at_once: usize) -> bool {
        len > at_once && self.is_moved_by_system(copies, len)
    }

    /// The same of what is sent in [`crate::Mode::Written`].
    pub fn is_written(&self, copies: &Copies, len: usize) -> bool {
        len > written::LEAST && self.is_moved_by_system(copies, len)
    }

    fn is_moved_by_system(&self, copies: &Copies, len: usize) -> bool {
        len > DEAR_MOST || self.is_out_of_caches(len) || !copies.pages_are_dear()
    }

    /// Whether `len` bytes that are put down are out of the caches when their receiver's turn comes.
    fn is_out_of_caches(&self, len: usize) -> bool {
        self.ranks_each >= CROWD && len > CROWDED_MOST
    }

    /// A free place for `payload`, where peers of the node see what is poured: what an offer says as its request,
    /// where it is, and the place. `None`: there is none.
    pub fn place<F: Fabric>(&mut self, fabric: &F, payload: Sge) -> Option<(u32, RemoteAddr, Sge)> {
        if self.none || payload.len() > MOST.min(self.size / 4) || payload.is_phantom() {
            return None;
        }
        if self.made.is_none() {
            let region = fabric.allocate_spare(self.size).ok();
            self.made = region.map(|region| Boards::new(region, self.size));
            self.none = self.made.is_none();
        }
        let boards = self.made.as_mut()?;
        let len = HEAD + payload.len();
        let (number, at) = boards.take(len, self.ranks_each > 1 || fabric.copies().is_far())?;
        let region = boards.region;
        Some((number | SHELVED, region.at(at), region.local.part(at, len)))
    }

    /// Its receiver has what an offer with this request named. `None`: there is nothing there.
    pub fn give(&mut self, request: u32) -> Option<()> {
        let boards = self.made.as_mut()?;
        let narrow = request & ON_NARROW != 0;
        if narrow { &mut boards.narrow } else { &mut boards.wide }.give(request)
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
        assert!(live.drain(..).all(|(number, ..)| places.give(number).is_some()));
        assert!(places.taken.is_empty());
    }
}
