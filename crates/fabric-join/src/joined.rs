//! The joined fabric. Each operation goes to the fabric of its peer.

use crate::address;
use crate::sleeper::JoinedSleep;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use weft_fabric::wait::Sleep;
use weft_fabric::{
    ArrivedMessage, Capabilities, CompareSwap, Completion, Copies, Counter, Counters, Datagram,
    Fabric, FabricExt, Facets, Fault, FaultCause, FetchAdd, Flag, FlagKind, FlagWrite, GroupId,
    Head, Peek, PeerWords, PostOutcome, RdmaDirection, Region, RemoteAddr, RemoteFlag, RemoteRead,
    RemoteWrite, Sge,
};

/// The fabric that reaches a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Route {
    /// The near fabric, under this number.
    Near(u32),
    Far,
}

/// A near and a far fabric. The near fabric numbers the ranks of this node, the far fabric all ranks.
pub struct Joined<N: Fabric, R: Fabric> {
    near: N,
    far: R,
    counters: Rc<Counters>,
    /// Node by rank.
    nodes: Box<[u32]>,
    places: RefCell<Vec<Route>>,
    /// Rank by near rank.
    ranks: RefCell<Vec<u32>>,
    /// True if the next [`Fabric::receive`] from any peer looks into the far fabric first.
    far_first: Cell<bool>,
    sleeper: Arc<JoinedSleep>,
}

/// Runs an expression on the fabric that reaches `$peer`.
macro_rules! ask {
    ($self:ident, $peer:ident, near($n:ident, $p:ident) $near:expr, far($f:ident) $far:expr) => {
        match $self.route($peer) {
            Route::Near(at) => {
                let ($n, $p) = (&$self.near, at as usize);
                $near
            }
            Route::Far => {
                let $f = &$self.far;
                $far
            }
        }
    };
}

impl<N: Fabric, R: Fabric> Joined<N, R> {
    /// Joins `near`, which connects the ranks of this process's node, and `far`, which connects all ranks. `nodes`: the node of
    /// every rank; the near ranks are those of this node in ascending order. Both fabrics must count in `counters`, and a sleep
    /// on the far fabric must end when the near fabric is rung.
    ///
    /// # Panics
    /// If the fabrics do not fit together.
    pub fn new(near: N, far: R, nodes: &[usize], counters: Rc<Counters>) -> Joined<N, R> {
        let me = far.rank();
        assert_eq!(nodes.len(), far.size(), "a node for every rank");
        let same_table = |table: &Counters| std::ptr::eq(table, &*counters);
        assert!(same_table(near.counters()) && same_table(far.counters()), "one table of counters");
        let ranks: Vec<u32> =
            (0..nodes.len()).filter(|&r| nodes[r] == nodes[me]).map(|r| r as u32).collect();
        assert_eq!(ranks.len(), near.size(), "the near fabric connects the ranks of the node");
        assert_eq!(ranks[near.rank()] as usize, me, "the near fabric counts in the order of ranks");
        let mut places = vec![Route::Far; nodes.len()];
        for (at, &rank) in ranks.iter().enumerate() {
            places[rank as usize] = Route::Near(at as u32);
        }
        let sleeper = Arc::new(JoinedSleep::new(near.sleeper(), far.sleeper()));
        let nodes = nodes.iter().map(|&node| node as u32).collect();
        let (places, ranks) = (RefCell::new(places), RefCell::new(ranks));
        Joined { near, far, counters, nodes, places, ranks, far_first: Cell::new(false), sleeper }
    }

    #[inline]
    fn route(&self, peer: usize) -> Route {
        self.places.borrow().get(peer).copied().unwrap_or(Route::Far)
    }

    /// Returns the near fabric's number of a peer; `None` if the far fabric reaches the peer.
    pub fn near_number(&self, peer: usize) -> Option<usize> {
        match self.route(peer) {
            Route::Near(at) => Some(at as usize),
            Route::Far => None,
        }
    }

    /// Routes a process of another job through the near fabric. Both fabrics have made it a peer: its number here is the far
    /// fabric's number, and from now on the near fabric reaches it under `near`. Nothing was exchanged with it before. Peers
    /// that only the far fabric reaches need no such call.
    pub fn add_near(&self, peer: usize, near: usize) {
        fn put<T: Copy>(all: &RefCell<Vec<T>>, at: usize, value: T, other: T) {
            let mut all = all.borrow_mut();
            let len = all.len().max(at + 1);
            all.resize(len, other);
            all[at] = value;
        }
        put(&self.places, peer, Route::Near(near as u32), Route::Far);
        put(&self.ranks, near, peer as u32, u32::MAX);
    }

    /// Ends the route of [`Joined::add_near`].
    pub fn forget_near(&self, peer: usize) {
        if let Some(place) = self.places.borrow_mut().get_mut(peer) {
            *place = Route::Far;
        }
    }

    /// Returns the rank of a peer of the near fabric.
    #[inline]
    fn rank_of(&self, near: usize) -> usize {
        self.ranks.borrow()[near] as usize
    }

    /// Returns the fabric that connects the ranks of this node, which it numbers in its own way.
    pub fn near(&self) -> &N {
        &self.near
    }

    /// Returns the fabric that connects all ranks, and carries the traffic to other nodes.
    pub fn far(&self) -> &R {
        &self.far
    }

    /// Adds the far fabric's name to a region of the near fabric. Withdraws the region if the far fabric has none.
    fn extend(&self, near: Region, far: Result<Region, Fault>) -> Result<Region, Fault> {
        match far {
            Ok(far) => Ok(Region { remote: address::join(near.remote, far.remote), ..near }),
            Err(fault) => {
                self.near.withdraw(near);
                Err(fault)
            }
        }
    }

    /// Returns true if processors carry out the atomics of near ranks on a word. If far ranks do atomics on it, too, all must
    /// go through the same adapter, unless the adapter is coherent with processors.
    fn by_processors(&self, word: RemoteAddr) -> bool {
        !address::is_far(word) || self.far.capabilities(self.far.rank()).coherent_atomics
    }

    fn renumbered(&self, message: ArrivedMessage) -> ArrivedMessage {
        ArrivedMessage { peer: self.rank_of(message.peer), ..message }
    }

    /// Renames the near rank in a fault of a near operation.
    fn named(&self, fault: Fault) -> Fault {
        let name = |near: usize| self.rank_of(near);
        match *fault.cause() {
            FaultCause::PeerLost { rank } => Fault::lost(name(rank)),
            FaultCause::Corrupt { rank, what } => Fault::corrupt(name(rank), what),
            FaultCause::Unsupported { rank, what } => Fault::unsupported(name(rank), what),
            _ => fault,
        }
    }
}

mod facets;

impl<N: Fabric, R: Fabric> Fabric for Joined<N, R> {
    fn facets(&self) -> Facets<'_> {
        Facets {
            mapped_memory: Some(self),
            registration: Some(self),
            rails: Some(self),
            immediates: Some(self),
            // A handler can look at both fabrics, or at none.
            signal_safe: if self.near.can_peek() && self.far.can_peek() {
                Some(self)
            } else {
                None
            },
            helper: Some(self),
            multicast: Some(self),
            nodes: Some(self),
            simulated: None,
        }
    }

    fn rank(&self) -> usize {
        self.far.rank()
    }

    fn size(&self) -> usize {
        self.nodes.len()
    }

    fn copies(&self) -> &Copies {
        self.near.copies()
    }

    fn capabilities(&self, peer: usize) -> Capabilities {
        let mut capabilities =
            ask!(self, peer, near(n, p) n.capabilities(p), far(f) f.capabilities(peer));
        let far = self.far.capabilities(peer);
        // The atomics of near ranks go through the adapter, too, if those of far ranks do.
        capabilities.atomics = far.atomics;
        // Only the far fabric carries datagrams.
        capabilities.multicast_max = far.multicast_max;
        capabilities
    }

    fn counters(&self) -> &Counters {
        &self.counters
    }

    fn fault(&self) -> Option<Fault> {
        self.near.fault().map(|fault| self.named(fault)).or_else(|| self.far.fault())
    }

    fn allocate(&self, len: usize) -> Result<Region, Fault> {
        let near = self.near.allocate(len)?;
        self.extend(near, self.far.adopt(near.local))
    }

    fn expose(&self, memory: Sge) -> Result<Region, Fault> {
        let near = self.near.expose(memory)?;
        self.extend(near, self.far.expose(memory))
    }

    fn withdraw(&self, region: Region) {
        if address::is_far(region.remote) {
            self.far.withdraw(address::far_region(region));
        }
        self.near.withdraw(address::near_region(region));
    }

    fn flag(&self, region: &Region, offset: usize, kind: FlagKind) -> Flag {
        let near = self.near.flag(&address::near_region(*region), offset, kind);
        let at = if address::is_far(region.remote) {
            // The far fabric must know of the flag: whom it wakes, and how.
            let far = self.far.flag(&address::far_region(*region), offset, kind);
            address::join(near.remote.at, far.remote.at)
        } else {
            address::near_only(near.remote.at)
        };
        Flag { local: near.local, remote: RemoteFlag { at, ..near.remote } }
    }

    fn write(&self, peer: usize, write: &RemoteWrite) -> Result<(), Fault> {
        ask!(self, peer,
            near(n, p) n.write(p, &address::near_write(write)).map_err(|e| self.named(e)),
            far(f) f.write(peer, &address::far_write(write)))
    }

    fn write_flag(&self, peer: usize, write: &RemoteWrite, then: &FlagWrite) -> Result<(), Fault> {
        ask!(self, peer,
            near(n, p) n
                .write_flag(p, &address::near_write(write), &address::near_flag(then))
                .map_err(|e| self.named(e)),
            far(f) f.write_flag(peer, &address::far_write(write), &address::far_flag(then)))
    }

    fn read(&self, peer: usize, read: &RemoteRead) -> Result<(), Fault> {
        ask!(self, peer,
            near(n, p) n.read(p, &address::near_read(read)).map_err(|e| self.named(e)),
            far(f) f.read(peer, &address::far_read(read)))
    }

    fn fetch_add(&self, peer: usize, add: &FetchAdd) -> Result<(), Fault> {
        match self.route(peer) {
            Route::Near(at) if self.by_processors(add.target) => {
                let add = FetchAdd { target: address::near(add.target), ..*add };
                self.near.fetch_add(at as usize, &add).map_err(|fault| self.named(fault))
            }
            _ => {
                let target = address::far(add.target);
                self.far.fetch_add(peer, &FetchAdd { target, ..*add })
            }
        }
    }

    fn compare_swap(&self, peer: usize, swap: &CompareSwap) -> Result<(), Fault> {
        match self.route(peer) {
            Route::Near(at) if self.by_processors(swap.target) => {
                let swap = CompareSwap { target: address::near(swap.target), ..*swap };
                self.near.compare_swap(at as usize, &swap).map_err(|fault| self.named(fault))
            }
            _ => {
                let target = address::far(swap.target);
                self.far.compare_swap(peer, &CompareSwap { target, ..*swap })
            }
        }
    }

    fn send(&self, peer: usize, head: Head, payload: Sge, done: Completion) -> PostOutcome {
        ask!(self, peer,
            near(n, p) n.send(p, head, payload, done),
            far(f) f.send(peer, head, payload, done))
    }

    fn receive(&self, from: Option<usize>) -> Option<ArrivedMessage> {
        if let Some(peer) = from {
            return ask!(self, peer,
                near(n, p) n.receive(Some(p)).map(|m| self.renumbered(m)),
                far(f) f.receive(Some(peer)));
        }
        // The fabrics take turns, so that neither starves the other.
        let far_first = self.far_first.replace(!self.far_first.get());
        let near = || self.near.receive(None).map(|m| self.renumbered(m));
        let far = || self.far.receive(None);
        if far_first { far().or_else(near) } else { near().or_else(far) }
    }

    fn release(&self, message: ArrivedMessage) {
        match self.route(message.peer) {
            Route::Near(at) => self.near.release(ArrivedMessage { peer: at as usize, ..message }),
            Route::Far => self.far.release(message),
        }
    }

    fn progress(&self) -> bool {
        self.near.progress() | self.far.progress()
    }

    fn keeps_back(&self) -> bool {
        self.near.keeps_back() || self.far.keeps_back()
    }

    fn idle(&self) -> bool {
        self.near.idle() && self.far.idle()
    }

    fn sleeper(&self) -> Arc<dyn Sleep> {
        self.sleeper.clone()
    }
}
