//! Peers of a process by number: first the ranks of its job, then processes of other jobs, which come and go.

use crate::control::RANKS_MAX;
use crate::peer::{ShmPeer, Situation};
use crate::segment::Segment;
use crate::view::MappedArena;
use std::cell::{Cell, RefCell, UnsafeCell};
use std::collections::HashSet;
use std::ops::Index;
use std::rc::Rc;
use std::sync::Arc;

/// All peers. The peers of the own job are in a slice; other peers are found in a cold branch.
///
/// Contract: a reference to a peer is held only within a method of [`crate::Shm`]. Such a method calls neither [`ShmPeers::remove`]
/// nor a method that calls it.
pub(crate) struct ShmPeers {
    own: Box<[ShmPeer]>,
    /// Peers of other jobs; their numbers follow the numbers of the own job. They are boxed, so they stay in place when peers are
    /// added.
    foreign: UnsafeCell<Vec<Option<Box<ShmPeer>>>>,
    /// The largest number in use, plus one.
    end: Cell<usize>,
    /// Numbers for peers that are about to be added.
    reserved: Rc<RefCell<HashSet<usize>>>,
}

/// Numbers that are not given to other callers until this value is dropped.
pub(crate) struct Reserved {
    numbers: Vec<usize>,
    all: Rc<RefCell<HashSet<usize>>>,
}

impl Reserved {
    /// Returns the numbers in ascending order.
    pub fn numbers(&self) -> &[usize] {
        &self.numbers
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        let mut all = self.all.borrow_mut();
        self.numbers.iter().for_each(|number| _ = all.remove(number));
    }
}

impl ShmPeers {
    /// Creates the table with the ranks of the job, which is connected through `segment`. `own` is the arena of `rank`, the caller.
    ///
    /// # Safety
    /// Called at most once for each rank of a segment.
    pub unsafe fn of_job(segment: &Arc<Segment>, rank: usize, own: MappedArena) -> ShmPeers {
        let situation = |peer| Situation {
            boxes: segment,
            rank,
            peer,
            home: segment,
            home_rank: peer,
            bit: rank,
            is_foreign: false,
        };
        let ranks = 0..segment.shape().ranks;
        // SAFETY: the caller promised that this is the only call for `rank`, so each pair is created once.
        let mut peers: Box<[ShmPeer]> =
            ranks.map(|peer| unsafe { ShmPeer::new(situation(peer)) }).collect();
        peers[rank].view = own;
        ShmPeers::new(peers)
    }

    /// Creates the table with only the ranks of the job.
    fn new(own: Box<[ShmPeer]>) -> ShmPeers {
        let end = Cell::new(own.len());
        ShmPeers { own, foreign: UnsafeCell::default(), end, reserved: Rc::default() }
    }

    /// Returns the ranks of the own job.
    #[inline(always)]
    pub fn own(&self) -> &[ShmPeer] {
        &self.own
    }

    /// Returns the largest number in use, plus one.
    #[inline(always)]
    pub fn end(&self) -> usize {
        self.end.get()
    }

    /// Returns true if a peer has this number.
    #[inline(always)]
    pub fn has(&self, peer: usize) -> bool {
        peer < self.own.len() || self.foreign(peer).is_some()
    }

    /// Returns the peer with this number.
    #[inline(always)]
    pub fn get(&self, peer: usize) -> Option<&ShmPeer> {
        match self.own.get(peer) {
            Some(found) => Some(found),
            None => self.foreign(peer),
        }
    }

    #[cold]
    #[inline(never)]
    fn foreign(&self, peer: usize) -> Option<&ShmPeer> {
        // SAFETY: only `add` and `remove` change the list, and no reference to it outlives a method. The peers in it stay in
        // place until `remove`, whose callers promise that nobody refers to them.
        let foreign = unsafe { &*self.foreign.get() };
        foreign.get(peer - self.own.len())?.as_deref()
    }

    /// Iterates over all peers with their numbers.
    pub fn all(&self) -> impl Iterator<Item = (usize, &ShmPeer)> {
        (0..self.end()).filter(|&peer| self.has(peer)).map(|peer| (peer, &self[peer]))
    }

    /// Reserves `count` numbers that no peer has; `None` if there are not enough. Other threads may be about to add peers, too.
    pub fn reserve(&self, count: usize) -> Option<Reserved> {
        let mut all = self.reserved.borrow_mut();
        let is_free = |peer: &usize| !self.has(*peer) && !all.contains(peer);
        let numbers: Vec<usize> = (self.own.len()..RANKS_MAX).filter(is_free).take(count).collect();
        if numbers.len() < count {
            return None;
        }
        all.extend(&numbers);
        Some(Reserved { numbers, all: self.reserved.clone() })
    }

    /// Gives the number `peer` to a process of another job. The number is free, and is not a rank of this process's job.
    pub fn add(&self, peer: usize, entry: ShmPeer) {
        assert!(!self.has(peer), "two peers of one number");
        // SAFETY: no reference to the list exists, because each is held only within one method, and this method holds none.
        // Growing the list moves boxes, not peers.
        let foreign = unsafe { &mut *self.foreign.get() };
        let at = peer - self.own.len();
        if foreign.len() <= at {
            foreign.resize_with(at + 1, || None);
        }
        foreign[at] = Some(Box::new(entry));
        self.end.set(self.end.get().max(peer + 1));
    }

    /// Forgets a process of another job.
    ///
    /// # Safety
    /// There is no reference to the peer.
    pub unsafe fn remove(&self, peer: usize) {
        // SAFETY: no reference to the list exists, because each is held only within one method. The caller promised that there
        // is no reference to the removed peer.
        let foreign = unsafe { &mut *self.foreign.get() };
        foreign[peer - self.own.len()] = None;
        while foreign.last().is_some_and(Option::is_none) {
            foreign.pop();
        }
        self.end.set(self.own.len() + foreign.len());
    }
}

impl Index<usize> for ShmPeers {
    type Output = ShmPeer;

    #[inline(always)]
    fn index(&self, peer: usize) -> &ShmPeer {
        self.get(peer).unwrap_or_else(|| nobody(peer))
    }
}

#[cold]
fn nobody(peer: usize) -> ! {
    panic!("no peer has number {peer}")
}
