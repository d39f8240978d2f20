//! Choices of a communicator: its selection of algorithms, and the last choice for each operation.

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;
use weft_collective::selection_key::Near;
use weft_collective::{AlgorithmChoice, CollectiveKind, RankPlacement, Selection};

/// A communicator's selection, and the last choice for each operation, since programs repeat their calls.
#[derive(Default)]
pub struct Choices {
    pub selection: RefCell<Rc<Selection>>,
    /// Placement of its ranks.
    pub site: OnceCell<RankPlacement>,
    /// Each is boxed: most communicators use few operations, and a simulated world has very many communicators.
    pub recent: [OnceCell<Box<Last>>; CollectiveKind::ALL.len()],
}

/// The last choice for an operation, and the call that it was for.
pub type Last = Cell<Option<(CallKey, Near, AlgorithmChoice)>>;

/// Parameters of a choice, beside the communicator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallKey {
    /// Number of bytes, as [`CollectiveKind::measure`] counts them for the operation.
    pub bytes: usize,
    /// Number of bytes of one element of a reduction; 1 for other operations.
    pub element: usize,
    /// True if the operator of a reduction commutes, and for other operations.
    pub commutes: bool,
    /// True if the blocks of all ranks have one length, and for operations without blocks.
    pub equal: bool,
}

impl CallKey {
    /// Returns the key of an operation that moves data in blocks of one length.
    pub fn of(bytes: usize) -> CallKey {
        CallKey { bytes, element: 1, commutes: true, equal: true }
    }
}
