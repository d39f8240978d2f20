//! An arena as it is mapped here, and the keys that say what lies in one.

use crate::layout::{ARENA_MIN, STEP};
use crate::segment::Segment;
use std::cell::Cell;
use std::io;
use std::ptr::NonNull;
use weft_fabric::Key;

/// Keys of a [`weft_fabric::RemoteAddr`]: allocated here, the program's own, or exposed by the program but lying in
/// the segment (which `withdraw` leaves). Addresses are virtual ones of the owner.
pub(crate) const ALLOCATED: Key = Key([1, 0, 0]);
pub(crate) const OWN: Key = Key([2, 0, 0]);
pub(crate) const WITHIN: Key = Key([3, 0, 0]);

/// The arena of a rank, as it is mapped here: from `base` on `reserved` bytes, `open` of them to touch.
#[derive(Debug)]
pub struct MappedArena {
    pub(crate) base: Cell<NonNull<u8>>,
    pub(crate) open: Cell<u64>,
    pub(crate) reserved: Cell<u64>,
}

impl Default for MappedArena {
    /// Nothing is mapped.
    fn default() -> MappedArena {
        MappedArena {
            base: Cell::new(NonNull::dangling()),
            open: Cell::new(0),
            reserved: Cell::new(0),
        }
    }
}

impl MappedArena {
    /// Addresses for the arena of `rank`, which is the caller's: for all of it, or for what is to be had.
    pub fn of_own(segment: &Segment, rank: usize) -> io::Result<MappedArena> {
        let mut len = segment.shape().arena;
        loop {
            match segment.reserve(rank, len) {
                Ok(base) => {
                    let view = MappedArena::default();
                    view.base.set(base);
                    view.reserved.set(len);
                    return Ok(view);
                }
                Err(error) if len / 2 < ARENA_MIN => return Err(error),
                // A tool (valgrind) or a limit leaves less.
                Err(_) => len = (len / 2).next_multiple_of(STEP),
            }
        }
    }

    pub fn base(&self) -> NonNull<u8> {
        self.base.get()
    }

    pub fn reserved(&self) -> u64 {
        self.reserved.get()
    }

    /// Where `len` bytes from `offset` on lie, if they are open.
    #[inline(always)]
    pub fn get(&self, offset: u64, len: u64) -> Option<*mut u8> {
        let open = self.open.get();
        // SAFETY: inside the mapping.
        (offset <= open && len <= open - offset)
            .then(|| unsafe { self.base.get().as_ptr().add(offset as usize) })
    }

    /// Opens the first `len` bytes, a multiple of [`STEP`], of what is reserved.
    pub(crate) fn open_to(&self, segment: &Segment, len: u64) -> io::Result<()> {
        let open = self.open.get();
        assert!(open <= len && len <= self.reserved.get());
        if open < len {
            // SAFETY: inside what was reserved, in whole pages.
            unsafe { segment.open(self.base.get().add(open as usize), len - open) }?;
            self.open.set(len);
        }
        Ok(())
    }
}

/// Whether addresses of this key lie in the owner's arena.
#[inline(always)]
pub fn within_arena(key: Key) -> bool {
    key == ALLOCATED || key == WITHIN
}
