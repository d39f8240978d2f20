//! The parts of the arenas that a process may touch.
//!
//! An arena is as large as the machine's memory. If a process had all arenas open, tools and the system would see many times the
//! machine's memory: a leak check reads all open memory, and mlockall(2) fills it.
//!
//! Contract. The owner reserves addresses for its whole arena when it connects, and for no other arena. The owner opens the arena
//! from the start on, before it hands out memory there, and then stores in its control block the number of open bytes (release).
//! The number only grows, and memory keeps the addresses that peers have received. However a peer receives an address, it receives
//! the address only after that store. If the peer has not mapped and opened enough of the owner's arena, it reads the owner's
//! number (acquire), opens exactly that many bytes, and refuses addresses beyond them. Opened memory stays open, and stays at its
//! place, until the segment is unmapped. A [`MappedArena`](crate::view::MappedArena) belongs to one `Shm`, which only one thread
//! uses at a time. A signal handler never opens anything ([`Shm::is_open`]). If all bytes are open, no system call is made.

use crate::layout::STEP;
use crate::shm::Shm;
use crate::sync::Ordering;
use crate::view::{memory_fault, within_arena};
use weft_fabric::{Fault, RemoteAddr};

/// Minimum number of bytes of addresses that are reserved for a peer's arena.
const RESERVED: u64 = 64 << 20;

impl Shm {
    /// Opens the arena of `peer`, and returns the address of the `len` bytes at `offset`. Called only if these bytes are not open.
    #[cold]
    pub(crate) fn open_of(&self, peer: usize, offset: u64, len: u64) -> Result<*mut u8, Fault> {
        let corrupt = || Fault::corrupt(peer, "remote address");
        let to = &self.peers[peer];
        let (home, view) = (&to.home, &to.view);
        let told = to.control().facts.0.opened.load(Ordering::Acquire);
        let told = told.min(home.arena_len()) & !(STEP - 1);
        let end = offset.checked_add(len).ok_or_else(corrupt)?;
        if end > told || told <= view.open.get() {
            return Err(corrupt());
        }
        if told > view.reserved.get() {
            // Reserves more addresses than needed, so that reservations are rare. The earlier mapping stays, because there may be
            // pointers into it. Mapping the same memory at two addresses only costs addresses.
            let more = (2 * told).max(RESERVED).min(home.arena_len());
            let reserve = |len| home.reserve(to.home_rank, len).map(|base| (base, len));
            let (base, len) = reserve(more).or_else(|_| reserve(told)).map_err(|error| {
                memory_fault("mmap of memory of another process of this node", &error)
            })?;
            view.base.set(base);
            view.reserved.set(len);
            view.open.set(0);
        }
        view.open_to(home, told).map_err(|error| {
            memory_fault("mprotect of memory of another process of this node", &error)
        })?;
        view.get(offset, len).ok_or_else(corrupt)
    }

    /// Returns true if nothing needs to be opened to reach `len` bytes at `at` of `peer`.
    pub(crate) fn is_open(&self, peer: usize, at: RemoteAddr, len: usize) -> bool {
        let to = &self.peers[peer];
        !within_arena(at.key) || to.view.get(at.addr.wrapping_sub(to.base), len as u64).is_some()
    }
}
