//! Streams of segments ([`crate::stream`]), as collective algorithms use them.

use super::Endpoint;
use super::state::EndpointState;
use crate::message::MessageTarget;
use crate::request::RequestId;
use crate::stream::{StreamCounts, StreamSizes};
use weft_fabric::{Fabric, Sge};

/// The streams of an endpoint. [`Endpoint::wait`] ends requests of streams like all other requests.
///
/// For a send, the [`MessageTarget`] names the receiver. For a receive, the [`MessageTarget`] names the sender, with the sender's
/// rank in the communicator.
pub struct Streams<'e, F: Fabric>(&'e Endpoint<F>);

impl<F: Fabric> Endpoint<F> {
    /// Returns the streams of segments of this endpoint. The streams carry messages of collective operations, separately from all
    /// other messages.
    pub fn streams(&self) -> Streams<'_, F> {
        Streams(self)
    }
}

impl<F: Fabric> Streams<'_, F> {
    /// Sets the sizes. Returns false, and changes nothing, if streams have already been used.
    pub fn set_sizes(&self, sizes: StreamSizes) -> bool {
        self.0.state.borrow_mut().streams.set_sizes(sizes)
    }

    /// Returns the sizes in force.
    pub fn sizes(&self) -> StreamSizes {
        self.0.state.borrow().streams.sizes()
    }

    /// Returns the counts so far; zeros before the first message.
    pub fn counts(&self) -> StreamCounts {
        self.0.state.borrow().streams.counts()
    }

    /// Returns the registered memory in use, in bytes: at most [`StreamSizes::memory`].
    pub fn registered(&self) -> usize {
        self.0.state.borrow().streams.registered()
    }

    /// Starts a send. Returns `None` if the send is already complete.
    pub fn isend(&self, to: MessageTarget, data: Sge) -> Option<RequestId> {
        let EndpointState { operations, streams, .. } = &mut *self.0.state.borrow_mut();
        streams.isend(&self.0.transport.fabric, operations, to, data)
    }

    /// Starts a receive of at most `data.len()` bytes from the process that `from` names.
    pub fn irecv(&self, from: MessageTarget, data: Sge) -> RequestId {
        self.relay(from, data, std::iter::empty(), |_| {})
    }

    /// Starts a receive whose message is forwarded to each of `to` while it arrives. Calls `add` with the request of each send.
    pub fn relay(
        &self,
        from: MessageTarget,
        data: Sge,
        to: impl Iterator<Item = MessageTarget>,
        add: impl FnMut(RequestId),
    ) -> RequestId {
        let EndpointState { operations, streams, .. } = &mut *self.0.state.borrow_mut();
        streams.relay(&self.0.transport.fabric, operations, from, data, to, add)
    }
}
