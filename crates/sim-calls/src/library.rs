//! The functions of the MPI library below, and of the C library.

use std::ffi::{CStr, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

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
fn find(name: &CStr) -> usize {
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

/// A function of a library below, which is looked up once.
pub struct NextFunction {
    name: &'static CStr,
    address: AtomicUsize,
}

impl NextFunction {
    /// Names a function.
    pub const fn new(name: &'static CStr) -> NextFunction {
        NextFunction { name, address: AtomicUsize::new(0) }
    }

    /// Returns the address of the function of the MPI library.
    pub fn address(&self) -> usize {
        self.address_by(find)
    }

    /// Returns the address of the function of the C library, which this library hides.
    pub fn next_address(&self) -> usize {
        self.address_by(|name| {
            // SAFETY: the name is a string.
            unsafe { libc::dlsym(libc::RTLD_NEXT, name.as_ptr()) as usize }
        })
    }

    fn address_by(&self, find: impl Fn(&CStr) -> usize) -> usize {
        let mut address = self.address.load(Ordering::Relaxed);
        if address == 0 {
            address = find(self.name);
            self.address.store(address, Ordering::Relaxed);
        }
        address
    }
}
