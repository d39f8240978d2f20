//! An arena in the form in which this process maps it, and the keys that distinguish addresses in arenas from other addresses.

use crate::layout::{ARENA_MIN, STEP};
use crate::segment::Segment;
use std::cell::Cell;
use std::io;
use std::ptr::NonNull;
use weft_fabric::{Fault, Key};

/// Keys of a [`weft_fabric::RemoteAddr`]: memory that was allocated here, memory of the program itself, or memory that the
/// program exposed but that lies in an arena (`withdraw` does not free it). Addresses are virtual addresses of the owner.
pub(crate) const ALLOCATED: Key = Key([1, 0, 0]);
pub(crate) const OWN: Key = Key([2, 0, 0]);
pub(crate) const WITHIN: Key = Key([3, 0, 0]);

/// The arena of a rank as this process maps it: `reserved` bytes from `base` on, of which the first `open` bytes may be
/// touched.
#[derive(Debug)]
pub struct MappedArena {
    pub(crate) base: Cell<NonNull<u8>>,
    pub(crate) open: Cell<u64>,
    pub(crate) reserved: Cell<u64>,
}

impl Default for MappedArena {
    /// Returns a view that maps nothing.
    fn default() -> MappedArena {
        MappedArena {
            base: Cell::new(NonNull::dangling()),
            open: Cell::new(0),
            reserved: Cell::new(0),
        }
    }
}

impl MappedArena {
    /// Reserves addresses for the arena of `rank`, which is the caller: for the whole arena, or for as much of it as possible.
    pub fn of_own(segment: &Segment, rank: usize) -> io::Result<MappedArena> {
        let mut len = segment.arena_len();
        loop {
            match segment.reserve(rank, len) {
                Ok(base) => {
                    let view = MappedArena::default();
                    view.base.set(base);
                    view.reserved.set(len);
                    return Ok(view);
                }
                Err(error) if len / 2 < ARENA_MIN => return Err(error),
                // A tool (valgrind) or a limit may leave fewer addresses. Tries again with half of them.
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

    /// Returns the address of `len` bytes from `offset` on, if they are open.
    #[inline(always)]
    pub fn get(&self, offset: u64, len: u64) -> Option<*mut u8> {
        let open = self.open.get();
        // SAFETY: `offset <= open`, so the result lies inside the mapping, or at the end of its open part.
        (offset <= open && len <= open - offset)
            .then(|| unsafe { self.base.get().as_ptr().add(offset as usize) })
    }

    /// Opens the first `len` bytes, a multiple of [`STEP`], of the reserved addresses.
    pub(crate) fn open_to(&self, segment: &Segment, len: u64) -> io::Result<()> {
        let open = self.open.get();
        assert!(open <= len && len <= self.reserved.get());
        if open < len {
            // SAFETY: the range lies within the reserved addresses (`len <= reserved`). Its ends are multiples of STEP, so it
            // has whole pages.
            unsafe { segment.open(self.base.get().add(open as usize), len - open) }?;
            self.open.set(len);
        }
        Ok(())
    }
}

/// Returns true if addresses of this key lie in the owner's arena.
#[inline(always)]
pub fn within_arena(key: Key) -> bool {
    key == ALLOCATED || key == WITHIN
}

/// Returns the fault of a system call on memory.
pub(crate) fn memory_fault(what: &'static str, error: &io::Error) -> Fault {
    Fault::system(what, error.raw_os_error().unwrap_or(0))
}
