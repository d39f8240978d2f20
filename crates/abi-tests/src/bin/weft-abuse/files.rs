//! File of a case: only this process opens it, in the folder of temporary files. It is deleted when it is closed.

use crate::mpi::AbusedLibrary;
use crate::signature::constant;
use std::ffi::CString;
use std::sync::OnceLock;

/// Returns a path that no other process has.
pub fn path() -> usize {
    static PATH: OnceLock<CString> = OnceLock::new();
    let made = || {
        let name = format!("weft-abuse-{}", std::process::id());
        let path = std::env::temp_dir().join(name);
        CString::new(path.into_os_string().into_encoded_bytes()).expect("no NUL")
    };
    PATH.get_or_init(made).as_ptr() as usize
}

/// Returns the access mode: read and write, create if the file does not exist, delete on close.
pub fn amode() -> usize {
    ["MPI_MODE_RDWR", "MPI_MODE_CREATE", "MPI_MODE_DELETE_ON_CLOSE"].map(constant).iter().sum()
}

/// Opens a file for a function.
pub fn make(mpi: &AbusedLibrary, slot: usize, stem: &str) -> usize {
    let arguments = [constant("MPI_COMM_SELF"), path(), amode(), constant("MPI_INFO_NULL")];
    let file = mpi.make("MPI_File_open", &arguments);
    if let Some(begin) = stem.strip_suffix("_end") {
        let (name, int) = (format!("MPI_{begin}_begin"), constant("MPI_INT"));
        match begin.contains("_at_") {
            true => mpi.must(&name, &[file, 0, slot, 4, int]),
            false => mpi.must(&name, &[file, slot, 4, int]),
        }
    }
    file
}

/// Ends every access that was begun, and closes the file, which may be closed already.
pub fn free(mpi: &AbusedLibrary, mut file: usize, slot: usize) {
    for way in ["read", "write"] {
        for how in ["at_all", "all", "ordered"] {
            mpi.code(&format!("MPI_File_{way}_{how}_end"), &[file, slot, 0]);
        }
    }
    mpi.code("MPI_File_close", &[&raw mut file as usize]);
}
