//! Generates `$OUT_DIR/entry_points.rs`.

use std::path::Path;
use std::{env, fs};
use weft_legacy::generate::{LegacyTarget, library};

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let here = env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let crates = Path::new(&here).parent().expect("the crate lies in crates/");
    let out = env::var("OUT_DIR").expect("cargo sets it");
    let text = library(LegacyTarget::Mpich, crates);
    fs::write(Path::new(&out).join("entry_points.rs"), text).expect("writing entry_points.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libmpi.so.12");
}
