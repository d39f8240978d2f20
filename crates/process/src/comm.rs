//! Communicators: a group, a rank, and matching spaces of their own (MPI 5.0, chapter 7).
//!
//! ```text
//!   Comm
//!     ├─ groups.rs          its processes: own group, other group, rank
//!     ├─ space.rs           its matching spaces, and the tags of its collective operations
//!     ├─ contexts.rs        its views for nonblocking and persistent operations
//!     ├─ ../comm_selection  the last choices of algorithms; CollectiveState: the state of the algorithms
//!     └─ ../resources.rs    its share in the memory that ranks share
//! ```

mod contexts;
mod groups;
mod space;

pub(crate) use self::space::PARTITIONED;

use self::contexts::CommContexts;
use self::groups::CommGroups;
use self::space::{CommSpace, OperationKind};
use crate::comm_selection::RecentChoices;
use crate::engine::Lease;
use crate::resources::{CommResources, ShmCommCount};
use crate::topology::CommTopology;
use crate::{Attributes, Compare, Engine, Error, Group, Info};
use std::cell::{Cell, OnceCell, RefCell};
use std::ffi::OsString;
use std::rc::Rc;
use weft_collective::{CollectiveState, CommView, Members, Reception, Selection, Via};
use weft_fabric::{Fabric, FabricExt, Work};
use weft_p2p::MatchingContext;

/// Maximum tag (attribute MPI_TAG_UB).
pub const TAG_UB: i32 = i32::MAX;

/// A communicator of this process: of one group, or (an intercommunicator) between two groups.
pub struct Comm<F: Fabric> {
    pub(crate) engine: Rc<Engine<F>>,
    groups: CommGroups,
    space: CommSpace,
    contexts: CommContexts<F>,
    /// The last choices of algorithms.
    pub(crate) choices: RecentChoices,
    /// State of the communicator's algorithms.
    pub(crate) state: Rc<CollectiveState<F>>,
    /// Name in error texts. Empty until MPI_Comm_set_name (MPI 5.0, section 7.8), except for MPI_COMM_WORLD and MPI_COMM_SELF.
    pub name: RefCell<OsString>,
    /// Attributes: values by key that the program caches (MPI 5.0, section 7.7). The layer above calls the callbacks of the keys.
    pub attributes: RefCell<Attributes>,
    /// Virtual topology of the communicator's ranks (MPI 5.0, chapter 8), if there is one.
    pub topology: RefCell<Option<CommTopology>>,
    /// Hints of the program about its use of the communicator.
    pub hints: RefCell<Info>,
    /// State that the layer above needs for buffered sends on the communicator.
    pub buffer: OnceCell<Rc<dyn std::any::Any>>,
    /// The object of the layer above that carries the communicator's messages, if they do not go through this communicator's engine.
    pub carrier: OnceCell<Rc<dyn std::any::Any>>,
    /// Handle of the communicator's error handler, which only the layer above understands.
    pub errhandler: Cell<usize>,
    /// Number of collective operations that the program has started on the communicator. The layer above counts them.
    pub started: Cell<u64>,
    /// Entry of this communicator in the count that [`Engine::set_shm_comm_limit`] limits.
    shm_comm_count: OnceCell<ShmCommCount>,
    /// Lease that keeps the connections to the communicator's processes of other jobs.
    _lease: Option<Lease>,
}

/// Context numbers of the two communicators that every process has, and of messages before there is a communicator.
const WORLD: u64 = 1;
const SELF: u64 = 2;
pub(crate) const NONE: u64 = 3;

impl<F: Fabric> Comm<F> {
    fn new(
        engine: &Rc<Engine<F>>,
        space: CommSpace,
        group: Group,
        remote: Option<Group>,
        name: &str,
    ) -> Rc<Comm<F>> {
        let state = Rc::new(CollectiveState::in_turn(engine.arena().clone()));
        if !engine.computes_alike(&group) {
            state.set_unlike();
        }
        if !engine.copies_alike(&group) {
            state.area.set_unlike_copies();
        }
        if engine.learns() && space.operations == OperationKind::Blocking && remote.is_none() {
            state.enable_trials();
        }
        Rc::new(Comm {
            _lease: engine.lease([Some(&group), remote.as_ref()]),
            engine: engine.clone(),
            groups: CommGroups::new(group, remote, engine.rank() as u32),
            space,
            contexts: CommContexts::default(),
            choices: RecentChoices::default(),
            state,
            name: RefCell::new(name.into()),
            attributes: RefCell::default(),
            topology: RefCell::default(),
            hints: RefCell::default(),
            buffer: OnceCell::new(),
            carrier: OnceCell::new(),
            errhandler: Cell::new(0),
            started: Cell::new(0),
            shm_comm_count: OnceCell::new(),
        })
    }

    /// Makes a new communicator on which all members have agreed.
    pub(crate) fn agreed(
        engine: &Rc<Engine<F>>,
        agreed: CommResources,
        group: Group,
        remote: Option<Group>,
    ) -> Rc<Comm<F>> {
        let CommResources { id, lean } = agreed;
        let space = CommSpace::new(id, OperationKind::Blocking);
        let comm = Comm::new(engine, space, group, remote, "");
        match lean {
            true => comm.state.set_lean(),
            false => _ = comm.shm_comm_count.set(ShmCommCount::new(engine.shm_comms())),
        }
        comm
    }

    /// Makes MPI_COMM_WORLD.
    pub fn world(engine: &Rc<Engine<F>>) -> Rc<Comm<F>> {
        let all: Vec<u32> = (0..engine.endpoint().fabric().size() as u32).collect();
        Comm::world_of(engine, Group::new(all))
    }

    /// Makes MPI_COMM_WORLD with the given group of all ranks in their order. Processes of a simulation share the group.
    pub fn world_of(engine: &Rc<Engine<F>>, all: Group) -> Rc<Comm<F>> {
        debug_assert_eq!(all.size(), engine.endpoint().fabric().size());
        let space = CommSpace::new(WORLD, OperationKind::Blocking);
        Comm::new(engine, space, all, None, "MPI_COMM_WORLD")
    }

    /// Makes MPI_COMM_SELF.
    pub fn myself(engine: &Rc<Engine<F>>) -> Rc<Comm<F>> {
        let group = Group::new(vec![engine.rank() as u32]);
        let space = CommSpace::new(SELF, OperationKind::Blocking);
        Comm::new(engine, space, group, None, "MPI_COMM_SELF")
    }

    /// Makes a communicator with the same ranks and the same matching space for messages, whose messages go through another engine. It
    /// shares no memory with this communicator. All members carry their messages through such an engine, or none does.
    pub fn carried_by(&self, engine: &Rc<Engine<F>>) -> Rc<Comm<F>> {
        let group = Group::new(self.group().ranks().to_vec());
        Comm::new(engine, CommSpace::new(self.id(), OperationKind::Blocking), group, None, "")
    }

    /// Returns this process's rank in [`Comm::group`].
    pub fn rank(&self) -> usize {
        self.groups.rank
    }

    /// Returns the number of processes in [`Comm::group`]. Processes on the other side of an intercommunicator do not count.
    pub fn size(&self) -> usize {
        self.group().size()
    }

    /// Returns the processes of this communicator. In an intercommunicator, returns the processes of this side.
    pub fn group(&self) -> &Group {
        &self.groups.local
    }

    /// Returns the other group of an intercommunicator.
    pub fn remote(&self) -> Option<&Group> {
        self.groups.remote.as_ref()
    }

    /// Returns the processes to which messages go. Ranks in calls are places in this group.
    #[inline]
    pub fn peers(&self) -> &Group {
        &self.groups.peers
    }

    /// Returns the engine that progresses the communicator's operations. The communicator keeps the engine alive.
    pub fn engine(&self) -> &Rc<Engine<F>> {
        &self.engine
    }

    /// Returns the number of the communicator in reports and in the tool interface. The number is unique in the job.
    pub fn id(&self) -> u64 {
        self.space.id
    }

    /// Returns the matching space of the communicator's messages.
    pub fn context(&self) -> MatchingContext {
        self.space.messages()
    }

    /// Returns true if `context` belongs to this communicator.
    pub fn owns(&self, context: MatchingContext) -> bool {
        self.space.owns(context)
    }

    /// Returns the view for the next collective operation. All ranks start these operations in the same order.
    pub fn link(&self) -> CommView<F> {
        self.engine.endpoint().fabric().charge(Work::Entry);
        self.link_with(self.group().members(), self.space.next_tag())
    }

    /// Returns the view for the next collective operation, and the view of the other group if there is one.
    pub(crate) fn links(&self) -> (CommView<F>, Option<CommView<F>>) {
        let local = self.link();
        let tag = CommSpace::bridge_tag(local.tag);
        let bridge = self.remote().map(|group| self.link_with(group.members(), tag));
        (local, bridge)
    }

    fn link_with(&self, members: &Rc<Members>, tag: i32) -> CommView<F> {
        let endpoint = self.engine.endpoint().clone();
        CommView {
            endpoint,
            members: members.clone(),
            rank: self.rank(),
            context: self.space.collectives(),
            tag,
            via: Via::Messages,
            reception: Reception::Marks,
        }
    }

    /// Returns the view of the communicator for its nonblocking operations, which have their own numbers and their own
    /// release-gather area. MPI requires that all ranks start blocking and nonblocking operations in the same order. Programs that
    /// keep the order only among blocking operations and among nonblocking operations work with other libraries. Because of this
    /// view, such programs also work with Weft.
    pub fn nonblocking_context(&self) -> &Rc<Comm<F>> {
        self.contexts.nonblocking_or(|| self.view(OperationKind::Nonblocking))
    }

    /// Makes a view of the communicator for one persistent operation, with its own tag and its own release-gather area. All ranks
    /// make these views in the same order, and use them in any order (MPI 5.0, section 6.13). The operation uses its view at every
    /// start, and the messages of its starts match in order. Only the first views may multicast.
    pub fn persistent_context(&self) -> Rc<Comm<F>> {
        self.contexts.add_persistent(|made| self.view(OperationKind::Persistent(made)))
    }

    /// Makes a view of the communicator for operations that do not run in the order of its blocking calls.
    fn view(&self, operations: OperationKind) -> Rc<Comm<F>> {
        let (group, remote) = (self.group().clone(), self.remote().cloned());
        let space = CommSpace::new(self.id(), operations);
        let view = Comm::new(&self.engine, space, group, remote, "");
        view.state.area.allow_overlap();
        if self.state.is_lean() {
            view.state.set_lean();
        }
        view.select(self.selection());
        view
    }

    /// Returns the selection of the communicator's algorithms.
    pub fn selection(&self) -> Rc<Selection> {
        self.state.selection()
    }

    /// Sets the selection of the communicator's algorithms. All ranks must set the same selection.
    pub fn select(&self, selection: Rc<Selection>) {
        if let Some(view) = self.contexts.nonblocking() {
            view.select(selection.clone());
        }
        self.state.select(selection);
        self.choices.forget();
        if let Some(trials) = self.state.trials() {
            trials.forget();
        }
    }

    /// Returns true if this is the communicator that blocking operations use, not a view of it.
    pub(crate) fn is_foreground(&self) -> bool {
        self.space.operations == OperationKind::Blocking
    }

    /// Returns true if [`Comm::close`] has anything to do.
    pub fn must_close(&self) -> bool {
        self.states().any(|state| state.has_multicast())
    }

    /// Returns the states of the communicator's views, in the same order on all ranks.
    fn states(&self) -> impl Iterator<Item = Rc<CollectiveState<F>>> + use<F> {
        std::iter::once(self.state.clone()).chain(self.contexts.states())
    }

    /// Ends multicast: repairs losses before any rank forgets the data. Must be the last operation before the communicator is
    /// freed. Collective if multicast was used. Waits for operations under way.
    pub fn close(&self) -> impl Future<Output = Result<(), Error>> + use<F> {
        let states = self.states();
        async move {
            for state in states {
                state.close().await?;
            }
            Ok(())
        }
    }

    /// Compares this communicator to `other` (MPI_Comm_compare; MPI 5.0, section 7.4.1). Not collective.
    pub fn compare(&self, other: &Comm<F>) -> Compare {
        match self.id() == other.id() {
            true => Compare::Ident,
            false => self.groups.compare(&other.groups),
        }
    }

    /// Returns the staging memory of the process.
    pub(crate) fn pool(&self) -> &weft_fabric::StagingPool {
        self.engine.endpoint().staging()
    }
}
