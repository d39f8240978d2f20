//! Writes the Rust side: types, constants, entry points and the coverage table.

use crate::calls;
use crate::chapters::{Done, Implementation, LANE, TRY, implementation};
use std::fmt::Write;
use weft_abi_data::rust_types::{PointerMutability, pointer_type, rust_name, scalar_type};
use weft_abi_data::{Abi, AbiFunction, Callback, Constant, Param};

/// Conversion of one parameter of two functions, without and with large counts, to the parameter of the implementation that they
/// share.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Widen {
    /// The parameter has the same type in both functions.
    Same,
    /// `int` or `MPI_Aint` and its larger form, by value: `i64`.
    Scalar,
    /// `const int counts[]` and `const MPI_Count counts[]`.
    Counts,
    /// `const int displs[]` or `const MPI_Aint displs[]`, and its larger form.
    Displs,
    /// A pointer to one integer that is written, in a few functions also read.
    Out,
}

pub fn library(abi: &Abi, done: &mut Done) -> String {
    let mut out = String::new();
    types(&mut out, abi);
    constants(&mut out, abi);
    calls::write(&mut out, abi, done);
    out.push_str("pub mod entry_points {\nuse super::prelude::*;\n\n");
    let mut table = format!("weft {}\\n", std::env::var("CARGO_PKG_VERSION").unwrap_or_default());
    for f in &abi.functions {
        let implemented = entry_point(&mut out, abi, done, f);
        let word = if implemented { "yes" } else { "no" };
        write!(table, "{} {word}\\n", f.name).unwrap();
    }
    out.push_str("}\n\n");
    writeln!(out, "pub static COVERAGE: &std::ffi::CStr = c\"{table}\";").unwrap();
    out
}

/// Converts `MPI_Comm_copy_attr_function` to `CommCopyAttrFunction`.
pub fn camel(name: &str) -> String {
    let words = name.strip_prefix("MPI_").unwrap_or(name).split('_');
    words.map(|w| w[..1].to_uppercase() + &w[1..]).collect()
}

fn base_type(base: &str, abi: &Abi) -> String {
    match scalar_type(base) {
        Some(scalar) => scalar.into(),
        None if base == "MPI_Status" => "MpiStatus".into(),
        None if abi.handles.iter().any(|(name, _)| name == base) => camel(base),
        None => panic!("no Rust type is known for the C type `{base}`"),
    }
}

pub fn rust_type(p: &Param, abi: &Abi) -> String {
    if abi.is_callback(&p.base) {
        return format!("CallbackPointer<{}>", camel(&p.base));
    }
    pointer_type(p, &base_type(&p.base, abi), p.stars, PointerMutability::AsInC)
}

/// Returns the type of a parameter of an implementation that two functions may share.
pub fn wide(p: &Param, widen: Widen, abi: &Abi) -> String {
    match widen {
        Widen::Same => rust_type(p, abi),
        Widen::Scalar => "i64".into(),
        Widen::Counts => "Counts".into(),
        Widen::Displs => "Displs".into(),
        Widen::Out => "Out".into(),
    }
}

/// Returns the name of a parameter in Rust.
pub fn argument(p: &Param) -> String {
    rust_name(&p.name)
}

fn arguments(params: &[Param], abi: &Abi) -> String {
    let list: Vec<_> =
        params.iter().map(|p| format!("{}: {}", argument(p), rust_type(p, abi))).collect();
    list.join(", ")
}

fn types(out: &mut String, abi: &Abi) {
    out.push_str("pub mod types {\nuse super::prelude::*;\n\n");
    for (name, _) in &abi.handles {
        writeln!(out, "handle!({}, \"{name}\");", camel(name)).unwrap();
    }
    out.push('\n');
    for Callback { name, returns, params, variadic, .. } in &abi.callbacks {
        let more = if *variadic { ", ..." } else { "" };
        let result = if returns == "void" { "" } else { " -> c_int" };
        let list = arguments(params, abi);
        writeln!(out, "/// `{name}`").unwrap();
        writeln!(out, "pub type {} = unsafe extern \"C\" fn({list}{more}){result};", camel(name))
            .unwrap();
    }
    out.push_str("}\n\n");
}

fn constants(out: &mut String, abi: &Abi) {
    out.push_str("pub mod constants {\nuse super::prelude::*;\n\n");
    for Constant { name, c_type, value, .. } in &abi.constants {
        let line = match c_type.as_str() {
            "" if value.starts_with("MPI") => {
                let original = abi.constants.iter().find(|c| c.name == *value);
                let original = original.unwrap_or_else(|| panic!("{name}: no constant {value}"));
                format!("{}: {} = {value}", name, camel(&original.c_type))
            }
            "" | "int" | "MPI_T_cb_safety" | "MPI_T_source_order" => {
                format!("{name}: c_int = {value}")
            }
            "MPI_Offset" => format!("{name}: i64 = {value}"),
            // An address that stands for something: compare with `pointer.addr()`.
            pointer if pointer.ends_with('*') => format!("{name}: usize = {value}"),
            handle => format!("{name}: {0} = {0}({value})", camel(handle)),
        };
        writeln!(out, "pub const {line};").unwrap();
    }
    // For names of predefined objects and of error classes.
    out.push_str("\n/// C type (empty for plain numbers), name and value of every constant.\n");
    out.push_str("pub static ALL: &[(&str, &str, i64)] = &[\n");
    for Constant { name, c_type, value, .. } in &abi.constants {
        if !value.starts_with("MPI") {
            writeln!(out, "(\"{c_type}\", \"{name}\", {value}),").unwrap();
        }
    }
    out.push_str("];\n}\n\n");
}

/// Returns the conversions of two parameter lists to a shared list. `None` if the lists differ in more than counts.
fn widened(small: &[Param], large: &[Param]) -> Option<Vec<Widen>> {
    if small.len() != large.len() {
        return None;
    }
    let pairs = small.iter().zip(large);
    pairs
        .map(|(s, l)| {
            if (s.constant, &s.base, s.stars, &s.dims) == (l.constant, &l.base, l.stars, &l.dims) {
                return Some(Widen::Same);
            }
            let shape = (s.constant, s.stars, s.dims.as_str());
            if shape != (l.constant, l.stars, l.dims.as_str()) {
                return None;
            }
            match (s.base.as_str(), l.base.as_str(), shape) {
                ("int", "MPI_Count", (true, 0, "[]")) => Some(Widen::Counts),
                ("int", "MPI_Aint", (true, 0, "[]")) => Some(Widen::Displs),
                ("MPI_Aint", "MPI_Count", (true, 0, "[]")) => Some(Widen::Displs),
                ("int" | "MPI_Aint", "MPI_Count" | "MPI_Aint", (false, 0, "")) => {
                    Some(Widen::Scalar)
                }
                ("int" | "MPI_Aint", "MPI_Count" | "MPI_Aint", (false, 1, "")) => Some(Widen::Out),
                _ => None,
            }
        })
        .collect()
}

/// Returns the conversions of the parameters of `f` to those of the implementation that it shares with its other form.
pub fn widening(abi: &Abi, f: &AbiFunction) -> Option<Vec<Widen>> {
    if let Some(large) = abi.large(f) {
        widened(&f.params, &large.params)
    } else if let Some(small) = abi.small(f) {
        widened(&small.params, &f.params)
    } else {
        None
    }
}

fn convert(p: &Param, widen: Widen) -> String {
    let name = argument(p);
    let int = p.base == "int";
    match widen {
        Widen::Same => name,
        Widen::Scalar => format!("{name} as i64"),
        Widen::Counts if int => format!("Counts::Int({name})"),
        Widen::Counts => format!("Counts::Count({name})"),
        Widen::Displs if int => format!("Displs::Int({name})"),
        Widen::Displs => format!("Displs::Aint({name}.cast())"),
        Widen::Out if int => format!("Out::Int({name})"),
        Widen::Out => format!("Out::Count({name}.cast())"),
    }
}

/// Returns the object whose error handler is called: the first parameter that is such an object.
fn owner(f: &AbiFunction) -> String {
    if f.name.starts_with("MPI_T_") {
        return "Owner::Tool".into();
    }
    // Functions of files, also if the file is not open yet (MPI 5.0, section 14.7).
    let of_files = ["MPI_File_", "MPI_Register_datarep"].iter().any(|s| f.name.starts_with(s));
    if of_files && f.name != "MPI_File_create_errhandler" {
        let file = f.params.iter().find(|p| p.base == "MPI_File");
        return match file.map(|p| (p.stars, argument(p))) {
            Some((0, name)) => format!("Owner::File({name})"),
            Some((1, name)) if f.name == "MPI_File_close" => {
                format!("Owner::File(File::behind({name}))")
            }
            _ => "Owner::File(MPI_FILE_NULL)".into(),
        };
    }
    // These functions take a handle away, by its address. All other functions with an address of a handle return a new handle.
    let takes = ["_free", "_close", "_disconnect", "_finalize"];
    let takes = takes.iter().any(|end| f.name.ends_with(end));
    for p in &f.params {
        let kind = match p.base.as_str() {
            "MPI_Comm" | "MPI_Win" | "MPI_Session" => &p.base[4..],
            _ => continue,
        };
        match (p.stars, p.dims.as_str()) {
            (0, "") => return format!("Owner::{kind}({})", argument(p)),
            (1, "") if takes => return format!("Owner::{kind}({kind}::behind({}))", argument(p)),
            _ => {}
        }
    }
    // If there is only a request or a message, the object is the one that it belongs to. Functions that return a request or a
    // message, by its address, have nothing there yet.
    let uses = ["Wait", "Test", "Cancel", "Start", "Request_free", "Mrecv", "Imrecv"];
    let uses = uses.iter().any(|name| f.name.strip_suffix("_c").unwrap_or(&f.name)[4..] == **name);
    for p in &f.params {
        let kind = match p.base.as_str() {
            "MPI_Request" | "MPI_Message" => &p.base[4..],
            _ => continue,
        };
        match (p.stars, p.dims.as_str()) {
            (0, "") => return format!("Owner::{kind}({})", argument(p)),
            (1, "") if uses => return format!("Owner::{kind}({kind}::behind({}))", argument(p)),
            _ => {}
        }
    }
    "Owner::None".into()
}

/// Implementation that the entry points of a function call.
pub struct Resolved<'a> {
    pub implementation: Option<&'a Implementation>,
    /// The part of the implementation that needs no waiting.
    pub fast: Option<&'a Implementation>,
    /// The part of the implementation for communicators and requests of lanes.
    pub lane: Option<&'a Implementation>,
    widen: Vec<Widen>,
}

/// Finds the implementation of a function.
pub fn resolve<'a>(abi: &Abi, done: &'a Done, f: &AbiFunction) -> Resolved<'a> {
    let done = &done.functions;
    let (own, shared) = (implementation(&f.name), widening(abi, f));
    let plain = vec![Widen::Same; f.params.len()];
    let large_only = abi.small(f).is_some();
    let (found, widen) = match (done.get(&own), shared) {
        // The large form has its own implementation: it wins, and takes the C types.
        (Some(one), _) if large_only && !one.path.starts_with(calls::GENERATED) => {
            (Some(one), plain)
        }
        (Some(one), Some(widen)) => (Some(one), widen),
        (Some(one), None) => (Some(one), plain),
        (None, Some(widen)) if large_only => {
            (done.get(own.strip_suffix("_c").unwrap_or(&own)), widen)
        }
        (None, _) => (None, plain),
    };
    let part = |prefix: &str| {
        let name = found?.path.rsplit("::").next()?;
        done.get(&format!("{prefix}{name}"))
    };
    Resolved { implementation: found, fast: part(TRY), lane: part(LANE), widen }
}

/// Writes the two entry points of a function. Returns true if the function is implemented.
fn entry_point(out: &mut String, abi: &Abi, done: &Done, f: &AbiFunction) -> bool {
    let Resolved { implementation: found, fast, lane, widen } = resolve(abi, done, f);
    let path = found.map(|one| &one.path);
    let returns = match f.returns.as_str() {
        "int" => "c_int".to_owned(),
        other => base_type(other, abi),
    };
    let is_status = f.returns == "int" && !f.name.ends_with("_toint");
    let list: Vec<_> = f.params.iter().zip(widen).map(|(p, w)| convert(p, w)).collect();
    let (name, list, owner) = (&f.name, list.join(", "), owner(f));
    let body = match path {
        Some(path) if is_status => {
            format!("done(crate::{path}({list}), |e| raise(e, \"{name}\", {owner}))")
        }
        Some(path) => format!("crate::{path}({list})"),
        None if is_status => format!("unsupported(\"{name}\", {owner})"),
        None => format!("unsupported_value(\"{name}\", {})", neutral(f)),
    };
    let fast =
        fast.map_or_else(String::new, |one| format!(" try {{ crate::{}({list}) }}", one.path));
    // The entry point looks at the handle of a communicator or window before it calls the part for lanes.
    let has = |name: &str| f.params.iter().any(|p| p.name == name);
    let when = match (has("comm"), has("win")) {
        (true, _) => "crate::lanes::is_in_lane(comm.0)",
        (_, true) => "crate::lanes::has_place(win.0)",
        _ => "crate::lanes::exist()",
    };
    let lane = lane.map_or_else(String::new, |one| {
        format!(
            " lane ({when}) {{ match crate::{}({list}) {{ Ok(call) => call, Err(e) => {{ let _entered = crate::lock::enter(); \
             return raise(e, \"{name}\", {owner}) }} }} }}",
            one.path
        )
    });
    let arguments = arguments(&f.params, abi);
    let (comma, lane) = match (lane.is_empty(), fast.is_empty()) {
        (true, true) => ("", lane),
        (true, false) => (",", " lane (false) { LaneCall::OtherLane }".to_owned()),
        (false, _) => (",", lane),
    };
    writeln!(
        out,
        "entry!({name} P{name} ({arguments}) -> {returns}{comma}{lane}{fast} {{ {body} }});"
    )
    .unwrap();
    path.is_some()
}

/// Returns the value that a function without an error code returns while it is not implemented.
fn neutral(f: &AbiFunction) -> String {
    match f.returns.as_str() {
        "double" => "0.0".into(),
        "int" | "MPI_Aint" => "0".into(),
        "MPI_Datatype" => "MPI_DATATYPE_NULL".into(),
        handle => format!("{}_NULL", handle.to_uppercase()),
    }
}

/// Lists the signature that each implementation must have, or the fields of the arguments of which it is a method, for authors of
/// chapters.
pub fn signatures(abi: &Abi, done: &Done) -> String {
    let mut out = String::new();
    for f in &abi.functions {
        let (name, shared) = (implementation(&f.name), widening(abi, f));
        let (family, form) = calls::family(abi, f);
        let note = match (&shared, abi.small(f).is_some()) {
            (Some(_), true) => continue,
            (Some(_), false) => " // also for _c",
            _ => "",
        };
        let widen = shared.unwrap_or_else(|| vec![Widen::Same; f.params.len()]);
        if done.methods.contains_key(&family) {
            if form == calls::Form::Blocking {
                let fields = calls::list(&f.params, &widen, abi);
                writeln!(out, "{family} {{ {fields} }} // {} and its other forms", f.name).unwrap();
            }
            continue;
        }
        let one = |(p, w): (&Param, &Widen)| format!("{}: {}", argument(p), wide(p, *w, abi));
        let list: Vec<_> = f.params.iter().zip(&widen).map(one).collect();
        let returns = match f.returns.as_str() {
            "int" if !f.name.ends_with("_toint") => "Result<(), Error>".into(),
            other => base_type(other, abi),
        };
        let list = list.join(", ");
        writeln!(out, "pub(crate) unsafe fn {name}({list}) -> {returns};{note}").unwrap();
    }
    out
}
