//! Waits, tests and starts of requests of a lane, with that lane's lock alone.

use super::{Arrays, wait_for_all};
use crate::error::Error;
use crate::lane_calls::{self, LaneCall};
use crate::lane_starts;
use crate::status::MpiStatus;
use crate::types::Request;
use std::ffi::c_int;

/// MPI_Wait.
#[inline(always)]
pub(crate) unsafe fn lane_wait(
    request: *mut Request,
    status: *mut MpiStatus,
) -> Result<LaneCall, Error> {
    // SAFETY: `request` and `status` are NULL or may be written, as MPI requires of the program.
    Ok(unsafe { lane_calls::wait(request, status) })
}

/// MPI_Test.
#[inline(always)]
pub(crate) unsafe fn lane_test(
    request: *mut Request,
    flag: *mut c_int,
    status: *mut MpiStatus,
) -> Result<LaneCall, Error> {
    // SAFETY: `request`, `flag` and `status` are NULL or may be written, as MPI requires of the program.
    Ok(unsafe { lane_calls::test(request, flag, status) })
}

/// MPI_Waitall.
#[inline(always)]
pub(crate) unsafe fn lane_waitall(
    count: c_int,
    requests: *mut Request,
    statuses: *mut MpiStatus,
) -> Result<LaneCall, Error> {
    // SAFETY: the arrays are NULL or have `count` elements, as MPI requires of the program.
    let ended = unsafe { lane_calls::wait_all(count, requests, statuses) };
    match ended {
        0 => Ok(LaneCall::OtherLane),
        ended if ended == count as usize => Ok(LaneCall::Done),
        // SAFETY: the arrays have `count` elements, as MPI requires of the program.
        ended => unsafe { wait_for_rest(count, requests, statuses, ended) },
    }
}

/// MPI_Start.
#[inline(always)]
pub(crate) unsafe fn lane_start(request: *mut Request) -> Result<LaneCall, Error> {
    // SAFETY: `request` is NULL or may be read, as MPI requires of the program.
    Ok(unsafe { lane_starts::start(request) })
}

/// MPI_Startall.
#[inline(always)]
pub(crate) unsafe fn lane_startall(
    count: c_int,
    requests: *mut Request,
) -> Result<LaneCall, Error> {
    // SAFETY: the array is NULL or has `count` elements, as MPI requires of the program.
    Ok(unsafe { lane_starts::start_all(count, requests) })
}

/// Waits for the requests from `first` on, which may be of any kind. The statuses of the requests before them are filled already.
///
/// # Safety
/// The arrays are those of the program: `count` requests, and no statuses or `count` statuses.
#[cold]
unsafe fn wait_for_rest(
    count: c_int,
    requests: *mut Request,
    statuses: *mut MpiStatus,
    first: usize,
) -> Result<LaneCall, Error> {
    let _entered = crate::lock::enter();
    let arrays = Arrays::unchecked(count, requests, statuses, "MPI_Waitall")?;
    // SAFETY: the arrays have `count` elements; the contract of this function says so.
    unsafe { wait_for_all(arrays, first)? };
    Ok(LaneCall::Done)
}
