//! The matching spaces of a communicator, and the tags of its collective operations.
//!
//! ```text
//!   context        number of the communicator x 2, messages        + 1, collective operations
//!   tag            of a collective operation: 27 bits of its number, kind of its context, and a bit for messages between groups
//! ```

use std::cell::Cell;
use weft_collective::hierarchy::LEVELS;
use weft_p2p::MatchingContext;

/// Bit that is set in the contexts of handshakes and partitions of partitioned communication. Only lower bits hold a rank.
pub const PARTITIONED: u64 = 1 << 63;

/// Mask of the number of an operation. The rest of the tag distinguishes operations that are under way at the same time.
const NUMBERS: i32 = (1 << 27) - 1;
/// Bit of the numbers of nonblocking operations.
const NONBLOCKING: i32 = 1 << 27;
/// Bit of the numbers of persistent operations, which are numbered in the order of their initializations.
const PERSISTENT: i32 = 1 << 28;
/// Bit of messages between the groups of an intercommunicator.
const BRIDGE: i32 = 1 << 29;

/// Operations that use a communicator, or a view of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OperationKind {
    /// Blocking operations, and all other operations that run in the order of the calls.
    Blocking,
    /// Nonblocking operations.
    Nonblocking,
    /// One persistent operation, which was initialized after this number of other persistent operations.
    Persistent(usize),
}

/// The matching spaces of one communicator, or of a view of it.
pub struct CommSpace {
    /// Number of the communicator.
    pub id: u64,
    /// Operations that use this view of the communicator.
    pub operations: OperationKind,
    /// Number of the next collective operation.
    next: Cell<u32>,
}

impl CommSpace {
    pub fn new(id: u64, operations: OperationKind) -> CommSpace {
        CommSpace { id, operations, next: Cell::new(0) }
    }

    /// Returns the matching space of messages.
    #[inline]
    pub fn messages(&self) -> MatchingContext {
        MatchingContext(self.id << 1)
    }

    /// Returns the matching space of collective operations.
    #[inline]
    pub fn collectives(&self) -> MatchingContext {
        MatchingContext(self.id << 1 | 1)
    }

    /// Returns true if `context` belongs to the communicator.
    pub fn owns(&self, context: MatchingContext) -> bool {
        (context.0 & !(PARTITIONED | LEVELS)) >> 1 == self.id
    }

    /// Returns the tag of the next collective operation.
    #[inline]
    pub fn next_tag(&self) -> i32 {
        let number = self.next.get();
        self.next.set(number.wrapping_add(1));
        let number = (number & NUMBERS as u32) as i32;
        match self.operations {
            OperationKind::Blocking => number,
            OperationKind::Nonblocking => number | NONBLOCKING,
            OperationKind::Persistent(initialized) => initialized as i32 & NUMBERS | PERSISTENT,
        }
    }

    /// Returns the tag of messages between the groups, in the operation with `tag`.
    #[inline]
    pub fn bridge_tag(tag: i32) -> i32 {
        tag | BRIDGE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operations_under_way_at_once_have_different_tags() {
        let kinds = [OperationKind::Blocking, OperationKind::Nonblocking];
        let kinds = kinds.into_iter().chain([0, 7].map(OperationKind::Persistent));
        let spaces: Vec<_> = kinds.map(|kind| CommSpace::new(5, kind)).collect();
        let first: Vec<i32> = spaces.iter().map(CommSpace::next_tag).collect();
        let second: Vec<i32> = spaces.iter().map(CommSpace::next_tag).collect();
        assert_eq!(first, [0, NONBLOCKING, PERSISTENT, PERSISTENT | 7]);
        assert_eq!(second, [1, NONBLOCKING | 1, PERSISTENT, PERSISTENT | 7]);
        assert!(first.iter().all(|&tag| tag & BRIDGE == 0 && CommSpace::bridge_tag(tag) > tag));
    }

    #[test]
    fn a_space_owns_its_contexts() {
        let space = CommSpace::new(5, OperationKind::Blocking);
        let (messages, collectives) = (space.messages(), space.collectives());
        assert!(messages != collectives && space.owns(messages) && space.owns(collectives));
        assert!(space.owns(MatchingContext(messages.0 | PARTITIONED)));
        assert!(!space.owns(MatchingContext(6 << 1)));
    }
}
