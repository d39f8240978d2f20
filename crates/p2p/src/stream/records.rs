//! Records of sends and receives.

use super::Mode;
use super::pool::SegmentSlot;
use crate::message::MessageTarget;
use std::collections::VecDeque;
use weft_fabric::{Region, Sge, Staging};

/// A send under way.
#[derive(Default)]
pub struct Send {
    /// Request of the operation.
    pub request: u32,
    pub to: MessageTarget,
    pub data: Sge,
    pub mode: Mode,
    /// Offset at which the pieces begin. The bytes before were sent in blocks.
    pub base: usize,
    /// Length of a piece in bytes.
    pub unit: usize,
    /// Number of pieces, and index of the next piece to write.
    pub pieces: usize,
    pub next: usize,
    /// Number of bytes, from the start, that may be sent. Less than the whole length as long as a relayed payload is still
    /// arriving.
    pub ready: usize,
    /// `held`: true if the send is held back behind other sends. `come`: true if the whole relayed payload has arrived.
    pub held: bool,
    pub come: bool,
    /// Granted places that have not been written yet.
    pub places: VecDeque<SegmentSlot>,
    /// Number of writes under way.
    pub flying: usize,
    /// The block that was exposed in advance, with its number.
    pub exposed: Option<(usize, Region)>,
    /// The receiver's request, once it is known.
    pub remote: u32,
    /// True if the send is in the backlog.
    pub waits: bool,
    /// True if a block could not be written. Addresses that the receiver sent before it learned of this are ignored.
    pub unable: bool,
    /// True if the relayed payload was not here when the send was announced, and the receiver has not been notified yet that the
    /// payload has arrived.
    pub relayed: bool,
    /// True if the send is under way.
    pub live: bool,
    /// True as long as the receive whose message this send relays may still use this record.
    pub fed: bool,
}

/// Memory in which the next piece will land.
#[derive(Clone, Copy)]
pub enum Landing {
    /// A place that was granted in advance (`stood` is true), or for this message.
    SegmentSlot {
        place: u16,
        stood: bool,
    },
    Block {
        flag: u16,
        stamp: u64,
        region: Region,
    },
}

/// A receive, or a message that arrived before its receive.
#[derive(Default)]
pub struct StreamReceive {
    /// Request of the operation, once there is one.
    pub request: u32,
    pub peer: u32,
    pub buffer: Sge,
    /// Length of the message.
    pub len: usize,
    /// The sender's request.
    pub remote: u32,
    pub mode: Mode,
    pub base: usize,
    pub unit: usize,
    pub pieces: usize,
    /// Number of pieces that got a place, and number of pieces that were taken.
    pub granted: usize,
    pub drained: usize,
    pub landings: VecDeque<Landing>,
    /// Payload of a small message that arrived early.
    pub saved: Option<Staging>,
    /// Sends that relay the message.
    pub children: Vec<u32>,
    /// True if the receive has no place, and waits for one.
    pub hungry: bool,
    /// True if the sender relays a payload that it does not have yet. Then the receive gets no place of the half that
    /// is reserved for senders that fill places at once.
    pub idle: bool,
    /// True if the receive is not complete.
    pub live: bool,
    /// True if segments follow instead of blocks, once the blocks under way have arrived.
    pub converts: bool,
}

impl StreamReceive {
    /// Returns the number of bytes of the message that do not fit the buffer.
    pub fn lost(&self) -> u64 {
        self.len.saturating_sub(self.buffer.len()) as u64
    }
}
