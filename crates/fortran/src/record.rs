//! Programs that call every procedure with a different value for each argument, and a library that writes down what reaches it.
//!
//! The library has the name of the real one and takes its place. What a call must look like to C, and what Fortran must get back,
//! is told by `oracle`, which knows the standard's words for arguments and nothing of the table that entries are made of.

mod arguments;
mod callbacks;
mod library;
mod mutants;
mod oracle;
mod program;

use crate::calls::{BindingForm, NOT_INCLUDED};
use crate::data::{Procedure, procedures};
use crate::entries::has;
use crate::interfaces::distinct;
use crate::kinds::CallVariant;

pub use library::library;
pub use mutants::{Mutation, mutated};
pub use program::program;

/// How a call is made; the program and the library hear of it by `WEFT_VARIANT`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RecordVariant {
    /// Every argument given, the call succeeds.
    Plain,
    /// Special addresses and predefined handles where they may stand, other truths; in `mpi_f08` no `ierror`.
    Special,
    /// As the first, and the library says that it failed.
    Failing,
    /// Succeeds as the first, but texts have no room: the program asks only for their lengths.
    Asking,
}

impl RecordVariant {
    /// All of them.
    pub const ALL: [RecordVariant; 4] = [
        RecordVariant::Plain,
        RecordVariant::Special,
        RecordVariant::Failing,
        RecordVariant::Asking,
    ];
}

/// A procedure as it is called in one way.
pub struct RecordedCall {
    procedure: Procedure,
    way: CallVariant,
    /// Fortran's name.
    name: String,
    /// What C's function is called; none where the bindings do it alone.
    function: Option<String>,
}

impl RecordedCall {
    /// Fortran's name and way, for messages.
    pub fn title(&self) -> String {
        format!("{} ({:?})", self.name, self.way)
    }

    /// What the linker calls the entry.
    pub fn entry(&self) -> String {
        crate::entries::entry_of(&self.procedure, self.way)
    }

    /// What must be said between this call and the next one, a line each.
    pub fn expected(&self, form: BindingForm, variant: RecordVariant) -> Vec<String> {
        oracle::expected(self, form, variant)
    }
}

/// All calls that a program can make in this form. Large counts that Fortran cannot tell from small ones have no name to be called by.
pub fn recorded(form: BindingForm) -> Vec<RecordedCall> {
    let ways: &[CallVariant] = if form == BindingForm::MpiF08 {
        &[CallVariant::New, CallVariant::Large]
    } else {
        &[CallVariant::Old]
    };
    let mut calls = Vec::new();
    for procedure in procedures() {
        for &way in ways.iter().filter(|&&way| has(&procedure, way)) {
            let by_name = way == CallVariant::Large && procedure.find("POLYFUNCTION").is_some();
            let not_included = NOT_INCLUDED.contains(&procedure.name.as_str());
            if (form == BindingForm::Include && not_included)
                || (way == CallVariant::Large && !by_name && !distinct(&procedure))
            {
                continue;
            }
            let large = if way == CallVariant::Large { "_c" } else { "" };
            let function = procedure.returns[usize::from(way.large())].as_ref();
            calls.push(RecordedCall {
                name: format!("{}{}", procedure.name, if by_name { "_c" } else { "" }),
                function: function.map(|_| format!("{}{large}", procedure.name)),
                way,
                procedure: procedure.clone(),
            });
        }
    }
    calls
}
