//! What a communicator keeps for its collective operations, made when an algorithm first needs it.

use crate::arena::NotifyArena;
use crate::hierarchy::Hierarchy;
use crate::rdma_pattern::WritePattern;
use crate::shm_queue::{OperationTicket, Tickets};
use crate::slots::Slots;
use crate::tally::TreeCounters;
use crate::{CommView, ReleaseGather, Selection};
use std::cell::{Cell, RefCell};
use std::ops::Deref;
use std::rc::Rc;
use weft_channel::multicast::MulticastMember;
use weft_fabric::{Fabric, Fault, GroupId};
use weft_p2p::Endpoint;

/// What one communicator keeps for its collective operations.
pub struct CollectiveState<F: Fabric> {
    /// Where ranks that share memory meet.
    pub area: ReleaseGather<F>,
    /// The pool of the process.
    arena: Rc<NotifyArena<F>>,
    slots: RefCell<Vec<Rc<Slots<F>>>>,
    tallies: RefCell<Vec<Rc<TreeCounters<F>>>>,
    selection: RefCell<Rc<Selection>>,
    hierarchy: RefCell<Option<Rc<Hierarchy<F>>>>,
    compositions: Tickets<F>,
    multicasts: Tickets<F>,
    /// Its levels may not use multicast.
    no_multicast: Cell<bool>,
    /// It gets no memory that its ranks share.
    lean: Cell<bool>,
    /// Its ranks are of jobs that compute with unlike arithmetic.
    unlike: Cell<bool>,
    group: RefCell<Option<Rc<MulticastMember<Endpoint<F>>>>>,
}

/// Multicast groups of the fabric that communicators share: adapters and switches have few.
const GROUPS: u64 = 64;

impl<F: Fabric> CollectiveState<F> {
    /// Empty: memory comes from `arena` when an algorithm first needs some. Operations may be under
    /// way at once.
    pub fn new(arena: Rc<NotifyArena<F>>) -> CollectiveState<F> {
        CollectiveState {
            area: ReleaseGather::new(arena.many_buffers()),
            arena,
            slots: RefCell::default(),
            tallies: RefCell::default(),
            selection: RefCell::default(),
            hierarchy: RefCell::default(),
            compositions: Tickets::default(),
            multicasts: Tickets::default(),
            no_multicast: Cell::default(),
            lean: Cell::default(),
            unlike: Cell::default(),
            group: RefCell::default(),
        }
    }

    /// The same for operations that begin one after the other.
    pub fn in_turn(arena: Rc<NotifyArena<F>>) -> CollectiveState<F> {
        let state = CollectiveState::new(arena);
        state.area.set_in_turn(true);
        state
    }

    /// An empty one of the same process and selection.
    pub(crate) fn another(&self) -> CollectiveState<F> {
        let state = CollectiveState::new(self.arena.clone());
        state.select(self.selection());
        state.no_multicast.set(self.no_multicast.get());
        state.lean.set(self.lean.get());
        state.unlike.set(self.unlike.get());
        state
    }

    /// Nobody will end the multicast groups of its levels: they have none. Said before they are made.
    pub fn forbid_multicast(&self) {
        self.no_multicast.set(true);
    }

    /// Unless [`CollectiveState::forbid_multicast`] was called.
    pub fn may_multicast(&self) -> bool {
        !self.no_multicast.get()
    }

    /// Says whether it does without memory that its ranks share, as where there are very many communicators: algorithms
    /// that send messages are chosen then. The same on all ranks, before the first operation.
    pub fn set_lean(&self, lean: bool) {
        self.lean.set(lean);
    }

    /// Whether it does without memory that its ranks share.
    pub fn is_lean(&self) -> bool {
        self.lean.get()
    }

    /// Excludes algorithms in which several ranks compute the same: its ranks are of jobs that compute with unlike arithmetic. Called
    /// on all ranks, before the first operation.
    pub fn set_unlike(&self) {
        self.unlike.set(true);
    }

    /// Reports whether [`CollectiveState::set_unlike`] was called.
    pub fn is_unlike(&self) -> bool {
        self.unlike.get()
    }

    /// What the levels of its two-level algorithms choose by.
    pub fn selection(&self) -> Rc<Selection> {
        self.selection.borrow().clone()
    }

    /// All ranks must select the same, before they have levels.
    pub fn select(&self, selection: Rc<Selection>) {
        *self.selection.borrow_mut() = selection;
    }

    /// The ranks of this node, and the leaders of all nodes, for one operation.
    pub(crate) fn hierarchy(&self, link: &CommView<F>) -> Composition<'_, F> {
        let mut hierarchy = self.hierarchy.borrow_mut();
        let hierarchy =
            hierarchy.get_or_insert_with(|| Rc::new(Hierarchy::new(link, self))).clone();
        Composition { hierarchy, _turn: self.compositions.pass(link) }
    }

    /// The slots of `pattern` for payloads of `len` bytes, which are received as `link` says.
    pub fn slots(&self, link: &CommView<F>, pattern: WritePattern, len: usize) -> Rc<Slots<F>> {
        let (mut all, reception) = (self.slots.borrow_mut(), link.reception);
        match all.iter().find(|slots| slots.serve(pattern, len, reception)) {
            Some(slots) => slots.clone(),
            None => {
                let slots = Rc::new(Slots::new(pattern, len, reception, self.arena.clone()));
                all.push(slots.clone());
                slots
            }
        }
    }

    /// The words that are counted on in a tree of this fan-in.
    pub fn tally(&self, fan_in: usize) -> Rc<TreeCounters<F>> {
        let mut all = self.tallies.borrow_mut();
        match all.iter().find(|tally| tally.fan_in() == fan_in) {
            Some(tally) => tally.clone(),
            None => {
                let tally = Rc::new(TreeCounters::new(fan_in));
                all.push(tally.clone());
                tally
            }
        }
    }

    /// The multicast group, for one operation after the other: they must not overlap.
    pub async fn multicast(&self, link: &CommView<F>) -> Result<MulticastSession<'_, F>, Fault> {
        let (turn, _) = self.multicasts.enter(link).await?;
        if let Some(group) = &*self.group.borrow() {
            return Ok(MulticastSession { group: group.clone(), _turn: turn });
        }
        // The operation's name is known to all, and no other's: a communicator has several states.
        let context = mix(link.context.0 ^ mix(link.tag as u64));
        let group = GroupId((context % GROUPS) as u32);
        let (endpoint, members) = (&link.endpoint, link.members.ranks().clone());
        let group = Rc::new(MulticastMember::open(endpoint, group, context, members, link.rank)?);
        *self.group.borrow_mut() = Some(group.clone());
        Ok(MulticastSession { group, _turn: turn })
    }

    /// Ends it, when the operations that have begun are over: the last lost multicast is repaired before
    /// anybody forgets it. Collective where multicast was used, and over at once elsewhere.
    pub async fn close(&self) -> Result<(), Fault> {
        // A communicator may be freed while nonblocking operations on it are under way.
        self.compositions.empty().await?;
        let hierarchy = self.hierarchy.take();
        let below = hierarchy.iter().flat_map(|hierarchy| hierarchy.states());
        for state in below.chain([self]) {
            state.multicasts.empty().await?;
            let group = state.group.take().and_then(Rc::into_inner);
            if let Some(group) = group {
                group.close().await?;
            }
        }
        Ok(())
    }

    /// Whether [`CollectiveState::close`] has anything to do.
    pub fn has_multicast(&self) -> bool {
        // A level's multicast group may be opened by what is still under way.
        self.group.borrow().is_some() || self.hierarchy.borrow().is_some()
    }
}

/// The levels while a two-level operation is under way.
pub(crate) struct Composition<'g, F: Fabric> {
    hierarchy: Rc<Hierarchy<F>>,
    _turn: OperationTicket<'g, F>,
}

impl<F: Fabric> Deref for Composition<'_, F> {
    type Target = Hierarchy<F>;

    fn deref(&self) -> &Hierarchy<F> {
        &self.hierarchy
    }
}

/// The multicast group while one operation has it.
pub struct MulticastSession<'g, F: Fabric> {
    group: Rc<MulticastMember<Endpoint<F>>>,
    _turn: OperationTicket<'g, F>,
}

impl<F: Fabric> Deref for MulticastSession<'_, F> {
    type Target = MulticastMember<Endpoint<F>>;

    fn deref(&self) -> &Self::Target {
        &self.group
    }
}

/// A number in which every bit depends on every bit of `word` (the finalizer of SplitMix64).
fn mix(word: u64) -> u64 {
    let word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}
