//! Attributes of windows (MPI 5.0, sections 7.7.3 and 12.2.6).

use super::window;
use crate::arguments::{not_null, store};
use crate::chapters::caching;
use crate::chapters::caching::predefined::{bad_key, predefined_name};
use crate::constants::*;
use crate::error::Error;
use crate::objects::KeyKind;
use crate::types::Win;
use std::ffi::{c_int, c_void};

/// MPI_Win_set_attr.
pub(crate) unsafe fn win_set_attr(
    handle: Win,
    keyval: c_int,
    value: *mut c_void,
) -> Result<(), Error> {
    let object = window(handle)?;
    caching::set(KeyKind::Win, handle.0, &object.attributes, keyval, value, "win_keyval")
}

/// MPI_Win_delete_attr.
pub(crate) unsafe fn win_delete_attr(handle: Win, keyval: c_int) -> Result<(), Error> {
    let object = window(handle)?;
    caching::delete(KeyKind::Win, handle.0, &object.attributes, keyval, "win_keyval")
}

/// MPI_Win_get_attr.
pub(crate) unsafe fn win_get_attr(
    handle: Win,
    keyval: c_int,
    value: *mut c_void,
    flag: *mut c_int,
) -> Result<(), Error> {
    let object = window(handle)?;
    let Some(name) = predefined_name(keyval) else {
        // SAFETY: `value` and `flag` are NULL or may be written, as MPI requires of the program.
        return unsafe {
            caching::get(KeyKind::Win, &object.attributes, keyval, value, flag, "win_keyval")
        };
    };
    not_null(value, "attribute_val")?;
    let known = &object.known;
    // C programs get the address of an integer attribute, but the value of MPI_WIN_BASE itself.
    let found: *mut c_void = match keyval {
        MPI_WIN_BASE => object.base.get(),
        MPI_WIN_SIZE => known.size.as_ptr().cast(),
        MPI_WIN_DISP_UNIT => known.unit.as_ptr().cast(),
        MPI_WIN_CREATE_FLAVOR => known.flavor.as_ptr().cast(),
        MPI_WIN_MODEL => known.model.as_ptr().cast(),
        _ => return Err(bad_key(format_args!("{name} is an attribute of communicators"))),
    };
    // SAFETY: `flag` is NULL or may be written, and `value` is not NULL, as MPI requires of the program.
    unsafe {
        store(flag, 1, "flag")?;
        store(value.cast(), found, "attribute_val")
    }
}
