//! Partitioned communication (MPI 5.0, chapter 4): one message in parts that become ready one by one.
//!
//! ```text
//!   MPI_Psend_init ── handshake: 3 partitions, 12 bytes, context C ──▶ MPI_Precv_init
//!
//!   sender, 3 partitions of 4 bytes             receiver, 2 partitions of 6 bytes
//!     ┌────┐ MPI_Pready(0)
//!     │ 0  │ ─────────── tag 0 in context C ─────▶ bytes 0..4  ┐ partition 0 has arrived when
//!     ├────┤                                                   │ messages 0 and 1 have
//!     │ 1  │ ─────────── tag 1 ──────────────────▶ bytes 4..8  ┤
//!     ├────┤                                                   │ partition 1: messages 1 and 2
//!     │ 2  │ ─────────── tag 2 ──────────────────▶ bytes 8..12 ┘
//!     └────┘
//! ```
//! Each partition of the sender is a message, which leaves when the partition is marked ready. `MPI_Start` of the receiver posts a
//! receive for each message at its place in the buffer. So messages land there directly, eager or by rendezvous, in any order,
//! however the receiver divides the buffer. If the datatype of the receiver has gaps, messages land in staging memory, and are
//! unpacked one by one.
//!
//! Only the handshake lets the two sides find each other. It travels in a matching space of the communicator that only handshakes
//! use, so handshakes of one sender and tag match in the order in which the requests were made. The handshake names the context of
//! the messages, which only this pair uses. So a receive with `MPI_ANY_TAG` in another context takes none of these messages, and
//! the number of a partition is its tag.
//!
//! Cost: one small message when a pair is made, then one message and one posted receive per partition and round. The receive for a
//! partition is found by a search in the order of posting. If many thousand partitions are marked in reverse order, these searches
//! are long.

mod receive;
mod send;

pub use receive::PartitionedReceive;
pub use send::PartitionedSend;

use crate::comm::PARTITIONED;
use crate::{Comm, Error, class};
use weft_fabric::Fabric;
use weft_p2p::MatchingContext;

/// The sender's description of its request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Handshake {
    partitions: usize,
    /// Number of bytes of all partitions together.
    bytes: usize,
    /// Context of the messages.
    context: MatchingContext,
}

impl Handshake {
    const LEN: usize = 24;

    fn encode(self) -> [u8; Handshake::LEN] {
        let mut bytes = [0; Handshake::LEN];
        let words = [self.partitions as u64, self.bytes as u64, self.context.0];
        for (at, word) in bytes.chunks_exact_mut(8).zip(words) {
            at.copy_from_slice(&word.to_ne_bytes());
        }
        bytes
    }

    /// Decodes a handshake. Returns `None` if it is invalid.
    fn decode(bytes: &[u8; Handshake::LEN]) -> Option<Handshake> {
        let word = |i: usize| u64::from_ne_bytes(bytes[8 * i..][..8].try_into().expect("8 bytes"));
        let (partitions, bytes, context) = (word(0), word(1), word(2));
        let sound = (1..=i32::MAX as u64).contains(&partitions)
            && bytes.is_multiple_of(partitions)
            && bytes <= isize::MAX as u64
            && context & PARTITIONED != 0;
        sound.then_some(Handshake {
            partitions: partitions as usize,
            bytes: bytes as usize,
            context: MatchingContext(context),
        })
    }
}

impl<F: Fabric> Comm<F> {
    /// Returns the matching space of handshakes.
    fn handshakes(&self) -> MatchingContext {
        MatchingContext(self.context().0 | PARTITIONED)
    }
}

/// Checks that a partition exists.
fn within(partition: i32, partitions: usize, argument: &str) -> Result<usize, Error> {
    let found = usize::try_from(partition).ok().filter(|&p| p < partitions);
    found.ok_or_else(|| {
        let last = partitions - 1;
        let text = format!("argument {argument} = {partition}: partitions are 0 to {last}");
        Error::new(class::ARG, text)
    })
}

fn not_cancelled() -> Error {
    let text = "partitioned communication cannot be cancelled (MPI 5.0, section 4.2.1)";
    Error::new(class::REQUEST, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handshake_is_read_as_it_was_written_and_nonsense_refused() {
        let context = MatchingContext(PARTITIONED | 77);
        let handshake = Handshake { partitions: 3, bytes: 12, context };
        assert_eq!(Handshake::decode(&handshake.encode()), Some(handshake));
        let empty = Handshake { bytes: 0, ..handshake };
        assert_eq!(Handshake::decode(&empty.encode()), Some(empty));
        let foreign = Handshake { context: MatchingContext(77), ..handshake };
        for wrong in [
            Handshake { partitions: 0, ..handshake },
            Handshake { partitions: 1 << 40, bytes: 0, ..handshake },
            Handshake { bytes: 13, ..handshake },
            foreign,
        ] {
            assert_eq!(Handshake::decode(&wrong.encode()), None, "{wrong:?}");
        }
    }
}
