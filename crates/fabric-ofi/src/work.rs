//! Operations to post. An operation without room is kept: messages to a peer in one queue, all other operations in another queue.

use crate::address;
use crate::requests::{RemoteTransfer, TransferTail};
use crate::wire::{ADDRESS, HEADER, OfiMessageKind};
use weft_fabric::{Completion, Fault, Head, RemoteAddr, Sge};

/// Maximum payload, in bytes, that is copied when a message has to be kept.
pub const INLINE_MAX: usize = 256;

/// Maximum length of a write that goes as one message with its tail, in bytes. The target's processor copies these bytes a second
/// time.
pub const PLACE_MAX: usize = (8 << 10) - HEADER - 2 * ADDRESS;

/// The payload of a kept message.
pub enum KeptPayload {
    Copied(Box<[u8]>),
    /// Bytes of the caller, which stay until the counter advances.
    Lent(Sge, Completion),
}

/// An operation to post.
pub enum OfiWork {
    Message {
        head: Head,
        payload: KeptPayload,
    },
    /// A short write and its tail. If there is no address, there is only the tail, without data.
    Place {
        src: Box<[u8]>,
        dst: Option<RemoteAddr>,
        tail: TransferTail,
        done: Completion,
    },
    Transfer(RemoteTransfer),
    Atomic {
        kind: OfiMessageKind,
        at: RemoteAddr,
        operands: [u64; 2],
        result: Sge,
        done: Completion,
    },
    Tell {
        kind: OfiMessageKind,
        words: [u64; 3],
    },
}

impl OfiWork {
    /// Returns true if a peer may wait for this operation. No peer waits for credits or for requests for a sign of life, because a
    /// peer that sends nothing more needs neither. Besides, neither can be posted to a peer that has ended.
    pub fn must_leave(&self) -> bool {
        !matches!(self, OfiWork::Tell { kind: OfiMessageKind::Credits | OfiMessageKind::Ask, .. })
    }
}

/// Checks the address of the word that a tail sets.
pub fn check(rank: usize, tail: TransferTail) -> Result<(), Fault> {
    match tail {
        TransferTail::Flag(at, _) => address::decode_word(rank, at).map(|_| ()),
        TransferTail::Immediate(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nobody_lacks_does_not_hold_up_the_end() {
        let tell = |kind| OfiWork::Tell { kind, words: [0; 3] };
        assert!(
            !tell(OfiMessageKind::Ask).must_leave() && !tell(OfiMessageKind::Credits).must_leave()
        );
        assert!(
            tell(OfiMessageKind::Reply).must_leave() && tell(OfiMessageKind::Leave).must_leave()
        );
        let tail = TransferTail::Immediate(1);
        assert!(OfiWork::Place { src: Box::default(), dst: None, tail, done: None }.must_leave());
    }
}
