//! Starts of persistent requests of a lane, with that lane's lock alone. With any unusual argument the calls decline, and the usual call
//! checks the arguments.

use crate::lane_calls::LaneCall;
use crate::lanes::{LaneStart, MessageLane};
use crate::table::lane_of;
use crate::types::Request;
use std::ffi::c_int;

/// Starts a request (`MPI_Start`).
///
/// # Safety
/// `request` is NULL or may be read.
#[inline(always)]
pub unsafe fn start(request: *mut Request) -> LaneCall {
    if request.is_null() {
        return LaneCall::OtherLane;
    }
    // SAFETY: `request` is not NULL, so it may be read; the contract of this function says so.
    match unsafe { *request }.0 {
        handle if lane_of(handle) == 0 => LaneCall::OtherLane,
        handle => start_in_lane(handle),
    }
}

#[inline(never)]
fn start_in_lane(handle: usize) -> LaneCall {
    let Some(lane) = MessageLane::of(handle) else { return LaneCall::Declined };
    let entered = lane.enter_to_stay();
    let started = entered.state().map(|state| state.start_again(handle));
    match started {
        Some(Ok(LaneStart::Started)) => LaneCall::Done,
        _ => LaneCall::Declined,
    }
}

/// Starts the requests of an array, if all of them are inactive persistent requests of the same lane (`MPI_Startall`).
///
/// # Safety
/// `requests` is NULL or has `count` elements.
#[inline(always)]
pub unsafe fn start_all(count: c_int, requests: *mut Request) -> LaneCall {
    let Some(len) = usize::try_from(count).ok().filter(|&len| len > 0 && !requests.is_null())
    else {
        return LaneCall::OtherLane;
    };
    // SAFETY: `requests` is not NULL, so it has `len` elements; the contract of this function says so.
    let requests = unsafe { std::slice::from_raw_parts(requests, len) };
    let lane = lane_of(requests[0].0);
    if lane == 0 {
        return LaneCall::OtherLane;
    }
    match requests.iter().all(|request| lane_of(request.0) == lane) {
        true => start_all_in_lane(requests),
        false => LaneCall::Declined,
    }
}

#[inline(never)]
fn start_all_in_lane(requests: &[Request]) -> LaneCall {
    let Some(lane) = MessageLane::of(requests[0].0) else { return LaneCall::Declined };
    let entered = lane.enter_to_stay();
    let Some(state) = entered.state() else { return LaneCall::Declined };
    // All requests are checked first, so that the usual call reports an error before any request is started here.
    if !requests.iter().all(|request| state.may_start(request.0) == LaneStart::Started) {
        return LaneCall::Declined;
    }
    let mut started = requests.iter().map(|request| state.start_again(request.0));
    // A request that stands twice in the array is active now. The usual call reports an error at the first request that is active.
    match started.all(|started| matches!(started, Ok(LaneStart::Started))) {
        true => LaneCall::Done,
        false => LaneCall::Declined,
    }
}
