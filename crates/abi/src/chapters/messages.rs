//! Point-to-point messages (MPI 5.0, chapter 3): blocking, nonblocking, persistent, probes.

use crate::arguments::{
    BUF, RECVBUF, SENDBUF, any_tag, buffer, comm, destination, fixed_comm, lent_comm, origin,
    plain, room_for_request, store, store_status, tag, tag as tag_of,
};
use crate::constants::*;
use crate::error::Error;
use crate::node::CommObject;
use crate::objects::{Belongs, Recipe, RequestKind, RequestObject, SENT};
use crate::state::state;
use crate::status::Status;
use crate::types::{Comm, Datatype, Request};
use crate::waiting::Call;
use std::cell::Cell;
use std::ffi::{c_int, c_void};
use std::rc::Rc;
use weft_fabric::Staging;
use weft_p2p::Mode;
use weft_process::{Active, Buffer, Destination, External, Outcome, Task};

pub mod at_once;

/// What all sends check: communicator, receiver, buffer, tag.
///
/// # Safety
/// As for [`buffer`].
#[inline(always)]
unsafe fn sending(
    buf: *const c_void,
    count: i64,
    datatype: Datatype,
    dest: c_int,
    tag_: c_int,
    handle: Comm,
) -> Result<(Rc<CommObject>, Buffer, Destination, i32), Error> {
    let comm = comm(handle)?;
    let to = destination(&comm, dest, "dest")?;
    let tag = tag(tag_, "tag")?;
    // SAFETY: by contract.
    let data = unsafe { buffer(buf, count, datatype, BUF) }?;
    Ok((comm, data, to, tag))
}

/// Makes a request of an operation under way.
///
/// # Safety
/// `to` is NULL or may be written.
#[inline(always)]
pub unsafe fn start(
    to: *mut Request,
    comm: &Rc<CommObject>,
    active: Active,
    kind: RequestKind,
) -> Result<(), Error> {
    // SAFETY: by contract.
    unsafe { start_for(to, comm, Belongs::Comm(comm.clone()), active, kind) }
}

/// The same for an operation whose errors may belong to something else: a window.
///
/// # Safety
/// `to` is NULL or may be written.
#[inline(always)]
pub unsafe fn start_for(
    to: *mut Request,
    comm: &CommObject,
    belongs: Belongs,
    active: Active,
    kind: RequestKind,
) -> Result<(), Error> {
    comm.engine().note_nonblocking(&active);
    let object = RequestObject { active: Some(active), recipe: None, belongs, kind };
    let handle = state().requests.borrow_mut().insert(object);
    // SAFETY: by contract.
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
    kind: RequestKind,
) -> Result<(), Error> {
    // SAFETY: by contract.
    unsafe { inactive(to, comm, Rc::new(recipe), kind) }
}

/// The same for an operation that is more than how to start it.
///
/// # Safety
/// `to` is NULL or may be written.
pub unsafe fn inactive(
    to: *mut Request,
    comm: &Rc<CommObject>,
    recipe: Recipe,
    kind: RequestKind,
) -> Result<(), Error> {
    let belongs = Belongs::Comm(comm.clone());
    let object = RequestObject { active: None, recipe: Some(recipe), belongs, kind };
    let handle = state().requests.borrow_mut().insert(object);
    // SAFETY: by contract.
    unsafe { store(to, Request(handle), "request") }
}

/// Defines blocking, nonblocking and persistent send of one mode.
macro_rules! sends {
    ($name:literal, $mode:expr, $send:ident, $isend:ident, $init:ident) => {
        pub(crate) unsafe fn $send(
            buf: *const c_void,
            count: i64,
            datatype: Datatype,
            dest: c_int,
            tag: c_int,
            comm: Comm,
        ) -> Result<(), Error> {
            // The short way: a predefined communicator and type.
            // SAFETY: the caller's buffer stays until this returns.
            let plain = unsafe { plain(buf, count, datatype) };
            if let (Some(comm), Some(data)) = (fixed_comm(comm), plain) {
                let to = destination(comm, dest, "dest")?;
                let tag = tag_of(tag, "tag")?;
                return Ok(comm.send_run(&Call::new($name), data, to, tag, $mode)?);
            }
            // SAFETY: as above.
            let (comm, data, to, tag) = unsafe { sending(buf, count, datatype, dest, tag, comm) }?;
            Ok(comm.send(&Call::new($name), &data, to, tag, $mode)?)
        }

        pub(crate) unsafe fn $isend(
            buf: *const c_void,
            count: i64,
            datatype: Datatype,
            dest: c_int,
            tag: c_int,
            comm: Comm,
            request: *mut Request,
        ) -> Result<(), Error> {
            room_for_request(request)?;
            // SAFETY: the caller's buffer stays until the request is over.
            unsafe {
                // The short way: a predefined type.
                if let Some(data) = plain(buf, count, datatype)
                    && let found = lent_comm(comm)?
                    && let Destination::Rank(to) = destination(&found, dest, "dest")?
                {
                    let tag = tag_of(tag, "tag")?;
                    return match found.isend_run(data, to, tag, $mode) {
                        None => {
                            request.write(SENT);
                            Ok(())
                        }
                        Some(id) => {
                            let active = Active::Send { id, _piece: None };
                            start(request, &found, active, RequestKind::Send)
                        }
                    };
                }
                let (comm, data, to, tag) = sending(buf, count, datatype, dest, tag, comm)?;
                let active = comm.isend(&data, to, tag, $mode);
                start(request, &comm, active, RequestKind::Send)
            }
        }

        pub(crate) unsafe fn $init(
            buf: *const c_void,
            count: i64,
            datatype: Datatype,
            dest: c_int,
            tag: c_int,
            comm: Comm,
            request: *mut Request,
        ) -> Result<(), Error> {
            room_for_request(request)?;
            // SAFETY: the caller's buffer stays while the request is active.
            unsafe {
                let (comm, data, to, tag) = sending(buf, count, datatype, dest, tag, comm)?;
                let again = comm.clone();
                let recipe = move || Ok(again.isend(&data, to, tag, $mode));
                persist(request, &comm, recipe, RequestKind::Send)
            }
        }
    };
}

sends!("MPI_Send", Mode::Standard, send, isend, send_init);
sends!("MPI_Ssend", Mode::Synchronous, ssend, issend, ssend_init);
sends!("MPI_Rsend", Mode::Standard, rsend, irsend, rsend_init);

pub(crate) unsafe fn recv(
    buf: *mut c_void,
    count: i64,
    datatype: Datatype,
    source: c_int,
    tag: c_int,
    handle: Comm,
    status: *mut Status,
) -> Result<(), Error> {
    // The short way: a predefined communicator and type.
    // SAFETY: the caller's buffer and status.
    let plain = unsafe { plain(buf, count, datatype) };
    if let (Some(comm), Some(into)) = (fixed_comm(handle), plain) {
        let from = origin(comm, source, "source")?;
        let tag = any_tag(tag, "tag")?;
        let ended = comm.recv_run(&Call::new("MPI_Recv"), into, from, tag);
        // SAFETY: the caller's status.
        return unsafe { received(status, ended) };
    }
    let comm = comm(handle)?;
    let from = origin(&comm, source, "source")?;
    let tag = any_tag(tag, "tag")?;
    // SAFETY: the caller's buffer and status.
    unsafe {
        let into = buffer(buf, count, datatype, BUF)?;
        received(status, comm.recv(&Call::new("MPI_Recv"), &into, from, tag))
    }
}

/// Fills the status of a receive that is over: of one that failed too, if it got a message.
///
/// # Safety
/// `to` is `MPI_STATUS_IGNORE` or may be written.
#[inline(always)]
pub unsafe fn received(
    to: *mut Status,
    ended: Result<weft_process::Status, weft_process::Error>,
) -> Result<(), Error> {
    match &ended {
        // SAFETY: by contract.
        Ok(status) => unsafe { store_status(to, status) },
        Err(error) => {
            if let Some(status) = error.status() {
                // SAFETY: by contract.
                unsafe { store_status(to, status) }
            }
        }
    }
    ended.map(|_| ()).map_err(Error::from)
}

pub(crate) unsafe fn irecv(
    buf: *mut c_void,
    count: i64,
    datatype: Datatype,
    source: c_int,
    tag: c_int,
    handle: Comm,
    request: *mut Request,
) -> Result<(), Error> {
    let comm = lent_comm(handle)?;
    let from = origin(&comm, source, "source")?;
    let tag = any_tag(tag, "tag")?;
    room_for_request(request)?;
    // SAFETY: the caller's buffer stays until the request is over.
    unsafe {
        // The short way: a predefined type.
        if let Some(into) = plain(buf, count, datatype)
            && let Some(id) = comm.irecv_run(into, from, tag)
        {
            let active = Active::Receive { id, unpack: None };
            return start(request, &comm, active, RequestKind::Receive);
        }
        let into = buffer(buf, count, datatype, BUF)?;
        start(request, &comm, comm.irecv(&into, from, tag), RequestKind::Receive)
    }
}

pub(crate) unsafe fn recv_init(
    buf: *mut c_void,
    count: i64,
    datatype: Datatype,
    source: c_int,
    tag: c_int,
    handle: Comm,
    request: *mut Request,
) -> Result<(), Error> {
    let comm = comm(handle)?;
    let from = origin(&comm, source, "source")?;
    let tag = any_tag(tag, "tag")?;
    room_for_request(request)?;
    // SAFETY: the caller's buffer stays while the request is active.
    unsafe {
        let into = buffer(buf, count, datatype, BUF)?;
        let again = comm.clone();
        persist(request, &comm, move || Ok(again.irecv(&into, from, tag)), RequestKind::Receive)
    }
}

pub(crate) unsafe fn sendrecv(
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: Datatype,
    dest: c_int,
    sendtag: c_int,
    recvbuf: *mut c_void,
    recvcount: i64,
    recvtype: Datatype,
    source: c_int,
    recvtag: c_int,
    handle: Comm,
    status: *mut Status,
) -> Result<(), Error> {
    let comm = comm(handle)?;
    let to = destination(&comm, dest, "dest")?;
    let from = origin(&comm, source, "source")?;
    let send_tag = tag(sendtag, "sendtag")?;
    let recv_tag = any_tag(recvtag, "recvtag")?;
    let call = Call::new("MPI_Sendrecv");
    // SAFETY: the caller's buffers stay until this returns.
    unsafe {
        let out = buffer(sendbuf, sendcount, sendtype, SENDBUF)?;
        let into = buffer(recvbuf, recvcount, recvtype, RECVBUF)?;
        let receive = comm.irecv(&into, from, recv_tag);
        comm.send(&call, &out, to, send_tag, Mode::Standard)?;
        received(status, comm.finish(&call, receive))
    }
}

pub(crate) unsafe fn sendrecv_replace(
    buf: *mut c_void,
    count: i64,
    datatype: Datatype,
    dest: c_int,
    sendtag: c_int,
    source: c_int,
    recvtag: c_int,
    handle: Comm,
    status: *mut Status,
) -> Result<(), Error> {
    let comm = comm(handle)?;
    let to = destination(&comm, dest, "dest")?;
    let from = origin(&comm, source, "source")?;
    let send_tag = tag(sendtag, "sendtag")?;
    let recv_tag = any_tag(recvtag, "recvtag")?;
    let call = Call::new("MPI_Sendrecv_replace");
    // SAFETY: the caller's buffer stays until this returns; the copy outlives its send.
    unsafe {
        let data = buffer(buf, count, datatype, BUF)?;
        let (_memory, copy) = copied(&comm, &data)?;
        let send = comm.isend(&copy, to, send_tag, Mode::Standard);
        let receive = comm.irecv(&data, from, recv_tag);
        let ended = comm.finish(&call, receive);
        comm.finish(&call, send)?;
        received(status, ended)
    }
}

/// A packed copy of the data, as a buffer of bytes in memory that must outlive its use.
fn copied(comm: &CommObject, data: &Buffer) -> Result<(Staging, Buffer), Error> {
    let memory = comm.engine().endpoint().staging().take(data.len());
    data.pack_to(memory.sge());
    let bytes = crate::arguments::datatype(MPI_BYTE)?;
    // SAFETY: the caller keeps the memory for as long as the buffer is used.
    let copy = unsafe { Buffer::new(memory.sge().ptr(), data.len(), bytes.ty.clone()) };
    Ok((memory, copy))
}

/// A nonblocking send and receive as one operation, whose status is the receive's.
struct Exchange {
    task: Task,
    status: Rc<Cell<weft_p2p::Status>>,
}

impl External for Exchange {
    fn poll(&self) -> Option<Outcome> {
        let ended = self.peek()?;
        Some(Outcome { error: self.task.result().and_then(Result::err), ..ended })
    }

    fn is_over(&self) -> bool {
        self.task.is_over()
    }

    fn peek(&self) -> Option<Outcome> {
        self.is_over().then(|| Outcome::of(self.status.get()))
    }

    /// Half of it may be over: it goes on, as a cancelled operation may.
    fn cancel(&self) -> Result<(), weft_process::Error> {
        Ok(())
    }

    fn release(&self) -> Result<(), weft_process::Error> {
        Ok(())
    }
}

/// Both as one, which owns `memory`.
fn both(
    comm: &Rc<CommObject>,
    mut send: Active,
    mut receive: Active,
    memory: Option<Staging>,
) -> Active {
    let engine = comm.engine().clone();
    let endpoint = engine.endpoint().clone();
    let received = Rc::new(Cell::new(weft_p2p::Status::default()));
    let status = received.clone();
    let task = engine.spawn(async move {
        let _kept_until_sent = memory;
        // Both go on, whichever is waited for.
        let sent = send.over(&endpoint).await;
        let outcome = receive.over(&endpoint).await;
        received.set(outcome.status);
        outcome.error.or(sent.error).map_or(Ok(()), Err)
    });
    Active::External(Rc::new(Exchange { task, status }))
}

pub(crate) unsafe fn isendrecv(
    sendbuf: *const c_void,
    sendcount: i64,
    sendtype: Datatype,
    dest: c_int,
    sendtag: c_int,
    recvbuf: *mut c_void,
    recvcount: i64,
    recvtype: Datatype,
    source: c_int,
    recvtag: c_int,
    handle: Comm,
    request: *mut Request,
) -> Result<(), Error> {
    let comm = comm(handle)?;
    let to = destination(&comm, dest, "dest")?;
    let from = origin(&comm, source, "source")?;
    let send_tag = tag(sendtag, "sendtag")?;
    let recv_tag = any_tag(recvtag, "recvtag")?;
    room_for_request(request)?;
    // SAFETY: the caller's buffers stay until the request is over.
    unsafe {
        let out = buffer(sendbuf, sendcount, sendtype, SENDBUF)?;
        let into = buffer(recvbuf, recvcount, recvtype, RECVBUF)?;
        let receive = comm.irecv(&into, from, recv_tag);
        let send = comm.isend(&out, to, send_tag, Mode::Standard);
        start(request, &comm, both(&comm, send, receive, None), RequestKind::Receive)
    }
}

pub(crate) unsafe fn isendrecv_replace(
    buf: *mut c_void,
    count: i64,
    datatype: Datatype,
    dest: c_int,
    sendtag: c_int,
    source: c_int,
    recvtag: c_int,
    handle: Comm,
    request: *mut Request,
) -> Result<(), Error> {
    let comm = comm(handle)?;
    let to = destination(&comm, dest, "dest")?;
    let from = origin(&comm, source, "source")?;
    let send_tag = tag(sendtag, "sendtag")?;
    let recv_tag = any_tag(recvtag, "recvtag")?;
    room_for_request(request)?;
    // SAFETY: the caller's buffer stays until the request is over; the operation owns the copy.
    unsafe {
        let data = buffer(buf, count, datatype, BUF)?;
        let (memory, copy) = copied(&comm, &data)?;
        let send = comm.isend(&copy, to, send_tag, Mode::Standard);
        let receive = comm.irecv(&data, from, recv_tag);
        start(request, &comm, both(&comm, send, receive, Some(memory)), RequestKind::Receive)
    }
}
