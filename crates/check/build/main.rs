//! Generates `$OUT_DIR/functions.rs`: a description of each MPI function, and its entry point.

use std::env;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use weft_abi_data::{Abi, AbiFunction, Kinds, Param, ParameterDirection};

/// Functions without an entry point: they return other types than `int`, take a variable number of arguments, or may be called
/// before MPI_Init, when there is nothing to check.
fn is_left_out(f: &AbiFunction) -> bool {
    let other = ["MPI_Pcontrol", "MPI_Initialized", "MPI_Finalized", "MPI_Get_version"];
    f.returns != "int"
        || f.name.starts_with("MPI_T_")
        || f.name.starts_with("MPI_Abi_")
        || f.name.ends_with("_toint")
        || f.name.ends_with("_fromint")
        || other.contains(&f.name.as_str())
}

fn main() {
    println!("cargo::rerun-if-changed=build");
    let here = env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let data = Path::new(&here).join("../abi/data");
    let abi = Abi::read(&data);
    let kinds = Kinds::read(&Path::new(&here).join("../fortran/data/parameters.csv"));
    let functions: Vec<_> = abi.functions.iter().filter(|f| !is_left_out(f)).collect();
    let mut out = String::new();
    writeln!(out, "pub static FUNCTIONS: [FunctionDescription; {}] = [", functions.len()).unwrap();
    functions.iter().for_each(|f| description(&mut out, &kinds, f));
    out.push_str("];\n\n");
    operators(&mut out, &abi);
    for (index, f) in functions.iter().enumerate() {
        entry_point(&mut out, index, f);
    }
    let out_dir = env::var("OUT_DIR").expect("cargo sets it");
    fs::write(Path::new(&out_dir).join("functions.rs"), out).expect("writing functions.rs");
    println!("cargo::rustc-cdylib-link-arg=-Wl,-soname,libweft_check.so");
}

/// Writes the names of the predefined operators, each with its handle.
fn operators(out: &mut String, abi: &Abi) {
    let all = abi.constants.iter().filter(|constant| constant.c_type == "MPI_Op");
    out.push_str("pub static OPERATORS: &[(u64, &str)] = &[");
    all.for_each(|c| write!(out, "({}, \"{}\"), ", c.value, c.name).unwrap());
    out.push_str("];\n\n");
}

/// Form of a parameter in C.
fn form(p: &Param) -> &'static str {
    match (p.base.as_str(), p.stars, p.dims.as_str()) {
        ("int", 0, "") => "Int",
        ("int", ..) => "Ints",
        ("MPI_Count" | "MPI_Aint" | "MPI_Offset", 0, "") => "Wide",
        ("MPI_Count" | "MPI_Aint" | "MPI_Offset", ..) => "Wides",
        (_, 0, "") => "Handle",
        _ => "Pointer",
    }
}

fn description(out: &mut String, kinds: &Kinds, f: &AbiFunction) {
    writeln!(out, "    FunctionDescription {{ name: c\"P{}\", parameters: &[", f.name).unwrap();
    for p in &f.params {
        let kind = kinds.get(&f.name, &p.name);
        let name = kind.map_or(String::new(), |kind| kind.kind.clone());
        let direction = match kind.map(|kind| kind.direction) {
            Some(ParameterDirection::Out) => "Out",
            Some(ParameterDirection::InOut) => "InOut",
            _ => "In",
        };
        let is_array = !p.dims.is_empty() || kind.is_some_and(|kind| !kind.length.is_empty());
        writeln!(
            out,
            "        ParameterDescription {{ name: \"{}\", kind: \"{name}\", direction: ArgumentDirection::{direction}, form: Form::{}, is_array: {is_array} }},",
            p.name,
            form(p)
        )
        .unwrap();
    }
    out.push_str("    ] },\n");
}

/// Writes an entry point, which stores its return address and jumps to a function that calls `intercept`.
fn entry_point(out: &mut String, index: usize, f: &AbiFunction) {
    let names: Vec<_> = (0..f.params.len()).map(|i| format!("a{i}")).collect();
    let list = names.iter().map(|name| format!("{name}: usize")).collect::<Vec<_>>().join(", ");
    writeln!(
        out,
        "const _: () = {{\n    unsafe extern \"C\" fn call({list}) -> c_int {{\n        \
         // SAFETY: the program keeps MPI's rules for its arguments.\n        \
         unsafe {{ crate::intercept({index}, &[{}]) }}\n    }}\n    \
         #[unsafe(naked)]\n    #[unsafe(no_mangle)]\n    pub unsafe extern \"C\" fn {}() {{\n        \
         call_site_entry!(call)\n    }}\n}};\n",
        names.join(", "),
        f.name
    )
    .unwrap();
}
