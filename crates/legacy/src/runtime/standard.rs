//! The standard's library, as function pointers.

use std::cell::UnsafeCell;
use std::ffi::{CStr, CString, OsStr, c_char, c_int, c_void};
use std::mem::{MaybeUninit, transmute};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// A status of the standard ABI.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct StandardStatus {
    pub source: c_int,
    pub tag: c_int,
    pub error: c_int,
    /// The two halves of the number of bytes, and a flag that is not 0 if the operation was cancelled.
    pub internal: [c_int; 5],
}

include!(concat!(env!("OUT_DIR"), "/standard.rs"));

/// File name of the standard's library.
const LIBRARY: &CStr = c"libmpi_abi.so.1";

type OpCreate = unsafe extern "C" fn(ReductionBridge, *mut c_void, c_int, *mut usize) -> c_int;
type ErrhandlerCreate =
    unsafe extern "C" fn(c_int, HandlerBridge, *mut c_void, *mut usize) -> c_int;
type SetBsendOverhead = unsafe extern "C" fn(u64);

/// Functions of Weft's library for libraries of other ABIs.
pub struct Bridges {
    pub op_create: OpCreate,
    pub errhandler_create: ErrhandlerCreate,
    pub set_bsend_overhead: SetBsendOverhead,
}

/// Function of an operator: state, operands, number of elements, datatype.
pub type ReductionBridge = unsafe extern "C" fn(*mut c_void, *mut c_void, *mut c_void, i64, usize);
/// Function of an error handler: state, handle, code.
pub type HandlerBridge = unsafe extern "C" fn(*mut c_void, usize, *mut c_int);

struct Loaded<T>(UnsafeCell<MaybeUninit<T>>);

// SAFETY: it is written once, by the constructor of the library, before any other thread can call the library.
unsafe impl<T> Sync for Loaded<T> {}

static STANDARD: Loaded<Standard> = Loaded(UnsafeCell::new(MaybeUninit::uninit()));
static BRIDGES: Loaded<Bridges> = Loaded(UnsafeCell::new(MaybeUninit::uninit()));

/// Returns the functions of the standard's library.
#[inline(always)]
pub fn standard() -> &'static Standard {
    // SAFETY: `load` has run as the constructor of the library, or has ended the process.
    unsafe { (*STANDARD.0.get()).assume_init_ref() }
}

/// Returns the functions for callbacks of other ABIs.
pub fn bridges() -> &'static Bridges {
    // SAFETY: `load` has run as the constructor of the library, or has ended the process.
    unsafe { (*BRIDGES.0.get()).assume_init_ref() }
}

/// Loads the standard's library from the folder of the library that has `anchor`, or from where the loader finds it. Ends the
/// process with a sentence and exit code 127 if that fails, as the loader does for a missing library. `bsend_overhead` is the older
/// ABI's MPI_BSEND_OVERHEAD.
///
/// # Safety
/// The caller is a constructor of a library, and no other thread calls the library yet.
pub unsafe fn load(anchor: *const c_void, bsend_overhead: i64) {
    let own = file_of(anchor);
    refuse_another(own.as_deref());
    let beside = own.and_then(|own| {
        let real = std::fs::canonicalize(&own).unwrap_or(own);
        let path = real.parent()?.join("libmpi_abi.so.1");
        CString::new(path.into_os_string().into_encoded_bytes()).ok()
    });
    // RTLD_LOCAL: the program must not find the standard's MPI_Send before the older ABI's.
    let open = |name: &CStr| {
        // SAFETY: `name` is a text with a NUL. The constructors of the library that is loaded are its own.
        unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) }
    };
    let mut handle = beside.as_deref().map_or(std::ptr::null_mut(), open);
    if handle.is_null() {
        handle = open(LIBRARY);
    }
    if handle.is_null() {
        missing(&format!(
            "{} is not found, neither beside this library nor by the loader",
            LIBRARY.to_string_lossy()
        ));
    }
    // 664 lookups take 70 to 110 us, a tenth of the time in which a process starts and ends: no table is worth its version.
    let find = |name: &CStr| {
        // SAFETY: `handle` is a loaded library.
        let found = unsafe { libc::dlsym(handle, name.as_ptr()) };
        if found.is_null() {
            let name = name.to_string_lossy();
            missing(&format!(
                "the libmpi_abi.so.1 that was found has no {name}: it is not Weft's, or of another version"
            ));
        }
        found.cast_const()
    };
    // SAFETY: the library exports these functions with these types. Nothing reads the statics yet.
    unsafe {
        (*STANDARD.0.get()).write(Standard::load(find));
        (*BRIDGES.0.get()).write(Bridges {
            op_create: transmute::<*const c_void, OpCreate>(find(c"weft_op_create_bridged")),
            errhandler_create: transmute::<*const c_void, ErrhandlerCreate>(find(
                c"weft_errhandler_create_bridged",
            )),
            set_bsend_overhead: transmute::<*const c_void, SetBsendOverhead>(find(
                c"weft_set_bsend_overhead",
            )),
        });
        (bridges().set_bsend_overhead)(bsend_overhead as u64);
    }
}

/// Returns true for the file names of MPI libraries. Profilers, which define MPI_Init too, have other names, such as libmpiP.so.
fn is_mpi_library(file: &Path) -> bool {
    let name = file.file_name().unwrap_or_default().as_bytes();
    let names = [&b"libmpi.so"[..], b"libmpich.so", b"libmpi_abi.so"];
    names.iter().any(|known| name.starts_with(known))
}

/// Ends the process if its calls of MPI would go to another MPI library: each library has its own constants and handles.
fn refuse_another(own: Option<&Path>) {
    // SAFETY: the name is a text with a NUL.
    let first = unsafe { libc::dlsym(libc::RTLD_DEFAULT, c"MPI_Init".as_ptr()) };
    let (Some(own), Some(first)) = (own, file_of(first)) else { return };
    if first != own && is_mpi_library(&first) {
        eprintln!(
            "weft: this process has two MPI libraries, {} and {}, of different ABIs: a part of the program was built for another \
             MPI; build both parts for the same, or see which one loads which with weft info --program",
            first.display(),
            own.display()
        );
        std::process::exit(127);
    }
}

/// Returns the file of the library or program in which an address lies.
fn file_of(anchor: *const c_void) -> Option<PathBuf> {
    let mut info = MaybeUninit::<libc::Dl_info>::zeroed();
    // SAFETY: `info` may be written, and is read only if the call filled it. The name is a text with a NUL.
    unsafe {
        if libc::dladdr(anchor, info.as_mut_ptr()) == 0 {
            return None;
        }
        let name = info.assume_init().dli_fname;
        (!name.is_null()).then(|| OsStr::from_bytes(CStr::from_ptr(name).to_bytes()).into())
    }
}

fn missing(why: &str) -> ! {
    eprintln!("weft: this MPI library serves programs of an older ABI by libmpi_abi.so.1; {why}");
    std::process::exit(127);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn profilers_are_no_mpi_libraries() {
        for (file, expected) in [
            ("/usr/lib/libmpi.so.40", true),
            ("libmpich.so.12", true),
            ("/w/libmpi_abi.so.1", true),
            ("/opt/libmpiP.so", false),
            ("libmpitrace.so", false),
            ("/usr/bin/program", false),
        ] {
            assert_eq!(is_mpi_library(Path::new(file)), expected, "{file}");
        }
    }
}
