//! What of the arenas a process may touch.
//!
//! An arena is as large as the machine's memory, and a process that had all of them open would show tools and the
//! system many times that memory: a leak check reads all that is open, mlockall(2) fills it.
//!
//! Contract. The owner reserves addresses for its whole arena when it connects, and for nobody else's; it opens them
//! from the start on, before it hands out memory there, and then stores how far (release) in its control block. That
//! only grows, and its memory keeps the addresses that peers are told. A peer gets to know of an address after that
//! store, by whatever way; where it has not mapped and opened so much of the owner's arena itself, it reads how far the
//! owner is (acquire), opens that much and no more, and refuses what lies beyond. What was opened stays where it is, and
//! open, until the segment goes. A [`MappedArena`](crate::view::View) belongs to one `Shm`, whose user is one thread at a time; a signal handler
//! never opens anything ([`Shm::is_open`]). Who finds all open makes no system call.

use crate::layout::STEP;
use crate::shm::Shm;
use crate::sync::Ordering;
use crate::view::within_arena;
use std::io;
use weft_fabric::{Fault, RemoteAddr};

/// Addresses for a peer's arena at first, in bytes.
const RESERVED: u64 = 64 << 20;

impl Shm {
    /// Opens this rank's own arena up to `end` at least, and tells the peers.
    pub(crate) fn open_own(&self, end: u64) -> Result<(), Fault> {
        let view = &self.peers[self.rank].view;
        if view.get(0, end).is_some() {
            return Ok(());
        }
        let goal = end.next_multiple_of(STEP);
        view.open_to(&self.segment, goal)
            .map_err(|error| refused("mprotect of the arena", &error))?;
        self.own().facts.0.opened.store(goal, Ordering::Release);
        Ok(())
    }

    /// Where `len` bytes at `offset` of the arena of `peer` lie, which were not open here.
    #[cold]
    pub(crate) fn open_of(&self, peer: usize, offset: u64, len: u64) -> Result<*mut u8, Fault> {
        let corrupt = || Fault::corrupt(peer, "remote address");
        let to = &self.peers[peer];
        let (home, view) = (&to.home, &to.view);
        let told = to.control().facts.0.opened.load(Ordering::Acquire);
        let told = told.min(home.shape().arena) & !(STEP - 1);
        let end = offset.checked_add(len).ok_or_else(corrupt)?;
        if end > told || told <= view.open.get() {
            return Err(corrupt());
        }
        if told > view.reserved.get() {
            // Addresses for more, so that it is seldom done. What was mapped before stays: somebody may point to
            // it. The same memory at two addresses costs nothing but those.
            let more = (2 * told).max(RESERVED).min(home.shape().arena);
            let reserve = |len| home.reserve(to.home_rank, len).map(|base| (base, len));
            let (base, len) = reserve(more).or_else(|_| reserve(told)).map_err(|error| {
                refused("mmap of memory of another process of this node", &error)
            })?;
            view.base.set(base);
            view.reserved.set(len);
            view.open.set(0);
        }
        view.open_to(home, told).map_err(|error| {
            refused("mprotect of memory of another process of this node", &error)
        })?;
        view.get(offset, len).ok_or_else(corrupt)
    }

    /// Whether nothing needs to be opened to reach `len` bytes at `at` of `peer`.
    pub(crate) fn is_open(&self, peer: usize, at: RemoteAddr, len: usize) -> bool {
        let to = &self.peers[peer];
        !within_arena(at.key) || to.view.get(at.addr.wrapping_sub(to.base), len as u64).is_some()
    }
}

fn refused(what: &'static str, error: &io::Error) -> Fault {
    Fault::system(what, error.raw_os_error().unwrap_or(0))
}
