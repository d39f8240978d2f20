//! Tests that need an RDMA adapter, run in the virtual machine that has soft-RoCE.

pub(crate) mod kini;

use super::c_programs::{self, compile};
use super::cluster::parts;
use super::{Tally, cargo, tools};
use crate::{root, vm};
use std::path::{Path, PathBuf};
use std::process::Command;

/// How long all of it may take in the machine, in seconds.
const TIMEOUT: &str = "600";

/// The test programs of these packages, or of what else `cargo test` is told, built.
fn programs(what: &[&str]) -> Result<Vec<PathBuf>, String> {
    let mut command = cargo();
    command.arg("test").args(what).args(["--no-run", "--message-format=json"]);
    let output = command.output().map_err(|e| format!("cargo: {e}"))?;
    if !output.status.success() {
        return Err(format!("building the tests of verbs: {}", output.status));
    }
    let text = String::from_utf8_lossy(&output.stdout);
    let executable = |line: &str| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        let test = message["profile"]["test"].as_bool()?;
        test.then(|| message["executable"].as_str().map(PathBuf::from)).flatten()
    };
    let found: Vec<PathBuf> = text.lines().filter_map(executable).collect();
    if found.is_empty() { Err("verbs have no test programs".to_owned()) } else { Ok(found) }
}

/// The conformance suite of verbs alone.
pub(super) fn conformance() -> Result<PathBuf, String> {
    let found = programs(&["-p", "weft-fabric-verbs", "--test", "conformance"])?;
    Ok(found[0].clone())
}

pub fn run(tally: &mut Tally) -> Result<(), String> {
    let packages: Vec<&str> = super::VERBS.iter().flat_map(|name| ["-p", name]).collect();
    let programs = programs(&packages)?;
    // One after the other: two processors are few, and latencies there are long.
    let runs: Vec<String> =
        programs.iter().map(|p| format!("{} --test-threads=1", p.display())).collect();
    let xtask = std::env::current_exe().map_err(|e| format!("this program's path: {e}"))?;
    let kini = kini_words(&xtask)?;
    let script = format!("set -e; {kini}; export WEFT_TEST_VERBS=1; {}", runs.join("; "));
    let mut command = Command::new(xtask);
    command.args(["vm", "--timeout", TIMEOUT, "--", "sh", "-c", &script]);
    match tools::captured_code(&mut command)? {
        (0, output) => {
            tally.passed += tools::count_cargo_tests(&output)? + parts::count(&output)?;
            Ok(())
        }
        (code, _) if code == i32::from(vm::NOT_RUN) => {
            let reason = "the virtual machine cannot run here; the line `NOT RUN` above says why";
            tally.not_run.push(format!("tests of verbs: {reason}"));
            Ok(())
        }
        (code, _) => Err(format!("the tests of verbs ended with {code} (target/vm/last.log)")),
    }
}

/// The words of the tests of collectives, for a shell; their programs are compiled.
fn kini_words(xtask: &Path) -> Result<String, String> {
    let prefix = crate::demo::install()?;
    let programs = c_programs::folder()?;
    for name in ["kini", "kini_root"] {
        let source = root().join("tests/c").join(name).with_extension("c");
        compile(&prefix, &source, &programs.join(name))?;
    }
    let [xtask, prefix, programs] = [xtask, &prefix, &programs].map(|path| path.display());
    Ok(format!("{xtask} vm-kini --prefix {prefix} --programs {programs}"))
}
