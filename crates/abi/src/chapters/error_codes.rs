//! Error classes, error codes and their texts (MPI 5.0, sections 9.4 and 9.5).

use crate::arguments::{not_null, store, store_text};
use crate::codes::{ADDED, Code, class_of, description};
use crate::constants::*;
use crate::error::Error;
use crate::error_details;
use crate::error_texts::of_class;
use std::ffi::{c_char, c_int};
use std::os::unix::ffi::OsStrExt;

#[cold]
fn unknown(argument: &str, code: c_int) -> Error {
    let text = format!("argument {argument} = {code} is neither a standard error code nor added");
    Error::new(MPI_ERR_ARG, text)
}

/// MPI_Error_class.
pub(crate) unsafe fn error_class(errorcode: c_int, errorclass: *mut c_int) -> Result<(), Error> {
    let class = class_of(errorcode).ok_or_else(|| unknown("errorcode", errorcode))?;
    // SAFETY: `errorclass` points to room for the result, as MPI requires of the program.
    unsafe { store(errorclass, class, "errorclass") }
}

/// MPI_Error_string.
pub(crate) unsafe fn error_string(
    errorcode: c_int,
    string: *mut c_char,
    resultlen: *mut c_int,
) -> Result<(), Error> {
    not_null(resultlen, "resultlen")?;
    let words = description(errorcode).ok_or_else(|| unknown("errorcode", errorcode))?;
    // SAFETY: `string` is NULL or has MPI_MAX_ERROR_STRING bytes, and `resultlen` is not NULL, as MPI requires of the program.
    unsafe {
        let len = store_text(words.as_bytes(), string, MPI_MAX_ERROR_STRING as usize, "string")?;
        store(resultlen, len as c_int, "resultlen")
    }
}

/// MPI_Add_error_class.
pub(crate) unsafe fn add_error_class(errorclass: *mut c_int) -> Result<(), Error> {
    not_null(errorclass, "errorclass")?;
    let class = ADDED.borrow_mut().add(None);
    // SAFETY: `errorclass` points to room for the result, as MPI requires of the program.
    unsafe { store(errorclass, class, "errorclass") }
}

/// MPI_Add_error_code.
pub(crate) unsafe fn add_error_code(errorclass: c_int, errorcode: *mut c_int) -> Result<(), Error> {
    not_null(errorcode, "errorcode")?;
    if class_of(errorclass) != Some(errorclass) {
        return Err(unknown("errorclass", errorclass));
    }
    let code = ADDED.borrow_mut().add(Some(errorclass));
    // SAFETY: `errorcode` points to room for the result, as MPI requires of the program.
    unsafe { store(errorcode, code, "errorcode") }
}

/// Calls `f` with a code or class that the program added.
fn added<T>(
    argument: &str,
    code: c_int,
    f: impl FnOnce(&mut Code) -> Result<T, Error>,
) -> Result<T, Error> {
    if let Some((name, _)) = of_class(code) {
        let text = format!("argument {argument} = {code} ({name}) belongs to the standard");
        return Err(Error::new(MPI_ERR_ARG, text));
    }
    if error_details::class(code).is_some() {
        let text = format!("argument {argument} = {code} belongs to the library");
        return Err(Error::new(MPI_ERR_ARG, text));
    }
    let mut errors = ADDED.borrow_mut();
    f(errors.codes.get_mut(&code).ok_or_else(|| unknown(argument, code))?)
}

/// MPI_Add_error_string.
pub(crate) unsafe fn add_error_string(
    errorcode: c_int,
    string: *const c_char,
) -> Result<(), Error> {
    // SAFETY: `string` needs a string that ends with a NUL, which the program passes as MPI requires.
    let words = unsafe { crate::arguments::string(string, "string") }?;
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

/// MPI_Remove_error_string.
pub(crate) unsafe fn remove_error_string(errorcode: c_int) -> Result<(), Error> {
    added("errorcode", errorcode, |code| {
        code.text.clear();
        Ok(())
    })
}

/// MPI_Remove_error_code.
pub(crate) unsafe fn remove_error_code(errorcode: c_int) -> Result<(), Error> {
    remove(ErrorNumber::Code, errorcode)
}

/// MPI_Remove_error_class.
pub(crate) unsafe fn remove_error_class(errorclass: c_int) -> Result<(), Error> {
    remove(ErrorNumber::Class, errorclass)
}

/// Kind of a number that the program removes.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ErrorNumber {
    Code,
    Class,
}

/// Removes a code, or a class that has no code any more.
fn remove(kind: ErrorNumber, number: c_int) -> Result<(), Error> {
    let argument = match kind {
        ErrorNumber::Code => "errorcode",
        ErrorNumber::Class => "errorclass",
    };
    let refuse = |why: &str| {
        Err(Error::new(MPI_ERR_ARG, format_args!("argument {argument} = {number} {why}")))
    };
    added(argument, number, |code| match (kind, code.class == number) {
        (ErrorNumber::Class, false) => refuse("is a code, not a class: MPI_Remove_error_code"),
        (ErrorNumber::Code, true) => refuse("is a class, not a code: MPI_Remove_error_class"),
        _ if !code.text.is_empty() => refuse("still has a text: MPI_Remove_error_string"),
        _ => Ok(()),
    })?;
    let mut errors = ADDED.borrow_mut();
    if errors.codes.iter().any(|(&other, code)| other != number && code.class == number) {
        return refuse("still has error codes: MPI_Remove_error_code");
    }
    errors.codes.remove(&number);
    Ok(())
}
