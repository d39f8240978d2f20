//! Partitioned communication (MPI 5.0, chapter 4).

use super::probes::idle_test;
use super::requests::bad_request;
use crate::arguments::{
    BUF, buffer, comm, count, destination, not_null, optional_info, room_for_request, store, tag,
};
use crate::constants::*;
use crate::engine::JobFabric;
use crate::error::{Error, Owner};
use crate::lanes;
use crate::objects::{Persistent, PersistentRecipe, RequestOrigin};
use crate::requests::inactive;
use crate::state::{engine, state};
use crate::types::{Comm, Datatype, Info, Request};
use std::any::Any;
use std::ffi::{c_int, c_void};
use std::rc::Rc;
use weft_process::{Active, Buffer, Destination, PartitionedReceive, PartitionedSend};

/// The operation of a partitioned request.
pub enum Partitioned {
    Send(Rc<PartitionedSend<JobFabric>>),
    Receive(Rc<PartitionedReceive<JobFabric>>),
}

impl Persistent for Partitioned {
    fn start(&self) -> Result<Active, Error> {
        Ok(match self {
            Partitioned::Send(send) => send.start(),
            Partitioned::Receive(receive) => receive.start(),
        })
    }

    fn as_any(&self) -> Option<&dyn Any> {
        Some(self)
    }
}

/// Returns the buffer of all partitions, and the number of partitions.
///
/// # Safety
/// `buf` points to `partitions * each` elements of `datatype`, which stay while the request is active.
unsafe fn partitions(
    buf: *const c_void,
    partitions: c_int,
    each: i64,
    datatype: Datatype,
) -> Result<(Buffer, usize), Error> {
    let Some(number) = usize::try_from(partitions).ok().filter(|&n| n > 0) else {
        let text = format!("argument partitions = {partitions}: there is at least one");
        return Err(Error::new(MPI_ERR_ARG, text));
    };
    let each = count(each, "count")?;
    let all = each.checked_mul(number).and_then(|all| i64::try_from(all).ok());
    let Some(all) = all else {
        let text = format!(
            "arguments partitions = {partitions}, count = {each}: more elements than memory can hold"
        );
        return Err(Error::new(MPI_ERR_COUNT, text));
    };
    // SAFETY: `buf` points to `all` elements, which stay while the request is active; the contract of this function says so.
    let buffer = unsafe { buffer(buf, all, datatype, BUF) }?;
    if buf.is_null() && !buffer.is_empty() {
        let text = "argument buf is MPI_BOTTOM: partitions follow each other from an address on, \
                    so absolute displacements have no meaning (MPI 5.0, section 4.2.3)";
        return Err(Error::new(MPI_ERR_BUFFER, text));
    }
    Ok((buffer, number))
}

/// MPI_Psend_init, MPI_Psend_init_c.
pub(crate) unsafe fn psend_init(
    buf: *const c_void,
    partitions_: c_int,
    count: i64,
    datatype: Datatype,
    dest: c_int,
    tag_: c_int,
    handle: Comm,
    info: Info,
    request: *mut Request,
) -> Result<(), Error> {
    room_for_request(request)?;
    let comm = comm(handle)?;
    let to = destination(&comm, dest, "dest")?;
    let tag = tag(tag_, "tag")?;
    optional_info(info)?;
    // SAFETY: the program keeps the buffer of `partitions_ * count` elements while the request is active (MPI 5.0, section 4.2.1).
    unsafe {
        let (all, number) = partitions(buf, partitions_, count, datatype)?;
        let made = Partitioned::Send(PartitionedSend::new(&comm, all, number, to, tag));
        inactive(request, &comm, Rc::new(made), RequestOrigin::Send)
    }
}

/// MPI_Precv_init, MPI_Precv_init_c.
pub(crate) unsafe fn precv_init(
    buf: *mut c_void,
    partitions_: c_int,
    count: i64,
    datatype: Datatype,
    source: c_int,
    tag_: c_int,
    handle: Comm,
    info: Info,
    request: *mut Request,
) -> Result<(), Error> {
    room_for_request(request)?;
    let comm = comm(handle)?;
    let from = match destination(&comm, source, "source")? {
        Destination::Rank(rank) => Some(rank),
        Destination::Nobody => None,
    };
    let tag = tag(tag_, "tag")?;
    optional_info(info)?;
    // SAFETY: the program keeps the buffer of `partitions_ * count` elements while the request is active (MPI 5.0, section 4.2.1).
    unsafe {
        let (all, number) = partitions(buf, partitions_, count, datatype)?;
        let made = PartitionedReceive::new(&comm, all, number, from, tag);
        inactive(request, &comm, Rc::new(Partitioned::Receive(made)), RequestOrigin::Receive)
    }
}

/// Returns the recipe of a request, and the object whose error handler receives errors of the request.
fn find(handle: Request) -> Result<(Option<PersistentRecipe>, Owner), Error> {
    // No request of a lane is partitioned.
    if let Some(belongs) = lanes::belongs(handle.0) {
        return Ok((None, belongs.owner()));
    }
    let requests = state().requests.borrow();
    let object = requests.get(handle.0).ok_or_else(|| bad_request(handle))?;
    let owner = object.belongs.owner();
    Ok((object.recipe.clone(), owner))
}

fn partitioned(recipe: &Option<PersistentRecipe>) -> Option<&Partitioned> {
    recipe.as_ref()?.as_any()?.downcast_ref()
}

/// Calls `f` with the partitioned send behind a handle.
fn with_send(
    handle: Request,
    f: impl FnOnce(&PartitionedSend<JobFabric>) -> Result<(), weft_process::Error>,
) -> Result<(), Error> {
    engine()?;
    let (recipe, owner) = find(handle)?;
    match partitioned(&recipe) {
        Some(Partitioned::Send(send)) => f(send).map_err(|error| Error::from(error).on(owner)),
        Some(Partitioned::Receive(_)) => {
            let text = "argument request is a partitioned receive: partitions are marked ready by \
                        the sender (MPI_Psend_init)";
            Err(Error::new(MPI_ERR_REQUEST, text).on(owner))
        }
        None => Err(not_partitioned("MPI_Psend_init").on(owner)),
    }
}

fn not_partitioned(maker: &str) -> Error {
    let text = format!("argument request is not a partitioned one: {maker} makes it");
    Error::new(MPI_ERR_REQUEST, text)
}

/// MPI_Pready.
pub(crate) unsafe fn pready(partition: c_int, request: Request) -> Result<(), Error> {
    with_send(request, |send| send.ready(partition))
}

/// MPI_Pready_range.
pub(crate) unsafe fn pready_range(low: c_int, high: c_int, request: Request) -> Result<(), Error> {
    with_send(request, |send| send.ready_range(low, high))
}

/// MPI_Pready_list.
pub(crate) unsafe fn pready_list(
    length: c_int,
    list: *const c_int,
    request: Request,
) -> Result<(), Error> {
    let length = count(i64::from(length), "length")?;
    if length == 0 {
        return with_send(request, |send| send.ready_list(&[]));
    }
    not_null(list, "array_of_partitions")?;
    // SAFETY: `list` is not NULL, so it has `length` elements, as MPI requires of the program.
    let list = unsafe { std::slice::from_raw_parts(list, length) };
    with_send(request, |send| send.ready_list(list))
}

/// MPI_Parrived.
pub(crate) unsafe fn parrived(
    request: Request,
    partition: c_int,
    flag: *mut c_int,
) -> Result<(), Error> {
    let engine = engine()?;
    not_null(flag, "flag")?;
    let arrived = match request {
        // For the null request and for an inactive request, the flag is true (MPI 5.0, section 4.2.2).
        MPI_REQUEST_NULL => true,
        _ => {
            let (recipe, owner) = find(request)?;
            let receive = match partitioned(&recipe) {
                Some(Partitioned::Receive(receive)) => receive,
                Some(Partitioned::Send(_)) => {
                    let text = "argument request is a partitioned send: partitions arrive at the \
                                receiver (MPI_Precv_init)";
                    return Err(Error::new(MPI_ERR_REQUEST, text).on(owner));
                }
                None => return Err(not_partitioned("MPI_Precv_init").on(owner)),
            };
            engine.progress();
            let arrived =
                receive.arrived(partition).map_err(|error| Error::from(error).on(owner))?;
            idle_test(!arrived);
            arrived
        }
    };
    // SAFETY: `flag` points to room for the result, as MPI requires of the program.
    unsafe { store(flag, c_int::from(arrived), "flag") }
}

/// Checks that the program may free the request. Fails if the request is partitioned and active, because the program may free such
/// a request only after completion (MPI 5.0, section 4.2.1).
pub fn may_be_freed(handle: Request) -> Result<(), Error> {
    let Some(engine) = state().engine.get() else { return Ok(()) };
    let requests = state().requests.borrow();
    let Some(object) = requests.get(handle.0) else { return Ok(()) };
    let partitioned = self::partitioned(&object.recipe).is_some();
    let faulted = engine.endpoint().fault().is_some();
    match &object.active {
        Some(active) if partitioned && !active.looks_over(engine.endpoint(), faulted) => {
            let text = "the partitioned request is active: MPI_Wait comes before MPI_Request_free \
                        (MPI 5.0, section 4.2.1)";
            Err(Error::new(MPI_ERR_REQUEST, text).on(object.belongs.owner()))
        }
        _ => Ok(()),
    }
}
