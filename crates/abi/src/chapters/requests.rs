//! Requests: wait and test in all their forms (MPI 5.0, sections 3.7 to 3.9).

use crate::arguments::{bad_handle, not_null, store_status};
use crate::chapters::probes::idle_test;
use crate::constants::*;
use crate::error::{Error, Owner};
use crate::objects::{Belongs, SENT};
use crate::state::{engine, running, state};
use crate::status::MpiStatus;
use crate::types::Request;
use crate::waiting::WaitingCall;
use std::ffi::c_int;
use weft_process::{Active, OperationOutcome};

mod plain;
mod scan;

/// An error for a handle of no request.
pub fn bad_request(handle: Request) -> Error {
    bad_handle(MPI_ERR_REQUEST, "request", "request", handle.0, MPI_REQUEST_NULL.0)
}

/// Whether the request is one whose completion means something: not null, not inactive.
pub fn is_active(handle: Request) -> Result<bool, Error> {
    if handle == MPI_REQUEST_NULL {
        return Ok(false);
    }
    let requests = state().requests.borrow();
    let object = requests.get(handle.0).ok_or_else(|| bad_request(handle))?;
    Ok(object.active.is_some())
}

/// How a request ended.
struct Ended {
    outcome: OperationOutcome,
    /// Whose error handler to call.
    belongs: Belongs,
}

/// Looks once at an active request; if it is over, ends it: a persistent one becomes inactive, any
/// other is freed and its handle null.
fn poll(handle: &mut Request) -> Option<Ended> {
    if *handle == SENT {
        *handle = MPI_REQUEST_NULL;
        let outcome = OperationOutcome::of(weft_process::Status::default());
        return Some(Ended { outcome, belongs: Belongs::Nobody });
    }
    let state = state();
    let endpoint = state.engine.get()?.endpoint();
    let mut requests = state.requests.borrow_mut();
    let object = requests.get_mut(handle.0)?;
    let outcome = match object.active.as_mut()? {
        // It may call functions of the program, which may come back here.
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

/// Makes the caller's handle null if the request has ended for good. One that stays is not written:
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
    /// Fills a status that may be ignored, except for its error field.
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

/// # Safety
/// `to` is NULL or may be written.
pub unsafe fn store_empty(to: *mut MpiStatus) {
    if !to.is_null() {
        // SAFETY: `to` points to room for the result, as MPI requires of the program.
        unsafe { to.write(MpiStatus::EMPTY) }
    }
}

/// MPI_Wait.
pub(crate) unsafe fn wait(request: *mut Request, status: *mut MpiStatus) -> Result<(), Error> {
    let engine = engine()?;
    not_null(request, "request")?;
    // SAFETY: the caller's pointers.
    unsafe {
        let mut handle = *request;
        if !is_active(handle)? {
            store_empty(status);
            return Ok(());
        }
        let ended = engine.drive(&WaitingCall::new("MPI_Wait"), || poll(&mut handle));
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
    // SAFETY: the caller's pointers.
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

/// The caller's arrays of requests and statuses.
pub struct Arrays {
    requests: *mut Request,
    statuses: *mut MpiStatus,
    /// How many requests, and statuses where the caller wants some.
    pub len: usize,
    /// The function that they were given to.
    call: &'static str,
}

impl Arrays {
    /// All of them, each checked. Errors: REQUEST, ARG, COUNT.
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

    /// Without a look at the handles.
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

    /// All handles must be those of requests, or null.
    fn check(&self) -> Result<(), Error> {
        let requests = state().requests.borrow();
        let known =
            |handle| matches!(handle, MPI_REQUEST_NULL | SENT) || requests.get(handle.0).is_some();
        match (0..self.len).find(|&i| !known(self.request(i))) {
            None => Ok(()),
            Some(i) => Err(bad_request(self.request(i)).at(&place(i))),
        }
    }

    /// The handle at place `i`.
    pub fn request(&self, i: usize) -> Request {
        assert!(i < self.len);
        // SAFETY: inside the caller's array.
        unsafe { *self.requests.add(i) }
    }

    /// Whether there is something at place `i` that may end.
    pub fn active(&self, i: usize) -> bool {
        is_active(self.request(i)).unwrap_or(false)
    }

    /// Looks once at request `i`.
    fn poll(&self, i: usize) -> Option<Ended> {
        let mut handle = self.request(i);
        let ended = poll(&mut handle)?;
        // SAFETY: inside the caller's array.
        unsafe { give_back(self.requests.add(i), handle) };
        Some(ended)
    }

    /// Place `i` of the statuses; NULL if they are ignored.
    pub fn status(&self, i: usize) -> *mut MpiStatus {
        if self.statuses.is_null() { self.statuses } else { self.statuses.wrapping_add(i) }
    }

    /// Fills place `at` of the statuses with how request `i` ended, error field and all; its error.
    fn store(&self, at: usize, i: usize, ended: &Ended) -> Option<Error> {
        // SAFETY: inside the caller's array.
        unsafe { self.store_outcome(at, i, &ended.outcome, || ended.belongs.owner()) }
    }

    /// The same for an operation that may go on.
    ///
    /// # Safety
    /// The caller's array has that place.
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
            // SAFETY: by contract.
            unsafe {
                store_status(to, &outcome.status);
                (*to).error = error.as_ref().map_or(MPI_SUCCESS, |error| error.code(error.text()));
            }
        }
        error
    }

    /// The error of request `i` in a call that puts errors into statuses: the handler hears the code that
    /// is in the status, and MPI_ERR_IN_STATUS is returned (MPI 5.0, sections 3.7.5 and 9.3.1).
    #[cold]
    fn failed(&self, i: usize, error: Error) -> Error {
        error.at(&place(i)).within(self.call).returning(MPI_ERR_IN_STATUS)
    }

    /// Index and status of the one that `any` found.
    ///
    /// # Safety
    /// The caller's pointers.
    unsafe fn store_any(
        &self,
        found: Option<(usize, Ended)>,
        index: *mut c_int,
        status: *mut MpiStatus,
    ) -> Result<(), Error> {
        // SAFETY: by contract.
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

    /// Fills indices and statuses of those that `some` found.
    ///
    /// # Safety
    /// The caller's pointers.
    unsafe fn store_some(
        &self,
        found: &[(usize, Ended)],
        count: *mut c_int,
        indices: *mut c_int,
    ) -> Result<(), Error> {
        let mut failed = None;
        for (at, (i, ended)) in found.iter().enumerate() {
            // SAFETY: there are at most `len` of them.
            unsafe { indices.add(at).write(*i as c_int) };
            let error = self.store(at, *i, ended);
            failed = failed.or(error);
        }
        // SAFETY: `count` points to room for the result, as MPI requires of the program.
        unsafe { count.write(found.len() as c_int) };
        failed.map_or(Ok(()), Err)
    }
}

/// A place in the array of requests, in words.
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
    unsafe { wait_for_all(Arrays::unchecked(count, requests, statuses, "MPI_Waitall")?) }
}

/// # Safety
/// The caller's arrays.
unsafe fn wait_for_all(arrays: Arrays) -> Result<(), Error> {
    let call = WaitingCall::new(arrays.call);
    let (mut failed, mut checked) = (None, false);
    let mut i = 0;
    loop {
        // SAFETY: the caller's arrays.
        i = unsafe { arrays.end_plain(i) };
        if i == arrays.len {
            return failed.map_or(Ok(()), Err);
        }
        // Before it waits for the first time.
        if !std::mem::replace(&mut checked, true) {
            arrays.check()?;
        }
        if arrays.active(i) {
            let ended = engine()?.drive(&call, || arrays.poll(i));
            let error = arrays.store(i, i, &ended);
            failed = failed.or(error);
        } else {
            // SAFETY: inside the caller's array.
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
    // SAFETY: the caller's arrays; nothing is left to wait for.
    unsafe { wait_for_all(arrays) }
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
            arrays.check()?;
            arrays.gather(engine);
            engine.drive(&WaitingCall::new("MPI_Waitany"), || arrays.any())
        }
    };
    // SAFETY: the caller's pointers.
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
            arrays.check()?;
            engine.progress();
            arrays.gather(engine);
            arrays.any()
        }
    };
    // SAFETY: the caller's pointers.
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

/// MPI_Waitsome.
pub(crate) unsafe fn waitsome(
    incount: c_int,
    requests: *mut Request,
    outcount: *mut c_int,
    indices: *mut c_int,
    statuses: *mut MpiStatus,
) -> Result<(), Error> {
    let arrays = Arrays::new(incount, requests, statuses, "MPI_Waitsome")?;
    not_null(outcount, "outcount")?;
    if !(0..arrays.len).any(|i| arrays.active(i)) {
        // SAFETY: `outcount` points to room for the result, as MPI requires of the program.
        unsafe { outcount.write(MPI_UNDEFINED) };
        return Ok(());
    }
    not_null(indices, "array_of_indices")?;
    let engine = engine()?;
    let found = engine.drive(&WaitingCall::new("MPI_Waitsome"), || {
        arrays.gather(engine);
        let found = arrays.sweep();
        (!found.is_empty()).then_some(found)
    });
    // SAFETY: the caller's pointers.
    unsafe { arrays.store_some(&found, outcount, indices) }
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
    not_null(outcount, "outcount")?;
    if !(0..arrays.len).any(|i| arrays.active(i)) {
        // SAFETY: `outcount` points to room for the result, as MPI requires of the program.
        unsafe { outcount.write(MPI_UNDEFINED) };
        return Ok(());
    }
    not_null(indices, "array_of_indices")?;
    let engine = engine()?;
    engine.progress();
    arrays.gather(engine);
    let found = arrays.sweep();
    idle_test(found.is_empty());
    // SAFETY: the caller's pointers.
    unsafe { arrays.store_some(&found, outcount, indices) }
}
