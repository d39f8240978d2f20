//! MPI_Sizeof: in the modules of the older ABIs, a procedure for each type, and for each rank of an array.

use super::entry_point::module_names;
use super::{BindingSource, OlderBinding};
use std::fmt::Write;

/// Types as Open MPI's module names them, and their sizes in bytes.
const TYPES: [(&str, usize); 12] = [
    ("character", 1),
    ("logical", 4),
    ("int8", 1),
    ("int16", 2),
    ("int32", 4),
    ("int64", 8),
    ("real32", 4),
    ("real64", 8),
    ("real128", 16),
    ("complex32", 8),
    ("complex64", 16),
    ("complex128", 32),
];

/// Types as MPICH's module names them; each also has a name with `v` for arrays.
const MODULE_TYPES: [(&str, usize); 9] =
    [("ch", 1), ("cx", 8), ("d", 8), ("i", 4), ("i1", 1), ("i2", 2), ("i8", 8), ("l", 4), ("r", 4)];

/// Highest rank of an array in Fortran.
const MOST_RANKS: usize = 15;

pub fn write(source: &BindingSource) -> String {
    let mut out = String::new();
    let mut add = |name: &str, bytes: usize| {
        write!(
            out,
            "#[unsafe(no_mangle)]\npub unsafe extern \"C\" fn {name}(_x: *mut c_void, size: *mut c_int, ierror: *mut c_int) {{\n    \
             // SAFETY: the program's variables may be written.\n    unsafe {{ *size = {bytes}; store_code(ierror, 0) }}\n}}\n\n"
        )
        .unwrap();
    };
    match source.target {
        OlderBinding::OpenMpi => {
            for (name, bytes) in TYPES {
                for prefix in ["", "p"] {
                    add(&format!("{prefix}mpi_sizeof_{name}_scalar_"), bytes);
                    (1..=MOST_RANKS).for_each(|rank| {
                        add(&format!("{prefix}mpi_sizeof_{name}_r{rank}_"), bytes)
                    });
                }
            }
        }
        OlderBinding::Mpich => {
            for (name, bytes) in MODULE_TYPES {
                for array in ["", "v"] {
                    let item = format!("mpi_sizeof_{name}{array}");
                    module_names("mpi_sizeofs", &item).iter().for_each(|name| add(name, bytes));
                }
            }
        }
    }
    out
}
