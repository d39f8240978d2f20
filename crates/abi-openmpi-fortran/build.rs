//! Generates `$OUT_DIR/entry_points.rs`, and names the library and what it needs.

use std::path::Path;
use std::{env, fs};
use weft_legacy_fortran::generate::{OlderBinding, library, link};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let here = env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let crates = Path::new(&here).parent().expect("the crate lies in crates/");
    let out = env::var("OUT_DIR").expect("cargo sets it");
    let text = library(OlderBinding::OpenMpi, crates);
    fs::write(Path::new(&out).join("entry_points.rs"), text).expect("writing entry_points.rs");
    link(Path::new(&out), "libmpi_mpifh.so.40", "libmpi.so.40");
}
