//! C programs under our mpiexec: the examples and tests/c, each on the rank counts that its first
//! lines name.
//!
//! ```c
//! // ranks: 1 2 4        how often it runs, and on how many ranks (default: 2)
//! // args: -x 3          its arguments
//! // expect: 1           its exit code, if not 0
//! // says: text          a text that its output must contain
//! ```

use super::Tally;
use super::tools::{quiet, step};
use crate::root;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// What a program's comments ask for.
struct Plan {
    ranks: Vec<usize>,
    args: Vec<String>,
    expect: i32,
    says: Vec<String>,
}

fn plan(source: &str) -> Result<Plan, String> {
    let mut plan = Plan { ranks: vec![2], args: Vec::new(), expect: 0, says: Vec::new() };
    for line in source.lines() {
        let Some((key, value)) = line.strip_prefix("// ").and_then(|l| l.split_once(": ")) else {
            continue;
        };
        let value = value.trim();
        let bad = |_| format!("'{line}': not a number");
        match key {
            "ranks" => {
                plan.ranks = value
                    .split_whitespace()
                    .map(str::parse)
                    .collect::<Result<_, _>>()
                    .map_err(bad)?
            }
            "args" => plan.args = value.split_whitespace().map(str::to_owned).collect(),
            "expect" => plan.expect = value.parse().map_err(bad)?,
            "says" => plan.says.push(value.to_owned()),
            _ => {}
        }
    }
    Ok(plan)
}

pub fn run(tally: &mut Tally) -> Result<(), String> {
    let prefix = crate::demo::install()?;
    let out = root().join("target/test-programs");
    fs::create_dir_all(&out).map_err(|e| format!("{}: {e}", out.display()))?;
    let mut sources = list(&root().join("tests/c"))?;
    sources.sort();
    if sources.is_empty() {
        return Err("no program in tests/c".to_owned());
    }
    for source in sources {
        let name = source.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let program = out.join(&name);
        let text = fs::read_to_string(&source).map_err(|e| format!("{}: {e}", source.display()))?;
        let plan = plan(&text)?;
        quiet(
            Command::new(prefix.join("bin/mpicc"))
                .args(["-O1", "-g", "-Wall", "-Werror"])
                .arg(&source)
                .arg("-o")
                .arg(&program)
                .args(["-lm", "-lpthread"]),
        )?;
        for &ranks in &plan.ranks {
            one(&prefix, &program, ranks, &plan)?;
            println!("ok   {name} on {ranks} ranks");
            tally.passed += 1;
        }
    }
    examples(&prefix, &out, tally)
}

fn list(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let paths = entries.flatten().map(|e| e.path());
    Ok(paths.filter(|p| p.extension().is_some_and(|e| e == "c")).collect())
}

fn one(prefix: &Path, program: &Path, ranks: usize, plan: &Plan) -> Result<(), String> {
    let output = Command::new(prefix.join("bin/mpiexec"))
        .args(["--timeout", "120", "-n", &ranks.to_string()])
        .arg(program)
        .args(&plan.args)
        .output()
        .map_err(|e| format!("mpiexec: {e}"))?;
    let all = format!(
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    let who = format!("{} on {ranks} ranks", program.display());
    if output.status.code() != Some(plan.expect) {
        return Err(format!("{who}: {}, expected code {}\n{all}", output.status, plan.expect));
    }
    match plan.says.iter().find(|s| !all.contains(s.as_str())) {
        Some(text) => Err(format!("{who} does not say '{text}':\n{all}")),
        None => Ok(()),
    }
}

/// The examples check their own answers.
fn examples(prefix: &Path, out: &Path, tally: &mut Tally) -> Result<(), String> {
    let folder = root().join("examples");
    let matrix = folder.join("poisson32.mtx").display().to_string();
    for (name, args) in [("heat", vec![]), ("cg", vec!["--matrix", matrix.as_str()])] {
        let program = out.join(name);
        step(
            Command::new(prefix.join("bin/mpicc"))
                .args(["-O2", "-Wall", "-Werror"])
                .arg(folder.join(name).with_extension("c"))
                .arg("-o")
                .arg(&program)
                .arg("-lm"),
        )?;
        for ranks in [1, 2, 4, 5] {
            let args = args.iter().map(|a| (*a).to_owned()).collect();
            let plan = Plan { ranks: vec![], args, expect: 0, says: vec![] };
            one(prefix, &program, ranks, &plan)?;
            println!("ok   examples/{name} on {ranks} ranks");
            tally.passed += 1;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_understood() {
        let plan = plan("// ranks: 1 4\n// args: -x 3\n// expect: 7\n// says: hello there\nint x;")
            .unwrap();
        assert_eq!((plan.ranks, plan.args), (vec![1, 4], vec!["-x".to_owned(), "3".to_owned()]));
        assert_eq!((plan.expect, plan.says), (7, vec!["hello there".to_owned()]));
        assert!(super::plan("// ranks: many\n").is_err());
    }
}
