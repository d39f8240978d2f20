//! What every protocol changes: the operations under way, what is known of their peers, and what is counted.

use super::peers::MessagePeers;
use crate::counts::{LargeMessageCounts, SmallMessageCounts};
use crate::request::{ProcessRequests, RequestId, RequestStage, Status};
use crate::transport::Transport;
use weft_fabric::{Counters, Fabric, FabricExt, Fault, Work};

/// The operations of a process. What a small message needs comes first and together: a simulated rank finds none of it in the
/// cache.
#[repr(C)]
pub struct Operations {
    pub peers: MessagePeers,
    /// What ended everything.
    pub fault: Option<Fault>,
    pub often: SmallMessageCounts,
    pub requests: ProcessRequests,
    pub seldom: LargeMessageCounts,
}

impl Operations {
    /// None is under way. The counter of the spare request is allocated.
    pub fn new(counters: &Counters) -> Operations {
        Operations {
            peers: MessagePeers::default(),
            fault: None,
            often: SmallMessageCounts::default(),
            requests: ProcessRequests::new(counters),
            seldom: LargeMessageCounts::default(),
        }
    }

    /// Ends a request whose operation is over. `void` gets the number of one that was cancelled by its word, in place of the
    /// others.
    #[inline(always)]
    pub fn close<F: Fabric>(
        &mut self,
        transport: &Transport<F>,
        id: RequestId,
        void: impl FnOnce(u32),
    ) -> Status {
        let slot = &mut self.requests[id.0];
        let (status, receives) = (slot.status, slot.receives);
        let cancelled = slot.word && status.cancelled;
        slot.stage = RequestStage::Free;
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
