//! The modules `mpi` and `mpi_f08`: an interface for each procedure, generated from the same data as its entry point.

use crate::constants;
use crate::data::{FunctionForm, Procedure, ProcedureParameter};
use crate::entries::{self, has, linker_name};
use crate::kinds::{CallVariant, handle, handle_type};
use std::fmt::Write;

/// Returns Fortran's integer type for C's.
fn integer(c_type: &str) -> &'static str {
    match c_type.trim_end_matches("[]").trim_end_matches('*').trim() {
        "MPI_Aint" => "integer(MPI_ADDRESS_KIND)",
        "MPI_Count" => "integer(MPI_COUNT_KIND)",
        "MPI_Offset" => "integer(MPI_OFFSET_KIND)",
        _ => "integer",
    }
}

/// A type, and the bounds after the name.
pub struct Declared {
    pub kind: String,
    pub bounds: &'static str,
}

/// Returns the declaration of `p` in an interface.
pub fn declared(p: &ProcedureParameter, way: CallVariant) -> Declared {
    let old = way == CallVariant::Old;
    let status = if old { "integer" } else { "type(MPI_Status)" };
    let vector = if p.is_array() { "(*)" } else { "" };
    let of = |kind: &str, bounds| Declared { kind: kind.to_owned(), bounds };
    match p.kind.as_str() {
        "BUFFER" if old => of("type(*), dimension(*)", ""),
        "BUFFER" if p.asynchronous => of("type(*), dimension(..), asynchronous", ""),
        "BUFFER" => of("type(*), dimension(..)", ""),
        "C_BUFFER" if old => of("integer(MPI_ADDRESS_KIND)", ""),
        "C_BUFFER2" if old => of("type(*), dimension(*)", ""),
        "C_BUFFER" | "C_BUFFER2" | "C_POINTER" => of("type(c_ptr)", ""),
        "C_BUFFER3" | "C_BUFFER4" => of("type(c_ptr), value", ""),
        "STATUS" if old && p.is_array() => of(status, "(MPI_STATUS_SIZE, *)"),
        "STATUS" if old => of(status, "(MPI_STATUS_SIZE)"),
        "STATUS" => of(status, vector),
        "F90_STATUS" => of("integer", "(MPI_STATUS_SIZE)"),
        "F08_STATUS" => of("type(MPI_Status)", ""),
        "LOGICAL" => of("logical", vector),
        "LOGICAL_VOID" => of("logical", ""),
        "STRING" => of("character(len=*)", ""),
        "STRING_ARRAY" => of("character(len=*)", "(*)"),
        "STRING_2DARRAY" => of("character(len=*)", "(count, *)"),
        "EXTRA_STATE" | "ATTRIBUTE_VAL" => of("integer(MPI_ADDRESS_KIND)", ""),
        "FUNCTION" | "POLYFUNCTION" if old => of("external", ""),
        "FUNCTION" | "POLYFUNCTION" => {
            let large = if p.kind == "POLYFUNCTION" { way.function().suffix() } else { "" };
            of(&format!("procedure({}{large})", p.callback), "")
        }
        "RANK" if p.length == "n;3" => of("integer", "(3, *)"),
        kind => match handle(kind) {
            Some(_) if old => of("integer", vector),
            Some(name) => of(&format!("type({})", handle_type(name)), vector),
            None => of(number(p, way), vector),
        },
    }
}

/// Returns the integer type of a number. Parameters of callbacks have no C type here, so their kind determines it.
fn number(p: &ProcedureParameter, way: CallVariant) -> &'static str {
    match (p.types[way.function() as usize].as_str(), p.kind.as_str()) {
        ("", "OFFSET") => "integer(MPI_OFFSET_KIND)",
        ("", "DISPOFFSET_SMALL") => "integer(MPI_ADDRESS_KIND)",
        ("", "POLYXFER_NUM_ELEM") if way == CallVariant::Large => "integer(MPI_COUNT_KIND)",
        (c_type, _) => integer(c_type),
    }
}

/// Returns the intent of an argument of `mpi_f08`. Callbacks, and buffers that the call writes, declare none.
fn intent(p: &ProcedureParameter) -> &'static str {
    let silent = ["FUNCTION", "POLYFUNCTION", "C_BUFFER3", "C_BUFFER4"];
    let buffer = p.kind == "BUFFER";
    match p.direction.as_str() {
        _ if !p.intent || silent.contains(&p.kind.as_str()) => "",
        "in" => ", intent(in)",
        _ if buffer => "",
        "out" => ", intent(out)",
        _ => ", intent(inout)",
    }
}

/// Formats `name(a, b, c)` in lines of a length that every compiler accepts.
pub fn call(name: &str, arguments: &[&str]) -> String {
    let mut out = format!("{name}(");
    let mut width = out.len();
    for (i, argument) in arguments.iter().enumerate() {
        if width + argument.len() > 80 {
            out.push_str("&\n      ");
            width = 6;
        }
        let comma = if i == 0 { "" } else { ", " };
        write!(out, "{comma}{argument}").unwrap();
        width += argument.len() + 2;
    }
    out.push(')');
    out
}

/// Style of an interface.
struct Style<'a> {
    /// The name of the procedure.
    name: &'a str,
    /// The linker's name, if the procedure is bound to C.
    binding: Option<String>,
    way: CallVariant,
    /// True for a callback, whose arguments declare no intent.
    callback: bool,
}

fn interface(out: &mut String, procedure: &Procedure, style: &Style) {
    let way = style.way;
    let shown: Vec<_> = procedure.of(way.function()).filter(|p| !p.c_alone).collect();
    let mut names: Vec<_> = shown.iter().map(|p| p.name.as_str()).collect();
    let error = procedure.has_error();
    if error {
        names.push("ierror");
    }
    let result = match procedure.returns[0].as_deref() {
        Some("double") => "double precision function ",
        Some("MPI_Aint") => "integer(MPI_ADDRESS_KIND) function ",
        _ => "subroutine ",
    };
    let head = call(style.name, &names);
    let binding = style.binding.iter().map(|name| format!(" &\n      bind(C, name=\"{name}\")"));
    writeln!(out, "   {result}{head}{}", binding.collect::<String>()).unwrap();
    out.push_str("    import\n");
    for p in shown {
        let Declared { kind, bounds } = declared(p, way);
        if kind == "type(*), dimension(*)" {
            writeln!(out, "    !GCC$ ATTRIBUTES NO_ARG_CHECK :: {}", p.name).unwrap();
            writeln!(out, "    !DIR$ IGNORE_TKR {}", p.name).unwrap();
        }
        let silent = style.callback || way == CallVariant::Old || kind.contains(", value");
        let intent = if silent { "" } else { intent(p) };
        writeln!(out, "    {kind}{intent} :: {}{bounds}", p.name).unwrap();
    }
    if error {
        let optional = !style.callback && way != CallVariant::Old;
        let attributes = if optional { ", optional, intent(out)" } else { "" };
        writeln!(out, "    integer{attributes} :: ierror").unwrap();
    }
    let end = if result == "subroutine " { "subroutine" } else { "function" };
    writeln!(out, "   end {end}").unwrap();
}

/// Returns true if Fortran can tell the large-count parameter from the other. Kinds of eight bytes are the same for Fortran.
fn told_apart(p: &ProcedureParameter) -> bool {
    let plain = |way| declared(p, way).kind == "integer";
    plain(CallVariant::New) != plain(CallVariant::Large)
}

/// Returns true if Fortran can tell the large-count interface from the other.
pub fn distinct(procedure: &Procedure) -> bool {
    let mut all = procedure.of(FunctionForm::Large).filter(|p| !p.c_alone);
    all.any(|p| p.large_only || told_apart(p)) && procedure.find("POLYFUNCTION").is_none()
}

fn of_f08(out: &mut String, procedure: &Procedure, prefix: &str) {
    let mut groups: Vec<(String, Vec<CallVariant>)> = Vec::new();
    let name = format!("{prefix}{}", procedure.name);
    groups.push((name.clone(), vec![CallVariant::New]));
    if has(procedure, CallVariant::Large) {
        if distinct(procedure) {
            groups[0].1.push(CallVariant::Large);
        } else if procedure.find("POLYFUNCTION").is_some() {
            groups.push((format!("{name}_c"), vec![CallVariant::Large]));
        }
    }
    let lower = prefix.to_lowercase();
    for (name, ways) in groups {
        writeln!(out, "  interface {name}").unwrap();
        for way in ways {
            let specific = format!("{prefix}{}", specific(procedure, way));
            let binding = format!("{lower}{}_", entries::entry_of(procedure, way));
            let binding = Some(binding).filter(|_| procedure.is_bound_to_c());
            interface(out, procedure, &Style { name: &specific, binding, way, callback: false });
        }
        out.push_str("  end interface\n");
    }
}

/// Returns the name of a specific procedure in the standard.
fn specific(procedure: &Procedure, way: CallVariant) -> String {
    let linker = linker_name(procedure, way);
    format!("{}{}", procedure.name, &linker[procedure.name.len()..])
}

fn of_f90(out: &mut String, procedure: &Procedure, prefix: &str) {
    let name = format!("{prefix}{}", procedure.name);
    let plain = Style { name: &name, binding: None, way: CallVariant::Old, callback: false };
    if procedure.name == "MPI_Sizeof" {
        // Only the descriptor contains the size.
        let binding = Some(format!("{}mpi_sizeof_", prefix.to_lowercase()));
        return interface(out, procedure, &Style { binding, way: CallVariant::New, ..plain });
    }
    if procedure.find("C_BUFFER").is_none() {
        return interface(out, procedure, &plain);
    }
    writeln!(out, "  end interface\n  interface {name}").unwrap();
    interface(out, procedure, &plain);
    let pointers = format!("{name}_cptr");
    let mut with_pointer = procedure.clone();
    for p in with_pointer.parameters.iter_mut().filter(|p| p.kind == "C_BUFFER") {
        p.kind = "C_POINTER".to_owned();
    }
    interface(out, &with_pointer, &Style { name: &pointers, ..plain });
    out.push_str("  end interface\n  interface\n");
}

/// Returns the module of a way of calling.
pub fn module(procedures: &[Procedure], way: CallVariant) -> String {
    let old = way == CallVariant::Old;
    let name = if old { "mpi" } else { "mpi_f08" };
    let mut out = format!("module {name}\n  use, intrinsic :: iso_c_binding, only: c_ptr\n");
    if old {
        out.push_str("  use mpi_f08_types, only: MPI_Status");
        for handle in constants::HANDLES {
            write!(out, ", &\n    {handle}").unwrap();
        }
        out.push_str(", &\n    operator(==), operator(/=)\n  implicit none\n  private :: c_ptr\n");
        out.push_str(&constants::declarations(constants::HandleTypes::Integers));
    } else {
        out.push_str("  use mpi_f08_types\n  use mpi_f08_callbacks\n  implicit none\n");
        out.push_str("  private :: c_ptr\n");
    }
    out.push_str("  interface\n");
    for procedure in procedures.iter().filter(|p| p.predefined.is_some()) {
        predefined(&mut out, procedure, way);
    }
    out.push_str("  end interface\n");
    for prefix in ["", "P"] {
        if old {
            out.push_str("  interface\n");
        }
        for procedure in procedures.iter().filter(|p| has(p, way)) {
            if old {
                of_f90(&mut out, procedure, prefix)
            } else {
                of_f08(&mut out, procedure, prefix)
            }
        }
        if old {
            out.push_str("  end interface\n");
        }
    }
    writeln!(out, "end module {name}").unwrap();
    out
}

/// Writes the interface of a predefined callback, which has the same name in both modules.
fn predefined(out: &mut String, procedure: &Procedure, way: CallVariant) {
    let has = if way == CallVariant::Old { procedure.f90 } else { procedure.f08 };
    if has {
        let style = |name, way| Style { name, binding: None, way, callback: true };
        interface(out, procedure, &style(&procedure.name, way));
        if procedure.name == "MPI_CONVERSION_FN_NULL" && way == CallVariant::New {
            interface(out, procedure, &style("MPI_CONVERSION_FN_NULL_C", CallVariant::Large));
        }
    }
}

/// Returns the module of the interfaces that callbacks must have.
pub fn callbacks_module(procedures: &[Procedure]) -> String {
    let mut out = String::from(
        "module mpi_f08_callbacks\n  use, intrinsic :: iso_c_binding, only: c_ptr\n  \
         use mpi_f08_types\n  implicit none\n  private :: c_ptr\n  abstract interface\n",
    );
    for procedure in procedures.iter().filter(|p| p.callback && p.f08) {
        let style = |name, way| Style { name, binding: None, way, callback: true };
        interface(&mut out, procedure, &style(&procedure.name, CallVariant::New));
        if procedure.parameters.iter().any(|p| p.kind == "POLYXFER_NUM_ELEM") {
            let name = format!("{}_c", procedure.name);
            interface(&mut out, procedure, &style(&name, CallVariant::Large));
        }
    }
    out.push_str("  end interface\nend module mpi_f08_callbacks\n");
    out
}
