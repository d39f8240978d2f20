//! Protocols of a message: for which cases each protocol is eligible, its cost by the model of the machine, and the choice of the
//! cheapest protocol.
//!
//! ```text
//!   eager     with its envelope                    the receiver's ring is written and read, one after the other
//!   staged    through memory that both see         both copy at the same time, in parts; the sender does not wait
//!   read      the receiver reads it                one copy, by a system call on one machine
//!   co-copy   both ends copy pieces of it          the same, by two processors
//!   written   the sender writes it                 one copy, by the sender, once it has the receiver's address
//!   pieces    in messages                          where the sender's memory cannot be read
//! ```
//! The choice is computed from a [`MessageCase`], without state, clock or fabric. An endpoint computes tables of choices
//! (`table.rs`) for each kind of its peers. So the choice for a message only compares its size with limits.
//!
//! A cost for each protocol, and a choice by size, are also the method of UCX (Shamis et al. 2015).

pub(crate) mod co_copy;
pub(crate) mod eager;
pub(crate) mod end_messages;
pub(crate) mod exchange;
pub(crate) mod offers;
pub(crate) mod operations;
pub(crate) mod peers;
pub(crate) mod rendezvous;
pub(crate) mod rendezvous_pieces;
mod rendezvous_read;
mod rendezvous_staged;
mod rendezvous_striped;
pub(crate) mod rendezvous_write;
mod table;
pub(crate) mod transfers;

pub use crate::message::{MessageProtocol, TransferPattern};
use weft_fabric::{CacheDistance, Capabilities, CopyModel};

/// Assumed number of peers in [`TransferPattern::OneToMany`] and [`TransferPattern::ManyToOne`], including the peer of this
/// message. Also the assumed number of messages of a [`TransferPattern::Exchange`] that share a turn. The real numbers are unknown, so
/// the smallest possible number is assumed: two.
const SEVERAL: f64 = 2.0;

/// Place of the other end of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Locality {
    /// The other end is this process.
    Here,
    /// The other end is on this node. Processors copy to and from memory that both ends see.
    SameNode,
    /// The other end is on another node, or an adapter carries out the operations between the two ends.
    Elsewhere,
}

/// Properties of the path to a peer. Sizes are in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeerPath {
    /// Place of the peer. The place decides which protocols are possible.
    pub place: Locality,
    /// True if this process can read and write all of the peer's memory.
    pub direct: bool,
    /// Maximum payload of one message of the fabric.
    pub send_max: usize,
    /// Maximum payload that may be sent eagerly.
    pub eager: usize,
    /// Maximum payload that can be staged; 0: there is no staging memory.
    pub staging: usize,
    /// True if operations on the peer's memory are complete when their calls return. Simulated time passes between call and
    /// completion, also within a node.
    pub synchronous: bool,
    /// Number of threads, of all ranks, that take turns on a processor; 1 if each thread has its own processor.
    pub threads_each: u32,
    /// Assumed distance between the caches of the peer's processor and of this process's processor.
    pub distance: CacheDistance,
    /// True if the sender of an offered payload wants to write the payload.
    pub writes: bool,
    /// Protocol that is taken for all payloads for which it is eligible, whatever the cost.
    pub asked: Option<MessageProtocol>,
}

impl PeerPath {
    /// Returns the path from rank `me` to `peer`. `to` has the fabric's capabilities towards `peer`.
    pub fn new(
        me: usize,
        peer: usize,
        to: &Capabilities,
        limits: &crate::ProtocolLimits,
        model: &CopyModel,
    ) -> PeerPath {
        let synchronous = to.synchronous && to.coherent_atomics;
        let shares_memory = synchronous || to.shares_memory && to.coherent_atomics;
        let place = match shares_memory {
            true if me != peer => Locality::SameNode,
            // Without staging memory a process sends to itself as to another node: eagerly, or by an offer.
            true if synchronous => Locality::Here,
            _ => Locality::Elsewhere,
        };
        let usual = PeerPath::at(place, to.send_max, limits);
        let staging = if synchronous { usual.staging } else { 0 };
        let path = PeerPath { direct: to.direct, synchronous, staging, ..usual };
        path.with_round_trip(to.round_trip, limits, model)
    }

    /// Raises the eager limit for a round trip of `round_trip` nanoseconds, unless the user has set the limit (`limits`).
    pub fn with_round_trip(
        self,
        round_trip: u32,
        limits: &crate::ProtocolLimits,
        model: &CopyModel,
    ) -> PeerPath {
        let raised = self.place == Locality::Elsewhere && !limits.eager_fixed;
        let worth = if raised { eager::worth(model, round_trip) } else { 0 };
        PeerPath { eager: self.eager.max(worth), ..self }
    }

    /// Returns the maximum payload that may be sent eagerly in one message of the fabric.
    pub(crate) fn eager_max(&self) -> usize {
        self.eager.min(self.send_max)
    }

    /// Returns the path to a peer at `place` whose memory cannot be reached directly.
    pub fn at(place: Locality, send_max: usize, limits: &crate::ProtocolLimits) -> PeerPath {
        let near = place != Locality::Elsewhere;
        PeerPath {
            place,
            direct: false,
            send_max,
            eager: limits.eager,
            staging: if near { weft_intranode::staging::largest(limits.staging) } else { 0 },
            synchronous: near,
            threads_each: limits.threads_each(),
            distance: CacheDistance::Shared,
            writes: limits.rendezvous == crate::Rendezvous::Write,
            asked: limits.protocol,
        }
    }
}

/// Properties of a message on which its protocol depends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageCase {
    /// Length of the payload, in bytes.
    pub bytes: usize,
    /// Pattern of communication around this message.
    pub pattern: TransferPattern,
    /// The path from the sender to the receiver.
    pub path: PeerPath,
}

/// Work of the two ends in a protocol, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ProtocolWork {
    /// Time of the sender's processor: copies, calls, messages.
    pub sender: f64,
    /// Time of the receiver's processor: copies, calls, messages.
    pub receiver: f64,
    /// Time in which both ends wait for cache lines of each other, before the payload has arrived.
    pub latency: f64,
    /// Number of parts of the payload if both ends work at the same time, each on another part; 1 if the ends work one after the
    /// other.
    pub parts: u32,
    /// Number of times that one end waits for the other to be scheduled.
    pub turns: u32,
}

impl ProtocolWork {
    /// Returns the time, in nanoseconds, until the payload of `case` has arrived. If the pattern has several payloads, returns the
    /// time until the last payload has arrived.
    pub fn time(&self, model: &CopyModel, case: &MessageCase) -> f64 {
        let (sender, receiver) = match case.pattern {
            TransferPattern::OneToMany => (SEVERAL * self.sender, self.receiver),
            TransferPattern::ManyToOne => (self.sender, SEVERAL * self.receiver),
            _ => (self.sender, self.receiver),
        };
        let exchanges = case.is_exchanged();
        if case.path.threads_each > 1 {
            let shared = if exchanges { SEVERAL } else { 1.0 };
            return sender + receiver + model.switch * f64::from(self.turns) / shared;
        }
        if exchanges {
            return self.latency + sender + receiver;
        }
        let overlapped = sender.max(receiver) + sender.min(receiver) / f64::from(self.parts);
        self.latency + overlapped
    }
}

impl MessageCase {
    /// Returns the time until a cache line that one end has written is at the other end. This is the cost of a message without its
    /// payload.
    fn line(&self, model: &CopyModel) -> f64 {
        model.line.at(self.path.distance)
    }

    /// Returns the time to copy `len` bytes that the other end has written. If few threads take turns on a processor, the bytes are
    /// still in the other end's cache. Otherwise the bytes may have left the other end's private cache.
    fn fetch(&self, model: &CopyModel, len: usize) -> f64 {
        match self.path.place {
            Locality::Here => model.copy(len),
            _ if self.is_out_of_cache(model) => {
                (model.memory * len as f64).max(model.fetch(len, self.path.distance))
            }
            _ => model.fetch(len, self.path.distance),
        }
    }

    /// Returns the time to copy `len` bytes to memory that the other end has read.
    fn rewrite(&self, model: &CopyModel, len: usize) -> f64 {
        match self.path.place {
            Locality::Here => model.copy(len),
            _ => model.rewrite_for_one(len, self.path.distance),
        }
    }

    /// Returns the time to read or write `len` bytes of the other end's own memory.
    fn direct(&self, model: &CopyModel, len: usize) -> f64 {
        let call = model.cma(len, self.path.distance) - model.fetch(len, self.path.distance);
        let call = if self.path.place == Locality::Here { 0.0 } else { call };
        call + self.fetch(model, len)
    }

    /// Returns the time that the receiver needs in addition to a plain copy, because it writes to cache lines that the sender's
    /// cache still has.
    fn stolen(&self, model: &CopyModel) -> f64 {
        match self.pattern {
            TransferPattern::Forwarded => self.rewrite(model, self.bytes) - model.copy(self.bytes),
            _ => 0.0,
        }
        .max(0.0)
    }

    /// Returns true if the payloads of all threads that share a processor, at both ends, exceed the processor's private cache.
    fn is_out_of_cache(&self, model: &CopyModel) -> bool {
        let each = self.path.threads_each as usize;
        each > 1 && self.bytes.saturating_mul(2 * each) > model.private
    }

    /// Returns true if the processors of both ends also work on other messages. Where an adapter moves payloads, the processors have
    /// nothing to do.
    fn is_exchanged(&self) -> bool {
        self.pattern == TransferPattern::Exchange && self.path.place == Locality::SameNode
    }

    /// Returns `Ok` if the payload may be offered (rendezvous), else the reason why it may not be offered.
    fn is_offered(&self) -> Result<(), &'static str> {
        match self.path {
            path if !path.synchronous && self.bytes <= path.eager_max() => {
                Err("it is short enough to be sent at once")
            }
            _ if self.bytes == 0 => Err("there is nothing to move"),
            _ => Ok(()),
        }
    }
}

/// First step of the sender of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SendStart {
    /// Sends the payload with its envelope, if the credit covers the payload.
    WithEnvelope,
    /// Copies the payload to a place of the staging memory, and offers the place.
    Staging,
    /// Offers the address of the payload.
    OfferMemory,
    /// Sends an offer without an address, because this process will write the payload.
    OfferToWrite,
}

/// An entry in the table of protocols. Each protocol has its entry in its own file.
pub(crate) struct ProtocolEntry {
    protocol: MessageProtocol,
    /// Name for settings and reports, in lower case.
    name: &'static str,
    /// Description in words.
    about: &'static str,
    /// Tests whether the protocol is eligible. The error is the reason in words.
    eligible: fn(&MessageCase) -> Result<(), &'static str>,
    /// Returns the work in a case for which the protocol is eligible.
    work: fn(&CopyModel, &MessageCase) -> ProtocolWork,
    start: SendStart,
}

/// The table of protocols, by [`MessageProtocol`].
const PROTOCOLS: &[ProtocolEntry; MessageProtocol::ALL.len()] = &[
    eager::ENTRY,
    rendezvous_staged::ENTRY,
    rendezvous_read::ENTRY,
    co_copy::ENTRY,
    rendezvous_write::ENTRY,
    rendezvous_pieces::ENTRY,
];

const _: () = {
    let mut at = 0;
    while at < PROTOCOLS.len() {
        assert!(PROTOCOLS[at].protocol as usize == at, "the table is in the order of the variants");
        assert!(
            MessageProtocol::ALL[at] as usize == at,
            "the list is in the order of the variants"
        );
        at += 1;
    }
};

impl MessageProtocol {
    fn entry(self) -> &'static ProtocolEntry {
        &PROTOCOLS[self as usize]
    }

    /// Returns the name for settings and reports, in lower case.
    pub fn name(self) -> &'static str {
        self.entry().name
    }

    /// Returns a description in words.
    pub fn about(self) -> &'static str {
        self.entry().about
    }

    /// Returns the first step of the sender.
    pub(crate) fn start(self) -> SendStart {
        self.entry().start
    }

    /// Tests whether the protocol is eligible for `case`. The error is the reason in words.
    pub fn eligible(self, case: &MessageCase) -> Result<(), &'static str> {
        (self.entry().eligible)(case)
    }

    /// Returns the work in a case for which the protocol is eligible.
    pub fn work(self, model: &CopyModel, case: &MessageCase) -> ProtocolWork {
        (self.entry().work)(model, case)
    }

    /// Returns the cost in nanoseconds, or the reason why the protocol is not eligible.
    pub fn cost(self, model: &CopyModel, case: &MessageCase) -> Result<f64, &'static str> {
        self.eligible(case).map(|()| self.work(model, case).time(model, case))
    }
}

/// Returns the cheapest protocol among `these` that is eligible for `case`, or `None` if no protocol is eligible.
fn cheapest(
    model: &CopyModel,
    case: &MessageCase,
    these: &[MessageProtocol],
) -> Option<MessageProtocol> {
    let asked = case.path.asked.filter(|p| these.contains(p) && p.eligible(case).is_ok());
    if asked.is_some() {
        return asked;
    }
    let able = these.iter().filter_map(|&p| p.cost(model, case).ok().map(|cost| (p, cost)));
    // If costs are equal, the first protocol is taken.
    able.reduce(|best, next| if next.1 < best.1 { next } else { best }).map(|(p, _)| p)
}

/// Returns the protocol that the sender chooses for a message.
pub fn choose(model: &CopyModel, case: &MessageCase) -> MessageProtocol {
    cheapest(model, case, &MessageProtocol::ALL).expect("every payload can be sent in pieces")
}

/// Returns the sender's choices by size, in ascending order. Each choice holds for sizes up to and including its limit in bytes,
/// and the last choice holds for all larger sizes.
pub fn limits(
    model: &CopyModel,
    path: PeerPath,
    pattern: TransferPattern,
) -> Vec<(usize, MessageProtocol)> {
    table::Ranges::of(model, path, pattern, choose).steps().to_vec()
}

/// Returns the receiver's choice for an offered payload that the receiver can read.
pub fn choose_to_fetch(model: &CopyModel, case: &MessageCase) -> MessageProtocol {
    cheapest(model, case, &[MessageProtocol::Read, MessageProtocol::CoCopy])
        .unwrap_or(MessageProtocol::Read)
}

// Skipped under Miri, because the tests are long and only arithmetic.
#[cfg(all(test, not(miri)))]
mod tests;
