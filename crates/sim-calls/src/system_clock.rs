//! Clocks of the system, behind the functions that this library replaces.

use crate::library::find_next;
use std::ffi::c_int;
use weft_client::ClientFunction;

static CLOCK_GETTIME: ClientFunction = ClientFunction::new(c"clock_gettime");

/// Calls the C library's clock_gettime(2).
///
/// # Safety
/// `time` points to a timespec.
pub unsafe fn system_clock(clock: libc::clockid_t, time: *mut libc::timespec) -> c_int {
    let next = CLOCK_GETTIME.address(find_next);
    // SAFETY: the address is that of the C library's function of this type. The caller promises that `time` points to a timespec.
    unsafe {
        let next: unsafe extern "C" fn(libc::clockid_t, *mut libc::timespec) -> c_int =
            std::mem::transmute(next);
        next(clock, time)
    }
}

/// Returns the time of the system's steady clock, in nanoseconds. The C library reads it without a system call.
pub fn steady_time() -> u64 {
    let mut now = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `now` is a local variable.
    unsafe { system_clock(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}
