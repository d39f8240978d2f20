//! The fault that ends all waits of a rank.

use std::cell::{Cell, RefCell};
use weft_fabric::Fault;

/// The first fault of a rank, if there was one.
#[derive(Default)]
pub(crate) struct FirstFault {
    fault: RefCell<Option<Fault>>,
    is_set: Cell<bool>,
}

impl FirstFault {
    #[inline]
    pub fn get(&self) -> Option<Fault> {
        if self.is_set.get() { self.fault.borrow().clone() } else { None }
    }

    /// Keeps `fault`, unless there was an earlier fault.
    #[cold]
    pub fn set(&self, fault: Fault) {
        self.fault.borrow_mut().get_or_insert(fault);
        self.is_set.set(true);
    }
}
