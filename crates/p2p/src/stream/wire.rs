//! Wire format: the 24-byte head of every message of a stream, and small payloads of numbers.
//!
//! ```text
//!   word 0   kind (8) | count (8) | mode (8) | unused (8) | tag or request (32)
//!   word 1, 2   by kind, see [`StreamKind`]
//! ```

use crate::message::MessageTarget;
use weft_fabric::{Fabric, FabricExt, Head, PostOutcome, RemoteAddr, Sge, coded_enum};

coded_enum! {
    /// Kinds of message. The numbers of these kinds lie above the numbers of point-to-point messages.
    pub enum StreamKind {
        /// A small message with its whole payload. Tag; word 1: context.
        Small = 0x60,
        /// Announcement of a message, with a request for places: the early request. Tag, mode, count of segments that go into
        /// places granted in advance; word 1: context; word 2: request of the sender. Payload: length, the places granted in
        /// advance, bytes of a piece.
        Open = 0x61,
        /// Address of a chunk of places. Word 1: number of the chunk. Payload: address of the chunk.
        Chunk = 0x62,
        /// Places for a message's next segments: request of the sender (or [`STANDING`]), count; word 1: places; word 2: stamp of
        /// the places.
        Grant = 0x63,
        /// A place for a message's next block. Request of the sender; word 1: stamp; word 2: number of the
        /// block (low half), request of the receiver. Payload: address of the memory, and of the flag.
        Address = 0x64,
        /// Notice that the rest of the message must come in segments. Request of the sender; word 1: offset of the rest.
        Convert = 0x65,
        /// Notice that the sender cannot write this block. Request of the receiver; word 1: number of the block.
        Unable = 0x66,
        /// Notice that the receiver takes no payload, so that the sender ends its send. Carries the request of the sender.
        Finish = 0x67,
        /// Credit. Word 1: total number of small messages that were released so far.
        Credit = 0x68,
        /// Notice that the payload of a relayed message has arrived, and that the sender waits for places. Request of the sender,
        /// as in its Open.
        Ready = 0x69,
    }
}

/// Mark in place of a request. The places are for the next message that is sent.
pub const STANDING: u32 = u32::MAX;

/// Flag in the mode of an Open: the sender does not have the payload yet, because it relays the message.
pub const RELAYED: u8 = 0x80;

/// Maximum number of places that one head names.
pub const PLACES: usize = 4;

/// Returns true if a head belongs to a stream.
#[inline]
pub fn is_ours(head: &Head) -> bool {
    StreamKind::of_code(head.0[0] as u8).is_some()
}

/// An arrived message of a stream.
#[derive(Debug, Clone, Copy)]
pub struct StreamMessage {
    /// Sender's rank in the fabric.
    pub peer: usize,
    pub note: Note,
    pub payload: Sge,
}

/// A decoded head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Note {
    pub kind: StreamKind,
    pub count: u8,
    pub mode: u8,
    /// Tag, or a request of the receiving process.
    pub low: u32,
    pub first: u64,
    pub second: u64,
}

impl Note {
    pub fn new(kind: StreamKind, low: u32, first: u64, second: u64) -> Note {
        Note { kind, count: 0, mode: 0, low, first, second }
    }

    /// Returns the first head of a message to `to`.
    pub fn to(kind: StreamKind, to: MessageTarget, second: u64) -> Note {
        Note::new(kind, to.tag as u32, to.context.0, second)
    }

    pub fn encode(self) -> Head {
        let word = self.kind as u64
            | u64::from(self.count) << 8
            | u64::from(self.mode) << 16
            | u64::from(self.low) << 32;
        Head([word, self.first, self.second])
    }

    pub fn decode(head: Head) -> Option<Note> {
        let [word, first, second] = head.0;
        let (count, mode, low) = ((word >> 8) as u8, (word >> 16) as u8, (word >> 32) as u32);
        Some(Note { kind: StreamKind::of_code(word as u8)?, count, mode, low, first, second })
    }

    /// Sends the head with a few words, which the fabric copies at once. Also wakes the peer's helper.
    pub fn send<F: Fabric>(self, fabric: &F, peer: usize, words: &[u64]) {
        let mut bytes = [0; 8 * WORDS];
        for (at, word) in bytes.chunks_exact_mut(8).zip(words) {
            at.copy_from_slice(&word.to_ne_bytes());
        }
        // SAFETY: `bytes` holds `8 * words.len()` bytes and outlives the call, and `send_solicited` copies an inline
        // payload before it returns.
        let payload = unsafe { Sge::new(bytes.as_mut_ptr(), 8 * words.len()) };
        let posted = fabric.send_solicited(peer, self.encode(), payload, None);
        debug_assert_eq!(posted, PostOutcome::Done, "an inline payload is copied at once");
    }
}

/// Maximum number of words of a payload: every fabric copies this many words inline.
const WORDS: usize = 2 * RemoteAddr::WORDS;

/// Reads the words of a payload. Returns `None` if the payload has fewer words.
pub fn words<const N: usize>(payload: Sge) -> Option<[u64; N]> {
    let mut bytes = [0; 8 * WORDS];
    let len = 8 * N;
    if payload.len() < len {
        return None;
    }
    payload.part(0, len).read(&mut bytes[..len]);
    let word = |i: usize| u64::from_ne_bytes(bytes[8 * i..][..8].try_into().expect("8 bytes"));
    Some(std::array::from_fn(word))
}

/// Packs numbers of places into one word.
pub fn pack(places: &[u16]) -> u64 {
    places.iter().rev().fold(0, |word, &place| word << 16 | u64::from(place))
}

/// Returns number `i` of a packed word.
pub fn unpack(word: u64, i: usize) -> u16 {
    (word >> (16 * i)) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_decode_to_what_was_encoded_and_nothing_else_is_ours() {
        for kind in [StreamKind::Small, StreamKind::Open, StreamKind::Address, StreamKind::Credit] {
            let note =
                Note { kind, count: 3, mode: 2, low: u32::MAX - 1, first: 5, second: u64::MAX };
            assert!(is_ours(&note.encode()));
            assert_eq!(Note::decode(note.encode()), Some(note));
        }
        for byte in (0..0x60).chain(0x6a..256) {
            assert_eq!(Note::decode(Head([byte, 0, 0])), None);
        }
    }

    #[test]
    fn places_are_unpacked_in_their_order() {
        let word = pack(&[7, 0, u16::MAX]);
        assert_eq!([0, 1, 2, 3].map(|i| unpack(word, i)), [7, 0, u16::MAX, 0]);
    }
}
