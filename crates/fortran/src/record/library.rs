//! The library that records its calls: each function of the standard ABI, by its own name and its profiling name.

use super::RecordVariant;
use super::arguments::{ArgumentClass, RecordArgument, arguments};
use super::callbacks::callers;
use crate::data::{self, FunctionForm, Procedure};
use std::fmt::Write;

/// Returns the values of all variants, as a C expression for the array of `n` values of the current variant.
fn values(n: usize, value: impl Fn(usize, RecordVariant) -> i64) -> String {
    let row = |variant| {
        let all: Vec<_> = (0..n).map(|k| format!("{}LL", value(k, variant))).collect();
        format!("{{{}}}", all.join(","))
    };
    let rows = RecordVariant::ALL.map(row).join(",");
    let variants = RecordVariant::ALL.len();
    format!("((const int64_t[{variants}][{n}]){{{rows}}})[variant]")
}

fn direction(a: &RecordArgument) -> &'static str {
    match (a.input, a.output) {
        (true, true) => "IN | OUT",
        (false, true) => "OUT",
        _ => "IN",
    }
}

/// Returns C's statement that records an argument. `state` is the state that callbacks get.
fn statement(a: &RecordArgument, at: &str, form: FunctionForm, state: &str) -> String {
    let (name, n, way) = (&a.name, a.count, direction(a));
    let size = if a.wide { 8 } else { 4 };
    let outs = values(n, |k, variant| match a.class {
        ArgumentClass::Handle(_) => a.handle_returned(k, variant),
        ArgumentClass::Logical | ArgumentClass::RawLogical => i64::from(a.truth(k, variant)),
        _ => a.returned(k, variant),
    });
    match a.class {
        ArgumentClass::Number | ArgumentClass::Logical | ArgumentClass::Absent if a.by_value => {
            format!("put_number(\"{name}\", {at});")
        }
        ArgumentClass::Number | ArgumentClass::Logical | ArgumentClass::RawLogical => {
            format!("put_numbers(\"{name}\", (void *){at}, {n}, {size}, {way}, {outs});")
        }
        ArgumentClass::Status => {
            format!("put_numbers(\"{name}\", (void *){at}, {n}, 4, {way}, {outs});")
        }
        ArgumentClass::Handle(kind) if a.by_value => {
            format!("put_handle(\"{name}\", {kind}, {at});")
        }
        ArgumentClass::Handle(kind) => {
            format!("put_handles(\"{name}\", {kind}, (void **){at}, {n}, {way}, {outs});")
        }
        ArgumentClass::Text if a.output => {
            let text =
                RecordVariant::ALL.map(|v| format!("\"{}\"", returned_text(a, v))).join(", ");
            format!("put_text_out(\"{name}\", {at}, ((const char *[]){{{text}}})[variant]);")
        }
        ArgumentClass::Text => format!("put_text(\"{name}\", {at});"),
        ArgumentClass::Texts if a.name == "argv" => format!("put_texts(\"{name}\", {at}, 0);"),
        ArgumentClass::Texts => format!("put_texts(\"{name}\", {at}, {n});"),
        ArgumentClass::Table => format!("put_table(\"{name}\", {at}, {n});"),
        ArgumentClass::Buffer => format!("put_buffer(\"{name}\", (void *){at}, {way});"),
        // C gets the address of the integer that Fortran sets.
        ArgumentClass::Attribute if !a.output => {
            format!("put_numbers(\"{name}\", {at}, 1, {size}, {way}, {outs});")
        }
        ArgumentClass::Address | ArgumentClass::Attribute => {
            format!("put_address(\"{name}\", {at}, *{outs});")
        }
        ArgumentClass::State => format!("put_number(\"{name}\", {at} != 0);"),
        ArgumentClass::Function => {
            let large = if a.counted { form.suffix() } else { "" };
            let callback = format!("call_{}{large}", a.callback);
            format!("say(\" {name}=\"); GUARDED({callback}({at}, {state}));")
        }
        ArgumentClass::Absent => format!("put_number(\"{name}\", (intptr_t){at});"),
    }
}

/// Returns the text that the library sets.
pub fn returned_text(a: &RecordArgument, variant: RecordVariant) -> String {
    format!("t{}v{}", a.place, variant as usize)
}

/// Returns the result of a function that has no error code.
pub fn returned_number(name: &str) -> Option<&'static str> {
    Some(match name {
        "MPI_Wtime" => "1.5",
        "MPI_Wtick" => "0.25",
        "MPI_Aint_add" => "17179869185",
        "MPI_Aint_diff" => "17179869186",
        _ => return None,
    })
}

/// Returns C's names of the parameters, without variable arguments.
fn names(signature: &str) -> impl Iterator<Item = &str> {
    let all = signature.split(',').filter(|one| !["...", "void"].contains(&one.trim()));
    all.filter_map(|one| {
        let words = one.split('[').next().unwrap_or_default();
        words.trim().rsplit([' ', '*']).next()
    })
}

fn function(out: &mut String, procedure: &Procedure, form: FunctionForm, signature: &str) {
    let name = format!("{}{}", procedure.name, form.suffix());
    let returns = procedure.returns[form as usize].as_deref().unwrap_or("int");
    writeln!(out, "static {returns} do_{name}({signature})\n{{\n    begin(\"{name}\");").unwrap();
    // Some parameters have other names in C.
    let all = arguments(procedure, form);
    let stateful = all.iter().any(|a| a.class == ArgumentClass::State);
    let state = if stateful { "extra_state" } else { "NULL" };
    let mut named: Vec<_> = all.iter().zip(names(signature)).collect();
    named.sort_by_key(|(a, _)| a.comes_last());
    for (a, at) in named {
        writeln!(out, "    {}", statement(a, at, form, state)).unwrap();
    }
    match returned_number(&name) {
        Some(number) => writeln!(out, "    finish();\n    return {number};\n}}"),
        None => writeln!(out, "    return finish();\n}}"),
    }
    .unwrap();
    let given = names(signature).collect::<Vec<_>>().join(", ");
    for prefix in ["", "P"] {
        writeln!(out, "{returns} {prefix}{name}({signature})\n{{\n    by = \"{prefix}\";").unwrap();
        writeln!(out, "    return do_{name}({given});\n}}").unwrap();
    }
}

/// Returns the C source of the library.
pub fn library() -> String {
    let mut out = String::from(include_str!("../../record/record.h"));
    out += &callers();
    let signatures = data::signatures();
    for procedure in data::procedures() {
        for form in FunctionForm::ALL {
            if procedure.returns[form as usize].is_some() {
                let name = format!("{}{}", procedure.name, form.suffix());
                function(&mut out, &procedure, form, &signatures[&name.to_lowercase()]);
            }
        }
    }
    out
}
