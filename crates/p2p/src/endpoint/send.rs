//! The sending side. A message goes eagerly, or by the protocol that the peer's table of choices names.

use super::Endpoint;
use super::state::EndpointState;
use crate::envelope::SignatureMark;
use crate::message::{CancelWay, MessageTarget, OutgoingMessage, SendMode, TransferPattern};
use crate::protocol::{MessageProtocol, eager};
use crate::request::RequestId;
use weft_fabric::{Fabric, Fault, Sge};

impl<F: Fabric> Endpoint<F> {
    /// Starts a send. Returns `None` if the send is already complete, so that `buffer` may be used again.
    ///
    /// An eager payload within the credit costs no allocation, lock or system call if the fabric can send it at once.
    #[inline]
    pub fn isend(&self, to: MessageTarget, buffer: Sge, mode: SendMode) -> Option<RequestId> {
        self.isend_as(to, buffer, mode.into())
    }

    /// Starts a send with a known communication pattern.
    #[inline]
    pub fn isend_as(
        &self,
        to: MessageTarget,
        buffer: Sge,
        pattern: TransferPattern,
    ) -> Option<RequestId> {
        self.isend_or_offer(to, buffer, pattern, CancelWay::ByMessage)
    }

    /// Starts a send that [`Endpoint::cancel`] may take back without the receiver's help.
    #[inline(always)]
    pub fn isend_cancellable(
        &self,
        to: MessageTarget,
        buffer: Sge,
        pattern: impl Into<TransferPattern>,
    ) -> Option<RequestId> {
        self.isend_or_offer(to, buffer, pattern.into(), CancelWay::ByWord)
    }

    /// Starts a send of a message with a signature mark.
    pub fn isend_with_mark(
        &self,
        to: MessageTarget,
        buffer: Sge,
        mode: SendMode,
        mark: SignatureMark,
    ) -> Option<RequestId> {
        let state = &mut *self.state.borrow_mut();
        state.operations.mark = mark;
        let (pattern, cancel) = (mode.into(), CancelWay::ByWord);
        let id = self.isend_otherwise(state, &OutgoingMessage { to, buffer, pattern, cancel });
        state.operations.mark = SignatureMark::default();
        id
    }

    /// Sends and waits until the buffer may be used again.
    pub async fn send(&self, to: MessageTarget, buffer: Sge) -> Result<(), Fault> {
        match self.isend(to, buffer, SendMode::Standard) {
            None => Ok(()),
            Some(id) => self.wait(id).await.map(|_| ()),
        }
    }

    #[inline(always)]
    fn isend_or_offer(
        &self,
        to: MessageTarget,
        buffer: Sge,
        pattern: TransferPattern,
        cancel: CancelWay,
    ) -> Option<RequestId> {
        let transport = &self.transport;
        let state = &mut *self.state.borrow_mut();
        let len = buffer.len() as u64;
        if pattern != TransferPattern::Synchronous {
            let operations = &mut state.operations;
            let mut ride = 0;
            let at_once = len == 0 || {
                let peer = operations.peers.of(transport, to.peer);
                let covered =
                    len <= u64::from(peer.eager) && peer.credit.try_charge(len, peer.room);
                if covered {
                    ride = peer.credit.ride(peer.rides);
                }
                covered
            };
            if at_once {
                operations.often.eager += 1;
                operations.often.bytes_eager += len;
                return eager::send(transport, &mut operations.requests, to, buffer, ride);
            }
        }
        self.isend_otherwise(state, &OutgoingMessage { to, buffer, pattern, cancel })
    }

    /// Starts a send that is not eager, or that needs an answer.
    #[cold]
    fn isend_otherwise(
        &self,
        EndpointState { operations, in_flight, matching, .. }: &mut EndpointState,
        message: &OutgoingMessage,
    ) -> Option<RequestId> {
        let transport = &self.transport;
        let peer = operations.peers.of(transport, message.to.peer);
        let len = message.buffer.len();
        if len > peer.eager as usize {
            return in_flight.send_longer(transport, operations, matching, message);
        }
        if !peer.credit.try_charge(len as u64, peer.room) {
            operations.seldom.out_of_credit += 1;
            let protocol = MessageProtocol::Eager;
            return Some(in_flight.offer(transport, operations, matching, message, protocol));
        }
        eager::send_charged(transport, operations, matching, message)
    }
}
