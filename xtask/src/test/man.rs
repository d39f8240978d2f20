//! Tests of the manual pages of an installation, as man(1) shows them, and of their examples, which are compiled and run.
//! `manual/tests.rs` tests the texts.

use super::tally::Tally;
use super::tools::quiet;
use crate::manual::complaints;
use crate::manual::examples::{self, Example};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Pages, and words that man must show on each.
const PAGES: [(&str, &str); 6] = [
    ("MPI_Allreduce", "int MPI_Allreduce(const void *sendbuf"),
    ("MPI_Allreduce_c", "MPI_Allreduce_c(const void *sendbuf"),
    ("mpiexec", "MPI_Abort"),
    ("mpirun", "MPI_Abort"),
    ("mpicxx", "WEFT_CXX"),
    ("weft-info", "algorithms"),
];

/// Checks some pages of functions and the pages of all commands.
pub(super) fn run(prefix: &Path, tally: &mut Tally) -> Result<(), String> {
    let man = prefix.join("share/man");
    let commands = man.join("man1");
    let entries = fs::read_dir(&commands).map_err(|e| format!("{}: {e}", commands.display()))?;
    for path in entries.flatten().map(|entry| entry.path()) {
        let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
        match complaints(&text, &man) {
            Some(said) if !said.is_empty() => return Err(format!("{}: {said}", path.display())),
            _ => {}
        }
    }
    for (page, words) in PAGES {
        let mut command = Command::new("man");
        command.arg("-M").arg(&man).arg(page).env("MANWIDTH", "100").env("MANPAGER", "cat");
        let Ok(output) = command.output() else {
            tally.not_run.push("manual pages in a terminal: there is no man".to_owned());
            return Ok(());
        };
        let text = String::from_utf8_lossy(&output.stdout);
        if text.contains("has been minimized") {
            tally.not_run.push("manual pages in a terminal: man is not all there".to_owned());
            return Ok(());
        }
        if !output.status.success() || !text.contains(words) {
            return Err(format!("man {page}: {}: no '{words}' in\n{text}", output.status));
        }
    }
    println!("ok   manual pages");
    tally.passed += 1;
    Ok(())
}

/// Compiles the examples of pages. Compares their output on two ranks with the output that the examples list.
pub(super) fn run_examples(prefix: &Path, tally: &mut Tally) -> Result<(), String> {
    let folder = super::c_programs::folder()?;
    let folder = tempfile::tempdir_in(folder).map_err(|e| format!("a folder: {e}"))?;
    for example in examples::all()? {
        run_example(prefix, folder.path(), &example)
            .map_err(|why| format!("{}: {why}", example.path.display()))?;
        tally.passed += 1;
    }
    println!("ok   the examples of manual pages");
    Ok(())
}

fn run_example(prefix: &Path, folder: &Path, example: &Example) -> Result<(), String> {
    let program = folder.join(example.path.file_stem().unwrap_or_default());
    let (source, define) = example.source();
    let mut mpicc = Command::new(prefix.join("bin/mpicc"));
    mpicc.args(["-Wall", "-Wextra", "-Werror"]).args(define).arg(source).arg("-o").arg(&program);
    quiet(&mut mpicc)?;
    let mut mpiexec = Command::new(prefix.join("bin/mpiexec"));
    mpiexec.args(["--timeout", "60", "-n", "2"]).arg(&program).current_dir(folder);
    let output = mpiexec.output().map_err(|e| format!("mpiexec: {e}"))?;
    let printed = String::from_utf8_lossy(&output.stdout);
    let mut lines: Vec<&str> = printed.lines().collect();
    lines.sort_unstable();
    if !output.status.success() || lines != example.prints() {
        let errors = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{}, printed\n{printed}{errors}", output.status));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Needs an installation in target/weft. Run with `cargo test -p xtask man:: -- --ignored`.
    #[test]
    #[ignore = "a part of cargo xtask test --only limits, which installs the library"]
    fn man_shows_pages() {
        run(&crate::demo::prefix(), &mut Tally::default()).unwrap();
    }

    /// Needs an installation in target/weft. Run with `cargo test -p xtask man:: -- --ignored`.
    #[test]
    #[ignore = "a part of cargo xtask test --only programs, which installs the library"]
    fn examples_print_their_lines() {
        run_examples(&crate::demo::prefix(), &mut Tally::default()).unwrap();
    }
}
