//! Exchange: finds out whether the traffic of an endpoint is an exchange, in which both ends of a message have other work, so that
//! their copies do not overlap.
//!
//! ```text
//!   exchange    A ── RTS ──>  <── RTS, ATS ── B    the offers cross: each end copies for two messages
//!   ping-pong   A ── RTS ──>  <── ATS, RTS ── B    B has received before it sends: the waiting A can copy at the same time
//! ```
//! Contract:
//! - Only messages of unknown pattern ([`TransferPattern::Plain`]) become messages of an exchange. They do so by the traffic before them.
//! - Offers crossed if an offer of another process arrives while the end of an own offer is not reported, or if this process sends a long
//!   message while an offer of another process has arrived that no receive has matched. A posted receive is no sign: in a ping-pong,
//!   the receive may be posted before the send. The two other processes may differ. So a rank that forwards payloads in a chain, or
//!   sends to its right and receives from its left, is in an exchange. The latest offer decides.
//! - Each end observes for itself. If both ends send before they receive, both observe an exchange in every order of events. If one end
//!   has received before it sends, the other end waits for it, and copies can overlap.
//! - Where threads take turns on a processor, an end that waits cannot copy. Each message back, also in a ping-pong, then spares the
//!   turn in which the sender learns of the end. So offers in both directions are an exchange, whether they cross or not.
//! - Only messages between two processes of a node are observed. But an own offer that is under way may be of any process, also of the
//!   own one: a payload that its receiver does not want for long can make a ping-pong look as an exchange. This only affects costs.
//! - Payloads of an exchange may go eagerly, and eager messages are not observed when they arrive. So what was observed holds for a few
//!   long messages only ([`ONE_WAY`]), and is then observed anew.
//! - The state changes with long messages only. A message that is short enough to be sent eagerly whatever the pattern does not look at
//!   the state.

use super::{PeerPath, TransferPattern};

/// Number of successive long messages to other processes, without an offer back, after which the traffic is one-way. More than the
/// neighbours of a cell in a grid of three dimensions (26).
const ONE_WAY: u32 = 32;

/// Observations about the latest offers to and from this process.
#[derive(Debug)]
pub struct ExchangeHistory {
    /// True if the latest offer crossed another offer.
    crossed: bool,
    /// Number of offers that have arrived and that no receive has matched. Too large if offers were cancelled, until no message
    /// waits for a receive.
    unmatched: u32,
    /// Number of long messages sent since the latest offer arrived, at most [`ONE_WAY`].
    unanswered: u32,
}

impl ExchangeHistory {
    /// Creates the state before any offer: no exchange is known.
    pub fn new() -> ExchangeHistory {
        ExchangeHistory { crossed: false, unmatched: 0, unanswered: ONE_WAY }
    }

    /// Notes that an offer of another process has arrived while `own`, the own offers, are under way or not.
    pub fn note_arrived(&mut self, own: OwnOffers) {
        self.crossed = own == OwnOffers::UnderWay;
        self.unanswered = 0;
    }

    /// Notes that no receive has matched an offer of another process so far.
    pub fn note_unmatched(&mut self) {
        self.unmatched += 1;
    }

    /// Notes that a receive has matched such an offer.
    pub fn note_matched(&mut self) {
        self.unmatched = self.unmatched.saturating_sub(1);
    }

    /// Notes that this process is about to send a long message to another process. `waiting` is the number of messages that have arrived
    /// and that no receive has matched.
    pub fn note_sent(&mut self, waiting: usize) {
        self.unmatched = self.unmatched.min(waiting as u32);
        self.crossed |= self.unmatched > 0;
        self.unanswered = (self.unanswered + 1).min(ONE_WAY);
    }

    /// Returns the pattern of a message to or from a peer, if the caller knows `pattern`.
    pub fn pattern(&self, pattern: TransferPattern, path: &PeerPath) -> TransferPattern {
        let takes_turns = path.threads_each > 1;
        let exchanges = self.unanswered < ONE_WAY && (self.crossed || takes_turns);
        match pattern {
            TransferPattern::Plain if exchanges => TransferPattern::Exchange,
            known => known,
        }
    }
}

/// State of the payloads that this process has offered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OwnOffers {
    /// Receivers have reported the end of all offers.
    Ended,
    /// Some receiver has not reported the end of an offer yet.
    UnderWay,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ProtocolLimits;
    use crate::protocol::Locality;
    use OwnOffers::{Ended, UnderWay};
    use TransferPattern::{Exchange, Forwarded, Plain};

    /// Returns the pattern of a plain message, where each thread has a processor, and where threads take turns.
    fn seen(history: &ExchangeHistory) -> [TransferPattern; 2] {
        let path = PeerPath::at(Locality::SameNode, 1 << 20, &ProtocolLimits::USUAL);
        [1, 4].map(|threads_each| {
            let path = PeerPath { threads_each, ..path };
            assert_eq!(history.pattern(Forwarded, &path), Forwarded, "a known pattern stays");
            history.pattern(Plain, &path)
        })
    }

    #[test]
    fn offers_that_cross_are_an_exchange_until_offers_cross_no_more() {
        let mut history = ExchangeHistory::new();
        assert_eq!(seen(&history), [Plain; 2]);
        history.note_sent(0);
        assert_eq!(seen(&history), [Plain; 2], "so far it is one-way");
        history.note_arrived(UnderWay);
        assert_eq!(seen(&history), [Exchange; 2]);
        history.note_arrived(Ended);
        assert_eq!(seen(&history), [Plain, Exchange], "a ping-pong");
    }

    #[test]
    fn a_message_that_is_sent_before_a_waiting_offer_is_received_crosses_the_offer() {
        let mut history = ExchangeHistory::new();
        let arrive = |history: &mut ExchangeHistory| {
            history.note_arrived(Ended);
            history.note_unmatched();
        };
        arrive(&mut history);
        assert_eq!(seen(&history), [Plain, Exchange]);
        history.note_sent(1);
        assert_eq!(seen(&history), [Exchange; 2]);
        history.note_matched();
        arrive(&mut history);
        history.note_matched();
        history.note_sent(1);
        assert_eq!(
            seen(&history),
            [Plain, Exchange],
            "it was received before; a short message waits"
        );
        arrive(&mut history);
        history.note_sent(0);
        assert_eq!(seen(&history), [Plain, Exchange], "the offer was cancelled");
    }

    #[test]
    fn offers_in_one_direction_end_an_exchange() {
        let mut history = ExchangeHistory::new();
        history.note_arrived(UnderWay);
        for sent in 0..2 * ONE_WAY {
            let expected = if sent < ONE_WAY { Exchange } else { Plain };
            assert_eq!(seen(&history), [expected; 2], "after {sent} messages");
            history.note_sent(0);
        }
        history.note_arrived(UnderWay);
        assert_eq!(seen(&history), [Exchange; 2]);
    }
}
