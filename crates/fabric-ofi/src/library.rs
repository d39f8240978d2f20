//! libfabric, loaded when it is asked for: the machine's own, since that has the vendor's providers.

use crate::OfiConnectError;
use crate::ffi::fi_info;
use libloading::os::unix::{Library as Handle, RTLD_LOCAL, RTLD_NOW};
use std::ffi::{CStr, c_char, c_int, c_void};

/// What the dynamic linker is asked for, unless the options name a file.
pub const NAME: &str = "libfabric.so.1";

/// How libfabric would watch memory for a cache of registrations of its own. There is one here already, which is told by who frees
/// memory: theirs is off unless somebody asks for it.
const MONITOR: &str = "FI_MR_CACHE_MONITOR";

/// The functions that are symbols; all others are reached through the objects that they make.
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
    /// Of null: an empty one, for hints.
    pub dupinfo: unsafe extern "C" fn(*const fi_info) -> *mut fi_info,
    pub fabric:
        unsafe extern "C" fn(*mut c_void, *mut *mut crate::ffi::fid_fabric, *mut c_void) -> c_int,
    strerror: unsafe extern "C" fn(c_int) -> *const c_char,
    version: unsafe extern "C" fn() -> u32,
}

impl OfiLibrary {
    /// Loads `file`, or the machine's libfabric. It stays loaded: its providers have threads and exit handlers of their own.
    pub fn load(file: Option<&str>) -> Result<OfiLibrary, OfiConnectError> {
        let name = file.unwrap_or(NAME);
        let missing = |error: libloading::Error| OfiConnectError::NoLibrary {
            name: name.to_owned(),
            error: error.to_string(),
        };
        if std::env::var_os(MONITOR).is_none() {
            // SAFETY: Rust's own readers are safe, and C's are not while it runs, as with any program that calls setenv: this is
            // once, while MPI starts.
            unsafe { std::env::set_var(MONITOR, "disabled") };
        }
        // SAFETY: its initialisers depend on nothing of ours.
        let handle = unsafe { Handle::open(Some(name), RTLD_NOW | RTLD_LOCAL) }.map_err(missing)?;
        // SAFETY: the types are those of the headers.
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

    /// What the library says of an error, given as the library does: negative or positive.
    pub fn explain(&self, error: isize) -> String {
        let number = c_int::try_from(error.unsigned_abs()).unwrap_or(c_int::MAX);
        // SAFETY: it returns a text for every number, which stays.
        let text = unsafe { CStr::from_ptr((self.strerror)(number)) };
        text.to_string_lossy().into_owned()
    }

    /// `"1.17"`.
    pub fn version(&self) -> String {
        // SAFETY: no arguments.
        let version = unsafe { (self.version)() };
        format!("{}.{}", version >> 16, version & 0xffff)
    }
}
