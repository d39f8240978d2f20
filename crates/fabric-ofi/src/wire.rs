//! Format of the messages of the provider.
//!
//! ```text
//!   0      8      12    13   14        16            40
//!   proof  rank   kind  0    credits   three words   body
//! ```
//! The proof is a keyed hash of sender and receiver, by the secret of the job, or by the secret of a link with another job. The
//! secret itself is never sent. `rank` is the receiver's number for the sender. A message without the proof is dropped before its
//! other fields are read. `credits` is the number of credits that return to the receiver of this message.
//!
//! | kind | words | body |
//! |---|---|---|
//! | message | its head | its payload |
//! | credits | | |
//! | place | reply, tail, value | address of the data, address of the flag, the data |
//! | fetch-add, compare-swap | reply, operand (compare), swap | address of the word |
//! | reply | reply, value, 1 if refused | |
//! | ask | | |
//! | leave | | |
//! | shut | number of a rail | |
//! | part | length of the message, where the part begins | the part |
//!
//! A peer answers `ask` with credits. After `shut`, nothing that came over that rail has an effect any more. `reply` is the
//! ticket of the waiting request at the origin, or 0 if no request waits. `place` is a short write with a flag or an immediate.
//! Because it is one message, it works with providers that keep no order between writes and messages. The target's processor does
//! the atomics, so they are atomic with respect to all other accesses.

use weft_bootstrap::keyed_hash;
use weft_fabric::{RemoteAddr, Sge, coded_enum, put_words, word_at};

/// Size of the header before the body, in bytes.
pub const HEADER: usize = 40;

/// Size of an address in a body, in bytes.
pub const ADDRESS: usize = 8 * RemoteAddr::WORDS;

coded_enum! {
    /// Kind of a message of the provider.
    pub enum OfiMessageKind {
        Message = 1,
        Credits = 2,
        Place = 3,
        FetchAdd = 4,
        CompareSwap = 5,
        Reply = 6,
        Ask = 7,
        Leave = 8,
        Shut = 9,
        Part = 10,
    }
}

/// Value that replaces the receiver's rank in proofs between jobs, because sender and receiver have no common number for the
/// receiver.
pub const FOREIGN: u32 = u32::MAX;

/// Word that makes the hashes of messages differ from other hashes of the same secret.
const MESSAGES: u64 = u64::from_le_bytes(*b"messages");

/// Returns the proof at the beginning of messages from one process to another.
pub fn proof(secret: u128, from: u32, to: u32) -> u64 {
    keyed_hash(secret, (MESSAGES, from, to))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OfiHeader {
    pub proof: u64,
    pub rank: u32,
    pub kind: OfiMessageKind,
    pub credits: u16,
    pub words: [u64; 3],
}

impl OfiHeader {
    pub fn encode(&self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[..8].copy_from_slice(&self.proof.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.rank.to_le_bytes());
        bytes[12] = self.kind as u8;
        bytes[14..16].copy_from_slice(&self.credits.to_le_bytes());
        put_words(&mut bytes[16..], self.words);
        bytes
    }

    /// Decodes a header. Returns `None` if the header is malformed. The caller checks proof and rank.
    pub fn decode(bytes: &[u8; HEADER]) -> Option<OfiHeader> {
        let word = |at| word_at(bytes, at);
        let second = word(8);
        let rank = second as u32;
        let kind = OfiMessageKind::of_code((second >> 32) as u8)?;
        let credits = (second >> 48) as u16;
        Some(OfiHeader {
            proof: word(0),
            rank,
            kind,
            credits,
            words: [word(16), word(24), word(32)],
        })
    }
}

pub fn encode_address(at: RemoteAddr) -> [u8; ADDRESS] {
    let mut bytes = [0; ADDRESS];
    put_words(&mut bytes, at.words());
    bytes
}

/// Returns the address at the start of `body`, or `None` if `body` is too short.
pub fn decode_address(body: Sge) -> Option<RemoteAddr> {
    let mut bytes = [0; ADDRESS];
    if body.len() < ADDRESS {
        return None;
    }
    body.read(&mut bytes);
    Some(address_of(&bytes))
}

/// Decodes an address that [`encode_address`] has encoded.
pub fn address_of(bytes: &[u8; ADDRESS]) -> RemoteAddr {
    RemoteAddr::from_words(std::array::from_fn(|i| word_at(bytes, 8 * i)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proofs_are_of_one_sender_and_one_receiver() {
        let all =
            [proof(7, 1, 2), proof(7, 2, 1), proof(7, 1, 3), proof(7, 1, FOREIGN), proof(8, 1, 2)];
        for (i, one) in all.iter().enumerate() {
            assert!(!all[..i].contains(one) && *one != 7 && *one != 8, "the secret is in none");
        }
        assert_eq!(proof(7, 1, 2), all[0]);
    }

    #[test]
    fn headers_come_back() {
        for kind in (1..=10).filter_map(OfiMessageKind::of_code) {
            let header =
                OfiHeader { proof: 77, rank: 3, kind, credits: 500, words: [1, u64::MAX, 3] };
            assert_eq!(OfiHeader::decode(&header.encode()), Some(header));
        }
    }

    #[test]
    fn what_is_no_header_is_refused() {
        let header = OfiHeader {
            proof: 77,
            rank: 3,
            kind: OfiMessageKind::Leave,
            credits: 0,
            words: [0; 3],
        };
        let bytes = header.encode();
        for kind in [0, OfiMessageKind::Part as u8 + 1, 255] {
            let mut bytes = bytes;
            bytes[12] = kind;
            assert_eq!(OfiHeader::decode(&bytes), None, "no such kind");
        }
    }
}
