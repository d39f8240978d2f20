//! Lanes: threads that use different communicators share no lock and write no common cache line. MPICH has virtual communication
//! interfaces (VCIs) for this purpose.
//!
//! ```text
//!   lane 0     lock.rs             ProcessState: all objects, the engine. Everything but the messages below
//!   lane 1..   MessageLane::lock   LaneState: an engine with boxes, matching and memory of its own; requests; for each
//!                                  communicator of the lane a second communicator (its carrier), with the same ranks and
//!                                  matching space for messages
//! ```
//! A communicator that is made while there are lanes gets one by its number, on which all members agree. From then on all its
//! messages go through the lane's engine. Collective operations, partitioned messages, files and everything else stay with
//! lane 0, but a window may have a lock of its own (`windows.rs`). `MPI_COMM_WORLD`, `MPI_COMM_SELF` and communicators with processes of other jobs have no lane. There are lanes if all
//! processes of the job asked for `MPI_THREAD_MULTIPLE` and only shared memory connects them, and if no setting starts a helper.
//!
//! On a communicator whose members all promised never to receive with `MPI_ANY_TAG` (`mpi_assert_no_any_tag`), the tag of a message
//! gives its lane: messages of different tags never match the same receive, so their order is not defined. Such a communicator has a
//! carrier in each lane, and threads whose tags have different lanes share no lock.
//!
//! The handle of a communicator of a lane, and the handle of a request that such a call made, contain the lane. So the usual calls
//! (`lane_calls.rs`) find everything behind the lane's lock. All other calls enter the library as usual, and take the lane's lock beside
//! the main lock for a moment (`operation.rs`).
//!
//! Contract:
//! - A lane's state, with every `Rc` in it, is touched only by the thread that holds the lane's lock. No other `Rc` is touched by a
//!   thread that holds a lane's lock alone.
//! - A thread that holds the main lock may wait for a lane's lock. A thread that holds a lane's lock waits for no other lock: it
//!   releases the lane first.
//! - No function of the program runs while its thread holds a lane's lock.
//! - An error of the layers below becomes an error of MPI only under the main lock, because its text names faults of lane 0.
//! - A thread that waits progresses the other lanes, too, from time to time and before each sleep (`waits.rs`). All lanes ring the one
//!   doorbell of the process.

mod operation;
mod persistent;
mod thread_lock;
mod threads;
mod waits;
mod windows;

use operation::MessageCarrier;
pub use operation::{
    LaneRequestState, LaneSet, MessageCarriers, belongs, cancel, drop_freed, for_each_freed, free,
    is_carried, keep_while_used, look_at_all, needs_tag, on, peek, poll, start, with_request,
    with_requests,
};
pub use persistent::{LaneStart, LaneTransfer, persist, start_again};
pub use thread_lock::ThreadLock;
pub use threads::{TURNS, crowded, take_turns};
pub use waits::{
    LOOK, LaneNap, LaneProgress, PATIENCE, idle, pending, progress, progress_in_row, progress_main,
    sum, try_all, try_sometimes,
};
pub use windows::{
    has_place, hold_window, needs_no_progress, on_window, place_window, unplace_window,
};

use crate::engine::{CommObject, Engine};
use crate::objects::RequestObject;
use crate::settings::runtime_change;
use crate::state::state;
use crate::table::{HandleTable, LANE_BY_TAG, LANES_END, index_of, lane_of};
use std::cell::{Cell, RefCell, UnsafeCell};
use std::rc::Rc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use weft_fabric::Fabric;
use weft_fabric_shm::Shm;

/// Class of the requests of lanes, as in [`crate::state::ProcessState::requests`].
const REQUESTS: usize = 7;

/// A lane. Lanes lie in different pairs of cache lines.
#[repr(align(128))]
pub struct MessageLane {
    /// Lets the first thread that sends or receives on the lane enter without an atomic operation, until another thread comes.
    pub lock: ThreadLock,
    /// `None` until a communicator gets the lane.
    state: UnsafeCell<Option<LaneState>>,
}

// SAFETY: `state` is accessed only through a `LaneEntered`, of which a lane has one at a time. Its `Rc`s never leave the lane.
unsafe impl Sync for MessageLane {}

/// Way in which the messages of a new communicator get their lanes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaneChoice {
    /// All messages have the lane that the number of the communicator gives.
    ByComm,
    /// The tag of each message gives its lane.
    ByTag,
}

/// Objects of a lane. Only the thread that holds the lane's lock uses them.
pub struct LaneState {
    /// Number of the lane.
    pub number: usize,
    /// The engine that carries the messages.
    pub engine: Rc<Engine>,
    /// Carriers of the communicators that have a handle, by the index in the handle.
    comms: RefCell<Vec<Option<NamedCarrier>>>,
    /// Requests of this lane. Each is one send or receive of contiguous memory, or is persistent and starts such operations.
    pub requests: RefCell<HandleTable<RequestObject>>,
    /// Number of consecutive tests without a result.
    pub idle_tests: Cell<u32>,
}

/// A carrier with the handle of its communicator.
struct NamedCarrier {
    handle: usize,
    comm: Rc<CommObject>,
}

static LANES: [MessageLane; LANES_END] = [const { MessageLane::new() }; LANES_END];

/// Number of lanes that may be used, including lane 0. At most 1 if there are no lanes.
static COUNT: AtomicUsize = AtomicUsize::new(1);

/// Set of the lanes that are open.
static OPEN: AtomicU32 = AtomicU32::new(0);

impl MessageLane {
    const fn new() -> MessageLane {
        MessageLane { lock: ThreadLock::new(), state: UnsafeCell::new(None) }
    }

    /// Returns the lane of a handle. Returns `None` if the handle belongs to no lane, or if there are no lanes.
    #[inline(always)]
    pub fn of(handle: usize) -> Option<&'static MessageLane> {
        MessageLane::numbered(lane_of(handle))
    }

    /// Returns the lane of the messages with this tag on the communicator with this handle. Returns `None` if there is none.
    #[inline(always)]
    pub fn of_message(comm: usize, tag: i32) -> Option<&'static MessageLane> {
        match lane_of(comm) {
            LANE_BY_TAG => MessageLane::of_tag(tag),
            number => MessageLane::numbered(number),
        }
    }

    /// Returns the lane of a tag, if the tag gives the lane. Returns `None` for MPI_ANY_TAG and other values that are not tags, and if
    /// there are no lanes.
    #[inline]
    fn of_tag(tag: i32) -> Option<&'static MessageLane> {
        let lanes = COUNT.load(Ordering::Relaxed) - 1;
        (tag >= 0 && lanes != 0).then(|| &LANES[1 + tag as usize % lanes])
    }

    /// Returns the lane with this number. Returns `None` for lane 0, and if there is no such lane.
    #[inline(always)]
    pub fn numbered(number: usize) -> Option<&'static MessageLane> {
        (number != 0 && number < COUNT.load(Ordering::Relaxed)).then(|| &LANES[number])
    }

    /// Returns the set of the lanes that are open, a bit for each.
    fn open_set() -> u32 {
        OPEN.load(Ordering::Acquire)
    }

    /// Returns the lanes of a set.
    fn in_set(mut set: u32) -> impl Iterator<Item = &'static MessageLane> {
        std::iter::from_fn(move || {
            let number = (set != 0).then(|| set.trailing_zeros() as usize)?;
            set &= set - 1;
            Some(&LANES[number])
        })
    }

    /// Returns the lanes that are open.
    pub fn open() -> impl Iterator<Item = &'static MessageLane> {
        MessageLane::in_set(MessageLane::open_set())
    }

    /// Takes the lane's lock, for a thread that may be favoured from now on.
    #[inline(always)]
    pub fn enter_to_stay(&'static self) -> LaneEntered {
        self.lock.take_to_stay();
        LaneEntered(self)
    }

    /// Takes the lane's lock.
    pub fn enter(&'static self) -> LaneEntered {
        self.lock.take();
        LaneEntered(self)
    }

    /// Takes the lane's lock, unless another thread is inside, or would lose its way before the lock.
    pub fn try_enter(&'static self) -> Option<LaneEntered> {
        self.lock.try_take().then(|| LaneEntered(self))
    }

    /// Runs `f` with the lane's lock held. The lane is open.
    pub fn hold<R>(&'static self, f: impl FnOnce(&LaneState) -> R) -> R {
        let entered = self.enter();
        f(entered.state().expect("an open lane"))
    }
}

/// Guard that exists while the thread holds the lane's lock, or waits for it in a call of a lane.
pub struct LaneEntered(&'static MessageLane);

impl LaneEntered {
    /// Returns the state of the lane, if the lane is open. The state stays where it is, so a call may keep the reference while it
    /// waits; but it must not use the reference while it has released the lock.
    #[inline(always)]
    pub fn state(&self) -> Option<&LaneState> {
        // SAFETY: this thread holds the lock, and the state is written only once, by a thread that held the lock.
        unsafe { (*self.0.state.get()).as_ref() }
    }
}

impl Drop for LaneEntered {
    #[inline(always)]
    fn drop(&mut self) {
        // SAFETY: the thread is inside as long as this guard exists, and no reference of `state` outlives the guard.
        unsafe { self.0.lock.leave() }
    }
}

impl LaneState {
    /// Returns the carrier of the communicator with this handle.
    #[inline(always)]
    pub fn carrier<R>(&self, handle: usize, f: impl FnOnce(&Rc<CommObject>) -> R) -> Option<R> {
        let comms = self.comms.borrow();
        let named = comms.get(index_of(handle))?.as_ref()?;
        (named.handle == handle).then(|| f(&named.comm))
    }

    /// Makes room for one more request, if there is memory. Without room, requests become requests of lane 0.
    fn make_room(&self) {
        let mut requests = self.requests.borrow_mut();
        if !requests.has_room() {
            let _ = requests.room();
        }
    }
}

/// Lets communicators that are made from now on have lanes, as many as all processes of the job can use. Threads that use lanes stay on
/// `place`.
pub fn begin(engine: &Engine, place: Option<Box<[usize]>>) {
    // All ranks of the job are on this machine if there are lanes.
    let fabric = engine.endpoint().fabric();
    TURNS.share(fabric.size(), fabric.shm().map_or(1, Shm::processors));
    threads::set_place(place, fabric.rank());
    COUNT.store(fabric.lanes().min(LANES_END), Ordering::Relaxed);
}

/// Returns true if communicators may have lanes.
#[inline(always)]
pub fn exist() -> bool {
    COUNT.load(Ordering::Relaxed) > 1
}

/// Returns true if a handle belongs to a lane that may be used.
#[inline(always)]
pub fn is_in_lane(handle: usize) -> bool {
    lane_of(handle) != 0 && exist()
}

/// Ends the use of lanes: when the process leaves the job, and in a forked child.
pub fn end() {
    COUNT.store(1, Ordering::Relaxed);
    OPEN.store(0, Ordering::Relaxed);
}

/// Returns the number of the lane for the messages of a new communicator, or 0 if it has none. All members choose alike.
fn choose(comm: &CommObject) -> usize {
    let lanes = COUNT.load(Ordering::Relaxed) - 1;
    let ranks = comm.engine().endpoint().fabric().size();
    let alike = |rank: &u32| (*rank as usize) < ranks;
    if lanes == 0 || comm.remote().is_some() || !comm.group().ranks().iter().all(alike) {
        return 0;
    }
    // The number of a communicator is a count, and below it the rank that has counted.
    1 + (comm.id() / ranks.next_power_of_two() as u64 % lanes as u64) as usize
}

/// Returns true if the messages of a new communicator get lanes. All members get the same answer.
pub fn can_carry(comm: &CommObject) -> bool {
    choose(comm) != 0
}

/// Gives a new communicator its lanes. Returns the number of the lane for the communicator's handle, or 0 if the communicator has
/// none.
pub fn carry(comm: &Rc<CommObject>, choice: LaneChoice) -> usize {
    let number = choose(comm);
    if number == 0 {
        return 0;
    }
    let carrier = |number: usize| {
        open(number, comm.engine());
        let lane = &LANES[number];
        MessageCarrier::new(lane, lane.hold(|state| comm.carried_by(&state.engine)))
    };
    let (carriers, number) = match choice {
        LaneChoice::ByComm => (MessageCarriers::One(carrier(number)), number),
        LaneChoice::ByTag => {
            let lanes = 1..COUNT.load(Ordering::Relaxed);
            (MessageCarriers::ByTag(lanes.map(carrier).collect()), LANE_BY_TAG)
        }
    };
    let _ = comm.carrier.set(Rc::new(carriers));
    number
}

/// Notes the handle of a communicator, so that calls find its carrier.
pub fn name(handle: usize, comm: &CommObject) {
    for carrier in MessageCarriers::of(comm).into_iter().flat_map(MessageCarriers::all) {
        carrier.hold(|state, comm| {
            let mut comms = state.comms.borrow_mut();
            let at = index_of(handle);
            if comms.len() <= at {
                comms.resize_with(at + 1, || None);
            }
            comms[at] = Some(NamedCarrier { handle, comm: comm.clone() });
        });
    }
}

/// Forgets the handle of a communicator that is freed. The carrier remains for operations under way.
pub fn forget(handle: usize) {
    let lanes = match lane_of(handle) {
        LANE_BY_TAG => MessageLane::open_set(),
        number => MessageLane::open_set() & 1 << number,
    };
    for lane in MessageLane::in_set(lanes) {
        lane.hold(|state| {
            let mut comms = state.comms.borrow_mut();
            let named = comms
                .get_mut(index_of(handle))
                .filter(|named| named.as_ref().is_some_and(|named| named.handle == handle));
            if let Some(named) = named {
                *named = None;
            }
        });
    }
}

/// Ends the favours of the calling thread, which is about to end.
fn give_up_favours() {
    MessageLane::open().for_each(|lane| lane.lock.give_up());
    windows::give_up_favours();
}

/// Opens a lane, if it is not open.
fn open(number: usize, engine: &Engine) {
    if OPEN.load(Ordering::Relaxed) >> number & 1 != 0 {
        return;
    }
    let endpoint = engine.endpoint();
    let fabric = endpoint.fabric().open_lane(number).expect("all processes can use the lane");
    let policy = fabric.policy();
    let engine = Engine::new(fabric, policy, endpoint.limits());
    let _ = runtime_change::for_lane(&engine);
    let requests = RefCell::new(HandleTable::new(REQUESTS));
    let made =
        LaneState { number, engine, comms: RefCell::default(), requests, idle_tests: Cell::new(0) };
    made.requests.borrow_mut().set_most(state().requests.borrow().most());
    made.make_room();
    let lane = &LANES[number];
    let _entered = lane.enter();
    // SAFETY: this thread holds the lane's lock, and nobody has a reference to the state of a lane that is not open.
    unsafe { *lane.state.get() = Some(made) };
    OPEN.fetch_or(1 << number, Ordering::Release);
}
