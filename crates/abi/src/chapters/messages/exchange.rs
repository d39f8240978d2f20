//! A send and a receive in one call (MPI 5.0, section 3.10).

mod lane_exchange;

use crate::arguments::{comm, destination, origin, received, room_for_request, tag};
use crate::calls::{Sendrecv, SendrecvReplace};
use crate::constants::*;
use crate::elements::Arguments;
use crate::engine::CommObject;
use crate::error::Error;
use crate::lanes;
use crate::objects::RequestOrigin;
use crate::requests::start;
use crate::signature_marks;
use crate::status::MpiStatus;
use crate::tag_to_receive::any_tag;
use crate::types::{Comm, Request};
use crate::waiting::WaitingCall;
use lane_exchange::LaneExchange;
use std::cell::Cell;
use std::ffi::c_int;
use std::rc::Rc;
use weft_fabric::Staging;
use weft_p2p::SendMode;
use weft_process::{
    Active, Buffer, Destination, External, NonblockingTask, OperationOutcome, Origin,
};

/// Buffer to send, buffer to receive into, and memory that must stay until the send is complete.
type Buffers = (Buffer, Buffer, Option<Staging>);

pub(crate) trait Exchanges: Arguments {
    /// Returns receiver and tag, sender and tag, communicator.
    fn peers(&self) -> ((c_int, c_int), (c_int, c_int), Comm);

    fn buffers(self, comm: &CommObject) -> Result<Buffers, Error>;

    /// # Safety
    /// `status` is `MPI_STATUS_IGNORE` or may be written.
    unsafe fn blocking(self, status: *mut MpiStatus) -> Result<(), Error> {
        let Peers { comm, to, from } = Peers::of(&self)?;
        let (out, into, _memory) = self.buffers(&comm)?;
        let call = WaitingCall::new(Self::NAME);
        let receive = lanes::start(&comm, from.1, |comm| comm.irecv(&into, from.0, from.1));
        let mark = signature_marks::take();
        let send = lanes::start(&comm, Some(to.1), |comm| {
            mark.isend(comm, &out, to.0, to.1, SendMode::Standard)
        });
        comm.finish(&call, send)?;
        // SAFETY: `received` needs a `status` that is MPI_STATUS_IGNORE or may be written; the contract of this function says so.
        unsafe { received(status, comm.finish(&call, receive)) }
    }

    /// # Safety
    /// `request` is NULL or may be written.
    unsafe fn nonblocking(self, request: *mut Request) -> Result<(), Error> {
        let Peers { comm, to, from } = Peers::of(&self)?;
        room_for_request(request)?;
        let (out, into, memory) = self.buffers(&comm)?;
        let receive = lanes::start(&comm, from.1, |comm| comm.irecv(&into, from.0, from.1));
        let mark = signature_marks::take();
        let send = lanes::start(&comm, Some(to.1), |comm| {
            mark.isend(comm, &out, to.0, to.1, SendMode::Standard)
        });
        // SAFETY: `start` needs a `request` that is NULL or may be written; the contract of this function says so.
        unsafe { start(request, &comm, both(&comm, send, receive, memory), RequestOrigin::Receive) }
    }
}

/// Checked arguments: the communicator, and both peers with their tags.
struct Peers {
    comm: Rc<CommObject>,
    to: (Destination, i32),
    from: (Origin, Option<i32>),
}

impl Peers {
    fn of(given: &impl Exchanges) -> Result<Peers, Error> {
        let ((dest, sendtag), (source, recvtag), handle) = given.peers();
        let comm = comm(handle)?;
        let to = destination(&comm, dest, "dest")?;
        let from = origin(&comm, source, "source")?;
        let (sent, received) = (tag(sendtag, "sendtag")?, any_tag(&comm, recvtag, "recvtag")?);
        Ok(Peers { comm, to: (to, sent), from: (from, received) })
    }
}

/// MPI_Sendrecv, MPI_Sendrecv_c, MPI_Isendrecv, MPI_Isendrecv_c.
impl Exchanges for Sendrecv {
    fn peers(&self) -> ((c_int, c_int), (c_int, c_int), Comm) {
        ((self.dest, self.sendtag), (self.source, self.recvtag), self.comm)
    }

    fn buffers(self, _: &CommObject) -> Result<Buffers, Error> {
        Ok((self.sendbuf.buffer()?, self.recvbuf.buffer()?, None))
    }
}

/// MPI_Sendrecv_replace, MPI_Sendrecv_replace_c, MPI_Isendrecv_replace, MPI_Isendrecv_replace_c.
impl Exchanges for SendrecvReplace {
    fn peers(&self) -> ((c_int, c_int), (c_int, c_int), Comm) {
        ((self.dest, self.sendtag), (self.source, self.recvtag), self.comm)
    }

    fn buffers(self, comm: &CommObject) -> Result<Buffers, Error> {
        let data = self.buf.buffer()?;
        let (memory, copy) = copied(comm, &data)?;
        Ok((copy, data, Some(memory)))
    }
}

/// Returns a packed copy of the data, as a buffer of bytes. The memory that is returned with the buffer must outlive the
/// buffer's use.
fn copied(comm: &CommObject, data: &Buffer) -> Result<(Staging, Buffer), Error> {
    let memory = comm.engine().endpoint().staging().take(data.len());
    data.pack_to(memory.sge());
    let bytes = crate::arguments::datatype(MPI_BYTE)?;
    // SAFETY: the caller keeps `memory`, which has `data.len()` bytes, for as long as the buffer is used.
    let copy = unsafe { Buffer::new(memory.sge().ptr(), data.len(), bytes.ty.clone()) };
    Ok((memory, copy))
}

/// A nonblocking send and receive as one operation. Its status is the status of the receive.
struct MessageExchange {
    task: NonblockingTask,
    status: Rc<Cell<weft_p2p::Status>>,
}

impl External for MessageExchange {
    fn poll(&self) -> Option<OperationOutcome> {
        let ended = self.peek()?;
        Some(OperationOutcome { error: self.task.result().and_then(Result::err), ..ended })
    }

    fn is_over(&self) -> bool {
        self.task.is_over()
    }

    fn peek(&self) -> Option<OperationOutcome> {
        self.is_over().then(|| OperationOutcome::of(self.status.get()))
    }

    /// Does nothing, because half of the operation may be complete. MPI allows that a cancelled operation completes normally.
    fn cancel(&self) -> Result<(), weft_process::Error> {
        Ok(())
    }

    fn release(&self) -> Result<(), weft_process::Error> {
        Ok(())
    }
}

/// Combines the send and the receive into one operation, which owns `memory`.
fn both(
    comm: &Rc<CommObject>,
    mut send: Active,
    mut receive: Active,
    memory: Option<Staging>,
) -> Active {
    if lanes::is_carried(comm) {
        return LaneExchange::start(comm, send, receive, memory);
    }
    let engine = comm.engine().clone();
    let endpoint = engine.endpoint().clone();
    let received = Rc::new(Cell::new(weft_p2p::Status::default()));
    let status = received.clone();
    let task = engine.spawn(async move {
        let _kept_until_sent = memory;
        // The engine progresses both operations, so this task can wait for them one after the other.
        let sent = send.over(&endpoint).await;
        let outcome = receive.over(&endpoint).await;
        received.set(outcome.status);
        outcome.error.or(sent.error).map_or(Ok(()), Err)
    });
    Active::External(Rc::new(MessageExchange { task, status }))
}
