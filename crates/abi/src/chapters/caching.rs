//! Attributes (MPI 5.0, section 7.7): keys, values on communicators and datatypes, and the
//! predefined ones.
//!
//! Callbacks are the program's: they run outside the lock, and no borrow lives across one.

use crate::arguments::{comm, datatype, not_null, store};
use crate::callback::Callback;
use crate::constants::*;
use crate::error::{Error, callback_result};
use crate::lock;
use crate::objects::{Key, KeyKind};
use crate::state::{FIRST_KEY, State, running, state};
use crate::types::*;
use std::cell::{Cell, RefCell};
use std::ffi::{c_int, c_void};
use weft_process::Attributes;

/// Values of the predefined functions for callbacks: a copy that never happens and a delete that
/// does nothing are 0, the copy that takes the value over is 1.
const NULL_FUNCTION: usize = MPI_COMM_NULL_COPY_FN;
const DUP_FUNCTION: usize = MPI_COMM_DUP_FN;

// ---- keys ---------------------------------------------------------------------------------------

/// # Safety
/// `to` is NULL or may be written.
unsafe fn create_key(key: Key, to: *mut c_int, argument: &str) -> Result<(), Error> {
    not_null(to, argument)?;
    let mut keys = state().keys.borrow_mut();
    keys.push(key);
    let number = FIRST_KEY + (keys.len() - 1) as c_int;
    // SAFETY: not NULL.
    unsafe { store(to, number, argument) }
}

/// # Safety
/// `from` is NULL or may be read and written.
unsafe fn free_key(kind: KeyKind, from: *mut c_int, argument: &str) -> Result<(), Error> {
    not_null(from, argument)?;
    // SAFETY: not NULL.
    let number = unsafe { *from };
    key(kind, number, argument)?;
    state().keys.borrow_mut()[(number - FIRST_KEY) as usize].freed = true;
    // SAFETY: not NULL.
    unsafe { store(from, MPI_KEYVAL_INVALID, argument) }
}

/// The key that the program made under `number`.
fn key(kind: KeyKind, number: c_int, argument: &str) -> Result<Key, Error> {
    if number == MPI_KEYVAL_INVALID {
        return Err(bad_key(format_args!("argument {argument} is MPI_KEYVAL_INVALID")));
    }
    if predefined_name(number).is_some() {
        let text = "is a predefined attribute, which programs only read";
        return Err(bad_key(format_args!("argument {argument} = {number} {text}")));
    }
    let place = usize::try_from(i64::from(number) - i64::from(FIRST_KEY)).ok();
    let found = place.and_then(|place| state().keys.borrow().get(place).copied());
    let Some(key) = found else {
        return Err(bad_key(format_args!("argument {argument} = {number} was never a key")));
    };
    if key.freed {
        return Err(bad_key(format_args!("argument {argument} = {number} is a freed key")));
    }
    if key.kind != kind {
        let (is, wanted) = (kind_name(key.kind), kind_name(kind));
        let text = format!("argument {argument} = {number} is a key for {is}, not for {wanted}");
        return Err(bad_key(text));
    }
    Ok(key)
}

#[cold]
pub(super) fn bad_key(text: impl std::fmt::Display) -> Error {
    Error::new(MPI_ERR_KEYVAL, text)
}

fn kind_name(kind: KeyKind) -> &'static str {
    match kind {
        KeyKind::Comm => "communicators",
        KeyKind::Type => "datatypes",
        KeyKind::Win => "windows",
    }
}

pub(crate) unsafe fn comm_create_keyval(
    copy: Callback<CommCopyAttrFunction>,
    delete: Callback<CommDeleteAttrFunction>,
    keyval: *mut c_int,
    extra: *mut c_void,
) -> Result<(), Error> {
    let key = Key { kind: KeyKind::Comm, copy, delete, extra, freed: false };
    // SAFETY: the caller's pointer.
    unsafe { create_key(key, keyval, "comm_keyval") }
}

pub(crate) unsafe fn type_create_keyval(
    copy: Callback<TypeCopyAttrFunction>,
    delete: Callback<TypeDeleteAttrFunction>,
    keyval: *mut c_int,
    extra: *mut c_void,
) -> Result<(), Error> {
    let (copy, delete) = (copy.cast(), delete.cast());
    let key = Key { kind: KeyKind::Type, copy, delete, extra, freed: false };
    // SAFETY: the caller's pointer.
    unsafe { create_key(key, keyval, "type_keyval") }
}

pub(crate) unsafe fn win_create_keyval(
    copy: Callback<WinCopyAttrFunction>,
    delete: Callback<WinDeleteAttrFunction>,
    keyval: *mut c_int,
    extra: *mut c_void,
) -> Result<(), Error> {
    let (copy, delete) = (copy.cast(), delete.cast());
    let key = Key { kind: KeyKind::Win, copy, delete, extra, freed: false };
    // SAFETY: the caller's pointer.
    unsafe { create_key(key, keyval, "win_keyval") }
}

pub(crate) unsafe fn keyval_create(
    copy: Callback<CopyFunction>,
    delete: Callback<DeleteFunction>,
    keyval: *mut c_int,
    extra: *mut c_void,
) -> Result<(), Error> {
    let (copy, delete) = (copy.cast(), delete.cast());
    let key = Key { kind: KeyKind::Comm, copy, delete, extra, freed: false };
    // SAFETY: the caller's pointer.
    unsafe { create_key(key, keyval, "keyval") }
}

pub(crate) unsafe fn comm_free_keyval(keyval: *mut c_int) -> Result<(), Error> {
    // SAFETY: the caller's pointer.
    unsafe { free_key(KeyKind::Comm, keyval, "comm_keyval") }
}

pub(crate) unsafe fn type_free_keyval(keyval: *mut c_int) -> Result<(), Error> {
    // SAFETY: the caller's pointer.
    unsafe { free_key(KeyKind::Type, keyval, "type_keyval") }
}

pub(crate) unsafe fn win_free_keyval(keyval: *mut c_int) -> Result<(), Error> {
    // SAFETY: the caller's pointer.
    unsafe { free_key(KeyKind::Win, keyval, "win_keyval") }
}

pub(crate) unsafe fn keyval_free(keyval: *mut c_int) -> Result<(), Error> {
    // SAFETY: the caller's pointer.
    unsafe { free_key(KeyKind::Comm, keyval, "keyval") }
}

// ---- values -------------------------------------------------------------------------------------

fn key_unchecked(number: i32) -> Key {
    // Only keys that were made get values, and keys are never taken away.
    state().keys.borrow()[(number - FIRST_KEY) as usize]
}

fn as_pointer(value: usize) -> *mut c_void {
    std::ptr::with_exposed_provenance_mut(value)
}

/// Calls the delete function of one value.
fn call_delete(handle: usize, number: i32, value: usize) -> Result<(), Error> {
    let key = key_unchecked(number);
    if key.delete.address() == NULL_FUNCTION {
        return Ok(());
    }
    // SAFETY: the program made the key with a function of this shape, whose first parameter is a
    // handle of pointer size whatever the kind; it is neither NULL nor predefined.
    let code = lock::unlocked(|| unsafe {
        key.delete.function()(Comm(handle), number, as_pointer(value), key.extra)
    });
    callback_result(code, function_of(number, "delete"))
}

/// Whose function returned a code.
fn function_of(number: i32, which: &str) -> String {
    format!("the {which} function of attribute key {number}")
}

/// Copies what the keys' copy functions say from one object to a new one.
pub fn copy_attributes(
    old_handle: Comm,
    from: &RefCell<Attributes>,
    to: &RefCell<Attributes>,
) -> Result<(), Error> {
    let all = from.borrow().all();
    for (number, value) in all {
        let key = key_unchecked(number);
        let copied = match key.copy.address() {
            NULL_FUNCTION => None,
            DUP_FUNCTION => Some(value),
            _ => call_copy(old_handle, number, value, key)?,
        };
        if let Some(value) = copied {
            to.borrow_mut().set(number, value);
        }
    }
    Ok(())
}

/// The copy that the program's function makes, if it makes one.
fn call_copy(handle: Comm, number: i32, value: usize, key: Key) -> Result<Option<usize>, Error> {
    let mut out: *mut c_void = std::ptr::null_mut();
    let mut flag: c_int = 0;
    let (to, wanted) = ((&raw mut out).cast::<c_void>(), &raw mut flag);
    // SAFETY: as in `call_delete`; the two results have room.
    let code = lock::unlocked(|| unsafe {
        key.copy.function()(handle, number, key.extra, as_pointer(value), to, wanted)
    });
    callback_result(code, function_of(number, "copy"))?;
    Ok((flag != 0).then(|| out.expose_provenance()))
}

/// Deletes all attributes, last set first. One that its function refuses to delete ends it.
pub fn delete_attributes(handle: usize, of: &RefCell<Attributes>) -> Result<(), Error> {
    loop {
        let last = of.borrow().all().last().copied();
        let Some((number, value)) = last else { return Ok(()) };
        call_delete(handle, number, value)?;
        of.borrow_mut().remove(number);
    }
}

pub(super) fn set(
    kind: KeyKind,
    handle: usize,
    of: &RefCell<Attributes>,
    number: c_int,
    value: *mut c_void,
    argument: &str,
) -> Result<(), Error> {
    key(kind, number, argument)?;
    let old = of.borrow().get(number);
    if let Some(old) = old {
        call_delete(handle, number, old)?;
    }
    of.borrow_mut().set(number, value.expose_provenance());
    Ok(())
}

/// # Safety
/// `to`, where a pointer is stored, and `flag` are NULL or may be written.
pub(super) unsafe fn get(
    kind: KeyKind,
    of: &RefCell<Attributes>,
    number: c_int,
    to: *mut c_void,
    flag: *mut c_int,
    argument: &str,
) -> Result<(), Error> {
    not_null(to, "attribute_val")?;
    key(kind, number, argument)?;
    let value = of.borrow().get(number);
    // SAFETY: by contract.
    unsafe {
        store(flag, c_int::from(value.is_some()), "flag")?;
        match value {
            Some(value) => store(to.cast(), as_pointer(value), "attribute_val"),
            None => Ok(()),
        }
    }
}

pub(super) fn delete(
    kind: KeyKind,
    handle: usize,
    of: &RefCell<Attributes>,
    number: c_int,
    argument: &str,
) -> Result<(), Error> {
    key(kind, number, argument)?;
    let value = of.borrow().get(number);
    if let Some(value) = value {
        call_delete(handle, number, value)?;
        of.borrow_mut().remove(number);
    }
    Ok(())
}

pub(crate) unsafe fn comm_set_attr(
    handle: Comm,
    keyval: c_int,
    value: *mut c_void,
) -> Result<(), Error> {
    let object = comm(handle)?;
    set(KeyKind::Comm, handle.0, &object.attributes, keyval, value, "comm_keyval")
}

pub(crate) unsafe fn comm_get_attr(
    handle: Comm,
    keyval: c_int,
    value: *mut c_void,
    flag: *mut c_int,
) -> Result<(), Error> {
    // SAFETY: the caller's pointers.
    unsafe { get_comm_attr(handle, keyval, value, flag, "comm_keyval") }
}

pub(crate) unsafe fn comm_delete_attr(handle: Comm, keyval: c_int) -> Result<(), Error> {
    delete(KeyKind::Comm, handle.0, &comm(handle)?.attributes, keyval, "comm_keyval")
}

pub(crate) unsafe fn attr_put(
    handle: Comm,
    keyval: c_int,
    value: *mut c_void,
) -> Result<(), Error> {
    set(KeyKind::Comm, handle.0, &comm(handle)?.attributes, keyval, value, "keyval")
}

pub(crate) unsafe fn attr_get(
    handle: Comm,
    keyval: c_int,
    value: *mut c_void,
    flag: *mut c_int,
) -> Result<(), Error> {
    // SAFETY: the caller's pointers.
    unsafe { get_comm_attr(handle, keyval, value, flag, "keyval") }
}

pub(crate) unsafe fn attr_delete(handle: Comm, keyval: c_int) -> Result<(), Error> {
    delete(KeyKind::Comm, handle.0, &comm(handle)?.attributes, keyval, "keyval")
}

pub(crate) unsafe fn type_set_attr(
    handle: Datatype,
    keyval: c_int,
    value: *mut c_void,
) -> Result<(), Error> {
    let object = datatype(handle)?;
    set(KeyKind::Type, handle.0, &object.attributes, keyval, value, "type_keyval")
}

pub(crate) unsafe fn type_get_attr(
    handle: Datatype,
    keyval: c_int,
    value: *mut c_void,
    flag: *mut c_int,
) -> Result<(), Error> {
    let object = datatype(handle)?;
    // SAFETY: the caller's pointers.
    unsafe { get(KeyKind::Type, &object.attributes, keyval, value, flag, "type_keyval") }
}

pub(crate) unsafe fn type_delete_attr(handle: Datatype, keyval: c_int) -> Result<(), Error> {
    delete(KeyKind::Type, handle.0, &datatype(handle)?.attributes, keyval, "type_keyval")
}

// ---- predefined attributes ----------------------------------------------------------------------

/// The integers that predefined attributes of communicators point to.
#[derive(Default)]
pub struct Predefined {
    tag_ub: Cell<c_int>,
    io: Cell<c_int>,
    host: Cell<c_int>,
    wtime_is_global: Cell<c_int>,
    app_number: Cell<c_int>,
    last_used_code: Cell<c_int>,
    universe_size: Cell<c_int>,
}

pub(super) fn predefined_name(number: c_int) -> Option<&'static str> {
    Some(match number {
        MPI_TAG_UB => "MPI_TAG_UB",
        MPI_IO => "MPI_IO",
        MPI_HOST => "MPI_HOST",
        MPI_WTIME_IS_GLOBAL => "MPI_WTIME_IS_GLOBAL",
        MPI_APPNUM => "MPI_APPNUM",
        MPI_LASTUSEDCODE => "MPI_LASTUSEDCODE",
        MPI_UNIVERSE_SIZE => "MPI_UNIVERSE_SIZE",
        MPI_WIN_BASE => "MPI_WIN_BASE",
        MPI_WIN_DISP_UNIT => "MPI_WIN_DISP_UNIT",
        MPI_WIN_SIZE => "MPI_WIN_SIZE",
        MPI_WIN_CREATE_FLAVOR => "MPI_WIN_CREATE_FLAVOR",
        MPI_WIN_MODEL => "MPI_WIN_MODEL",
        _ => return None,
    })
}

/// The current value of a predefined attribute of communicators: `None` if it is not set, an error
/// if it is one of windows.
fn predefined(state: &'static State, number: c_int) -> Result<Option<&'static Cell<c_int>>, Error> {
    let cells = &state.predefined_attributes;
    let (cell, value) = match number {
        MPI_TAG_UB => (&cells.tag_ub, weft_process::TAG_UB),
        MPI_IO => (&cells.io, MPI_ANY_SOURCE),
        MPI_HOST => (&cells.host, MPI_PROC_NULL),
        // Wtime is the monotonic clock, which all processes of the machine share.
        MPI_WTIME_IS_GLOBAL => (&cells.wtime_is_global, 1),
        MPI_APPNUM => {
            let bootstrap = state.bootstrap.borrow();
            let Some(number) = bootstrap.as_ref().and_then(|b| b.app_number()) else {
                return Ok(None);
            };
            (&cells.app_number, number as c_int)
        }
        MPI_LASTUSEDCODE => (&cells.last_used_code, super::error_codes::last_used_code()),
        MPI_UNIVERSE_SIZE => {
            let size = state.world.get().map_or(1, |world| world.size());
            (&cells.universe_size, size as c_int)
        }
        _ => {
            let name = predefined_name(number).unwrap_or_default();
            return Err(bad_key(format_args!("{name} is an attribute of windows")));
        }
    };
    cell.set(value);
    Ok(Some(cell))
}

/// # Safety
/// As for `get`.
unsafe fn get_comm_attr(
    handle: Comm,
    number: c_int,
    to: *mut c_void,
    flag: *mut c_int,
    argument: &str,
) -> Result<(), Error> {
    let object = comm(handle)?;
    if predefined_name(number).is_none() {
        // SAFETY: by contract.
        return unsafe { get(KeyKind::Comm, &object.attributes, number, to, flag, argument) };
    }
    not_null(to, "attribute_val")?;
    let found = predefined(running()?, number)?;
    // SAFETY: by contract.
    unsafe {
        store(flag, c_int::from(found.is_some()), "flag")?;
        match found {
            // C programs get the address of the integer (MPI 5.0, section 19.3.7).
            Some(cell) => store(to.cast(), cell.as_ptr(), "attribute_val"),
            None => Ok(()),
        }
    }
}
