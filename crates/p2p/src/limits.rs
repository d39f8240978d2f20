//! Limits of the protocols.

use crate::message::MessageProtocol;
use weft_fabric::wait::ProcessorTurns;
use weft_intranode::staging;

/// Limits of the protocols. Sizes are in bytes.
#[derive(Debug, Clone, Copy)]
pub struct ProtocolLimits {
    /// Maximum payload that is sent eagerly. Larger payloads go by rendezvous. A fabric with a long round trip has a higher limit
    /// ([`weft_fabric::Capabilities::round_trip`]).
    pub eager: usize,
    /// True if the user has set `eager`. A long round trip then does not raise the limit.
    pub eager_fixed: bool,
    /// Maximum eager payload of one sender that may be unreleased at one receiver. Further payload waits at the sender.
    pub credit: u64,
    /// The maximum that replaces `credit` if the round trip between two processes of one job is long ([`far_credit`]).
    pub far_credit: u64,
    /// Size of the staging memory, from which receivers on the same node copy payloads ([`weft_intranode::staging`]); 0: none.
    pub staging: usize,
    /// Number of ranks that take turns on a processor; 1 if each rank has its own processor.
    pub ranks_each: u32,
    /// The present number of threads that take turns on a processor. `None`: each rank has one thread.
    pub turns: Option<&'static ProcessorTurns>,
    /// Method to move large payloads.
    pub rendezvous: Rendezvous,
    /// Protocol for all payloads for which this protocol is eligible. `None`: each payload goes by its cheapest protocol.
    pub protocol: Option<MessageProtocol>,
    /// True if the memory of a large nonblocking operation is registered when the operation begins. A signal handler can then start
    /// the transfer ([`crate::Endpoint::interrupted`]).
    pub prepares: bool,
    /// True if the report that a payload was read also wakes the sender's helper.
    pub notifies_at_end: bool,
    /// True if the receiver's helper ends a rendezvous when the transfer is complete.
    pub ends_by_helper: bool,
}

/// New values of the limits that may change while messages are under way.
#[derive(Debug, Clone, Copy)]
pub struct ProtocolChange {
    /// See [`ProtocolLimits::eager`].
    pub eager: usize,
    /// See [`ProtocolLimits::eager_fixed`].
    pub eager_fixed: bool,
    /// See [`ProtocolLimits::rendezvous`].
    pub rendezvous: Rendezvous,
}

/// Method to move large payloads, if the fabric reaches the peer's memory. The setting of the sender decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Rendezvous {
    /// The receiver reads the payload. This takes one message less, and the sender has nothing to do.
    #[default]
    Read,
    /// The sender writes the payload (`protocol/rendezvous_write.rs`).
    Write,
}

impl ProtocolLimits {
    /// Default limits: payloads of up to 16 KiB go eagerly, and receivers read larger payloads.
    pub const USUAL: ProtocolLimits = ProtocolLimits {
        eager: 16 << 10,
        eager_fixed: false,
        credit: 1 << 20,
        far_credit: 1 << 20,
        staging: staging::USUAL,
        ranks_each: 1,
        turns: None,
        rendezvous: Rendezvous::Read,
        protocol: None,
        prepares: false,
        notifies_at_end: false,
        ends_by_helper: true,
    };

    /// Returns the number of threads, of all ranks, that take turns on a processor now. The number is at least 1.
    pub fn threads_each(&self) -> u32 {
        self.turns.map_or(1, ProcessorTurns::each).max(self.ranks_each)
    }
}

/// Default maximum payload, in bytes, of one sender's messages that a receiver has not received yet. The maximum is enough for 64
/// messages of 64 KiB, as a network's own credits are, and for released payload that is not reported to the sender yet.
const WINDOW: u64 = 8 << 20;

/// Maximum payload, in bytes, of all senders' messages that one receiver has not received yet. If the sum of
/// [`ProtocolLimits::credit`] over all senders is more, the sum is the maximum.
const TOGETHER: u64 = 256 << 20;

/// Returns the maximum payload of one sender's messages that a receiver with a long round trip has not received yet, in a job of
/// `processes` processes. The result is the same on all processes. A process keeps at most 256 MiB of payload that it has not
/// received yet, or 1 MiB for each other process if that is more in total.
pub fn far_credit(processes: usize) -> u64 {
    let others = processes.saturating_sub(1).max(1) as u64;
    (TOGETHER / others).clamp(ProtocolLimits::USUAL.credit, WINDOW)
}

impl Default for ProtocolLimits {
    fn default() -> Self {
        ProtocolLimits::USUAL
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_senders_have_no_more_than_before() {
        assert_eq!(
            [1, 2, 33, 65, 257, 1000, 100_000].map(|n| far_credit(n) >> 20),
            [8, 8, 8, 4, 1, 1, 1]
        );
        for processes in 1..2000 {
            let all = far_credit(processes) * (processes as u64 - 1);
            assert!(
                all <= TOGETHER.max(ProtocolLimits::USUAL.credit * processes as u64),
                "{processes}"
            );
        }
    }
}
