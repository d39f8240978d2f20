//! Calls of libibverbs that a signal may interrupt.

use std::ffi::c_int;
use std::io;
use weft_bootstrap::calls::repeat;

/// Repeats `make` while signals interrupt it, and returns the object that `make` has made. A signal can interrupt `make` because it
/// may wait in the kernel for the adapter.
pub fn made<T>(mut make: impl FnMut() -> *mut T) -> *mut T {
    loop {
        let raw = make();
        if !raw.is_null() || io::Error::last_os_error().kind() != io::ErrorKind::Interrupted {
            return raw;
        }
    }
}

/// Repeats a call while signals interrupt it, as [`made`] does. The call returns 0 on success. On failure it returns the error
/// number, or, in older libraries, -1 with the error number in `errno`.
pub fn done(mut call: impl FnMut() -> c_int) -> io::Result<()> {
    repeat(|| match call() {
        0 => Ok(()),
        -1 => Err(io::Error::last_os_error()),
        errno => Err(io::Error::from_raw_os_error(errno.abs())),
    })
}
