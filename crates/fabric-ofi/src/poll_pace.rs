//! Polls that are skipped while nothing comes.

use std::cell::Cell;

/// Maximum number of successive polls that are skipped while nothing comes. With some providers a poll is one or two system
/// calls, and a process that waits for a rank of its own node polls millions of times a second.
const REST_MOST: u32 = 16;

/// Number of polls without a result after which one more poll is skipped. So skipping delays an arrival only by a small part of the
/// time that this process has already waited. A skipped poll may take as long as a real poll, because the processor may run other
/// threads in between.
const LOOKS_PER_REST: u32 = 16;

/// Number of polls of the first rail between two polls of the other rails, while this process knows of no transfer under way.
const OTHERS_REST: u32 = 8;

/// Counts of polls.
#[derive(Default)]
pub struct PollPace {
    /// `rest` is the number of polls to skip before the next poll, `vain` the number of successive polls without a result.
    rest: Cell<u32>,
    vain: Cell<u32>,
    /// Number of polls until the next poll of the further rails, while nothing is under way.
    others_rest: Cell<u32>,
}

impl PollPace {
    /// Returns true if the next poll may be skipped.
    #[inline]
    pub fn may_skip(&self) -> bool {
        self.rest.get() > 0
    }

    /// Counts a skipped poll.
    #[inline]
    pub fn skip(&self) {
        self.rest.set(self.rest.get() - 1);
    }

    /// Counts a poll. Returns true if nothing has come for a while.
    #[inline]
    pub fn count(&self, result: PollResult) -> bool {
        let vain = match result {
            PollResult::Moved => 0,
            PollResult::Nothing => self.vain.get().saturating_add(1),
        };
        self.vain.set(vain);
        self.rest.set((vain / LOOKS_PER_REST).min(REST_MOST));
        self.rest.get() >= REST_MOST / 4
    }

    /// Counts a call of this function. Returns true if this time the poll of the further rails is skipped.
    pub fn skips_others(&self) -> bool {
        let rest = self.others_rest.get();
        self.others_rest.set(rest.saturating_sub(1));
        rest > 0
    }

    /// Counts a poll of the further rails.
    pub fn count_others(&self, result: PollResult) {
        self.others_rest.set(if result == PollResult::Moved { 0 } else { OTHERS_REST });
    }
}

/// Result of a round of polls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PollResult {
    Moved,
    Nothing,
}

/// Need for a poll.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PollNeed {
    /// The poll must not be skipped.
    Now,
    /// The poll may be skipped while nothing comes.
    Usual,
}
