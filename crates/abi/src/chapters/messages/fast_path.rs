//! Fast path of nonblocking messages. It examines each argument only once, and returns no errors.

use crate::calls::{Recv, Send};
use crate::constants::MPI_COMM_WORLD;
use crate::elements::Elements;
use crate::error::Error;
use crate::lane_calls::{self, LaneCall, LaneMessage};
use crate::objects::{Belongs, RequestObject, RequestOrigin, SENT};
use crate::state::{ProcessPhase, known};
use crate::status::MpiStatus;
use crate::table::lane_of;
use crate::types::{Comm, Request};
use std::ffi::c_int;
use weft_p2p::SendMode;
use weft_process::{Active, Origin};

/// Sends or receives a nonblocking message with common arguments: a live communicator (MPI_COMM_WORLD or a handle in the table), a
/// predefined type without gaps, a rank as peer, a tag, and a pointer to a request. Returns true if the operation was started. With
/// any other arguments, does nothing and returns false. The slow path then checks the arguments and reports errors.
///
/// # Safety
/// `request` is NULL or may be written.
#[inline(always)]
unsafe fn fast_path<const SENDS: bool>(
    given: Elements,
    peer: c_int,
    tag: c_int,
    handle: Comm,
    request: *mut Request,
) -> bool {
    let Some(state) = known() else { return false };
    let Some(data) = given.plain_of(state) else { return false };
    let comms;
    let comm = if handle == MPI_COMM_WORLD {
        // MPI_COMM_WORLD ends in MPI_Finalize, even if sessions continue.
        let there = state.world_phase.get() == ProcessPhase::Running;
        state.world.get().filter(|_| there)
    } else {
        comms = state.comms.borrow();
        let there = state.phase.get() == ProcessPhase::Running;
        comms.get(handle.0).filter(|_| there)
    };
    let Some(comm) = comm else { return false };
    let mut requests = state.requests.borrow_mut();
    let peer = peer as u32 as usize;
    if peer >= comm.peers().size() || tag < 0 || request.is_null() || !requests.has_room() {
        return false;
    }
    let id = match SENDS {
        true => comm.isend_run(data, peer, tag, SendMode::Standard),
        false => comm.irecv_run(data, Origin::Rank(peer), Some(tag)),
    };
    let handle = match id {
        None => SENT,
        Some(id) => {
            let (active, kind) = match SENDS {
                true => (Active::Send { id, _piece: None }, RequestOrigin::Send),
                false => (Active::Receive { id, unpack: None }, RequestOrigin::Receive),
            };
            comm.engine().note_nonblocking(&active);
            let belongs = Belongs::Comm(comm.clone());
            Request(requests.insert(RequestObject::new(active, belongs, kind)))
        }
    };
    // SAFETY: `request` is not NULL, so it points to room for the result, as MPI requires of the program.
    unsafe { request.write(handle) };
    true
}

/// MPI_Isend, MPI_Isend_c, MPI_Send, MPI_Send_c.
impl Send {
    /// # Safety
    /// `request` is NULL or may be written.
    #[inline(always)]
    pub(crate) unsafe fn try_nonblocking(self, request: *mut Request) -> bool {
        // SAFETY: `fast_path` needs a `request` that is NULL or may be written; the contract of this function says so.
        unsafe { fast_path::<true>(self.buf, self.dest, self.tag, self.comm, request) }
    }

    #[inline(always)]
    fn in_lane(self) -> LaneMessage {
        LaneMessage { buf: self.buf, peer: self.dest, tag: self.tag, comm: self.comm }
    }

    #[inline(always)]
    pub(crate) unsafe fn lane_blocking(self) -> Result<LaneCall, Error> {
        if lane_of(self.comm.0) == 0 {
            Ok(LaneCall::OtherLane)
        } else {
            lane_calls::send(self.in_lane())
        }
    }

    /// # Safety
    /// `request` is NULL or may be written.
    #[inline(always)]
    pub(crate) unsafe fn lane_nonblocking(self, request: *mut Request) -> Result<LaneCall, Error> {
        if lane_of(self.comm.0) == 0 {
            return Ok(LaneCall::OtherLane);
        }
        // SAFETY: `start_message` needs a `request` that is NULL or may be written; the contract of this function says so.
        Ok(unsafe { lane_calls::start_message::<true>(self.in_lane(), request) })
    }
}

/// MPI_Irecv, MPI_Irecv_c, MPI_Recv, MPI_Recv_c.
impl Recv {
    /// # Safety
    /// `request` is NULL or may be written.
    #[inline(always)]
    pub(crate) unsafe fn try_nonblocking(self, request: *mut Request) -> bool {
        // SAFETY: `fast_path` needs a `request` that is NULL or may be written; the contract of this function says so.
        unsafe { fast_path::<false>(self.buf, self.source, self.tag, self.comm, request) }
    }

    #[inline(always)]
    fn in_lane(self) -> LaneMessage {
        LaneMessage { buf: self.buf, peer: self.source, tag: self.tag, comm: self.comm }
    }

    /// # Safety
    /// `status` is `MPI_STATUS_IGNORE` or may be written.
    #[inline(always)]
    pub(crate) unsafe fn lane_blocking(self, status: *mut MpiStatus) -> Result<LaneCall, Error> {
        if lane_of(self.comm.0) == 0 {
            return Ok(LaneCall::OtherLane);
        }
        // SAFETY: `receive` needs a `status` that may be ignored or written; the contract of this function says so.
        unsafe { lane_calls::receive(self.in_lane(), status) }
    }

    /// # Safety
    /// `request` is NULL or may be written.
    #[inline(always)]
    pub(crate) unsafe fn lane_nonblocking(self, request: *mut Request) -> Result<LaneCall, Error> {
        if lane_of(self.comm.0) == 0 {
            return Ok(LaneCall::OtherLane);
        }
        // SAFETY: `start_message` needs a `request` that is NULL or may be written; the contract of this function says so.
        Ok(unsafe { lane_calls::start_message::<false>(self.in_lane(), request) })
    }
}
