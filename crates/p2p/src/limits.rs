//! What governs the protocols.

use crate::message::MessageProtocol;
use weft_intranode::staging;

/// Sizes that govern the protocols. In bytes.
#[derive(Debug, Clone, Copy)]
pub struct ProtocolLimits {
    /// Largest payload that is sent at once; above it, rendezvous. A fabric whose round trip is long is sent more
    /// ([`weft_fabric::Capabilities::round_trip`]).
    pub eager: usize,
    /// `eager` was asked for: more is sent at once nowhere, however long a question and its answer take.
    pub eager_fixed: bool,
    /// Eager payload that one sender may have unreceived at one receiver; beyond it, payload waits
    /// at the sender.
    pub credit: u64,
    /// Credit between processes of one job with a long round trip ([`far_credit`]).
    pub far_credit: u64,
    /// Memory for payloads that receivers on the same node copy from ([`weft_intranode::staging`]); 0: none.
    pub staging: usize,
    /// Ranks that take turns on a processor; 1: each has its own.
    pub ranks_each: u32,
    /// How large payloads move.
    pub rendezvous: Rendezvous,
    /// The protocol for all payloads that it is eligible for; nothing: the cheapest.
    pub protocol: Option<MessageProtocol>,
    /// Memory of large nonblocking operations is registered when they begin, so that a signal handler
    /// may start the transfer: [`crate::Endpoint::interrupted`].
    pub prepares: bool,
    /// The end of a rendezvous wakes the helper of its sender, too.
    pub notifies_at_end: bool,
    /// The helper of a receiver ends the rendezvous when its transfer is over.
    pub ends_by_helper: bool,
}

/// How large payloads move, where the fabric reaches the other's memory. Senders choose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Rendezvous {
    /// The receiver reads them: one message less, and the sender has nothing to do.
    #[default]
    Read,
    /// The sender writes them (`protocol/written.rs`).
    Write,
}

impl ProtocolLimits {
    /// What holds where nobody chooses: 16 KiB at once, receivers read what is larger.
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

/// Maximum number of bytes that all senders together may have unreceived at one receiver, unless the sum of [`ProtocolLimits::credit`] is
/// more.
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
