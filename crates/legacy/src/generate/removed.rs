//! Functions that the standard no longer has, and conversions of handles for Fortran.

use super::function::both;
use super::handles::CLASSES;
use super::{LegacyTarget, Source};

/// A function over others: its name, its parameters in Rust, their names, and its body.
struct Removed(&'static str, &'static str, &'static str, &'static str);

const REMOVED: &[Removed] = &[
    Removed(
        "MPI_Address",
        "location: *mut c_void, address: *mut isize",
        "location, address",
        "MPI_Get_address(location, address)",
    ),
    Removed(
        "MPI_Errhandler_create",
        "function: usize, errhandler: *mut Errhandler",
        "function, errhandler",
        "MPI_Comm_create_errhandler(function, errhandler)",
    ),
    Removed(
        "MPI_Errhandler_get",
        "comm: Comm, errhandler: *mut Errhandler",
        "comm, errhandler",
        "MPI_Comm_get_errhandler(comm, errhandler)",
    ),
    Removed(
        "MPI_Errhandler_set",
        "comm: Comm, errhandler: Errhandler",
        "comm, errhandler",
        "MPI_Comm_set_errhandler(comm, errhandler)",
    ),
    Removed(
        "MPI_Type_extent",
        "datatype: Datatype, extent: *mut isize",
        "datatype, extent",
        "let mut lb = 0; MPI_Type_get_extent(datatype, &raw mut lb, extent)",
    ),
    Removed(
        "MPI_Type_lb",
        "datatype: Datatype, displacement: *mut isize",
        "datatype, displacement",
        "let mut extent = 0; MPI_Type_get_extent(datatype, displacement, &raw mut extent)",
    ),
    Removed(
        "MPI_Type_ub",
        "datatype: Datatype, displacement: *mut isize",
        "datatype, displacement",
        "let (mut lb, mut extent) = (0, 0); let code = MPI_Type_get_extent(datatype, &raw mut lb, &raw mut extent); if code == 0 && !displacement.is_null() { *displacement = lb + extent; } code",
    ),
    Removed(
        "MPI_Type_hindexed",
        "count: c_int, lengths: *mut c_int, displacements: *mut isize, oldtype: Datatype, newtype: *mut Datatype",
        "count, lengths, displacements, oldtype, newtype",
        "MPI_Type_create_hindexed(count, lengths, displacements, oldtype, newtype)",
    ),
    Removed(
        "MPI_Type_hvector",
        "count: c_int, blocklength: c_int, stride: isize, oldtype: Datatype, newtype: *mut Datatype",
        "count, blocklength, stride, oldtype, newtype",
        "MPI_Type_create_hvector(count, blocklength, stride, oldtype, newtype)",
    ),
    Removed(
        "MPI_Type_struct",
        "count: c_int, lengths: *mut c_int, displacements: *mut isize, types: *mut Datatype, newtype: *mut Datatype",
        "count, lengths, displacements, types, newtype",
        "calls::bounded_struct::<Own>(count, lengths, displacements, types, newtype)",
    ),
    Removed(
        "MPI_Status_c2f",
        "c: *mut Status, f: *mut c_int",
        "c, f",
        "calls::status_copy(c.cast(), f, STATUS_NUMBERS)",
    ),
    Removed(
        "MPI_Status_f2c",
        "f: *mut c_int, c: *mut Status",
        "f, c",
        "calls::status_copy(f, c.cast(), STATUS_NUMBERS)",
    ),
    Removed(
        "MPI_Status_c2f08",
        "c: *mut Status, f: *mut c_int",
        "c, f",
        "calls::status_copy(c.cast(), f, STATUS_NUMBERS)",
    ),
    Removed(
        "MPI_Status_f082c",
        "f: *mut c_int, c: *mut Status",
        "f, c",
        "calls::status_copy(f, c.cast(), STATUS_NUMBERS)",
    ),
    Removed(
        "MPI_Status_f082f",
        "new: *mut c_int, old: *mut c_int",
        "new, old",
        "calls::status_copy(new, old, STATUS_NUMBERS)",
    ),
    Removed(
        "MPI_Status_f2f08",
        "old: *mut c_int, new: *mut c_int",
        "old, new",
        "calls::status_copy(old, new, STATUS_NUMBERS)",
    ),
];

/// A function that Open MPI's header has, and that no version of the standard has.
const SESSION_SET_INFO: Removed = Removed(
    "MPI_Session_set_info",
    "session: Session, info: Info",
    "session, info",
    "calls::session_set_info::<Own>(session.to_standard(), info.to_standard())",
);

pub fn write(source: &Source) -> String {
    let mut out = String::new();
    if source.target == LegacyTarget::OpenMpi {
        let Removed(name, list, names, body) = SESSION_SET_INFO;
        out += &both(name, list, names, "c_int", body);
    }
    // The names of both forms differ from those of the functions that their bodies call.
    out.push_str("unsafe extern \"C\" {\n");
    for line in CALLED {
        out += &format!("    fn {line};\n");
    }
    out.push_str("}\n\n");
    for Removed(name, list, names, body) in REMOVED {
        out += &both(name, list, names, "c_int", &body.replace("MPI_", "PMPI_"));
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
        for suffix in ["c2f", "toint"] {
            out += &both(
                &format!("MPI_{kind}_{suffix}"),
                &format!("handle: {name}"),
                "handle",
                "c_int",
                &to,
            );
        }
        for suffix in ["f2c", "fromint"] {
            out += &both(&format!("MPI_{kind}_{suffix}"), "number: c_int", "number", name, &from);
        }
    }
    out
}

/// Functions that the bodies above call.
const CALLED: &[&str] = &[
    "PMPI_Get_address(location: *mut c_void, address: *mut isize) -> c_int",
    "PMPI_Comm_create_errhandler(function: usize, errhandler: *mut Errhandler) -> c_int",
    "PMPI_Comm_get_errhandler(comm: Comm, errhandler: *mut Errhandler) -> c_int",
    "PMPI_Comm_set_errhandler(comm: Comm, errhandler: Errhandler) -> c_int",
    "PMPI_Type_get_extent(datatype: Datatype, lb: *mut isize, extent: *mut isize) -> c_int",
    "PMPI_Type_create_hindexed(count: c_int, lengths: *mut c_int, displacements: *mut isize, oldtype: Datatype, newtype: *mut Datatype) -> c_int",
    "PMPI_Type_create_hvector(count: c_int, blocklength: c_int, stride: isize, oldtype: Datatype, newtype: *mut Datatype) -> c_int",
];
