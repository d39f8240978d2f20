//! Waits of programs, which `mpiexec -check-slow` prints: programs of `tests/check/waits.c`.

use super::{compile, folder, two_at_a_time};
use crate::root;
use std::fs;
use std::path::Path;
use std::process::Command;

/// A program whose waits are known.
#[derive(PartialEq, Debug)]
struct WaitingProgram {
    name: String,
    ranks: String,
    /// Kind of its wait, or `none`.
    kind: String,
    /// Lines that the row must name.
    lines: Vec<usize>,
}

/// Reads the programs: heads such as `CORRECT(name, 2) {  // wait: kind`, and lines that end in `// waits` or `late`.
fn programs(text: &str) -> Vec<WaitingProgram> {
    let mut all: Vec<WaitingProgram> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        if let Some((head, kind)) = line.split_once(") {  // wait: ") {
            let (name, ranks) =
                head.trim_start_matches("CORRECT(").split_once(", ").unwrap_or((head, ""));
            let (name, ranks, kind) = (name.to_owned(), ranks.to_owned(), kind.to_owned());
            all.push(WaitingProgram { name, ranks, kind, lines: Vec::new() });
        } else if line.contains("// waits") || line.ends_with("// late") {
            all.last_mut().into_iter().for_each(|program| program.lines.push(number));
        }
    }
    all
}

/// Runs the programs. Returns their number.
pub fn run(prefix: &Path) -> Result<usize, String> {
    let source = root().join("tests/check/waits.c");
    let text = fs::read_to_string(&source).map_err(|e| format!("{}: {e}", source.display()))?;
    let program = folder()?.join("check-waits");
    compile(prefix, &source, &program)?;
    let all = programs(&text);
    if all.len() < 10 {
        return Err(format!("tests/check/waits.c has {} programs with waits", all.len()));
    }
    let results = two_at_a_time(&all, |entry| {
        judge(prefix, &program, entry)
            .map_err(|why| format!("mpiexec -check-slow, {}: {why}", entry.name))
    });
    results.into_iter().collect::<Result<(), String>>()?;
    println!("ok   {} programs with waits", all.len());
    Ok(all.len())
}

/// Runs a program, and looks for its row in the table and in the file.
fn judge(prefix: &Path, program: &Path, entry: &WaitingProgram) -> Result<(), String> {
    let file = folder()?.join(format!("check-waits-{}.json", entry.name));
    // A file of an earlier run has other rows.
    let _ = fs::remove_file(&file);
    let mut mpiexec = Command::new(prefix.join("bin/mpiexec"));
    mpiexec.args(["-check-slow", "--timeout", "60", "-n", &entry.ranks]);
    mpiexec.arg(program).arg(&entry.name).env("WEFT_CHECK_REPORT", &file);
    let output = mpiexec.output().map_err(|e| e.to_string())?;
    let all = [output.stdout, output.stderr].concat();
    let printed = String::from_utf8_lossy(&all);
    let rows = fs::read_to_string(&file).unwrap_or_default();
    let kind = format!("{{\"slow\":\"{}\",", entry.kind);
    let is_named =
        |text: &str| entry.lines.iter().all(|line| text.contains(&format!("(waits.c:{line})")));
    let is_there = match entry.kind.as_str() {
        "none" => printed.contains("\n  none\n") && rows.is_empty(),
        _ => is_named(&printed) && rows.lines().any(|row| row.starts_with(&kind) && is_named(row)),
    };
    let code = output.status.code();
    if code == Some(0) && is_there {
        return Ok(());
    }
    let WaitingProgram { kind, lines, .. } = entry;
    Err(format!("exit code {code:?}, expected '{kind}' with lines {lines:?}:\n{printed}{rows}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_has_a_kind_and_lines() {
        let text = "CORRECT(a, 2) {  // wait: late sender\n  x();  // waits\n  y();  // late\n}\n";
        let (name, ranks, kind) = ("a".to_owned(), "2".to_owned(), "late sender".to_owned());
        assert_eq!(programs(text), [WaitingProgram { name, ranks, kind, lines: vec![2, 3] }]);
    }
}
