//! What is implemented: the functions at the start of a line in `src/chapters/**/*.rs` that begin
//! with `pub(crate) unsafe fn`, and the names behind `// implements:` above a macro call. One that begins
//! with `try_` is the part of a function that needs no waiting.

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
    scan_into(dir, "chapters", &mut done);
    for (name, path) in &done {
        let name = name.strip_prefix(TRY).unwrap_or(name);
        if !abi.functions.iter().any(|f| implementation(&f.name) == name) {
            println!("cargo::warning={path} implements no MPI function: make it pub(super)?");
        }
    }
    done
}

/// The implementations that a line begins, or that a macro call below it defines.
fn implementations(line: &str) -> Vec<String> {
    if let Some(names) = line.strip_prefix("// implements: ") {
        return names.split_whitespace().map(str::to_owned).collect();
    }
    let Some(rest) = line.strip_prefix("pub(crate) unsafe fn ") else { return Vec::new() };
    vec![rest.split(['(', '<']).next().unwrap_or_default().to_owned()]
}

fn scan_into(dir: &Path, module: &str, done: &mut Done) {
    let entries = fs::read_dir(dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display()));
    let mut paths: Vec<_> = entries.flatten().map(|e| e.path()).collect();
    paths.sort();
    for path in paths {
        let stem = path.file_stem().unwrap_or_default().to_string_lossy();
        let module = format!("{module}::{stem}");
        if path.is_dir() {
            scan_into(&path, &module, done);
        } else if path.extension().is_some_and(|e| e == "rs") {
            let text = fs::read_to_string(&path).unwrap_or_else(|e| panic!("{stem}.rs: {e}"));
            for name in text.lines().flat_map(implementations) {
                let full = format!("{module}::{name}");
                if let Some(other) = done.insert(name, full.clone()) {
                    panic!("{full} is also implemented as {other}");
                }
            }
        }
    }
}
