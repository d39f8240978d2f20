//! The memory of a job: two sparse anonymous files. The first file holds the data that ranks always need of each other, and every
//! rank maps the whole file. The second file holds the arenas, and each rank maps only the parts that it reaches
//! ([`crate::reach`]). The files have no name, so nothing is left behind when ranks are killed.

use crate::control::{MAGIC, RankControl, SegmentHeader};
use crate::layout::{RingShape, SegmentShape};
use crate::multicast::{MulticastSlot, SLOTS};
use crate::ring::MessageRing;
use crate::sync::{AtomicU64, Ordering};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::ptr::{NonNull, slice_from_raw_parts};
use std::sync::{Arc, Mutex, PoisonError};
use weft_bootstrap::calls::repeat_c;
use weft_bootstrap::memory;
use weft_fabric::Region;

/// A refusal of the system, with the request that was refused.
#[derive(Debug)]
pub struct SegmentRefusal {
    pub what: &'static str,
    pub error: io::Error,
}

fn refused(what: &'static str) -> impl FnOnce(io::Error) -> SegmentRefusal {
    move |error| SegmentRefusal { what, error }
}

/// The two files of a job.
#[derive(Debug)]
pub struct Files {
    pub segment: File,
    pub arenas: File,
}

/// The mapped segment, and the mapped parts of the arenas.
#[derive(Debug)]
pub struct Segment {
    base: NonNull<u8>,
    shape: SegmentShape,
    /// Size of the segment in bytes, as computed from the shape.
    total: u64,
    files: Arc<Files>,
    /// The lane of which this value maps the part, and the segment of the first lane; `None` if this is the first lane.
    lane: usize,
    first: Option<Arc<Segment>>,
    /// Mappings of arenas, or of parts of them. They are unmapped only at the end.
    arenas: Mutex<Vec<Mapping>>,
}

/// Mapped memory, which is unmapped as a whole.
#[derive(Debug, Clone, Copy)]
struct Mapping {
    base: NonNull<u8>,
    len: usize,
}

impl Mapping {
    /// Maps `len` bytes of `file` from `offset` on, at an address that the kernel chooses.
    fn new(file: &File, offset: u64, len: u64) -> io::Result<Mapping> {
        // SAFETY: without MAP_FIXED, mmap(2) makes a new mapping that replaces nothing.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                len as usize,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_NORESERVE,
                file.as_raw_fd(),
                offset as libc::off_t,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // Without this call, core dumps would contain the memory once for each rank.
        // SAFETY: `base` and `len` are the mapping made above, and MADV_DONTDUMP does not change its content.
        unsafe { libc::madvise(base, len as usize, libc::MADV_DONTDUMP) };
        let base = NonNull::new(base.cast()).expect("mmap does not map address 0");
        Ok(Mapping { base, len: len as usize })
    }

    /// Maps a part of `file` without access, at a multiple of [`Region::ALIGN_SEEN`].
    fn aligned(file: &File, offset: u64, len: u64) -> io::Result<Mapping> {
        let len = len as usize;
        let around = Mapping::nothing(len + Region::ALIGN_SEEN)?;
        let skip = around.base.as_ptr().align_offset(Region::ALIGN_SEEN);
        // SAFETY: `skip` is less than ALIGN_SEEN, so the result lies within the mapping made above.
        let base = unsafe { around.base.add(skip) };
        let flags = libc::MAP_SHARED | libc::MAP_NORESERVE | libc::MAP_FIXED;
        let (fd, at) = (file.as_raw_fd(), base.as_ptr().cast());
        // SAFETY: `len` bytes at `at` are a part of the mapping made above, to which no reference exists, so MAP_FIXED replaces
        // nothing else.
        let there =
            unsafe { libc::mmap(at, len, libc::PROT_NONE, flags, fd, offset as libc::off_t) };
        if there == libc::MAP_FAILED {
            let error = io::Error::last_os_error();
            around.part(0, around.len).unmap();
            return Err(error);
        }
        around.part(0, skip).unmap();
        around.part(skip + len, around.len - skip - len).unmap();
        // SAFETY: `at` and `len` are the mapping made above, and MADV_DONTDUMP does not change its content.
        unsafe { libc::madvise(at, len, libc::MADV_DONTDUMP) };
        Ok(Mapping { base, len })
    }

    /// Reserves addresses without memory.
    fn nothing(len: usize) -> io::Result<Mapping> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: without MAP_FIXED, mmap(2) makes a new mapping that replaces nothing.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), len, libc::PROT_NONE, flags, -1, 0) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let base = NonNull::new(base.cast()).expect("mmap does not map address 0");
        Ok(Mapping { base, len })
    }

    /// Returns the part of `len` bytes from `offset` on. Both numbers are multiples of the page size.
    fn part(&self, offset: usize, len: usize) -> Mapping {
        assert!(offset <= self.len && len <= self.len - offset);
        // SAFETY: `offset <= self.len`, so the result lies within the mapping, or at its end.
        Mapping { base: unsafe { self.base.add(offset) }, len }
    }

    /// Unmaps the memory, to which no reference exists any more.
    fn unmap(&self) {
        if self.len > 0 {
            // SAFETY: the mapping belongs to this value, and the caller guarantees that no reference to it exists.
            unsafe { libc::munmap(self.base.as_ptr().cast(), self.len) };
        }
    }
}

// SAFETY: the mapping belongs to no thread; all access to it goes through atomics and raw copies.
unsafe impl Send for Segment {}
// SAFETY: all access to the mapping goes through atomics and raw copies, from any thread.
unsafe impl Sync for Segment {}

/// Creates files with the sizes that `shape` gives.
pub fn create(shape: &SegmentShape) -> Result<Files, SegmentRefusal> {
    Ok(Files { segment: sealed(shape.segments())?, arenas: sealed(shape.arenas())? })
}

/// Creates a file of `len` bytes, whose size cannot change any more.
fn sealed(len: u64) -> Result<File, SegmentRefusal> {
    let file = File::from(memory::file(c"weft").map_err(refused("making memory"))?);
    file.set_len(len).map_err(refused("ftruncate of the shared segment"))?;
    let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
    // SAFETY: F_ADD_SEALS takes no pointer, and the descriptor is open. If a kernel refuses seals, the file can be used without
    // them.
    unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) };
    Ok(file)
}

/// Returns a random number that no other process can guess.
pub fn random() -> u64 {
    let mut bytes = [0; 8];
    // SAFETY: `bytes` is writable for its length, as getrandom(2) requires. If the call fails, names and proofs are weaker, but
    // still not wrong.
    let n = repeat_c(|| unsafe { libc::getrandom(bytes.as_mut_ptr().cast(), bytes.len(), 0) });
    let fallback = (&raw const bytes).addr() as u64 ^ u64::from(std::process::id());
    if n.is_ok_and(|n| n == 8) { u64::from_ne_bytes(bytes) } else { fallback }
}

impl Segment {
    /// Maps the segment of `files`, which [`create`] made for `shape` (perhaps in another process).
    pub fn map(files: Files, shape: SegmentShape) -> Result<Segment, SegmentRefusal> {
        for (file, least) in [(&files.segment, shape.segments()), (&files.arenas, shape.arenas())] {
            let len = file.metadata().map_err(refused("fstat of the shared segment"))?.len();
            if len < least {
                let error = io::Error::other(format!("it has {len} bytes instead of {least}"));
                return Err(SegmentRefusal { what: "checking the shared segment", error });
            }
        }
        Segment::map_lane(Arc::new(files), shape, 0, None)
    }

    /// Maps the part of another lane in the files of `self`, which is the segment of the first lane.
    pub fn lane(self: &Arc<Segment>, lane: usize) -> Result<Segment, SegmentRefusal> {
        assert!(lane < self.shape.lanes && self.first.is_none());
        Segment::map_lane(self.files.clone(), self.shape, lane, Some(self.clone()))
    }

    fn map_lane(
        files: Arc<Files>,
        shape: SegmentShape,
        lane: usize,
        first: Option<Arc<Segment>>,
    ) -> Result<Segment, SegmentRefusal> {
        let total = shape.segment();
        let mapping = Mapping::new(&files.segment, shape.lane_at(lane), total)
            .map_err(refused("mmap of the shared segment"))?;
        let base = mapping.base;
        Ok(Segment { base, total, shape, files, lane, first, arenas: Mutex::default() })
    }

    /// Returns the segment of the first lane, in which the doorbells of all lanes are.
    pub fn of_process(self: &Arc<Segment>) -> &Arc<Segment> {
        self.first.as_ref().unwrap_or(self)
    }

    /// Returns the number of bytes that were committed in the arenas of all lanes.
    pub fn committed(&self) -> &AtomicU64 {
        let first = self.first.as_deref().unwrap_or(self);
        &first.header().committed.0
    }

    /// Returns the offset of the arena of `rank` in the file of the arenas.
    pub fn arena_of(&self, rank: usize) -> u64 {
        self.shape.arena_of(self.lane, rank)
    }

    /// Returns the size of each arena, in bytes.
    pub fn arena_len(&self) -> u64 {
        self.shape.arena_len(self.lane)
    }

    /// Reserves addresses for `len` bytes of the arena of `rank`, from its start on. No process may touch the bytes before
    /// [`Segment::open`]. The addresses stay reserved as long as `self`. Each process has the arena at a multiple of
    /// [`Region::ALIGN_SEEN`], so that an address that is aligned in one process is aligned in all.
    pub fn reserve(&self, rank: usize, len: u64) -> io::Result<NonNull<u8>> {
        let offset = self.arena_of(rank);
        let mapping = Mapping::aligned(&self.files.arenas, offset, len)?;
        self.arenas.lock().unwrap_or_else(PoisonError::into_inner).push(mapping);
        Ok(mapping.base)
    }

    /// Opens `len` bytes at `at` for this process. The bytes are whole pages within the addresses of [`Segment::reserve`].
    ///
    /// # Safety
    /// The bytes are such pages.
    pub unsafe fn open(&self, at: NonNull<u8>, len: u64) -> io::Result<()> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the caller promised that the pages belong to a mapping of this segment. The call only adds access to them.
        let failed = unsafe { libc::mprotect(at.as_ptr().cast(), len as usize, access) };
        if failed == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }

    /// Writes the header. The lowest rank calls this, before other ranks know of the segment.
    pub fn found(&self) {
        self.header().total.store(self.size(), Ordering::Relaxed);
        self.header().secret.store(random(), Ordering::Relaxed);
        self.header().magic.store(MAGIC, Ordering::Release);
    }

    /// Returns true if the header has the content that [`Segment::found`] writes.
    pub fn is_founded(&self) -> bool {
        self.header().magic.load(Ordering::Acquire) == MAGIC
            && self.header().total.load(Ordering::Relaxed) == self.size()
    }

    pub fn shape(&self) -> &SegmentShape {
        &self.shape
    }

    /// Returns the size of both files together, in bytes.
    fn size(&self) -> u64 {
        self.shape.segments() + self.shape.arenas()
    }

    pub fn files(&self) -> &Files {
        &self.files
    }

    /// Returns the address of the byte at `offset`.
    ///
    /// # Panics
    /// If `offset` is beyond the end.
    #[inline]
    pub fn at(&self, offset: u64) -> NonNull<u8> {
        assert!(offset <= self.total);
        // SAFETY: `offset <= self.total`, so the result lies inside the mapping of `total` bytes, or at its end.
        unsafe { self.base.add(offset as usize) }
    }

    pub fn header(&self) -> &SegmentHeader {
        // SAFETY: the header lies at the start of the mapping, which is page-aligned. The header consists of atomics, so other
        // processes may write it.
        unsafe { self.base.cast().as_ref() }
    }

    /// Returns the control block of `rank`.
    #[inline]
    pub fn control(&self, rank: usize) -> &RankControl {
        assert!(rank < self.shape.ranks);
        // SAFETY: the block lies inside the mapping and is aligned (tested in `layout`). The block consists of atomics, so
        // other processes may write it.
        unsafe { self.at(self.shape.control(rank) as u64).cast().as_ref() }
    }

    /// Returns the multicast slots of `rank`.
    pub fn slots(&self, rank: usize) -> &[MulticastSlot] {
        assert!(rank < self.shape.ranks);
        let first = self.at(self.shape.slots(rank) as u64).cast::<MulticastSlot>();
        // SAFETY: the slots lie inside the mapping and are aligned (tested in `layout`). The slots consist of atomics, so other
        // processes may write them.
        unsafe { std::slice::from_raw_parts(first.as_ptr(), SLOTS) }
    }

    /// Returns a ring of the box from `sender` to `receiver`.
    ///
    /// # Safety
    /// The conditions of `MessageRing::new`: each end has only one user, which does not outlive the segment.
    pub unsafe fn ring(&self, receiver: usize, sender: usize, ring: RingShape) -> MessageRing {
        assert!(receiver < self.shape.ranks && sender < self.shape.ranks);
        let start = self.shape.pair(receiver, sender);
        let at = |offset: usize| self.at((start + offset) as u64);
        // SAFETY: the parts lie inside the mapping (tested in `layout`), which starts as zeros. The caller promised that each
        // end has only one user, which does not outlive the segment.
        unsafe {
            MessageRing::new(
                at(ring.offset).cast().as_ptr(),
                slice_from_raw_parts(at(ring.lines_at()).cast().as_ptr(), ring.lines),
                slice_from_raw_parts(at(ring.bytes_at()).cast().as_ptr(), ring.bytes / 64),
            )
        }
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        let arenas = self.arenas.get_mut().unwrap_or_else(PoisonError::into_inner);
        let all = [Mapping { base: self.base, len: self.total as usize }];
        for mapping in all.iter().chain(&*arenas) {
            // No reference to the memory outlives the segment: `ring` demands it, and the other references borrow the segment.
            mapping.unmap();
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "needs memory files")]
    fn every_view_of_an_arena_has_the_same_alignment() {
        let shape = SegmentShape::fit(3, 1 << 20, 8 << 20, u64::MAX);
        let segment = Segment::map(create(&shape).unwrap(), shape).unwrap();
        for round in 0..4u8 {
            for (rank, len) in (0..3).zip([1 << 20, 3 << 20, 8 << 20]) {
                let view = segment.reserve(rank, len).unwrap();
                assert_eq!(view.as_ptr().align_offset(Region::ALIGN_SEEN), 0, "{view:?}");
                // SAFETY: `segment.reserve` has just returned `view` for `len` bytes, which are whole pages.
                unsafe { segment.open(view, len) }.unwrap();
                let last = len as usize - 1;
                // SAFETY: `last` is below `len`, so the result lies inside the range.
                let at = unsafe { view.add(last) };
                // SAFETY: the byte lies in the range that was opened above, and only this test uses it.
                let before = unsafe { at.read_volatile() };
                assert_eq!(before, round, "all views show the same");
                // SAFETY: the byte lies in the range that was opened above, and only this test uses it.
                unsafe { at.write_volatile(round + 1) };
            }
        }
    }
}
