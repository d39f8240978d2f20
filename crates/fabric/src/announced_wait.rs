//! Waits that a process in virtual time announces before it sleeps, so that the simulation need not run the process for each arrival.
//!
//! An arrival is quiet if the process only copies and matches the message: the process posts nothing, and its wait goes on. The
//! simulation lets the time of this work pass without running the process. Later the simulation shows all arrivals to the process, and the
//! process handles them in no further time.
//!
//! An announcement may be missing, and a quiet arrival need not be announced as quiet. But if the process would post something, or end
//! its wait, the arrival must not be announced as quiet.

use crate::{Counter, Head};

/// A set of heads: those that equal `head` in all bits of `mask`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct HeadPattern {
    /// The bits.
    pub head: Head,
    /// The bits that are compared.
    pub mask: Head,
}

impl HeadPattern {
    /// Returns true if `head` belongs to the set.
    pub fn contains(&self, head: &Head) -> bool {
        (0..3).all(|word| (head.0[word] ^ self.head.0[word]) & self.mask.0[word] == 0)
    }
}

/// A posted receive, as an announcement describes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AwaitedMessage {
    /// The sender's rank in the fabric; `None` for any.
    pub from: Option<usize>,
    /// Heads of the messages that complete the receive.
    pub pattern: HeadPattern,
    /// Maximum payload in bytes with which the message is quiet: the process copies the payload, and advances `counter` by one. `None`
    /// if no message is quiet.
    pub quiet: Option<usize>,
    /// Counter of the receive.
    pub counter: Counter,
}

/// A counter for which a process waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AwaitedCounter {
    /// The counter.
    pub counter: Counter,
    /// The immediate whose arrivals the counter counts, if it counts any.
    pub immediate: Option<u32>,
    /// Number by which the counter has to advance.
    pub missing: u64,
    /// True if the process does the work [`Match`](crate::Work::Match) once this counter and all counters before it in the list have
    /// advanced.
    pub matches: bool,
}

/// A wait for all of several counters. The process does not act when a peer writes to its memory.
#[derive(Debug, Clone, Copy)]
pub struct AnnouncedWait<'w> {
    /// All posted receives, in the order of posting. A message completes the first receive that it fits.
    pub messages: &'w [AwaitedMessage],
    /// Messages that fit no posted receive and that the process copies and keeps.
    pub kept: HeadPattern,
    /// The counters, in the order in which the process looks at them.
    pub counters: &'w [AwaitedCounter],
    /// True if the process acts when any counter advances.
    pub acts: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_bits_of_the_mask_are_compared() {
        let pattern = HeadPattern { head: Head([0x12, 7, 3]), mask: Head([0xff, u64::MAX, 0xff]) };
        assert!(pattern.contains(&Head([0xab12, 7, 0x103])));
        assert!(!pattern.contains(&Head([0x13, 7, 3])));
        assert!(!pattern.contains(&Head([0x12, 1 << 40 | 7, 3])));
        assert!(HeadPattern::default().contains(&Head([1, 2, 3])));
    }
}
