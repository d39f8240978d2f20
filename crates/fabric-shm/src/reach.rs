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
//! open, until the segment goes. A [`View`] belongs to one `Shm`, whose user is one thread at a time; a signal handler
//! never opens anything ([`Shm::is_open`]). Who finds all open makes no system call.

use crate::layout::{ARENA_MIN, STEP};
use crate::segment::Segment;
use crate::shm::Shm;
use crate::sync::Ordering;
use std::cell::Cell;
use std::io;
use std::ptr::NonNull;
use weft_fabric::{Fault, Key, RemoteAddr};

/// Addresses for a peer's arena at first, in bytes.
const RESERVED: u64 = 64 << 20;

/// The arena of a rank, as it is mapped here: from `base` on `reserved` bytes, `open` of them to touch.
#[derive(Debug)]
pub struct View {
    base: Cell<NonNull<u8>>,
    open: Cell<u64>,
    reserved: Cell<u64>,
}

impl Default for View {
    /// Nothing is mapped.
    fn default() -> View {
        View { base: Cell::new(NonNull::dangling()), open: Cell::new(0), reserved: Cell::new(0) }
    }
}

impl View {
    /// Addresses for the arena of `rank`, which is the caller's: for all of it, or for what is to be had.
    pub fn of_own(segment: &Segment, rank: usize) -> io::Result<View> {
        let mut len = segment.shape().arena;
        loop {
            match segment.reserve(rank, len) {
                Ok(base) => {
                    let view = View::default();
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
    fn open_to(&self, segment: &Segment, len: u64) -> io::Result<()> {
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
        let told = self.segment.control(peer).facts.0.opened.load(Ordering::Acquire);
        let told = told.min(self.segment.shape().arena) & !(STEP - 1);
        let view = &self.peers[peer].view;
        let end = offset.checked_add(len).ok_or_else(corrupt)?;
        if end > told || told <= view.open.get() {
            return Err(corrupt());
        }
        if told > view.reserved.get() {
            // Addresses for more, so that it is seldom done. What was mapped before stays: somebody may point to
            // it. The same memory at two addresses costs nothing but those.
            let more = (2 * told).max(RESERVED).min(self.segment.shape().arena);
            let reserve = |len| self.segment.reserve(peer, len).map(|base| (base, len));
            let (base, len) = reserve(more).or_else(|_| reserve(told)).map_err(|error| {
                refused("mmap of memory of another process of this node", &error)
            })?;
            view.base.set(base);
            view.reserved.set(len);
            view.open.set(0);
        }
        view.open_to(&self.segment, told).map_err(|error| {
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

/// Whether addresses of this key lie in the owner's arena.
#[inline(always)]
pub fn within_arena(key: Key) -> bool {
    key == crate::memory::ALLOCATED || key == crate::memory::WITHIN
}

fn refused(what: &'static str, error: &io::Error) -> Fault {
    Fault::system(what, error.raw_os_error().unwrap_or(0))
}
