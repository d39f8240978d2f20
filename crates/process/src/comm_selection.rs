//! Last choices of algorithms on a communicator.

use std::cell::{Cell, OnceCell};
use weft_collective::selection_key::Near;
use weft_collective::{AlgorithmChoice, CallKey, CollectiveKind, RankPlacement};

/// The last choice for each operation of a communicator, since programs repeat their calls.
#[derive(Default)]
pub struct RecentChoices {
    /// Placement of the communicator's ranks.
    site: OnceCell<RankPlacement>,
    /// Last choice by operation. Each choice is boxed, because most communicators use few operations, and a simulated world has
    /// very many communicators.
    recent: [OnceCell<Box<Cell<Option<RecentChoice>>>>; CollectiveKind::ALL.len()],
}

/// A choice, and the call for which it was made.
#[derive(Clone, Copy)]
struct RecentChoice {
    asked: CallKey,
    near: Near,
    choice: AlgorithmChoice,
}

impl RecentChoices {
    /// Returns the placement of the ranks. The first call gets the placement from `find`.
    pub fn site(&self, find: impl FnOnce() -> RankPlacement) -> RankPlacement {
        *self.site.get_or_init(find)
    }

    /// Returns the last choice for an operation, if the choice was made for the same call.
    #[inline]
    pub fn last(
        &self,
        operation: CollectiveKind,
        asked: CallKey,
        near: Near,
    ) -> Option<AlgorithmChoice> {
        let last = self.recent[operation as usize].get().and_then(|last| last.get());
        last.filter(|last| last.asked == asked && last.near == near).map(|last| last.choice)
    }

    /// Keeps a choice as the last choice for an operation.
    pub fn keep(
        &self,
        operation: CollectiveKind,
        asked: CallKey,
        near: Near,
        choice: AlgorithmChoice,
    ) {
        let recent = self.recent[operation as usize].get_or_init(Box::default);
        recent.set(Some(RecentChoice { asked, near, choice }));
    }

    /// Forgets all choices, because the rules for choices have changed.
    pub fn forget(&self) {
        self.recent.iter().filter_map(OnceCell::get).for_each(|last| last.set(None));
    }
}
