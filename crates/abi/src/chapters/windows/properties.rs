//! Properties of a window: name, group, hints, error handler.

use super::window;
use crate::arguments::{info, store_new};
use crate::chapters::communicators::{object_name, return_name};
use crate::chapters::errors::{check_errhandler, give_out};
use crate::chapters::memory;
use crate::constants::*;
use crate::error::{Error, Owner};
use crate::objects::{HandlerKind, WinObject};
use crate::raise;
use crate::state::state;
use crate::types::{Errhandler, Group, Info, Win};
use std::ffi::{c_char, c_int};
use std::os::unix::ffi::OsStrExt;
use weft_fabric::Region;
use weft_rma::{IssueOrder, WindowFlavor, WindowOptions};

/// Hints that the standard defines, each with its default value (MPI 5.0, section 12.2.1).
const HINTS: [(&str, &str); 5] = [
    ("no_locks", "false"),
    ("accumulate_ordering", "rar,raw,war,waw"),
    ("accumulate_ops", "same_op_no_op"),
    ("same_size", "false"),
    ("same_disp_unit", "false"),
];

/// Hints that the standard defines without a default value.
const OTHERS: [&str; 3] = [GRANULARITY, memory::ALIGNMENT, "mpi_assert_memory_alloc_kinds"];

/// Hint for the number of bytes that a program accumulates at once. It is used when the window is made.
pub const GRANULARITY: &str = "mpi_accumulate_granularity";

/// Hints of Weft: implementation of fences, time at which operations are issued, and handling of integer accumulates. They are used
/// when the window is made.
const OURS: [&str; 3] = ["weft_fence", "weft_rma_order", "weft_rma_atomics"];

/// Hint for windows of shared memory only.
const NONCONTIGUOUS: &str = "alloc_shared_noncontig";

/// Keeps known hints that have a valid value, and ignores all other hints. Hints never change the result of an operation. Hints
/// about the layout are used when the window is created.
pub fn keep(object: &WinObject, hints: &weft_process::Info) {
    let mut kept = object.hints.borrow_mut();
    for (key, usual) in HINTS {
        let sensible = |value: &&str| match usual {
            "false" => ["true", "false"].contains(value),
            _ if key == "accumulate_ops" => ["same_op", "same_op_no_op"].contains(value),
            _ => value.split(',').all(|o| ["none", "rar", "raw", "war", "waw"].contains(&o.trim())),
        };
        if let Some(value) = hints.get(key).filter(sensible) {
            kept.set(key, value);
        }
    }
    for key in OTHERS.into_iter().chain([NONCONTIGUOUS]) {
        let given = key != memory::ALIGNMENT
            || memory::asked_alignment(hints, Region::ALIGN_SEEN).is_some();
        if let Some(value) = hints.get(key).filter(|_| given) {
            kept.set(key, value);
        }
    }
}

/// Adds hints that describe how the window works, even if a setting or a default decides this and no hint does.
pub fn tell(object: &WinObject, options: &WindowOptions) {
    let order = match options.order {
        IssueOrder::Called => "called",
        IssueOrder::Turns => "turns",
    };
    let values = [options.fence.name(), order, options.atomics.name()];
    let mut kept = object.hints.borrow_mut();
    OURS.iter().zip(values).for_each(|(key, value)| kept.set(key, value));
}

/// MPI_Win_set_info.
pub(crate) unsafe fn win_set_info(handle: Win, hints: Info) -> Result<(), Error> {
    let object = window(handle)?;
    keep(&object, &info(hints)?);
    Ok(())
}

/// MPI_Win_get_info.
pub(crate) unsafe fn win_get_info(handle: Win, to: *mut Info) -> Result<(), Error> {
    let object = window(handle)?;
    let kept = object.hints.borrow();
    let mut used = weft_process::Info::default();
    for (key, usual) in HINTS {
        used.set(key, kept.get(key).unwrap_or(usual));
    }
    for key in OTHERS.into_iter().chain(OURS) {
        if let Some(value) = kept.get(key) {
            used.set(key, value);
        }
    }
    if object.window.flavor() == WindowFlavor::Shared {
        used.set(NONCONTIGUOUS, kept.get(NONCONTIGUOUS).unwrap_or("false"));
    }
    // SAFETY: `to` points to room for the result, as MPI requires of the program.
    unsafe { store_new(&state().infos, used, Info, to, "info_used") }
}

/// MPI_Win_get_group.
pub(crate) unsafe fn win_get_group(handle: Win, to: *mut Group) -> Result<(), Error> {
    let group = window(handle)?.window.comm().group().clone();
    // SAFETY: `to` points to room for the result, as MPI requires of the program.
    unsafe { store_new(&state().groups, group, Group, to, "group") }
}

/// MPI_Win_set_name.
pub(crate) unsafe fn win_set_name(handle: Win, name: *const c_char) -> Result<(), Error> {
    let object = window(handle)?;
    // SAFETY: `object_name` needs a string that ends with a NUL, which the program passes as MPI requires.
    let name = unsafe { object_name(name, "win_name") }?;
    object.window.set_name(name);
    Ok(())
}

/// MPI_Win_get_name.
pub(crate) unsafe fn win_get_name(
    handle: Win,
    name: *mut c_char,
    resultlen: *mut c_int,
) -> Result<(), Error> {
    if handle == MPI_WIN_NULL {
        // The null handle has a name too (MPI 5.0, section 7.8).
        // SAFETY: `return_name` needs buffers as long as MPI requires of the program.
        return unsafe { return_name("MPI_WIN_NULL", name, resultlen, "win_name") };
    }
    let object = window(handle)?;
    // SAFETY: `name` is NULL or has MPI_MAX_OBJECT_NAME bytes, and `resultlen` is NULL or may be written, as MPI requires.
    unsafe { return_name(object.window.name().as_bytes(), name, resultlen, "win_name") }
}

/// MPI_Win_set_errhandler.
pub(crate) unsafe fn win_set_errhandler(handle: Win, errhandler: Errhandler) -> Result<(), Error> {
    let object = window(handle)?;
    check_errhandler(errhandler, HandlerKind::Win)?;
    object.errhandler.set(errhandler.0);
    Ok(())
}

/// MPI_Win_get_errhandler.
pub(crate) unsafe fn win_get_errhandler(
    handle: Win,
    errhandler: *mut Errhandler,
) -> Result<(), Error> {
    let found = window(handle)?.errhandler.get();
    // SAFETY: `give_out` needs a valid pointer, which the program passes as MPI requires.
    unsafe { give_out(found, errhandler) }
}

/// MPI_Win_call_errhandler.
pub(crate) unsafe fn win_call_errhandler(handle: Win, errorcode: c_int) -> Result<(), Error> {
    window(handle)?;
    raise::call(Owner::Win(handle), errorcode, "MPI_Win_call_errhandler");
    Ok(())
}
