//! Named constants and special addresses, for the three ways to use MPI from Fortran.

use crate::data::{self, Procedure};
use std::fmt::Write;

/// Handle types, in the order of the standard.
pub const HANDLES: [&str; 11] = [
    "MPI_Comm",
    "MPI_Datatype",
    "MPI_Errhandler",
    "MPI_File",
    "MPI_Group",
    "MPI_Info",
    "MPI_Message",
    "MPI_Op",
    "MPI_Request",
    "MPI_Session",
    "MPI_Win",
];

/// Variables with special addresses: Fortran's name, bounds, and the name of the common block.
const ADDRESSES: [(&str, &str, &str); 10] = [
    ("MPI_BOTTOM", "", "weft_bottom"),
    ("MPI_IN_PLACE", "", "weft_in_place"),
    ("MPI_BUFFER_AUTOMATIC", "", "weft_buffer_automatic"),
    ("MPI_STATUS_IGNORE", "(MPI_STATUS_SIZE)", "weft_status_ignore"),
    ("MPI_STATUSES_IGNORE", "(MPI_STATUS_SIZE,1)", "weft_statuses_ignore"),
    ("MPI_ERRCODES_IGNORE", "(1)", "weft_errcodes_ignore"),
    ("MPI_UNWEIGHTED", "(1)", "weft_unweighted"),
    ("MPI_WEIGHTS_EMPTY", "(1)", "weft_weights_empty"),
    ("MPI_ARGV_NULL", "(1)", "weft_argv_null"),
    ("MPI_ARGVS_NULL", "(1,1)", "weft_argvs_null"),
];

/// A constant in Fortran: type, name, value.
struct Value {
    c_type: String,
    name: String,
    number: i64,
}

fn number(text: &str) -> Option<i64> {
    match text.strip_prefix("0x") {
        Some(digits) => i64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

/// Returns the constants with numbers. String lengths are one less than in C, which counts the NUL. Places in a status count
/// from 1.
fn values() -> Vec<Value> {
    let all = data::constants();
    let resolved = |value: &str| {
        let other = all.iter().find(|c| c.name == value);
        other.map(|c| (c.c_type.clone(), c.value.clone()))
    };
    let mut values = Vec::new();
    for constant in &all {
        let (mut c_type, value) = (constant.c_type.clone(), constant.value.clone());
        let value = match resolved(&value) {
            Some((other_type, other)) => {
                c_type = other_type;
                other
            }
            None => value,
        };
        let c_alone = constant.name.starts_with("MPI_T_")
            || constant.name.starts_with("MPI_F_")
            || c_type.contains('*');
        if let Some(number) = number(&value).filter(|_| !c_alone) {
            let less = i64::from(constant.name.starts_with("MPI_MAX_") && c_type.is_empty());
            values.push(Value { c_type, name: constant.name.clone(), number: number - less });
        }
    }
    let own = [
        ("MPI_STATUS_SIZE", 8),
        ("MPI_SOURCE", 1),
        ("MPI_TAG", 2),
        ("MPI_ERROR", 3),
        ("MPI_ADDRESS_KIND", 8),
        ("MPI_COUNT_KIND", 8),
        ("MPI_INTEGER_KIND", 4),
        ("MPI_OFFSET_KIND", 8),
    ];
    let own = own.map(|(name, number)| Value { c_type: String::new(), name: name.into(), number });
    own.into_iter().chain(values).collect()
}

/// Type of handles in Fortran.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum HandleTypes {
    /// Integers: in the module `mpi`.
    Integers,
    /// A derived type for each kind of handle: in the module `mpi_f08`.
    Derived,
}

/// Returns the constants of a module.
pub fn declarations(handles: HandleTypes) -> String {
    let typed = handles == HandleTypes::Derived;
    let mut out = String::new();
    for Value { c_type, name, number } in values() {
        let line = match c_type.as_str() {
            handle if typed && HANDLES.contains(&handle) => {
                format!("type({handle}), parameter :: {name} = {handle}({number})")
            }
            "MPI_Offset" => format!("integer(8), parameter :: {name} = {number}"),
            _ => format!("integer, parameter :: {name} = {number}"),
        };
        writeln!(out, "  {line}").unwrap();
    }
    let sections = if typed { ".true." } else { ".false." };
    for name in ["MPI_SUBARRAYS_SUPPORTED", "MPI_ASYNC_PROTECTS_NONBLOCKING"] {
        writeln!(out, "  logical, parameter :: {name} = {sections}").unwrap();
    }
    for (name, bounds, common) in ADDRESSES {
        let kind = match (typed, name) {
            (_, "MPI_ARGV_NULL" | "MPI_ARGVS_NULL") => "character(len=1)",
            (true, "MPI_STATUS_IGNORE" | "MPI_STATUSES_IGNORE") => "type(MPI_Status)",
            _ => "integer",
        };
        let bounds = match (typed, name) {
            (true, "MPI_STATUS_IGNORE") => "",
            (true, "MPI_STATUSES_IGNORE") => "(1)",
            _ => bounds,
        };
        writeln!(out, "  {kind} :: {name}{bounds}\n  common /{common}/ {name}").unwrap();
    }
    out
}

/// Returns the module of types and constants that `mpi_f08` uses.
pub fn types_module() -> String {
    let mut out = String::from(
        "module mpi_f08_types\n  use, intrinsic :: iso_c_binding, only: c_int\n  implicit none\n  \
         private :: c_int\n  type, bind(C) :: MPI_Status\n    integer(c_int) :: MPI_SOURCE\n    \
         integer(c_int) :: MPI_TAG\n    integer(c_int) :: MPI_ERROR\n    \
         integer(c_int) :: MPI_internal(5)\n  end type\n",
    );
    for handle in HANDLES {
        writeln!(out, "  type, bind(C) :: {handle}\n    integer(c_int) :: MPI_VAL\n  end type")
            .unwrap();
    }
    out.push_str(&declarations(HandleTypes::Derived));
    for (operator, word) in [("==", "equal"), ("/=", "differ")] {
        writeln!(out, "  interface operator({operator})").unwrap();
        for handle in HANDLES {
            writeln!(out, "    module procedure {handle}_{word}").unwrap();
        }
        out.push_str("  end interface\n");
    }
    for (_, word) in [("==", "equal"), ("/=", "differ")] {
        for handle in HANDLES {
            writeln!(out, "  private :: {handle}_{word}").unwrap();
        }
    }
    out.push_str("contains\n");
    for (operator, word) in [("==", "equal"), ("/=", "differ")] {
        for handle in HANDLES {
            writeln!(
                out,
                "  elemental logical function {handle}_{word}(a, b)\n    \
                 type({handle}), intent(in) :: a, b\n    \
                 {handle}_{word} = a%MPI_VAL {operator} b%MPI_VAL\n  end function"
            )
            .unwrap();
        }
    }
    out.push_str("end module mpi_f08_types\n");
    out
}

/// Returns `mpif.h`, which is valid in fixed and in free form: no text is before column 7 or after column 72.
pub fn mpif(procedures: &[Procedure]) -> String {
    let mut out = String::from("! mpif.h of Weft, for the MPI 5.0 standard ABI\n");
    // If integers were long, the arguments of all procedures would be too long. A compiler does not report this, so the file
    // checks it.
    out.push_str(
        "! An INTEGER must have 4 bytes here: compile without -fdefault-integer-8 or -i8.\n",
    );
    out.push_str(
        "      INTEGER MPI_NEEDS_4_BYTE_INTEGERS\n      \
         PARAMETER (MPI_NEEDS_4_BYTE_INTEGERS=1/(1-BIT_SIZE(0)/64))\n",
    );
    for Value { c_type, name, number } in values() {
        let kind = if c_type == "MPI_Offset" { "INTEGER(KIND=8)" } else { "INTEGER" };
        writeln!(out, "      {kind} {name}\n      PARAMETER ({name}={number})").unwrap();
    }
    for name in ["MPI_SUBARRAYS_SUPPORTED", "MPI_ASYNC_PROTECTS_NONBLOCKING"] {
        writeln!(out, "      LOGICAL {name}\n      PARAMETER ({name}=.FALSE.)").unwrap();
    }
    for (name, bounds, common) in ADDRESSES {
        let kind = if name.contains("ARGV") { "CHARACTER*1" } else { "INTEGER" };
        writeln!(out, "      {kind} {name}{bounds}\n      COMMON /{common}/ {name}").unwrap();
    }
    for procedure in procedures.iter().filter(|p| p.f90) {
        let name = &procedure.name;
        if procedure.predefined.is_some() {
            writeln!(out, "      EXTERNAL {name}").unwrap();
        }
        let kind = match procedure.returns[0].as_deref() {
            Some("double") => "DOUBLE PRECISION",
            Some("MPI_Aint") => "INTEGER(KIND=8)",
            _ => continue,
        };
        for prefix in ["", "P"] {
            writeln!(out, "      {kind} {prefix}{name}\n      EXTERNAL {prefix}{name}").unwrap();
        }
    }
    out
}
