//! Info objects (MPI 5.0, chapter 10).

use crate::arguments::{bad_handle, count, info, not_null, store, store_new, store_text, string};
use crate::constants::*;
use crate::error::Error;
use crate::state::state;
use crate::types::Info;
use std::ffi::{OsString, c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use weft_process::{KEY_MAX, VALUE_MAX};

/// Changes an info object in place. MPI_INFO_ENV cannot be changed.
pub fn change<T>(
    handle: Info,
    f: impl FnOnce(&mut weft_process::Info) -> Result<T, Error>,
) -> Result<T, Error> {
    if handle == MPI_INFO_ENV {
        let text = "argument info is MPI_INFO_ENV, which is only read: MPI_Info_dup makes a copy";
        return Err(Error::new(MPI_ERR_INFO, text));
    }
    let mut infos = state().infos.borrow_mut();
    match infos.get_mut(handle.0) {
        Some(object) => f(object),
        None => Err(bad_handle(MPI_ERR_INFO, "info", "info object", handle.0, MPI_INFO_NULL.0)),
    }
}

/// Returns a key that the program gives, and checks its length.
///
/// # Safety
/// `from` is NULL or a C string.
unsafe fn key(from: *const c_char) -> Result<OsString, Error> {
    // SAFETY: `string` needs a `from` that is NULL or a C string; the contract of this function says so.
    let key = unsafe { string(from, "key") }?;
    if key.is_empty() || key.len() > KEY_MAX {
        let text = format!("argument key has {} bytes: keys have 1 to {KEY_MAX}", key.len());
        return Err(Error::new(MPI_ERR_INFO_KEY, text));
    }
    Ok(key)
}

/// MPI_Info_create.
pub(crate) unsafe fn info_create(to: *mut Info) -> Result<(), Error> {
    // SAFETY: `to` points to room for the result, as MPI requires of the program.
    unsafe { store_new(&state().infos, weft_process::Info::default(), Info, to, "info") }
}

/// MPI_Info_dup.
pub(crate) unsafe fn info_dup(handle: Info, to: *mut Info) -> Result<(), Error> {
    // SAFETY: `to` points to room for the result, as MPI requires of the program.
    unsafe { store_new(&state().infos, info(handle)?, Info, to, "newinfo") }
}

/// MPI_Info_free.
pub(crate) unsafe fn info_free(handle: *mut Info) -> Result<(), Error> {
    not_null(handle, "info")?;
    // SAFETY: `handle` is not NULL, so it may be read and written, as MPI requires of the program.
    unsafe {
        change(*handle, |_| Ok(()))?;
        state().infos.borrow_mut().remove((*handle).0);
        handle.write(MPI_INFO_NULL);
    }
    Ok(())
}

/// MPI_Info_set.
pub(crate) unsafe fn info_set(
    handle: Info,
    name: *const c_char,
    value: *const c_char,
) -> Result<(), Error> {
    // SAFETY: `name` and `value` are NULL or C strings, as MPI requires of the program.
    let (name, value) = unsafe { (key(name)?, string(value, "value")?) };
    if value.len() > VALUE_MAX {
        let text = format!(
            "argument value (of key {}) has {} bytes: values have at most {VALUE_MAX}",
            name.display(),
            value.len()
        );
        return Err(Error::new(MPI_ERR_INFO_VALUE, text));
    }
    change(handle, |info| {
        info.set(name.as_bytes(), value.as_bytes());
        Ok(())
    })
}

/// MPI_Info_delete.
pub(crate) unsafe fn info_delete(handle: Info, name: *const c_char) -> Result<(), Error> {
    // SAFETY: `key` needs a string that ends with a NUL, which the program passes as MPI requires.
    let name = unsafe { key(name) }?;
    change(handle, |info| match info.delete(name.as_bytes()) {
        true => Ok(()),
        false => {
            let text = format!("argument key = {name:?}: the info object has no such key");
            Err(Error::new(MPI_ERR_INFO_NOKEY, text))
        }
    })
}

/// MPI_Info_get_nkeys.
pub(crate) unsafe fn info_get_nkeys(handle: Info, nkeys: *mut c_int) -> Result<(), Error> {
    // SAFETY: `nkeys` points to room for the result, as MPI requires of the program.
    unsafe { store(nkeys, info(handle)?.len() as c_int, "nkeys") }
}

/// MPI_Info_get_nthkey.
pub(crate) unsafe fn info_get_nthkey(handle: Info, n: c_int, to: *mut c_char) -> Result<(), Error> {
    let info = info(handle)?;
    let place = usize::try_from(n).ok();
    let Some(found) = place.and_then(|n| info.key(n)) else {
        let text = format!("argument n = {n}: the info object has {} keys", info.len());
        return Err(Error::new(MPI_ERR_ARG, text));
    };
    // SAFETY: the program's buffer has MPI_MAX_INFO_KEY bytes, as MPI requires.
    unsafe { store_text(found, to, KEY_MAX + 1, "key") }.map(|_| ())
}

/// MPI_Info_get_valuelen.
pub(crate) unsafe fn info_get_valuelen(
    handle: Info,
    name: *const c_char,
    valuelen: *mut c_int,
    flag: *mut c_int,
) -> Result<(), Error> {
    let info = info(handle)?;
    // SAFETY: `name` is NULL or a C string, and `flag` and `valuelen` are NULL or may be written, as MPI requires of the program.
    unsafe {
        let found = key(name).map(|name| info.bytes(name.as_bytes()).map(<[u8]>::len))?;
        store(flag, c_int::from(found.is_some()), "flag")?;
        match found {
            Some(len) => store(valuelen, len as c_int, "valuelen"),
            None => Ok(()),
        }
    }
}

/// MPI_Info_get.
pub(crate) unsafe fn info_get(
    handle: Info,
    name: *const c_char,
    valuelen: c_int,
    value: *mut c_char,
    flag: *mut c_int,
) -> Result<(), Error> {
    let info = info(handle)?;
    let room = count(i64::from(valuelen), "valuelen")? + 1;
    // SAFETY: `name` is a C string, `flag` may be written, and `value` has `valuelen + 1` bytes, or they are NULL, as MPI requires.
    unsafe {
        let name = key(name)?;
        store(flag, c_int::from(info.bytes(name.as_bytes()).is_some()), "flag")?;
        match info.bytes(name.as_bytes()) {
            Some(found) => store_text(found, value, room, "value").map(|_| ()),
            None => Ok(()),
        }
    }
}

/// MPI_Info_get_string.
pub(crate) unsafe fn info_get_string(
    handle: Info,
    name: *const c_char,
    buflen: *mut c_int,
    value: *mut c_char,
    flag: *mut c_int,
) -> Result<(), Error> {
    let info = info(handle)?;
    not_null(buflen, "buflen")?;
    // SAFETY: `buflen` is not NULL; `name` is a C string, `flag` may be written, and `value` has `*buflen` bytes, or they are
    // NULL, as MPI requires.
    unsafe {
        let room = count(i64::from(*buflen), "buflen")?;
        let name = key(name)?;
        store(flag, c_int::from(info.bytes(name.as_bytes()).is_some()), "flag")?;
        let Some(found) = info.bytes(name.as_bytes()) else { return Ok(()) };
        // If the length is 0, the program only asks for the necessary length.
        if room > 0 {
            store_text(found, value, room, "value")?;
        }
        store(buflen, found.len() as c_int + 1, "buflen")
    }
}

/// MPI_Info_create_env.
pub(crate) unsafe fn info_create_env(
    _argc: c_int,
    _argv: *mut *mut c_char,
    to: *mut Info,
) -> Result<(), Error> {
    // SAFETY: `to` points to room for the result, as MPI requires of the program.
    unsafe { store_new(&state().infos, crate::info_env::environment(), Info, to, "info") }
}
