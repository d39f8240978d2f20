//! Calls of libibverbs that a signal may interrupt.

use std::ffi::c_int;
use std::io;
use weft_bootstrap::calls::repeat;

/// Calls `make` again while a signal interrupts it, and returns its object: calls into the kernel may wait for the adapter.
pub fn made<T>(mut make: impl FnMut() -> *mut T) -> *mut T {
    loop {
        let raw = make();
        if !raw.is_null() || io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            return raw;
        }
    }
}

/// Repeats a call like [`made`], for calls that return 0, an errno, or -1 with the number in `errno` (older libraries).
pub fn done(mut call: impl FnMut() -> c_int) -> io::Result<()> {
    repeat(|| match call() {
        0 => Ok(()),
        -1 => Err(io::Error::last_os_error()),
        errno => Err(io::Error::from_raw_os_error(errno.abs())),
    })
}
