//! Programs for tests that call every procedure by its interface. They are compiled and linked, so an entry that is missing
//! or that has other arguments is noticed. They make no calls when they run.

use crate::data::{Procedure, ProcedureParameter, procedures};
use crate::entries::has;
use crate::interfaces::{call, declared, distinct};
use crate::kinds::CallVariant;
use std::fmt::Write;

/// Method by which a program gets MPI's declarations.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BindingForm {
    /// `include 'mpif.h'`.
    Include,
    /// `use mpi`.
    Mpi,
    /// `use mpi_f08`.
    MpiF08,
}

/// Procedures that `mpif.h` cannot have, since only an interface tells the types of their arguments.
pub const NOT_INCLUDED: [&str; 3] = ["MPI_Sizeof", "MPI_Status_f082f", "MPI_Status_f2f08"];

/// Returns the declaration of a variable that can be the argument for `p`.
pub fn variable(p: &ProcedureParameter, way: CallVariant) -> String {
    let declared = declared(p, way);
    let kind = match p.kind.as_str() {
        // Without an interface no argument is asynchronous.
        "BUFFER" | "C_BUFFER2" if way == CallVariant::Old => "integer",
        "BUFFER" => "integer, asynchronous",
        "STRING_2DARRAY" => return format!("character(len=20) :: {}(4, 4)", p.name),
        "STRING" | "STRING_ARRAY" => "character(len=20)",
        _ => declared.kind.trim_end_matches(", value"),
    };
    let bounds = match declared.bounds {
        _ if p.kind == "BUFFER" => "(4)",
        "(3, *)" => "(3, 4)",
        "(MPI_STATUS_SIZE, *)" => "(MPI_STATUS_SIZE, 4)",
        "(*)" => "(4)",
        other => other,
    };
    format!("{kind} :: {}{bounds}", p.name)
}

/// Returns a subroutine that calls `name`.
fn caller(procedure: &Procedure, name: &str, way: CallVariant, number: usize) -> String {
    let shown: Vec<_> = procedure.of(way.function()).filter(|p| !p.c_alone).collect();
    let functions: Vec<_> = shown.iter().filter(|p| !p.callback.is_empty()).collect();
    let functions: Vec<_> = functions.iter().map(|p| p.name.as_str()).collect();
    let mut arguments: Vec<_> = shown.iter().map(|p| p.name.as_str()).collect();
    if procedure.has_error() {
        arguments.push("ierror");
    }
    let head = call(&format!("subroutine caller{number}"), &functions);
    let mut out = format!("{head}\n");
    for p in shown {
        writeln!(out, "  {}", variable(p, way)).unwrap();
    }
    let statement = call(name, &arguments);
    if procedure.has_error() {
        out.push_str("  integer :: ierror\n");
    }
    match procedure.returns[0].as_deref() {
        Some("double" | "MPI_Aint") => {
            writeln!(out, "  double precision :: result\n  result = {statement}").unwrap();
        }
        _ => writeln!(out, "  call {statement}").unwrap(),
    }
    out.push_str("end subroutine\n");
    out
}

/// Returns the program, and the number of entries that it calls. All calls are in one module, so that MPI's module is read
/// only once.
pub fn calls(form: BindingForm) -> (String, usize) {
    let uses = match form {
        BindingForm::Include => "",
        BindingForm::Mpi => "  use mpi\n",
        BindingForm::MpiF08 => "  use mpi_f08\n",
    };
    let include = if form == BindingForm::Include { "  include 'mpif.h'\n" } else { "" };
    let head = "  use, intrinsic :: iso_c_binding, only: c_ptr\n  implicit none\n";
    let (mut out, mut number) = (format!("module callers\n{uses}{head}{include}contains\n"), 0);
    let ways: &[CallVariant] = if form == BindingForm::MpiF08 {
        &[CallVariant::New, CallVariant::Large]
    } else {
        &[CallVariant::Old]
    };
    for procedure in procedures() {
        for &way in ways.iter().filter(|&&way| has(&procedure, way)) {
            let by_name = way == CallVariant::Large && procedure.find("POLYFUNCTION").is_some();
            if (form == BindingForm::Include && NOT_INCLUDED.contains(&procedure.name.as_str()))
                || (way == CallVariant::Large && !by_name && !distinct(&procedure))
            {
                continue;
            }
            for prefix in ["", "P"] {
                let name = format!("{prefix}{}{}", procedure.name, if by_name { "_c" } else { "" });
                number += 1;
                out += &caller(&procedure, &name, way, number);
            }
        }
    }
    writeln!(out, "end module callers\nprogram calls\n  use callers\n  implicit none\n  print *, {number}\nend program").unwrap();
    (out, number)
}
