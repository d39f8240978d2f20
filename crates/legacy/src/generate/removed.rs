//! Functions that the standard no longer has, and conversions of handles for Fortran.

use super::argument::rust_type;
use super::function::both;
use super::handles::CLASSES;
use super::{LegacyTarget, Source};
use std::fmt::Write;
use weft_abi_data::Param;
use weft_abi_data::removed::RemovedFunction;
use weft_abi_data::rust_types::rust_name;

/// Bodies of the functions that are more than one call.
const BODIES: &[(&str, &str)] = &[
    ("Type_extent", "let mut lb = 0; PMPI_Type_get_extent(datatype, &raw mut lb, extent)"),
    (
        "Type_lb",
        "let mut extent = 0; PMPI_Type_get_extent(datatype, displacement, &raw mut extent)",
    ),
    (
        "Type_ub",
        "let (mut lb, mut extent) = (0, 0); let code = PMPI_Type_get_extent(datatype, &raw mut lb, &raw mut extent); \
         if code == 0 && !displacement.is_null() { *displacement = lb + extent; } code",
    ),
    (
        "Type_struct",
        "calls::bounded_struct::<Own>(count, array_of_blocklengths, array_of_displacements, array_of_types, newtype)",
    ),
];

/// Returns the body of a function. The names of both forms differ from those of the functions that the body calls.
fn body(f: &RemovedFunction) -> String {
    if let Some((_, body)) = BODIES.iter().find(|(name, _)| *name == f.name) {
        return (*body).to_owned();
    }
    match f.params.as_slice() {
        [from, to] if f.name.starts_with("Status_") => {
            format!("calls::status_copy({}.cast(), {}.cast(), STATUS_NUMBERS)", from.name, to.name)
        }
        _ if f.call.is_empty() => panic!("no body for {}", f.name),
        _ => format!("PMPI_{}", f.call),
    }
}

/// Returns the parameters in Rust, and their names.
fn parameters(params: &[Param], source: &Source) -> [String; 2] {
    let names: Vec<_> = params.iter().map(|p| rust_name(&p.name)).collect();
    let declared = params.iter().zip(&names);
    let declared: Vec<_> =
        declared.map(|(p, name)| format!("{name}: {}", rust_type(p, source))).collect();
    [declared.join(", "), names.join(", ")]
}

/// Returns the declarations of the functions that the bodies call.
fn declarations(source: &Source, bodies: &[String]) -> String {
    let mut out = String::from("unsafe extern \"C\" {\n");
    let is_called = |name: &str| bodies.iter().any(|body| body.contains(&format!("P{name}(")));
    for f in source.abi.functions.iter().filter(|f| is_called(&f.name)) {
        let [declared, _] = parameters(&f.params, source);
        writeln!(out, "    fn P{}({declared}) -> c_int;", f.name).unwrap();
    }
    out + "}\n\n"
}

/// Writes a function that Open MPI's header has, and that no version of the standard has.
fn session_set_info() -> String {
    let body = "calls::session_set_info::<Own>(session.to_standard(), info.to_standard())";
    both("MPI_Session_set_info", "session: Session, info: Info", "session, info", "c_int", body)
}

pub fn write(source: &Source) -> String {
    let bodies: Vec<_> = source.removed.iter().map(body).collect();
    let mut out = declarations(source, &bodies);
    if source.target == LegacyTarget::OpenMpi {
        out += &session_set_info();
    }
    for (f, body) in source.removed.iter().zip(&bodies) {
        let [declared, names] = parameters(&f.params, source);
        out += &both(&format!("MPI_{}", f.name), &declared, &names, "c_int", body);
    }
    for class in &CLASSES {
        let name = class.0;
        let (kind, table) = (if name == "Datatype" { "Type" } else { name }, name.to_uppercase());
        let to = match (source.target, name) {
            (LegacyTarget::Mpich, "File") => {
                "calls::handle_to_fortran(handle, FORTRAN_FILE, standard().MPI_File_toint)"
                    .to_owned()
            }
            (LegacyTarget::Mpich, _) => "handle.0".to_owned(),
            (LegacyTarget::OpenMpi, _) => format!(
                "calls::handle_to_fortran(handle, FORTRAN_{table}, standard().MPI_{kind}_toint)"
            ),
        };
        let from = match (source.target, name) {
            (LegacyTarget::Mpich, "File") => {
                "calls::handle_from_fortran(number, FORTRAN_FILE, standard().MPI_File_fromint)"
                    .to_owned()
            }
            (LegacyTarget::Mpich, _) => format!("{name}(number)"),
            (LegacyTarget::OpenMpi, _) => format!(
                "calls::handle_from_fortran(number, FORTRAN_{table}, standard().MPI_{kind}_fromint)"
            ),
        };
        write!(
            out,
            "impl FortranHandle for {name} {{\n    fn number(self) -> c_int {{\n        let handle = self;\n        \
             // SAFETY: the function takes any handle.\n        unsafe {{ {to} }}\n    }}\n}}\n\n"
        )
        .unwrap();
        for suffix in ["c2f", "toint"] {
            let (name, list) = (format!("MPI_{kind}_{suffix}"), format!("handle: {name}"));
            out += &both(&name, &list, "handle", "c_int", "handle.number()");
        }
        for suffix in ["f2c", "fromint"] {
            out += &both(&format!("MPI_{kind}_{suffix}"), "number: c_int", "number", name, &from);
        }
    }
    out + FORTRAN_CALLBACKS
}

/// Functions for the Fortran library, whose callbacks get numbers of handles.
const FORTRAN_CALLBACKS: &str = "/// Creates an operator of a Fortran function.
#[unsafe(no_mangle)]
pub unsafe extern \"C\" fn weft_fortran_op_create(function: usize, commute: c_int, op: *mut Op) -> c_int {
    // SAFETY: the Fortran library passes what its program has passed.
    unsafe { calls::made::<Own, Op>(op, |op| callbacks::create_fortran_op::<Own>(function, commute, op)) }
}

/// Creates an error handler of a Fortran function, for communicators, sessions, windows or files by `kind`.
#[unsafe(no_mangle)]
pub unsafe extern \"C\" fn weft_fortran_errhandler_create(kind: c_int, function: usize, errhandler: *mut Errhandler) -> c_int {
    let create = match kind {
        0 => callbacks::create_fortran_errhandler::<Own, Comm>,
        1 => callbacks::create_fortran_errhandler::<Own, Session>,
        2 => callbacks::create_fortran_errhandler::<Own, Win>,
        _ => callbacks::create_fortran_errhandler::<Own, File>,
    };
    // SAFETY: as in `weft_fortran_op_create`.
    unsafe { calls::made::<Own, Errhandler>(errhandler, |to| create(kind, function, to)) }
}
";
