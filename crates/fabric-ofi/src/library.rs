//! The machine's libfabric, which has the vendor's providers, loaded on demand.

use crate::OfiConnectError;
use crate::ffi::fi_info;
use libloading::os::unix::{Library as Handle, RTLD_LOCAL, RTLD_NOW};
use std::ffi::{CStr, c_char, c_int, c_void};

/// Name that the dynamic linker is asked for, unless the options name a file.
pub const NAME: &str = "libfabric.so.1";

/// Environment variable that selects how libfabric watches memory for its own cache of registrations. Weft already has a cache,
/// which is notified when memory is freed, so libfabric's cache is off unless the user sets this variable.
const MONITOR: &str = "FI_MR_CACHE_MONITOR";

/// The functions that are symbols of the library. All other functions are reached through the objects that these functions make.
#[derive(Clone, Copy)]
pub struct OfiLibrary {
    pub getinfo: unsafe extern "C" fn(
        u32,
        *const c_char,
        *const c_char,
        u64,
        *const fi_info,
        *mut *mut fi_info,
    ) -> c_int,
    pub freeinfo: unsafe extern "C" fn(*mut fi_info),
    /// Copies a list element. For null, returns an empty element, which serves as hints.
    pub dupinfo: unsafe extern "C" fn(*const fi_info) -> *mut fi_info,
    pub fabric:
        unsafe extern "C" fn(*mut c_void, *mut *mut crate::ffi::fid_fabric, *mut c_void) -> c_int,
    strerror: unsafe extern "C" fn(c_int) -> *const c_char,
    version: unsafe extern "C" fn() -> u32,
}

impl OfiLibrary {
    /// Loads `file`, or the machine's libfabric. The library stays loaded, because its providers have threads and exit handlers of
    /// their own.
    pub fn load(file: Option<&str>) -> Result<OfiLibrary, OfiConnectError> {
        let name = file.unwrap_or(NAME);
        let missing = |error: libloading::Error| OfiConnectError::NoLibrary {
            name: name.to_owned(),
            error: error.to_string(),
        };
        if std::env::var_os(MONITOR).is_none() {
            // SAFETY: `set_var` needs that no other thread reads or writes the environment by other means than Rust's. This runs
            // once, while MPI starts. If a thread of the program calls C's `getenv` at that time, this is a race, as in any program
            // that calls `setenv`.
            unsafe { std::env::set_var(MONITOR, "disabled") };
        }
        // SAFETY: `Library::open` runs the initialisers of the library, which depend on no state of this process in libfabric.
        let handle = unsafe { Handle::open(Some(name), RTLD_NOW | RTLD_LOCAL) }.map_err(missing)?;
        // SAFETY: `get` needs the right type of each symbol. The fields have the types of libfabric's headers.
        let library = unsafe {
            OfiLibrary {
                getinfo: *handle.get(b"fi_getinfo\0").map_err(missing)?,
                freeinfo: *handle.get(b"fi_freeinfo\0").map_err(missing)?,
                dupinfo: *handle.get(b"fi_dupinfo\0").map_err(missing)?,
                fabric: *handle.get(b"fi_fabric\0").map_err(missing)?,
                strerror: *handle.get(b"fi_strerror\0").map_err(missing)?,
                version: *handle.get(b"fi_version\0").map_err(missing)?,
            }
        };
        std::mem::forget(handle);
        Ok(library)
    }

    /// Returns the library's text for an error number, which may be negative or positive.
    pub fn explain(&self, error: isize) -> String {
        let number = c_int::try_from(error.unsigned_abs()).unwrap_or(c_int::MAX);
        // SAFETY: `fi_strerror` returns a text for every number. The text ends with a zero byte and is never freed.
        let text = unsafe { CStr::from_ptr((self.strerror)(number)) };
        text.to_string_lossy().into_owned()
    }

    /// Returns the version, as in `"1.17"`.
    pub fn version(&self) -> String {
        // SAFETY: `fi_version` takes no arguments and has no preconditions.
        let version = unsafe { (self.version)() };
        format!("{}.{}", version >> 16, version & 0xffff)
    }
}
