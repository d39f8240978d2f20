//! Probes and matched probes (MPI 5.0, section 3.8).

use crate::arguments::{
    bad_handle, comm, not_null, origin, received, room_for_request, store, store_status,
};
use crate::calls::Mrecv;
use crate::chapter_state::ChapterState;
use crate::constants::*;
use crate::elements::Arguments;
use crate::engine::CommObject;
use crate::error::{Error, Owner};
use crate::lanes::{self, PATIENCE};
use crate::objects::{MessageObject, RequestOrigin};
use crate::requests::start;
use crate::state::state;
use crate::status::MpiStatus;
use crate::tag_to_receive::any_tag;
use crate::test_loop;
use crate::types::{Comm, Message, Request};
use crate::waiting::WaitingCall;
use std::cell::Cell;
use std::ffi::c_int;
use std::rc::Rc;
use weft_fabric::Fault;
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
    let (tag, call) = (any_tag(&comm, tag, "tag")?, WaitingCall::new("MPI_Probe"));
    let found = match lanes::is_carried(&comm) {
        false => comm.probe(&call, from, tag)?,
        true => {
            comm.engine().drive(&call, || self::found(&comm, tag, |comm| comm.iprobe(from, tag)))?
        }
    };
    // SAFETY: `status` is MPI_STATUS_IGNORE or points to room for the result, as MPI requires of the program.
    unsafe { store_status(status, &found) };
    Ok(())
}

/// Runs a probe once. Returns its result, or the fault that has ended all messages.
fn found<T>(
    comm: &Rc<CommObject>,
    tag: Option<i32>,
    probe: impl FnOnce(&CommObject) -> Option<T>,
) -> Option<Result<T, Fault>> {
    lanes::on(comm, tag, |comm| match comm.engine().endpoint().fault() {
        Some(fault) => Some(Err(fault)),
        None => probe(comm).map(Ok),
    })
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
    let tag = any_tag(&comm, tag, "tag")?;
    let found = lanes::on(&comm, tag, |comm| comm.iprobe(from, tag));
    // SAFETY: `flag` and `status` are NULL or point to room for the results, as MPI requires of the program.
    unsafe {
        store(flag, c_int::from(found.is_some()), "flag")?;
        if let Some(found) = found {
            store_status(status, &found);
        }
    }
    idle_test(found.is_none());
    Ok(())
}

/// Number of consecutive tests without a result.
static IDLE_TESTS: ChapterState<Cell<u32>> = ChapterState::new(Cell::new(0));

/// Counts a test. If `nothing` is true, the test had no result. Then it progresses the lanes from time to time, because the program
/// may wait for a message whose sender first needs an answer on a lane, and the process may yield its processor. If there are more
/// ranks than processors, the process yields each time, because a program that tests in a loop must not delay the process for which
/// it waits. Otherwise the process yields every `PATIENCE`th time, because a processor may also have work of other jobs.
pub fn idle_test(nothing: bool) {
    let state = state();
    if !nothing {
        test_loop::end(IDLE_TESTS.get());
        return IDLE_TESTS.set(0);
    }
    let row = IDLE_TESTS.get().wrapping_add(1);
    IDLE_TESTS.set(row);
    test_loop::count(row);
    lanes::progress_in_row(None, row);
    if let Some(engine) = state.engine.get()
        && (row.is_multiple_of(PATIENCE) || engine.policy().takes_turns())
    {
        crate::lock::unlocked(std::thread::yield_now);
    }
}

/// Stores a matched message in the table. Stores the handle and the status of the message in the program's variables.
///
/// # Safety
/// `message` is NULL or may be written; `status` is MPI_STATUS_IGNORE or may be written.
unsafe fn keep(
    comm: &Rc<CommObject>,
    matched: Option<weft_process::Matched>,
    found: weft_process::Status,
    message: *mut Message,
    status: *mut MpiStatus,
) -> Result<(), Error> {
    let handle = match matched {
        None => MPI_MESSAGE_NO_PROC,
        Some(matched) => {
            let object = MessageObject { matched, comm: comm.clone() };
            Message(state().messages.borrow_mut().insert(object))
        }
    };
    // SAFETY: `message` is NULL or may be written, and `status` may be ignored or written; the contract of this function says so.
    unsafe {
        store(message, handle, "message")?;
        store_status(status, &found);
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
    let tag = any_tag(&comm, tag, "tag")?;
    not_null(message, "message")?;
    state().messages.borrow_mut().room()?;
    let engine = comm.engine();
    let (matched, found) = engine.drive(&WaitingCall::new("MPI_Mprobe"), || {
        self::found(&comm, tag, |comm| comm.improbe(from, tag))
    })?;
    // SAFETY: `keep` needs valid pointers, which the program passes as MPI requires.
    unsafe { keep(&comm, matched, found, message, status) }
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
    let tag = any_tag(&comm, tag, "tag")?;
    not_null(message, "message")?;
    state().messages.borrow_mut().room()?;
    not_null(flag, "flag")?;
    let found = lanes::on(&comm, tag, |comm| comm.improbe(from, tag));
    // SAFETY: `flag` and `message` are not NULL, and `status` may be ignored or written, as MPI requires of the program.
    unsafe {
        flag.write(c_int::from(found.is_some()));
        match found {
            Some((matched, found)) => keep(&comm, matched, found, message, status)?,
            None => idle_test(true),
        }
    }
    Ok(())
}

/// Removes and returns the matched message of a handle. Sets the handle to `MPI_MESSAGE_NULL`.
///
/// # Safety
/// `message` is NULL or may be read and written.
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
    flags: weft_process::StatusFlags::NONE,
};

/// MPI_Mrecv, MPI_Mrecv_c, MPI_Imrecv, MPI_Imrecv_c.
impl Mrecv {
    /// # Safety
    /// The handle `message` is NULL or may be read and written; `status` is MPI_STATUS_IGNORE or may be written.
    pub(crate) unsafe fn blocking(self, status: *mut MpiStatus) -> Result<(), Error> {
        let into = self.buf.buffer()?;
        // SAFETY: `take_message` and `received` need `message` and `status` as the contract of this function describes them.
        unsafe {
            let ended = match take_message(self.message)? {
                None => Ok(NO_PROC),
                Some(MessageObject { matched, comm }) => {
                    let active =
                        lanes::start(&comm, Some(matched.tag), |comm| comm.imrecv(matched, &into));
                    let ended = comm.finish(&WaitingCall::new(Self::NAME), active);
                    return received(status, ended).map_err(|error| error.on(Owner::Object(comm)));
                }
            };
            received(status, ended)
        }
    }

    /// # Safety
    /// The handle `message` is NULL or may be read and written; `request` is NULL or may be written.
    pub(crate) unsafe fn nonblocking(self, request: *mut Request) -> Result<(), Error> {
        room_for_request(request)?;
        let into = self.buf.buffer()?;
        // SAFETY: `take_message` needs a `message` that is NULL or may be read and written; the contract of this function says so.
        let (comm, active) = match unsafe { take_message(self.message) }? {
            None => (crate::arguments::comm(MPI_COMM_SELF)?, Active::Done(NO_PROC)),
            Some(MessageObject { matched, comm }) => {
                let active =
                    lanes::start(&comm, Some(matched.tag), |comm| comm.imrecv(matched, &into));
                (comm, active)
            }
        };
        // SAFETY: `start` needs a `request` that is NULL or may be written; the contract of this function says so.
        unsafe { start(request, &comm, active, RequestOrigin::Receive) }
    }
}
