//! One-sided operations and the memory that they act on.

use crate::arena::{ALIGN, ArenaSpan};
use crate::cma::{self, CopyDirection};
use crate::pages::{PAGE, PageRanges};
use crate::shm::Shm;
use crate::sync::{AtomicU64, Ordering};
use crate::view::{ALLOCATED, OWN, WITHIN};
use std::ops::Range;
use std::os::fd::AsRawFd;
use std::ptr::NonNull;
use weft_bootstrap::calls::once;
use weft_fabric::{Fault, FaultCause, Flag, Region, RemoteAddr, RemoteFlag, Sge};
use weft_intranode::Lines;

/// Minimum size, in bytes, of freed memory that goes back to the system at once. Smaller memory is kept, because the first
/// touch of a page costs a microsecond.
const KEEP: u64 = 16 << 20;

/// Share of the remaining memory that spare memory may take: one byte of this number.
const SPARE: u64 = 8;

/// The target of an address.
enum Location {
    /// Memory that is mapped in this process.
    Here(*mut u8),
    /// An address in the peer's process.
    There(u64),
}

impl Shm {
    /// Calls fallocate(2) for a range of pages of the own arena: reserves them, or gives them back. The range is split into
    /// pieces if signals interrupt the call. When it is interrupted in the middle, the system may undo the whole call, and a
    /// long call would never finish.
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
                    // Neighbours may use the rest of the first page, so it stays.
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

    /// Calls fallocate(2) once. The error is the system's number.
    fn fallocate_once(&self, mode: i32, offset: u64, len: u64) -> Result<(), i32> {
        let start = self.segment.shape().arena_of(self.rank) + offset;
        let (offset, len) = (start as libc::off_t, len as libc::off_t);
        let fd = self.segment.files().arenas.as_raw_fd();
        // SAFETY: fallocate(2) takes no pointers; the descriptor is open. The range lies in the arena of this rank, inside the
        // file's size.
        let result = once(|| unsafe { libc::fallocate(fd, mode, offset, len) });
        result.map(drop).map_err(|error| error.raw_os_error().unwrap_or(0))
    }

    pub(crate) fn allocate_region(&self, len: usize) -> Result<Region, Fault> {
        let mut arena = self.arena.borrow_mut();
        let Some(span) = arena.allocate(len as u64) else {
            return Err(self.commits.no_room(
                &self.segment,
                len as u64,
                arena.len() - arena.used(),
            ));
        };
        if let Err(fault) = self.back(&span) {
            arena.free(span.offset, len as u64);
            return Err(fault);
        }
        arena.pay(&span);
        let base = self.peers[self.rank].view.base();
        // SAFETY: the span lies in the arena of this rank and was opened by `back`. The allocator gives it to nobody else until
        // it is freed.
        let local = unsafe {
            for used in &span.used {
                let at = base.as_ptr().add(used.start as usize);
                std::ptr::write_bytes(at, 0, (used.end - used.start) as usize);
            }
            Sge::new(base.as_ptr().add(span.offset as usize), len)
        };
        let addr = local.ptr().addr() as u64;
        Ok(Region { local, remote: RemoteAddr { key: ALLOCATED, addr } })
    }

    /// Makes sure that a span can be touched.
    fn back(&self, span: &ArenaSpan) -> Result<(), Fault> {
        let end = span.offset + span.len;
        self.open_own(end)?;
        self.commits.commit(&self.segment, span.new)?;
        if span.new > 0
            && self.commits.fills()
            && self.fallocate(0, PageRanges::around(span.offset..end)).is_err()
        {
            self.commits.uncommit(&self.segment, span.new);
            return Err(self.commits.no_room(&self.segment, span.new, 0));
        }
        Ok(())
    }

    /// Allocates a region; refused if it takes more than 1/[`SPARE`] of what is left.
    pub(crate) fn allocate_spare_region(&self, len: usize) -> Result<Region, Fault> {
        let (asked, left) = (len as u64, self.commits.spare(&self.segment) / SPARE);
        if left < asked {
            let bound = "what may be used of the node's memory without need".to_owned();
            return Err(FaultCause::NoRoom { asked, left, memory: true, bound }.into());
        }
        self.allocate_region(len)
    }

    pub(crate) fn is_within(&self, memory: Sge) -> bool {
        let view = &self.peers[self.rank].view;
        let offset = memory.ptr().addr().checked_sub(view.base().addr().get());
        offset.is_some_and(|offset| (offset as u64) < view.reserved())
    }

    pub(crate) fn expose_region(&self, memory: Sge) -> Region {
        let key = if self.is_within(memory) { WITHIN } else { OWN };
        let addr = memory.ptr().expose_provenance() as u64;
        Region { local: memory, remote: RemoteAddr { key, addr } }
    }

    pub(crate) fn withdraw_region(&self, region: Region) {
        if region.remote.key != ALLOCATED {
            return;
        }
        let offset = region.remote.addr - self.peers[self.rank].base;
        let mut arena = self.arena.borrow_mut();
        let len = arena.free(offset, region.local.len() as u64);
        if len >= KEEP {
            let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
            // If the system does not take the memory back, it stays paid for.
            let given = arena.unpay(offset, len, |range| self.fallocate(mode, range).is_ok());
            self.commits.uncommit(&self.segment, given);
        }
    }

    pub(crate) fn flag_in(&self, region: &Region, offset: usize, waking: bool) -> Flag {
        assert_eq!(region.remote.key, ALLOCATED, "a flag outside of allocated memory");
        let word = region.local.part(offset, 8).ptr().cast::<AtomicU64>();
        assert!(word.is_aligned(), "a flag at offset {offset}, which is not a multiple of 8");
        let word = NonNull::new(word).expect("part of the segment");
        // SAFETY: the word lies in the segment's mapping, which stays as long as the counters of this fabric.
        let local = unsafe { self.counters.adopt(word) };
        Flag { local, remote: RemoteFlag { at: region.at(offset), waking } }
    }

    /// Finds the location of `len` bytes at `at` of `peer`.
    #[inline]
    fn place(&self, peer: usize, at: RemoteAddr, len: usize) -> Result<Location, Fault> {
        match at.key {
            ALLOCATED | WITHIN => {
                let to = self.peers.get(peer).ok_or_else(|| Fault::lost(peer))?;
                let offset = at.addr.wrapping_sub(to.base);
                let open = to.view.get(offset, len as u64);
                let open = open.map_or_else(|| self.open_of(peer, offset, len as u64), Ok);
                Ok(Location::Here(open?))
            }
            OWN if peer == self.rank => {
                Ok(Location::Here(std::ptr::with_exposed_provenance_mut(at.addr as usize)))
            }
            OWN => Ok(Location::There(at.addr)),
            _ => Err(Fault::corrupt(peer, "memory key")),
        }
    }

    /// Returns `len` bytes at `at` of `peer` as this process sees them. All ranks see memory that lies in the arenas.
    #[inline]
    pub(crate) fn view(&self, peer: usize, at: RemoteAddr, len: usize) -> Option<Sge> {
        match self.place(peer, at, len).ok()? {
            // SAFETY: `place` checked that the bytes lie in the peer's arena, which is mapped as long as `self`; the caller
            // uses them only while the peer keeps them. Other locations are memory of this program, which it exposed.
            Location::Here(at) => Some(unsafe { Sge::new(at, len) }),
            Location::There(_) => None,
        }
    }

    /// Returns the aligned word at `at` of `peer`, for flags and atomics.
    pub(crate) fn word(&self, peer: usize, at: RemoteAddr) -> Result<&AtomicU64, Fault> {
        Ok(&self.words_at(peer, at, 1)?[0])
    }

    /// Returns `count` aligned words from `at` of `peer` on.
    pub(crate) fn words_at(
        &self,
        peer: usize,
        at: RemoteAddr,
        count: usize,
    ) -> Result<&[AtomicU64], Fault> {
        if !at.addr.is_multiple_of(8) {
            return Err(Fault::corrupt(peer, "address of a word"));
        }
        if at.key == OWN {
            let what = "do atomics on memory that it did not allocate";
            return Err(Fault::unsupported(peer, what));
        }
        match self.place(peer, at, 8 * count)? {
            // SAFETY: `place` checked that the words lie inside the mapping, which lives as long as `self`. The words are
            // aligned, and consist of atomics.
            Location::Here(at) => Ok(unsafe { std::slice::from_raw_parts(at.cast(), count) }),
            Location::There(_) => Err(Fault::corrupt(peer, "address of a word")),
        }
    }

    pub(crate) fn put(&self, peer: usize, src: Sge, dst: RemoteAddr) -> Result<(), Fault> {
        if src.is_empty() {
            return Ok(());
        }
        match self.place(peer, dst, src.len())? {
            Location::Here(at) => {
                // SAFETY: `place` checked that the bytes lie in the peer's arena, or they are memory of this program, which it
                // exposed.
                unsafe { Sge::new(at, src.len()) }.want_lines(&self.copies);
                // SAFETY: `at` is writable for `src.len()` bytes: they lie in the peer's arena or are exposed. `src` is
                // readable: the caller of `Sge::new` promised it. The two may overlap.
                unsafe { std::ptr::copy(src.ptr(), at, src.len()) };
                Ok(())
            }
            Location::There(at) => self.attach(CopyDirection::Write, peer, src, at),
        }
    }

    pub(crate) fn get(&self, peer: usize, dst: Sge, src: RemoteAddr) -> Result<(), Fault> {
        if dst.is_empty() {
            return Ok(());
        }
        match self.place(peer, src, dst.len())? {
            Location::Here(at) => {
                // SAFETY: `at` is readable for `dst.len()` bytes: they lie in the peer's arena or are exposed. `dst` is
                // writable: the caller of `Sge::new` promised it. The two may overlap.
                unsafe { std::ptr::copy(at, dst.ptr(), dst.len()) };
                Ok(())
            }
            Location::There(at) => self.attach(CopyDirection::Read, peer, dst, at),
        }
    }

    fn attach(
        &self,
        way: CopyDirection,
        peer: usize,
        local: Sge,
        remote: u64,
    ) -> Result<(), Fault> {
        if !self.reaches(peer) {
            let what = "reach the program's memory";
            return Err(Fault::unsupported(peer, what));
        }
        let result = cma::transfer(way, self.pid(peer), peer, local, remote);
        if result.as_ref().is_err_and(|f| matches!(f.cause(), FaultCause::Unsupported { .. })) {
            self.peers[peer].direct.set(Some(false));
        }
        result
    }

    fn pid(&self, peer: usize) -> i32 {
        self.peers[peer].control().facts.0.pid.load(Ordering::Relaxed) as i32
    }

    /// Returns true if the program's memory at `peer` can be reached. The first call finds it out.
    pub(crate) fn reaches(&self, peer: usize) -> bool {
        let known = &self.peers[peer].direct;
        if let Some(direct) = known.get() {
            return direct;
        }
        let direct = peer == self.rank || self.options.cma && self.probe(peer);
        known.set(Some(direct));
        direct
    }

    /// Reads the peer's proving word. This succeeds only if the system permits it and the process that has this number (in this
    /// process's name space) is the peer.
    fn probe(&self, peer: usize) -> bool {
        let facts = &self.peers[peer].control().facts.0;
        let mut found = 0u64;
        // SAFETY: `found` has 8 bytes and lives until the call returns.
        let local = unsafe { Sge::new((&raw mut found).cast(), 8) };
        let at = facts.probe_at.load(Ordering::Relaxed);
        cma::transfer(CopyDirection::Read, self.pid(peer), peer, local, at).is_ok()
            && found == facts.probe.load(Ordering::Relaxed)
    }
}

const _: () = assert!(ALIGN.is_multiple_of(64) && PAGE.is_multiple_of(ALIGN));
