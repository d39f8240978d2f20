//! The functions of the MPI library below, and of the C library.

use std::ffi::{CStr, c_void};
use std::sync::OnceLock;

/// Libraries that a program may have loaded: those of the older ABIs, and the standard's.
const LIBRARIES: [&CStr; 3] = [c"libmpi.so.12", c"libmpi.so.40", c"libmpi_abi.so.1"];

/// Returns the loader's handle of the program's MPI library.
fn library() -> *mut c_void {
    static HANDLE: OnceLock<usize> = OnceLock::new();
    let handle = HANDLE.get_or_init(|| {
        let loaded = LIBRARIES.iter().map(|name| {
            // SAFETY: looks for a library that is loaded already.
            unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_NOLOAD) as usize }
        });
        loaded.into_iter().find(|&handle| handle != 0).unwrap_or(0)
    });
    *handle as *mut c_void
}

/// Returns the address of a function of the program's MPI library.
pub fn find(name: &CStr) -> usize {
    let library = library();
    let handle = if library.is_null() { libc::RTLD_NEXT } else { library };
    // SAFETY: the handle is valid, and the name a string.
    let address = unsafe { libc::dlsym(handle, name.as_ptr()) };
    if address.is_null() {
        eprintln!("weft sim: the MPI library has no {}", name.to_string_lossy());
        std::process::exit(127);
    }
    address as usize
}

/// Returns the address of a function of the C library, which this library hides.
pub fn find_next(name: &CStr) -> usize {
    // SAFETY: the name is a string.
    unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) as usize }
}
