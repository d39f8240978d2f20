//! What a communicator has chosen: its selection of algorithms, and the last choice for each operation.

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;
use weft_collective::selection_key::Near;
use weft_collective::{AlgorithmChoice, CollectiveKind, RankPlacement, Selection};

/// A communicator's selection, and the last choice for each operation: programs repeat themselves.
#[derive(Default)]
pub struct Choices {
    pub selection: RefCell<Rc<Selection>>,
    /// Where its ranks are.
    pub site: OnceCell<RankPlacement>,
    /// Boxed one by one: few operations are used on most communicators, of which a simulated world has very many.
    pub recent: [OnceCell<Box<Last>>; CollectiveKind::ALL.len()],
}

/// The last choice for an operation, and what it was for.
pub type Last = Cell<Option<(CallKey, Near, AlgorithmChoice)>>;

/// What a choice depends on beside the communicator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CallKey {
    /// Bytes as [`CollectiveKind::measure`] counts them for the operation.
    pub bytes: usize,
    /// Bytes of one element of a reduction; 1 elsewhere.
    pub element: usize,
    /// Whether the operator of a reduction commutes; true elsewhere.
    pub commutes: bool,
    /// Whether the blocks of all ranks have one length; true where there are no blocks.
    pub equal: bool,
}

impl CallKey {
    /// An operation that moves data in blocks of one length.
    pub fn of(bytes: usize) -> CallKey {
        CallKey { bytes, element: 1, commutes: true, equal: true }
    }
}
