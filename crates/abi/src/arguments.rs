//! Checks of the arguments of C calls. A check returns the object of an argument, or an error that names the argument and its
//! value.

use crate::constants::*;
use crate::engine::CommObject;
use crate::error::Error;
pub use crate::error::not_null;
use crate::objects::*;
use crate::state::{ProcessState, known, running, state};
use crate::status::MpiStatus;
pub use crate::strings::*;
use crate::table::{HandleTable, PREDEFINED_END};
use crate::types::{Comm, Datatype, Group, Info, Op, Session};
use std::cell::RefCell;
use std::ffi::{c_int, c_void};
use std::rc::Rc;
use weft_fabric::Sge;
use weft_process::{Buffer, Destination, Origin, Root};

/// Returns the communicator of a handle.
#[inline]
pub fn comm(handle: Comm) -> Result<Rc<CommObject>, Error> {
    named_comm(handle, "comm")
}

/// Returns the communicator of a handle, for an argument with the name `argument`.
#[inline]
pub fn named_comm(handle: Comm, argument: &str) -> Result<Rc<CommObject>, Error> {
    let state = running()?;
    let found = match handle {
        MPI_COMM_WORLD | MPI_COMM_SELF => return fixed_comm(handle).cloned().ok_or_else(no_world),
        other => state.comms.borrow().get(other.0).cloned(),
    };
    found.ok_or_else(|| {
        bad_handle(MPI_ERR_COMM, argument, "communicator", handle.0, MPI_COMM_NULL.0)
    })
}

/// A communicator for the time of a call. `MPI_COMM_WORLD` and `MPI_COMM_SELF` are borrowed without a reference count, because they
/// exist for the whole call.
pub enum Lent {
    Fixed(&'static Rc<CommObject>),
    Held(Rc<CommObject>),
}

impl std::ops::Deref for Lent {
    type Target = Rc<CommObject>;

    #[inline(always)]
    fn deref(&self) -> &Rc<CommObject> {
        match self {
            Lent::Fixed(comm) => comm,
            Lent::Held(comm) => comm,
        }
    }
}

/// Returns the communicator of a handle, for the time of a call.
#[inline(always)]
pub fn lent_comm(handle: Comm) -> Result<Lent, Error> {
    match fixed_comm(handle) {
        Some(fixed) => Ok(Lent::Fixed(fixed)),
        None => comm(handle).map(Lent::Held),
    }
}

/// Returns the error for the communicators of MPI_Init in a process that has only sessions.
#[cold]
fn no_world() -> Error {
    let text = "MPI_COMM_WORLD and MPI_COMM_SELF are there from MPI_Init to MPI_Finalize; a session \
                has groups (MPI_Group_from_session_pset)";
    Error::new(MPI_ERR_COMM, text)
}

/// Returns the error for a handle that belongs to no object.
#[cold]
pub fn bad_handle(class: c_int, argument: &str, what: &str, handle: usize, null: usize) -> Error {
    if handle == null {
        return Error::new(class, format_args!("argument {argument} is the null {what}"));
    }
    let why = if handle < PREDEFINED_END { "no predefined" } else { "freed, or never was a" };
    Error::new(class, format_args!("argument {argument} = {handle:#x} is {why} {what}"))
}

/// Returns the datatype of a handle.
#[inline]
pub fn datatype(handle: Datatype) -> Result<Rc<TypeObject>, Error> {
    named_datatype(handle, "datatype")
}

/// Returns the datatype of a handle, for an argument with the name `argument`.
#[inline]
pub fn named_datatype(handle: Datatype, argument: &str) -> Result<Rc<TypeObject>, Error> {
    let state = state();
    let offset = handle.0.wrapping_sub(MPI_DATATYPE_NULL.0);
    let found = match state.predefined_types.get(offset) {
        Some(predefined) => predefined.clone(),
        None => state.types.borrow().get(handle.0).cloned(),
    };
    found.ok_or_else(|| {
        bad_handle(MPI_ERR_TYPE, argument, "datatype", handle.0, MPI_DATATYPE_NULL.0)
    })
}

/// Returns a datatype that may be communicated. Such a datatype must be committed.
#[inline]
pub fn committed(handle: Datatype, argument: &str) -> Result<Rc<TypeObject>, Error> {
    let object = named_datatype(handle, argument)?;
    if object.predefined || object.ty.committed() {
        return Ok(object);
    }
    let text = format!("argument {argument} is a datatype that is not committed: MPI_Type_commit");
    Err(Error::new(MPI_ERR_TYPE, text))
}

/// Returns a predefined datatype.
#[inline]
pub fn predefined_datatype(handle: Datatype) -> Option<&'static TypeObject> {
    state().predefined_types.get(handle.0.wrapping_sub(MPI_DATATYPE_NULL.0))?.as_deref()
}

/// Checks that a count is not negative.
#[inline]
pub fn count(value: i64, argument: &str) -> Result<usize, Error> {
    usize::try_from(value).map_err(|_| negative(MPI_ERR_COUNT, value, argument))
}

#[cold]
fn negative(class: c_int, value: i64, argument: &str) -> Error {
    Error::new(class, format_args!("argument {argument} = {value} is negative"))
}

/// Checks a buffer of the program. If the buffer has no elements, the datatype may be `MPI_DATATYPE_NULL`.
///
/// # Safety
/// The program must keep the memory of `count` elements valid until the operation is complete.
#[inline]
pub unsafe fn buffer(
    address: *const c_void,
    elements: i64,
    ty: Datatype,
    names: &'static [&'static str; 3],
) -> Result<Buffer, Error> {
    let elements = count(elements, names[1])?;
    let object = match (elements, ty) {
        (0, MPI_DATATYPE_NULL) => no_elements(),
        _ => committed(ty, names[2])?,
    };
    if address.addr() <= MPI_IN_PLACE && elements > 0 {
        if address.addr() == MPI_IN_PLACE {
            return Err(in_place(names[0]));
        }
        if object.predefined {
            return Err(null_buffer(names[0], names[1], elements));
        }
    }
    let size = object.ty.size();
    if size.checked_mul(elements).is_none_or(|bytes| bytes > MOST_BYTES) {
        return Err(too_many(names[1], elements, size));
    }
    // SAFETY: the memory of `count` elements is valid until the operation is complete: the caller of `buffer` promises it.
    Ok(unsafe { Buffer::new(address.cast_mut().cast(), elements, object.ty.clone()) })
}

/// Returns the datatype of a buffer without elements whose datatype is `MPI_DATATYPE_NULL`. The standard does not say whether a
/// count of 0 allows this handle. Programs use it, because MPICH accepts it, and Open MPI accepts it in partitioned communication.
/// With elements the handle is an error, even to and from `MPI_PROC_NULL`, because the standard names no call that accepts the null
/// handle (MPI 5.0, section 2.5.1).
#[cold]
fn no_elements() -> Rc<TypeObject> {
    let bytes = &state().predefined_types[MPI_BYTE.0 - MPI_DATATYPE_NULL.0];
    bytes.clone().expect("MPI_BYTE is predefined")
}

/// Maximum size of a buffer in bytes: the address space of a process on x86-64. With this limit, sums over ranks stay far below an
/// overflow.
const MOST_BYTES: usize = 1 << 47;

#[cold]
fn too_many(name: &str, elements: usize, size: usize) -> Error {
    let text = format!(
        "argument {name} = {elements}: with a datatype of {size} bytes that is more than 2^47 bytes, \
         which no process has"
    );
    Error::new(MPI_ERR_COUNT, text)
}

#[cold]
fn in_place(name: &str) -> Error {
    let text = format!("argument {name} is MPI_IN_PLACE, which this call does not take there");
    Error::new(MPI_ERR_BUFFER, text)
}

#[cold]
fn null_buffer(name: &str, count_name: &str, count: usize) -> Error {
    let text = format!(
        "argument {name} is NULL, but {count_name} = {count} and the datatype is predefined"
    );
    Error::new(MPI_ERR_BUFFER, text)
}

/// Returns the memory of elements of a predefined type without gaps. `None` for any other type, and for arguments for which
/// [`buffer`] returns an error.
///
/// # Safety
/// As for [`buffer`].
#[inline(always)]
pub unsafe fn plain(address: *const c_void, elements: i64, ty: Datatype) -> Option<Sge> {
    // SAFETY: the memory of the elements is valid until the operation is complete: the caller of `plain` promises it, as for
    // `buffer`.
    unsafe { plain_of(known()?, address, elements, ty) }
}

/// Returns the same as [`plain`], for a caller that already has the state.
///
/// # Safety
/// As for [`buffer`].
#[inline(always)]
pub unsafe fn plain_of(
    state: &ProcessState,
    address: *const c_void,
    elements: i64,
    ty: Datatype,
) -> Option<Sge> {
    let size = state.plain_sizes.get(ty.0.wrapping_sub(MPI_DATATYPE_NULL.0))?.get();
    let elements = usize::try_from(elements).ok()?;
    if size == 0 || address.addr() <= MPI_IN_PLACE || elements > MOST_BYTES >> 8 {
        return None;
    }
    // SAFETY: the memory of the elements is valid until the operation is complete: the caller promises it, as for `buffer`.
    Some(unsafe { Sge::new(address.cast_mut().cast(), elements * usize::from(size)) })
}

/// Returns `MPI_COMM_WORLD` or `MPI_COMM_SELF` of a running process, without a reference count.
#[inline(always)]
pub fn fixed_comm(handle: Comm) -> Option<&'static Rc<CommObject>> {
    let state = state();
    // Both communicators end in MPI_Finalize, even if sessions continue.
    if state.world_phase.get() != crate::state::ProcessPhase::Running {
        return None;
    }
    match handle {
        MPI_COMM_WORLD => state.world.get(),
        MPI_COMM_SELF => state.comm_self.get(),
        _ => None,
    }
}

/// Names of the arguments of a plain buffer.
pub const BUF: &[&str; 3] = &["buf", "count", "datatype"];

/// Checks a tag that a message may carry.
#[inline]
pub fn tag(value: c_int, argument: &str) -> Result<i32, Error> {
    if value >= 0 {
        return Ok(value);
    }
    let text = format!("argument {argument} = {value}: tags are 0 to {}", weft_process::TAG_UB);
    Err(Error::new(MPI_ERR_TAG, text))
}

/// Returns the receiver of a message: a rank, or `MPI_PROC_NULL`. Errors: RANK.
#[inline]
pub fn destination(comm: &CommObject, value: c_int, name: &str) -> Result<Destination, Error> {
    match value {
        MPI_PROC_NULL => Ok(Destination::Nobody),
        _ => rank(comm, value, name, MPI_ERR_RANK).map(Destination::Rank),
    }
}

/// Returns the sender of a message: a rank, `MPI_ANY_SOURCE` or `MPI_PROC_NULL`. Errors: RANK.
#[inline]
pub fn origin(comm: &CommObject, value: c_int, name: &str) -> Result<Origin, Error> {
    match value {
        MPI_PROC_NULL => Ok(Origin::Nobody),
        MPI_ANY_SOURCE => Ok(Origin::Any),
        _ => rank(comm, value, name, MPI_ERR_RANK).map(Origin::Rank),
    }
}

/// Checks a rank of the communicator.
#[inline]
pub fn rank(comm: &CommObject, value: c_int, name: &str, class: c_int) -> Result<usize, Error> {
    if value >= 0 && (value as usize) < comm.peers().size() {
        return Ok(value as usize);
    }
    Err(bad_rank(comm, value, name, class))
}

#[cold]
fn bad_rank(comm: &CommObject, value: c_int, name: &str, class: c_int) -> Error {
    let last = comm.peers().size() - 1;
    let which = if comm.remote().is_some() { "the other group's ranks" } else { "ranks" };
    Error::new(class, format_args!("argument {name} = {value}: {which} are 0 to {last}"))
}

/// Returns the root of a collective operation.
pub fn root(comm: &CommObject, value: c_int) -> Result<Root, Error> {
    match value {
        MPI_ROOT if comm.remote().is_some() => Ok(Root::ThisProcess),
        MPI_PROC_NULL if comm.remote().is_some() => Ok(Root::NotInvolved),
        _ => rank(comm, value, "root", MPI_ERR_ROOT).map(Root::Rank),
    }
}

/// Returns true if this process has the root's buffers.
pub fn at_root(comm: &CommObject, root: Root) -> bool {
    match root {
        Root::Rank(root) => comm.remote().is_none() && root == comm.rank(),
        Root::ThisProcess => true,
        Root::NotInvolved => false,
    }
}

/// Returns true if this process has the buffers of a rank that is not the root. In an intracommunicator the root has both kinds of
/// buffers.
pub fn at_leaf(root: Root) -> bool {
    matches!(root, Root::Rank(_))
}

/// Returns the communicator of a handle, which must be an intracommunicator.
pub fn intracomm(handle: Comm) -> Result<Rc<CommObject>, Error> {
    let found = comm(handle)?;
    if found.remote().is_some() {
        let text = "argument comm is an intercommunicator, and this call is for one group: MPI_Intercomm_merge makes one";
        return Err(Error::new(MPI_ERR_COMM, text));
    }
    Ok(found)
}

/// Returns the name of a communicator in error texts and reports.
pub fn comm_label(comm: &CommObject) -> String {
    let name = comm.name.borrow();
    match name.is_empty() {
        true => format!("communicator {:#x}", comm.id()),
        false => name.display().to_string(),
    }
}

/// Returns the session behind a handle.
pub fn session(handle: Session) -> Result<Rc<SessionObject>, Error> {
    running()?;
    let found = state().sessions.borrow().get(handle.0).cloned();
    let null = MPI_SESSION_NULL.0;
    found.ok_or_else(|| bad_handle(MPI_ERR_SESSION, "session", "session", handle.0, null))
}

/// Returns the group of a handle.
pub fn group(handle: Group, argument: &str) -> Result<weft_process::Group, Error> {
    if handle == MPI_GROUP_EMPTY {
        return Ok(weft_process::Group::new(Vec::new()));
    }
    let found = state().groups.borrow().get(handle.0).cloned();
    found.ok_or_else(|| bad_handle(MPI_ERR_GROUP, argument, "group", handle.0, MPI_GROUP_NULL.0))
}

/// Returns the operator of a handle.
pub fn op(handle: Op) -> Result<Rc<OpObject>, Error> {
    if let Some(predefined) = weft_datatype::PredefinedOp::of_handle(handle.0 as u32)
        && handle.0 < PREDEFINED_END
    {
        return Ok(Rc::new(OpObject::Predefined(predefined)));
    }
    let found = state().ops.borrow().get(handle.0).cloned();
    found.ok_or_else(|| bad_handle(MPI_ERR_OP, "op", "operator", handle.0, MPI_OP_NULL.0))
}

/// Checks an info argument that may be `MPI_INFO_NULL`.
pub fn optional_info(handle: Info) -> Result<Option<weft_process::Info>, Error> {
    if handle == MPI_INFO_NULL {
        return Ok(None);
    }
    info(handle).map(Some)
}

/// Returns a copy of the info object of a handle.
pub fn info(handle: Info) -> Result<weft_process::Info, Error> {
    if handle == MPI_INFO_ENV {
        return Ok(crate::info_env::environment());
    }
    let found = state().infos.borrow().get(handle.0).cloned();
    found.ok_or_else(|| bad_handle(MPI_ERR_INFO, "info", "info object", handle.0, MPI_INFO_NULL.0))
}

/// Stores a result. Returns an error that names the argument if the pointer is NULL.
///
/// # Safety
/// `to` is NULL or may be written.
#[inline]
pub unsafe fn store<T>(to: *mut T, value: T, argument: &str) -> Result<(), Error> {
    not_null(to, argument)?;
    // SAFETY: `to` is not NULL, so it is valid for writes of a result: the caller of `store` promises it.
    unsafe { to.write(value) };
    Ok(())
}

/// Adds an object to a table, and stores its handle. Errors: ARG if the pointer is NULL, NO_MEM if the table is full.
///
/// # Safety
/// `to` is NULL or may be written.
pub unsafe fn store_new<T, H>(
    table: &RefCell<HandleTable<T>>,
    object: T,
    handle: fn(usize) -> H,
    to: *mut H,
    argument: &str,
) -> Result<(), Error> {
    not_null(to, argument)?;
    let mut table = table.borrow_mut();
    table.room()?;
    // SAFETY: `to` is not NULL, so it is valid for writes of a handle: the caller of `store_new` promises it.
    unsafe { to.write(handle(table.insert(object))) };
    Ok(())
}

/// Checks before an operation begins that its request can be stored: the pointer is not NULL, and the table has room for a request.
#[inline]
pub fn room_for_request(to: *mut crate::types::Request) -> Result<(), Error> {
    not_null(to, "request")?;
    if state().requests.borrow().has_room() { Ok(()) } else { make_room_for_request() }
}

#[cold]
fn make_room_for_request() -> Result<(), Error> {
    let room = || state().requests.borrow_mut().room();
    // If the table is full, the check is retried, because operations that have ended return memory that a new request can use.
    Ok(state().engine.get().map_or_else(room, |engine| engine.retry_when_full(room))?)
}

/// Fills a status that may be `MPI_STATUS_IGNORE`. The error field is not written (MPI 5.0, 3.2.5).
///
/// # Safety
/// `to` is `MPI_STATUS_IGNORE` or may be written.
#[inline]
pub unsafe fn store_status(to: *mut MpiStatus, status: &weft_process::Status) {
    if to.is_null() {
        return;
    }
    // SAFETY: `to` is not NULL, so it is valid for writes of a status: the caller of `store_status` promises it.
    unsafe { (*to).set(status) }
}

/// Fills the status of a receive that has ended. If the receive failed, fills the status only if a message was received.
///
/// # Safety
/// `to` is `MPI_STATUS_IGNORE` or may be written.
#[inline(always)]
pub unsafe fn received(
    to: *mut MpiStatus,
    ended: Result<weft_process::Status, weft_process::Error>,
) -> Result<(), Error> {
    match &ended {
        // SAFETY: `to` is `MPI_STATUS_IGNORE` or valid for writes of a status: the caller of `received` promises it.
        Ok(status) => unsafe { store_status(to, status) },
        Err(error) => {
            if let Some(status) = error.status() {
                // SAFETY: `to` is `MPI_STATUS_IGNORE` or valid for writes of a status: the caller of `received` promises it.
                unsafe { store_status(to, status) }
            }
        }
    }
    ended.map(|_| ()).map_err(Error::from)
}
