//! State that a communicator keeps for its collective operations, made when an algorithm first needs it.

pub mod hierarchy;

use self::hierarchy::Hierarchy;
use crate::algorithm_trials::{AlgorithmTrials, DueTrial};
use crate::arena::NotifyArena;
use crate::level_tree::LevelNodes;
use crate::rdma_pattern::WritePattern;
use crate::segment_copies::SegmentCarrier;
use crate::shm_queue::{OperationTicket, Tickets};
use crate::slots::WriteSlots;
use crate::tree_counters::TreeCounters;
use crate::{AlgorithmChoice, CommView, Members, RankPlacement, ReleaseGather, Selection};
use std::cell::{Cell, OnceCell, RefCell};
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
    /// Trials of algorithms. Boxed, because most communicators have none.
    trials: OnceCell<Box<AlgorithmTrials>>,
    hierarchy: RefCell<Option<Rc<Hierarchy<F>>>>,
    compositions: Tickets<F>,
    /// This rank's places in trees of a node's levels.
    pub(crate) trees: LevelNodes,
    multicasts: Tickets<F>,
    limits: Cell<StateLimits>,
    group: RefCell<Option<Rc<MulticastMember<Endpoint<F>>>>>,
}

/// Abilities of the ranks that a communicator does not use.
#[derive(Clone, Copy, Default)]
struct StateLimits {
    /// True if the communicator's levels may not use multicast.
    no_multicast: bool,
    /// True if the communicator uses no memory that its ranks share.
    lean: bool,
    /// True if the communicator's ranks belong to jobs that compute with different arithmetic.
    unlike: bool,
}

/// Maximum number of multicast groups that the communicators share. Adapters and switches support few groups.
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
            trials: OnceCell::new(),
            hierarchy: RefCell::default(),
            compositions: Tickets::default(),
            trees: LevelNodes::default(),
            multicasts: Tickets::default(),
            limits: Cell::default(),
            group: RefCell::default(),
        }
    }

    /// Makes a state for operations that never overlap: each operation begins after the previous operation has ended.
    pub fn in_turn(arena: Rc<NotifyArena<F>>) -> CollectiveState<F> {
        let state = CollectiveState::new(arena);
        state.area.forbid_overlap();
        state
    }

    /// Makes an empty state for the same process, with the same selection and settings.
    pub(crate) fn another(&self) -> CollectiveState<F> {
        let state = CollectiveState::new(self.arena.clone());
        state.select(self.selection());
        state.limits.set(self.limits.get());
        if self.area.has_unlike_copies() {
            state.area.set_unlike_copies();
        }
        state
    }

    /// Forbids multicast on the levels. Used for a state that is never closed, because [`CollectiveState::close`] ends the
    /// multicast groups. Must be called before the levels are made.
    pub fn forbid_multicast(&self) {
        self.limits.set(StateLimits { no_multicast: true, ..self.limits.get() });
    }

    /// Makes the communicator use no memory that its ranks share. This is best with very many communicators. Algorithms that send
    /// messages are chosen then. All ranks must call this function before the first operation.
    pub fn set_lean(&self) {
        self.limits.set(StateLimits { lean: true, ..self.limits.get() });
    }

    /// Returns true if the communicator uses no memory that its ranks share.
    pub fn is_lean(&self) -> bool {
        self.limits.get().lean
    }

    /// Excludes algorithms in which several ranks compute the same result, because the ranks belong to jobs that compute with
    /// different arithmetic. All ranks must call this function before the first operation.
    pub fn set_unlike(&self) {
        self.limits.set(StateLimits { unlike: true, ..self.limits.get() });
    }

    /// Returns the placement of `members`, reduced by the abilities that the communicator does not use.
    pub fn placement(&self, members: &Members, fabric: &F) -> RankPlacement {
        let (limits, mut site) = (self.limits.get(), members.topology(fabric));
        site.same_node &= !limits.lean;
        site.same_arithmetic &= !limits.unlike;
        if limits.no_multicast {
            site.multicast = 0;
        }
        site
    }

    /// Returns the carrier of segments: in place if all ranks know that they can read each other's private memory. All ranks get the same
    /// answer.
    pub(crate) fn segment_carrier(&self, link: &CommView<F>) -> SegmentCarrier {
        let known = || link.members.topology(link.endpoint.fabric()).in_place;
        match self.area.known_direct().or_else(known) {
            Some(true) => SegmentCarrier::InPlace,
            _ => SegmentCarrier::Messages,
        }
    }

    /// Returns the rules by which the levels of two-level algorithms select an algorithm.
    pub fn selection(&self) -> Rc<Selection> {
        self.selection.borrow().clone()
    }

    /// Sets the rules of [`CollectiveState::selection`]. All ranks must set the same rules, before the levels are made.
    pub fn select(&self, selection: Rc<Selection>) {
        *self.selection.borrow_mut() = selection;
    }

    /// Lets the communicator choose algorithms by the times of its calls. All ranks must call this function before the first
    /// operation, and operations must not overlap.
    pub fn enable_trials(&self) {
        self.trials.get_or_init(Box::default);
    }

    /// Returns the trials, if the communicator has any.
    #[inline]
    pub fn trials(&self) -> Option<&AlgorithmTrials> {
        self.trials.get().map(|trials| &**trials)
    }

    /// Returns the task of the trials in a call that now begins by `choice`.
    #[inline]
    pub(crate) fn due_trial(&self, choice: AlgorithmChoice) -> Option<DueTrial<'_>> {
        self.trials()?.due(choice)
    }

    /// Returns the hierarchy (the ranks of this rank's group, and the leaders of all groups) for one operation. If several operations
    /// may be under way at once, an operation waits for its turn: otherwise the steps of two operations could enter the memory that
    /// the ranks of a group share in another order on each rank.
    pub(crate) async fn hierarchy(
        &self,
        link: &CommView<F>,
    ) -> Result<HierarchyTurn<'_, F>, Fault> {
        let hierarchy = {
            let mut hierarchy = self.hierarchy.borrow_mut();
            hierarchy.get_or_insert_with(|| Rc::new(Hierarchy::new(link, self))).clone()
        };
        let turn = match self.area.is_in_turn() || !hierarchy.group.shares_memory() {
            true => self.compositions.pass(link),
            false => self.compositions.enter(link).await?.0,
        };
        Ok(HierarchyTurn { hierarchy, _turn: turn })
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

    /// Returns the multicast group for one operation. Operations that use the group must not overlap.
    pub async fn multicast(&self, link: &CommView<F>) -> Result<MulticastSession<'_, F>, Fault> {
        let (turn, _) = self.multicasts.enter(link).await?;
        if let Some(group) = &*self.group.borrow() {
            return Ok(MulticastSession { group: group.clone(), _turn: turn });
        }
        // The context and the tag of this operation are known to all ranks, and are unique together. The communicator alone would
        // not be unique, because a communicator has several states.
        let context = mix(link.context.0 ^ mix(link.tag as u64));
        let group = GroupId((context % GROUPS) as u32);
        let (endpoint, members) = (&link.endpoint, link.members.ranks().clone());
        let group = Rc::new(MulticastMember::open(endpoint, group, context, members, link.rank)?);
        *self.group.borrow_mut() = Some(group.clone());
        Ok(MulticastSession { group, _turn: turn })
    }

    /// Ends the state when all operations that have begun are complete. If the last multicast was lost, it is sent again while the
    /// ranks still have its data. If multicast was used, all ranks must call this function. Otherwise the function returns at once.
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
pub(crate) struct HierarchyTurn<'g, F: Fabric> {
    hierarchy: Rc<Hierarchy<F>>,
    _turn: OperationTicket<'g, F>,
}

impl<F: Fabric> Deref for HierarchyTurn<'_, F> {
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
