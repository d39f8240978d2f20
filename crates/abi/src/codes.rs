//! Error classes and codes, whoever made them: the standard, the library ([`crate::error_details`]), the program.

use crate::constants::MPI_ERR_LASTCODE;
use crate::error_details::{self, DETAILS};
use crate::error_texts::of_class;
use crate::state::ChapterState;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::{OsString, c_int};

/// What the program added.
pub static ADDED: ChapterState<RefCell<Added>> = ChapterState::new(RefCell::new(Added::NONE));

/// Error classes and codes that the program added.
pub struct Added {
    /// How many were ever added: numbers are not given out again.
    count: c_int,
    /// By code; a class is a code of which it is itself the class.
    pub codes: BTreeMap<c_int, Code>,
}

/// One of them.
pub struct Code {
    /// The class that the code is of.
    pub class: c_int,
    /// What MPI_Error_string says of it; empty until the program says.
    pub text: OsString,
}

impl Added {
    const NONE: Added = Added { count: 0, codes: BTreeMap::new() };

    /// The number of one more: a code of `class`, or else a class.
    pub fn add(&mut self, class: Option<c_int>) -> c_int {
        self.count += 1;
        let code = MPI_ERR_LASTCODE + self.count;
        let class = class.unwrap_or(code);
        self.codes.insert(code, Code { class, text: OsString::new() });
        code
    }
}

/// The largest error class or code of the program, or of the standard if there is none (MPI_LASTUSEDCODE).
pub fn last_used_code() -> c_int {
    let errors = ADDED.borrow();
    errors.codes.last_key_value().map_or(MPI_ERR_LASTCODE, |(&code, _)| code)
}

/// The class of a code; `None` if there is no such code.
pub fn class_of(code: c_int) -> Option<c_int> {
    if of_class(code).is_some() {
        return Some(code);
    }
    let added = ADDED.borrow().codes.get(&code).map(|c| c.class);
    added.or_else(|| error_details::class(code))
}

/// The text of a code: of a class what the standard says, of a code of ours what failed, too, of one of
/// the program's the program's own, which is empty if it gave none. `None` if there is no such code.
pub fn description(code: c_int) -> Option<OsString> {
    if let Some((name, meaning)) = of_class(code) {
        return Some(format!("{name}: {meaning}").into());
    }
    if let Some(added) = ADDED.borrow().codes.get(&code) {
        return Some(added.text.clone());
    }
    let (name, meaning) = of_class(error_details::class(code)?)?;
    let words = match DETAILS.borrow().words(code) {
        Some(words) => format!("{name}: {meaning}: {words}"),
        None => format!("{name}: {meaning}"),
    };
    Some(words.into())
}
