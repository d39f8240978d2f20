//! Writes the index of functions, and checks that the documentation of each implementing item begins with the C names that it
//! implements. So a search for `MPI_Isend` finds its implementation, and no such line is ever out of date.

use crate::calls::{self, Form};
use crate::chapters::Done;
use crate::rust::{Resolved, resolve};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use weft_abi_data::{Abi, AbiFunction};

/// Maximum number of characters in a line of documentation.
const WIDTH: usize = 100;

const HEAD: &str = "\
# Where each MPI function is implemented

The build script of this crate finds these items by reading `src/chapters`, and makes the entry points call them. Files are named
from `src`. A test compares this list with what the build script found; this command writes it anew:

    WRITE_INDEX=1 cargo test -p weft-abi --test index

`Sends::nonblocking for Send` is the method `nonblocking` of the trait `Sends`, for the arguments `Send`: the item in that file is
`impl Sends for Send`, or a macro's call that writes it. The method itself is in the trait's file, where the item has none of its own.
The last column has the fast paths, if there are any, for usual calls and for calls on a lane: the entry point tries them first.

";

/// Returns the index of functions, as Markdown.
pub fn functions_md(abi: &Abi, done: &Done) -> String {
    let mut rows =
        String::from("| function | file | implementation | fast path |\n|---|---|---|---|\n");
    let mut traits = BTreeSet::new();
    let file = |item: usize| done.items[item].file.trim_start_matches("src/");
    for f in sorted(abi) {
        let Resolved { implementation: Some(one), fast, lane, .. } = resolve(abi, done, f) else {
            writeln!(rows, "| {} | | | |", f.name).unwrap();
            continue;
        };
        if let Some((name, _)) = one.label.split_once("::").filter(|_| one.label.contains(" for "))
        {
            traits.insert(name);
        }
        let fast = fast.into_iter().chain(lane).map(|fast| match file(fast.item) {
            same if same == file(one.item) => format!("`{}`", fast.label),
            other => format!("`{}` in {other}", fast.label),
        });
        let fast = fast.collect::<Vec<_>>().join(", ");
        let (name, file) = (&f.name, file(one.item));
        writeln!(rows, "| {name} | {file} | `{}` | {fast} |", one.label).unwrap();
    }
    let mut out = HEAD.to_owned();
    out.push_str("| trait | file |\n|---|---|\n");
    for name in traits {
        let file = done.traits[name].trim_start_matches("src/");
        writeln!(out, "| `{name}` | {file} |").unwrap();
    }
    out.push('\n');
    out.push_str(&rows);
    out
}

fn sorted(abi: &Abi) -> Vec<&AbiFunction> {
    let mut all: Vec<_> = abi.functions.iter().collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    all
}

/// Fails if the documentation of an item begins with other C names than the names that it implements.
pub fn check(abi: &Abi, done: &Done) {
    let mut expected: BTreeMap<usize, Vec<&AbiFunction>> = BTreeMap::new();
    for f in sorted(abi) {
        let Resolved { implementation, fast, lane, .. } = resolve(abi, done, f);
        let items: BTreeSet<usize> =
            implementation.into_iter().chain(fast).chain(lane).map(|one| one.item).collect();
        items.into_iter().for_each(|item| expected.entry(item).or_default().push(f));
    }
    let mut faults = String::new();
    for (number, item) in done.items.iter().enumerate() {
        let functions = expected.remove(&number).unwrap_or_default();
        let names: BTreeSet<&str> = functions.iter().map(|f| f.name.as_str()).collect();
        if names == item.names.iter().map(String::as_str).collect() {
            continue;
        }
        writeln!(faults, "{}: the documentation of `{}` must begin with", item.file, item.head)
            .unwrap();
        match documentation(abi, functions) {
            lines if lines.is_empty() => faults.push_str("    no C name: it implements none\n"),
            lines => lines.iter().for_each(|line| writeln!(faults, "    {line}").unwrap()),
        }
    }
    assert!(faults.is_empty(), "C names of implementations:\n{faults}");
}

/// Returns the lines with which the documentation of the implementation of `functions` begins.
fn documentation(abi: &Abi, mut functions: Vec<&AbiFunction>) -> Vec<String> {
    let form = |f: &AbiFunction| match calls::family(abi, abi.small(f).unwrap_or(f)).1 {
        Form::Blocking => 0,
        Form::Nonblocking => 1,
        Form::Persistent => 2,
    };
    functions.sort_by_key(|f| form(f));
    let mut lines: Vec<String> = Vec::new();
    let last = functions.len().saturating_sub(1);
    for (i, f) in functions.iter().enumerate() {
        let name = format!("{}{}", f.name, if i == last { '.' } else { ',' });
        match lines.last_mut().filter(|line| line.len() + 1 + name.len() <= WIDTH) {
            Some(line) => write!(line, " {name}").unwrap(),
            None => lines.push(format!("/// {name}")),
        }
    }
    lines
}
