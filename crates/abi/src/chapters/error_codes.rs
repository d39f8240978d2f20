//! Error classes, error codes and their texts (MPI 5.0, sections 9.4 and 9.5).

use crate::arguments::{not_null, store, store_text, text};
use crate::chapters::error_texts::of_class;
use crate::constants::*;
use crate::details;
use crate::error::Error;
use crate::state::state;
use std::collections::BTreeMap;
use std::ffi::{c_char, c_int};

/// Error classes and codes that the program added.
#[derive(Default)]
pub struct Added {
    /// How many were ever added: numbers are not given out again.
    count: c_int,
    /// By code; a class is a code of which it is itself the class.
    codes: BTreeMap<c_int, Code>,
}

struct Code {
    class: c_int,
    text: String,
}

impl Added {
    fn add(&mut self, class: Option<c_int>) -> c_int {
        self.count += 1;
        let code = MPI_ERR_LASTCODE + self.count;
        let class = class.unwrap_or(code);
        self.codes.insert(code, Code { class, text: String::new() });
        code
    }
}

/// The largest error class or code of the program, or of the standard if there is none (MPI_LASTUSEDCODE).
pub fn last_used_code() -> c_int {
    let errors = state().added_errors.borrow();
    errors.codes.last_key_value().map_or(MPI_ERR_LASTCODE, |(&code, _)| code)
}

/// The class of a code; `None` if there is no such code.
pub fn class_of(code: c_int) -> Option<c_int> {
    if of_class(code).is_some() {
        return Some(code);
    }
    let added = state().added_errors.borrow().codes.get(&code).map(|c| c.class);
    added.or_else(|| details::class(code))
}

/// The text of a code: of a class what the standard says, of a code of ours what failed, too, of one of
/// the program's the program's own, which is empty if it gave none. `None` if there is no such code.
pub fn description(code: c_int) -> Option<String> {
    if let Some((name, meaning)) = of_class(code) {
        return Some(format!("{name}: {meaning}"));
    }
    let state = state();
    if let Some(added) = state.added_errors.borrow().codes.get(&code) {
        return Some(added.text.clone());
    }
    let (name, meaning) = of_class(details::class(code)?)?;
    Some(match state.details.borrow().words(code) {
        Some(words) => format!("{name}: {meaning}: {words}"),
        None => format!("{name}: {meaning}"),
    })
}

#[cold]
fn unknown(argument: &str, code: c_int) -> Error {
    let text = format!("argument {argument} = {code} is neither a standard error code nor added");
    Error::new(MPI_ERR_ARG, text)
}

pub(crate) unsafe fn error_class(errorcode: c_int, errorclass: *mut c_int) -> Result<(), Error> {
    let class = class_of(errorcode).ok_or_else(|| unknown("errorcode", errorcode))?;
    // SAFETY: the caller's pointer.
    unsafe { store(errorclass, class, "errorclass") }
}

pub(crate) unsafe fn error_string(
    errorcode: c_int,
    string: *mut c_char,
    resultlen: *mut c_int,
) -> Result<(), Error> {
    not_null(resultlen, "resultlen")?;
    let words = description(errorcode).ok_or_else(|| unknown("errorcode", errorcode))?;
    // SAFETY: the caller's buffer has MPI_MAX_ERROR_STRING bytes.
    unsafe {
        let len = store_text(&words, string, MPI_MAX_ERROR_STRING as usize, "string")?;
        store(resultlen, len as c_int, "resultlen")
    }
}

pub(crate) unsafe fn add_error_class(errorclass: *mut c_int) -> Result<(), Error> {
    not_null(errorclass, "errorclass")?;
    let class = state().added_errors.borrow_mut().add(None);
    // SAFETY: not NULL.
    unsafe { store(errorclass, class, "errorclass") }
}

pub(crate) unsafe fn add_error_code(errorclass: c_int, errorcode: *mut c_int) -> Result<(), Error> {
    not_null(errorcode, "errorcode")?;
    if class_of(errorclass) != Some(errorclass) {
        return Err(unknown("errorclass", errorclass));
    }
    let code = state().added_errors.borrow_mut().add(Some(errorclass));
    // SAFETY: not NULL.
    unsafe { store(errorcode, code, "errorcode") }
}

/// Runs `f` on a code that the program added.
fn added<T>(
    argument: &str,
    code: c_int,
    f: impl FnOnce(&mut Code) -> Result<T, Error>,
) -> Result<T, Error> {
    if let Some((name, _)) = of_class(code) {
        let text = format!("argument {argument} = {code} ({name}) belongs to the standard");
        return Err(Error::new(MPI_ERR_ARG, text));
    }
    if details::class(code).is_some() {
        let text = format!("argument {argument} = {code} belongs to the library");
        return Err(Error::new(MPI_ERR_ARG, text));
    }
    let mut errors = state().added_errors.borrow_mut();
    f(errors.codes.get_mut(&code).ok_or_else(|| unknown(argument, code))?)
}

pub(crate) unsafe fn add_error_string(
    errorcode: c_int,
    string: *const c_char,
) -> Result<(), Error> {
    // SAFETY: the caller's string.
    let words = unsafe { text(string, "string") }?;
    let most = MPI_MAX_ERROR_STRING as usize - 1;
    if words.len() > most {
        let text = format!("argument string has {} bytes; at most {most} are kept", words.len());
        return Err(Error::new(MPI_ERR_ARG, text));
    }
    added("errorcode", errorcode, |code| {
        code.text = words;
        Ok(())
    })
}

pub(crate) unsafe fn remove_error_string(errorcode: c_int) -> Result<(), Error> {
    added("errorcode", errorcode, |code| {
        code.text.clear();
        Ok(())
    })
}

pub(crate) unsafe fn remove_error_code(errorcode: c_int) -> Result<(), Error> {
    remove("errorcode", errorcode, false)
}

pub(crate) unsafe fn remove_error_class(errorclass: c_int) -> Result<(), Error> {
    remove("errorclass", errorclass, true)
}

/// Takes a code or class away on which nothing depends any more.
fn remove(argument: &str, number: c_int, is_class: bool) -> Result<(), Error> {
    let refuse = |why: &str| {
        Err(Error::new(MPI_ERR_ARG, format_args!("argument {argument} = {number} {why}")))
    };
    added(argument, number, |code| match (code.class == number) == is_class {
        false if is_class => refuse("is a code, not a class: MPI_Remove_error_code"),
        false => refuse("is a class, not a code: MPI_Remove_error_class"),
        true if !code.text.is_empty() => refuse("still has a text: MPI_Remove_error_string"),
        true => Ok(()),
    })?;
    let mut errors = state().added_errors.borrow_mut();
    if errors.codes.iter().any(|(&other, code)| other != number && code.class == number) {
        return refuse("still has error codes: MPI_Remove_error_code");
    }
    errors.codes.remove(&number);
    Ok(())
}
