//! Probes and matched probes (MPI 5.0, section 3.8).

use crate::arguments::{
    any_tag, bad_handle, comm, not_null, origin, received, room_for_request, store, store_status,
};
use crate::calls::Mrecv;
use crate::constants::*;
use crate::elements::Arguments;
use crate::error::{Error, Owner};
use crate::node::CommObject;
use crate::objects::{MessageObject, RequestOrigin};
use crate::requests::start;
use crate::state::{ChapterState, state};
use crate::status::MpiStatus;
use crate::types::{Comm, Message, Request};
use crate::waiting::WaitingCall;
use std::cell::Cell;
use std::ffi::c_int;
use std::rc::Rc;
use weft_process::Active;

/// MPI_Probe.
pub(crate) unsafe fn probe(
    source: c_int,
    tag: c_int,
    handle: Comm,
    status: *mut MpiStatus,
) -> Result<(), Error> {
    let comm = comm(handle)?;
    let from = origin(&comm, source, "source")?;
    let found = comm.probe(&WaitingCall::new("MPI_Probe"), from, any_tag(tag, "tag")?)?;
    // SAFETY: the caller's status.
    unsafe { store_status(status, &found) };
    Ok(())
}

/// MPI_Iprobe.
pub(crate) unsafe fn iprobe(
    source: c_int,
    tag: c_int,
    handle: Comm,
    flag: *mut c_int,
    status: *mut MpiStatus,
) -> Result<(), Error> {
    let comm = comm(handle)?;
    let from = origin(&comm, source, "source")?;
    let found = comm.iprobe(from, any_tag(tag, "tag")?);
    // SAFETY: the caller's pointers.
    unsafe {
        store(flag, c_int::from(found.is_some()), "flag")?;
        if let Some(found) = found {
            store_status(status, &found);
        }
    }
    idle_test(found.is_none());
    Ok(())
}

/// So many tests in a row that found nothing (some 30 us) are patience enough.
const PATIENCE: u32 = 1024;

/// Tests in a row that found nothing.
static IDLE_TESTS: ChapterState<Cell<u32>> = ChapterState::new(Cell::new(0));

/// A test that found nothing lets another process run, if the ranks do not fit the processors: a
/// program that tests in a loop must not hold up what it waits for. Where they fit, now and then: a
/// processor may have foreign work, too.
pub fn idle_test(nothing: bool) {
    let state = state();
    if !nothing {
        return IDLE_TESTS.set(0);
    }
    let row = IDLE_TESTS.get().wrapping_add(1);
    IDLE_TESTS.set(row);
    if let Some(engine) = state.engine.get()
        && (row.is_multiple_of(PATIENCE) || !engine.policy().fits())
    {
        crate::lock::unlocked(std::thread::yield_now);
    }
}

/// Stores a matched message.
///
/// # Safety
/// The caller's pointers.
unsafe fn keep(
    comm: &Rc<CommObject>,
    found: (Option<weft_process::Matched>, weft_process::Status),
    message: *mut Message,
    status: *mut MpiStatus,
) -> Result<(), Error> {
    let handle = match found.0 {
        None => MPI_MESSAGE_NO_PROC,
        Some(matched) => {
            let object = MessageObject { matched, comm: comm.clone() };
            Message(state().messages.borrow_mut().insert(object))
        }
    };
    // SAFETY: by contract.
    unsafe {
        store(message, handle, "message")?;
        store_status(status, &found.1);
    }
    Ok(())
}

/// MPI_Mprobe.
pub(crate) unsafe fn mprobe(
    source: c_int,
    tag: c_int,
    handle: Comm,
    message: *mut Message,
    status: *mut MpiStatus,
) -> Result<(), Error> {
    let comm = comm(handle)?;
    let from = origin(&comm, source, "source")?;
    let tag = any_tag(tag, "tag")?;
    not_null(message, "message")?;
    state().messages.borrow_mut().room()?;
    let engine = comm.engine();
    let found =
        engine.drive(&WaitingCall::new("MPI_Mprobe"), || match engine.endpoint().fault() {
            Some(fault) => Some(Err(fault)),
            None => comm.improbe(from, tag).map(Ok),
        })?;
    // SAFETY: `keep` needs valid pointers, which the program passes as MPI requires.
    unsafe { keep(&comm, found, message, status) }
}

/// MPI_Improbe.
pub(crate) unsafe fn improbe(
    source: c_int,
    tag: c_int,
    handle: Comm,
    flag: *mut c_int,
    message: *mut Message,
    status: *mut MpiStatus,
) -> Result<(), Error> {
    let comm = comm(handle)?;
    let from = origin(&comm, source, "source")?;
    let tag = any_tag(tag, "tag")?;
    not_null(message, "message")?;
    state().messages.borrow_mut().room()?;
    not_null(flag, "flag")?;
    let found = comm.improbe(from, tag);
    // SAFETY: the caller's pointers.
    unsafe {
        flag.write(c_int::from(found.is_some()));
        match found {
            Some(found) => keep(&comm, found, message, status)?,
            None => idle_test(true),
        }
    }
    Ok(())
}

/// Takes the matched message behind a handle, which becomes `MPI_MESSAGE_NULL`.
///
/// # Safety
/// The caller's pointer.
unsafe fn take_message(message: *mut Message) -> Result<Option<MessageObject>, Error> {
    not_null(message, "message")?;
    // SAFETY: `message` is not NULL, so it points to a value, as MPI requires of the program.
    let handle = unsafe { *message };
    let object = match handle {
        MPI_MESSAGE_NO_PROC => None,
        _ => Some(state().messages.borrow_mut().remove(handle.0).ok_or_else(|| {
            bad_handle(MPI_ERR_REQUEST, "message", "message", handle.0, MPI_MESSAGE_NULL.0)
        })?),
    };
    // SAFETY: `message` points to room for the result, as MPI requires of the program.
    unsafe { message.write(MPI_MESSAGE_NULL) };
    Ok(object)
}

const NO_PROC: weft_process::Status = weft_process::Status {
    source: MPI_PROC_NULL,
    tag: MPI_ANY_TAG,
    bytes: 0,
    lost: 0,
    cancelled: false,
    corrupt: false,
};

/// MPI_Mrecv, MPI_Mrecv_c, MPI_Imrecv, MPI_Imrecv_c.
impl Mrecv {
    /// # Safety
    /// `message` and `status` are the caller's.
    pub(crate) unsafe fn blocking(self, status: *mut MpiStatus) -> Result<(), Error> {
        let into = self.buf.buffer()?;
        // SAFETY: by contract.
        unsafe {
            let ended = match take_message(self.message)? {
                None => Ok(NO_PROC),
                Some(MessageObject { matched, comm }) => {
                    let active = comm.imrecv(matched, &into);
                    let ended = comm.finish(&WaitingCall::new(Self::NAME), active);
                    return received(status, ended).map_err(|error| error.on(Owner::Object(comm)));
                }
            };
            received(status, ended)
        }
    }

    /// # Safety
    /// `message` and `request` are the caller's.
    pub(crate) unsafe fn nonblocking(self, request: *mut Request) -> Result<(), Error> {
        room_for_request(request)?;
        let into = self.buf.buffer()?;
        // SAFETY: by contract.
        let (comm, active) = match unsafe { take_message(self.message) }? {
            None => (crate::arguments::comm(MPI_COMM_SELF)?, Active::Done(NO_PROC)),
            Some(MessageObject { matched, comm }) => {
                let active = comm.imrecv(matched, &into);
                (comm, active)
            }
        };
        // SAFETY: by contract.
        unsafe { start(request, &comm, active, RequestOrigin::Receive) }
    }
}
