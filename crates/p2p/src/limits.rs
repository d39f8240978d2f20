//! Limits of the protocols.

use crate::message::MessageProtocol;
use weft_intranode::staging;

/// Limits of the protocols. Sizes are in bytes.
#[derive(Debug, Clone, Copy)]
pub struct ProtocolLimits {
    /// Maximum payload that is sent eagerly. Larger payloads go by rendezvous. A fabric with a long round trip has a higher limit
    /// ([`weft_fabric::Capabilities::round_trip`]).
    pub eager: usize,
    /// True if the user set `eager`: then a long round trip does not raise the limit.
    pub eager_fixed: bool,
    /// Maximum eager payload of one sender that may be unreleased at one receiver. Further payload waits at the sender.
    pub credit: u64,
    /// The maximum that replaces `credit` between processes of one job with a long round trip ([`far_credit`]).
    pub far_credit: u64,
    /// Memory for payloads that receivers on the same node copy out of ([`weft_intranode::staging`]); 0: none.
    pub staging: usize,
    /// Number of ranks that take turns on a processor; 1 if each rank has its own processor.
    pub ranks_each: u32,
    /// Way in which large payloads move.
    pub rendezvous: Rendezvous,
    /// Protocol for all payloads for which it is eligible. `None`: the cheapest.
    pub protocol: Option<MessageProtocol>,
    /// True if memory of large nonblocking operations is registered when they begin, so that a signal handler
    /// may start the transfer: [`crate::Endpoint::interrupted`].
    pub prepares: bool,
    /// True if the end of a rendezvous wakes the helper of its sender, too.
    pub notifies_at_end: bool,
    /// True if the helper of a receiver ends the rendezvous when its transfer is complete.
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

/// Way in which large payloads move, if the fabric reaches the peer's memory. The sender's setting decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Rendezvous {
    /// The receiver reads the payload: one message less, and the sender has nothing to do.
    #[default]
    Read,
    /// The sender writes the payload (`protocol/rendezvous_write.rs`).
    Write,
}

impl ProtocolLimits {
    /// Default limits: up to 16 KiB eagerly, receivers read larger payloads.
    pub const USUAL: ProtocolLimits = ProtocolLimits {
        eager: 16 << 10,
        eager_fixed: false,
        credit: 1 << 20,
        far_credit: 1 << 20,
        staging: staging::USUAL,
        ranks_each: 1,
        rendezvous: Rendezvous::Read,
        protocol: None,
        prepares: false,
        notifies_at_end: false,
        ends_by_helper: true,
    };
}

/// Maximum payload, in bytes, that one sender may have unreceived at one receiver, unless set otherwise. Covers a window of 64
/// messages of 64 KiB, for which a network's own credits are enough, and payload whose release the sender does not know yet.
const WINDOW: u64 = 8 << 20;

/// Maximum number of bytes that all senders together may have unreceived at one receiver, unless the sum of
/// [`ProtocolLimits::credit`] is more.
const TOGETHER: u64 = 256 << 20;

/// Returns the maximum payload that one sender may have unreceived at one receiver with a long round trip, in a job of
/// `processes` processes. The result is the same on all of them. A process keeps at most 256 MiB of unreceived payload, or 1 MiB
/// for each other process if that is more.
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
