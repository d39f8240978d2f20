//! Environmental management (MPI 5.0, chapters 9 and 20): versions, clocks, addresses.

use crate::arguments::store;
use crate::constants::*;
use crate::error::Error;
use crate::state::state;
use std::ffi::{c_char, c_int};

const LIBRARY_VERSION: &str =
    concat!("Weft ", env!("CARGO_PKG_VERSION"), ", MPI 5.0 standard ABI\0");

/// Stores `text`, which ends with a NUL, and its length without the NUL.
///
/// # Safety
/// `to` is NULL or has room for `text`, `length` is NULL or may be written.
unsafe fn store_text(
    text: &[u8],
    to: *mut c_char,
    length: *mut c_int,
    argument: &str,
) -> Result<(), Error> {
    if to.is_null() {
        return Err(Error::null(argument));
    }
    // SAFETY: `to` is not NULL, so it has room for `text`; `length` is NULL or may be written (contract of this function).
    unsafe {
        store(length, (text.len() - 1) as c_int, "resultlen")?;
        to.copy_from_nonoverlapping(text.as_ptr().cast(), text.len());
    }
    Ok(())
}

/// MPI_Get_version.
pub(crate) unsafe fn get_version(version: *mut c_int, subversion: *mut c_int) -> Result<(), Error> {
    // SAFETY: `version` and `subversion` are NULL or may be written, as MPI requires of the program.
    unsafe {
        store(version, MPI_VERSION, "version")?;
        store(subversion, MPI_SUBVERSION, "subversion")
    }
}

/// MPI_Abi_get_version.
pub(crate) unsafe fn abi_get_version(major: *mut c_int, minor: *mut c_int) -> Result<(), Error> {
    // SAFETY: `major` and `minor` are NULL or may be written, as MPI requires of the program.
    unsafe {
        store(major, MPI_ABI_VERSION, "abi_major")?;
        store(minor, MPI_ABI_SUBVERSION, "abi_minor")
    }
}

/// MPI_Get_library_version.
pub(crate) unsafe fn get_library_version(
    version: *mut c_char,
    resultlen: *mut c_int,
) -> Result<(), Error> {
    // SAFETY: `version` is NULL or has MPI_MAX_LIBRARY_VERSION_STRING bytes, as MPI requires of the program.
    unsafe { store_text(LIBRARY_VERSION.as_bytes(), version, resultlen, "version") }
}

/// MPI_Get_processor_name.
pub(crate) unsafe fn get_processor_name(
    name: *mut c_char,
    resultlen: *mut c_int,
) -> Result<(), Error> {
    let engine = state().engine.get();
    if let Some(client) = engine.and_then(|engine| engine.endpoint().fabric().sim_client()) {
        let node = client.node_name() + "\0";
        // SAFETY: `name` is NULL or has MPI_MAX_PROCESSOR_NAME bytes, as MPI requires of the program.
        return unsafe { store_text(node.as_bytes(), name, resultlen, "name") };
    }
    let mut host = [0u8; MPI_MAX_PROCESSOR_NAME as usize];
    // SAFETY: `host` is a local buffer. Its last byte stays 0, even if the name is cut off.
    let failed = unsafe { libc::gethostname(host.as_mut_ptr().cast(), host.len() - 1) } != 0;
    if failed {
        let why = std::io::Error::last_os_error();
        return Err(Error::new(MPI_ERR_OTHER, format_args!("gethostname: {why}")));
    }
    let end = host.iter().position(|&b| b == 0).unwrap_or(host.len() - 1);
    // SAFETY: `name` is NULL or has MPI_MAX_PROCESSOR_NAME bytes, as MPI requires of the program.
    unsafe { store_text(&host[..=end], name, resultlen, "name") }
}

/// MPI_Wtime.
/// Returns seconds of the monotonic clock, which all processes of a machine share, or of virtual time.
pub(crate) unsafe fn wtime() -> f64 {
    if let Some(seconds) = virtual_seconds() {
        return seconds;
    }
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a local variable. Linux always has this clock.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut now) };
    now.tv_sec as f64 + now.tv_nsec as f64 * 1e-9
}

/// Returns the time of a job in virtual time; `None` in other jobs.
pub(crate) fn virtual_seconds() -> Option<f64> {
    let engine = state().engine.get()?;
    let client = engine.endpoint().fabric().sim_client()?;
    Some(client.read_clock() as f64 * 1e-12)
}

/// MPI_Wtick.
pub(crate) unsafe fn wtick() -> f64 {
    if virtual_seconds().is_some() {
        return 1e-12;
    }
    let mut tick = libc::timespec { tv_sec: 0, tv_nsec: 1 };
    // SAFETY: `tick` is a local variable. Linux always has this clock.
    unsafe { libc::clock_getres(libc::CLOCK_MONOTONIC, &mut tick) };
    tick.tv_sec as f64 + tick.tv_nsec as f64 * 1e-9
}

/// MPI_Aint_add.
pub(crate) unsafe fn aint_add(base: isize, disp: isize) -> isize {
    base.wrapping_add(disp)
}

/// MPI_Aint_diff.
pub(crate) unsafe fn aint_diff(addr1: isize, addr2: isize) -> isize {
    addr1.wrapping_sub(addr2)
}
