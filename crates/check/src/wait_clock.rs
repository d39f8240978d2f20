//! The clock of waits, see [`crate::slow`]. Nothing reads it unless the user asks for waits.

use std::sync::atomic::{AtomicBool, Ordering};

/// Setting that asks for the waits.
const SETTING: &str = "WEFT_CHECK_SLOW";

static IS_ON: AtomicBool = AtomicBool::new(false);

/// Reads the setting. Returns true if the user asks for waits.
pub fn begin() -> bool {
    let is_wanted = std::env::var_os(SETTING).is_some_and(|v| !v.is_empty() && v != "0");
    IS_ON.store(is_wanted, Ordering::Relaxed);
    is_wanted
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
