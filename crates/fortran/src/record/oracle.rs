//! The expected record of a call, and the expected results in Fortran, by the standard's words for arguments.

use super::arguments::{ArgumentClass, COMPLETE, ROOM, RecordArgument, arguments};
use super::library::{returned_number, returned_text};
use super::{RecordVariant, RecordedCall, callbacks};
use crate::calls::BindingForm;
use crate::data::Procedure;

/// `MPI_UNDEFINED`.
const UNDEFINED: i64 = -32766;

fn joined<T: ToString>(values: impl Iterator<Item = T>) -> String {
    values.map(|value| value.to_string()).collect::<Vec<_>>().join(",")
}

/// Returns true if the standard also strips leading blanks: keys and values of an info object, and arguments of spawned
/// programs.
fn strips_both(procedure: &Procedure) -> bool {
    procedure.name.starts_with("MPI_Info_") || procedure.name.starts_with("MPI_Comm_spawn")
}

fn text(a: &RecordArgument, variant: RecordVariant, what: &str) -> String {
    format!(" i{}v{}{what}", a.place, variant as usize)
}

/// Returns the value that C gets for an argument.
fn to_c(procedure: &Procedure, a: &RecordArgument, variant: RecordVariant) -> String {
    if let Some((_, small)) = a.special(procedure).filter(|_| variant == RecordVariant::Special) {
        return format!("@{small}");
    }
    let strip = |text: String| {
        let text = if strips_both(procedure) { text.trim() } else { text.trim_end() };
        format!("\"{text}\"")
    };
    match a.class {
        ArgumentClass::Absent => "0".to_owned(),
        ArgumentClass::State => "1".to_owned(),
        ArgumentClass::Table => "\"one\";\"two\"\"more\";\"three\";".to_owned(),
        ArgumentClass::Texts => {
            let n = if a.name == "argv" { 2 } else { a.count };
            ["a", "b", "c", "d"][..n].iter().map(|what| strip(text(a, variant, what))).collect()
        }
        ArgumentClass::Buffer => (7000 + 10 * a.place + variant as usize).to_string(),
        _ if !a.input => String::new(),
        ArgumentClass::Text => strip(text(a, variant, "")),
        ArgumentClass::Handle(_) => joined((0..a.count).map(|k| a.handle_given(k, variant))),
        ArgumentClass::Logical | ArgumentClass::RawLogical => {
            joined((0..a.count).map(|k| i32::from(a.truth(k, variant))))
        }
        // C counts the NUL.
        ArgumentClass::Number if a.is_room() => {
            let given = a.given(0, variant);
            (given + i64::from(given > 0)).to_string()
        }
        _ => joined((0..a.count).map(|k| a.given(k, variant))),
    }
}

/// Conditions on which the value of an argument's variable after the call depends.
struct ArgumentChange {
    /// True if the library has set the variable.
    set: bool,
    /// True unless the library sets the argument `flag` to false.
    flag: bool,
    /// True if the call is by `mpif.h` or the module `mpi`.
    old: bool,
}

/// Returns the value of an argument's variable after the call.
fn to_fortran(a: &RecordArgument, variant: RecordVariant, change: &ArgumentChange) -> String {
    let &ArgumentChange { set, flag, old } = change;
    let all = match (a.class, a.array) {
        (ArgumentClass::Status, true) => 32,
        (ArgumentClass::Status, false) => 8,
        (_, true) => ROOM,
        (_, false) => 1,
    };
    let each =
        |value: &dyn Fn(usize, bool) -> i64| joined((0..all).map(|k| value(k, set && k < a.count)));
    let letter = |truth| if truth { "T" } else { "F" };
    match a.class {
        ArgumentClass::Handle(_) => each(&|k, set| match set {
            true => a.handle_returned(k, variant),
            false => a.handle_given(k, variant),
        }),
        ArgumentClass::Logical | ArgumentClass::RawLogical => {
            let before = |k| if a.input { a.truth(k, variant) } else { !a.truth(k, variant) };
            let value = |k| if set && k < a.count { a.truth(k, variant) } else { before(k) };
            joined((0..all).map(|k| letter(value(k))))
        }
        ArgumentClass::Text if set && flag => format!("\"{}\"", returned_text(a, variant)),
        ArgumentClass::Text => format!("\"{}\"", text(a, variant, "")),
        ArgumentClass::Buffer => {
            let added = if set { 1_000_000 } else { 0 };
            (7000 + 10 * a.place + variant as usize + added).to_string()
        }
        // Fortran cannot receive the value.
        ArgumentClass::Address if old && a.kind == "C_BUFFER2" => "-5".to_owned(),
        ArgumentClass::Address if !set => if old { "-5" } else { "0" }.to_owned(),
        ArgumentClass::Attribute if set && !flag => a.given(0, variant).to_string(),
        ArgumentClass::Number if a.is_found_place() && !a.array && !set => UNDEFINED.to_string(),
        ArgumentClass::Number if a.name == "outcount" => if set { COMPLETE } else { 0 }.to_string(),
        ArgumentClass::Number if set && a.is_room() => (a.returned(0, variant) - 1).to_string(),
        _ => each(&|k, set| match set {
            true => a.returned(k, variant) + i64::from(a.is_found_place()),
            false => a.given(k, variant),
        }),
    }
}

/// Adds the results of procedures that have no C function.
fn alone(c: &RecordedCall, all: &[RecordArgument], variant: RecordVariant, out: &mut Vec<String>) {
    let given = |a: &RecordArgument| joined((0..8).map(|k| a.given(k, variant)));
    match c.procedure.name.as_str() {
        // The special address is an integer of the default size.
        "MPI_Sizeof" if variant == RecordVariant::Special => out.push("f size=4".to_owned()),
        "MPI_Sizeof" => out.push("f size=8".to_owned()),
        "MPI_Status_f082f" | "MPI_Status_f2f08" => {
            out.push(format!("f {}={}", all[1].name, given(&all[0])));
        }
        // The procedure does nothing.
        "MPI_F_sync_reg" => out.push(format!("f buf={}", 7000 + variant as usize)),
        _ => {}
    }
}

/// Returns the expected lines of a call.
pub fn expected(c: &RecordedCall, form: BindingForm, variant: RecordVariant) -> Vec<String> {
    let (procedure, old) = (&c.procedure, form != BindingForm::MpiF08);
    let all = arguments(procedure, c.way.function());
    let (succeeds, mut out) = (variant != RecordVariant::Failing, Vec::new());
    // Each callback adds 1 to its state. Callbacks of attributes get a value.
    let (by_reference, mut state_now) = (procedure.find("KEYVAL").is_none(), 0);
    if let Some(function) = &c.function {
        let state = all.iter().find(|a| a.class == ArgumentClass::State);
        state_now = state.map_or(0, |a| a.given(0, variant));
        let mut line = format!("c {function}");
        let mut ordered: Vec<_> = all.iter().filter(|a| a.kind != "VARARGS").collect();
        ordered.sort_by_key(|a| a.comes_last());
        let mut shown = Vec::new();
        for a in ordered {
            let said = match a.class {
                ArgumentClass::Function => {
                    let (said, lines) = callbacks::expected(a, c.way.function(), state_now);
                    shown.extend(lines);
                    state_now += i64::from(by_reference);
                    said
                }
                _ => to_c(procedure, a, variant),
            };
            line += &format!(" {}={said}", a.name);
        }
        out.push(line);
        out.extend(shown);
    }
    if let Some(number) = returned_number(&c.procedure.name) {
        let number: f64 = number.parse().expect("a number");
        let thousandths = if number < 100.0 { 1000.0 } else { 1.0 };
        out.push(format!("f result={}", number * thousandths));
    }
    if procedure.has_error() {
        let omitted = !old && variant == RecordVariant::Special;
        let error = match (omitted, succeeds || c.function.is_none()) {
            (true, _) => -1,
            (false, true) => 0,
            (false, false) => 77,
        };
        out.push(format!("f ierror={error}"));
    }
    if c.function.is_none() {
        alone(c, &all, variant, &mut out);
        return out;
    }
    let flag = all.iter().find(|a| a.name == "flag").is_none_or(|a| a.truth(0, variant));
    for a in all.iter().filter(|a| a.output || a.class == ArgumentClass::State) {
        match a.class {
            ArgumentClass::Absent => continue,
            ArgumentClass::State => {
                out.push(format!("f {}={state_now}", a.name));
                continue;
            }
            _ => {}
        }
        let special = variant == RecordVariant::Special && a.special(procedure).is_some();
        // A text without room stays unchanged.
        let asked = a.class != ArgumentClass::Text
            || all.iter().all(|room| !room.is_room() || room.given(0, variant) > 0);
        let change = ArgumentChange { set: succeeds && !special && asked, flag, old };
        out.push(format!("f {}={}", a.name, to_fortran(a, variant, &change)));
    }
    out
}
