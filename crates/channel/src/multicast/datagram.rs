//! Wire format: the title (header) of every datagram, and the heads of the messages for repair and acknowledgement.
//!
//! ```text
//!   datagram   context (64) | number (64) | root (32) | length (32) | unit (24) | marks (8)
//!              | segment (24) | magic (8), then up to `unit` bytes of payload
//!   message    kind (8) | segment (24) | sender's place (32)  |  context (64)  |  number (64)
//! ```
//! A repair is either a message whose payload is the datagram, or the datagram multicast again, marked as a repair.

use std::ops::RangeInclusive;
use weft_fabric::{Head, coded_enum, put_words, word_at};

/// Length of a title, in bytes.
pub const HEADER: usize = 32;

/// Kinds of message, in the lowest byte of the head, that belong to multicast.
pub const KINDS: RangeInclusive<u8> = DatagramKind::Nak as u8..=DatagramKind::Close as u8;

const MAGIC: u64 = 0xd7;

/// Maximum value of a number of 24 bits.
pub const MOST_24: u32 = (1 << 24) - 1;

/// Header at the beginning of every datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Title {
    /// Number that distinguishes successive groups.
    pub context: u64,
    pub number: u64,
    /// The sender's place in the group.
    pub root: u32,
    /// Length of the whole payload, in bytes.
    pub len: u32,
    /// Payload of one datagram, in bytes.
    pub unit: u32,
    pub segment: u32,
    /// True if a member acknowledges this number to the root when the number is complete at the member.
    pub marked: bool,
    /// True if the datagram was multicast before.
    pub again: bool,
}

impl Title {
    pub fn encode(self) -> [u8; HEADER] {
        let last = u64::from(self.unit)
            | u64::from(self.marked) << 24
            | u64::from(self.again) << 25
            | u64::from(self.segment) << 32
            | MAGIC << 56;
        let words =
            [self.context, self.number, u64::from(self.root) | u64::from(self.len) << 32, last];
        let mut bytes = [0; HEADER];
        put_words(&mut bytes, words);
        bytes
    }

    /// Decodes a title. Returns `None` if the bytes cannot be a title.
    pub fn decode(bytes: &[u8; HEADER]) -> Option<Title> {
        let word = |i: usize| word_at(bytes, 8 * i);
        let (middle, last) = (word(2), word(3));
        let title = Title {
            context: word(0),
            number: word(1),
            root: middle as u32,
            len: (middle >> 32) as u32,
            unit: last as u32 & MOST_24,
            segment: (last >> 32) as u32 & MOST_24,
            marked: last >> 24 & 1 == 1,
            again: last >> 25 & 1 == 1,
        };
        let sound = last >> 56 == MAGIC
            && last >> 24 & 0xfc == 0
            && title.unit > 0
            && title.segment < title.segments();
        sound.then_some(title)
    }

    /// Returns the number of datagrams that the payload takes. An empty payload takes one.
    pub fn segments(&self) -> u32 {
        self.len.div_ceil(self.unit).max(1)
    }

    /// Returns the place of this segment in the payload: offset and length, in bytes.
    pub fn place(&self) -> (usize, usize) {
        let offset = self.segment as usize * self.unit as usize;
        (offset, (self.len as usize - offset).min(self.unit as usize))
    }
}

coded_enum! {
    /// Kinds of message. The kinds of messages that are matched are below 0x40.
    pub enum DatagramKind {
        /// Question: segments of a number are missing. The payload is a mask of the missing segments, beginning at the segment in
        /// the head.
        Nak = 0x40,
        /// Repair: a datagram, as it was sent before.
        Repair = 0x41,
        /// Acknowledgement: all numbers below the number in the head are complete at the sender.
        Ack = 0x42,
        /// End of the group: the sender and all members from which it has heard lack nothing. The number is the round.
        Close = 0x43,
    }
}

/// A message's head, decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HeadWord {
    pub kind: DatagramKind,
    pub segment: u32,
    /// The sender's place in the group.
    pub place: u32,
    pub context: u64,
    pub number: u64,
}

impl HeadWord {
    pub fn encode(self) -> Head {
        let first = self.kind as u64 | u64::from(self.segment) << 8 | u64::from(self.place) << 32;
        Head([first, self.context, self.number])
    }

    /// Decodes a head. Returns `None` if the kind belongs to another layer.
    pub fn decode(head: Head) -> Option<HeadWord> {
        let [first, context, number] = head.0;
        let kind = DatagramKind::of_code(first as u8)?;
        let segment = (first >> 8) as u32 & MOST_24;
        Some(HeadWord { kind, segment, place: (first >> 32) as u32, context, number })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TITLE: Title = Title {
        context: u64::MAX - 5,
        number: 1 << 40,
        root: 77,
        len: 5000,
        unit: 992,
        segment: 5,
        marked: true,
        again: false,
    };

    #[test]
    fn titles_decode_to_what_was_encoded() {
        let short = Title { marked: false, len: 0, segment: 0, ..TITLE };
        for title in [TITLE, short, Title { again: true, ..short }] {
            assert_eq!(Title::decode(&title.encode()), Some(title));
        }
        assert_eq!((TITLE.segments(), TITLE.place()), (6, (4960, 40)));
    }

    #[test]
    fn what_cannot_be_is_no_title() {
        let bad = [Title { segment: 6, ..TITLE }, Title { unit: 0, len: 0, segment: 0, ..TITLE }];
        for title in bad {
            assert_eq!(Title::decode(&title.encode()), None);
        }
        for (byte, value) in [(31, 0), (27, 4)] {
            let mut bytes = TITLE.encode();
            bytes[byte] = value;
            assert_eq!(Title::decode(&bytes), None, "byte {byte}");
        }
        assert_eq!(Title::decode(&[0; HEADER]), None);
    }

    #[test]
    fn heads_decode_to_what_was_encoded() {
        for kind in
            [DatagramKind::Nak, DatagramKind::Repair, DatagramKind::Ack, DatagramKind::Close]
        {
            let word =
                HeadWord { kind, segment: MOST_24, place: u32::MAX, context: 9, number: 1 << 50 };
            assert_eq!(HeadWord::decode(word.encode()), Some(word));
            assert!(KINDS.contains(&(kind as u8)));
        }
        assert_eq!(HeadWord::decode(Head([1, 0, 0])), None);
    }
}
