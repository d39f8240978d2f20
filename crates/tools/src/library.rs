//! Facts about `libmpi_abi.so.1`, which the library itself reports.

use libloading::{Library, Symbol};
use std::ffi::{CStr, c_char, c_int};
use std::path::Path;

/// Facts that the library reports without `MPI_Init`.
#[derive(Debug)]
pub struct LibraryFacts {
    /// The text of `MPI_Get_library_version`.
    pub version: String,
    /// Major and minor number of `MPI_Abi_get_version`.
    pub abi: (c_int, c_int),
    /// The text of `weft_coverage`: see [`crate::coverage`].
    pub coverage: String,
    /// The text of `weft_settings`: see [`crate::settings`].
    pub settings: String,
    /// The text of `weft_variables`: see [`crate::variables`].
    pub variables: String,
}

/// Length of the buffer for `MPI_Get_library_version`; the standard ABI fixes it.
const MAX_LIBRARY_VERSION_STRING: usize = 8192;

/// Loads the library and asks for its facts.
pub fn ask(path: &Path) -> Result<LibraryFacts, String> {
    let failed = |what: &str, why: libloading::Error| format!("{}: {what}: {why}", path.display());
    // SAFETY: the file is the libmpi_abi.so.1 of the tree that this program belongs to. Its initialization routines may run here,
    // because loading the library starts nothing.
    let library = unsafe { Library::new(path) }.map_err(|e| failed("cannot load it", e))?;
    // SAFETY: each type is that of the function with this name, by the standard and by the definitions of `weft_coverage`,
    // `weft_settings` and `weft_variables`. The buffers of the calls are local and as long as the standard ABI requires.
    unsafe {
        let missing = |e| failed("it is not Weft's library", e);
        let get_version: Symbol<unsafe extern "C" fn(*mut c_char, *mut c_int) -> c_int> =
            library.get(b"MPI_Get_library_version").map_err(missing)?;
        let abi_version: Symbol<unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int> =
            library.get(b"MPI_Abi_get_version").map_err(missing)?;
        let coverage: Symbol<unsafe extern "C" fn() -> *const c_char> =
            library.get(b"weft_coverage").map_err(missing)?;
        let settings: Symbol<unsafe extern "C" fn() -> *const c_char> =
            library.get(b"weft_settings").map_err(missing)?;
        let variables: Symbol<unsafe extern "C" fn() -> *const c_char> =
            library.get(b"weft_variables").map_err(missing)?;

        let mut text = [0 as c_char; MAX_LIBRARY_VERSION_STRING];
        let mut abi = (0, 0);
        let mut length = 0;
        for code in
            [get_version(text.as_mut_ptr(), &mut length), abi_version(&mut abi.0, &mut abi.1)]
        {
            if code != 0 {
                return Err(format!("{}: error {code} when asked its version", path.display()));
            }
        }
        Ok(LibraryFacts {
            version: CStr::from_ptr(text.as_ptr()).to_string_lossy().into_owned(),
            abi,
            coverage: CStr::from_ptr(coverage()).to_string_lossy().into_owned(),
            settings: CStr::from_ptr(settings()).to_string_lossy().into_owned(),
            variables: CStr::from_ptr(variables()).to_string_lossy().into_owned(),
        })
    }
}

/// Returns the library's description of the rails of this machine, which is the text of `weft_rails`. Each line has a word and a
/// description, separated by a tab. Opens the adapters.
pub fn rails(path: &Path) -> Result<String, String> {
    text(path, b"weft_rails")
}

/// Returns the library's costs of copies: the text of `weft_copies`, lines of name, number and meaning, separated by tabs.
pub fn copies(path: &Path) -> Result<String, String> {
    text(path, b"weft_copies")
}

/// Returns the text of a function without arguments.
fn text(path: &Path, name: &[u8]) -> Result<String, String> {
    let failed = |what: &str, why: libloading::Error| format!("{}: {what}: {why}", path.display());
    // SAFETY: the file is the libmpi_abi.so.1 of this program's tree, and loading it starts nothing.
    let library = unsafe { Library::new(path) }.map_err(|e| failed("cannot load it", e))?;
    // SAFETY: the type is that of `weft_rails` and `weft_copies`, which return a C string that lives as long as the library.
    unsafe {
        let say: Symbol<unsafe extern "C" fn() -> *const c_char> =
            library.get(name).map_err(|e| failed("it is not Weft's library", e))?;
        Ok(CStr::from_ptr(say()).to_string_lossy().into_owned())
    }
}
