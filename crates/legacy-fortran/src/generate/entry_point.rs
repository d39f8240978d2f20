//! The text of an entry point under all its names.

use std::fmt::Write;
use weft_fortran::data::FunctionForm;

/// The text of an entry point: what its names share.
pub struct EntryPoint {
    /// Fortran's name in lower case. `mpif.h` has no large-count form, so an entry point of such a form has only further names.
    pub name: String,
    pub form: FunctionForm,
    /// Parameters in Rust, without parentheses.
    pub parameters: String,
    /// Names of the parameters.
    pub names: String,
    /// Rust's return type, with the arrow.
    pub result: &'static str,
    pub body: String,
    /// Names that are not made of `name`, for `mpi_f08`.
    pub further: Vec<String>,
    /// Entry points of other parameters that call the same body.
    pub described: String,
}

/// Returns the names of a module's item with gfortran and with Intel's compilers.
pub fn module_names(module: &str, item: &str) -> [String; 2] {
    [format!("__{module}_MOD_{item}"), format!("{module}_mp_{item}_")]
}

/// Returns all names of a procedure that the linker may look for.
fn spellings(entry: &EntryPoint) -> Vec<String> {
    let mut all = entry.further.clone();
    if entry.form == FunctionForm::Large {
        return all;
    }
    for name in [entry.name.clone(), format!("p{}", entry.name)] {
        all.extend([name.clone(), format!("{name}_"), format!("{name}__"), name.to_uppercase()]);
    }
    all
}

/// Writes an entry point under all its names. No name calls another, so that a profiling library sees each call once.
pub fn all_names(entry: &EntryPoint) -> String {
    let EntryPoint { parameters, names, result, body, described, .. } = entry;
    let mut out = String::from("const _: () = {\n");
    let spellings = spellings(entry);
    if !spellings.is_empty() || described.contains(" call(") {
        write!(
            out,
            "    #[inline(never)]\n    unsafe extern \"C\" fn call({parameters}){result} {{\n        \
             // SAFETY: the program keeps MPI's rules for its arguments.\n        unsafe {{ {body} }}\n    }}\n"
        )
        .unwrap();
    }
    for name in spellings {
        write!(
            out,
            "    #[unsafe(no_mangle)]\n    pub unsafe extern \"C\" fn {name}({parameters}){result} {{\n        \
             // SAFETY: as in `call`.\n        unsafe {{ call({names}) }}\n    }}\n"
        )
        .unwrap();
    }
    out + described + "};\n\n"
}
