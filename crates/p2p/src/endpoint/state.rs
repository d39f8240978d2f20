//! State of an endpoint that changes while messages are under way.

use crate::limits::ProtocolLimits;
use crate::matching::{Matched, MatchingQueues};
use crate::message::Want;
use crate::protocol::operations::Operations;
use crate::protocol::rendezvous::RendezvousFlights;
use crate::request::{RequestId, Status};
use crate::stream::ProcessStreams;
use crate::transport::Transport;
use weft_fabric::{Counters, Fabric};

/// The parts of an endpoint that change. Each part has its own methods. The methods in this file involve several parts.
#[repr(C)]
pub struct EndpointState {
    pub operations: Operations,
    pub in_flight: RendezvousFlights,
    pub matching: MatchingQueues,
    pub streams: ProcessStreams,
}

impl EndpointState {
    /// Creates the state without operations.
    pub fn new(counters: &Counters, limits: &ProtocolLimits) -> EndpointState {
        EndpointState {
            operations: Operations::new(counters),
            in_flight: RendezvousFlights::new(limits),
            matching: MatchingQueues::new(),
            streams: ProcessStreams::default(),
        }
    }

    /// Ends a request whose operation is complete.
    #[inline(always)]
    pub fn close<F: Fabric>(&mut self, transport: &Transport<F>, id: RequestId) -> Status {
        let EndpointState { operations, matching, .. } = self;
        operations.close(transport, id, |request| matching.words.retire(request))
    }

    /// Takes the first message that matches a receive and that the sender has not cancelled.
    pub fn take_valid<F: Fabric>(
        &mut self,
        transport: &Transport<F>,
        want: &Want,
    ) -> Option<Matched> {
        let EndpointState { operations: Operations { peers, fault, .. }, matching, .. } = self;
        matching.take_valid(transport, want, fault, |void| {
            peers.return_credit(transport, void.peer, void.owed());
        })
    }
}
