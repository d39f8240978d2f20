//! Communicators (MPI 5.0, chapter 7): creation, comparison, names, freeing.

use crate::arguments::{
    comm, cut, group, info, intracomm, named_comm, not_null, optional_info, room_for_request,
    store, store_new, store_text, string,
};
use crate::chapters::{caching, hints};
use crate::constants::*;
use crate::engine::CommObject;
use crate::error::Error;
use crate::lanes::{self, LaneChoice};
use crate::links;
use crate::objects::{Belongs, RequestObject, RequestOrigin};
use crate::state::state;
use crate::types::{Comm, Group, Info, Request};
use crate::waiting::WaitingCall;
use std::ffi::{OsStr, OsString, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use std::rc::Rc;
use weft_fabric::Fabric;
use weft_process::{Active, Compare, Executor};

/// MPI_Comm_rank.
pub(crate) unsafe fn comm_rank(handle: Comm, rank: *mut c_int) -> Result<(), Error> {
    // SAFETY: `rank` points to room for the result, as MPI requires of the program.
    unsafe { store(rank, comm(handle)?.rank() as c_int, "rank") }
}

/// MPI_Comm_size.
pub(crate) unsafe fn comm_size(handle: Comm, size: *mut c_int) -> Result<(), Error> {
    // SAFETY: `size` points to room for the result, as MPI requires of the program.
    unsafe { store(size, comm(handle)?.size() as c_int, "size") }
}

/// MPI_Comm_compare.
pub(crate) unsafe fn comm_compare(a: Comm, b: Comm, result: *mut c_int) -> Result<(), Error> {
    let found = match named_comm(a, "comm1")?.compare(&*named_comm(b, "comm2")?) {
        Compare::Ident => MPI_IDENT,
        Compare::Congruent => MPI_CONGRUENT,
        Compare::Similar => MPI_SIMILAR,
        Compare::Unequal => MPI_UNEQUAL,
    };
    // SAFETY: `result` points to room for the result, as MPI requires of the program.
    unsafe { store(result, found, "result") }
}

/// MPI_Comm_group.
pub(crate) unsafe fn comm_group(handle: Comm, to: *mut Group) -> Result<(), Error> {
    let group = comm(handle)?.group().clone();
    // SAFETY: `to` points to room for the result, as MPI requires of the program.
    unsafe { store_new(&state().groups, group, Group, to, "group") }
}

/// Makes a handle for a communicator. `None` becomes MPI_COMM_NULL.
pub fn keep(comm: Option<Rc<CommObject>>) -> Comm {
    comm.map_or(MPI_COMM_NULL, |comm| keep_in(comm, LaneChoice::ByComm))
}

/// Makes a handle for a communicator, whose messages have the lanes that `choice` says.
pub fn keep_in(comm: Rc<CommObject>, choice: LaneChoice) -> Comm {
    let lane = lanes::carry(&comm, choice);
    let handle = state().comms.borrow_mut().insert_in(lane, comm.clone());
    lanes::name(handle, &comm);
    Comm(handle)
}

/// Removes the handle of a communicator.
fn discard(handle: Comm) {
    lanes::forget(handle.0);
    let comm = state().comms.borrow_mut().remove(handle.0);
    comm.into_iter().for_each(lanes::keep_while_used);
}

/// Sets the properties that a new communicator inherits from the communicator from which it was made.
pub fn inherit(from: &CommObject, to: &CommObject) {
    to.errhandler.set(from.errhandler.get());
    to.select(from.selection());
    // The hints of the new communicator take precedence over the choices of its parent.
    hints::select(to);
}

/// Gives a new communicator the hints of the call that makes it. The result is how its messages get their lanes. All members agree about
/// this, so all of them await the result, and a member without hints passes `None`.
pub fn give_hints(
    new: &CommObject,
    hints: Option<&weft_process::Info>,
) -> impl Future<Output = Result<LaneChoice, weft_process::Error>> + use<> {
    hints.iter().for_each(|hints| hints::keep(new, hints));
    let promised = hints.is_some_and(|hints| hints.get(hints::NO_ANY_TAG) == Some("true"));
    let all = lanes::can_carry(new).then(|| new.smallest(promised.into()));
    async move {
        let Some(all) = all else { return Ok(LaneChoice::ByComm) };
        match all.await? {
            0 => Ok(LaneChoice::ByComm),
            _ => Ok(LaneChoice::ByTag),
        }
    }
}

/// MPI_Comm_set_info.
pub(crate) unsafe fn comm_set_info(handle: Comm, hints: Info) -> Result<(), Error> {
    let (comm, mut given) = (comm(handle)?, info(hints)?);
    // The standard lets a library ignore such a change. Messages under way have the lanes of their tags.
    if lanes::needs_tag(&comm) {
        given.delete(hints::NO_ANY_TAG);
    }
    hints::keep(&comm, &given);
    Ok(())
}

/// Sets the inherited properties of a new communicator, and makes a handle for it. `None` becomes MPI_COMM_NULL.
pub fn inherited(from: &CommObject, to: Option<Rc<CommObject>>) -> Comm {
    if let Some(to) = &to {
        inherit(from, to);
    }
    keep(to)
}

/// Sets the inherited properties of a new communicator and the hints that the call passes, and makes a handle for it. All members call
/// it. `None` becomes MPI_COMM_NULL.
pub fn inherited_with(
    from: &CommObject,
    to: Option<Rc<CommObject>>,
    hints: Option<&weft_process::Info>,
    call: &'static str,
) -> Result<Comm, Error> {
    let Some(to) = to else { return Ok(MPI_COMM_NULL) };
    let choice = to.engine().block_on(&WaitingCall::new(call), give_hints(&to, hints))?;
    inherit(from, &to);
    Ok(keep_in(to, choice))
}

/// Hints of a call that duplicates a communicator.
enum DupHints {
    /// The call has no argument for hints.
    Absent,
    /// The call has an argument, which may be MPI_INFO_NULL.
    Passed(Option<weft_process::Info>),
}

impl DupHints {
    /// Gives the new communicator the hints. Returns how its messages get their lanes.
    async fn give(self, new: &CommObject) -> Result<LaneChoice, weft_process::Error> {
        match self {
            DupHints::Absent => Ok(LaneChoice::ByComm),
            DupHints::Passed(hints) => give_hints(new, hints.as_ref()).await,
        }
    }
}

/// MPI_Comm_dup.
pub(crate) unsafe fn comm_dup(handle: Comm, newcomm: *mut Comm) -> Result<(), Error> {
    // SAFETY: `dup` needs a valid pointer, which the program passes as MPI requires.
    unsafe { dup(handle, DupHints::Absent, newcomm, "MPI_Comm_dup") }
}

/// MPI_Comm_dup_with_info.
pub(crate) unsafe fn comm_dup_with_info(
    handle: Comm,
    info: Info,
    newcomm: *mut Comm,
) -> Result<(), Error> {
    let hints = DupHints::Passed(optional_info(info)?);
    // SAFETY: `dup` needs a valid pointer, which the program passes as MPI requires.
    unsafe { dup(handle, hints, newcomm, "MPI_Comm_dup_with_info") }
}

/// Duplicates a communicator.
///
/// # Safety
/// `newcomm` is NULL or may be written.
unsafe fn dup(
    handle: Comm,
    hints: DupHints,
    newcomm: *mut Comm,
    call: &'static str,
) -> Result<(), Error> {
    not_null(newcomm, "newcomm")?;
    let old = comm(handle)?;
    let new = old.engine().block_on(&WaitingCall::new(call), old.dup())?;
    let choice = old.engine().block_on(&WaitingCall::new(call), hints.give(&new))?;
    inherit(&old, &new);
    let made = keep_in(new.clone(), choice);
    if let Err(error) = caching::copy_attributes(handle, made.0, &old.attributes, &new.attributes) {
        discard(made);
        close(&new);
        return Err(error);
    }
    // SAFETY: `newcomm` points to room for the result, as MPI requires of the program.
    unsafe { store(newcomm, made, "newcomm") }
}

/// MPI_Comm_idup.
pub(crate) unsafe fn comm_idup(
    handle: Comm,
    newcomm: *mut Comm,
    request: *mut Request,
) -> Result<(), Error> {
    // SAFETY: `idup` needs valid pointers, which the program passes as MPI requires.
    unsafe { idup(handle, DupHints::Absent, newcomm, request) }
}

/// MPI_Comm_idup_with_info.
pub(crate) unsafe fn comm_idup_with_info(
    handle: Comm,
    info: Info,
    newcomm: *mut Comm,
    request: *mut Request,
) -> Result<(), Error> {
    let hints = DupHints::Passed(optional_info(info)?);
    // SAFETY: `idup` needs valid pointers, which the program passes as MPI requires.
    unsafe { idup(handle, hints, newcomm, request) }
}

/// # Safety
/// `newcomm` is NULL or may be written until the request is complete, `request` is NULL or may be written.
unsafe fn idup(
    handle: Comm,
    hints: DupHints,
    newcomm: *mut Comm,
    request: *mut Request,
) -> Result<(), Error> {
    not_null(newcomm, "newcomm")?;
    room_for_request(request)?;
    let old = comm(handle)?;
    let attributes = std::cell::RefCell::default();
    caching::copy_attributes(handle, MPI_COMM_NULL.0, &old.attributes, &attributes)?;
    let duplicate = old.dup();
    let from = old.clone();
    let to = newcomm as usize;
    let task = old.engine().spawn(async move {
        let new = duplicate.await?;
        *new.attributes.borrow_mut() = attributes.into_inner();
        let choice = hints.give(&new).await?;
        inherit(&from, &new);
        let handle = keep_in(new, choice);
        // SAFETY: `to` is the address of `newcomm`, which the program keeps until the request is complete; the contract of this
        // function says so.
        unsafe { std::ptr::with_exposed_provenance_mut::<Comm>(to).write(handle) };
        Ok(())
    });
    let belongs = Belongs::Comm(old);
    let object = RequestObject::new(Active::Task(task), belongs, RequestOrigin::Collective);
    let handle = state().requests.borrow_mut().insert(object);
    // SAFETY: `request` points to room for the result, as MPI requires of the program.
    unsafe { store(request, Request(handle), "request") }
}

/// MPI_Comm_split.
pub(crate) unsafe fn comm_split(
    handle: Comm,
    color: c_int,
    key: c_int,
    newcomm: *mut Comm,
) -> Result<(), Error> {
    not_null(newcomm, "newcomm")?;
    let old = comm(handle)?;
    let colour = match color {
        MPI_UNDEFINED => None,
        0.. => Some(color),
        _ => {
            let text = format!("argument color = {color}: 0 or more, or MPI_UNDEFINED");
            return Err(Error::new(MPI_ERR_ARG, text));
        }
    };
    let new = old.engine().block_on(&WaitingCall::new("MPI_Comm_split"), old.split(colour, key))?;
    // SAFETY: `newcomm` points to room for the result, as MPI requires of the program.
    unsafe { store(newcomm, inherited(&old, new), "newcomm") }
}

/// MPI_Comm_create.
pub(crate) unsafe fn comm_create(
    handle: Comm,
    subgroup: Group,
    newcomm: *mut Comm,
) -> Result<(), Error> {
    not_null(newcomm, "newcomm")?;
    let old = comm(handle)?;
    let subgroup = group(subgroup, "group")?;
    let new = old.engine().block_on(&WaitingCall::new("MPI_Comm_create"), old.create(&subgroup))?;
    // SAFETY: `newcomm` points to room for the result, as MPI requires of the program.
    unsafe { store(newcomm, inherited(&old, new), "newcomm") }
}

/// MPI_Comm_create_group.
pub(crate) unsafe fn comm_create_group(
    handle: Comm,
    subgroup: Group,
    tag: c_int,
    newcomm: *mut Comm,
) -> Result<(), Error> {
    not_null(newcomm, "newcomm")?;
    let old = intracomm(handle)?;
    let tag = crate::arguments::tag(tag, "tag")?;
    let subgroup = group(subgroup, "group")?;
    let member = subgroup.rank_of(old.engine().rank() as u32).is_some();
    let new = match member {
        false => None,
        true => {
            let made = old.create_group(&subgroup, tag);
            Some(old.engine().block_on(&WaitingCall::new("MPI_Comm_create_group"), made)?)
        }
    };
    // SAFETY: `newcomm` points to room for the result, as MPI requires of the program.
    unsafe { store(newcomm, inherited(&old, new), "newcomm") }
}

/// MPI_Comm_free.
pub(crate) unsafe fn comm_free(handle: *mut Comm) -> Result<(), Error> {
    // SAFETY: `handle` is NULL or may be read, as `free` needs; after `free` it is not NULL and may be written, as MPI requires.
    unsafe {
        free(handle, "freed")?;
        handle.write(MPI_COMM_NULL);
    }
    Ok(())
}

/// MPI_Comm_disconnect.
pub(crate) unsafe fn comm_disconnect(handle: *mut Comm) -> Result<(), Error> {
    // SAFETY: `handle` is not NULL after the check, so it may be read and written, as MPI requires of the program.
    unsafe {
        not_null(handle, "comm")?;
        let object = comm(*handle)?;
        // The barrier waits for all pending communication on the communicator. After the barrier, all ranks have called this
        // function, and all sends are matched.
        let call = WaitingCall::new("MPI_Comm_disconnect");
        let engine = object.engine().clone();
        engine.block_on(&call, object.barrier())?;
        free(handle, "disconnected")?;
        handle.write(MPI_COMM_NULL);
        // Delayed messages of the barrier must leave before the links to the other ranks are dropped.
        drop(object);
        engine.drive(&call, || engine.endpoint().fabric().idle().then_some(()));
        links::drop_idle_connections(&engine);
    }
    Ok(())
}

/// Closes a communicator in the background. The task serves requests of ranks that still use the communicator. MPI_Finalize waits
/// for the task.
fn close(object: &CommObject) {
    if object.must_close() {
        let task = object.engine().spawn_by(Executor::Anybody, object.close());
        state().closing.borrow_mut().push(task);
    }
}

/// Closes all communicators that exist, and waits until all closing communicators are closed.
pub fn close_all(call: &WaitingCall) -> Result<(), Error> {
    let state = state();
    state.all_comms().iter().for_each(|object| close(object));
    let closing = std::mem::take(&mut *state.closing.borrow_mut());
    let Some(engine) = state.engine.get() else { return Ok(()) };
    for task in closing {
        engine.drive(call, || task.result()).map_err(Error::from)?;
    }
    Ok(())
}

/// # Safety
/// `handle` is NULL or may be read.
unsafe fn free(handle: *mut Comm, how: &str) -> Result<(), Error> {
    not_null(handle, "comm")?;
    // SAFETY: `handle` is not NULL, so it points to a value, as MPI requires of the program.
    let handle = unsafe { *handle };
    if handle == MPI_COMM_WORLD || handle == MPI_COMM_SELF {
        return Err(Error::new(
            MPI_ERR_COMM,
            format_args!("a predefined communicator is not {how}"),
        ));
    }
    let object = comm(handle)?;
    caching::delete_attributes(handle.0, &object.attributes)?;
    discard(handle);
    close(&object);
    Ok(())
}

/// Deletes all attributes of a communicator, in the reverse of the order in which they were set.
pub fn delete_all_attributes(handle: Comm) -> Result<(), Error> {
    caching::delete_attributes(handle.0, &comm(handle)?.attributes)
}

/// Returns a name that the program gives to an object, cut to the maximum length.
///
/// # Safety
/// `name` is NULL or a C string.
pub unsafe fn object_name(name: *const c_char, argument: &str) -> Result<OsString, Error> {
    // SAFETY: `string` needs a `name` that is NULL or a C string; the contract of this function says so.
    let name = unsafe { string(name, argument) }?;
    Ok(OsStr::from_bytes(cut(name.as_bytes(), MPI_MAX_OBJECT_NAME as usize - 1)).to_owned())
}

/// MPI_Comm_set_name.
pub(crate) unsafe fn comm_set_name(handle: Comm, name: *const c_char) -> Result<(), Error> {
    let object = comm(handle)?;
    // SAFETY: `object_name` needs a string that ends with a NUL, which the program passes as MPI requires.
    let name = unsafe { object_name(name, "comm_name") }?;
    *object.name.borrow_mut() = name;
    Ok(())
}

/// MPI_Comm_get_name.
pub(crate) unsafe fn comm_get_name(
    handle: Comm,
    name: *mut c_char,
    resultlen: *mut c_int,
) -> Result<(), Error> {
    if handle == MPI_COMM_NULL {
        // The null handle has a name too (MPI 5.0, section 7.8).
        // SAFETY: `return_name` needs buffers as long as MPI requires of the program.
        return unsafe { return_name("MPI_COMM_NULL", name, resultlen, "comm_name") };
    }
    let object = comm(handle)?;
    // SAFETY: `name` is NULL or has MPI_MAX_OBJECT_NAME bytes, and `resultlen` is NULL or may be written, as MPI requires.
    unsafe { return_name(object.name.borrow().as_bytes(), name, resultlen, "comm_name") }
}

/// Stores an object's name and its length.
///
/// # Safety
/// `to` is NULL or has `MPI_MAX_OBJECT_NAME` bytes; `length` is NULL or may be written.
pub unsafe fn return_name(
    name: impl AsRef<[u8]>,
    to: *mut c_char,
    length: *mut c_int,
    argument: &str,
) -> Result<(), Error> {
    // SAFETY: `to` is NULL or has MPI_MAX_OBJECT_NAME bytes, and `length` is not NULL after the check; the contract says so.
    unsafe {
        not_null(length, "resultlen")?;
        let len = store_text(name, to, MPI_MAX_OBJECT_NAME as usize, argument)?;
        store(length, len as c_int, "resultlen")
    }
}
