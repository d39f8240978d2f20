//! The entry points.

use super::argument::{ParameterRow, argument, rust_name, rust_type};
use super::entry_point::{EntryPoint, all_names};
use super::{BindingSource, OlderBinding, modern};
use std::collections::BTreeMap;
use weft_fortran::data::{FunctionForm, Procedure};

/// Procedures of the standard ABI alone, and those that [`super::removed`] and [`super::sizes`] write.
fn is_left_out(name: &str) -> bool {
    let by_hand =
        ["MPI_Sizeof", "MPI_F_sync_reg", "MPI_Status_f082f", "MPI_Status_f2f08"].contains(&name);
    by_hand
        || name.starts_with("MPI_Abi_")
        || name.ends_with("_toint")
        || name.ends_with("_fromint")
}

/// Procedures after which a communicator of MPI_Comm_idup may be complete.
fn completes(name: &str) -> bool {
    ["MPI_Wait", "MPI_Test", "MPI_Request_get_status"].iter().any(|stem| name.starts_with(stem))
        && !name.contains("cancelled")
}

pub fn write(source: &BindingSource) -> String {
    let mut out = String::new();
    let mut functions = BTreeMap::new();
    let plain = source.procedures.iter().filter(|p| !p.callback && p.predefined.is_none());
    for procedure in
        plain.filter(|p| (p.f90 || p.f08) && !is_left_out(&p.name) && p.returns[0].is_some())
    {
        for form in FunctionForm::ALL {
            let Some(procedure) = in_form(source, procedure, form) else { continue };
            out += &all_names(&entry(source, &procedure, form));
            if creator(&procedure.name).is_none() {
                functions.insert(procedure.name.clone(), declaration(&procedure));
            }
        }
    }
    let declared: String = functions.values().cloned().collect();
    let declared = declared + CREATORS_DECLARED;
    format!("unsafe extern \"C\" {{\n{declared}}}\n\n{out}")
}

/// Returns a form of a procedure as a procedure of its own. Only MPICH's ABI has large-count forms.
fn in_form(source: &BindingSource, procedure: &Procedure, form: FunctionForm) -> Option<Procedure> {
    let mut of_form = procedure.clone();
    if form == FunctionForm::Plain {
        of_form.parameters.retain(|p| !p.large_only);
        return Some(of_form);
    }
    let has_form = source.target == OlderBinding::Mpich && procedure.f08;
    if !has_form || procedure.takes_callbacks() {
        return None;
    }
    of_form.returns = [Some(procedure.returns[1].clone()?), None];
    of_form.name += form.suffix();
    for p in &mut of_form.parameters {
        p.types = [p.types[1].clone(), String::new()];
    }
    Some(of_form)
}

/// Functions of the C library that create an object of a Fortran function, by procedure, with the first argument.
const CREATORS: [(&str, &str, &str); 5] = [
    ("MPI_Op_create", "weft_fortran_op_create", ""),
    ("MPI_Comm_create_errhandler", "weft_fortran_errhandler_create", "0, "),
    ("MPI_Session_create_errhandler", "weft_fortran_errhandler_create", "1, "),
    ("MPI_Win_create_errhandler", "weft_fortran_errhandler_create", "2, "),
    ("MPI_File_create_errhandler", "weft_fortran_errhandler_create", "3, "),
];

const CREATORS_DECLARED: &str = "    fn weft_fortran_op_create(function: usize, commute: c_int, op: *mut Op) -> c_int;\n    \
    fn weft_fortran_errhandler_create(kind: c_int, function: usize, errhandler: *mut Errhandler) -> c_int;\n";

fn creator(name: &str) -> Option<(&'static str, &'static str)> {
    CREATORS.iter().find(|row| row.0 == name).map(|row| (row.1, row.2))
}

/// Returns the declaration of the C function.
fn declaration(procedure: &Procedure) -> String {
    let shown = procedure.parameters.iter().filter(|p| p.kind != "VARARGS");
    let parameters = shown.map(|p| format!("{}: {}", rust_name(&p.name), rust_type(&p.types[0])));
    let parameters = parameters.collect::<Vec<_>>().join(", ");
    format!("    fn P{}({parameters}) -> {};\n", procedure.name, returned(procedure))
}

fn returned(procedure: &Procedure) -> &'static str {
    match procedure.returns[0].as_deref() {
        Some("double") => "f64",
        Some("MPI_Aint") => "isize",
        _ => "c_int",
    }
}

fn entry(source: &BindingSource, procedure: &Procedure, form: FunctionForm) -> EntryPoint {
    let parameters = procedure.parameters.iter().filter(|p| p.kind != "VARARGS");
    let rows: Vec<(String, ParameterRow)> =
        parameters.map(|p| (rust_name(&p.name), argument(source, procedure, p))).collect();
    let shown = rows.iter().filter(|(_, row)| !row.declare.is_empty());
    let mut declared: Vec<_> =
        shown.map(|(name, row)| (name.clone(), row.declare.clone())).collect();
    if procedure.has_error() {
        declared.push(("ierror".to_owned(), "*mut c_int".to_owned()));
    }
    let hidden = rows.iter().filter(|(_, row)| row.hidden);
    declared.extend(hidden.map(|(name, _)| (format!("{name}_len"), "usize".to_owned())));
    let result = match (procedure.has_error(), returned(procedure)) {
        (true, _) | (_, "c_int") => "",
        (_, "f64") => " -> f64",
        _ => " -> isize",
    };
    let list = declared
        .iter()
        .map(|(name, kind)| format!("{name}: {kind}"))
        .collect::<Vec<_>>()
        .join(", ");
    let names = declared.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>().join(", ");
    let body = body(source, procedure, &rows);
    let name = procedure.name.to_lowercase();
    let name = name.strip_suffix(form.suffix()).unwrap_or(&name).to_owned();
    let mut entry = EntryPoint {
        name,
        form,
        parameters: list,
        names,
        result,
        body,
        further: Vec::new(),
        described: String::new(),
    };
    entry.further = modern::function_names(source, &entry.name);
    // A program passes only the address of memory that it frees, so MPICH and Intel name two forms.
    if procedure.name == "MPI_Free_mem" && source.target == OlderBinding::Mpich {
        entry.further = modern::names(source, &entry);
    }
    let described = source.target == OlderBinding::Mpich && procedure.find("BUFFER").is_some();
    if procedure.f08 && described {
        entry.described = modern::described(procedure, &entry);
    } else if procedure.f08 && procedure.find("C_BUFFER2").is_none() {
        // Otherwise `mpi_f08` passes the addresses of buffers as `mpif.h` does, and the address of a handle's number.
        entry.further.extend(modern::names(source, &entry));
        entry.further.extend(modern::extension_names(source, procedure));
    } else if procedure.f08 {
        entry.described = modern::detaching(source, &entry);
    }
    entry
}

fn body(source: &BindingSource, procedure: &Procedure, rows: &[(String, ParameterRow)]) -> String {
    let pass = rows.iter().map(|(_, row)| row.pass.as_str()).collect::<Vec<_>>().join(", ");
    let call = match creator(&procedure.name) {
        Some((function, first)) => format!("{function}({first}{pass})"),
        None => format!("P{}({pass})", procedure.name),
    };
    if !procedure.has_error() {
        return if returned(procedure) == "c_int" { format!("{call};") } else { call };
    }
    let joined = |text: fn(&ParameterRow) -> &str| {
        rows.iter()
            .map(|(_, row)| text(row))
            .filter(|text| !text.is_empty())
            .collect::<Vec<_>>()
            .join("\n        ")
    };
    let (before, after) = (joined(|row| &row.before), joined(|row| &row.after));
    // With numbers as handles, the C library itself stores the communicator later.
    let (before, call, after) = match source.target {
        OlderBinding::OpenMpi if procedure.name.starts_with("MPI_Comm_idup") => {
            let call = call.replace("&raw mut newcomm_c", "word.cast()");
            let after = rows
                .iter()
                .filter(|(name, _)| name != "newcomm")
                .map(|(_, row)| row.after.as_str());
            let before = before.replace("let mut newcomm_c = Comm::NOTHING;", "");
            (
                before,
                format!("DUPLICATES.start(newcomm, |word| {call})"),
                after.collect::<Vec<_>>().join("\n        "),
            )
        }
        OlderBinding::OpenMpi if completes(&procedure.name) => {
            (before, call, format!("{after}\n        DUPLICATES.store_complete();"))
        }
        _ => (before, call, after),
    };
    format!(
        "{before}\n        let code = {call};\n        {after}\n        store_code(ierror, code);"
    )
}
