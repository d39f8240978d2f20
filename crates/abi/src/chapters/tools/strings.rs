//! Results of the tool interface: strings with their lengths, and results for which the program may pass NULL.

use super::{not_null, ready};
use crate::arguments::{store_text, text};
use crate::constants::MPI_T_ERR_INVALID_NAME;
use crate::error::Error;
use std::ffi::{c_char, c_int};

/// Stores a result, unless the pointer is NULL.
///
/// # Safety
/// `to` is NULL or may be written.
pub unsafe fn give<T>(to: *mut T, value: T) {
    if !to.is_null() {
        // SAFETY: `to` points to room for the result, as MPI requires of the program.
        unsafe { to.write(value) };
    }
}

/// Stores a result for which the program must not pass NULL.
///
/// # Safety
/// `to` is NULL or may be written.
pub unsafe fn store<T>(to: *mut T, value: T, argument: &str) -> Result<(), Error> {
    not_null(to, argument)?;
    // SAFETY: `to` is not NULL, so it may be written; the contract of this function says so.
    unsafe { to.write(value) };
    Ok(())
}

/// Stores the index that `find` returns for a name. `of` describes the variables in the error.
///
/// # Safety
/// `name` is NULL or a C string; `to` is NULL or may be written.
pub unsafe fn store_index(
    name: *const c_char,
    to: *mut c_int,
    argument: &str,
    of: &str,
    find: impl FnOnce(&str) -> Option<usize>,
) -> Result<(), Error> {
    ready()?;
    not_null(to, argument)?;
    // SAFETY: `name` is NULL or a C string; the contract of this function says so.
    let name = unsafe { self::name(name) }?;
    let Some(found) = find(&name) else {
        let text = format!("argument name = {name}: no such {of}");
        return Err(Error::new(MPI_T_ERR_INVALID_NAME, text));
    };
    // SAFETY: `to` is not NULL, so it may be written; the contract of this function says so.
    unsafe { to.write(found as c_int) };
    Ok(())
}

/// Stores a string as section 15.3.3 requires, cut to `*len` bytes including the NUL. Stores in `*len` the number of bytes of the
/// complete string. If there is no buffer or no room, only the length is stored; if `len` is NULL, nothing is stored.
///
/// # Safety
/// `len` is NULL or may be read and written; then `to` is NULL or has `*len` bytes.
pub unsafe fn give_text(text: &str, to: *mut c_char, len: *mut c_int) {
    if len.is_null() {
        return;
    }
    // SAFETY: `len` is not NULL, so it may be read and written, and `to` is NULL or has `*len` bytes (contract of this function).
    unsafe {
        let room = usize::try_from(*len).unwrap_or(0);
        if !to.is_null() && room > 0 {
            // `store_text` fails only for NULL, which is excluded here.
            let _ = store_text(text, to, room, "");
        }
        len.write(text.len() as c_int + 1);
    }
}

/// Returns a name that a tool passes.
///
/// # Safety
/// `from` is NULL or a C string.
unsafe fn name(from: *const c_char) -> Result<String, Error> {
    not_null(from, "name")?;
    // SAFETY: `from` is not NULL, so it is a C string; the contract of this function says so.
    unsafe { text(from, "name") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::CStr;
    use std::ptr::null_mut;

    /// Stores a string in a buffer of 9 bytes, of which `room` bytes may be used. Returns the string in the buffer, and the stored
    /// length.
    fn given(room: c_int) -> (String, c_int) {
        let mut buffer = [b'?' as c_char; 9];
        buffer[8] = 0;
        let mut len = room;
        // SAFETY: `buffer` has 9 bytes, and no test offers more.
        unsafe {
            give_text("seven", buffer.as_mut_ptr(), &mut len);
            (CStr::from_ptr(buffer.as_ptr()).to_string_lossy().into_owned(), len)
        }
    }

    #[test]
    fn strings_are_cut_off_to_the_room_and_the_whole_length_is_told() {
        assert_eq!(given(9), ("seven".to_owned(), 6));
        assert_eq!(given(6), ("seven".to_owned(), 6));
        assert_eq!(given(5), ("seve".to_owned(), 6));
        assert_eq!(given(1), (String::new(), 6));
        for none in [0, -3] {
            assert_eq!(given(none), ("????????".to_owned(), 6));
        }
        let (mut len, mut untouched) = (100, 1 as c_char);
        // SAFETY: nothing is written if there is no buffer or no length.
        unsafe {
            give_text("seven", null_mut(), &mut len);
            give_text("seven", &mut untouched, null_mut());
        }
        assert_eq!((len, untouched), (6, 1));
    }
}
