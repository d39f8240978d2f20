//! Programs that call every procedure with a different value for each argument, and a library that records the values which
//! reach it.
//!
//! The library has the name of the real library and takes its place. `oracle` predicts the arguments of each call in C, and
//! the results in Fortran. It uses the standard's words for arguments, and does not know the table from which entries are
//! made.

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

/// Variant of a call. The program and the library get it in `WEFT_VARIANT`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum RecordVariant {
    /// Every argument is given, and the call succeeds.
    Plain,
    /// Special addresses and predefined handles where they are allowed, other truth values; in `mpi_f08` no `ierror`.
    Special,
    /// Like `Plain`, but the library reports failure.
    Failing,
    /// Succeeds like `Plain`, but texts have no room: the program asks only for their lengths.
    Asking,
}

impl RecordVariant {
    /// All variants.
    pub const ALL: [RecordVariant; 4] = [
        RecordVariant::Plain,
        RecordVariant::Special,
        RecordVariant::Failing,
        RecordVariant::Asking,
    ];
}

/// A procedure in one way of calling.
pub struct RecordedCall {
    procedure: Procedure,
    way: CallVariant,
    /// Fortran's name.
    name: String,
    /// Name of the C function; `None` if the bindings work without a C function.
    function: Option<String>,
}

impl RecordedCall {
    /// Returns Fortran's name and the way of calling, for messages.
    pub fn title(&self) -> String {
        format!("{} ({:?})", self.name, self.way)
    }

    /// Returns the linker's name of the entry.
    pub fn entry(&self) -> String {
        crate::entries::entry_of(&self.procedure, self.way)
    }

    /// Returns the output that is expected between this call and the next, as lines.
    pub fn expected(&self, form: BindingForm, variant: RecordVariant) -> Vec<String> {
        oracle::expected(self, form, variant)
    }
}

/// Returns all calls that a program can make in this form. Large-count procedures that Fortran cannot tell from the small
/// ones have no name by which they could be called.
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
            let large = way.function().suffix();
            let function = procedure.returns[way.function() as usize].as_ref();
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
