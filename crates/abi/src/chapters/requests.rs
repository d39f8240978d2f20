//! Requests: wait and test in all their forms (MPI 5.0, sections 3.7 to 3.9).

use crate::arguments::{bad_handle, not_null, store_status};
use crate::chapters::probes::idle_test;
use crate::constants::*;
use crate::error::{Error, Owner};
use crate::lanes::{self, LaneSet};
use crate::objects::{Belongs, SENT};
use crate::state::{engine, running, state};
use crate::status::{MpiStatus, store_empty};
use crate::table::lane_of;
use crate::types::Request;
use crate::waiting::WaitingCall;
use std::ffi::c_int;
use weft_process::{Active, OperationOutcome, RequestId};

pub(crate) mod in_lane;
mod one_pass;
mod scan;
pub(crate) mod some;

/// Returns the error for a handle that names no request.
pub fn bad_request(handle: Request) -> Error {
    bad_handle(MPI_ERR_REQUEST, "request", "request", handle.0, MPI_REQUEST_NULL.0)
}

/// Returns true if the request is active: not null, and not an inactive persistent request.
pub fn is_active(handle: Request) -> Result<bool, Error> {
    if handle == MPI_REQUEST_NULL {
        return Ok(false);
    }
    if let Some(active) = lanes::with_request(handle.0, |_, object| object.active.is_some()) {
        return Ok(active);
    }
    let requests = state().requests.borrow();
    let object = requests.get(handle.0).ok_or_else(|| bad_request(handle))?;
    Ok(object.active.is_some())
}

/// Returns the endpoint's request of an active message of the main engine; `None` for another request.
fn message_request(handle: Request) -> Option<RequestId> {
    if lane_of(handle.0) != 0 {
        return None;
    }
    state().requests.borrow().get(handle.0)?.active.as_ref()?.message_request()
}

/// The outcome of a request that has ended.
struct Ended {
    outcome: OperationOutcome,
    /// Object whose error handler is called.
    belongs: Belongs,
}

/// Polls an active request once. If the operation is complete, ends the request. A persistent request then becomes inactive. Any
/// other request is freed, and its handle becomes null.
fn poll(handle: &mut Request) -> Option<Ended> {
    if *handle == SENT {
        *handle = MPI_REQUEST_NULL;
        let outcome = OperationOutcome::of(weft_process::Status::default());
        return Some(Ended { outcome, belongs: Belongs::Nobody });
    }
    if lane_of(handle.0) != 0 {
        let ended = lanes::poll(handle.0)?;
        *handle = ended.handle;
        return Some(Ended { outcome: ended.outcome, belongs: ended.belongs });
    }
    let state = state();
    let endpoint = state.engine.get()?.endpoint();
    let mut requests = state.requests.borrow_mut();
    let object = requests.get_mut(handle.0)?;
    let outcome = match object.active.as_mut()? {
        // An external operation may call functions of the program, and these functions may call MPI again. So the table is not
        // borrowed meanwhile.
        Active::External(operation) => {
            let operation = operation.clone();
            drop(requests);
            let outcome = operation.poll()?;
            requests = state.requests.borrow_mut();
            outcome
        }
        active => active.poll(endpoint)?,
    };
    let object = requests.get_mut(handle.0)?;
    object.active = None;
    let belongs = object.belongs.clone();
    if object.recipe.is_none() {
        requests.remove(handle.0);
        *handle = MPI_REQUEST_NULL;
    }
    Some(Ended { outcome, belongs })
}

/// Sets the caller's handle to null if the request has been freed. The handle of a persistent request is not written, because
/// other threads may read it meanwhile (MPI_Pready, MPI_Parrived).
///
/// # Safety
/// `to` may be written.
unsafe fn give_back(to: *mut Request, handle: Request) {
    if handle == MPI_REQUEST_NULL {
        // SAFETY: `to` points to room for the result, as MPI requires of the program.
        unsafe { to.write(handle) }
    }
}

impl Ended {
    /// Fills a status, except for its error field. The status may be ignored.
    ///
    /// # Safety
    /// `to` is NULL or may be written.
    unsafe fn store(&self, to: *mut MpiStatus) {
        // SAFETY: `to` points to room for the result, as MPI requires of the program.
        unsafe { store_status(to, &self.outcome.status) }
    }

    fn error(&self) -> Option<Error> {
        Some(Error::from(self.outcome.error.clone()?).on(self.belongs.owner()))
    }
}

/// MPI_Wait.
pub(crate) unsafe fn wait(request: *mut Request, status: *mut MpiStatus) -> Result<(), Error> {
    let engine = engine()?;
    not_null(request, "request")?;
    // SAFETY: `request` is not NULL, so it points to a handle; `status` may be ignored or written, as MPI requires of the program.
    unsafe {
        let mut handle = *request;
        if !is_active(handle)? {
            store_empty(status);
            return Ok(());
        }
        let awaited = move || message_request(handle).into_iter().collect();
        let call = WaitingCall::new("MPI_Wait");
        let ended = engine.drive_requests(&call, awaited, || poll(&mut handle));
        give_back(request, handle);
        ended.store(status);
        ended.error().map_or(Ok(()), Err)
    }
}

/// MPI_Test.
pub(crate) unsafe fn test(
    request: *mut Request,
    flag: *mut c_int,
    status: *mut MpiStatus,
) -> Result<(), Error> {
    let engine = engine()?;
    not_null(request, "request")?;
    not_null(flag, "flag")?;
    // SAFETY: `request` and `flag` are not NULL, so they point to values; `status` may be ignored or written, as MPI requires.
    unsafe {
        let mut handle = *request;
        if !is_active(handle)? {
            flag.write(1);
            store_empty(status);
            return Ok(());
        }
        engine.progress();
        let ended = poll(&mut handle);
        flag.write(c_int::from(ended.is_some()));
        idle_test(ended.is_none());
        let Some(ended) = ended else { return Ok(()) };
        give_back(request, handle);
        ended.store(status);
        ended.error().map_or(Ok(()), Err)
    }
}

/// The program's arrays of requests and statuses.
pub struct Arrays {
    requests: *mut Request,
    statuses: *mut MpiStatus,
    /// Number of requests, and of statuses if the program wants statuses.
    pub len: usize,
    /// Name of the MPI function that got the arrays.
    call: &'static str,
}

impl Arrays {
    /// Checks the arrays and each handle. Errors: REQUEST, ARG, COUNT.
    pub fn new(
        count: c_int,
        requests: *mut Request,
        statuses: *mut MpiStatus,
        call: &'static str,
    ) -> Result<Arrays, Error> {
        let arrays = Arrays::unchecked(count, requests, statuses, call)?;
        arrays.check()?;
        Ok(arrays)
    }

    /// Checks the arrays, but not the handles.
    fn unchecked(
        count: c_int,
        requests: *mut Request,
        statuses: *mut MpiStatus,
        call: &'static str,
    ) -> Result<Arrays, Error> {
        running()?;
        let len = crate::arguments::count(i64::from(count), "count")?;
        if len > 0 {
            not_null(requests, "array_of_requests")?;
        }
        Ok(Arrays { requests, statuses, len, call })
    }

    /// Checks that each handle names a request or is null. Enters each lane at most once.
    fn check(&self) -> Result<(), Error> {
        let in_lanes = self.check_without_lanes()?;
        let unknown = |lane: usize| {
            let mut of_lane = (0..self.len).filter(|&i| lane_of(self.request(i).0) == lane);
            let first = of_lane.clone().next();
            let unknown = lanes::with_requests(lane, |requests| {
                of_lane.find(|&i| requests.get(self.request(i).0).is_none())
            });
            unknown.unwrap_or(first)
        };
        self.refuse(in_lanes.numbers().filter_map(unknown).min())
    }

    /// Checks the handles like [`Arrays::check`], but no handles of lanes. Returns the lanes of these handles.
    fn check_without_lanes(&self) -> Result<LaneSet, Error> {
        let requests = state().requests.borrow();
        let mut in_lanes = LaneSet::default();
        let mut known = |handle: Request| {
            let known = matches!(handle, MPI_REQUEST_NULL | SENT);
            known || requests.get(handle.0).is_some() || {
                in_lanes.add(handle.0);
                lane_of(handle.0) != 0
            }
        };
        let unknown = (0..self.len).find(|&i| !known(self.request(i)));
        self.refuse(unknown).map(|()| in_lanes)
    }

    /// Returns an error if there is an `unknown` handle, at this place.
    fn refuse(&self, unknown: Option<usize>) -> Result<(), Error> {
        match unknown {
            None => Ok(()),
            Some(i) => Err(bad_request(self.request(i)).at(&place(i))),
        }
    }

    /// Returns the handle at place `i`.
    pub fn request(&self, i: usize) -> Request {
        assert!(i < self.len);
        // SAFETY: `i` is less than `len`, and the program's array has `len` elements.
        unsafe { *self.requests.add(i) }
    }

    /// Returns true if request `i` is active, which means that the request can end.
    pub fn active(&self, i: usize) -> bool {
        is_active(self.request(i)).unwrap_or(false)
    }

    /// Returns true if a request is active.
    pub fn any_active(&self) -> bool {
        (0..self.len).any(|i| self.active(i))
    }

    /// Returns the requests from `i` on, up to the first that is no message of the main engine.
    fn message_requests(&self, i: usize) -> Vec<RequestId> {
        let handles = (i..self.len).map(|i| self.request(i));
        let active = handles.filter(|&handle| handle != SENT && handle != MPI_REQUEST_NULL);
        active.map_while(message_request).collect()
    }

    /// Polls request `i` once.
    fn poll(&self, i: usize) -> Option<Ended> {
        let mut handle = self.request(i);
        let ended = poll(&mut handle)?;
        // SAFETY: `i` is less than `len` (`request` checked it), and the program's array has `len` elements.
        unsafe { give_back(self.requests.add(i), handle) };
        Some(ended)
    }

    /// Returns the address of status `i`, or NULL if statuses are ignored.
    pub fn status(&self, i: usize) -> *mut MpiStatus {
        if self.statuses.is_null() { self.statuses } else { self.statuses.wrapping_add(i) }
    }

    /// Fills status `at`, including its error field, with the outcome of request `i`. Returns the error of the request, if any.
    fn store(&self, at: usize, i: usize, ended: &Ended) -> Option<Error> {
        // SAFETY: `at` is less than `len`, and the program's array of statuses is NULL or has `len` elements.
        unsafe { self.store_outcome(at, i, &ended.outcome, || ended.belongs.owner()) }
    }

    /// Fills status `at` with an outcome like `store`, for an operation that may still be active.
    ///
    /// # Safety
    /// `at` is less than `len`, so that the program's array of statuses, if there is one, has this place.
    pub unsafe fn store_outcome(
        &self,
        at: usize,
        i: usize,
        outcome: &OperationOutcome,
        owner: impl FnOnce() -> Owner,
    ) -> Option<Error> {
        let error = outcome.error.clone();
        let error = error.map(|error| self.failed(i, Error::from(error).on(owner())));
        let to = self.status(at);
        if !to.is_null() {
            // SAFETY: `to` is not NULL, so it is place `at` of the program's array, which may be written; the contract of this
            // function says so.
            unsafe {
                store_status(to, &outcome.status);
                (*to).error = error.as_ref().map_or(MPI_SUCCESS, |error| error.code(error.text()));
            }
        }
        error
    }

    /// Returns the error of a call that stores errors in statuses. `error` is the error of request `i`. The error handler receives
    /// the code in the status, and the call returns MPI_ERR_IN_STATUS (MPI 5.0, sections 3.7.5 and 9.3.1).
    #[cold]
    fn failed(&self, i: usize, error: Error) -> Error {
        error.at(&place(i)).within(self.call).returning(MPI_ERR_IN_STATUS)
    }

    /// Stores index and status of the request that `any` found.
    ///
    /// # Safety
    /// `index` may be written; `status` is MPI_STATUS_IGNORE or may be written.
    unsafe fn store_any(
        &self,
        found: Option<(usize, Ended)>,
        index: *mut c_int,
        status: *mut MpiStatus,
    ) -> Result<(), Error> {
        // SAFETY: `index` may be written, and `status` may be ignored or written; the contract of this function says so.
        unsafe {
            match found {
                None => {
                    index.write(MPI_UNDEFINED);
                    store_empty(status);
                    Ok(())
                }
                Some((i, ended)) => {
                    index.write(i as c_int);
                    ended.store(status);
                    ended.error().map_or(Ok(()), Err)
                }
            }
        }
    }
}

/// Returns the name of an element of the array of requests, for error texts.
pub fn place(i: usize) -> String {
    format!("array_of_requests[{i}]")
}

/// MPI_Waitall.
pub(crate) unsafe fn waitall(
    count: c_int,
    requests: *mut Request,
    statuses: *mut MpiStatus,
) -> Result<(), Error> {
    // SAFETY: `wait_for_all` needs arrays as long as MPI requires of the program.
    unsafe { wait_for_all(Arrays::unchecked(count, requests, statuses, "MPI_Waitall")?, 0) }
}

/// Waits for the requests from `first` on.
///
/// # Safety
/// The arrays are those of the program: `len` requests, and no statuses or `len` statuses.
unsafe fn wait_for_all(arrays: Arrays, first: usize) -> Result<(), Error> {
    let call = WaitingCall::new(arrays.call);
    let (mut failed, mut checked) = (None, false);
    let mut i = first;
    loop {
        // SAFETY: `end_plain` needs the arrays that the contract of this function describes.
        i = unsafe { arrays.end_plain(i) };
        if i == arrays.len {
            return failed.map_or(Ok(()), Err);
        }
        // All handles are checked before the first wait, but only if a wait is needed.
        if !std::mem::replace(&mut checked, true) {
            arrays.check()?;
        }
        if arrays.active(i) {
            let awaited = || arrays.message_requests(i);
            let ended = engine()?.drive_requests(&call, awaited, || arrays.poll(i));
            let error = arrays.store(i, i, &ended);
            failed = failed.or(error);
        } else {
            // SAFETY: `i` is less than `len`, and the program's array of statuses is NULL or has `len` elements.
            unsafe { store_empty(arrays.status(i)) };
        }
        i += 1;
    }
}

/// MPI_Testall.
pub(crate) unsafe fn testall(
    count: c_int,
    requests: *mut Request,
    flag: *mut c_int,
    statuses: *mut MpiStatus,
) -> Result<(), Error> {
    let arrays = Arrays::unchecked(count, requests, statuses, "MPI_Testall")?;
    not_null(flag, "flag")?;
    engine()?.progress();
    let all = arrays.all_over()?;
    // SAFETY: `flag` points to room for the result, as MPI requires of the program.
    unsafe { flag.write(c_int::from(all)) };
    if !all {
        idle_test(true);
        return Ok(());
    }
    // SAFETY: `wait_for_all` needs arrays as long as MPI requires of the program. All requests are complete, so it does not wait.
    unsafe { wait_for_all(arrays, 0) }
}

/// MPI_Waitany.
pub(crate) unsafe fn waitany(
    count: c_int,
    requests: *mut Request,
    index: *mut c_int,
    status: *mut MpiStatus,
) -> Result<(), Error> {
    let arrays = Arrays::unchecked(count, requests, std::ptr::null_mut(), "MPI_Waitany")?;
    not_null(index, "indx")?;
    let engine = engine()?;
    let found = match arrays.remembered() {
        Some(found) => Some(found),
        None => {
            let in_lanes = arrays.check_without_lanes()?;
            arrays.gather(engine);
            let call = WaitingCall::new("MPI_Waitany");
            engine.drive(&call, || arrays.any(in_lanes).transpose())?
        }
    };
    // SAFETY: `index` is not NULL, and `status` may be ignored or written, as MPI requires of the program.
    unsafe { arrays.store_any(found, index, status) }
}

/// MPI_Testany.
pub(crate) unsafe fn testany(
    count: c_int,
    requests: *mut Request,
    index: *mut c_int,
    flag: *mut c_int,
    status: *mut MpiStatus,
) -> Result<(), Error> {
    let arrays = Arrays::unchecked(count, requests, std::ptr::null_mut(), "MPI_Testany")?;
    not_null(index, "indx")?;
    not_null(flag, "flag")?;
    let engine = engine()?;
    let found = match arrays.remembered() {
        Some(found) => Some(Some(found)),
        None => {
            let in_lanes = arrays.check_without_lanes()?;
            engine.progress();
            arrays.gather(engine);
            arrays.any(in_lanes)?
        }
    };
    // SAFETY: `index` and `flag` are not NULL, and `status` may be ignored or written, as MPI requires of the program.
    unsafe {
        flag.write(c_int::from(found.is_some()));
        match found {
            Some(found) => arrays.store_any(found, index, status),
            None => {
                index.write(MPI_UNDEFINED);
                idle_test(true);
                Ok(())
            }
        }
    }
}
