//! Records of a checking mode: small messages beside the messages of a communicator, which the receives and probes of the program do
//! not see. Every communicator has them, without an agreement of its members.

use crate::{Active, Buffer, Comm, Error, WaitHooks};
use weft_fabric::Fabric;
use weft_p2p::{MatchingContext, SendMode};

/// Bits that are set in the matching spaces of records, in addition to the bits of the space of messages. Levels of collective
/// operations have the same bits in addition to the bits of the space of collective operations.
const SPACES: u64 = weft_collective::hierarchy::LEVELS;

/// Matching space of records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RecordSpace {
    /// Records of the signatures that marks name.
    Signatures,
    /// Records of partitioned sends.
    Partitioned,
}

impl RecordSpace {
    /// Returns the matching space beside the space of messages.
    fn context(self, messages: MatchingContext) -> MatchingContext {
        let lowest = SPACES & SPACES.wrapping_neg();
        match self {
            RecordSpace::Signatures => MatchingContext(messages.0 | SPACES),
            RecordSpace::Partitioned => MatchingContext(messages.0 | SPACES & !lowest),
        }
    }
}

impl<F: Fabric> Comm<F> {
    /// Sends a record to a place in [`Comm::peers`].
    pub fn send_record(&self, space: RecordSpace, to: usize, tag: i32, data: &[u8]) {
        let endpoint = self.engine.endpoint();
        let memory = self.pool().take(data.len());
        memory.sge().fill(data);
        let target = self.target_in(space.context(self.context()), to, tag);
        if let Some(id) = endpoint.isend(target, memory.sge(), SendMode::Standard) {
            // The peer has no credit for the record, which happens to few records. Their memory stays for good.
            std::mem::forget(memory);
            endpoint.forget(id);
        }
    }

    /// Receives a record from a place in [`Comm::peers`]. Waits until the record has arrived.
    pub fn receive_record(
        &self,
        outside: &dyn WaitHooks,
        space: RecordSpace,
        from: usize,
        tag: i32,
        into: &Buffer,
    ) -> Result<(), Error> {
        let want = self.want_in(space.context(self.context()), from, tag);
        let into = into.run().expect("a record is contiguous");
        let id = self.engine.endpoint().irecv(&want, into);
        self.finish(outside, Active::Receive { id, unpack: None }).map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_are_in_no_space_of_messages_or_collective_operations() {
        let messages = MatchingContext(7 << 1);
        let [a, b] =
            [RecordSpace::Signatures, RecordSpace::Partitioned].map(|s| s.context(messages));
        assert!(a != b && a != messages && b != messages);
        assert!([a, b].iter().all(|space| space.0 & 1 == 0 && space.0 & !SPACES == messages.0));
    }
}
