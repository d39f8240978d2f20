//! Attributes (MPI 5.0, section 7.7): keys (`keys.rs`), values on communicators and datatypes, and the predefined attributes
//! (`predefined.rs`).
//!
//! Callbacks belong to the program: they run outside the lock, and no borrow lives across a callback.

pub mod keys;
pub mod predefined;

use crate::arguments::{comm, datatype, not_null, store};
use crate::callback::CallbackPointer;
use crate::constants::*;
use crate::error::{Error, callback_result};
use crate::lock;
use crate::objects::{AttributeKey, KeyKind};
use crate::state::running;
use crate::types::*;
use keys::{create_key, free_key};
use predefined::{predefined, predefined_name};
use std::cell::RefCell;
use std::ffi::{c_int, c_void};
use weft_process::Attributes;

/// Addresses that stand for predefined callbacks: 0 for the copy function that never copies and for the delete function that does
/// nothing, 1 for the copy function that copies the value.
const NULL_FUNCTION: usize = MPI_COMM_NULL_COPY_FN;
const DUP_FUNCTION: usize = MPI_COMM_DUP_FN;

/// MPI_Comm_create_keyval.
pub(crate) unsafe fn comm_create_keyval(
    copy: CallbackPointer<CommCopyAttrFunction>,
    delete: CallbackPointer<CommDeleteAttrFunction>,
    keyval: *mut c_int,
    extra: *mut c_void,
) -> Result<(), Error> {
    let key = AttributeKey { kind: KeyKind::Comm, copy, delete, extra };
    // SAFETY: `create_key` needs a valid pointer, which the program passes as MPI requires.
    unsafe { create_key(key, keyval, "comm_keyval") }
}

/// MPI_Type_create_keyval.
pub(crate) unsafe fn type_create_keyval(
    copy: CallbackPointer<TypeCopyAttrFunction>,
    delete: CallbackPointer<TypeDeleteAttrFunction>,
    keyval: *mut c_int,
    extra: *mut c_void,
) -> Result<(), Error> {
    let (copy, delete) = (copy.cast(), delete.cast());
    let key = AttributeKey { kind: KeyKind::Type, copy, delete, extra };
    // SAFETY: `create_key` needs a valid pointer, which the program passes as MPI requires.
    unsafe { create_key(key, keyval, "type_keyval") }
}

/// MPI_Win_create_keyval.
pub(crate) unsafe fn win_create_keyval(
    copy: CallbackPointer<WinCopyAttrFunction>,
    delete: CallbackPointer<WinDeleteAttrFunction>,
    keyval: *mut c_int,
    extra: *mut c_void,
) -> Result<(), Error> {
    let (copy, delete) = (copy.cast(), delete.cast());
    let key = AttributeKey { kind: KeyKind::Win, copy, delete, extra };
    // SAFETY: `create_key` needs a valid pointer, which the program passes as MPI requires.
    unsafe { create_key(key, keyval, "win_keyval") }
}

/// MPI_Keyval_create.
pub(crate) unsafe fn keyval_create(
    copy: CallbackPointer<CopyFunction>,
    delete: CallbackPointer<DeleteFunction>,
    keyval: *mut c_int,
    extra: *mut c_void,
) -> Result<(), Error> {
    let (copy, delete) = (copy.cast(), delete.cast());
    let key = AttributeKey { kind: KeyKind::Comm, copy, delete, extra };
    // SAFETY: `create_key` needs a valid pointer, which the program passes as MPI requires.
    unsafe { create_key(key, keyval, "keyval") }
}

/// MPI_Comm_free_keyval.
pub(crate) unsafe fn comm_free_keyval(keyval: *mut c_int) -> Result<(), Error> {
    // SAFETY: `free_key` needs a valid pointer, which the program passes as MPI requires.
    unsafe { free_key(KeyKind::Comm, keyval, "comm_keyval") }
}

/// MPI_Type_free_keyval.
pub(crate) unsafe fn type_free_keyval(keyval: *mut c_int) -> Result<(), Error> {
    // SAFETY: `free_key` needs a valid pointer, which the program passes as MPI requires.
    unsafe { free_key(KeyKind::Type, keyval, "type_keyval") }
}

/// MPI_Win_free_keyval.
pub(crate) unsafe fn win_free_keyval(keyval: *mut c_int) -> Result<(), Error> {
    // SAFETY: `free_key` needs a valid pointer, which the program passes as MPI requires.
    unsafe { free_key(KeyKind::Win, keyval, "win_keyval") }
}

/// MPI_Keyval_free.
pub(crate) unsafe fn keyval_free(keyval: *mut c_int) -> Result<(), Error> {
    // SAFETY: `free_key` needs a valid pointer, which the program passes as MPI requires.
    unsafe { free_key(KeyKind::Comm, keyval, "keyval") }
}

// ---- values -------------------------------------------------------------------------------------

fn as_pointer(value: usize) -> *mut c_void {
    std::ptr::with_exposed_provenance_mut(value)
}

/// Calls the delete function for a value.
fn call_delete(handle: usize, number: i32, value: usize) -> Result<(), Error> {
    let Some(key) = keys::found(number).filter(|key| key.delete.address() != NULL_FUNCTION) else {
        return Ok(());
    };
    // SAFETY: the program made the key with a function of this type. Whatever the kind of object, the first parameter is a
    // handle of the size of a pointer. The address is neither NULL nor that of a predefined function.
    let code = lock::unlocked(|| unsafe {
        key.delete.function()(Comm(handle), number, as_pointer(value), key.extra)
    });
    callback_result(code, function_of(number, "delete"))
}

/// Returns a name of a callback for error texts.
fn function_of(number: i32, which: &str) -> String {
    format!("the {which} function of attribute key {number}")
}

/// Sets the value of an attribute on an object.
fn put(of: &RefCell<Attributes>, number: i32, value: usize) {
    if of.borrow_mut().set(number, value).is_none() {
        keys::hold(number);
    }
}

/// Removes an attribute from an object.
fn take(of: &RefCell<Attributes>, number: i32) {
    if of.borrow_mut().remove(number).is_some() {
        keys::let_go(number);
    }
}

/// Copies attributes from an object to a new object. The copy functions of the keys decide which attributes are copied. If a copy
/// function fails, deletes the attributes that were copied. `new_handle` is passed to the delete functions.
pub fn copy_attributes(
    old_handle: Comm,
    new_handle: usize,
    from: &RefCell<Attributes>,
    to: &RefCell<Attributes>,
) -> Result<(), Error> {
    let all = from.borrow().all();
    for (number, value) in all {
        // A copy function that was called before may have deleted this attribute.
        let Some(key) = keys::found(number) else { continue };
        let copied = match key.copy.address() {
            NULL_FUNCTION => Ok(None),
            DUP_FUNCTION => Ok(Some(value)),
            _ => call_copy(old_handle, number, value, key),
        };
        match copied {
            Ok(Some(value)) => put(to, number, value),
            Ok(None) => {}
            Err(error) => {
                let _ = delete_attributes(new_handle, to);
                return Err(error);
            }
        }
    }
    Ok(())
}

/// Calls the program's copy function. Returns the value for the new object, or `None` if the function copies nothing.
fn call_copy(
    handle: Comm,
    number: i32,
    value: usize,
    key: AttributeKey,
) -> Result<Option<usize>, Error> {
    let mut out: *mut c_void = std::ptr::null_mut();
    let mut flag: c_int = 0;
    let (to, wanted) = ((&raw mut out).cast::<c_void>(), &raw mut flag);
    // SAFETY: the program made the key with a function of this type, as in `call_delete`; both results are local variables.
    let code = lock::unlocked(|| unsafe {
        key.copy.function()(handle, number, key.extra, as_pointer(value), to, wanted)
    });
    callback_result(code, function_of(number, "copy"))?;
    Ok((flag != 0).then(|| out.expose_provenance()))
}

/// Deletes all attributes, in the reverse of the order in which they were set. Stops if a delete function fails.
pub fn delete_attributes(handle: usize, of: &RefCell<Attributes>) -> Result<(), Error> {
    loop {
        let last = of.borrow().all().last().copied();
        let Some((number, value)) = last else { return Ok(()) };
        call_delete(handle, number, value)?;
        take(of, number);
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
    let old = of.borrow().get(number);
    keys::usable(kind, number, argument, old.is_none())?;
    if let Some(old) = old {
        call_delete(handle, number, old)?;
    }
    // The delete function may have freed the key or deleted the attribute.
    keys::usable(kind, number, argument, of.borrow().get(number).is_none())?;
    put(of, number, value.expose_provenance());
    Ok(())
}

/// # Safety
/// Each of `to` and `flag` is NULL or may be written. `to` is the address of a pointer.
pub(super) unsafe fn get(
    kind: KeyKind,
    of: &RefCell<Attributes>,
    number: c_int,
    to: *mut c_void,
    flag: *mut c_int,
    argument: &str,
) -> Result<(), Error> {
    not_null(to, "attribute_val")?;
    keys::usable(kind, number, argument, false)?;
    let value = of.borrow().get(number);
    // SAFETY: `to` and `flag` are NULL or may be written; the contract of this function says so.
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
    keys::usable(kind, number, argument, false)?;
    let value = of.borrow().get(number);
    if let Some(value) = value {
        call_delete(handle, number, value)?;
        take(of, number);
    }
    Ok(())
}

/// MPI_Comm_set_attr.
pub(crate) unsafe fn comm_set_attr(
    handle: Comm,
    keyval: c_int,
    value: *mut c_void,
) -> Result<(), Error> {
    let object = comm(handle)?;
    set(KeyKind::Comm, handle.0, &object.attributes, keyval, value, "comm_keyval")
}

/// MPI_Comm_get_attr.
pub(crate) unsafe fn comm_get_attr(
    handle: Comm,
    keyval: c_int,
    value: *mut c_void,
    flag: *mut c_int,
) -> Result<(), Error> {
    // SAFETY: `get_comm_attr` needs valid pointers, which the program passes as MPI requires.
    unsafe { get_comm_attr(handle, keyval, value, flag, "comm_keyval") }
}

/// MPI_Comm_delete_attr.
pub(crate) unsafe fn comm_delete_attr(handle: Comm, keyval: c_int) -> Result<(), Error> {
    delete(KeyKind::Comm, handle.0, &comm(handle)?.attributes, keyval, "comm_keyval")
}

/// MPI_Attr_put.
pub(crate) unsafe fn attr_put(
    handle: Comm,
    keyval: c_int,
    value: *mut c_void,
) -> Result<(), Error> {
    set(KeyKind::Comm, handle.0, &comm(handle)?.attributes, keyval, value, "keyval")
}

/// MPI_Attr_get.
pub(crate) unsafe fn attr_get(
    handle: Comm,
    keyval: c_int,
    value: *mut c_void,
    flag: *mut c_int,
) -> Result<(), Error> {
    // SAFETY: `get_comm_attr` needs valid pointers, which the program passes as MPI requires.
    unsafe { get_comm_attr(handle, keyval, value, flag, "keyval") }
}

/// MPI_Attr_delete.
pub(crate) unsafe fn attr_delete(handle: Comm, keyval: c_int) -> Result<(), Error> {
    delete(KeyKind::Comm, handle.0, &comm(handle)?.attributes, keyval, "keyval")
}

/// MPI_Type_set_attr.
pub(crate) unsafe fn type_set_attr(
    handle: Datatype,
    keyval: c_int,
    value: *mut c_void,
) -> Result<(), Error> {
    let object = datatype(handle)?;
    set(KeyKind::Type, handle.0, &object.attributes, keyval, value, "type_keyval")
}

/// MPI_Type_get_attr.
pub(crate) unsafe fn type_get_attr(
    handle: Datatype,
    keyval: c_int,
    value: *mut c_void,
    flag: *mut c_int,
) -> Result<(), Error> {
    let object = datatype(handle)?;
    // SAFETY: `get` needs valid pointers, which the program passes as MPI requires.
    unsafe { get(KeyKind::Type, &object.attributes, keyval, value, flag, "type_keyval") }
}

/// MPI_Type_delete_attr.
pub(crate) unsafe fn type_delete_attr(handle: Datatype, keyval: c_int) -> Result<(), Error> {
    delete(KeyKind::Type, handle.0, &datatype(handle)?.attributes, keyval, "type_keyval")
}

/// # Safety
/// Each of `to` and `flag` is NULL or may be written. `to` is the address of a pointer.
unsafe fn get_comm_attr(
    handle: Comm,
    number: c_int,
    to: *mut c_void,
    flag: *mut c_int,
    argument: &str,
) -> Result<(), Error> {
    let object = comm(handle)?;
    if predefined_name(number).is_none() {
        // SAFETY: `get` needs `to` and `flag` that are NULL or may be written; the contract of this function says so.
        return unsafe { get(KeyKind::Comm, &object.attributes, number, to, flag, argument) };
    }
    not_null(to, "attribute_val")?;
    let found = predefined(running()?, number)?;
    // SAFETY: `to` is not NULL, and `flag` is NULL or may be written; the contract of this function says so.
    unsafe {
        store(flag, c_int::from(found.is_some()), "flag")?;
        match found {
            // C programs get the address of the integer (MPI 5.0, section 19.3.7).
            Some(cell) => store(to.cast(), cell.as_ptr(), "attribute_val"),
            None => Ok(()),
        }
    }
}
