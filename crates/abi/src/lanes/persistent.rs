//! Persistent sends and receives of lanes. Their requests lie in the table of the lane that carries the messages, so that a start and a
//! wait take the lane's lock alone.
//!
//! Only operations on contiguous memory have such requests. The recipe of any other operation has a datatype of lane 0.

use super::operation::MessageCarriers;
use super::{LaneState, MessageLane};
use crate::engine::CommObject;
use crate::error::Error;
use crate::objects::{Belongs, Persistent, RequestObject, RequestOrigin};
use crate::types::Request;
use std::rc::Rc;
use weft_fabric::Sge;
use weft_p2p::SendMode;
use weft_process::{Active, Origin, Status};

/// Operation that each start of a persistent request of a lane begins.
#[derive(Clone, Copy)]
pub enum LaneTransfer {
    Send {
        /// Bytes to send.
        data: Sge,
        /// Rank of the receiver.
        to: usize,
        /// Tag of the message.
        tag: i32,
        /// Condition for the end of the send.
        mode: SendMode,
    },
    Receive {
        /// Memory to receive into.
        into: Sge,
        /// Sender. It is not MPI_PROC_NULL.
        from: Origin,
        /// Tag to receive, or `None` for any tag.
        tag: Option<i32>,
    },
}

impl LaneTransfer {
    /// Returns the tag that gives the lane on a communicator whose messages have lanes by their tags.
    fn tag(&self) -> Option<i32> {
        match *self {
            LaneTransfer::Send { tag, .. } => Some(tag),
            LaneTransfer::Receive { tag, .. } => tag,
        }
    }

    fn origin(&self) -> RequestOrigin {
        match self {
            LaneTransfer::Send { .. } => RequestOrigin::Send,
            LaneTransfer::Receive { .. } => RequestOrigin::Receive,
        }
    }
}

/// Recipe of a persistent request of a lane. Used, and dropped, only with the lane's lock held.
struct LaneRecipe {
    carrier: Rc<CommObject>,
    transfer: LaneTransfer,
}

impl Persistent for LaneRecipe {
    fn start(&self) -> Result<Active, Error> {
        let done = Active::Done(Status::default());
        Ok(match self.transfer {
            LaneTransfer::Send { data, to, tag, mode } => self
                .carrier
                .isend_run(data, to, tag, mode)
                .map_or(done, |id| Active::Send { id, _piece: None }),
            LaneTransfer::Receive { into, from, tag } => self
                .carrier
                .irecv_run(into, from, tag)
                .map_or(done, |id| Active::Receive { id, unpack: None }),
        })
    }
}

/// Result of an attempt to start a request of a lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaneStart {
    Started,
    /// The request is active already.
    Active,
    /// The request is not persistent.
    Once,
    /// The lane has no such request.
    Unknown,
}

/// Makes an inactive persistent request in the lane that carries the messages of `comm`. Returns `None` if they go through no lane, or
/// the lane has no room.
pub fn persist(comm: &CommObject, transfer: LaneTransfer) -> Option<Request> {
    let carrier = MessageCarriers::of(comm)?.with_tag(transfer.tag());
    carrier.hold(|state, carrier| {
        state.make_room();
        let mut requests = state.requests.borrow_mut();
        let recipe = LaneRecipe { carrier: carrier.clone(), transfer };
        requests.has_room().then(|| {
            let object = RequestObject {
                active: None,
                recipe: Some(Rc::new(recipe)),
                belongs: Belongs::Comm(carrier.clone()),
                kind: transfer.origin(),
            };
            Request(requests.insert_in(state.number, object))
        })
    })
}

/// Starts a persistent request of a lane, for a call that holds the main lock.
pub fn start_again(handle: usize) -> Result<LaneStart, Error> {
    let entered = MessageLane::of(handle).map(MessageLane::enter);
    match entered.as_ref().and_then(|entered| entered.state()) {
        Some(state) => state.start_again(handle),
        None => Ok(LaneStart::Unknown),
    }
}

impl LaneState {
    /// Returns the result that [`LaneState::start_again`] would have, but starts nothing.
    pub fn may_start(&self, handle: usize) -> LaneStart {
        match self.requests.borrow().get(handle) {
            None => LaneStart::Unknown,
            Some(object) if object.active.is_some() => LaneStart::Active,
            Some(object) if object.recipe.is_none() => LaneStart::Once,
            Some(_) => LaneStart::Started,
        }
    }

    /// Starts a persistent request, unless it is active.
    pub fn start_again(&self, handle: usize) -> Result<LaneStart, Error> {
        let may = self.may_start(handle);
        if may == LaneStart::Started
            && let Some(object) = self.requests.borrow_mut().get_mut(handle)
            && let Some(recipe) = &object.recipe
        {
            object.active = Some(recipe.start()?);
        }
        Ok(may)
    }
}
