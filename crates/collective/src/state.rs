//! State that a communicator keeps for its collective operations, made when an algorithm first needs it.

use crate::arena::NotifyArena;
use crate::hierarchy::Hierarchy;
use crate::rdma_pattern::WritePattern;
use crate::shm_queue::{OperationTicket, Tickets};
use crate::slots::WriteSlots;
use crate::tree_counters::TreeCounters;
use crate::{CommView, ReleaseGather, Selection};
use std::cell::{Cell, RefCell};
use std::ops::Deref;
use std::rc::Rc;
use weft_channel::multicast::MulticastMember;
use weft_fabric::{Fabric, Fault, GroupId};
use weft_p2p::Endpoint;

/// State that one communicator keeps for its collective operations.
pub struct CollectiveState<F: Fabric> {
    /// Shared memory of ranks on one node.
    pub area: ReleaseGather<F>,
    /// Pool of notify buffers of the process.
    arena: Rc<NotifyArena<F>>,
    slots: RefCell<Vec<Rc<WriteSlots<F>>>>,
    tallies: RefCell<Vec<Rc<TreeCounters<F>>>>,
    selection: RefCell<Rc<Selection>>,
    hierarchy: RefCell<Option<Rc<Hierarchy<F>>>>,
    compositions: Tickets<F>,
    multicasts: Tickets<F>,
    /// True if the communicator's levels may not use multicast.
    no_multicast: Cell<bool>,
    /// True if the communicator uses no memory that its ranks share.
    lean: Cell<bool>,
    /// True if the communicator's ranks are of jobs that compute with different arithmetic.
    unlike: Cell<bool>,
    group: RefCell<Option<Rc<MulticastMember<Endpoint<F>>>>>,
}

/// Number of multicast groups of the fabric that communicators share: adapters and switches support few.
const GROUPS: u64 = 64;

impl<F: Fabric> CollectiveState<F> {
    /// Makes an empty state. Algorithms take their memory from `arena` when they first need it. Operations may overlap.
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

    /// Makes a state for operations that never overlap: each begins after the previous one has ended.
    pub fn in_turn(arena: Rc<NotifyArena<F>>) -> CollectiveState<F> {
        let state = CollectiveState::new(arena);
        state.area.forbid_overlap();
        state
    }

    /// Makes an empty state of the same process with the same selection and settings.
    pub(crate) fn another(&self) -> CollectiveState<F> {
        let state = CollectiveState::new(self.arena.clone());
        state.select(self.selection());
        state.no_multicast.set(self.no_multicast.get());
        state.lean.set(self.lean.get());
        state.unlike.set(self.unlike.get());
        state
    }

    /// Forbids multicast on the levels. Used for a state that is never closed, because [`CollectiveState::close`] ends the
    /// multicast groups. Called before the levels are made.
    pub fn forbid_multicast(&self) {
        self.no_multicast.set(true);
    }

    /// Returns true unless [`CollectiveState::forbid_multicast`] was called.
    pub fn may_multicast(&self) -> bool {
        !self.no_multicast.get()
    }

    /// Sets `lean`: with true, the communicator does without memory that its ranks share, as is best with very many communicators.
    /// Algorithms that send messages are chosen then. All ranks set the same, before the first operation.
    pub fn set_lean(&self, lean: bool) {
        self.lean.set(lean);
    }

    /// Returns true if the communicator does without memory that its ranks share.
    pub fn is_lean(&self) -> bool {
        self.lean.get()
    }

    /// Excludes algorithms in which several ranks compute the same result: the ranks are of jobs that compute with different
    /// arithmetic. Called on all ranks, before the first operation.
    pub fn set_unlike(&self) {
        self.unlike.set(true);
    }

    /// Returns true if [`CollectiveState::set_unlike`] was called.
    pub fn is_unlike(&self) -> bool {
        self.unlike.get()
    }

    /// Returns the rules by which the levels of two-level algorithms select an algorithm.
    pub fn selection(&self) -> Rc<Selection> {
        self.selection.borrow().clone()
    }

    /// Sets the rules of [`CollectiveState::selection`]. All ranks must set the same rules, before the levels are made.
    pub fn select(&self, selection: Rc<Selection>) {
        *self.selection.borrow_mut() = selection;
    }

    /// Returns the hierarchy (the ranks of this node, and the leaders of all nodes) for one operation.
    pub(crate) fn hierarchy(&self, link: &CommView<F>) -> Composition<'_, F> {
        let mut hierarchy = self.hierarchy.borrow_mut();
        let hierarchy =
            hierarchy.get_or_insert_with(|| Rc::new(Hierarchy::new(link, self))).clone();
        Composition { hierarchy, _turn: self.compositions.pass(link) }
    }

    /// Returns the slots of `pattern` for payloads of `len` bytes, received by the method that `link` names.
    pub fn slots(
        &self,
        link: &CommView<F>,
        pattern: WritePattern,
        len: usize,
    ) -> Rc<WriteSlots<F>> {
        let (mut all, reception) = (self.slots.borrow_mut(), link.reception);
        match all.iter().find(|slots| slots.serve(pattern, len, reception)) {
            Some(slots) => slots.clone(),
            None => {
                let slots = Rc::new(WriteSlots::new(pattern, len, reception, self.arena.clone()));
                all.push(slots.clone());
                slots
            }
        }
    }

    /// Returns the counters of a tree of this fan-in.
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

    /// Returns the multicast group for one operation at a time: the operations that use it must not overlap.
    pub async fn multicast(&self, link: &CommView<F>) -> Result<MulticastSession<'_, F>, Fault> {
        let (turn, _) = self.multicasts.enter(link).await?;
        if let Some(group) = &*self.group.borrow() {
            return Ok(MulticastSession { group: group.clone(), _turn: turn });
        }
        // This operation's context and tag are known to all ranks and unique: a communicator has several states.
        let context = mix(link.context.0 ^ mix(link.tag as u64));
        let group = GroupId((context % GROUPS) as u32);
        let (endpoint, members) = (&link.endpoint, link.members.ranks().clone());
        let group = Rc::new(MulticastMember::open(endpoint, group, context, members, link.rank)?);
        *self.group.borrow_mut() = Some(group.clone());
        Ok(MulticastSession { group, _turn: turn })
    }

    /// Ends the state when all operations that have begun are complete: a lost last multicast is repaired before
    /// any rank forgets it. Collective if multicast was used; otherwise returns at once.
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

    /// Tests whether [`CollectiveState::close`] has anything to do.
    pub fn has_multicast(&self) -> bool {
        // An operation still under way may open a level's multicast group.
        self.group.borrow().is_some() || self.hierarchy.borrow().is_some()
    }
}

/// The levels, in use by a two-level operation.
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

/// The multicast group, in use by one operation.
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

/// Returns a number in which every bit depends on every bit of `word` (the finalizer of SplitMix64).
fn mix(word: u64) -> u64 {
    let word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ word >> 31
}
