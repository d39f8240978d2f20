//! Strings of C calls: strings of the program, which may contain any bytes, and texts for its buffers.

use crate::error::{Error, not_null};
use std::ffi::{CStr, OsStr, OsString, c_char};
use std::os::unix::ffi::OsStrExt;

/// Returns the first bytes of a string, at most `most`. Never cuts a character of UTF-8 text.
pub fn cut(string: &[u8], most: usize) -> &[u8] {
    let mut end = string.len().min(most);
    if let Ok(text) = std::str::from_utf8(string) {
        while !text.is_char_boundary(end) {
            end -= 1;
        }
    }
    &string[..end]
}

/// Copies `text` with a NUL into a C buffer of `room` bytes, cut if it is too long. Returns the number of bytes without the NUL.
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
    // SAFETY: `to` has `room` bytes: the caller of `store_text` promises it. `len` bytes and the NUL fit into them.
    unsafe {
        to.copy_from_nonoverlapping(text.as_ptr().cast(), len);
        to.add(len).write(0);
    }
    Ok(len)
}

/// Returns a string of the program, which may contain any bytes.
///
/// # Safety
/// `from` is NULL or a C string.
pub unsafe fn string(from: *const c_char, argument: &str) -> Result<OsString, Error> {
    not_null(from, argument)?;
    // SAFETY: `from` is not NULL, so it is a C string: the caller of `string` promises it.
    Ok(OsStr::from_bytes(unsafe { CStr::from_ptr(from) }.to_bytes()).to_owned())
}

/// Returns a string of the program for comparison with words of the library. Bytes that are not UTF-8 are replaced, because no word
/// of the library contains such bytes.
///
/// # Safety
/// `from` is NULL or a C string.
pub unsafe fn text(from: *const c_char, argument: &str) -> Result<String, Error> {
    not_null(from, argument)?;
    // SAFETY: `from` is not NULL, so it is a C string: the caller of `text` promises it.
    Ok(unsafe { CStr::from_ptr(from) }.to_string_lossy().into_owned())
}

/// Returns a file's name, which may contain any bytes.
///
/// # Safety
/// `from` is NULL or a C string, which outlives the returned reference.
pub unsafe fn file_name<'a>(from: *const c_char, argument: &str) -> Result<&'a OsStr, Error> {
    not_null(from, argument)?;
    // SAFETY: `from` is not NULL, so it is a C string that outlives the result: the caller of `file_name` promises it.
    Ok(OsStr::from_bytes(unsafe { CStr::from_ptr(from) }.to_bytes()))
}
