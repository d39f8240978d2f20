//! The memory of a job: one sparse anonymous file, mapped by all ranks. It has no name anywhere, so
//! that nothing is left behind when ranks are killed.

use crate::control::{Control, Header, MAGIC};
use crate::layout::{RingShape, Shape};
use crate::multicast::{SLOTS, Slot};
use crate::ring::Ring;
use crate::sync::Ordering;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::ptr::NonNull;

/// What the system refused.
#[derive(Debug)]
pub struct Refused {
    pub what: &'static str,
    pub error: io::Error,
}

fn refused(what: &'static str) -> impl FnOnce(io::Error) -> Refused {
    move |error| Refused { what, error }
}

/// The mapped segment.
#[derive(Debug)]
pub struct Segment {
    base: NonNull<u8>,
    shape: Shape,
    /// Of the shape, which computes them: where the arenas begin, and the size.
    arenas: u64,
    total: u64,
    file: File,
}

// SAFETY: the mapping belongs to no thread; all access to it goes through atomics and raw copies.
unsafe impl Send for Segment {}
// SAFETY: see above.
unsafe impl Sync for Segment {}

/// A fresh file of the size of `shape`, whose size nobody can change any more.
pub fn create(shape: &Shape) -> Result<File, Refused> {
    let sealing = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
    let memfd = |flags| {
        // SAFETY: the name is a C string.
        let fd = unsafe { libc::memfd_create(c"weft".as_ptr(), flags) };
        // SAFETY: the descriptor is new and ours.
        if fd < 0 { Err(io::Error::last_os_error()) } else { Ok(unsafe { File::from_raw_fd(fd) }) }
    };
    // Kernels before 6.3 do not know NOEXEC_SEAL; later ones may insist on it.
    let file = memfd(sealing | libc::MFD_NOEXEC_SEAL)
        .or_else(|_| memfd(sealing))
        .map_err(refused("memfd_create"))?;
    file.set_len(shape.total()).map_err(refused("ftruncate of the shared segment"))?;
    let seals = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
    // SAFETY: fcntl on our own descriptor. A kernel that refuses seals leaves us no worse off.
    unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) };
    Ok(file)
}

impl Segment {
    /// Maps `file`, which [`create`] made for `shape` (perhaps in another process).
    pub fn map(file: File, shape: Shape) -> Result<Segment, Refused> {
        let total = shape.total();
        let len = file.metadata().map_err(refused("fstat of the shared segment"))?.len();
        if len < total {
            let error = io::Error::other(format!("it has {len} bytes instead of {total}"));
            return Err(Refused { what: "checking the shared segment", error });
        }
        // SAFETY: a new mapping at an address that the kernel chooses.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                total as usize,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_SHARED | libc::MAP_NORESERVE,
                file.as_raw_fd(),
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(refused("mmap of the shared segment")(io::Error::last_os_error()));
        }
        // Core dumps would hold the whole segment once for each rank.
        // SAFETY: advice on our own mapping.
        unsafe { libc::madvise(base, total as usize, libc::MADV_DONTDUMP) };
        let base = NonNull::new(base.cast()).expect("mmap does not map address 0");
        Ok(Segment { base, arenas: shape.arena_of(0), total, shape, file })
    }

    /// Writes the header. The lowest rank does it, before others know of the segment.
    pub fn found(&self) {
        self.header().total.store(self.shape.total(), Ordering::Relaxed);
        self.header().secret.store(crate::connect::random(), Ordering::Relaxed);
        self.header().magic.store(MAGIC, Ordering::Release);
    }

    /// True if the header is what [`Segment::found`] writes.
    pub fn is_founded(&self) -> bool {
        self.header().magic.load(Ordering::Acquire) == MAGIC
            && self.header().total.load(Ordering::Relaxed) == self.shape.total()
    }

    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    pub fn file(&self) -> &File {
        &self.file
    }

    /// First byte of the arena of `rank`.
    #[inline]
    pub fn arena_of(&self, rank: usize) -> u64 {
        self.arenas + rank as u64 * self.shape.arena
    }

    /// The byte at `offset`.
    ///
    /// # Panics
    /// Beyond the end.
    #[inline]
    pub fn at(&self, offset: u64) -> NonNull<u8> {
        assert!(offset <= self.total);
        // SAFETY: inside the mapping.
        unsafe { self.base.add(offset as usize) }
    }

    /// Offset of the byte at `address`, if it lies in the segment.
    pub fn offset_of(&self, address: *const u8) -> Option<u64> {
        let offset = (address.addr() as u64).checked_sub(self.base.addr().get() as u64)?;
        (offset < self.total).then_some(offset)
    }

    pub fn header(&self) -> &Header {
        // SAFETY: inside the mapping, aligned; only atomics.
        unsafe { self.base.cast().as_ref() }
    }

    /// The control block of `rank`.
    #[inline]
    pub fn control(&self, rank: usize) -> &Control {
        assert!(rank < self.shape.ranks);
        // SAFETY: inside the mapping, aligned (tested in `layout`); only atomics.
        unsafe { self.at(self.shape.control(rank) as u64).cast().as_ref() }
    }

    /// The multicast slots of `rank`.
    pub fn slots(&self, rank: usize) -> &[Slot] {
        assert!(rank < self.shape.ranks);
        let first = self.at(self.shape.slots(rank) as u64).cast::<Slot>();
        // SAFETY: inside the mapping, aligned (tested in `layout`); only atomics.
        unsafe { std::slice::from_raw_parts(first.as_ptr(), SLOTS) }
    }

    /// A ring of the box from `sender` to `receiver`.
    ///
    /// # Safety
    /// `Ring::new`: one user for each end, which does not outlive the segment.
    pub unsafe fn ring(&self, receiver: usize, sender: usize, ring: RingShape) -> Ring {
        assert!(receiver < self.shape.ranks && sender < self.shape.ranks);
        let start = self.shape.pair(receiver, sender);
        let at = |offset: usize| self.at((start + offset) as u64);
        // SAFETY: the parts lie inside the mapping (tested in `layout`); the rest is promised.
        unsafe {
            Ring::new(
                at(ring.offset).cast().as_ptr(),
                (at(ring.lines_at()).cast().as_ptr(), ring.lines),
                (at(ring.bytes_at()).cast().as_ptr(), ring.bytes),
            )
        }
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours and nothing of it outlives the segment (`pair`, and the
        // lifetimes of the other references).
        unsafe { libc::munmap(self.base.as_ptr().cast(), self.total as usize) };
    }
}
