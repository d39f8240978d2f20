//! A rank's own arena: allocation in the arena, and the memory behind it.

use crate::arena::{ArenaSpan, ShmArena};
use crate::commit::CommitAccount;
use crate::layout::STEP;
use crate::pages::{PAGE, PageRanges};
use crate::segment::Segment;
use crate::sync::Ordering;
use crate::view::{MappedArena, memory_fault};
use std::cell::RefCell;
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use weft_bootstrap::calls::once;
use weft_fabric::{Fault, Sge};

/// Minimum size, in bytes, of a freed block that goes back to the system at once. Smaller blocks are kept, because the first touch
/// of a page costs a microsecond.
const KEEP: u64 = 16 << 20;

/// Divisor: spare memory may take 1/[`SPARE`] of the remaining memory.
const SPARE: u64 = 8;

/// The arena of this rank. Its methods get the mapped arena as an argument, because the mapped arenas of this rank and of its peers
/// are kept together.
pub(crate) struct OwnArena {
    segment: Arc<Segment>,
    rank: usize,
    spans: RefCell<ShmArena>,
    commits: CommitAccount,
}

impl OwnArena {
    /// Creates the arena of `rank`. Nothing is allocated in it.
    pub fn new(segment: Arc<Segment>, rank: usize, view: &MappedArena) -> OwnArena {
        let spans = RefCell::new(ShmArena::new(view.reserved()));
        OwnArena { segment, rank, spans, commits: CommitAccount::default() }
    }

    /// Returns the number of allocated bytes.
    pub fn used(&self) -> u64 {
        self.spans.borrow().used()
    }

    /// Allocates `len` bytes, filled with zeros.
    pub fn allocate(&self, view: &MappedArena, len: usize) -> Result<Sge, Fault> {
        self.allocate_part(view, len, 1)
    }

    /// Allocates `len` bytes, filled with zeros, if fresh pages for them take at most 1/[`SPARE`] of the remaining memory.
    pub fn allocate_spare(&self, view: &MappedArena, len: usize) -> Result<Sge, Fault> {
        self.allocate_part(view, len, SPARE)
    }

    fn allocate_part(&self, view: &MappedArena, len: usize, parts: u64) -> Result<Sge, Fault> {
        let mut spans = self.spans.borrow_mut();
        let Some(span) = spans.allocate(len as u64) else {
            let space = spans.len() - spans.used();
            return Err(self.commits.no_room(&self.segment, len as u64, space));
        };
        if let Err(fault) = self.back(view, &span, parts) {
            spans.free(span.offset, len as u64);
            return Err(fault);
        }
        spans.pay(&span);
        let base = view.base();
        // SAFETY: the span lies in the arena of this rank and was opened by `back`. The allocator gives it to nobody else until
        // it is freed.
        Ok(unsafe {
            for used in &span.used {
                let at = base.as_ptr().add(used.start as usize);
                std::ptr::write_bytes(at, 0, (used.end - used.start) as usize);
            }
            Sge::new(base.as_ptr().add(span.offset as usize), len)
        })
    }

    /// Frees the allocated `len` bytes at `offset`.
    pub fn free(&self, offset: u64, len: u64) {
        let mut spans = self.spans.borrow_mut();
        let len = spans.free(offset, len);
        if len >= KEEP {
            let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
            // If the system does not take the memory back, it stays paid for.
            let given = spans.unpay(offset, len, |range| self.fallocate(mode, range).is_ok());
            self.commits.uncommit(&self.segment, given);
        }
    }

    /// Makes sure that a span can be touched. Fails if the memory that must be committed for the span's fresh pages is more than
    /// 1/`parts` of the remaining memory.
    fn back(&self, view: &MappedArena, span: &ArenaSpan, parts: u64) -> Result<(), Fault> {
        let end = span.offset + span.len;
        self.open(view, end)?;
        self.commits.commit(&self.segment, span.new, parts)?;
        if span.new > 0
            && self.commits.fills()
            && self.fallocate(0, PageRanges::around(span.offset..end)).is_err()
        {
            self.commits.uncommit(&self.segment, span.new);
            return Err(self.commits.no_room(&self.segment, span.new, 0));
        }
        Ok(())
    }

    /// Opens the arena up to `end` at least, and reports this to the peers ([`crate::reach`]).
    fn open(&self, view: &MappedArena, end: u64) -> Result<(), Fault> {
        if view.get(0, end).is_some() {
            return Ok(());
        }
        let goal = end.next_multiple_of(STEP);
        view.open_to(&self.segment, goal)
            .map_err(|error| memory_fault("mprotect of the arena", &error))?;
        self.segment.control(self.rank).facts.0.opened.store(goal, Ordering::Release);
        Ok(())
    }

    /// Calls fallocate(2) for a range of pages: reserves them, or gives them back. The range is split into pieces if signals
    /// interrupt the call. When the call is interrupted in the middle, the system may undo the whole call, and a long call would
    /// never finish.
    fn fallocate(&self, mode: i32, range: Range<u64>) -> Result<(), Fault> {
        let (mut at, mut piece) = (range.start, range.end - range.start);
        while at < range.end {
            let now = piece.min(range.end - at);
            match self.fallocate_once(mode, at, now) {
                Ok(()) => {
                    at += now;
                    piece = piece.saturating_mul(2);
                }
                Err(libc::EINTR) => piece = (now / 2).next_multiple_of(PAGE).max(PAGE),
                Err(errno) => {
                    // Neighbours may use the rest of the first page, so this page stays.
                    if mode == 0 && at > range.start + PAGE {
                        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
                        let _ = self.fallocate(mode, range.start + PAGE..at);
                    }
                    return Err(Fault::system("reserving shared memory", errno));
                }
            }
        }
        Ok(())
    }

    /// Calls fallocate(2) once. Returns the system's error number if the call fails.
    fn fallocate_once(&self, mode: i32, offset: u64, len: u64) -> Result<(), i32> {
        let start = self.segment.arena_of(self.rank) + offset;
        let (offset, len) = (start as libc::off_t, len as libc::off_t);
        let fd = self.segment.files().arenas.as_raw_fd();
        // SAFETY: fallocate(2) takes no pointers; the descriptor is open. The range lies in the arena of this rank, inside the
        // file's size.
        let result = once(|| unsafe { libc::fallocate(fd, mode, offset, len) });
        result.map(drop).map_err(|error| error.raw_os_error().unwrap_or(0))
    }
}
