//! Callbacks of Fortran: the library calls each immediately, with a value for each argument, and both sides print what they
//! got.

use super::arguments::{RecordArgument, handle_name};
use crate::data::{FunctionForm, Procedure, ProcedureParameter, callback_signatures, procedures};
use crate::interfaces::{call, declared};
use crate::kinds::CallVariant;
use std::fmt::Write;

/// Role of a callback's argument.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Part {
    Number,
    Handle(&'static str),
    State,
    Memory,
    /// A logical that C passes.
    Truth,
    /// A result that the function sets.
    Result,
    Status,
}

/// Returns the role of a parameter. It does not depend on the direction in the data, which is `out` for some states.
fn part(p: &ProcedureParameter) -> Part {
    match (p.name.as_str(), p.kind.as_str()) {
        ("attribute_val_out" | "flag" | "extent", _) => Part::Result,
        (_, "STATUS") => Part::Status,
        (_, "LOGICAL") => Part::Truth,
        (_, "EXTRA_STATE" | "EXTRA_STATE2") => Part::State,
        (_, "C_BUFFER3" | "C_BUFFER4") => Part::Memory,
        (_, kind) => handle_name(kind).map_or(Part::Number, Part::Handle),
    }
}

fn is_wide(p: &ProcedureParameter, form: FunctionForm) -> bool {
    ["ATTRIBUTE_VAL", "OFFSET"].contains(&p.kind.as_str())
        || (form == FunctionForm::Large && p.kind == "POLYXFER_NUM_ELEM")
}

fn given(place: usize, p: &ProcedureParameter, form: FunctionForm) -> i64 {
    match part(p) {
        Part::Handle(_) => 0x11000 + place as i64,
        _ => 40 + place as i64 + if is_wide(p, form) { 1 << 33 } else { 0 },
    }
}

/// Returns the value that the function sets for a result, in Fortran and as a number.
fn set(p: &ProcedureParameter) -> (&'static str, i64) {
    match p.name.as_str() {
        "flag" => (".true.", 1),
        "extent" => ("92", 92),
        "status" => ("93", 93),
        _ => ("91", 91),
    }
}

/// Returns the interfaces of callbacks, with their forms.
fn interfaces() -> Vec<(Procedure, FunctionForm)> {
    let all = procedures().into_iter().filter(|p| p.callback && !p.name.starts_with("MPI_T_"));
    let both = |p: Procedure| {
        let counted = p.find("POLYXFER_NUM_ELEM").is_some();
        let large = counted.then(|| (p.clone(), FunctionForm::Large));
        [Some((p, FunctionForm::Plain)), large].into_iter().flatten()
    };
    all.flat_map(both).collect()
}

/// Returns Fortran's function for a parameter that takes a callback. Two parameters of the same interface get different
/// functions.
pub fn own(p: &ProcedureParameter, way: CallVariant) -> String {
    let large = if p.kind == "POLYFUNCTION" { way.function().suffix() } else { "" };
    let stem = if p.name == WRITING { "own_write_" } else { "own_" };
    format!("{}{large}", p.callback.replacen("MPI_", stem, 1))
}

/// The second parameter of its interface.
const WRITING: &str = "write_conversion_fn";

/// Returns Fortran's functions for a way of calling: they print their arguments, and set their results.
pub fn functions(way: CallVariant) -> String {
    let mut out = String::new();
    for (procedure, form) in interfaces() {
        match (way == CallVariant::Old, form) {
            (true, FunctionForm::Large) => {}
            (true, FunctionForm::Plain) => function(&mut out, &procedure, CallVariant::Old),
            (false, FunctionForm::Large) => function(&mut out, &procedure, CallVariant::Large),
            (false, FunctionForm::Plain) => function(&mut out, &procedure, CallVariant::New),
        }
    }
    out
}

fn function(out: &mut String, procedure: &Procedure, way: CallVariant) {
    one_function(out, procedure, way, "own_");
    if procedure.name == "MPI_Datarep_conversion_function" {
        one_function(out, procedure, way, "own_write_");
    }
}

fn one_function(out: &mut String, procedure: &Procedure, way: CallVariant, stem: &str) {
    let large = way.function().suffix();
    let shown: Vec<_> = procedure.of(way.function()).filter(|p| !p.c_alone).collect();
    let mut names: Vec<_> = shown.iter().map(|p| p.name.as_str()).collect();
    if procedure.has_error() {
        names.push("ierror");
    }
    let name = format!("{}{large}", procedure.name.replacen("MPI_", stem, 1));
    writeln!(out, "subroutine {}", call(&name, &names)).unwrap();
    let mut body = String::new();
    if stem != "own_" {
        body.push_str("  call show('writing', 1)\n");
    }
    for p in &shown {
        let declared = declared(p, way);
        let name = &p.name;
        writeln!(out, "  {} :: {name}{}", declared.kind, declared.bounds).unwrap();
        let typed = declared.kind.starts_with("type(");
        let value = match (part(p), typed) {
            (Part::Handle(_), true) => format!("{name}%MPI_VAL"),
            (Part::Memory, _) => {
                writeln!(out, "  integer(8), pointer :: at_{name}").unwrap();
                writeln!(body, "  call c_f_pointer({name}, at_{name})").unwrap();
                format!("at_{name}")
            }
            (Part::Status, true) => {
                writeln!(body, "  {name}%MPI_TAG = 93").unwrap();
                continue;
            }
            (Part::Status, false) => {
                writeln!(body, "  {name}(MPI_TAG) = 93").unwrap();
                continue;
            }
            (Part::Result, _) => {
                writeln!(body, "  {name} = {}", set(p).0).unwrap();
                continue;
            }
            _ => name.clone(),
        };
        writeln!(body, "  call show('{name}', {value})").unwrap();
        if part(p) == Part::State {
            writeln!(body, "  {name} = {name} + 1").unwrap();
        }
    }
    if procedure.has_error() {
        out.push_str("  integer :: ierror\n");
        body.push_str("  ierror = 5\n");
    }
    writeln!(out, "{body}end subroutine").unwrap();
}

/// Returns C's functions `call_NAME(function, state)`, which call the callbacks.
pub fn callers() -> String {
    let mut out = String::new();
    let signatures = callback_signatures();
    for (procedure, form) in interfaces() {
        let name = format!("{}{}", procedure.name, form.suffix());
        let (returns, types) = &signatures[&name];
        let (mut locals, mut given_ones, mut results) = (String::new(), Vec::new(), String::new());
        let parameters = procedure.of(form).filter(|p| !p.c_alone).zip(types);
        for (place, (p, c_type)) in parameters.enumerate() {
            let value = given(place, p, form);
            let mut local = |c_type: &str, value: &str| {
                writeln!(locals, "    {c_type} v{place} = {value};").unwrap();
                format!("(void *)&v{place}")
            };
            let pointed = c_type.trim_end_matches('*').trim();
            given_ones.push(match part(p) {
                Part::State => "state".to_owned(),
                Part::Handle(kind) if c_type.ends_with('*') => {
                    local(pointed, &format!("handle_of({kind}, {value})"))
                }
                Part::Handle(kind) => format!("handle_of({kind}, {value})"),
                Part::Memory => local("int64_t", &format!("{value}")),
                Part::Truth => "1".to_owned(),
                Part::Result | Part::Status => {
                    let c_type = if pointed == "void" { "intptr_t" } else { pointed };
                    let start = if pointed == "MPI_Status" { "{ 0 }" } else { "-1" };
                    let field = if pointed == "MPI_Status" { ".MPI_TAG" } else { "" };
                    writeln!(results, "    say(\",%lld\", (long long)v{place}{field});").unwrap();
                    local(c_type, start)
                }
                Part::Number if pointed == "void" => format!("(void *){value}LL"),
                Part::Number if c_type.ends_with('*') => local(pointed, &format!("{value}")),
                Part::Number => format!("{value}"),
            });
        }
        let mut body = format!("function({})", given_ones.join(", "));
        if returns == "int" {
            body = format!("say(\"%d\", {body})");
        }
        write!(
            out,
            "static void call_{name}({name} *function, void *state)\n{{\n    (void)state;\n{locals}    \
             {body};\n{results}}}\n"
        )
        .unwrap();
    }
    out
}

/// Returns the results of the callback that C must print, and the lines that Fortran must print; `state` is the value of the
/// state.
pub fn expected(a: &RecordArgument, form: FunctionForm, state: i64) -> (String, Vec<String>) {
    let all = interfaces();
    let with_large_counts = form == FunctionForm::Large && a.counted;
    let (procedure, form) = all
        .iter()
        .find(|(p, form)| {
            let has_large_counts = with_large_counts && p.find("POLYXFER_NUM_ELEM").is_some();
            p.name == a.callback && (*form == FunctionForm::Large) == has_large_counts
        })
        .expect("the interface of a callback");
    let mut said = String::from(if procedure.has_error() { "5" } else { "" });
    let mut lines = Vec::new();
    if a.name == WRITING {
        lines.push("f writing=1".to_owned());
    }
    for (place, p) in procedure.of(*form).filter(|p| !p.c_alone).enumerate() {
        let name = &p.name;
        match part(p) {
            Part::Result | Part::Status => write!(said, ",{}", set(p).1).unwrap(),
            Part::Truth => lines.push(format!("f {name}=T")),
            Part::State => lines.push(format!("f {name}={state}")),
            _ => lines.push(format!("f {name}={}", given(place, p, *form))),
        }
    }
    (said, lines)
}
