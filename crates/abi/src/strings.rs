//! Strings of C calls: any bytes of the program, and texts for its buffers.

use crate::arguments::not_null;
use crate::error::Error;
use std::ffi::{CStr, OsStr, OsString, c_char};
use std::os::unix::ffi::OsStrExt;

/// The first bytes of a string, at most `most`; of text no part of a character.
pub fn cut(string: &[u8], most: usize) -> &[u8] {
    let mut end = string.len().min(most);
    if let Ok(text) = std::str::from_utf8(string) {
        while !text.is_char_boundary(end) {
            end -= 1;
        }
    }
    &string[..end]
}

/// Copies `text` with a NUL into a C buffer of `room` bytes, cut off to fit, and its length.
///
/// # Safety
/// `to` is NULL or has `room` bytes.
pub unsafe fn store_text(
    text: impl AsRef<[u8]>,
    to: *mut c_char,
    room: usize,
    argument: &str,
) -> Result<usize, Error> {
    not_null(to, argument)?;
    let text = cut(text.as_ref(), room.saturating_sub(1));
    let len = text.len();
    // SAFETY: `len` and the NUL fit into the room.
    unsafe {
        to.copy_from_nonoverlapping(text.as_ptr().cast(), len);
        to.add(len).write(0);
    }
    Ok(len)
}

/// A string of the program, which is any bytes.
///
/// # Safety
/// `from` is NULL or a C string.
pub unsafe fn string(from: *const c_char, argument: &str) -> Result<OsString, Error> {
    not_null(from, argument)?;
    // SAFETY: not NULL, so by contract a C string.
    Ok(OsStr::from_bytes(unsafe { CStr::from_ptr(from) }.to_bytes()).to_owned())
}

/// A string of the program that is compared with words of the library, of which none has other bytes than text.
///
/// # Safety
/// `from` is NULL or a C string.
pub unsafe fn text(from: *const c_char, argument: &str) -> Result<String, Error> {
    not_null(from, argument)?;
    // SAFETY: not NULL, so by contract a C string.
    Ok(unsafe { CStr::from_ptr(from) }.to_string_lossy().into_owned())
}

/// A file's name: any bytes, as the program gives them.
///
/// # Safety
/// `from` is NULL or a C string, which outlives what is made of it.
pub unsafe fn file_name<'a>(from: *const c_char, argument: &str) -> Result<&'a OsStr, Error> {
    not_null(from, argument)?;
    // SAFETY: not NULL, so by contract a C string.
    Ok(OsStr::from_bytes(unsafe { CStr::from_ptr(from) }.to_bytes()))
}
