//! Every function of the standard is implemented and called by a C program that checks itself. This test does not see if a program
//! would notice a function that does nothing: `cargo xtask mutation` tries that.

use crate::common::{compile_and_run, data, library_dir, run};
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Programs whose calls must all be refused. These programs do not test the effect of a function.
const REFUSALS: &[&str] = &[
    "bad_input.c",
    "bad_input_fatal.c",
    "bad_windows.c",
    "before_init.c",
    "after_finalize.c",
    "neighbors_mistakes.c",
    "fatal.c",
];

fn functions() -> Vec<String> {
    data("functions.csv").into_iter().map(|mut row| row.swap_remove(0)).collect()
}

/// Returns the C programs of the whole project.
fn programs() -> Vec<PathBuf> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut all = Vec::new();
    for folder in [here.join("tests/c"), here.join("../../tests/c")] {
        let entries = fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
        all.extend(entries.map(|entry| entry.expect("an entry").path()));
    }
    let name = |p: &PathBuf| p.file_name().unwrap_or_default().to_string_lossy().into_owned();
    all.retain(|p| name(p).ends_with(".c") && !REFUSALS.contains(&name(p).as_str()));
    all
}

/// Adds the functions that a program calls, after the preprocessor: without comments, with macros that paste names. Lines of mpi.h
/// and of the system's headers do not count.
fn calls(program: &Path, into: &mut BTreeSet<String>) {
    let mut cc = Command::new("cc");
    cc.arg("-E").arg("-I").arg(library_dir().join("include")).arg(program);
    let mut ours = false;
    for line in run(&mut cc).lines() {
        if let Some(marker) = line.strip_prefix("# ") {
            let file = Path::new(marker.split('"').nth(1).unwrap_or_default());
            ours = file.parent() == program.parent();
        } else if ours {
            called(line, into);
        }
    }
}

/// Adds the names in `line` that begin with `MPI_` and are followed by a parenthesis.
fn called(line: &str, into: &mut BTreeSet<String>) {
    let part_of_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    for (at, _) in line.match_indices("MPI_") {
        if line[..at].ends_with(part_of_name) {
            continue;
        }
        let end = line[at..].find(|c| !part_of_name(c)).map_or(line.len(), |n| at + n);
        if line[end..].trim_start().starts_with('(') {
            into.insert(line[at..end].to_owned());
        }
    }
}

#[test]
fn every_function_is_implemented() {
    let source = "#include <stdio.h>\nconst char *weft_coverage(void);\n\
                  int main(void) { return puts(weft_coverage()) < 0; }\n";
    let text = compile_and_run("coverage", &["cc"], source, &[]);
    let built: BTreeSet<&str> = text.lines().filter_map(|l| l.strip_suffix(" yes")).collect();
    let functions = functions();
    assert!(functions.len() > 600, "{} functions", functions.len());
    let missing: Vec<_> = functions.iter().filter(|f| !built.contains(f.as_str())).collect();
    assert!(missing.is_empty(), "not implemented: {missing:#?}");
}

#[test]
fn every_function_is_called_by_a_program() {
    let mut all = BTreeSet::new();
    programs().iter().for_each(|program| calls(program, &mut all));
    let missing: Vec<_> = functions().into_iter().filter(|f| !all.contains(f)).collect();
    assert!(
        missing.is_empty(),
        "{} functions that no program in tests/c or crates/abi/tests/c calls (those that only get \
         bad input do not count): {missing:#?}",
        missing.len()
    );
}

#[test]
fn calls_are_found() {
    let mut found = BTreeSet::new();
    called(
        "x = MPI_Send (a), PMPI_Recv(b), MY_MPI_Wait(c); f(MPI_Test, MPI_INT); MPI_Get_c(",
        &mut found,
    );
    assert_eq!(found.into_iter().collect::<Vec<_>>(), ["MPI_Get_c", "MPI_Send"]);
}
