//! Communicators: a group, a rank, and matching spaces of their own (MPI 5.0, chapter 7).

use crate::chosen::Choices;
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

/// Largest tag (attribute MPI_TAG_UB).
pub const TAG_UB: i32 = i32::MAX;

/// A communicator of this process: of one group, or (an intercommunicator) between two.
pub struct Comm<F: Fabric> {
    pub(crate) engine: Rc<Engine<F>>,
    id: u64,
    group: Group,
    /// The other group of an intercommunicator.
    remote: Option<Group>,
    /// The other group, or the own one: a message need not ask which.
    peers: Group,
    rank: usize,
    sequence: Cell<u32>,
    /// The tag of all its collective operations, for one persistent operation's view of it.
    persistent: Cell<Option<i32>>,
    /// Which numbers those are: a bit of [`tags`].
    numbers: Cell<i32>,
    pub(crate) nonblocking_context: OnceCell<Rc<Comm<F>>>,
    /// Of contexts that may multicast: somebody must end their groups.
    persistent_contexts: RefCell<Vec<Rc<CollectiveState<F>>>>,
    persistent_made: Cell<usize>,
    /// Which algorithms it uses.
    pub(crate) choices: Choices,
    /// What its algorithms keep.
    pub(crate) state: Rc<CollectiveState<F>>,
    /// Shown in messages; empty until MPI_Comm_set_name (MPI 5.0, section 7.8), but for the two
    /// that every process has.
    pub name: RefCell<OsString>,
    /// Values by key that the program caches (MPI 5.0, section 7.7); the layer above calls their
    /// callbacks.
    pub attributes: RefCell<Attributes>,
    /// How its ranks are arranged (MPI 5.0, chapter 8); `None`: without a virtual topology.
    pub topology: RefCell<Option<CommTopology>>,
    /// What the program says about how it uses it.
    pub hints: RefCell<Info>,
    /// What the layer above keeps for its buffered sends.
    pub buffer: OnceCell<Rc<dyn std::any::Any>>,
    /// The handle of its error handler; meaningful to the layer above.
    pub errhandler: Cell<usize>,
    /// Collective operations that the program started on it; the layer above counts.
    pub started: Cell<u64>,
    /// Its part of what [`Engine::set_roomy`] bounds.
    shm_comm_count: OnceCell<ShmCommCount>,
    /// Keeps the processes of other jobs that are in it.
    _lease: Option<Lease>,
}

/// One of the communicators that may have memory that their ranks share, counted until it is gone.
struct ShmCommCount(Rc<Cell<usize>>);

impl Drop for ShmCommCount {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

/// So many contexts of a communicator may multicast. A request is freed by each rank when it likes, so that
/// the multicast group of its context ends with the communicator, and a program may initialize any number.
const CASTING_LANES: usize = 64;

/// Contexts of the two communicators that every process has, and of what is said before there is a
/// communicator.
const WORLD: u64 = 1;
const SELF: u64 = 2;
pub(crate) const NONE: u64 = 3;

/// In contexts of handshakes and of partitions of partitioned communication. Ranks, in the bits below, do not reach it.
pub(crate) const PARTITIONED: u64 = 1 << 63;

/// What the tags of a communicator's collective context are for. The rest of the tag tells operations
/// under way at once apart.
pub(crate) mod tags {
    /// Numbers of operations.
    pub const NUMBERS: i32 = (1 << 27) - 1;
    /// The number is that of a nonblocking operation.
    pub const BACKGROUND: i32 = 1 << 27;
    /// The number is that of a persistent operation among those that were initialized.
    pub const PERSISTENT: i32 = 1 << 28;
    /// Between the groups of an intercommunicator.
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

    /// A new communicator, as all agreed on it.
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

    /// MPI_COMM_WORLD.
    pub fn world(engine: &Rc<Engine<F>>) -> Rc<Comm<F>> {
        let all: Vec<u32> = (0..engine.endpoint().fabric().size() as u32).collect();
        Comm::world_of(engine, Group::new(all))
    }

    /// MPI_COMM_WORLD, with the group of all ranks in their order given: processes of a simulation
    /// share one.
    pub fn world_of(engine: &Rc<Engine<F>>, all: Group) -> Rc<Comm<F>> {
        debug_assert_eq!(all.size(), engine.endpoint().fabric().size());
        Comm::new(engine, WORLD, all, None, "MPI_COMM_WORLD")
    }

    /// MPI_COMM_SELF.
    pub fn myself(engine: &Rc<Engine<F>>) -> Rc<Comm<F>> {
        let me = engine.rank() as u32;
        Comm::new(engine, SELF, Group::new(vec![me]), None, "MPI_COMM_SELF")
    }

    /// This process's rank in [`Comm::group`].
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// Number of processes in [`Comm::group`]; those on the other side of an intercommunicator do
    /// not count.
    pub fn size(&self) -> usize {
        self.group.size()
    }

    /// The processes of this communicator; of an intercommunicator, those of this side.
    pub fn group(&self) -> &Group {
        &self.group
    }

    /// The other group of an intercommunicator.
    pub fn remote(&self) -> Option<&Group> {
        self.remote.as_ref()
    }

    /// The processes that messages go to: ranks in calls are places in it.
    #[inline]
    pub fn peers(&self) -> &Group {
        &self.peers
    }

    /// What moves its operations on, which it keeps alive.
    pub fn engine(&self) -> &Rc<Engine<F>> {
        &self.engine
    }

    /// Unique in the job: what reports and the tool interface name it by.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The matching space of its messages.
    pub fn context(&self) -> MatchingContext {
        MatchingContext(self.id << 1)
    }

    pub(crate) fn collective_context(&self) -> MatchingContext {
        MatchingContext(self.id << 1 | 1)
    }

    /// Whether `context` belongs to this communicator.
    pub fn owns(&self, context: MatchingContext) -> bool {
        (context.0 & !(PARTITIONED | LEVELS)) >> 1 == self.id
    }

    /// The view of the next collective operation: all ranks start them in one order.
    pub fn link(&self) -> CommView<F> {
        let sequence = self.sequence.get();
        self.sequence.set(sequence.wrapping_add(1));
        self.engine.endpoint().fabric().charge(Work::Entry);
        let number = (sequence & tags::NUMBERS as u32) as i32 | self.numbers.get();
        let tag = self.persistent.get().unwrap_or(number);
        self.link_with(self.group.members(), tag)
    }

    /// The same, with the view of the other group where there is one.
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

    /// The view of the communicator for its nonblocking operations, which are numbered by themselves and
    /// have a release-gather area of their own. MPI has ranks start blocking and nonblocking ones in one order, but
    /// programs that do not, as long as each kind is in order, work with other libraries.
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

    /// A view of the communicator for one persistent operation, with a tag and a release-gather area of its own:
    /// ranks make their contexts in one order, and use them in any (MPI 5.0, section 6.13). On a context the
    /// operation runs again and again; its messages are matched in their order. The first
    /// `CASTING_LANES` may multicast.
    pub fn persistent_context(&self) -> Rc<Comm<F>> {
        let (group, remote) = (self.group.clone(), self.remote.clone());
        let context = Comm::new(&self.engine, self.id, group, remote, "");
        // Counted alike on all ranks: algorithms are chosen by it, too.
        let made = self.persistent_made.replace(self.persistent_made.get() + 1);
        context.persistent.set(Some(made as i32 & tags::NUMBERS | tags::PERSISTENT));
        if made < CASTING_LANES {
            let mut contexts = self.persistent_contexts.borrow_mut();
            // Of one that its request has left, and that has not multicast, nothing is to be ended.
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

    /// Which algorithms it uses.
    pub fn selection(&self) -> Rc<Selection> {
        self.choices.selection.borrow().clone()
    }

    /// All ranks must select the same.
    pub fn select(&self, selection: Rc<Selection>) {
        if let Some(view) = self.nonblocking_context.get() {
            view.select(selection.clone());
        }
        self.state.select(selection.clone());
        *self.choices.selection.borrow_mut() = selection;
        self.choices.recent.iter().filter_map(OnceCell::get).for_each(|last| last.set(None));
    }

    /// Whether it is what blocking operations use.
    pub(crate) fn is_foreground(&self) -> bool {
        self.numbers.get() == 0 && !self.is_persistent_context()
    }

    /// Whether it is the view of a persistent operation.
    pub(crate) fn is_persistent_context(&self) -> bool {
        self.persistent.get().is_some()
    }

    /// Whether [`Comm::close`] has anything to do.
    pub fn must_close(&self) -> bool {
        self.states().any(|state| state.has_multicast())
    }

    /// Those of all its views, in one order on all ranks.
    fn states(&self) -> impl Iterator<Item = Rc<CollectiveState<F>>> + use<F> {
        let nonblocking = self.nonblocking_context.get().map(|view| view.state.clone());
        let contexts = self.persistent_contexts.borrow().clone();
        [Some(self.state.clone()), nonblocking].into_iter().flatten().chain(contexts)
    }

    /// The last operation, before the communicator is freed: what multicast has lost is repaired before
    /// anybody forgets it. Collective, where multicast was used; it waits for what is under way.
    pub fn close(&self) -> impl Future<Output = Result<(), Error>> + use<F> {
        let states = self.states();
        async move {
            for state in states {
                state.close().await?;
            }
            Ok(())
        }
    }

    /// How it compares to `other` (MPI_Comm_compare; MPI 5.0, section 7.4.1): not collective.
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
    /// Staging memory of the process.
    pub(crate) fn pool(&self) -> &weft_fabric::StagingPool {
        self.engine.endpoint().staging()
    }

    /// Bytes of `buffer` in one piece.
    pub(crate) fn piece(&self, buffer: &Buffer) -> crate::buffer::BufferPiece {
        buffer.readable(self.pool())
    }
}
