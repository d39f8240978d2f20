//! Calls that take the lock of a lane alone: sends, receives and waits with usual arguments. They examine no argument that they do not
//! need, and return no errors of arguments: with any other arguments they decline, and the usual call checks the arguments.

use crate::arguments::{received, store_status};
use crate::complete_requests::{end_all_complete, end_complete};
use crate::constants::*;
use crate::elements::Elements;
use crate::engine::CommObject;
use crate::error::Error;
pub use crate::lane_call::LaneCall;
use crate::lane_waiting::LaneWaiting;
use crate::lanes::{
    LOOK, LaneEntered, LaneProgress, LaneState, MessageLane, progress_in_row, progress_main,
    take_turns,
};
use crate::lock;
use crate::objects::{Belongs, RequestObject, RequestOrigin, SENT};
use crate::state::known;
use crate::status::{MpiStatus, store_empty};
use crate::table::lane_of;
use crate::types::{Comm, Request};
use std::ffi::c_int;
use weft_fabric::Sge;
use weft_p2p::SendMode;
use weft_process::{Active, Origin, Status};

/// Arguments of a send or receive.
#[derive(Clone, Copy)]
pub struct LaneMessage {
    /// Data to send, or memory to receive into.
    pub buf: Elements,
    /// Receiver, or sender.
    pub peer: c_int,
    /// Tag of the message, or tag to receive.
    pub tag: c_int,
    /// Communicator that gives the ranks and the matching space.
    pub comm: Comm,
}

impl LaneMessage {
    /// Returns the memory and the lane. Returns `None` if the arguments are unusual, so that the call must decline.
    #[inline(always)]
    fn checked(&self) -> Option<(Sge, &'static MessageLane)> {
        let lane = MessageLane::of_message(self.comm.0, self.tag)?;
        Some((self.buf.plain_of(known()?)?, lane))
    }

    /// Returns the receiver and the tag. Returns `None` if the arguments are unusual, so that the call must decline.
    #[inline(always)]
    fn target(&self, comm: &CommObject) -> Option<usize> {
        let peer = self.peer as u32 as usize;
        (peer < comm.peers().size() && self.tag >= 0).then_some(peer)
    }

    /// Returns the sender and the tag. Returns `None` if the arguments are unusual, so that the call must decline.
    #[inline(always)]
    fn origin(&self, comm: &CommObject) -> Option<(Origin, Option<i32>)> {
        let tag = match self.tag {
            MPI_ANY_TAG => None,
            tag if tag >= 0 => Some(tag),
            _ => return None,
        };
        match self.peer {
            MPI_ANY_SOURCE => Some((Origin::Any, tag)),
            peer => {
                let peer = peer as u32 as usize;
                (peer < comm.peers().size()).then_some((Origin::Rank(peer), tag))
            }
        }
    }
}

/// Sends a message on a communicator of a lane (`MPI_Send`).
#[inline(never)]
pub fn send(message: LaneMessage) -> Result<LaneCall, Error> {
    let Some((data, lane)) = message.checked() else { return Ok(LaneCall::Declined) };
    let entered = lane.enter_to_stay();
    let Some(state) = entered.state() else { return Ok(LaneCall::Declined) };
    let sent = state.carrier(message.comm.0, |comm| {
        let to = message.target(comm)?;
        let mode = SendMode::Standard;
        let waits = comm.isend_run(data, to, message.tag, mode).map(|id| (id, comm.clone()));
        Some(waits)
    });
    match sent.flatten() {
        None => Ok(LaneCall::Declined),
        Some(None) => Ok(LaneCall::Done),
        Some(Some((id, comm))) => {
            let active = Active::Send { id, _piece: None };
            let ended = comm.finish(&LaneWaiting::new(lane, "MPI_Send"), active);
            drop(comm);
            drop(entered);
            match ended {
                Ok(_) => Ok(LaneCall::Done),
                // An error names faults of lane 0.
                Err(error) => Err(lock::locked(|| error.into())),
            }
        }
    }
}

/// Receives a message on a communicator of a lane (`MPI_Recv`).
///
/// # Safety
/// `status` is `MPI_STATUS_IGNORE` or may be written.
#[inline(never)]
pub unsafe fn receive(message: LaneMessage, status: *mut MpiStatus) -> Result<LaneCall, Error> {
    let Some((into, lane)) = message.checked() else { return Ok(LaneCall::Declined) };
    let entered = lane.enter_to_stay();
    let Some(state) = entered.state() else { return Ok(LaneCall::Declined) };
    let given = state.carrier(message.comm.0, |comm| Some((message.origin(comm)?, comm.clone())));
    let Some(((from, tag), comm)) = given.flatten() else { return Ok(LaneCall::Declined) };
    let ended = comm.recv_run(&LaneWaiting::new(lane, "MPI_Recv"), into, from, tag);
    drop(comm);
    drop(entered);
    // SAFETY: `status` may be ignored or written; the contract of this function says so.
    let (ok, store) = (ended.is_ok(), || unsafe { received(status, ended) });
    match ok {
        true => store()?,
        // An error names faults of lane 0.
        false => lock::locked(store)?,
    }
    Ok(LaneCall::Done)
}

/// Starts a send (`MPI_Isend`) or a receive (`MPI_Irecv`) on a communicator of a lane.
///
/// # Safety
/// `request` is NULL or may be written.
#[inline(never)]
pub unsafe fn start_message<const SENDS: bool>(
    message: LaneMessage,
    request: *mut Request,
) -> LaneCall {
    let Some((data, lane)) = message.checked() else { return LaneCall::Declined };
    if request.is_null() {
        return LaneCall::Declined;
    }
    let entered = lane.enter_to_stay();
    let Some(state) = entered.state() else { return LaneCall::Declined };
    let mut requests = state.requests.borrow_mut();
    if !requests.has_room() {
        return LaneCall::Declined;
    }
    let started = state.carrier(message.comm.0, |comm| {
        let (active, kind) = if SENDS {
            let to = message.target(comm)?;
            let Some(id) = comm.isend_run(data, to, message.tag, SendMode::Standard) else {
                return Some(SENT);
            };
            (Active::Send { id, _piece: None }, RequestOrigin::Send)
        } else {
            let (from, tag) = message.origin(comm)?;
            let id = comm.irecv_run(data, from, tag)?;
            (Active::Receive { id, unpack: None }, RequestOrigin::Receive)
        };
        let object = RequestObject::new(active, Belongs::Comm(comm.clone()), kind);
        Some(Request(requests.insert_in(state.number, object)))
    });
    let Some(handle) = started.flatten() else { return LaneCall::Declined };
    // SAFETY: `request` is not NULL, so it points to room for the result; the contract of this function says so.
    unsafe { request.write(handle) };
    LaneCall::Done
}

/// End of a request.
struct LaneEnd {
    status: Status,
    /// Handle of the request from now on: the same if it is persistent, otherwise MPI_REQUEST_NULL.
    handle: Request,
}

impl LaneEnd {
    /// Stores the handle, unless it is as before. Other threads may read the handle of a persistent request.
    ///
    /// # Safety
    /// `to` may be written.
    #[inline(always)]
    unsafe fn give_back(&self, to: *mut Request) {
        if self.handle == MPI_REQUEST_NULL {
            // SAFETY: `to` may be written; the contract of this function says so.
            unsafe { to.write(self.handle) }
        }
    }
}

impl LaneState {
    /// Returns the status of an operation that is complete and has no error.
    #[inline(always)]
    fn status(&self, active: &Active) -> Option<Status> {
        let endpoint = self.engine.endpoint();
        match active {
            Active::Receive { id, unpack: None } => endpoint.ends().received(*id),
            Active::Send { id, _piece: None } => {
                let status = endpoint.finish(*id)?;
                Some(Status { source: 0, tag: 0, ..status })
            }
            Active::Done(status) => Some(*status),
            _ => None,
        }
    }

    /// Ends a request that is complete and has no error. For any other request does nothing and returns `None`.
    fn end(&self, handle: usize) -> Option<LaneEnd> {
        let mut requests = self.requests.borrow_mut();
        let over = |object: &RequestObject| match object.recipe {
            None => self.status(object.active.as_ref()?),
            Some(_) => None,
        };
        if let Some((status, object)) = requests.remove_if(handle, over) {
            drop(object);
            return Some(LaneEnd { status, handle: MPI_REQUEST_NULL });
        }
        let object = requests.get_mut(handle).filter(|object| object.recipe.is_some())?;
        let status = self.status(object.active.as_ref()?)?;
        object.active = None;
        Some(LaneEnd { status, handle: Request(handle) })
    }

    /// Returns true if a request is complete, has failed, is inactive, or does not exist.
    pub fn is_over(&self, handle: usize) -> bool {
        let endpoint = self.engine.endpoint();
        let requests = self.requests.borrow();
        let active = requests.get(handle).and_then(|object| object.active.as_ref());
        active.is_none_or(|active| active.looks_over(endpoint, endpoint.fault().is_some()))
    }

    /// Returns true if the table has a request with this handle.
    fn has(&self, handle: usize) -> bool {
        self.requests.borrow().get(handle).is_some()
    }

    /// Waits for a request of this lane, and ends it. Returns `None` if the request has an error, is inactive or does not exist; then it is
    /// as it was.
    fn wait(
        &self,
        lane: &'static MessageLane,
        handle: usize,
        name: &'static str,
    ) -> Option<LaneEnd> {
        if let Some(ended) = self.end(handle) {
            return Some(ended);
        }
        self.wait_longer(lane, handle, name)
    }

    /// Waits like [`LaneState::wait`] for a request that was not complete.
    fn wait_longer(
        &self,
        lane: &'static MessageLane,
        handle: usize,
        name: &'static str,
    ) -> Option<LaneEnd> {
        let look = || self.is_over(handle).then_some(());
        self.engine.drive(&LaneWaiting::new(lane, name), look);
        self.end(handle)
    }
}

/// Waits for a request (`MPI_Wait`).
///
/// # Safety
/// `request` is NULL or may be read and written; `status` is `MPI_STATUS_IGNORE` or may be written.
#[inline(always)]
pub unsafe fn wait(request: *mut Request, status: *mut MpiStatus) -> LaneCall {
    if request.is_null() {
        return LaneCall::OtherLane;
    }
    // SAFETY: `request` is not NULL, so it may be read and written; `status` may be ignored or written. The contract of this function
    // says so.
    unsafe {
        match *request {
            SENT => {
                end_complete(request, status);
                LaneCall::Done
            }
            handle if lane_of(handle.0) == 0 => LaneCall::OtherLane,
            _ => wait_in_lane(request, status),
        }
    }
}

/// # Safety
/// `request` may be read and written; `status` is `MPI_STATUS_IGNORE` or may be written.
#[inline(never)]
unsafe fn wait_in_lane(request: *mut Request, status: *mut MpiStatus) -> LaneCall {
    // SAFETY: `request` may be read; the contract of this function says so.
    let handle = unsafe { *request }.0;
    let Some(lane) = MessageLane::of(handle) else { return LaneCall::Declined };
    let entered = lane.enter_to_stay();
    let ended = entered.state().and_then(|state| state.wait(lane, handle, "MPI_Wait"));
    let Some(ended) = ended else { return LaneCall::Declined };
    // SAFETY: `request` may be written, and `status` may be ignored or written; the contract of this function says so.
    unsafe {
        ended.give_back(request);
        store_status(status, &ended.status);
    }
    LaneCall::Done
}

/// Tests a request (`MPI_Test`).
///
/// # Safety
/// `request` is NULL or may be read and written; `flag` is NULL or may be written; `status` is `MPI_STATUS_IGNORE` or may be written.
#[inline(always)]
pub unsafe fn test(request: *mut Request, flag: *mut c_int, status: *mut MpiStatus) -> LaneCall {
    if request.is_null() || flag.is_null() {
        return LaneCall::OtherLane;
    }
    // SAFETY: the pointers are not NULL, so they may be read and written; `status` may be ignored or written. The contract of this
    // function says so.
    unsafe {
        match *request {
            SENT => {
                flag.write(1);
                end_complete(request, status);
                LaneCall::Done
            }
            handle if lane_of(handle.0) == 0 => LaneCall::OtherLane,
            _ => test_in_lane(request, flag, status),
        }
    }
}

/// # Safety
/// `request` may be read and written; `flag` may be written; `status` is `MPI_STATUS_IGNORE` or may be written.
#[inline(never)]
unsafe fn test_in_lane(
    request: *mut Request,
    flag: *mut c_int,
    status: *mut MpiStatus,
) -> LaneCall {
    // SAFETY: `request` may be read; the contract of this function says so.
    let handle = unsafe { *request }.0;
    let Some(lane) = MessageLane::of(handle) else { return LaneCall::Declined };
    let entered = lane.enter_to_stay();
    let Some(state) = entered.state() else { return LaneCall::Declined };
    state.engine.progress();
    let Some(ended) = state.end(handle) else {
        if state.is_over(handle) {
            return LaneCall::Declined;
        }
        // SAFETY: `flag` may be written; the contract of this function says so.
        unsafe { flag.write(0) };
        idle(entered, lane);
        return LaneCall::Done;
    };
    state.idle_tests.set(0);
    // SAFETY: all pointers may be written, or `status` be ignored; the contract of this function says so.
    unsafe {
        ended.give_back(request);
        flag.write(1);
        store_status(status, &ended.status);
    }
    LaneCall::Done
}

/// Counts a test without a result, and leaves the lane. Looks at the other lanes in every [`LOOK`]th test. Yields the processor at a
/// look at all lanes, and in each test if there are more ranks than processors. If only the threads outnumber the processors, yields in some
/// tests ([`take_turns`]).
fn idle(entered: LaneEntered, lane: &'static MessageLane) {
    let (row, fits) = entered.state().map_or((1, true), |state| {
        let row = state.idle_tests.get().wrapping_add(1);
        state.idle_tests.set(row);
        (row, state.engine.policy().fits())
    });
    drop(entered);
    let due = progress_in_row(Some(lane), row);
    if row.is_multiple_of(LOOK) {
        progress_main(if due { LaneProgress::All } else { LaneProgress::Try });
    }
    if due || !fits {
        std::thread::yield_now();
    } else {
        take_turns(row);
    }
}

/// Ends the requests of an array from the first on, and waits for them, as long as they belong to the same lane and have no errors
/// (`MPI_Waitall`). Returns the number of requests that have ended, which is 0 if the first belongs to another lane.
///
/// # Safety
/// `requests` is NULL or has `len` elements; `statuses` is `MPI_STATUSES_IGNORE` or has `len` elements.
#[inline(always)]
pub unsafe fn wait_all(len: c_int, requests: *mut Request, statuses: *mut MpiStatus) -> usize {
    let Ok(len) = usize::try_from(len) else { return 0 };
    if requests.is_null() {
        return 0;
    }
    // SAFETY: `i` is less than `len`; the contract of this function says that the array has so many elements.
    let handle = |i: usize| unsafe { *requests.add(i) };
    let other = |i: &usize| !matches!(handle(*i), MPI_REQUEST_NULL | SENT);
    match (0..len).find(other) {
        // SAFETY: the contract of this function says what `wait_all_in_lane` needs.
        Some(i) if lane_of(handle(i).0) != 0 => unsafe {
            wait_all_in_lane(len, requests, statuses, handle(i).0)
        },
        Some(_) => 0,
        // SAFETY: the contract of this function says what `end_all_complete` needs.
        None => unsafe { end_all_complete(len, requests, statuses) },
    }
}

/// # Safety
/// As for [`wait_all`].
#[inline(never)]
unsafe fn wait_all_in_lane(
    len: usize,
    requests: *mut Request,
    statuses: *mut MpiStatus,
    first: usize,
) -> usize {
    let Some(lane) = MessageLane::of(first) else { return 0 };
    let entered = lane.enter_to_stay();
    let Some(state) = entered.state() else { return 0 };
    // SAFETY: `i` is less than `len`, so the array has this place.
    let handle = |i: usize| unsafe { *requests.add(i) };
    let mut checked = false;
    for i in 0..len {
        let to = if statuses.is_null() { statuses } else { statuses.wrapping_add(i) };
        let ended = match handle(i) {
            MPI_REQUEST_NULL => None,
            SENT => Some(LaneEnd { status: Status::default(), handle: MPI_REQUEST_NULL }),
            own if lane_of(own.0) != lane_of(first) => return i,
            own => {
                let ended = state.end(own.0).or_else(|| {
                    // All handles are checked before the first wait, but only if a wait is needed. The usual call checks handles of
                    // other lanes.
                    let known = |k: usize| {
                        matches!(handle(k), MPI_REQUEST_NULL | SENT) || state.has(handle(k).0)
                    };
                    checked = checked || (i..len).all(known);
                    if checked { state.wait_longer(lane, own.0, "MPI_Waitall") } else { None }
                });
                match ended {
                    None => return i,
                    ended => ended,
                }
            }
        };
        // SAFETY: `i` is less than `len`, so both arrays have this place, or statuses are ignored.
        unsafe {
            let Some(ended) = ended else {
                store_empty(to);
                continue;
            };
            ended.give_back(requests.add(i));
            if !to.is_null() {
                store_status(to, &ended.status);
                (*to).error = MPI_SUCCESS;
            }
        }
    }
    len
}
