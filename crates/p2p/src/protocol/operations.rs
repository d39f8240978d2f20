//! State that every protocol changes: the operations under way, their peers, and the counts.

use super::peers::MessagePeers;
use crate::counts::{LargeMessageCounts, SmallMessageCounts};
use crate::envelope::SignatureMark;
use crate::request::{ProcessRequests, RequestId, Status};
use crate::transport::Transport;
use weft_fabric::{Counters, Fabric, FabricExt, Fault, Work};

/// The operations of a process. The fields that a small message needs come first and together, because a simulated rank finds none
/// of these fields in the cache.
#[repr(C)]
pub struct Operations {
    pub peers: MessagePeers,
    /// The fault that ended all operations.
    pub fault: Option<Fault>,
    pub often: SmallMessageCounts,
    pub requests: ProcessRequests,
    pub seldom: LargeMessageCounts,
    /// Mark of the message that is being sent.
    pub mark: SignatureMark,
}

impl Operations {
    /// Creates the state without operations. Allocates the counter of the spare request.
    pub fn new(counters: &Counters) -> Operations {
        Operations {
            peers: MessagePeers::default(),
            fault: None,
            often: SmallMessageCounts::default(),
            requests: ProcessRequests::new(counters),
            seldom: LargeMessageCounts::default(),
            mark: SignatureMark::default(),
        }
    }

    /// Ends a request whose operation is complete, and frees its number. If the request was cancelled by its cancel word, passes
    /// the number to `void` instead of freeing it.
    #[inline(always)]
    pub fn close<F: Fabric>(
        &mut self,
        transport: &Transport<F>,
        id: RequestId,
        void: impl FnOnce(u32),
    ) -> Status {
        let slot = &mut self.requests[id.0];
        let (status, receives) = (slot.status, slot.receives);
        let cancelled = slot.word && status.flags.cancelled();
        slot.state.free();
        slot.withdraw(&transport.fabric);
        match cancelled {
            true => void(id.0),
            false => self.requests.give(id.0),
        }
        if receives {
            self.often.count_received(&status);
            transport.fabric.charge(Work::Match);
        }
        status
    }
}
