//! Test programs of the crates. One command builds all of them, because cargo builds dependencies with the features that the
//! selected crates need. A separate build for each stage would build most dependencies again. For the same reason, the oracles are
//! selected by name from the whole workspace.

use super::tally::{Tally, cargo};
use super::tools;
use serde::Deserialize;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// A test program.
pub struct TestProgram {
    /// The crate to which the program belongs.
    pub package: String,
    /// Name of the program in the crate; for unit tests, the name of the crate.
    pub name: String,
    pub path: PathBuf,
    /// Folder in which cargo runs the program.
    folder: PathBuf,
}

/// Cargo's message about a program that it has built.
#[derive(Deserialize)]
struct Artifact {
    manifest_path: PathBuf,
    target: Target,
    profile: Profile,
    executable: Option<PathBuf>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

/// Name of the test programs of the quick set, in all crates. These programs compare the library's results with an oracle.
const ORACLE: &str = "oracle";

impl TestProgram {
    /// Returns true if the program belongs to the quick set.
    pub fn is_oracle(&self) -> bool {
        self.name == ORACLE
    }
}

/// Builds and returns all test programs of the workspace, except those of this program. Also builds the library, which its own
/// tests use.
pub fn all() -> Result<Vec<TestProgram>, String> {
    built(&[
        "build",
        "--workspace",
        "--exclude",
        "xtask",
        "--lib",
        "--bins",
        "--examples",
        "--tests",
    ])
}

/// Builds and returns the test programs of the quick set.
pub fn oracles() -> Result<Vec<TestProgram>, String> {
    built(&["build", "--workspace", "--exclude", "xtask", "--test", ORACLE])
}

/// Builds and returns the tests of this program, with the profile whose dependencies are already built.
fn chores() -> Result<Vec<TestProgram>, String> {
    built(&["test", "--no-run", "--profile", "xtask", "--package", "xtask", "--bin", "xtask"])
}

/// Builds the targets of a cargo command. Returns the test programs among them.
fn built(words: &[&str]) -> Result<Vec<TestProgram>, String> {
    let mut command = cargo();
    command.args(words).arg("--message-format=json-render-diagnostics");
    println!("-- {}", tools::text(&command));
    let output = command.stderr(Stdio::inherit()).output().map_err(|e| format!("cargo: {e}"))?;
    if !output.status.success() {
        return Err(format!("building the tests: {}", output.status));
    }
    let found = from_messages(&String::from_utf8_lossy(&output.stdout));
    if found.is_empty() { Err("there are no test programs".to_owned()) } else { Ok(found) }
}

fn from_messages(messages: &str) -> Vec<TestProgram> {
    let program = |line: &str| {
        // Messages of other kinds have other fields, and are left out.
        let artifact: Artifact = serde_json::from_str(line).ok()?;
        let path = artifact.executable.filter(|_| artifact.profile.test)?;
        let folder = artifact.manifest_path.parent()?.to_owned();
        let text = std::fs::read_to_string(&artifact.manifest_path).ok()?;
        let package = text.lines().find_map(|line| line.strip_prefix("name = "))?;
        let package = package.trim_matches('"').to_owned();
        Some(TestProgram { package, name: artifact.target.name, path, folder })
    };
    messages.lines().filter_map(program).collect()
}

/// Maximum number of seconds of the tests of one program.
const LONGEST: &str = "900";

/// Exit codes of timeout(1) for a program that took longer, and for a program that had to be killed.
const TIMED_OUT: i32 = 124;
const KILLED: i32 = 137;

/// Runs all programs for which `wanted` returns true, even if some of them fail, and counts their tests.
pub fn run(wanted: impl Fn(&TestProgram) -> bool, tally: &mut Tally) -> Result<(), String> {
    run_with(wanted, &HarnessOptions::default(), tally)
}

/// Environment variables and arguments of test programs.
#[derive(Default)]
pub struct HarnessOptions<'a> {
    pub environment: &'a [(&'a str, &'a str)],
    /// Arguments of Rust's test harness.
    pub arguments: &'a [&'a str],
}

/// Runs the test programs of the quick set.
pub fn run_oracles(tally: &mut Tally) -> Result<(), String> {
    run_these(&oracles()?.iter().collect::<Vec<_>>(), &HarnessOptions::default(), tally)
}

/// Runs the tests of this program.
pub fn run_chores(tally: &mut Tally) -> Result<(), String> {
    run_these(&chores()?.iter().collect::<Vec<_>>(), &HarnessOptions::default(), tally)
}

/// Runs programs as [`run`] does, with additional environment variables and arguments.
pub fn run_with(
    wanted: impl Fn(&TestProgram) -> bool,
    options: &HarnessOptions<'_>,
    tally: &mut Tally,
) -> Result<(), String> {
    let all = all()?;
    run_these(&all.iter().filter(|program| wanted(program)).collect::<Vec<_>>(), options, tally)
}

fn run_these(
    programs: &[&TestProgram],
    options: &HarnessOptions<'_>,
    tally: &mut Tally,
) -> Result<(), String> {
    let (mut passed, mut failed) = (0, Vec::new());
    for program in programs {
        println!("\n-- {}: {}", program.package, program.name);
        // A program that hangs counts as a failure, and the remaining programs still run.
        let mut command = Command::new("timeout");
        command.args(["--foreground", "--kill-after=10", LONGEST]).arg(&program.path);
        command.args(options.arguments).envs(options.environment.iter().copied());
        if let Some(built) = program.path.ancestors().nth(2) {
            command.env("TEST_LIBRARY_DIR", built);
        }
        match tools::captured_code(command.current_dir(&program.folder))? {
            // Some test files contain no tests for this machine.
            (0, output) => passed += tools::count_cargo_tests(&output).unwrap_or(0),
            (TIMED_OUT | KILLED, _) => {
                failed
                    .push(format!("{}: {} (no end in {LONGEST} s)", program.package, program.name));
            }
            (code, output) => {
                let failures = tools::failures(&output);
                failed.push(format!("{}: {} ({code}){failures}", program.package, program.name));
            }
        }
    }
    tally.passed += passed;
    match (passed, failed.as_slice()) {
        (0, []) => Err("no test ran".to_owned()),
        (_, []) => Ok(()),
        (_, failed) => Err(format!("tests failed in {}", failed.join(", "))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Crates whose oracles are in the quick set.
    const CRATES: [&str; 6] = ["collective", "datatype", "io", "p2p", "process", "rma"];

    #[test]
    fn crates_of_the_quick_set_have_oracles() {
        for name in CRATES {
            let tests = crate::root().join("crates").join(name).join("tests");
            let main = tests.join(ORACLE).join("main.rs");
            assert!(main.is_file(), "{}: no such program", main.display());
        }
    }

    #[test]
    fn programs_are_found_among_messages() {
        let manifest = crate::root().join("xtask/Cargo.toml");
        let line = |test: bool, executable: &str| {
            format!(
                r#"{{"reason":"compiler-artifact","manifest_path":"{}","target":{{"name":"x","kind":["test"]}},
                "profile":{{"test":{test},"opt_level":"1"}},"features":[],"executable":{executable}}}"#,
                manifest.display()
            )
            .replace('\n', " ")
        };
        let messages = [
            line(true, r#""/target/x-1""#),
            line(true, "null"),
            line(false, r#""/target/weft""#),
            r#"{"reason":"build-finished","success":true}"#.to_owned(),
        ];
        let found = from_messages(&messages.join("\n"));
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].package.as_str(), found[0].name.as_str()), ("xtask", "x"));
        assert_eq!(found[0].path, PathBuf::from("/target/x-1"));
    }
}
