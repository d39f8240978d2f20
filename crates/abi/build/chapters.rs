//! What is implemented: the functions at the start of a line in `src/chapters/**/*.rs` that begin
//! with `pub(crate) unsafe fn`, and what macros define that are called there: `operation!("MPI_Scan" scan iscan scan_init (...)`.
//! One that begins with `try_` is the part of a function that needs no waiting.

use crate::data::Abi;
use std::collections::HashMap;
use std::fs;
use std::path::Path;

/// From the name of an implementation (`comm_rank`) to its path (`chapters::comm::comm_rank`).
pub type Done = HashMap<String, String>;

/// The beginning of the name of an implementation's part that needs no waiting.
pub const TRY: &str = "try_";

/// `MPI_Comm_rank` is implemented by `comm_rank`, `MPI_T_init_thread` by `t_init_thread`.
pub fn implementation(name: &str) -> String {
    name.strip_prefix("MPI_").unwrap_or(name).to_lowercase()
}

pub fn scan(dir: &Path, abi: &Abi) -> Done {
    println!("cargo::rerun-if-changed={}", dir.display());
    let mut done = Done::new();
    scan_into(dir, "chapters", abi, &mut done);
    for (name, path) in &done {
        let name = name.strip_prefix(TRY).unwrap_or(name);
        if !abi.functions.iter().any(|f| implementation(&f.name) == name) {
            println!("cargo::warning={path} implements no MPI function: make it pub(super)?");
        }
    }
    done
}

/// The implementations that a text defines: by functions, and by macros called at the start of a line, whose first words are
/// the names.
fn implementations(text: &str, abi: &Abi) -> Vec<String> {
    let mut names = Vec::new();
    for line in text.match_indices('\n').map(|(at, _)| &text[at + 1..]) {
        if let Some(rest) = line.strip_prefix("pub(crate) unsafe fn ") {
            names.push(rest.split(['(', '<']).next().unwrap_or_default().to_owned());
        } else if let Some(words) = macro_call(line) {
            let is_one =
                |word: &&str| abi.functions.iter().any(|f| implementation(&f.name) == **word);
            names.extend(words.split([' ', ',', '\n']).filter(is_one).map(str::to_owned));
        }
    }
    names
}

/// What a macro's call begins with, up to the first bracket within; `None`: the text begins with no call.
fn macro_call(text: &str) -> Option<&str> {
    let (name, _) = text.lines().next()?.split_once("!(")?;
    let is_name = !name.is_empty() && name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
    let inside = &text[name.len() + 2..];
    is_name.then(|| inside.split(['(', ')']).next().unwrap_or_default())
}

fn scan_into(dir: &Path, module: &str, abi: &Abi, done: &mut Done) {
    let entries = fs::read_dir(dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display()));
    let mut paths: Vec<_> = entries.flatten().map(|e| e.path()).collect();
    paths.sort();
    for path in paths {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let module = format!("{module}::{stem}");
        if path.is_dir() {
            scan_into(&path, &module, abi, done);
        } else if path.extension().is_some_and(|e| e == "rs") {
            let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{stem}.rs: {e}"));
            for name in implementations(&text, abi) {
                let full = format!("{module}::{name}");
                if let Some(other) = done.insert(name, full.clone()) {
                    panic!("{full} is also implemented as {other}");
                }
            }
        }
    }
}
