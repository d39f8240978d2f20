//! Point-to-point messages (MPI 5.0, chapter 3): blocking, nonblocking, persistent.

pub(crate) mod exchange;
mod fast_path;

use crate::arguments::{
    comm, destination, fixed_comm, lent_comm, origin, received, room_for_request, tag,
};
use crate::calls::{Recv, Rsend, Send, Ssend};
use crate::elements::{Arguments, Elements};
use crate::engine::CommObject;
use crate::error::Error;
use crate::lanes::{self, LaneTransfer};
use crate::objects::{RequestOrigin, SENT};
use crate::requests::{persist, start};
use crate::signature_marks;
use crate::status::MpiStatus;
use crate::tag_to_receive::any_tag;
use crate::types::{Comm, Request};
use crate::waiting::WaitingCall;
use std::ffi::c_int;
use std::rc::Rc;
use weft_p2p::SendMode;
use weft_process::{Active, Buffer, Destination, Origin};

/// Arguments that every send has.
#[derive(Clone, Copy)]
pub(crate) struct Sent {
    /// Data to send.
    pub buf: Elements,
    /// Rank of the receiver, or MPI_PROC_NULL.
    pub dest: c_int,
    /// Tag, at least 0.
    pub tag: c_int,
    /// Communicator that gives the ranks and the matching space.
    pub comm: Comm,
}

impl Sent {
    /// Checks the arguments that every send has: communicator, receiver, buffer, tag.
    #[inline(always)]
    pub fn checked(self) -> Result<(Rc<CommObject>, Buffer, Destination, i32), Error> {
        let comm = comm(self.comm)?;
        let to = destination(&comm, self.dest, "dest")?;
        let tag = tag(self.tag, "tag")?;
        Ok((comm, self.buf.buffer()?, to, tag))
    }
}

/// A send of one mode, in its three forms: blocking, nonblocking, persistent.
pub(crate) trait Sends: Arguments {
    const MODE: SendMode;

    fn given(self) -> Sent;

    #[inline(always)]
    fn blocking(self) -> Result<(), Error> {
        let given = self.given();
        // If communicator and datatype are predefined, the send takes this shorter path.
        let plain = given.buf.plain();
        if let (Some(comm), Some(data)) = (fixed_comm(given.comm), plain) {
            let to = destination(comm, given.dest, "dest")?;
            let tag = tag(given.tag, "tag")?;
            return Ok(comm.send_run(&WaitingCall::new(Self::NAME), data, to, tag, Self::MODE)?);
        }
        let (comm, data, to, tag) = given.checked()?;
        let mark = signature_marks::take();
        let active =
            lanes::start(&comm, Some(tag), |comm| mark.isend(comm, &data, to, tag, Self::MODE));
        comm.finish(&WaitingCall::new(Self::NAME), active)?;
        Ok(())
    }

    /// # Safety
    /// `request` is NULL or may be written.
    #[inline(always)]
    unsafe fn nonblocking(self, request: *mut Request) -> Result<(), Error> {
        room_for_request(request)?;
        let given = self.given();
        // If the datatype is predefined, the send takes this shorter path.
        if let Some(data) = given.buf.plain()
            && let found = lent_comm(given.comm)?
            && !lanes::is_carried(&found)
            && let Destination::Rank(to) = destination(&found, given.dest, "dest")?
        {
            let tag = tag(given.tag, "tag")?;
            let sent = found.isend_run(data, to, tag, Self::MODE);
            // SAFETY: `request` is not NULL (`room_for_request` checked it), so it may be written, as the contract of this
            // function says.
            return unsafe {
                match sent {
                    None => {
                        request.write(SENT);
                        Ok(())
                    }
                    Some(id) => {
                        let active = Active::Send { id, _piece: None };
                        start(request, &found, active, RequestOrigin::Send)
                    }
                }
            };
        }
        let (comm, data, to, tag) = given.checked()?;
        let mark = signature_marks::take();
        let active =
            lanes::start(&comm, Some(tag), |comm| mark.isend(comm, &data, to, tag, Self::MODE));
        // SAFETY: `start` needs a `request` that is NULL or may be written; the contract of this function says so.
        unsafe { start(request, &comm, active, RequestOrigin::Send) }
    }

    /// # Safety
    /// `request` is NULL or may be written.
    unsafe fn persistent(self, request: *mut Request) -> Result<(), Error> {
        room_for_request(request)?;
        let given = self.given();
        let (comm, data, to, tag) = given.checked()?;
        let transfer = match (given.buf.plain(), to) {
            (Some(data), Destination::Rank(to)) => {
                Some(LaneTransfer::Send { data, to, tag, mode: Self::MODE })
            }
            _ => None,
        };
        if let Some(made) = transfer.and_then(|transfer| lanes::persist(&comm, transfer)) {
            // SAFETY: `request` is not NULL (`room_for_request` checked it), so it may be written, as the contract of this function says.
            unsafe { request.write(made) };
            return Ok(());
        }
        let (again, mark) = (comm.clone(), signature_marks::take());
        let recipe = move || {
            Ok(lanes::start(&again, Some(tag), |comm| mark.isend(comm, &data, to, tag, Self::MODE)))
        };
        // SAFETY: `persist` needs a `request` that is NULL or may be written; the contract of this function says so.
        unsafe { persist(request, &comm, recipe, RequestOrigin::Send) }
    }
}

macro_rules! sends {
    ($(#[$names:meta])* $forms:ident for $name:ident in $mode:ident) => {
        $(#[$names])*
        impl $forms for $name {
            const MODE: SendMode = SendMode::$mode;

            #[inline(always)]
            fn given(self) -> Sent {
                Sent { buf: self.buf, dest: self.dest, tag: self.tag, comm: self.comm }
            }
        }
    };
}

sends! {
    /// MPI_Send, MPI_Send_c, MPI_Isend, MPI_Isend_c, MPI_Send_init, MPI_Send_init_c.
    Sends for Send in Standard
}
sends! {
    /// MPI_Ssend, MPI_Ssend_c, MPI_Issend, MPI_Issend_c, MPI_Ssend_init, MPI_Ssend_init_c.
    Sends for Ssend in Synchronous
}
sends! {
    /// MPI_Rsend, MPI_Rsend_c, MPI_Irsend, MPI_Irsend_c, MPI_Rsend_init, MPI_Rsend_init_c.
    Sends for Rsend in Standard
}

/// MPI_Recv, MPI_Recv_c, MPI_Irecv, MPI_Irecv_c, MPI_Recv_init, MPI_Recv_init_c.
impl Recv {
    /// Checks and returns sender and tag.
    #[inline(always)]
    fn from(self, comm: &CommObject) -> Result<(Origin, Option<i32>), Error> {
        Ok((origin(comm, self.source, "source")?, any_tag(comm, self.tag, "tag")?))
    }

    /// # Safety
    /// `status` is `MPI_STATUS_IGNORE` or may be written.
    #[inline(always)]
    pub(crate) unsafe fn blocking(self, status: *mut MpiStatus) -> Result<(), Error> {
        // If communicator and datatype are predefined, the receive takes this shorter path.
        let plain = self.buf.plain();
        if let (Some(comm), Some(into)) = (fixed_comm(self.comm), plain) {
            let from = origin(comm, self.source, "source")?;
            let tag = any_tag(comm, self.tag, "tag")?;
            let ended = comm.recv_run(&WaitingCall::new(Self::NAME), into, from, tag);
            // SAFETY: `received` needs a `status` that is MPI_STATUS_IGNORE or may be written (contract of this function).
            return unsafe { received(status, ended) };
        }
        let comm = comm(self.comm)?;
        let (from, tag) = self.from(&comm)?;
        let (into, call) = (self.buf.buffer()?, WaitingCall::new(Self::NAME));
        let ended = match lanes::is_carried(&comm) {
            false => comm.recv(&call, &into, from, tag),
            true => {
                comm.finish(&call, lanes::start(&comm, tag, |comm| comm.irecv(&into, from, tag)))
            }
        };
        // SAFETY: `received` needs a `status` that is MPI_STATUS_IGNORE or may be written; the contract of this function says so.
        unsafe { received(status, ended) }
    }

    /// # Safety
    /// `request` is NULL or may be written.
    #[inline(always)]
    pub(crate) unsafe fn nonblocking(self, request: *mut Request) -> Result<(), Error> {
        let comm = lent_comm(self.comm)?;
        let (from, tag) = self.from(&comm)?;
        room_for_request(request)?;
        // If the datatype is predefined, the receive takes this shorter path.
        let plain = self.buf.plain().filter(|_| !lanes::is_carried(&comm));
        let active = match plain.and_then(|into| comm.irecv_run(into, from, tag)) {
            Some(id) => Active::Receive { id, unpack: None },
            None => {
                let into = self.buf.buffer()?;
                lanes::start(&comm, tag, |comm| comm.irecv(&into, from, tag))
            }
        };
        // SAFETY: `start` needs a `request` that is NULL or may be written; the contract of this function says so.
        unsafe { start(request, &comm, active, RequestOrigin::Receive) }
    }

    /// # Safety
    /// `request` is NULL or may be written.
    pub(crate) unsafe fn persistent(self, request: *mut Request) -> Result<(), Error> {
        let comm = comm(self.comm)?;
        let (from, tag) = self.from(&comm)?;
        room_for_request(request)?;
        if let Some(into) = self.buf.plain().filter(|_| !matches!(from, Origin::Nobody))
            && let Some(made) = lanes::persist(&comm, LaneTransfer::Receive { into, from, tag })
        {
            // SAFETY: `request` is not NULL (`room_for_request` checked it), so it may be written, as the contract of this function says.
            unsafe { request.write(made) };
            return Ok(());
        }
        let (into, again) = (self.buf.buffer()?, comm.clone());
        let recipe = move || Ok(lanes::start(&again, tag, |comm| comm.irecv(&into, from, tag)));
        // SAFETY: `persist` needs a `request` that is NULL or may be written; the contract of this function says so.
        unsafe { persist(request, &comm, recipe, RequestOrigin::Receive) }
    }
}
