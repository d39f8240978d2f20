//! Completion tests that do not end the requests (MPI 5.0, section 3.7.6).

use super::request_control::external;
use super::requests::{Arrays, is_active};
use crate::arguments::{not_null, store_status};
use crate::chapters::probes::idle_test;
use crate::constants::*;
use crate::error::{Error, Owner};
use crate::lanes;
use crate::state::{engine, state};
use crate::status::MpiStatus;
use crate::status::store_empty;
use crate::table::lane_of;
use crate::types::Request;
use std::ffi::c_int;
use weft_process::OperationOutcome;

/// MPI_Request_get_status.
pub(crate) unsafe fn request_get_status(
    request: Request,
    flag: *mut c_int,
    status: *mut MpiStatus,
) -> Result<(), Error> {
    let engine = engine()?;
    not_null(flag, "flag")?;
    engine.progress();
    // SAFETY: `flag` is not NULL, so it may be written; `status` may be ignored or written, as MPI requires of the program.
    unsafe {
        if !is_active(request)? {
            flag.write(1);
            store_empty(status);
            return Ok(());
        }
        let peeked = peek(request);
        flag.write(c_int::from(peeked.is_some()));
        idle_test(peeked.is_none());
        let Some(OperationOutcome { status: found, error }) = peeked else { return Ok(()) };
        store_status(status, &found);
        error.map_or(Ok(()), |error| Err(error.into()))
    }
}

/// Returns the outcome of an active request whose operation is complete. Does not end the request.
fn peek(handle: Request) -> Option<OperationOutcome> {
    let state = state();
    let endpoint = state.engine.get()?.endpoint();
    if let Some(operation) = external(handle) {
        return operation.peek();
    }
    if lane_of(handle.0) != 0 {
        return lanes::peek(handle.0);
    }
    state.requests.borrow().get(handle.0)?.active.as_ref()?.peek(endpoint)
}

/// Stores the outcome of request `i`, if any, in status `at`. Returns the error of the request.
///
/// # Safety
/// `at` is less than the length of the arrays, so that the program's array of statuses, if there is one, has this place.
unsafe fn store_peeked(
    arrays: &Arrays,
    at: usize,
    i: usize,
    peeked: Option<OperationOutcome>,
) -> Option<Error> {
    // SAFETY: `at` is inside the program's array of statuses, if there is one; the contract of this function says so.
    unsafe {
        let Some(outcome) = peeked else {
            store_empty(arrays.status(at));
            return None;
        };
        arrays.store_outcome(at, i, &outcome, || Owner::Request(arrays.request(i)))
    }
}

/// MPI_Request_get_status_all.
pub(crate) unsafe fn request_get_status_all(
    count: c_int,
    requests: *const Request,
    flag: *mut c_int,
    statuses: *mut MpiStatus,
) -> Result<(), Error> {
    let call = "MPI_Request_get_status_all";
    let arrays = Arrays::new(count, requests.cast_mut(), statuses, call)?;
    not_null(flag, "flag")?;
    engine()?.progress();
    let all = arrays.all_over()?;
    let mut failed = None;
    // SAFETY: `flag` is not NULL, and the array of statuses is ignored or has `count` elements, as MPI requires of the program.
    unsafe {
        flag.write(c_int::from(all));
        for i in (0..arrays.len).take_while(|_| all) {
            let error = store_peeked(&arrays, i, i, peek(arrays.request(i)));
            failed = failed.or(error);
        }
    }
    idle_test(!all);
    failed.map_or(Ok(()), Err)
}

/// MPI_Request_get_status_any.
pub(crate) unsafe fn request_get_status_any(
    count: c_int,
    requests: *const Request,
    index: *mut c_int,
    flag: *mut c_int,
    status: *mut MpiStatus,
) -> Result<(), Error> {
    let call = "MPI_Request_get_status_any";
    let arrays = Arrays::new(count, requests.cast_mut(), std::ptr::null_mut(), call)?;
    not_null(index, "indx")?;
    not_null(flag, "flag")?;
    engine()?.progress();
    let none = !arrays.any_active();
    let found = (0..arrays.len).find_map(|i| Some((i, peek(arrays.request(i))?)));
    // SAFETY: `flag` and `index` are not NULL, and `status` may be ignored or written, as MPI requires of the program.
    unsafe {
        flag.write(c_int::from(none || found.is_some()));
        index.write(found.as_ref().map_or(MPI_UNDEFINED, |(i, _)| *i as c_int));
        match found {
            Some((i, OperationOutcome { status: peeked, error })) => {
                store_status(status, &peeked);
                let owner = Owner::Request(arrays.request(i));
                return error.map_or(Ok(()), |error| Err(Error::from(error).on(owner)));
            }
            None if none => store_empty(status),
            None => idle_test(true),
        }
    }
    Ok(())
}

/// MPI_Request_get_status_some.
pub(crate) unsafe fn request_get_status_some(
    incount: c_int,
    requests: *const Request,
    outcount: *mut c_int,
    indices: *mut c_int,
    statuses: *mut MpiStatus,
) -> Result<(), Error> {
    let call = "MPI_Request_get_status_some";
    let arrays = Arrays::new(incount, requests.cast_mut(), statuses, call)?;
    not_null(outcount, "outcount")?;
    engine()?.progress();
    let none = !arrays.any_active();
    let (mut found, mut failed) = (0, None);
    for i in 0..arrays.len {
        if let Some(peeked) = peek(arrays.request(i)) {
            not_null(indices, "array_of_indices")?;
            // SAFETY: `found` is less than `incount`: both arrays have `incount` elements, as MPI requires of the program.
            unsafe {
                indices.add(found).write(i as c_int);
                let error = store_peeked(&arrays, found, i, Some(peeked));
                failed = failed.or(error);
            }
            found += 1;
        }
    }
    // SAFETY: `outcount` points to room for the result, as MPI requires of the program.
    unsafe { outcount.write(if none { MPI_UNDEFINED } else { found as c_int }) };
    idle_test(found == 0 && !none);
    failed.map_or(Ok(()), Err)
}
