//! Error classes and codes of the standard, of the library ([`crate::error_details`]) and of the program.

use crate::chapter_state::ChapterState;
use crate::constants::MPI_ERR_LASTCODE;
use crate::error_details::{self, DETAILS};
use crate::error_texts::of_class;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::{OsString, c_int};

/// Error classes and codes that the program added.
pub static ADDED: ChapterState<RefCell<Added>> = ChapterState::new(RefCell::new(Added::NONE));

/// Error classes and codes that the program added.
pub struct Added {
    /// Number of classes and codes that were ever added. Numbers are not reused.
    count: c_int,
    /// Classes and codes by their number. A class is stored as a code whose class is the code itself.
    pub codes: BTreeMap<c_int, Code>,
}

/// An error class or code of the program.
pub struct Code {
    /// Class of the code.
    pub class: c_int,
    /// Text of MPI_Error_string for the code. Empty until the program sets it.
    pub text: OsString,
}

impl Added {
    const NONE: Added = Added { count: 0, codes: BTreeMap::new() };

    /// Adds a code of `class`, or a class if `class` is `None`. Returns its number.
    pub fn add(&mut self, class: Option<c_int>) -> c_int {
        self.count += 1;
        let code = MPI_ERR_LASTCODE + self.count;
        let class = class.unwrap_or(code);
        self.codes.insert(code, Code { class, text: OsString::new() });
        code
    }
}

/// Returns the largest error class or code that the program has added, or the largest of the standard if the program has added none
/// (MPI_LASTUSEDCODE).
pub fn last_used_code() -> c_int {
    let errors = ADDED.borrow();
    errors.codes.last_key_value().map_or(MPI_ERR_LASTCODE, |(&code, _)| code)
}

/// Returns the class of a code, or `None` if there is no such code.
pub fn class_of(code: c_int) -> Option<c_int> {
    if of_class(code).is_some() {
        return Some(code);
    }
    let added = ADDED.borrow().codes.get(&code).map(|c| c.class);
    added.or_else(|| error_details::class(code))
}

/// Returns the text of a code. A class of the standard has the standard's text. The text of a code of the library also describes
/// the failure. A code of the program has the text that the program gave, which is empty if the program gave no text. Returns
/// `None` if there is no such code.
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
