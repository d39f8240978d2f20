//! The clock of waits, see [`crate::slow`]. Nothing reads it unless the user asks for waits.

use crate::library::mpi;
use crate::shadow::{MPI_COMM_WORLD, MPI_INT, MPI_MIN};
use std::ffi::c_int;
use std::sync::atomic::{AtomicBool, Ordering};

/// Setting that asks for the waits.
const SETTING: &str = "WEFT_CHECK_SLOW";

static IS_ON: AtomicBool = AtomicBool::new(false);

/// Reads the setting. Returns true if it asks for waits at all processes of MPI_COMM_WORLD, which all call this function.
pub fn begin() -> bool {
    let is_wanted = std::env::var_os(SETTING).is_some_and(|v| !v.is_empty() && v != "0");
    let (own, mut all) = (c_int::from(is_wanted), 0 as c_int);
    let result = &raw mut all;
    // SAFETY: both words are local variables.
    unsafe { mpi!(MPI_Allreduce(&raw const own, result, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD)) };
    IS_ON.store(all != 0, Ordering::Relaxed);
    all != 0
}

/// Returns true if the user asks for waits.
pub fn is_on() -> bool {
    IS_ON.load(Ordering::Relaxed)
}

/// Returns the time of the host's steady clock in nanoseconds, or 0 if the user does not ask for waits.
pub fn moment() -> u64 {
    if !is_on() {
        return 0;
    }
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the result is a local variable.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
