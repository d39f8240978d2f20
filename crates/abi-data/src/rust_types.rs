//! C types and names as Rust has them, for generated code.

use crate::Param;

/// Mutability of pointers in Rust.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PointerMutability {
    /// A pointer to what C declares `const` is `*const`.
    AsInC,
    /// All pointers are `*mut`.
    AlwaysMut,
}

/// Returns the Rust type of a C type without stars. Handles, statuses and callbacks have none: each ABI has its own.
pub fn scalar_type(base: &str) -> Option<&'static str> {
    Some(match base {
        "void" => "c_void",
        "int" | "MPI_Fint" | "MPI_T_cb_safety" | "MPI_T_source_order" => "c_int",
        "char" => "c_char",
        "double" => "f64",
        "MPI_Count" | "MPI_Offset" => "i64",
        "MPI_Aint" => "isize",
        _ => return None,
    })
}

/// Returns the Rust type of a parameter whose C type without stars is `base` in Rust. `stars` is less than the parameter's for a
/// callback, whose type is a pointer already.
///
/// # Panics
/// If C's brackets are unknown.
pub fn pointer_type(p: &Param, base: &str, stars: usize, mutability: PointerMutability) -> String {
    let (mut rust_type, levels) = match p.dims.as_str() {
        "" => (base.to_owned(), stars),
        "[]" => (base.to_owned(), stars + 1),
        "[][3]" => (format!("[{base}; 3]"), stars + 1),
        other => panic!("no Rust type is known for the brackets `{other}`"),
    };
    for level in 0..levels {
        let constant = level == 0 && p.constant && mutability == PointerMutability::AsInC;
        rust_type = format!("*{} {rust_type}", if constant { "const" } else { "mut" });
    }
    rust_type
}

/// Returns true for names of parameters that Rust reserves.
pub fn is_reserved(name: &str) -> bool {
    ["type", "ref", "in", "box", "move", "use", "where", "final"].contains(&name)
}

/// Returns the Rust name of a parameter: a raw identifier if Rust reserves the name.
pub fn rust_name(name: &str) -> String {
    if is_reserved(name) { format!("r#{name}") } else { name.to_owned() }
}
