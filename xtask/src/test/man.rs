//! The manual pages of an installation, as man(1) shows them. What they say is tested where they are made (`manual/tests.rs`).

use super::tally::Tally;
use crate::manual::complaints;
use std::fs;
use std::path::Path;
use std::process::Command;

/// A page, and words that man must show of it.
const PAGES: [(&str, &str); 6] = [
    ("MPI_Allreduce", "int MPI_Allreduce(const void *sendbuf"),
    ("MPI_Allreduce_c", "MPI_Allreduce_c(const void *sendbuf"),
    ("mpiexec", "MPI_Abort"),
    ("mpirun", "MPI_Abort"),
    ("mpicxx", "WEFT_CXX"),
    ("weft-info", "algorithms"),
];

/// Looks at pages of functions and at those of all commands.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// `cargo test -p xtask man:: -- --ignored`, after an installation in target/weft.
    #[test]
    #[ignore = "a part of cargo xtask test --only programs, which installs the library"]
    fn man_shows_pages() {
        run(&crate::demo::prefix(), &mut Tally::default()).unwrap();
    }
}
