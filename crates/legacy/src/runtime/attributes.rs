//! Attributes: keys whose functions take handles and codes of the older ABI, and values that are constants.

use super::function_state::FunctionState;
use super::standard::constants;
use super::{LegacyAbi, LegacyHandle, codes};
use std::ffi::{c_int, c_void};
use std::mem::transmute;
use std::sync::atomic::{AtomicI32, Ordering};

/// Functions of a key: those that copy and delete attributes.
type KeyState = FunctionState<*mut c_void>;

/// C's function that copies an attribute of an object with handle `H`.
pub type CopyAttribute<H> =
    unsafe extern "C" fn(H, c_int, *mut c_void, *mut c_void, *mut c_void, *mut c_int) -> c_int;
/// C's function that deletes an attribute of an object with handle `H`.
pub type DeleteAttribute<H> = unsafe extern "C" fn(H, c_int, *mut c_void, *mut c_void) -> c_int;
type Create = unsafe extern "C" fn(usize, usize, *mut c_int, *mut c_void) -> c_int;

/// Creates a key with `create`, the library's function for communicators, datatypes or windows, whose handles are `H`.
///
/// # Safety
/// `copy` and `delete` are 0 or functions for handles `H`; `key` is NULL or may be written.
pub unsafe fn create_key<A: LegacyAbi, H: LegacyHandle>(
    create: Create,
    copy: usize,
    delete: usize,
    key: *mut c_int,
    extra: *mut c_void,
) -> c_int {
    let state = KeyState::leak([copy, delete, 0], extra);
    let copy = copied::<A, H> as CopyAttribute<usize>;
    let delete = deleted::<A, H> as DeleteAttribute<usize>;
    // SAFETY: both functions take the state that is passed.
    codes::from_standard::<A>(unsafe { create(copy as usize, delete as usize, key, state) })
}

unsafe extern "C" fn copied<A: LegacyAbi, H: LegacyHandle>(
    handle: usize,
    key: c_int,
    state: *mut c_void,
    value: *mut c_void,
    new: *mut c_void,
    flag: *mut c_int,
) -> c_int {
    // SAFETY: `state` is a `KeyState`, by `create_key`. The function is one for handles `H`; the library's pointers are valid.
    unsafe {
        let state = &*state.cast::<KeyState>();
        let [copy, ..] = state.functions;
        if copy == 0 {
            flag.write(0);
            return 0;
        }
        let copy = transmute::<usize, CopyAttribute<H>>(copy);
        codes::to_standard::<A>(copy(H::from_standard(handle), key, state.extra, value, new, flag))
    }
}

unsafe extern "C" fn deleted<A: LegacyAbi, H: LegacyHandle>(
    handle: usize,
    key: c_int,
    value: *mut c_void,
    state: *mut c_void,
) -> c_int {
    // SAFETY: as in `copied`.
    unsafe {
        let state = &*state.cast::<KeyState>();
        let [_, delete, _] = state.functions;
        if delete == 0 {
            return 0;
        }
        let delete = transmute::<usize, DeleteAttribute<H>>(delete);
        codes::to_standard::<A>(delete(H::from_standard(handle), key, value, state.extra))
    }
}

/// Converts the value of a predefined attribute whose number is a constant: the address becomes that of the other number.
///
/// # Safety
/// `value` is NULL or points to the address that the library has stored, and `flag` to what it has stored.
pub unsafe fn convert_value<A: LegacyAbi>(key: c_int, value: *mut c_void, flag: *mut c_int) {
    static LAST_USED: AtomicI32 = AtomicI32::new(0);
    let value = value.cast::<*const c_int>();
    // SAFETY: the pointers are NULL or point to results of the library: the caller promises it.
    unsafe {
        if value.is_null() || flag.is_null() || *flag == 0 {
            return;
        }
        let map = match i64::from(key) {
            constants::MPI_IO | constants::MPI_HOST => A::RANKS,
            constants::MPI_WIN_CREATE_FLAVOR => A::FLAVORS,
            constants::MPI_WIN_MODEL => A::MODELS,
            constants::MPI_LASTUSEDCODE => {
                let code = codes::from_standard::<A>(**value).max(A::LAST_CODE);
                LAST_USED.store(code, Ordering::Relaxed);
                value.write(LAST_USED.as_ptr());
                return;
            }
            _ => return,
        };
        if let Some((legacy, _)) = map.iter().find(|(_, standard)| *standard == **value) {
            value.write(legacy);
        }
    }
}
