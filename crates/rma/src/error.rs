//! What goes wrong, in a user's words.

use crate::Window;
use std::fmt;
use weft_fabric::Fabric;
use weft_process::{Error, class};

impl<F: Fabric> Window<F> {
    /// What reports call it.
    pub fn label(&self) -> String {
        let name = self.name.borrow();
        if name.is_empty() { format!("window {:#x}", self.comm().id()) } else { name.clone() }
    }

    #[cold]
    pub(crate) fn sync(&self, what: impl fmt::Display) -> Error {
        Error::new(class::RMA_SYNC, format_args!("{}: {what}", self.label()))
    }

    #[cold]
    pub(crate) fn wrong(&self, class: i32, what: impl fmt::Display) -> Error {
        Error::new(class, format_args!("{}: {what}", self.label()))
    }
}
