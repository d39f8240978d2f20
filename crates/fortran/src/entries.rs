//! The C sources: an entry point for each procedure and way of calling.

use crate::data::{Procedure, ProcedureParameter};
use crate::kinds::{self, ArgumentRow, CallVariant, outlives};
use crate::sections::{self, SectionRole};
use std::fmt::Write;

/// Procedures that are written by hand in the runtime.
pub const BY_HAND: [&str; 4] =
    ["MPI_Sizeof", "MPI_F_sync_reg", "MPI_Status_f082f", "MPI_Status_f2f08"];

/// Returns the linker's name of a procedure, without `p` in front and `_` at the end.
pub fn linker_name(procedure: &Procedure, way: CallVariant) -> String {
    let name = procedure.name.to_lowercase();
    let large = way.function().suffix();
    let buffer = procedure.find("BUFFER").is_some();
    match way {
        CallVariant::Old => name,
        _ if buffer => format!("{name}{large}_f08ts"),
        _ => format!("{name}{large}_f08"),
    }
}

/// Returns true if the procedure exists in this way of calling.
pub fn has(procedure: &Procedure, way: CallVariant) -> bool {
    let plain = !procedure.callback && procedure.predefined.is_none();
    plain
        && match way {
            CallVariant::Old => procedure.f90,
            CallVariant::New => procedure.f08,
            CallVariant::Large => procedure.f08 && procedure.returns[1].is_some(),
        }
}

/// Returns the statement after the call. For completions it frees copies that waited for the request; after initialisation it
/// tells the library about this compiler.
fn completion(procedure: &Procedure) -> &'static str {
    match procedure.name.as_str() {
        // MPICH accepts this only after initialisation.
        "MPI_Init" | "MPI_Init_thread" | "MPI_Session_init" => {
            "if (rc == MPI_SUCCESS) weft_begin();"
        }
        "MPI_Wait" => "weft_completed(rc, 1, request, &request_c);",
        "MPI_Test" => {
            "if (rc != MPI_SUCCESS || flag_c) weft_completed(rc, 1, request, &request_c);"
        }
        "MPI_Waitall" => "weft_completed(rc, *count, array_of_requests, array_of_requests_c);",
        "MPI_Testall" => {
            "if (rc != MPI_SUCCESS || flag_c) \
             weft_completed(rc, *count, array_of_requests, array_of_requests_c);"
        }
        "MPI_Waitany" | "MPI_Testany" => "weft_completed_one(index_c, array_of_requests);",
        "MPI_Waitsome" | "MPI_Testsome" => {
            "weft_completed_some(*outcount, array_of_indices, array_of_requests);"
        }
        "MPI_Request_get_status" => "if (rc == MPI_SUCCESS && flag_c) weft_arrived(request);",
        "MPI_Request_free" => "weft_freed(request);",
        _ => "",
    }
}

/// Returns the statement before the call, for calls that start persistent requests.
fn beginning(procedure: &Procedure) -> &'static str {
    match procedure.name.as_str() {
        "MPI_Start" => "weft_started(1, request);",
        "MPI_Startall" => "weft_started(*count, array_of_requests);",
        _ => "",
    }
}

/// The arguments of the C function, and the replacements by views of buffers.
struct EntryArguments<'a> {
    rows: Vec<(&'a ProcedureParameter, ArgumentRow)>,
    views: Vec<(String, String)>,
}

fn arguments(procedure: &Procedure, way: CallVariant) -> EntryArguments<'_> {
    let (mut rows, mut views) = (Vec::new(), Vec::new());
    for p in procedure.of(way.function()) {
        if p.kind != "BUFFER" || way == CallVariant::Old {
            rows.push((p, kinds::of(procedure, p, way)));
            continue;
        }
        let (before, replaced) = sections::view(procedure, p);
        views.extend(replaced);
        let request = if outlives(procedure) { "request" } else { "NULL" };
        let declare = format!("CFI_cdesc_t *{}", p.name);
        let address = sections::role(procedure, p) == SectionRole::Address;
        let after = format!("WEFT_VIEW_END({}, {request})", p.name);
        let after = if address { String::new() } else { after };
        rows.push((p, ArgumentRow { declare, before, give: String::new(), after, hidden: false }));
    }
    EntryArguments { rows, views }
}

impl EntryArguments<'_> {
    /// Returns the statements before the call. Buffers come first, since queries about a communicator depend on them.
    fn before(&self) -> String {
        let (buffers, rest): (Vec<_>, Vec<_>) =
            self.rows.iter().partition(|(p, _)| p.kind == "BUFFER");
        let lines = buffers.into_iter().chain(rest).map(|(_, row)| &row.before);
        lines.filter(|line| !line.is_empty()).map(|line| format!("    {line}\n")).collect()
    }

    /// Returns the statements after the call. Requests come first, since memory that is kept for a request needs its number.
    fn after(&self) -> String {
        let requests = |(p, _): &&(&ProcedureParameter, ArgumentRow)| p.kind == "REQUEST";
        let (first, rest): (Vec<_>, Vec<_>) = self.rows.iter().partition(requests);
        let lines = first.into_iter().chain(rest).map(|(_, row)| &row.after);
        lines.filter(|line| !line.is_empty()).map(|line| format!("    {line}\n")).collect()
    }

    fn given(&self) -> String {
        let one = |(p, row): &(&ProcedureParameter, ArgumentRow)| {
            let view = self.views.iter().find(|(name, _)| *name == p.name);
            view.map_or(&row.give, |(_, text)| text).clone()
        };
        self.rows.iter().map(one).collect::<Vec<_>>().join(", ")
    }

    /// Returns C's declarations of Fortran's arguments. `last` follows them, before the lengths of strings.
    fn declared(&self, last: Option<&str>) -> String {
        let shown = self.rows.iter().filter(|(_, row)| !row.declare.is_empty());
        let mut all: Vec<String> = shown.map(|(_, row)| row.declare.clone()).collect();
        all.extend(last.map(str::to_owned));
        let hidden = self.rows.iter().filter(|(_, row)| row.hidden);
        all.extend(hidden.map(|(p, _)| format!("size_t {}_l", p.name)));
        if all.is_empty() { "void".to_owned() } else { all.join(", ") }
    }
}

/// Writes an entry point.
fn entry(out: &mut String, procedure: &Procedure, way: CallVariant) {
    let name = linker_name(procedure, way);
    let large = way.function().suffix();
    let c_name = format!("{}{large}", procedure.name);
    let returns = procedure.returns[way.function() as usize].as_deref().unwrap_or("int");
    let error = procedure.has_error();
    let result = if error { "void" } else { returns };
    let arguments = arguments(procedure, way);
    let declared = arguments.declared(error.then_some("int *ierror"));
    writeln!(out, "WEFT_ENTRY({result}, {name}, ({declared}))\n{{").unwrap();
    if error {
        let given = arguments.given();
        writeln!(out, "    int rc;\n    WEFT_LACKS(WEFT_C({c_name}))").unwrap();
        out.push_str(&arguments.before());
        let (first, then) = (beginning(procedure), completion(procedure));
        writeln!(out, "    {first}\n    rc = WEFT_C({c_name})({given});\n    {then}").unwrap();
        out.push_str(&arguments.after());
        writeln!(out, "    weft_ierror(ierror, rc);\n}}\n").unwrap();
    } else {
        let given = arguments.given();
        // The arguments after the level exist only in C.
        let given = if procedure.name == "MPI_Pcontrol" { "*level".to_owned() } else { given };
        writeln!(out, "    return WEFT_C({c_name})({given});\n}}\n").unwrap();
    }
}

/// Returns the C file of the profiling names of entries. The file `name` has the entries themselves.
pub fn profiled(name: &str) -> String {
    format!("#define WEFT_PROFILED\n#include \"{name}\"\n")
}

/// Returns the C file of a way of calling.
pub fn file(procedures: &[Procedure], way: CallVariant) -> String {
    let mut out = String::from("#include \"weft_fortran.h\"\n\n");
    for procedure in procedures.iter().filter(|p| has(p, way)) {
        if BY_HAND.contains(&procedure.name.as_str()) {
            continue;
        }
        entry(&mut out, procedure, way);
    }
    out
}

/// Returns the linker's name of the entry point for a way of calling (MPI 5.0, table 19.1).
pub fn entry_of(procedure: &Procedure, way: CallVariant) -> String {
    linker_name(procedure, way)
}

/// Returns declarations that let the library lack a function: the entry reports the lack when it is called.
pub fn weak(procedures: &[Procedure]) -> String {
    let mut out = String::from("/* Functions that the library may lack. */\n");
    for procedure in
        procedures.iter().filter(|p| has(p, CallVariant::Old) || has(p, CallVariant::New))
    {
        for (returns, suffix) in procedure.returns.iter().zip(["", "_c"]) {
            if returns.is_some() && procedure.has_error() {
                for prefix in ["", "P"] {
                    writeln!(out, "#pragma weak {prefix}{}{suffix}", procedure.name).unwrap();
                }
            }
        }
    }
    out
}
