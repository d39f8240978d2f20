//! Communicators: a group, a rank, and matching spaces of their own (MPI 5.0, chapter 7).

use crate::comm_selection::Choices;
use crate::engine::Lease;
use crate::topology::CommTopology;
use crate::{Attributes, Buffer, Compare, Engine, Error, Group, Info};
use std::cell::{Cell, OnceCell, RefCell};
use std::ffi::OsString;
use std::rc::Rc;
use weft_collective::hierarchy::LEVELS;
use weft_collective::{CollectiveState, CommView, Members, Reception, Selection, Via};
use weft_fabric::{Fabric, FabricExt, Work};
use weft_p2p::MatchingContext;

/// Maximum tag (attribute MPI_TAG_UB).
pub const TAG_UB: i32 = i32::MAX;

/// A communicator of this process: of one group, or (an intercommunicator) between two groups.
pub struct Comm<F: Fabric> {
    pub(crate) engine: Rc<Engine<F>>,
    id: u64,
    group: Group,
    /// The other group of an intercommunicator.
    remote: Option<Group>,
    /// The other group of an intercommunicator, else the own group: a message need not distinguish the two.
    peers: Group,
    rank: usize,
    sequence: Cell<u32>,
    /// Tag of all its collective operations, if this is the view of a persistent operation.
    persistent: Cell<Option<i32>>,
    /// Kind of the operations that have its numbers: a bit of [`tags`].
    numbers: Cell<i32>,
    pub(crate) nonblocking_context: OnceCell<Rc<Comm<F>>>,
    /// States of persistent contexts that may multicast: [`Comm::close`] must end their multicast groups.
    persistent_contexts: RefCell<Vec<Rc<CollectiveState<F>>>>,
    persistent_made: Cell<usize>,
    /// Selection of algorithms, and the last choices.
    pub(crate) choices: Choices,
    /// State of its algorithms.
    pub(crate) state: Rc<CollectiveState<F>>,
    /// Name in error texts. Empty until MPI_Comm_set_name (MPI 5.0, section 7.8), except for the two communicators that every
    /// process has.
    pub name: RefCell<OsString>,
    /// Values by key that the program caches (MPI 5.0, section 7.7). The layer above calls their callbacks.
    pub attributes: RefCell<Attributes>,
    /// Virtual topology of its ranks (MPI 5.0, chapter 8), if it has one.
    pub topology: RefCell<Option<CommTopology>>,
    /// Hints of the program about its use of the communicator.
    pub hints: RefCell<Info>,
    /// State of the layer above for its buffered sends.
    pub buffer: OnceCell<Rc<dyn std::any::Any>>,
    /// Handle of its error handler, which only the layer above understands.
    pub errhandler: Cell<usize>,
    /// Number of collective operations that the program has started on it. The layer above counts.
    pub started: Cell<u64>,
    /// Its share in the limit of [`Engine::set_shm_comm_limit`].
    shm_comm_count: OnceCell<ShmCommCount>,
    /// Keeps the processes of other jobs that are in the communicator.
    _lease: Option<Lease>,
}

/// A communicator that may have memory that its ranks share. It is counted until it is dropped.
struct ShmCommCount(Rc<Cell<usize>>);

impl Drop for ShmCommCount {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

/// Maximum number of persistent contexts of a communicator that may multicast. There is a bound, since each rank frees a request
/// when it likes, so that the multicast group of its context ends with the communicator, and a program may initialize any number of
/// requests.
const CASTING_LANES: usize = 64;

/// Context numbers of the two communicators that every process has, and of messages before there is a communicator.
const WORLD: u64 = 1;
const SELF: u64 = 2;
pub(crate) const NONE: u64 = 3;

/// Bit in contexts of handshakes and of partitions of partitioned communication. Ranks, in the bits below, do not reach it.
pub(crate) const PARTITIONED: u64 = 1 << 63;

/// Bits of the tags in a communicator's collective context. The rest of the tag distinguishes operations that are under way at the
/// same time.
pub(crate) mod tags {
    /// Mask of the number of an operation.
    pub const NUMBERS: i32 = (1 << 27) - 1;
    /// Bit of the numbers of nonblocking operations.
    pub const BACKGROUND: i32 = 1 << 27;
    /// Bit of the numbers of persistent operations, counted by their initializations.
    pub const PERSISTENT: i32 = 1 << 28;
    /// Bit of messages between the groups of an intercommunicator.
    pub const BRIDGE: i32 = 1 << 29;
}

impl<F: Fabric> Comm<F> {
    pub(crate) fn new(
        engine: &Rc<Engine<F>>,
        id: u64,
        group: Group,
        remote: Option<Group>,
        name: &str,
    ) -> Rc<Comm<F>> {
        let rank = group.rank_of(engine.rank() as u32).expect("a member makes the communicator");
        let state = Rc::new(CollectiveState::in_turn(engine.arena().clone()));
        if !engine.computes_alike(&group) {
            state.set_unlike();
        }
        Rc::new(Comm {
            _lease: engine.lease([Some(&group), remote.as_ref()]),
            engine: engine.clone(),
            id,
            peers: remote.as_ref().unwrap_or(&group).clone(),
            group,
            remote,
            rank,
            sequence: Cell::new(0),
            persistent: Cell::new(None),
            numbers: Cell::new(0),
            nonblocking_context: OnceCell::new(),
            persistent_contexts: RefCell::default(),
            persistent_made: Cell::new(0),
            choices: Choices::default(),
            state,
            name: RefCell::new(name.into()),
            attributes: RefCell::default(),
            topology: RefCell::default(),
            hints: RefCell::default(),
            buffer: OnceCell::new(),
            errhandler: Cell::new(0),
            started: Cell::new(0),
            shm_comm_count: OnceCell::new(),
        })
    }

    /// Makes a new communicator, as all members have agreed on it.
    pub(crate) fn agreed(
        engine: &Rc<Engine<F>>,
        (id, lean): (u64, bool),
        group: Group,
        remote: Option<Group>,
    ) -> Rc<Comm<F>> {
        let comm = Comm::new(engine, id, group, remote, "");
        comm.state.set_lean(lean);
        if !lean {
            let roomy = engine.shm_comms();
            roomy.set(roomy.get() + 1);
            let _ = comm.shm_comm_count.set(ShmCommCount(roomy.clone()));
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
        Comm::new(engine, WORLD, all, None, "MPI_COMM_WORLD")
    }

    /// Makes MPI_COMM_SELF.
    pub fn myself(engine: &Rc<Engine<F>>) -> Rc<Comm<F>> {
        let me = engine.rank() as u32;
        Comm::new(engine, SELF, Group::new(vec![me]), None, "MPI_COMM_SELF")
    }

    /// Returns this process's rank in [`Comm::group`].
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Returns the number of processes in [`Comm::group`]. Processes on the other side of an intercommunicator do not count.
    pub fn size(&self) -> usize {
        self.group.size()
    }

    /// Returns the processes of this communicator. Of an intercommunicator, they are those of this side.
    pub fn group(&self) -> &Group {
        &self.group
    }

    /// Returns the other group of an intercommunicator.
    pub fn remote(&self) -> Option<&Group> {
        self.remote.as_ref()
    }

    /// Returns the processes that messages go to: ranks in calls are places in this group.
    #[inline]
    pub fn peers(&self) -> &Group {
        &self.peers
    }

    /// Returns the engine that progresses its operations. The communicator keeps the engine alive.
    pub fn engine(&self) -> &Rc<Engine<F>> {
        &self.engine
    }

    /// Returns the number by which reports and the tool interface name the communicator. Unique in the job.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Returns the matching space of its messages.
    pub fn context(&self) -> MatchingContext {
        MatchingContext(self.id << 1)
    }

    pub(crate) fn collective_context(&self) -> MatchingContext {
        MatchingContext(self.id << 1 | 1)
    }

    /// Returns true if `context` belongs to this communicator.
    pub fn owns(&self, context: MatchingContext) -> bool {
        (context.0 & !(PARTITIONED | LEVELS)) >> 1 == self.id
    }

    /// Returns the view for the next collective operation. All ranks start these operations in one order.
    pub fn link(&self) -> CommView<F> {
        let sequence = self.sequence.get();
        self.sequence.set(sequence.wrapping_add(1));
        self.engine.endpoint().fabric().charge(Work::Entry);
        let number = (sequence & tags::NUMBERS as u32) as i32 | self.numbers.get();
        let tag = self.persistent.get().unwrap_or(number);
        self.link_with(self.group.members(), tag)
    }

    /// Returns the view for the next collective operation, and the view of the other group if there is one.
    pub(crate) fn links(&self) -> (CommView<F>, Option<CommView<F>>) {
        let local = self.link();
        let bridge =
            self.remote.as_ref().map(|g| self.link_with(g.members(), local.tag | tags::BRIDGE));
        (local, bridge)
    }

    pub(crate) fn link_with(&self, members: &Rc<Members>, tag: i32) -> CommView<F> {
        let endpoint = self.engine.endpoint().clone();
        let context = self.collective_context();
        CommView {
            endpoint,
            members: members.clone(),
            rank: self.rank,
            context,
            tag,
            via: Via::Messages,
            reception: Reception::Marks,
        }
    }

    /// Returns the view of the communicator for its nonblocking operations, which have their own numbers and their own
    /// release-gather area. MPI requires that ranks start blocking and nonblocking operations in one common order. Programs that
    /// keep an order only within each kind work with other libraries, and with this view here, too.
    pub fn nonblocking_context(&self) -> &Rc<Comm<F>> {
        self.nonblocking_context.get_or_init(|| {
            let (group, remote) = (self.group.clone(), self.remote.clone());
            let view = Comm::new(&self.engine, self.id, group, remote, "");
            view.numbers.set(tags::BACKGROUND);
            view.state.area.set_in_turn(false);
            view.state.set_lean(self.state.is_lean());
            view.select(self.selection());
            view
        })
    }

    /// Makes a view of the communicator for one persistent operation, with its own tag and its own release-gather area: ranks make
    /// their contexts in one order, and use them in any order (MPI 5.0, section 6.13). The operation runs on a context again and
    /// again, and its messages are matched in their order. Only the first `CASTING_LANES` contexts may multicast.
    pub fn persistent_context(&self) -> Rc<Comm<F>> {
        let (group, remote) = (self.group.clone(), self.remote.clone());
        let context = Comm::new(&self.engine, self.id, group, remote, "");
        // All ranks count alike, since the choice of algorithms depends on the count, too.
        let made = self.persistent_made.replace(self.persistent_made.get() + 1);
        context.persistent.set(Some(made as i32 & tags::NUMBERS | tags::PERSISTENT));
        if made < CASTING_LANES {
            let mut contexts = self.persistent_contexts.borrow_mut();
            // If the request of a context is gone and the context has not multicast, there is nothing to end.
            contexts.retain(|state| Rc::strong_count(state) > 1 || state.has_multicast());
            contexts.push(context.state.clone());
        } else {
            context.state.forbid_multicast();
        }
        context.state.area.set_in_turn(false);
        context.state.set_lean(self.state.is_lean());
        context.select(self.selection());
        context
    }

    /// Returns the selection of its algorithms.
    pub fn selection(&self) -> Rc<Selection> {
        self.choices.selection.borrow().clone()
    }

    /// Sets the selection of its algorithms. All ranks must set the same selection.
    pub fn select(&self, selection: Rc<Selection>) {
        if let Some(view) = self.nonblocking_context.get() {
            view.select(selection.clone());
        }
        self.state.select(selection.clone());
        *self.choices.selection.borrow_mut() = selection;
        self.choices.recent.iter().filter_map(OnceCell::get).for_each(|last| last.set(None));
    }

    /// Returns true if this is the communicator that blocking operations use, not a view of it.
    pub(crate) fn is_foreground(&self) -> bool {
        self.numbers.get() == 0 && !self.is_persistent_context()
    }

    /// Returns true if this is the view of a persistent operation.
    pub(crate) fn is_persistent_context(&self) -> bool {
        self.persistent.get().is_some()
    }

    /// Returns true if [`Comm::close`] has anything to do.
    pub fn must_close(&self) -> bool {
        self.states().any(|state| state.has_multicast())
    }

    /// Returns the states of all its views, in the same order on all ranks.
    fn states(&self) -> impl Iterator<Item = Rc<CollectiveState<F>>> + use<F> {
        let nonblocking = self.nonblocking_context.get().map(|view| view.state.clone());
        let contexts = self.persistent_contexts.borrow().clone();
        [Some(self.state.clone()), nonblocking].into_iter().flatten().chain(contexts)
    }

    /// Ends multicast, as the last operation before the communicator is freed: losses are repaired before any rank forgets the
    /// data. Collective, if multicast was used. Waits for operations under way.
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
        if self.id == other.id {
            return Compare::Ident;
        }
        let groups = self.group.compare(&other.group);
        let remotes = match (&self.remote, &other.remote) {
            (None, None) => Compare::Ident,
            (Some(mine), Some(theirs)) => mine.compare(theirs),
            _ => Compare::Unequal,
        };
        match (groups, remotes) {
            (Compare::Ident, Compare::Ident) => Compare::Congruent,
            (Compare::Unequal, _) | (_, Compare::Unequal) => Compare::Unequal,
            _ => Compare::Similar,
        }
    }
}

impl<F: Fabric> Comm<F> {
    /// Returns the staging memory of the process.
    pub(crate) fn pool(&self) -> &weft_fabric::StagingPool {
        self.engine.endpoint().staging()
    }

    /// Returns the bytes of `buffer` in one piece.
    pub(crate) fn piece(&self, buffer: &Buffer) -> crate::buffer::BufferPiece {
        buffer.readable(self.pool())
    }
}
