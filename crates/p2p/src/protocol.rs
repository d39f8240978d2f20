//! How a message goes: for which cases each protocol is eligible, what it costs by the model of the machine, and which is the
//! cheapest.
//!
//! ```text
//!   eager     with its envelope                    the receiver's ring is written and read, one after the other
//!   staged    through memory that both see         both copy at the same time, in parts; the sender waits for nobody
//!   read      the receiver reads it                one copy, by a system call on one machine
//!   co-copy   both ends copy pieces of it          the same, by two processors
//!   written   the sender writes it                 one copy, by the sender, once the receiver has said where
//!   pieces    in messages                          where the sender's memory cannot be read
//! ```
//! Choosing is arithmetic on a [`MessageCase`]: no state, no clock, no fabric. An endpoint makes tables of it (`table.rs`) for each kind
//! of peer that it has, so that a message costs a comparison with its size.
//!
//! Source of the form: a cost for each protocol and a choice by size, as in UCX (Shamis et al. 2015).

pub(crate) mod co_copy;
pub(crate) mod eager;
pub(crate) mod ends;
pub(crate) mod operations;
pub(crate) mod peers;
pub(crate) mod pieces;
mod read;
pub(crate) mod rendezvous;
mod staged;
mod striped;
mod table;
pub(crate) mod transfers;
pub(crate) mod written;

pub use crate::message::{MessageProtocol, TransferPattern};
use weft_fabric::{CacheDistance, Capabilities, CopyModel};

/// The others that [`TransferPattern::OneToMany`] and [`TransferPattern::ManyToOne`] speak of, with this one: the fewest that are several.
const SEVERAL: f64 = 2.0;

/// Where the other end of a message is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Locality {
    /// It is this process.
    Here,
    /// Processors copy to and from what both see.
    SameNode,
    /// On another node, or behind a fabric whose operations this processor does not carry out.
    Elsewhere,
}

/// What is known of the way to a peer. Sizes in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeerPath {
    /// Decides which protocols are possible at all.
    pub place: Locality,
    /// All of its memory can be read and written from here.
    pub direct: bool,
    /// Largest payload of one message of the fabric.
    pub send_max: usize,
    /// Largest payload that may be sent at once.
    pub eager: usize,
    /// Largest payload that finds a place to be staged; 0: there is no staging memory.
    pub staging: usize,
    /// Ranks that take turns on a processor; 1: each has its own.
    pub ranks_each: u32,
    /// How far its processor's caches are taken to be from this one's.
    pub distance: CacheDistance,
    /// Who offers a payload wants to write it.
    pub writes: bool,
    /// Taken for all that it is eligible for, whatever it costs.
    pub asked: Option<MessageProtocol>,
}

impl PeerPath {
    /// From rank `me` to `peer`, which a fabric reaches so.
    pub fn new(
        (me, peer): (usize, usize),
        to: &Capabilities,
        limits: &crate::ProtocolLimits,
        model: &CopyModel,
    ) -> PeerPath {
        let place = match to.synchronous && to.coherent_atomics {
            true if me == peer => Locality::Here,
            true => Locality::SameNode,
            false => Locality::Elsewhere,
        };
        let path = PeerPath::at(place, to.direct, to.send_max, limits);
        path.with_round_trip(to.round_trip, limits, model)
    }

    /// Where a question and its answer take so many nanoseconds: more is sent at once, unless `limits` fix it.
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

    /// To a peer that is there, and whose memory may be reached.
    pub fn at(
        place: Locality,
        direct: bool,
        send_max: usize,
        limits: &crate::ProtocolLimits,
    ) -> PeerPath {
        let near = place != Locality::Elsewhere;
        PeerPath {
            place,
            direct,
            send_max,
            eager: limits.eager,
            staging: if near { weft_intranode::staging::largest(limits.staging) } else { 0 },
            ranks_each: limits.ranks_each.max(1),
            distance: CacheDistance::Shared,
            writes: limits.rendezvous == crate::Rendezvous::Write,
            asked: limits.protocol,
        }
    }
}

/// A message, as far as its protocol depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageCase {
    /// Length of the payload.
    pub bytes: usize,
    /// What the sender or receiver does beside this message.
    pub pattern: TransferPattern,
    /// The way from the sender to the receiver.
    pub path: PeerPath,
}

/// What a protocol makes the two ends do, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ProtocolWork {
    /// Of the sender's processor: copies, calls, messages.
    pub sender: f64,
    /// Of the receiver's processor: copies, calls, messages.
    pub receiver: f64,
    /// Until the payload is there both wait so long for lines of each other.
    pub latency: f64,
    /// Both work at the same time, in so many parts; 1: one after the other.
    pub parts: u32,
    /// So often one end waits for the other to come to it.
    pub turns: u32,
}

impl ProtocolWork {
    /// Nanoseconds until the payload of `case` is where it belongs; of several, until the last is.
    pub fn time(&self, model: &CopyModel, case: &MessageCase) -> f64 {
        let (sender, receiver) = match case.pattern {
            TransferPattern::OneToMany => (SEVERAL * self.sender, self.receiver),
            TransferPattern::ManyToOne => (self.sender, SEVERAL * self.receiver),
            _ => (self.sender, self.receiver),
        };
        if case.path.ranks_each > 1 {
            return sender + receiver + model.switch * f64::from(self.turns);
        }
        let overlapped = sender.max(receiver) + sender.min(receiver) / f64::from(self.parts);
        self.latency + overlapped
    }
}

impl MessageCase {
    /// The time of a line from one end to the other, which is what a message costs beside its payload.
    fn line(&self, model: &CopyModel) -> f64 {
        model.line.at(self.path.distance)
    }

    /// To copy `len` bytes that the other end has, or wrote a while ago. Where many take turns on a processor they
    /// are out of its own cache by then.
    fn fetch(&self, model: &CopyModel, len: usize) -> f64 {
        match self.path.place {
            Locality::Here => model.copy(len),
            _ if self.is_out_of_cache(model) => {
                (model.memory * len as f64).max(model.fetch(len, self.path.distance))
            }
            _ => model.fetch(len, self.path.distance),
        }
    }

    /// To copy `len` bytes to memory that the other end has read.
    fn rewrite(&self, model: &CopyModel, len: usize) -> f64 {
        match self.path.place {
            Locality::Here => model.copy(len),
            _ => model.rewrite_for_one(len, self.path.distance),
        }
    }

    /// To read or write `len` bytes of the other end's own memory.
    fn direct(&self, model: &CopyModel, len: usize) -> f64 {
        let call = model.cma(len, self.path.distance) - model.fetch(len, self.path.distance);
        let call = if self.path.place == Locality::Here { 0.0 } else { call };
        call + self.fetch(model, len)
    }

    /// What it costs beside a copy that its receiver writes lines that the sender has.
    fn stolen(&self, model: &CopyModel) -> f64 {
        match self.pattern {
            TransferPattern::Forwarded => self.rewrite(model, self.bytes) - model.copy(self.bytes),
            _ => 0.0,
        }
        .max(0.0)
    }

    /// The payloads of all who share a processor, at both ends, are more than its cache has.
    fn is_out_of_cache(&self, model: &CopyModel) -> bool {
        let each = self.path.ranks_each as usize;
        each > 1 && self.bytes.saturating_mul(2 * each) > model.private
    }

    /// Whether payloads beyond what goes at once may be moved this way at all.
    fn is_offered(&self) -> Result<(), &'static str> {
        match self.path.place {
            Locality::Elsewhere if self.bytes <= eager::most(&self.path) => {
                Err("it is short enough to be sent at once")
            }
            _ if self.bytes == 0 => Err("there is nothing to move"),
            _ => Ok(()),
        }
    }
}

impl MessageProtocol {
    /// In words.
    pub fn about(self) -> &'static str {
        match self {
            MessageProtocol::Eager => eager::ABOUT,
            MessageProtocol::Staged => staged::ABOUT,
            MessageProtocol::Read => read::ABOUT,
            MessageProtocol::CoCopy => co_copy::ABOUT,
            MessageProtocol::Written => written::ABOUT,
            MessageProtocol::Pieces => pieces::ABOUT,
        }
    }

    /// Why not, in words.
    pub fn eligible(self, case: &MessageCase) -> Result<(), &'static str> {
        match self {
            MessageProtocol::Eager => eager::eligible(case),
            MessageProtocol::Staged => staged::eligible(case),
            MessageProtocol::Read => read::eligible(case),
            MessageProtocol::CoCopy => co_copy::eligible(case),
            MessageProtocol::Written => written::eligible(case),
            MessageProtocol::Pieces => pieces::eligible(case),
        }
    }

    /// Of a case for which it is eligible.
    pub fn work(self, model: &CopyModel, case: &MessageCase) -> ProtocolWork {
        match self {
            MessageProtocol::Eager => eager::work(model, case),
            MessageProtocol::Staged => staged::work(model, case),
            MessageProtocol::Read => read::work(model, case),
            MessageProtocol::CoCopy => co_copy::work(model, case),
            MessageProtocol::Written => written::work(model, case),
            MessageProtocol::Pieces => pieces::work(model, case),
        }
    }

    /// Nanoseconds, or why not.
    pub fn cost(self, model: &CopyModel, case: &MessageCase) -> Result<f64, &'static str> {
        self.eligible(case).map(|()| self.work(model, case).time(model, case))
    }
}

/// The cheapest protocol for `case` among `these`; `None`: none is eligible.
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
    // The first of equal ones.
    able.reduce(|best, next| if next.1 < best.1 { next } else { best }).map(|(p, _)| p)
}

/// The sender's choice.
pub fn choose(model: &CopyModel, case: &MessageCase) -> MessageProtocol {
    cheapest(model, case, &MessageProtocol::ALL).expect("every payload can be sent in pieces")
}

/// The sender's choices by size: up to and with so many bytes each, ascending; the last for all that is larger.
pub fn limits(
    model: &CopyModel,
    path: PeerPath,
    pattern: TransferPattern,
) -> Vec<(usize, MessageProtocol)> {
    table::Ranges::of(model, path, pattern, choose).steps().to_vec()
}

/// The receiver's choice of what it can read.
pub fn choose_to_fetch(model: &CopyModel, case: &MessageCase) -> MessageProtocol {
    cheapest(model, case, &[MessageProtocol::Read, MessageProtocol::CoCopy])
        .unwrap_or(MessageProtocol::Read)
}

// Numbers alone, and many of them: nothing for Miri.
#[cfg(all(test, not(miri)))]
mod tests;
