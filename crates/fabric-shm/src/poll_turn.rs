//! Order in which a rank looks into its boxes.

use std::cell::Cell;

/// Maximum number of successive messages from one box while other boxes may have messages.
const BATCH: u32 = 32;

/// The box that had the last message, and the box where the next search begins.
#[derive(Default)]
pub(crate) struct PollTurn {
    next: Cell<usize>,
    last: Cell<usize>,
    /// Number of messages that the last box may deliver before the next search.
    left: Cell<u32>,
}

impl PollTurn {
    /// Returns the peer of the last box if its batch goes on. Then the caller looks into this box without a search.
    #[inline(always)]
    pub fn goes_on(&self) -> Option<usize> {
        let left = self.left.get();
        if left == 0 {
            return None;
        }
        self.left.set(left - 1);
        Some(self.last.get())
    }

    /// Ends the batch of a box.
    #[inline(always)]
    pub fn end_batch(&self) {
        self.left.set(0);
    }

    /// Returns the peer with which a search begins.
    pub fn next(&self) -> usize {
        self.next.get()
    }

    /// Begins the batch of a peer in whose box a search has found a message. `end`: the largest number of a peer, plus one.
    pub fn begin_batch(&self, peer: usize, end: usize) {
        self.next.set(if peer + 1 == end { 0 } else { peer + 1 });
        self.last.set(peer);
        self.left.set(BATCH - 1);
    }
}
