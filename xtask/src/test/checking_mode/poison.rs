//! Poison in buffers, `mpiexec -check-poison`: programs of `tests/check/poison.c`.

use super::{compile, folder, two_at_a_time};
use crate::root;
use std::fs;
use std::path::Path;
use std::process::Command;

/// A program that reads a buffer too early, or that must not see the pattern.
#[derive(PartialEq, Debug)]
struct PoisonedProgram {
    name: String,
    ranks: String,
    /// Words that it prints of the pattern.
    verdict: &'static str,
}

/// Reads the programs: heads such as `CORRECT(name, 2) {`, with `// early` behind those that read too early.
fn programs(text: &str) -> Vec<PoisonedProgram> {
    let head = |line: &str| {
        let (head, rest) = line.strip_prefix("CORRECT(")?.split_once(") {")?;
        let (name, ranks) = head.split_once(", ")?;
        let verdict = if rest.ends_with("// early") { "seen" } else { "not seen" };
        Some(PoisonedProgram { name: name.to_owned(), ranks: ranks.to_owned(), verdict })
    };
    text.lines().filter_map(head).collect()
}

/// Runs the programs. Returns their number.
pub fn run(prefix: &Path) -> Result<usize, String> {
    let source = root().join("tests/check/poison.c");
    let text = fs::read_to_string(&source).map_err(|e| format!("{}: {e}", source.display()))?;
    let program = folder()?.join("check-poison");
    compile(prefix, &source, &program)?;
    let all = programs(&text);
    if all.iter().filter(|entry| entry.verdict == "seen").count() < 3 {
        return Err("tests/check/poison.c has no programs that read too early".to_owned());
    }
    let results = two_at_a_time(&all, |entry| {
        let mut mpiexec = Command::new(prefix.join("bin/mpiexec"));
        mpiexec.args(["-check-poison", "--timeout", "60", "-n", &entry.ranks]);
        let output = mpiexec.arg(&program).arg(&entry.name).output().map_err(|e| e.to_string())?;
        let printed = [output.stdout, output.stderr].concat();
        let printed = String::from_utf8_lossy(&printed);
        let verdict = format!("poison {}, content right\n", entry.verdict);
        let is_clean = output.status.success() && !printed.contains("weft check:");
        match is_clean && printed.contains(&verdict) {
            true => Ok(()),
            false => Err(format!("mpiexec -check-poison, {}: {printed}", entry.name)),
        }
    });
    results.into_iter().collect::<Result<(), String>>()?;
    println!("ok   {} programs with poison in their buffers", all.len());
    Ok(all.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_reads_early_if_its_head_says_so() {
        let program = |name: &str, ranks: &str, verdict| PoisonedProgram {
            name: name.to_owned(),
            ranks: ranks.to_owned(),
            verdict,
        };
        let text = "CORRECT(a, 2) {  // early\n}\nCORRECT(b, 3) {\n    x();\n}\n";
        assert_eq!(programs(text), [program("a", "2", "seen"), program("b", "3", "not seen")]);
    }
}
