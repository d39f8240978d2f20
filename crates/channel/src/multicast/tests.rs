//! Tests of multicast on a host that only hands over arrived messages: without loss, with loss, and explored
//! under many schedules, where planted errors must be found.

mod explored;
mod host;
mod lossy;

use super::datagram::HeadWord;
use super::retransmit_buffer::RetransmitBuffer;

/// Errors that a test plants.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Planted {
    #[default]
    Nothing,
    /// The root keeps one buffer instead of two.
    OneBuffer,
    /// A question is answered from the other buffer.
    WrongBuffer,
    /// A member leaves as soon as it lacks nothing itself.
    NoEnd,
    /// The root treats a broadcast as an operation in which it has heard from all members.
    DeafRoot,
    /// A root that waits for acknowledgements does not repeat.
    NoRepeat,
}

impl Planted {
    pub fn before_send(self, kept: &mut RetransmitBuffer, number: u64) {
        if self == Planted::OneBuffer {
            kept.forget_below(number);
        }
    }

    pub fn question(self, word: HeadWord) -> HeadWord {
        match self {
            Planted::WrongBuffer => HeadWord { number: word.number ^ 1, ..word },
            _ => word,
        }
    }

    pub fn before_wait(self, kept: &mut RetransmitBuffer, number: u64) {
        if self == Planted::NoRepeat {
            kept.end_wait(number, None);
        }
    }

    pub fn leaves_at_once(self) -> bool {
        self == Planted::NoEnd
    }
}
