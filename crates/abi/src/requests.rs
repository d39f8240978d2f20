//! Creation of requests for operations.

use crate::arguments::store;
use crate::engine::CommObject;
use crate::error::Error;
use crate::objects::{Belongs, PersistentRecipe, RequestObject, RequestOrigin};
use crate::state::state;
use crate::types::Request;
use std::rc::Rc;
use weft_process::Active;

/// Makes a request of an operation under way.
///
/// # Safety
/// `to` is NULL or may be written.
#[inline(always)]
pub unsafe fn start(
    to: *mut Request,
    comm: &Rc<CommObject>,
    active: Active,
    kind: RequestOrigin,
) -> Result<(), Error> {
    // SAFETY: `to` is NULL or valid for writes: the caller of `start` promises it.
    unsafe { start_for(to, comm, Belongs::Comm(comm.clone()), active, kind) }
}

/// Makes a request of an operation whose errors may belong to an object other than the communicator, such as a window.
///
/// # Safety
/// `to` is NULL or may be written.
#[inline(always)]
pub unsafe fn start_for(
    to: *mut Request,
    comm: &CommObject,
    belongs: Belongs,
    active: Active,
    kind: RequestOrigin,
) -> Result<(), Error> {
    comm.engine().note_nonblocking(&active);
    let object = RequestObject::new(active, belongs, kind);
    let handle = state().requests.borrow_mut().insert(object);
    // SAFETY: `to` is NULL or valid for writes: the caller of `start_for` promises it.
    unsafe { store(to, Request(handle), "request") }
}

/// Makes an inactive persistent request.
///
/// # Safety
/// `to` is NULL or may be written.
pub unsafe fn persist(
    to: *mut Request,
    comm: &Rc<CommObject>,
    recipe: impl Fn() -> Result<Active, Error> + 'static,
    kind: RequestOrigin,
) -> Result<(), Error> {
    // SAFETY: `to` is NULL or valid for writes: the caller of `persist` promises it.
    unsafe { inactive(to, comm, Rc::new(recipe), kind) }
}

/// Makes an inactive persistent request of an operation that has further functions besides its start.
///
/// # Safety
/// `to` is NULL or may be written.
pub unsafe fn inactive(
    to: *mut Request,
    comm: &Rc<CommObject>,
    recipe: PersistentRecipe,
    kind: RequestOrigin,
) -> Result<(), Error> {
    let belongs = Belongs::Comm(comm.clone());
    let object = RequestObject { active: None, recipe: Some(recipe), belongs, kind };
    let handle = state().requests.borrow_mut().insert(object);
    // SAFETY: `to` is NULL or valid for writes: the caller of `inactive` promises it.
    unsafe { store(to, Request(handle), "request") }
}
