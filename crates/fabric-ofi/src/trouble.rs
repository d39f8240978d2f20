//! The fault that ends the fabric, and notes for the user.

use weft_fabric::{Fault, repeated};

/// The first fault, and notes for the user.
#[derive(Default)]
pub struct OfiTrouble {
    fault: Option<Fault>,
    /// The fault in words, with host and address.
    text: Option<String>,
    /// Notes about rails and connections.
    notes: Vec<String>,
}

impl OfiTrouble {
    pub fn fault(&self) -> Option<&Fault> {
        self.fault.as_ref()
    }

    /// Returns the fault in words, with host and address.
    pub fn text(&self) -> Option<&str> {
        self.text.as_deref()
    }

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
