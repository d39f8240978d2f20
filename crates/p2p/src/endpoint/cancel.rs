//! MPI_Cancel uses the cancel word of the request within a node, and messages between nodes (`matching/cancel.rs`).

use super::Endpoint;
use super::state::EndpointState;
use crate::envelope::{Envelope, MessageKind, PeerMessage};
use crate::message::MessageOutcome;
use crate::protocol::operations::Operations;
use crate::request::{RequestId, RequestStage, StatusFlags};
use crate::transport::Transport;
use weft_fabric::Fabric;

impl<F: Fabric> Endpoint<F> {
    /// Asks to cancel a send or receive (MPI_Cancel). The caller still has to wait for the operation.
    pub fn cancel(&self, id: RequestId) {
        let transport = &self.transport;
        let EndpointState { operations, matching, .. } = &mut *self.state.borrow_mut();
        let slot = &mut operations.requests[id.0];
        match slot.state.stage() {
            RequestStage::Posted if matching.posted.withdraw(id.0) => {
                slot.state.withdraw();
                slot.status.flags = StatusFlags::CANCELLED;
                slot.advance(transport.counters());
            }
            RequestStage::Offered | RequestStage::Unacknowledged if !slot.cancelling => {
                slot.cancelling = true;
                if slot.word {
                    match matching.words.cancel(transport, id.0) {
                        Ok(true) => end(transport, operations, id.0),
                        Ok(false) => {}
                        Err(fault) => operations.fault = Some(fault),
                    }
                    let requests = &mut operations.requests;
                    matching.words.free_void(transport, |request| requests.give(request));
                    return;
                }
                let peer = slot.peer.expect("a send has a receiver") as usize;
                // If a message to this process itself has arrived unmatched, it is taken back at once, and MPI_Cancel is done.
                if peer == transport.fabric.rank() && matching.arrived.take_back(peer, id.0) {
                    taken_back(transport, operations, id.0, peer);
                } else {
                    let head = Envelope::reply(MessageKind::Cancel, id.0, 0);
                    transport.control_solicited(peer, head);
                }
            }
            _ => {}
        }
    }

    /// Returns true while only this process can decide if a send is cancelled: the message is on its way to this process itself, or the
    /// answer is. A wait for the decision needs no other process.
    pub fn decides_cancellation(&self, id: RequestId) -> bool {
        if self.fault().is_some() {
            return false;
        }
        let slot = &self.state.borrow().operations.requests[id.0];
        let is_own = slot.peer == Some(self.transport.fabric.rank() as u32);
        let stage = slot.state.stage();
        let is_open = matches!(stage, RequestStage::Offered | RequestStage::Unacknowledged);
        slot.cancelling && is_own && is_open
    }
}

/// Handles the receiver's answer to a request to cancel. The answer is 1 if the message was taken back.
pub fn on_cancelled<F: Fabric>(
    transport: &Transport<F>,
    operations: &mut Operations,
    &PeerMessage { peer, envelope: e, .. }: &PeerMessage,
) -> MessageOutcome {
    let was_taken_back = e.context.0 == 1;
    if !was_taken_back {
        for stage in [RequestStage::Offered, RequestStage::Unacknowledged] {
            if let Some(slot) = operations.requests.waiting(peer, e.request, stage) {
                slot.cancelling = false;
            }
        }
        return Ok(());
    }
    let mut is_at = |stage| operations.requests.waiting(peer, e.request, stage).is_some();
    if !is_at(RequestStage::Offered) && !is_at(RequestStage::Unacknowledged) {
        return Err("cancellation");
    }
    taken_back(transport, operations, e.request, peer);
    Ok(())
}

/// Ends a send that was cancelled. The receiver has dropped the envelope, and will return no credit for the payload.
fn taken_back<F: Fabric>(
    transport: &Transport<F>,
    operations: &mut Operations,
    index: u32,
    peer: usize,
) {
    let slot = &operations.requests[index];
    let (len, eager) = (slot.buffer.len() as u64, slot.state.is(RequestStage::Unacknowledged));
    end(transport, operations, index);
    if eager {
        operations.peers.of(transport, peer).credit.refund(len);
    }
}

fn end<F: Fabric>(transport: &Transport<F>, operations: &mut Operations, index: u32) {
    operations.requests.end_acting(index);
    let slot = &mut operations.requests[index];
    slot.status.flags = StatusFlags::CANCELLED;
    slot.end_by_peer(&transport.fabric);
}
