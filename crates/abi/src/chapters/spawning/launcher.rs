//! Choice of the mpiexec that starts the children.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::{fs, io};
use weft_bootstrap::calls::repeat;
use weft_bootstrap::privileged::{is_privileged, path_of};
use weft_bootstrap::slot_table;

/// Chooses an mpiexec: the mpiexec of this installation, or else the mpiexec that has started this process, or else the first
/// mpiexec in PATH. Also returns the reason if it is not the mpiexec of this installation.
pub(super) fn launcher() -> (OsString, Option<String>) {
    let own = || -> Result<PathBuf, String> {
        let library = own_path().ok_or("the library's own path is not known")?;
        // Calls to a network file system are repeated if a signal interrupts them.
        let library = repeat(|| fs::canonicalize(&library)).unwrap_or(library);
        let prefix = library.parent().and_then(Path::parent).unwrap_or(Path::new("/"));
        let program = prefix.join("bin/mpiexec");
        match repeat(|| fs::metadata(&program)) {
            Ok(about) if !about.is_file() => Err(format!("{}: it is no file", program.display())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(format!("{}: {error}", program.display()))
            }
            // For any other error, the start of the program fails and reports the error.
            _ => Ok(program),
        }
    };
    match own() {
        Ok(program) => (program.into(), None),
        Err(why) => {
            let named = path_of(slot_table::MPIEXEC).filter(|name| Path::new(name).is_file());
            // The user may have set PATH, so a privileged program does not use it.
            let usual = if is_privileged() { "/usr/bin/mpiexec" } else { "mpiexec" };
            (named.unwrap_or_else(|| usual.into()), Some(why))
        }
    }
}

/// Returns the path of this library, as the loader found it.
fn own_path() -> Option<PathBuf> {
    let mut found: libc::Dl_info = libc::Dl_info {
        dli_fname: std::ptr::null(),
        dli_fbase: std::ptr::null_mut(),
        dli_sname: std::ptr::null(),
        dli_saddr: std::ptr::null_mut(),
    };
    // SAFETY: the arguments are an address of this library and a structure to fill in.
    let known = unsafe { libc::dladdr(own_path as *const () as *const _, &mut found) } != 0;
    if !known || found.dli_fname.is_null() {
        return None;
    }
    // SAFETY: dladdr returns a C string that lives as long as the library.
    let name = unsafe { std::ffi::CStr::from_ptr(found.dli_fname) };
    Some(PathBuf::from(OsStr::from_bytes(name.to_bytes())))
}
