//! Writes the arguments of functions that differ only in their form: `MPI_Gather`, `MPI_Igather`, `MPI_Gather_init` and their
//! `_c` are one family. Its arguments are one structure, in which a buffer with its count and type is one field:
//!
//! ```text
//!   MPI_Gather(sendbuf, sendcount, sendtype, recvbuf, recvcount, recvtype, root, comm)
//!   Gather { sendbuf: Elements, recvbuf: Elements, root: c_int, comm: Comm }
//! ```
//! Parameters in which the forms differ come last (status, info, request), and so does a new datatype: methods of the chapters
//! receive them, and implement the forms. These methods are those of [`Form`]; or `small` and `large`, if a `_c` is more than a
//! form with larger numbers.

use crate::chapters::{Done, Implementation, LANE, TRY, implementation};
use crate::rust::{Widen, argument, camel, wide, widening};
use std::fmt::Write;
use weft_abi_data::{Abi, AbiFunction, Param};

/// Path of the functions that are written here. They take widened arguments, also for a `_c` that has its own implementation.
pub const GENERATED: &str = "generated::calls::";

/// Form of a function. It names the methods of the form and of its part that needs no waiting.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Form {
    Blocking,
    Nonblocking,
    Persistent,
}

impl Form {
    fn method(self) -> &'static str {
        match self {
            Form::Blocking => "blocking",
            Form::Nonblocking => "nonblocking",
            Form::Persistent => "persistent",
        }
    }
}

/// Returns the family of a function, by the name of its arguments, and its form.
pub fn family(abi: &Abi, f: &AbiFunction) -> (String, Form) {
    let name = &f.name[4..];
    let takes = common(&f.params);
    let asks =
        takes.len() < f.params.len() && f.params.last().is_some_and(|p| p.base == "MPI_Request");
    let of = |stem: &str| {
        let first = stem.get(..1)?.to_uppercase();
        let base = format!("MPI_{first}{}", &stem[1..]);
        abi.function(&base).filter(|base| asks && common(&base.params) == takes)
    };
    let ways = [
        // Tried first: MPI_Rsend_init is no MPI_Send_init with a request.
        (name.strip_suffix("_init"), Form::Persistent),
        (name.strip_prefix(['I', 'R']), Form::Nonblocking),
    ];
    let found = ways.iter().find_map(|&(stem, form)| Some((of(stem?)?, form)));
    let (base, form) = found.unwrap_or((f, Form::Blocking));
    (camel(&base.name), form)
}

/// Returns the parameters that all forms take.
fn common(params: &[Param]) -> &[Param] {
    let is = |p: &Param, base: &str, stars| p.base == base && p.stars == stars && p.dims.is_empty();
    match params {
        [all @ .., info, request] if is(info, "MPI_Info", 0) && is(request, "MPI_Request", 1) => {
            all
        }
        [all @ .., last] if ["MPI_Request", "MPI_Status"].iter().any(|o| is(last, o, 1)) => all,
        [all @ .., last] if last.name == "newtype" => all,
        all => all,
    }
}

/// A field of the arguments: its name, its type, and the expression of its value.
struct Field {
    name: String,
    kind: String,
    value: String,
}

/// Returns the fields of the arguments, as a text.
pub fn list(params: &[Param], widen: &[Widen], abi: &Abi) -> String {
    let fields = fields(common(params), widen, abi);
    let one = |Field { name, kind, .. }: &Field| format!("{name}: {kind}");
    fields.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// Groups parameters into fields.
fn fields(params: &[Param], widen: &[Widen], abi: &Abi) -> Vec<Field> {
    let mut out: Vec<Field> = Vec::new();
    let mut at = 0;
    while at < params.len() {
        let taken = elements(params, widen, at, &mut out)
            .or_else(|| blocks(params, widen, at, &mut out))
            .or_else(|| target(params, at, &mut out));
        if taken.is_none() {
            let p = &params[at];
            let name = argument(p);
            out.push(Field { value: name.clone(), kind: wide(p, widen[at], abi), name });
        }
        at += taken.unwrap_or(1);
    }
    out
}

fn is_buffer(p: &Param) -> bool {
    p.base == "void" && p.stars == 1 && p.dims.is_empty()
}

fn is_type(p: Option<&Param>) -> bool {
    p.is_some_and(|p| p.base == "MPI_Datatype" && p.stars == 0 && p.dims.is_empty())
}

/// Adds buffers of one count and type, of one element of a type, or of as many elements as an array says.
fn elements(params: &[Param], widen: &[Widen], at: usize, out: &mut Vec<Field>) -> Option<usize> {
    let buffers: Vec<&Param> = params[at..].iter().take_while(|p| is_buffer(p)).collect();
    let next = at + buffers.len();
    let counts = widen.get(next).copied().filter(|w| [Widen::Scalar, Widen::Counts].contains(w));
    let ty = next + usize::from(counts.is_some());
    if buffers.is_empty() || !is_type(params.get(ty)) {
        return None;
    }
    let count = if counts.is_some() { params[next].name.as_str() } else { "1" };
    let value = if counts == Some(Widen::Counts) { "0" } else { count };
    let ty = params[ty].name.as_str();
    for p in &buffers {
        let name = &p.name;
        let value =
            format!("Elements::new({name}, {value}, {ty}, &[\"{name}\", \"{count}\", \"{ty}\"])");
        out.push(Field { name: name.clone(), kind: "Elements".into(), value });
    }
    if counts == Some(Widen::Counts) {
        let name = params[next].name.clone();
        out.push(Field { kind: "Counts".into(), value: name.clone(), name });
    }
    Some(buffers.len() + usize::from(counts.is_some()) + 1)
}

/// Adds a buffer of blocks, which have their own lengths, displacements and perhaps types.
fn blocks(params: &[Param], widen: &[Widen], at: usize, out: &mut Vec<Field>) -> Option<usize> {
    let [buffer, counts, displs, ty] = params.get(at..at + 4)? else { return None };
    if !is_buffer(buffer) || widen[at + 1] != Widen::Counts || ty.base != "MPI_Datatype" {
        return None;
    }
    let place = match widen[at + 2] {
        Widen::Displs => displs.name.clone(),
        // MPI_Aint in both forms.
        _ => format!("Displs::Aint({}.cast())", displs.name),
    };
    let kind = if ty.dims.is_empty() { "RankBlocks" } else { "TypedBlocks" };
    let [name, count, ty] = [&buffer.name, &counts.name, &ty.name];
    let names = format!("&[\"{name}\", \"{count}\", \"{ty}\"], \"{}\"", displs.name);
    let value = format!("{kind}::new({name}, {count}, {place}, {ty}, {names})");
    out.push(Field { name: name.clone(), kind: kind.into(), value });
    Some(4)
}

/// Adds the target's side of a one-sided operation. Without a count, it is one element of the origin's type.
fn target(params: &[Param], at: usize, out: &mut Vec<Field>) -> Option<usize> {
    let names: Vec<&str> = params[at..].iter().map(|p| p.name.as_str()).collect();
    let ("target_rank", "target_disp") = (*names.first()?, *names.get(1)?) else { return None };
    let whole = names.get(2) == Some(&"target_count");
    let rest = if whole { "target_count, target_datatype" } else { "1, datatype" };
    let value = format!("TargetArgs::new(target_rank, target_disp, {rest})");
    out.push(Field { name: "target".into(), kind: "TargetArgs".into(), value });
    Some(if whole { 4 } else { 2 })
}

/// Writes the arguments of the families that chapters implement, and a function for each form, which is added to `done`.
pub fn write(out: &mut String, abi: &Abi, done: &mut Done) {
    out.push_str("pub mod calls {\nuse super::prelude::*;\n\n");
    for f in &abi.functions {
        let (family, form) = family(abi, f);
        let Some(methods) = done.methods.get(&family) else { continue };
        let widen = match (abi.small(f), widening(abi, f)) {
            (Some(_), _) => continue,
            (None, Some(widen)) => widen,
            (None, None) => vec![Widen::Same; f.params.len()],
        };
        let shared = common(&f.params);
        let fields = fields(shared, &widen, abi);
        if form == Form::Blocking {
            structure(out, f, &family, &fields);
        }
        let list: Vec<_> = f
            .params
            .iter()
            .zip(&widen)
            .map(|(p, w)| format!("{}: {}", argument(p), wide(p, *w, abi)))
            .collect();
        let mut passed = format!("{family} {{ ");
        for Field { name, value, .. } in &fields {
            write!(passed, "{name}: {value}, ").unwrap();
        }
        passed.push('}');
        for p in &f.params[shared.len()..] {
            write!(passed, ", {}", argument(p)).unwrap();
        }
        let name = implementation(&f.name);
        let whole = "Result<(), crate::error::Error>";
        let mut ways = vec![
            (name.clone(), form.method().to_owned(), whole, ""),
            (
                format!("{TRY}{name}"),
                format!("{TRY}{}", form.method()),
                "bool",
                "#[inline(always)] ",
            ),
            (
                format!("{LANE}{name}"),
                format!("{LANE}{}", form.method()),
                "Result<crate::lane_calls::LaneCall, crate::error::Error>",
                "#[inline(always)] ",
            ),
        ];
        if form == Form::Blocking {
            ways.push((name.clone(), "small".into(), whole, ""));
            ways.push((format!("{name}_c"), "large".into(), whole, ""));
        }
        for (name, method, returns, inline) in ways {
            let Some(Implementation { path: call, label, item }) = methods.get(&method) else {
                continue;
            };
            writeln!(
                out,
                "{inline}pub unsafe fn {name}({}) -> {returns} {{\n// SAFETY: the caller keeps MPI's rules for \
                 these arguments.\nunsafe {{ {call}({passed}) }}\n}}",
                list.join(", ")
            )
            .unwrap();
            let path = format!("{GENERATED}{name}");
            let new = Implementation { path, label: label.clone(), item: *item };
            if let Some(other) = done.functions.insert(name, new) {
                panic!("{} is also implemented as {}", f.name, other.path);
            }
        }
    }
    out.push_str("}\n\n");
}

fn structure(out: &mut String, f: &AbiFunction, family: &str, fields: &[Field]) {
    writeln!(out, "/// What `{}` and its other forms are given.", f.name).unwrap();
    writeln!(out, "#[derive(Clone, Copy)]\npub struct {family} {{").unwrap();
    for Field { name, kind, .. } in fields {
        writeln!(out, "pub {name}: {kind},").unwrap();
    }
    writeln!(
        out,
        "}}\nimpl Arguments for {family} {{ const NAME: &'static str = \"{}\"; }}\n",
        f.name
    )
    .unwrap();
}

/// Returns the names of all families' arguments.
pub fn families(abi: &Abi) -> Vec<String> {
    abi.functions.iter().map(|f| family(abi, f).0).collect()
}
