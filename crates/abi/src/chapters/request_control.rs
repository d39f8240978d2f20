//! Start, cancellation and freeing of requests (MPI 5.0, sections 3.7 to 3.9).

use super::requests::{Arrays, bad_request, place};
use crate::arguments::not_null;
use crate::constants::*;
use crate::error::{Error, Owner};
use crate::lanes::{self, LaneStart};
use crate::objects::{RequestObject, RequestOrigin, SENT};
use crate::state::{engine, running, state};
use crate::status::MpiStatus;
use crate::types::Request;
use crate::waiting::WaitingCall;
use std::ffi::c_int;
use weft_p2p::RequestId;
use weft_process::Active;

/// MPI_Request_free.
pub(crate) unsafe fn request_free(request: *mut Request) -> Result<(), Error> {
    let engine = engine()?;
    not_null(request, "request")?;
    // SAFETY: `request` points to a value, as MPI requires of the program.
    let handle = unsafe { *request };
    if handle == SENT {
        // SAFETY: `request` points to room for the result, as MPI requires of the program.
        unsafe { request.write(MPI_REQUEST_NULL) };
        return Ok(());
    }
    if lanes::free(handle.0) {
        // SAFETY: `request` points to room for the result, as MPI requires of the program.
        unsafe { request.write(MPI_REQUEST_NULL) };
        return Ok(());
    }
    super::partitioned::may_be_freed(handle)?;
    let object = state().requests.borrow_mut().remove(handle.0);
    let object = object.ok_or_else(|| bad_request(handle))?;
    // SAFETY: `request` points to room for the result, as MPI requires of the program.
    unsafe { request.write(MPI_REQUEST_NULL) };
    release(object, engine)
}

/// Lets the operation of a freed request complete in the background.
fn release(object: RequestObject, engine: &crate::engine::Engine) -> Result<(), Error> {
    match object.active {
        None | Some(Active::Done(_)) | Some(Active::Task(_)) => {}
        Some(Active::External(operation)) => operation.release()?,
        // These operations use no memory of the request, so the request can be dropped before they are complete.
        Some(Active::Send { id, _piece: None }) | Some(Active::Receive { id, unpack: None }) => {
            engine.endpoint().forget(id);
        }
        Some(mut active) => {
            let endpoint = engine.endpoint().clone();
            engine.spawn(async move {
                active.over(&endpoint).await;
                Ok(())
            });
        }
    }
    Ok(())
}

/// Returns the external operation behind a handle, if any. The result does not borrow the table of requests, because functions of
/// the operation may call MPI again.
pub fn external(handle: Request) -> Option<std::rc::Rc<dyn weft_process::External>> {
    match state().requests.borrow().get(handle.0)?.active.as_ref()? {
        Active::External(operation) => Some(operation.clone()),
        _ => None,
    }
}

/// MPI_Cancel.
pub(crate) unsafe fn cancel(request: *mut Request) -> Result<(), Error> {
    let engine = engine()?;
    not_null(request, "request")?;
    // SAFETY: `request` points to a value, as MPI requires of the program.
    let handle = unsafe { *request };
    if let Some(operation) = external(handle) {
        return Ok(operation.cancel()?);
    }
    if let Some(active) = lanes::cancel(handle.0) {
        return if active { Ok(()) } else { Err(not_active()) };
    }
    let message = begin_cancelling(handle)?;
    // The operation may be complete now, so a thread that waits for it is woken.
    engine.wake_siblings();
    if let Some(id) = message {
        // Only this process decides if its message to itself is cancelled. A simulated network delivers the message later, so this call
        // waits for the decision. Otherwise a program that tests the request once would think that the message was not cancelled.
        let endpoint = engine.endpoint();
        let decided = || (!endpoint.decides_cancellation(id)).then_some(());
        engine.drive(&WaitingCall::new("MPI_Cancel"), decided);
    }
    Ok(())
}

/// Asks to cancel an operation. Returns its request if it is a message.
fn begin_cancelling(handle: Request) -> Result<Option<RequestId>, Error> {
    let requests = state().requests.borrow();
    let object = requests.get(handle.0).ok_or_else(|| bad_request(handle))?;
    match (&object.active, object.kind) {
        (_, RequestOrigin::Collective) => {
            let text = "a collective operation cannot be cancelled (MPI 5.0, section 6.12)";
            Err(Error::new(MPI_ERR_REQUEST, text))
        }
        (Some(active), _) => {
            active.cancel(engine()?.endpoint());
            Ok(active.message_request())
        }
        (None, _) => Err(not_active()),
    }
}

fn not_active() -> Error {
    Error::new(MPI_ERR_REQUEST, "the persistent request is not active")
}

/// MPI_Start.
pub(crate) unsafe fn start(request: *mut Request) -> Result<(), Error> {
    running()?;
    not_null(request, "request")?;
    // SAFETY: `request` points to a value, as MPI requires of the program.
    let handle = unsafe { *request };
    let is_active = || Error::new(MPI_ERR_REQUEST, "the request is active already");
    let once = || Error::new(MPI_ERR_REQUEST, "the request is not persistent");
    match lanes::start_again(handle.0)? {
        LaneStart::Started => return Ok(()),
        LaneStart::Active => return Err(is_active()),
        LaneStart::Once => return Err(once()),
        LaneStart::Unknown => {}
    }
    let recipe = {
        let requests = state().requests.borrow();
        let object = requests.get(handle.0).ok_or_else(|| bad_request(handle))?;
        if object.active.is_some() && handle != SENT {
            return Err(is_active());
        }
        object.recipe.clone()
    };
    let Some(recipe) = recipe else {
        return Err(once());
    };
    let active = recipe.start()?;
    if let Some(object) = state().requests.borrow_mut().get_mut(handle.0) {
        object.active = Some(active);
    }
    Ok(())
}

/// MPI_Startall.
pub(crate) unsafe fn startall(count: c_int, requests: *mut Request) -> Result<(), Error> {
    let arrays = Arrays::new(count, requests, std::ptr::null_mut(), "MPI_Startall")?;
    for i in 0..arrays.len {
        let one = arrays.request(i);
        // SAFETY: `i` is less than `len`, and the program's array has `len` elements.
        unsafe { start(requests.add(i)) }
            .map_err(|e| e.at(&place(i)).usually_on(Owner::Request(one)))?;
    }
    Ok(())
}

/// MPI_Test_cancelled.
pub(crate) unsafe fn test_cancelled(
    status: *const MpiStatus,
    flag: *mut c_int,
) -> Result<(), Error> {
    // SAFETY: `status` is not NULL, so it points to a status; `flag` is NULL or may be written, as MPI requires of the program.
    unsafe {
        not_null(status, "status")?;
        crate::arguments::store(flag, c_int::from((*status).cancelled()), "flag")
    }
}
