//! The MPI library below: its functions by name.

use std::ffi::{CStr, c_int, c_void};
use std::sync::OnceLock;
use weft_client::ClientFunction;

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

/// Library for programs of an older ABI, whose handles are not the standard's.
struct OlderLibrary {
    name: &'static CStr,
    /// Returns MPI_COMM_WORLD of the library with this handle of the loader.
    world: fn(*mut c_void) -> usize,
}

const LEGACY: [OlderLibrary; 2] = [
    OlderLibrary { name: c"libmpi.so.12", world: |_| 0x4400_0000 },
    OlderLibrary {
        name: c"libmpi.so.40",
        // SAFETY: the handle is valid, and the name a string.
        world: |handle| unsafe { libc::dlsym(handle, c"ompi_mpi_comm_world".as_ptr()) as usize },
    },
];

/// Returns the place in [`LEGACY`], and the loader's handle, of the library for the program, if the program is of an older ABI.
fn legacy_library() -> Option<(usize, *mut c_void)> {
    static LIBRARY: OnceLock<Option<(usize, usize)>> = OnceLock::new();
    let found = *LIBRARY.get_or_init(|| {
        let flags = libc::RTLD_NOW | libc::RTLD_NOLOAD;
        let handle = |place: usize| {
            // SAFETY: looks for a library that is loaded already.
            let handle = unsafe { libc::dlopen(LEGACY[place].name.as_ptr(), flags) } as usize;
            (handle != 0).then_some((place, handle))
        };
        (0..LEGACY.len()).find_map(handle)
    });
    found.map(|(place, handle)| (place, handle as *mut c_void))
}

/// Returns the loader's handle of a library for programs of an older ABI, if such a program runs.
fn legacy() -> Option<*mut c_void> {
    legacy_library().map(|(_, handle)| handle)
}

/// Returns true if the program is of an older ABI. Its first rank says once that its calls are not checked. MPI is initialized.
pub fn is_unchecked() -> bool {
    let Some((place, handle)) = legacy_library() else { return false };
    let OlderLibrary { name, world } = &LEGACY[place];
    let mut rank = -1 as c_int;
    // SAFETY: the handle is the library's MPI_COMM_WORLD, and the result a local variable.
    unsafe { mpi!(MPI_Comm_rank(world(handle), &raw mut rank)) };
    if rank == 0 {
        eprintln!(
            "weft check: the calls of this program are not checked, because it uses {}; build it with Weft's mpicc",
            name.to_string_lossy()
        );
    }
    true
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
pub struct LibraryFunction(ClientFunction);

impl LibraryFunction {
    /// Names a function. The name begins with `PMPI_`.
    pub const fn new(name: &'static CStr) -> LibraryFunction {
        LibraryFunction(ClientFunction::new(name))
    }

    /// Calls the function.
    ///
    /// # Safety
    /// The arguments meet the function's preconditions, and their number is right.
    pub unsafe fn call(&self, arguments: &[usize]) -> c_int {
        // SAFETY: the caller promises it.
        unsafe { weft_client::call(self.0.address(address), arguments) as c_int }
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

/// Calls an extension of the library by its name, with arguments that are cast to `usize`.
macro_rules! extension {
    ($name:ident($($argument:expr),* $(,)?)) => {{
        static FUNCTION: $crate::library::LibraryFunction = $crate::library::LibraryFunction::new(
            // SAFETY: the text ends in its only zero.
            unsafe { std::ffi::CStr::from_bytes_with_nul_unchecked(concat!(stringify!($name), "\0").as_bytes()) }
        );
        FUNCTION.call(&[$($argument as usize),*])
    }};
}
pub(crate) use extension;
