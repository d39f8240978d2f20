//! The joined fabric: each operation goes to the fabric of its peer.

use crate::address;
use crate::sleeper::JoinedSleep;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use weft_fabric::wait::Sleep;
use weft_fabric::{
    ArrivedMessage, Capabilities, Completion, Copies, Counter, Counters, Datagram, Fabric,
    FabricExt, Facets, Fault, FaultCause, Flag, GroupId, Head, Peek, PeerWords, PostOutcome,
    Region, RemoteAddr, RemoteFlag, Sge,
};

/// Which fabric reaches a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Route {
    /// The near one, where it has this rank.
    Near(u32),
    Far,
}

/// A near and a far fabric. The near one numbers the ranks of this node, the far one all ranks.
pub struct Joined<N: Fabric, R: Fabric> {
    near: N,
    far: R,
    counters: Rc<Counters>,
    /// By rank.
    nodes: Box<[u32]>,
    places: RefCell<Vec<Route>>,
    /// Rank by near rank.
    ranks: RefCell<Vec<u32>>,
    /// [`Fabric::receive`] from anybody looks into the far fabric first.
    far_first: Cell<bool>,
    sleeper: Arc<JoinedSleep>,
}

/// Asks one of two fabrics.
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
    /// Joins `near`, which connects the ranks of this process's node, and `far`, which connects all.
    /// `nodes`: the node of every rank; the near ranks are those of this node in their order. Both
    /// fabrics must count in `counters`, and a sleep on the far one must end when the near one is
    /// rung.
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

    /// What the near fabric calls a peer; `None`: the far one reaches it.
    pub fn near_number(&self, peer: usize) -> Option<usize> {
        match self.route(peer) {
            Route::Near(at) => Some(at as usize),
            Route::Far => None,
        }
    }

    /// A process of another job, which both fabrics have made a peer: the far one's number is the number here, and from now on the
    /// near one reaches it, by `near`. Nothing was exchanged with it before. Those that are far need no word.
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

    /// It is gone again.
    pub fn forget_near(&self, peer: usize) {
        if let Some(place) = self.places.borrow_mut().get_mut(peer) {
            *place = Route::Far;
        }
    }

    /// The number of a peer of the near fabric.
    #[inline]
    fn rank_of(&self, near: usize) -> usize {
        self.ranks.borrow()[near] as usize
    }

    /// The fabric that connects the ranks of this node, which it numbers among themselves.
    pub fn near(&self) -> &N {
        &self.near
    }

    /// The fabric that connects all ranks, and carries what goes to other nodes.
    pub fn far(&self) -> &R {
        &self.far
    }

    /// A region of the near fabric, reached by the far one, too.
    fn extend(&self, near: Region, far: Result<Region, Fault>) -> Result<Region, Fault> {
        match far {
            Ok(far) => Ok(Region { remote: address::join(near.remote, far.remote), ..near }),
            Err(fault) => {
                self.near.withdraw(near);
                Err(fault)
            }
        }
    }

    /// Who does atomics on a word towards near ranks. If far ones do them, too, it must be the same
    /// adapter, unless that is coherent with processors.
    fn by_processors(&self, word: RemoteAddr) -> bool {
        !address::is_far(word) || self.far.capabilities(self.far.rank()).coherent_atomics
    }

    fn renumbered(&self, message: ArrivedMessage) -> ArrivedMessage {
        ArrivedMessage { peer: self.rank_of(message.peer), ..message }
    }

    /// The name of a rank in what a near operation reports.
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
            // A handler sees both or nothing.
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
        // Near ones, too, go through the adapter where far ones do.
        capabilities.atomics = far.atomics;
        // The far one alone carries datagrams.
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

    fn flag(&self, region: &Region, offset: usize, waking: bool) -> Flag {
        let near = self.near.flag(&address::near_region(*region), offset, waking);
        let at = if address::is_far(region.remote) {
            // It must know of the flag: whom it wakes, and how.
            let far = self.far.flag(&address::far_region(*region), offset, waking);
            address::join(near.remote.at, far.remote.at)
        } else {
            address::near_only(near.remote.at)
        };
        Flag { local: near.local, remote: RemoteFlag { at, waking } }
    }

    fn write(&self, peer: usize, src: Sge, dst: RemoteAddr, done: Completion) -> Result<(), Fault> {
        ask!(self, peer,
            near(n, p) n.write(p, src, address::near(dst), done).map_err(|e| self.named(e)),
            far(f) f.write(peer, src, address::far(dst), done))
    }

    fn write_flag(
        &self,
        peer: usize,
        src: Sge,
        dst: RemoteAddr,
        flag: RemoteFlag,
        value: u64,
        done: Completion,
    ) -> Result<(), Fault> {
        ask!(self, peer,
        near(n, p) {
            let flag = RemoteFlag { at: address::near(flag.at), ..flag };
            n.write_flag(p, src, address::near(dst), flag, value, done)
                .map_err(|e| self.named(e))
        },
        far(f) {
            let flag = RemoteFlag { at: address::far(flag.at), ..flag };
            f.write_flag(peer, src, address::far(dst), flag, value, done)
        })
    }

    fn read(&self, peer: usize, dst: Sge, src: RemoteAddr, done: Completion) -> Result<(), Fault> {
        ask!(self, peer,
            near(n, p) n.read(p, dst, address::near(src), done).map_err(|e| self.named(e)),
            far(f) f.read(peer, dst, address::far(src), done))
    }

    fn fetch_add(
        &self,
        peer: usize,
        target: RemoteAddr,
        operand: u64,
        result: Sge,
        done: Completion,
    ) -> Result<(), Fault> {
        match self.route(peer) {
            Route::Near(at) if self.by_processors(target) => {
                let target = address::near(target);
                let added = self.near.fetch_add(at as usize, target, operand, result, done);
                added.map_err(|fault| self.named(fault))
            }
            _ => self.far.fetch_add(peer, address::far(target), operand, result, done),
        }
    }

    fn compare_swap(
        &self,
        peer: usize,
        target: RemoteAddr,
        compare: u64,
        swap: u64,
        result: Sge,
        done: Completion,
    ) -> Result<(), Fault> {
        match self.route(peer) {
            Route::Near(at) if self.by_processors(target) => {
                let (at, target) = (at as usize, address::near(target));
                let swapped = self.near.compare_swap(at, target, compare, swap, result, done);
                swapped.map_err(|fault| self.named(fault))
            }
            _ => self.far.compare_swap(peer, address::far(target), compare, swap, result, done),
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
        // In turns, so that neither starves the other.
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
