//! The fault that ends a fabric, and notes for the user.

use crate::{Fault, repeated};

/// The first fault of a fabric, and notes for the user.
#[derive(Default)]
pub struct FabricTrouble {
    fault: Option<Fault>,
    /// The fault in words, with host and address.
    text: Option<String>,
    /// Notes about rails and connections.
    notes: Vec<String>,
}

impl FabricTrouble {
    /// Makes the state of a fabric without a fault.
    pub fn new(notes: Vec<String>) -> FabricTrouble {
        FabricTrouble { notes, ..FabricTrouble::default() }
    }

    /// Returns the first fault.
    pub fn fault(&self) -> Option<&Fault> {
        self.fault.as_ref()
    }

    /// Returns the first fault in words, with host and address.
    pub fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// Returns the notes for the user.
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Adds a note for the user.
    pub fn note(&mut self, note: String) {
        self.notes.push(note);
    }

    /// Records a fault, which ends all waits. Only the first fault and its reason are kept.
    #[cold]
    pub fn fail(&mut self, fault: Fault, why: String) {
        debug_assert_eq!(repeated(&fault.because(&why)), None);
        if self.fault.is_none() {
            (self.fault, self.text) = (Some(fault), Some(why));
        }
    }
}
