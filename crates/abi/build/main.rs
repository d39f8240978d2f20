//! Generates, from `data/*.csv` and from what `src/chapters/` implements:
//! - `$OUT_DIR/abi.rs`: handles, callback types, constants, entry points and the coverage table;
//! - `include/mpi.h` beside the library, for `mpicc` in the build tree and for the installer;
//! - `$OUT_DIR/FUNCTIONS.md`: the file and the item that implement each function. A test compares it with `FUNCTIONS.md` beside
//!   `data`;
//! - `mpi-signatures.txt` beside the library: the signature that each implementation must have, or its arguments.

mod calls;
mod chapters;
mod header;
mod index;
mod older;
mod rust;

use std::path::Path;
use std::{env, fs, io};
use weft_abi_data::removed::removed_functions;

const SONAME: &str = "libmpi_abi.so.1";

fn main() {
    println!("cargo::rerun-if-changed=build");
    let here = env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let here = Path::new(&here);
    let out = env::var("OUT_DIR").expect("cargo sets it");
    let out = Path::new(&out);
    let abi = weft_abi_data::Abi::read(&here.join("data"));
    let mut done = chapters::scan(&here.join("src/chapters"), &abi, &calls::families(&abi));
    write(&out.join("abi.rs"), &rust::library(&abi, &mut done));
    write(&out.join("FUNCTIONS.md"), &index::functions_md(&abi, &done));
    index::check(&abi, &done);

    // OUT_DIR is target/<profile>/build/<package>-<hash>/out; the library goes to target/<profile>.
    let beside = out.ancestors().nth(3).expect("OUT_DIR lies in target/<profile>/build/x/out");
    fs::create_dir_all(beside.join("include")).expect("making include/ beside the library");
    let removed = removed_functions(&here.join("data"));
    write(&beside.join("include/mpi.h"), &header::mpi_h(&abi, &removed));
    write(&beside.join("mpi-signatures.txt"), &rust::signatures(&abi, &done));
    // Programs linked in the build tree look for the SONAME. Programs linked with MPICH 5.0.0 and 5.0.1 look for the other name,
    // which these versions have by mistake.
    for name in [SONAME, "libmpi_abi.so.0"] {
        link(&beside.join(name));
    }
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,{SONAME}");
}

/// Writes a file only if its text is new, so that a build without changes keeps the times of files.
fn write(path: &Path, text: &str) {
    if fs::read_to_string(path).is_ok_and(|old| old == text) {
        return;
    }
    // Another process may be reading the old text: replace it in one step.
    let new = path.with_extension("new");
    fs::write(&new, text)
        .and_then(|()| fs::rename(&new, path))
        .unwrap_or_else(|e| panic!("writing {}: {e}", path.display()));
}

fn link(name: &Path) {
    match std::os::unix::fs::symlink("libmpi_abi.so", name) {
        Err(e) if e.kind() != io::ErrorKind::AlreadyExists => {
            panic!("linking {}: {e}", name.display())
        }
        _ => {}
    }
}
