//! Waits and tests for some requests of an array (MPI 5.0, section 3.7.5).

use super::{Arrays, Ended};
use crate::arguments::not_null;
use crate::chapters::probes::idle_test;
use crate::constants::*;
use crate::engine::Engine;
use crate::error::Error;
use crate::state::engine;
use crate::status::MpiStatus;
use crate::types::Request;
use crate::waiting::WaitingCall;
use std::ffi::c_int;

impl Arrays {
    /// Fills indices and statuses of the requests that `find` ends, and stores the number of these requests. If no request is
    /// active, stores MPI_UNDEFINED instead.
    ///
    /// # Safety
    /// `count` is NULL or may be written; `indices` is NULL or has `len` elements.
    unsafe fn end_some(
        &self,
        count: *mut c_int,
        indices: *mut c_int,
        find: impl FnOnce(&Engine) -> Vec<(usize, Ended)>,
    ) -> Result<(), Error> {
        not_null(count, "outcount")?;
        if !self.any_active() {
            // SAFETY: `count` is not NULL, so it may be written; the contract of this function says so.
            unsafe { count.write(MPI_UNDEFINED) };
            return Ok(());
        }
        not_null(indices, "array_of_indices")?;
        let found = find(engine()?);
        let mut failed = None;
        for (at, (i, ended)) in found.iter().enumerate() {
            // SAFETY: `find` ends at most `len` requests, and `indices` has `len` elements; the contract of this function says so.
            unsafe { indices.add(at).write(*i as c_int) };
            let error = self.store(at, *i, ended);
            failed = failed.or(error);
        }
        // SAFETY: `count` is not NULL, so it may be written; the contract of this function says so.
        unsafe { count.write(found.len() as c_int) };
        failed.map_or(Ok(()), Err)
    }
}

/// MPI_Waitsome.
pub(crate) unsafe fn waitsome(
    incount: c_int,
    requests: *mut Request,
    outcount: *mut c_int,
    indices: *mut c_int,
    statuses: *mut MpiStatus,
) -> Result<(), Error> {
    let arrays = Arrays::new(incount, requests, statuses, "MPI_Waitsome")?;
    let find = |engine: &Engine| {
        engine.drive(&WaitingCall::new("MPI_Waitsome"), || {
            arrays.gather(engine);
            let found = arrays.sweep();
            (!found.is_empty()).then_some(found)
        })
    };
    // SAFETY: `outcount` is NULL or may be written, and `indices` is NULL or has `incount` elements, as MPI requires of the program.
    unsafe { arrays.end_some(outcount, indices, find) }
}

/// MPI_Testsome.
pub(crate) unsafe fn testsome(
    incount: c_int,
    requests: *mut Request,
    outcount: *mut c_int,
    indices: *mut c_int,
    statuses: *mut MpiStatus,
) -> Result<(), Error> {
    let arrays = Arrays::new(incount, requests, statuses, "MPI_Testsome")?;
    let find = |engine: &Engine| {
        engine.progress();
        arrays.gather(engine);
        let found = arrays.sweep();
        idle_test(found.is_empty());
        found
    };
    // SAFETY: `outcount` is NULL or may be written, and `indices` is NULL or has `incount` elements, as MPI requires of the program.
    unsafe { arrays.end_some(outcount, indices, find) }
}
