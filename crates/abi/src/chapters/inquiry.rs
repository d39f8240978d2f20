//! Whether requests are over, without ending them (MPI 5.0, section 3.7.6).

use super::request_control::external;
use super::requests::{Arrays, is_active, store_empty};
use crate::arguments::{not_null, store_status};
use crate::chapters::probes::idle_test;
use crate::constants::*;
use crate::error::Error;
use crate::state::{engine, state};
use crate::status::Status;
use crate::types::Request;
use std::ffi::c_int;

pub(crate) unsafe fn request_get_status(
    request: Request,
    flag: *mut c_int,
    status: *mut Status,
) -> Result<(), Error> {
    let engine = engine()?;
    not_null(flag, "flag")?;
    engine.progress();
    // SAFETY: the caller's pointers.
    unsafe {
        if !is_active(request)? {
            flag.write(1);
            store_empty(status);
            return Ok(());
        }
        let peeked = peek(request);
        flag.write(c_int::from(peeked.is_some()));
        if let Some(peeked) = peeked {
            store_status(status, &peeked);
        }
        idle_test(peeked.is_none());
    }
    Ok(())
}

/// The status of an active request that is over, without ending it.
fn peek(handle: Request) -> Option<weft_process::Status> {
    let state = state();
    let endpoint = state.engine.get()?.endpoint();
    if let Some(operation) = external(handle) {
        return operation.peek();
    }
    state.requests.borrow().get(handle.0)?.active.as_ref()?.peek(endpoint)
}

/// Stores a peeked status in place `at`.
///
/// # Safety
/// The caller's array has that place.
unsafe fn store_peeked(arrays: &Arrays, at: usize, peeked: Option<weft_process::Status>) {
    let to = arrays.status(at);
    // SAFETY: by contract.
    unsafe {
        match peeked {
            Some(status) => store_status(to, &status),
            None => store_empty(to),
        }
    }
}

pub(crate) unsafe fn request_get_status_all(
    count: c_int,
    requests: *const Request,
    flag: *mut c_int,
    statuses: *mut Status,
) -> Result<(), Error> {
    let arrays = Arrays::new(count, requests.cast_mut(), statuses)?;
    not_null(flag, "flag")?;
    engine()?.progress();
    let over = |i: usize| !arrays.active(i) || peek(arrays.request(i)).is_some();
    let all = (0..arrays.len).all(over);
    // SAFETY: the caller's pointers.
    unsafe {
        flag.write(c_int::from(all));
        for i in (0..arrays.len).take_while(|_| all) {
            store_peeked(&arrays, i, peek(arrays.request(i)));
        }
    }
    idle_test(!all);
    Ok(())
}

pub(crate) unsafe fn request_get_status_any(
    count: c_int,
    requests: *const Request,
    index: *mut c_int,
    flag: *mut c_int,
    status: *mut Status,
) -> Result<(), Error> {
    let arrays = Arrays::new(count, requests.cast_mut(), std::ptr::null_mut())?;
    not_null(index, "indx")?;
    not_null(flag, "flag")?;
    engine()?.progress();
    let none = !(0..arrays.len).any(|i| arrays.active(i));
    let found = (0..arrays.len).find_map(|i| Some((i, peek(arrays.request(i))?)));
    // SAFETY: the caller's pointers.
    unsafe {
        flag.write(c_int::from(none || found.is_some()));
        index.write(found.map_or(MPI_UNDEFINED, |(i, _)| i as c_int));
        match found {
            Some((_, peeked)) => store_status(status, &peeked),
            None if none => store_empty(status),
            None => idle_test(true),
        }
    }
    Ok(())
}

pub(crate) unsafe fn request_get_status_some(
    incount: c_int,
    requests: *const Request,
    outcount: *mut c_int,
    indices: *mut c_int,
    statuses: *mut Status,
) -> Result<(), Error> {
    let arrays = Arrays::new(incount, requests.cast_mut(), statuses)?;
    not_null(outcount, "outcount")?;
    engine()?.progress();
    let none = !(0..arrays.len).any(|i| arrays.active(i));
    let mut found = 0;
    for i in 0..arrays.len {
        if let Some(peeked) = peek(arrays.request(i)) {
            not_null(indices, "array_of_indices")?;
            // SAFETY: there are at most `incount` of them.
            unsafe {
                indices.add(found).write(i as c_int);
                store_peeked(&arrays, found, Some(peeked));
            }
            found += 1;
        }
    }
    // SAFETY: the caller's pointer.
    unsafe { outcount.write(if none { MPI_UNDEFINED } else { found as c_int }) };
    idle_test(found == 0 && !none);
    Ok(())
}
