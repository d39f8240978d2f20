//! Generates `$OUT_DIR/calls.rs`: the names of the MPI functions, and an entry point for each.

use std::env;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use weft_abi_data::{Abi, AbiFunction};

/// Functions without an entry point: they take a variable number of arguments, or take no time.
fn is_left_out(f: &AbiFunction) -> bool {
    f.name == "MPI_Pcontrol"
        || f.name.starts_with("MPI_T_")
        || f.name.starts_with("MPI_Abi_")
        || f.name.ends_with("_toint")
        || f.name.ends_with("_fromint")
}

fn main() {
    println!("cargo::rerun-if-changed=build");
    let here = env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let abi = Abi::read(&Path::new(&here).join("../abi/data"));
    let functions: Vec<_> = abi.functions.iter().filter(|f| !is_left_out(f)).collect();
    let mut out = String::new();
    writeln!(out, "pub static NAMES: [&str; {}] = [", functions.len()).unwrap();
    for f in &functions {
        writeln!(out, "    \"{}\",", f.name).unwrap();
    }
    out.push_str("];\n\n");
    for (index, f) in functions.iter().enumerate() {
        let names: Vec<_> = (0..f.params.len()).map(|i| format!("a{i}")).collect();
        let result = if f.returns == "double" { "f64" } else { "usize" };
        writeln!(
            out,
            "entry_point! {{ {index} {} c\"P{}\" ({}) -> {result} }}",
            f.name,
            f.name,
            names.join(" ")
        )
        .unwrap();
    }
    let out_dir = env::var("OUT_DIR").expect("cargo sets it");
    fs::write(Path::new(&out_dir).join("calls.rs"), out).expect("writing calls.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libweft_sim_calls.so");
}
