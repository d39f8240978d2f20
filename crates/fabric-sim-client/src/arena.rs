//! Memory of a rank that peers reach: a sparse anonymous file, of which ranks of the same simulated node may map parts.
//!
//! Blocks are cut from the start of the file. A block that was given back serves later requests of its size.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::NonNull;
use weft_fabric::{Region, Sge};

/// Size of an arena in bytes. Only pages that are used take memory.
const ARENA: usize = 16 << 30;

/// A mapping of an arena's file at a multiple of [`Region::ALIGN_SEEN`].
#[derive(Debug)]
struct ArenaMapping {
    base: NonNull<u8>,
    len: usize,
}

impl ArenaMapping {
    fn new(file: &impl AsRawFd, len: usize) -> io::Result<ArenaMapping> {
        let align = Region::ALIGN_SEEN;
        let none = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE;
        // SAFETY: without MAP_FIXED, mmap(2) makes a new mapping that replaces nothing. It reserves addresses.
        let wide =
            unsafe { libc::mmap(std::ptr::null_mut(), len + align, libc::PROT_NONE, none, -1, 0) };
        if wide == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        let skip = wide.addr().next_multiple_of(align) - wide.addr();
        // SAFETY: the address lies in the reservation, which has `align` bytes more than `len`.
        let at = unsafe { wide.byte_add(skip) };
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_SHARED | libc::MAP_NORESERVE | libc::MAP_FIXED;
        // SAFETY: MAP_FIXED replaces only a part of the reservation above, which nothing else uses.
        let base = unsafe { libc::mmap(at, len, protection, flags, file.as_raw_fd(), 0) };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        // SAFETY: `base` and `len` are the mapping made above, and MADV_DONTDUMP does not change its content.
        unsafe { libc::madvise(base, len, libc::MADV_DONTDUMP) };
        let base = NonNull::new(base.cast()).expect("mmap does not map address 0");
        Ok(ArenaMapping { base, len })
    }
}

/// The memory of this rank that peers reach.
pub struct RankArena {
    file: OwnedFd,
    mapping: ArenaMapping,
    used: Cell<usize>,
    /// Free blocks by their size: offsets in the file.
    free: RefCell<BTreeMap<usize, Vec<usize>>>,
    /// Sizes of the blocks in use, by offset.
    sizes: RefCell<HashMap<usize, usize>>,
}

impl RankArena {
    pub fn new() -> io::Result<RankArena> {
        let file =
            nix::sys::memfd::memfd_create(c"weft-arena", nix::sys::memfd::MFdFlags::MFD_CLOEXEC)?;
        let file = File::from(file);
        file.set_len(ARENA as u64)?;
        let mapping = ArenaMapping::new(&file, ARENA)?;
        Ok(RankArena {
            file: file.into(),
            mapping,
            used: Cell::new(0),
            free: RefCell::default(),
            sizes: RefCell::default(),
        })
    }

    /// Returns the descriptor of the file.
    pub fn descriptor(&self) -> i32 {
        self.file.as_raw_fd()
    }

    /// Returns the address of the file's first byte.
    pub fn base(&self) -> u64 {
        self.mapping.base.as_ptr().addr() as u64
    }

    /// Returns `len` zeroed bytes; `None` if the arena is full.
    pub fn allocate(&self, len: usize) -> Option<Sge> {
        let align = if len >= Region::ALIGN_SEEN { Region::ALIGN_SEEN } else { Region::ALIGN };
        let size = len.max(1).checked_next_multiple_of(align)?;
        let reused = self.free.borrow_mut().get_mut(&size).and_then(Vec::pop);
        let again = reused.is_some();
        let at = match reused {
            Some(at) => at,
            None => {
                let at = self.used.get().checked_next_multiple_of(align)?;
                let end = at.checked_add(size)?;
                if end > self.mapping.len {
                    return None;
                }
                self.used.set(end);
                at
            }
        };
        self.sizes.borrow_mut().insert(at, size);
        // SAFETY: the block lies within the mapping, and only its owner uses it.
        unsafe {
            let start = self.mapping.base.add(at).as_ptr();
            if again {
                std::ptr::write_bytes(start, 0, size);
            }
            Some(Sge::new(start, len))
        }
    }

    /// Takes back memory that [`RankArena::allocate`] returned. Ignores other memory.
    pub fn free(&self, memory: Sge) {
        let Some(at) = memory.ptr().addr().checked_sub(self.mapping.base.as_ptr().addr()) else {
            return;
        };
        if let Some(size) = self.sizes.borrow_mut().remove(&at) {
            self.free.borrow_mut().entry(size).or_default().push(at);
        }
    }

    /// Returns true if the arena contains `memory`.
    pub fn contains(&self, memory: Sge) -> bool {
        let base = self.mapping.base.as_ptr().addr();
        !memory.is_phantom()
            && memory.ptr().addr() >= base
            && memory.ptr().addr() + memory.len() <= base + self.mapping.len
    }
}

/// The arena of a peer of the same simulated node, mapped into this process.
pub struct PeerArena {
    mapping: ArenaMapping,
    /// Address of the file's first byte in the peer's process.
    peer_base: u64,
}

impl PeerArena {
    /// Maps the arena of process `pid`, whose descriptor of the file is `descriptor`.
    pub fn open(pid: u32, descriptor: i32, peer_base: u64) -> io::Result<PeerArena> {
        let path = format!("/proc/{pid}/fd/{descriptor}");
        let file = File::options().read(true).write(true).open(path)?;
        Ok(PeerArena { mapping: ArenaMapping::new(&file, ARENA)?, peer_base })
    }

    /// Returns the bytes at an address of the peer's process; `None` if they are not in the arena.
    pub fn at(&self, address: u64, len: usize) -> Option<Sge> {
        let offset = usize::try_from(address.checked_sub(self.peer_base)?).ok()?;
        if offset.checked_add(len)? > self.mapping.len {
            return None;
        }
        // SAFETY: the bytes lie within the mapping, which stays until the process ends.
        Some(unsafe { Sge::new(self.mapping.base.add(offset).as_ptr(), len) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_zeroed_and_used_again() {
        let arena = RankArena::new().unwrap();
        let first = arena.allocate(100).unwrap();
        first.fill(&[7; 100]);
        assert!(arena.contains(first) && !arena.contains(Sge::EMPTY));
        arena.free(first);
        let again = arena.allocate(90).unwrap();
        assert_eq!(again.ptr(), first.ptr());
        let mut bytes = [1; 90];
        again.read(&mut bytes);
        assert_eq!(bytes, [0; 90]);
        assert!(arena.allocate(ARENA).is_none());
        let large = arena.allocate(3 << 20).unwrap();
        assert!(large.ptr().addr().is_multiple_of(Region::ALIGN_SEEN));
    }

    #[test]
    fn a_peer_sees_the_same_bytes() {
        let arena = RankArena::new().unwrap();
        let block = arena.allocate(5000).unwrap();
        let peer = PeerArena::open(std::process::id(), arena.descriptor(), arena.base()).unwrap();
        let seen = peer.at(block.ptr().addr() as u64, 5000).unwrap();
        assert_ne!(seen.ptr(), block.ptr());
        block.fill(b"hello");
        let mut bytes = [0; 5];
        seen.read(&mut bytes);
        assert_eq!(&bytes, b"hello");
        assert_eq!(peer.at(arena.base() - 1, 1), None);
        assert_eq!(peer.at(arena.base(), ARENA + 1), None);
    }
}
