//! One-sided operations and the memory that they act on.

use crate::arena::ALIGN;
use crate::cma::{self, CopyDirection};
use crate::pages::PAGE;
use crate::shm::Shm;
use crate::sync::AtomicU64;
use crate::view::{ALLOCATED, OWN, WITHIN};
use std::ptr::NonNull;
use weft_fabric::{Fabric, Fault, FaultCause, MappedMemory, PeerWords, Region, RemoteAddr, Sge};
use weft_intranode::CacheLines;

/// The target of an address.
enum Location {
    /// Memory that is mapped in this process.
    Here(*mut u8),
    /// An address in the peer's process.
    There(u64),
}

impl MappedMemory for Shm {
    fn allocate_on_node(&self, len: usize) -> Result<Region, Fault> {
        self.allocate(len)
    }

    fn allocate_spare(&self, len: usize) -> Result<Region, Fault> {
        let local = self.arena.allocate_spare(&self.peers[self.rank].view, len)?;
        Ok(self.allocated_region(local))
    }

    fn lies_within(&self, memory: Sge) -> bool {
        let view = &self.peers[self.rank].view;
        let offset = memory.ptr().addr().checked_sub(view.base().addr().get());
        offset.is_some_and(|offset| (offset as u64) < view.reserved())
    }

    #[inline]
    fn mapped(&self, peer: usize, at: RemoteAddr, len: usize) -> Option<Sge> {
        match self.place(peer, at, len).ok()? {
            // SAFETY: `place` checked that the bytes lie in the peer's arena, which is mapped as long as `self`; the caller
            // uses them only while the peer keeps them. Other locations are memory of this program, which it exposed.
            Location::Here(at) => Some(unsafe { Sge::new(at, len) }),
            Location::There(_) => None,
        }
    }

    fn shown(&self, peer: usize, at: RemoteAddr, len: usize) -> Option<Sge> {
        self.mapped(peer, at, len)
    }

    fn populate(&self, memory: Sge) {
        crate::populate::populate(memory);
    }

    fn words(&self, peer: usize, at: RemoteAddr, count: usize) -> Option<PeerWords> {
        let first = NonNull::from(self.words_at(peer, at, count).ok()?).cast();
        // SAFETY: `words_at` checked that the words are aligned and lie in the mapping, which `home` keeps. Peers access them
        // only by atomics.
        Some(unsafe { PeerWords::new(first, count, self.peers[peer].home.clone()) })
    }
}

impl Shm {
    /// Returns the region of memory that was allocated in the arena of this rank.
    pub(crate) fn allocated_region(&self, local: Sge) -> Region {
        let addr = local.ptr().addr() as u64;
        Region { local, remote: RemoteAddr { key: ALLOCATED, addr } }
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

    /// Returns the aligned word at `at` of `peer`, for flags and atomics.
    pub(crate) fn word(&self, peer: usize, at: RemoteAddr) -> Result<&AtomicU64, Fault> {
        Ok(&self.words_at(peer, at, 1)?[0])
    }

    /// Returns `count` aligned words of `peer`, of which `at` is the first.
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
        let result = cma::transfer(way, self.peers[peer].pid(), peer, local, remote);
        if result.as_ref().is_err_and(|f| matches!(f.cause(), FaultCause::Unsupported { .. })) {
            self.peers[peer].direct.set(Some(false));
        }
        result
    }

    /// Returns true if the program's memory at `peer` can be reached. The first call tries to reach it.
    pub(crate) fn reaches(&self, peer: usize) -> bool {
        let to = &self.peers[peer];
        if let Some(direct) = to.direct.get() {
            return direct;
        }
        let direct = peer == self.rank || self.options.cma && to.probe(peer);
        to.direct.set(Some(direct));
        direct
    }
}

const _: () = assert!(ALIGN.is_multiple_of(64) && PAGE.is_multiple_of(ALIGN));
