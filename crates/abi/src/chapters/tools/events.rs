//! Events and their sources (MPI 5.0, section 15.3.8). There are no events yet, so every index of an event and every handle is an
//! error. The only source is the clock of MPI_Wtime.

use super::{bad_handle, index, invalid, not_null, ready, strings};
use crate::callback::CallbackPointer;
use crate::constants::*;
use crate::error::Error;
use crate::state::state;
use crate::types::{
    Datatype, Info, TEnum, TEventCbFunction, TEventDroppedCbFunction, TEventFreeCbFunction,
    TEventInstance, TEventRegistration,
};
use std::ffi::{c_char, c_int, c_void};

const CLOCK: &str = "weft.clock";
const CLOCK_DOC: &str = "the clock of MPI_Wtime, in nanoseconds: monotonic, one for each node";

/// MPI_T_event_get_num.
pub(crate) unsafe fn t_event_get_num(num_events: *mut c_int) -> Result<(), Error> {
    ready()?;
    // SAFETY: `num_events` is NULL or points to room for the result, as MPI requires of the program.
    unsafe { strings::store(num_events, 0, "num_events") }
}

/// Returns the error for an index of an event.
fn no_event(event_index: c_int) -> Result<(), Error> {
    ready()?;
    index(event_index, 0, "event_index", "events").map(drop)
}

/// Returns the error for a handle of a registration.
fn no_registration(handle: TEventRegistration) -> Result<(), Error> {
    ready()?;
    Err(bad_handle("event_registration", handle.0, "registration of an event"))
}

/// Returns the error for a handle of an instance of an event.
fn no_instance(handle: TEventInstance) -> Result<(), Error> {
    ready()?;
    Err(bad_handle("event_instance", handle.0, "instance of an event"))
}

/// MPI_T_event_get_info.
pub(crate) unsafe fn t_event_get_info(
    event_index: c_int,
    _name: *mut c_char,
    _name_len: *mut c_int,
    _verbosity: *mut c_int,
    _array_of_datatypes: *mut Datatype,
    _array_of_displacements: *mut isize,
    _num_elements: *mut c_int,
    _enumtype: *mut TEnum,
    _info: *mut Info,
    _desc: *mut c_char,
    _desc_len: *mut c_int,
    _bind: *mut c_int,
) -> Result<(), Error> {
    no_event(event_index)
}

/// MPI_T_event_get_index.
pub(crate) unsafe fn t_event_get_index(
    name: *const c_char,
    event_index: *mut c_int,
) -> Result<(), Error> {
    // SAFETY: `name` is NULL or a C string, and `event_index` is NULL or may be written, as MPI requires of the program.
    unsafe { strings::store_index(name, event_index, "event_index", "event", |_| None) }
}

/// MPI_T_event_handle_alloc.
pub(crate) unsafe fn t_event_handle_alloc(
    event_index: c_int,
    _obj_handle: *mut c_void,
    _info: Info,
    _event_registration: *mut TEventRegistration,
) -> Result<(), Error> {
    no_event(event_index)
}

/// MPI_T_event_handle_set_info.
pub(crate) unsafe fn t_event_handle_set_info(
    event_registration: TEventRegistration,
    _info: Info,
) -> Result<(), Error> {
    no_registration(event_registration)
}

/// MPI_T_event_handle_get_info.
pub(crate) unsafe fn t_event_handle_get_info(
    event_registration: TEventRegistration,
    _info_used: *mut Info,
) -> Result<(), Error> {
    no_registration(event_registration)
}

/// MPI_T_event_register_callback.
pub(crate) unsafe fn t_event_register_callback(
    event_registration: TEventRegistration,
    _cb_safety: c_int,
    _info: Info,
    _user_data: *mut c_void,
    _event_cb_function: CallbackPointer<TEventCbFunction>,
) -> Result<(), Error> {
    no_registration(event_registration)
}

/// MPI_T_event_callback_set_info.
pub(crate) unsafe fn t_event_callback_set_info(
    event_registration: TEventRegistration,
    _cb_safety: c_int,
    _info: Info,
) -> Result<(), Error> {
    no_registration(event_registration)
}

/// MPI_T_event_callback_get_info.
pub(crate) unsafe fn t_event_callback_get_info(
    event_registration: TEventRegistration,
    _cb_safety: c_int,
    _info_used: *mut Info,
) -> Result<(), Error> {
    no_registration(event_registration)
}

/// MPI_T_event_handle_free.
pub(crate) unsafe fn t_event_handle_free(
    event_registration: TEventRegistration,
    _user_data: *mut c_void,
    _free_cb_function: CallbackPointer<TEventFreeCbFunction>,
) -> Result<(), Error> {
    no_registration(event_registration)
}

/// MPI_T_event_set_dropped_handler.
pub(crate) unsafe fn t_event_set_dropped_handler(
    event_registration: TEventRegistration,
    _dropped_cb_function: CallbackPointer<TEventDroppedCbFunction>,
) -> Result<(), Error> {
    no_registration(event_registration)
}

/// MPI_T_event_read.
pub(crate) unsafe fn t_event_read(
    event_instance: TEventInstance,
    _element_index: c_int,
    _buffer: *mut c_void,
) -> Result<(), Error> {
    no_instance(event_instance)
}

/// MPI_T_event_copy.
pub(crate) unsafe fn t_event_copy(
    event_instance: TEventInstance,
    _buffer: *mut c_void,
) -> Result<(), Error> {
    no_instance(event_instance)
}

/// MPI_T_event_get_timestamp.
pub(crate) unsafe fn t_event_get_timestamp(
    event_instance: TEventInstance,
    _event_timestamp: *mut i64,
) -> Result<(), Error> {
    no_instance(event_instance)
}

/// MPI_T_event_get_source.
pub(crate) unsafe fn t_event_get_source(
    event_instance: TEventInstance,
    _source_index: *mut c_int,
) -> Result<(), Error> {
    no_instance(event_instance)
}

/// MPI_T_source_get_num.
pub(crate) unsafe fn t_source_get_num(num_sources: *mut c_int) -> Result<(), Error> {
    ready()?;
    // SAFETY: `num_sources` is NULL or points to room for the result, as MPI requires of the program.
    unsafe { strings::store(num_sources, 1, "num_sources") }
}

/// MPI_T_source_get_info.
pub(crate) unsafe fn t_source_get_info(
    source_index: c_int,
    name: *mut c_char,
    name_len: *mut c_int,
    desc: *mut c_char,
    desc_len: *mut c_int,
    ordering: *mut c_int,
    ticks_per_second: *mut i64,
    max_ticks: *mut i64,
    info: *mut Info,
) -> Result<(), Error> {
    ready()?;
    index(source_index, 1, "source_index", "sources")?;
    // SAFETY: each pointer is NULL or may be written, and each string has room for the length given with it, as MPI requires.
    unsafe {
        strings::give_text(CLOCK, name, name_len);
        strings::give_text(CLOCK_DOC, desc, desc_len);
        strings::give(ordering, MPI_T_SOURCE_ORDERED);
        strings::give(ticks_per_second, 1_000_000_000);
        strings::give(max_ticks, i64::MAX);
        if !info.is_null() {
            // The tool frees the info object.
            let made = state().infos.borrow_mut().insert(weft_process::Info::default());
            info.write(Info(made));
        }
    }
    Ok(())
}

/// MPI_T_source_get_timestamp.
pub(crate) unsafe fn t_source_get_timestamp(
    source_index: c_int,
    timestamp: *mut i64,
) -> Result<(), Error> {
    ready()?;
    index(source_index, 1, "source_index", "sources")?;
    not_null(timestamp, "timestamp")?;
    if let Some(seconds) = crate::chapters::environment::virtual_seconds() {
        // SAFETY: `timestamp` is not NULL, so it points to room for the result, as MPI requires of the program.
        unsafe { timestamp.write((seconds * 1e9) as i64) };
        return Ok(());
    }
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a local variable.
    if unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) } != 0 {
        return Err(invalid("the clock cannot be read"));
    }
    // SAFETY: `timestamp` is not NULL, so it points to room for the result, as MPI requires of the program.
    unsafe { timestamp.write(now.tv_sec * 1_000_000_000 + now.tv_nsec) };
    Ok(())
}
