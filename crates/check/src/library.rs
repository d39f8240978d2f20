//! The MPI library below: its functions by name.

use crate::function::MAX_PARAMETERS;
use std::ffi::{CStr, c_int, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Names of the library of the standard ABI, as programs load it.
const LIBRARY: &CStr = c"libmpi_abi.so.1";

/// Returns the library's handle of the loader.
fn library() -> *mut c_void {
    static HANDLE: OnceLock<usize> = OnceLock::new();
    let handle = HANDLE.get_or_init(|| {
        // SAFETY: the library has no initialisers with preconditions.
        let handle = unsafe { libc::dlopen(LIBRARY.as_ptr(), libc::RTLD_NOW | libc::RTLD_GLOBAL) };
        if handle.is_null() {
            eprintln!(
                "weft check: cannot load libmpi_abi.so.1; start the program with Weft's mpiexec"
            );
            std::process::exit(127);
        }
        handle as usize
    });
    *handle as *mut c_void
}

/// Names of the libraries for programs of older ABIs, whose handles are not the standard's.
const LEGACY: [&CStr; 2] = [c"libmpi.so.12", c"libmpi.so.40"];

/// Returns the loader's handle of a library for programs of an older ABI, if such a program runs.
pub fn legacy() -> Option<*mut c_void> {
    static HANDLE: OnceLock<usize> = OnceLock::new();
    let handle = *HANDLE.get_or_init(|| {
        let flags = libc::RTLD_NOW | libc::RTLD_NOLOAD;
        // SAFETY: looks for a library that is loaded already.
        let handles = LEGACY.map(|name| unsafe { libc::dlopen(name.as_ptr(), flags) } as usize);
        handles.into_iter().find(|&handle| handle != 0).unwrap_or(0)
    });
    (handle != 0).then_some(handle as *mut c_void)
}

/// Returns the address of a function of the library.
pub fn address(name: &CStr) -> usize {
    // SAFETY: the handle is valid, and the name a string.
    let address = unsafe { libc::dlsym(legacy().unwrap_or_else(library), name.as_ptr()) };
    if address.is_null() {
        eprintln!("weft check: the MPI library has no {}", name.to_string_lossy());
        std::process::exit(127);
    }
    address as usize
}

/// A function of the library, which is looked up once.
pub struct LibraryFunction {
    name: &'static CStr,
    address: AtomicUsize,
}

impl LibraryFunction {
    /// Names a function. The name begins with `PMPI_`.
    pub const fn new(name: &'static CStr) -> LibraryFunction {
        LibraryFunction { name, address: AtomicUsize::new(0) }
    }

    /// Calls the function.
    ///
    /// # Safety
    /// The arguments meet the function's preconditions, and their number is right.
    pub unsafe fn call(&self, arguments: &[usize]) -> c_int {
        let mut function = self.address.load(Ordering::Relaxed);
        if function == 0 {
            function = address(self.name);
            self.address.store(function, Ordering::Relaxed);
        }
        // SAFETY: the caller promises it.
        unsafe { call(function, arguments) }
    }
}

/// Calls a function of the library by its name without `P`, with arguments that are cast to `usize`.
macro_rules! mpi {
    ($name:ident($($argument:expr),* $(,)?)) => {{
        static FUNCTION: $crate::library::LibraryFunction = $crate::library::LibraryFunction::new(
            // SAFETY: the text ends in its only zero.
            unsafe { std::ffi::CStr::from_bytes_with_nul_unchecked(concat!("P", stringify!($name), "\0").as_bytes()) }
        );
        FUNCTION.call(&[$($argument as usize),*])
    }};
}
pub(crate) use mpi;

/// Calls a function of C whose parameters are all of class INTEGER: integers, handles, pointers.
///
/// # Safety
/// There is such a function at `address`, and the arguments meet its preconditions.
pub unsafe fn call(address: usize, a: &[usize]) -> c_int {
    const { assert!(MAX_PARAMETERS == 14) }
    macro_rules! call {
        ($($n:literal: $($i:literal)*;)*) => {
            match a.len() {
                $($n => {
                    type F = unsafe extern "C" fn($(call!(@ $i)),*) -> c_int;
                    // SAFETY: the caller promises it.
                    unsafe { std::mem::transmute::<usize, F>(address)($(a[$i]),*) }
                })*
                n => unreachable!("no function has {n} parameters"),
            }
        };
        (@ $i:literal) => { usize };
    }
    call! {
        0: ; 1: 0; 2: 0 1; 3: 0 1 2; 4: 0 1 2 3; 5: 0 1 2 3 4; 6: 0 1 2 3 4 5;
        7: 0 1 2 3 4 5 6; 8: 0 1 2 3 4 5 6 7; 9: 0 1 2 3 4 5 6 7 8; 10: 0 1 2 3 4 5 6 7 8 9;
        11: 0 1 2 3 4 5 6 7 8 9 10; 12: 0 1 2 3 4 5 6 7 8 9 10 11;
        13: 0 1 2 3 4 5 6 7 8 9 10 11 12; 14: 0 1 2 3 4 5 6 7 8 9 10 11 12 13;
    }
}
