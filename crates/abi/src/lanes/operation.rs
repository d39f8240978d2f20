//! Calls that hold the main lock, and use a lane beside it: all calls except the usual sends, receives, starts, tests and waits.

use super::{LaneState, MessageLane};
use crate::chapter_state::ChapterState;
use crate::constants::MPI_REQUEST_NULL;
use crate::engine::CommObject;
use crate::objects::{Belongs, RequestObject};
use crate::state::state;
use crate::table::{HandleTable, lane_of};
use crate::types::Request;
use std::cell::RefCell;
use std::mem::ManuallyDrop;
use std::rc::Rc;
use weft_process::{Active, External, OperationOutcome};

/// Communicators in lanes that carry the messages of a communicator. The communicator keeps them.
pub enum MessageCarriers {
    /// All messages have the same lane.
    One(MessageCarrier),
    /// The tag of a message gives its lane. A carrier for each lane, in the order of their numbers.
    ByTag(Vec<MessageCarrier>),
}

impl MessageCarriers {
    /// Returns the carriers of a communicator, if its messages go through lanes.
    pub fn of(comm: &CommObject) -> Option<&MessageCarriers> {
        comm.carrier.get()?.downcast_ref()
    }

    /// Returns all carriers.
    pub fn all(&self) -> &[MessageCarrier] {
        match self {
            MessageCarriers::One(carrier) => std::slice::from_ref(carrier),
            MessageCarriers::ByTag(carriers) => carriers,
        }
    }

    /// Returns the carrier of the messages with this tag. The tag is `None` only where it does not matter.
    pub fn with_tag(&self, tag: Option<i32>) -> &MessageCarrier {
        let carriers = self.all();
        &carriers[tag.map_or(0, |tag| tag as usize % carriers.len())]
    }
}

/// A second communicator, in a lane, that carries messages of a communicator.
pub struct MessageCarrier {
    lane: &'static MessageLane,
    /// Used, and dropped, only with the lane's lock held.
    comm: ManuallyDrop<Rc<CommObject>>,
}

impl MessageCarrier {
    /// Makes the owner of `comm`, a communicator of the lane's engine.
    pub fn new(lane: &'static MessageLane, comm: Rc<CommObject>) -> MessageCarrier {
        MessageCarrier { lane, comm: ManuallyDrop::new(comm) }
    }

    /// Returns true if operations of the lane use the communicator, which has no handle.
    fn is_used(&self) -> bool {
        self.hold(|_, comm| Rc::strong_count(comm) > 1)
    }

    /// Runs `f` with the lane's lock held.
    pub fn hold<R>(&self, f: impl FnOnce(&LaneState, &Rc<CommObject>) -> R) -> R {
        self.lane.hold(|state| f(state, &self.comm))
    }
}

impl Drop for MessageCarrier {
    fn drop(&mut self) {
        // SAFETY: `comm` is dropped only here, and is not used any more.
        self.lane.hold(|_| unsafe { ManuallyDrop::drop(&mut self.comm) });
    }
}

/// Returns true if the messages of a communicator go through a lane.
#[inline]
pub fn is_carried(comm: &CommObject) -> bool {
    comm.carrier.get().is_some()
}

/// Returns true if the tag of a message on a communicator gives its lane, so that a receive must name a tag.
#[inline]
pub fn needs_tag(comm: &CommObject) -> bool {
    matches!(MessageCarriers::of(comm), Some(MessageCarriers::ByTag(_)))
}

/// Runs `f` with the communicator that carries the messages of `comm` with this tag, which may be `comm` itself.
pub fn on<R>(comm: &Rc<CommObject>, tag: Option<i32>, f: impl FnOnce(&Rc<CommObject>) -> R) -> R {
    match MessageCarriers::of(comm) {
        None => f(comm),
        Some(carriers) => carriers.with_tag(tag).hold(|_, comm| f(comm)),
    }
}

/// Starts a send or receive with the communicator that carries the messages of `comm` with this tag. Returns the operation in a form
/// that calls with the main lock may use.
pub fn start(
    comm: &Rc<CommObject>,
    tag: Option<i32>,
    begin: impl FnOnce(&Rc<CommObject>) -> Active,
) -> Active {
    let Some(carriers) = MessageCarriers::of(comm) else { return begin(comm) };
    let carrier = carriers.with_tag(tag);
    carrier.hold(|state, comm| {
        state.make_room();
        match begin(comm) {
            Active::Done(status) => Active::Done(status),
            active => {
                let active = RefCell::new(Some(active));
                Active::External(Rc::new(LaneOperation { lane: carrier.lane, active }))
            }
        }
    })
}

/// A send or receive in a lane that calls with the main lock poll.
struct LaneOperation {
    lane: &'static MessageLane,
    /// Used, and dropped, only with the lane's lock held. `None` if the operation has ended.
    active: RefCell<Option<Active>>,
}

impl LaneOperation {
    /// Runs `look`. If this finds nothing, progresses the lane and runs `look` again.
    fn look<R>(&self, look: impl Fn(&LaneState, &mut Option<Active>) -> Option<R>) -> Option<R> {
        self.lane.hold(|state| {
            let once = || look(state, &mut self.active.borrow_mut());
            once().or_else(|| {
                state.engine.progress();
                once()
            })
        })
    }
}

impl External for LaneOperation {
    fn poll(&self) -> Option<OperationOutcome> {
        self.look(|state, active| {
            let outcome = active.as_mut()?.poll(state.engine.endpoint())?;
            *active = None;
            Some(outcome)
        })
    }

    fn is_over(&self) -> bool {
        self.look(|state, active| {
            let endpoint = state.engine.endpoint();
            let faulted = endpoint.fault().is_some();
            let over = active.as_ref().is_none_or(|active| active.looks_over(endpoint, faulted));
            over.then_some(())
        })
        .is_some()
    }

    fn peek(&self) -> Option<OperationOutcome> {
        self.look(|state, active| active.as_ref()?.peek(state.engine.endpoint()))
    }

    fn cancel(&self) -> Result<(), weft_process::Error> {
        self.lane.hold(|state| {
            if let Some(active) = &*self.active.borrow() {
                active.cancel(state.engine.endpoint());
                state.engine.wake_siblings();
            }
        });
        Ok(())
    }

    /// Lets the operation complete in the background. A task of lane 0 polls it if it still needs memory of the request.
    fn release(&self) -> Result<(), weft_process::Error> {
        let kept = self.lane.hold(|state| {
            let active = self.active.borrow_mut().take()?;
            match active {
                Active::Send { id, _piece: None } | Active::Receive { id, unpack: None } => {
                    state.engine.endpoint().forget(id);
                    None
                }
                active => {
                    Some(LaneOperation { lane: self.lane, active: RefCell::new(Some(active)) })
                }
            }
        });
        if let (Some(kept), Some(engine)) = (kept, state().engine.get()) {
            let mut active = Active::External(Rc::new(kept));
            let endpoint = engine.endpoint().clone();
            engine.spawn(async move {
                active.over(&endpoint).await;
                Ok(())
            });
        }
        Ok(())
    }
}

impl Drop for LaneOperation {
    fn drop(&mut self) {
        if self.active.get_mut().is_some() {
            self.lane.hold(|_| *self.active.borrow_mut() = None);
        }
    }
}

/// Runs `f` with the request of a lane behind a handle, and with the lane's lock held. Returns `None` if there is no such request.
pub fn with_request<R>(
    handle: usize,
    f: impl FnOnce(&LaneState, &mut RequestObject) -> R,
) -> Option<R> {
    let entered = MessageLane::of(handle)?.enter();
    let state = entered.state()?;
    let mut requests = state.requests.borrow_mut();
    Some(f(state, requests.get_mut(handle)?))
}

/// Runs `f` with the requests of a lane, and with the lane's lock held. Returns `None` if there is no such lane.
pub fn with_requests<R>(
    lane: usize,
    f: impl FnOnce(&HandleTable<RequestObject>) -> R,
) -> Option<R> {
    let entered = MessageLane::numbered(lane)?.enter();
    Some(f(&entered.state()?.requests.borrow()))
}

/// Runs `look` with the lane of a handle and with its lock held. If this finds nothing, progresses the lane and runs `look` again.
fn look<R>(handle: usize, look: impl Fn(&LaneState) -> Option<R>) -> Option<R> {
    let entered = MessageLane::of(handle)?.enter();
    let state = entered.state()?;
    look(state).or_else(|| {
        state.engine.progress();
        look(state)
    })
}

/// Set of the lanes that a scan of requests has entered.
#[derive(Debug, Clone, Copy, Default)]
pub struct LaneSet(u32);

impl LaneSet {
    /// Adds the lane of a handle. Returns true if the set did not contain the lane.
    pub fn add(&mut self, handle: usize) -> bool {
        let bit = 1 << lane_of(handle);
        let new = self.0 & bit == 0;
        self.0 |= bit;
        new
    }

    /// Returns true if the set contains no lane.
    pub fn is_empty(&self) -> bool {
        self.0 == 0
    }

    /// Returns the numbers of the lanes in the set, without lane 0.
    pub fn numbers(&self) -> impl Iterator<Item = usize> {
        let set = self.0;
        (1..u32::BITS as usize).filter(move |number| set >> number & 1 != 0)
    }
}

/// State of a request of a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaneRequestState {
    /// There is no such request.
    Unknown,
    /// A persistent request that is not active.
    Inactive,
    /// A request whose operation is not complete.
    Open,
    /// A request whose operation is complete or has failed.
    Over,
}

/// Calls `found` for each of `handles`, which belong to the same lane, with the state of the request. Enters the lane once. Progresses the
/// lane once if a request is not complete.
pub fn look_at_all(handles: impl Iterator<Item = usize>, mut found: impl FnMut(LaneRequestState)) {
    let mut handles = handles.peekable();
    let lane = handles.peek().and_then(|&first| MessageLane::of(first));
    let entered = lane.map(MessageLane::enter);
    let Some(state) = entered.as_ref().and_then(|entered| entered.state()) else {
        return handles.for_each(|_| found(LaneRequestState::Unknown));
    };
    let mut progressed = false;
    for handle in handles {
        let active = state.requests.borrow().get(handle).map(|object| object.active.is_some());
        let mut over = || {
            state.is_over(handle)
                || !std::mem::replace(&mut progressed, true) && {
                    state.engine.progress();
                    state.is_over(handle)
                }
        };
        found(match active {
            None => LaneRequestState::Unknown,
            Some(false) => LaneRequestState::Inactive,
            Some(true) if over() => LaneRequestState::Over,
            Some(true) => LaneRequestState::Open,
        });
    }
}

/// Returns the outcome of a request of a lane, if its operation is complete. Does not end the request. Progresses the lane if the
/// operation is not complete.
pub fn peek(handle: usize) -> Option<OperationOutcome> {
    look(handle, |state| {
        let requests = state.requests.borrow();
        requests.get(handle)?.active.as_ref()?.peek(state.engine.endpoint())
    })
}

/// A request of a lane that has ended.
pub struct LaneOutcome {
    /// Outcome of the operation.
    pub outcome: OperationOutcome,
    /// Communicator of the operation, if the operation failed.
    pub belongs: Belongs,
    /// Handle of the request from now on: the same if it is persistent, otherwise MPI_REQUEST_NULL.
    pub handle: Request,
}

/// Polls the request of a lane. If the operation is complete, ends the request. Progresses the lane if it is not complete.
pub fn poll(handle: usize) -> Option<LaneOutcome> {
    let (outcome, id, handle) = look(handle, |state| {
        let mut requests = state.requests.borrow_mut();
        let object = requests.get_mut(handle)?;
        let outcome = object.active.as_mut()?.poll(state.engine.endpoint())?;
        let id = number(object);
        object.active = None;
        if object.recipe.is_some() {
            return Some((outcome, id, Request(handle)));
        }
        requests.remove(handle);
        Some((outcome, id, MPI_REQUEST_NULL))
    })?;
    // Only an error has use for the communicator.
    let belongs = match &outcome.error {
        None => Belongs::Nobody,
        Some(_) => of_number(id),
    };
    Some(LaneOutcome { outcome, belongs, handle })
}

/// Returns the communicator to which a request of a lane belongs.
pub fn belongs(handle: usize) -> Option<Belongs> {
    with_request(handle, |_, object| number(object)).map(of_number)
}

/// Returns the number of the communicator of a request.
fn number(object: &RequestObject) -> u64 {
    match &object.belongs {
        Belongs::Comm(comm) => comm.id(),
        _ => 0,
    }
}

/// Communicators without a handle that operations of their lanes may still use. Their error handlers serve these operations.
static FREED: ChapterState<RefCell<Vec<Rc<CommObject>>>> =
    ChapterState::new(RefCell::new(Vec::new()));

/// Keeps a communicator that has lost its handle as long as operations of its lane use it. Drops other such communicators that no
/// operation uses any more.
pub fn keep_while_used(comm: Rc<CommObject>) {
    let is_used = |comm: &Rc<CommObject>| {
        MessageCarriers::of(comm)
            .is_some_and(|carriers| carriers.all().iter().any(MessageCarrier::is_used))
    };
    if !is_carried(&comm) {
        return;
    }
    let mut freed = FREED.take();
    freed.push(comm);
    freed.retain(is_used);
    FREED.replace(freed);
}

/// Drops the communicators that [`keep_while_used`] has kept, when the process leaves the job. A forked child must not call this,
/// because a thread of its parent may have held a lane's lock.
pub fn drop_freed() {
    drop(FREED.take());
}

/// Calls `f` with each communicator without a handle that an operation or a persistent request of a lane may still use.
pub fn for_each_freed(f: impl FnMut(&Rc<CommObject>)) {
    FREED.borrow().iter().for_each(f);
}

/// Returns the communicator with this number, if it has a handle or was freed while operations of its lane used it.
fn of_number(id: u64) -> Belongs {
    let mut comms = state().all_comms();
    comms.extend(FREED.borrow().iter().cloned());
    let comm = comms.into_iter().find(|comm| comm.id() == id);
    comm.map_or(Belongs::Nobody, Belongs::Comm)
}

/// Frees the request of a lane, whose operation completes in the background. Returns false if there is no such request.
pub fn free(handle: usize) -> bool {
    look(handle, |state| {
        let object = state.requests.borrow_mut().remove(handle)?;
        if let Some(Active::Send { id, .. } | Active::Receive { id, .. }) = object.active {
            state.engine.endpoint().forget(id);
        }
        Some(())
    })
    .is_some()
}

/// Cancels the operation of a request of a lane. Returns false if the request is persistent and not active, and `None` if there is no
/// such request.
pub fn cancel(handle: usize) -> Option<bool> {
    with_request(handle, |state, object| {
        if let Some(active) = &object.active {
            active.cancel(state.engine.endpoint());
        }
        // The operation may be complete now, so a thread that waits for it is woken.
        state.engine.wake_siblings();
        object.active.is_some()
    })
}
