//! Generates `$OUT_DIR/standard.rs`: the functions of the standard ABI as a structure of function pointers, and its constants.

use std::fmt::Write;
use std::path::Path;
use std::{env, fs};
use weft_abi_data::rust_types::{PointerMutability, pointer_type, scalar_type};
use weft_abi_data::{Abi, Param};

fn main() {
    println!("cargo::rerun-if-changed=build");
    let here = env::var("CARGO_MANIFEST_DIR").expect("cargo sets it");
    let abi = Abi::read(&Path::new(&here).join("../abi/data"));
    let out = env::var("OUT_DIR").expect("cargo sets it");
    let text = functions(&abi) + &constants(&abi);
    fs::write(Path::new(&out).join("standard.rs"), text).expect("writing standard.rs");
}

fn functions(abi: &Abi) -> String {
    let (mut fields, mut found) = (String::new(), String::new());
    for f in &abi.functions {
        let types = f.params.iter().map(|p| standard_type(p, abi)).collect::<Vec<_>>().join(", ");
        let name = &f.name;
        let result = scalar(&f.returns, abi);
        let kind = format!("unsafe extern \"C\" fn({types}) -> {result}");
        writeln!(fields, "    pub {name}: {kind},").unwrap();
        writeln!(
            found,
            "            {name}: transmute::<*const c_void, {kind}>(find(c\"{name}\")),"
        )
        .unwrap();
    }
    format!(
        "/// The functions of the standard ABI.\n#[allow(non_snake_case)]\npub struct Standard {{\n{fields}}}\n\n\
         impl Standard {{\n    /// Looks all functions up.\n    ///\n    /// # Safety\n    /// `find` returns the standard's \
         functions.\n    unsafe fn load(find: impl Fn(&CStr) -> *const c_void) -> Standard {{\n        // SAFETY: each address is \
         that of the function with the type of its field: the caller of `load` promises it.\n        unsafe {{ Standard {{\n{found}        }} }}\n    }}\n}}\n\n"
    )
}

/// Writes the constants as 64-bit numbers.
fn constants(abi: &Abi) -> String {
    let mut out =
        String::from("/// Constants of the standard ABI.\n#[allow(unused)]\npub mod constants {\n");
    for c in &abi.constants {
        let (name, value) = (&c.name, &c.value);
        writeln!(out, "    pub const {name}: i64 = {value};").unwrap();
    }
    out + "}\n"
}

fn scalar(base: &str, abi: &Abi) -> &'static str {
    match scalar_type(base) {
        Some(scalar) => scalar,
        None if base == "MPI_Status" => "StandardStatus",
        None if abi.is_callback(base) || abi.handles.iter().any(|(name, _)| name == base) => {
            "usize"
        }
        None => panic!("no type for {base}"),
    }
}

/// Returns the type of a parameter. All handles and callbacks are `usize`.
fn standard_type(p: &Param, abi: &Abi) -> String {
    // A callback's type is a pointer already.
    let stars = if abi.is_callback(&p.base) { 0 } else { p.stars };
    pointer_type(p, scalar(&p.base, abi), stars, PointerMutability::AlwaysMut)
}
