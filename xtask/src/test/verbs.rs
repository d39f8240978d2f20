//! Tests that need an RDMA adapter, run in the virtual machine that has soft-RoCE.

pub(crate) mod kini;

use super::c_programs::{self, compile};
use super::cluster::parts;
use super::tally::{OFI, Tally, VERBS};
use super::{programs, tools};
use crate::root;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Maximum time of all tests in the machine, in seconds.
const TIMEOUT: &str = "900";

/// Builds only the conformance suite of verbs and returns its path.
pub(super) fn conformance() -> Result<PathBuf, String> {
    let is_it = |p: &programs::TestProgram| p.package == VERBS[0] && p.name == "conformance";
    let found = programs::all()?.into_iter().find(is_it);
    found.map(|program| program.path).ok_or("verbs have no conformance suite".to_owned())
}

pub fn run(tally: &mut Tally) -> Result<(), String> {
    // Tests run one after another, because there are only two processors and latencies are long.
    let line = |p: &programs::TestProgram| format!("{} --test-threads=1", p.path.display());
    // The crate with the tests of verbs also has tests of another network, which are left out here.
    let wanted =
        |p: &&programs::TestProgram| VERBS.contains(&p.package.as_str()) && p.name != "ofi";
    let all = programs::all()?;
    let runs: Vec<String> = all.iter().filter(wanted).map(line).collect();
    if runs.is_empty() {
        return Err("verbs have no test programs".to_owned());
    }
    let xtask = std::env::current_exe().map_err(|e| format!("this program's path: {e}"))?;
    let kini = kini_words(&xtask)?;
    let libfabric = libfabric_words(&all, tally)?;
    let script =
        format!("set -e; {kini}; export WEFT_TEST_VERBS=1; {}{libfabric}", runs.join("; "));
    let mut command = Command::new(xtask);
    command.args(["vm", "--timeout", TIMEOUT, "--", "sh", "-c", &script]);
    match tools::captured_code(&mut command)? {
        (0, output) => {
            tally.passed += tools::count_cargo_tests(&output)? + parts::count(&output)?;
            Ok(())
        }
        (code, _) if code == i32::from(weft_vm::NOT_RUN) => {
            let reason = "the virtual machine cannot run here; the line `NOT RUN` above says why";
            tally.not_run.push(format!("tests of verbs: {reason}"));
            Ok(())
        }
        (code, output) => {
            let failures = tools::failures(&output);
            Err(format!("the tests of verbs ended with {code} (target/vm/last.log){failures}"))
        }
    }
}

/// Returns the shell words that run libfabric's tests over verbs after all other tests. Returns an empty text if there is no
/// libfabric.
fn libfabric_words(all: &[programs::TestProgram], tally: &mut Tally) -> Result<String, String> {
    if !tools::have_libfabric() {
        tally.not_run.push(format!("libfabric over verbs: {}", tools::NO_LIBFABRIC));
        return Ok(String::new());
    }
    let is_it = |p: &&programs::TestProgram| p.package == OFI && p.name == "all";
    let Some(program) = all.iter().find(is_it) else {
        return Err("libfabric lacks its test program".to_owned());
    };
    // libfabric sizes its completion queues for this number of peers. With the default of 256 peers, they would be longer than
    // soft-RoCE allows.
    let settings = "FI_UNIVERSE_SIZE=16 WEFT_TEST_OFI_VERBS=1";
    Ok(format!("; {settings} {} verbs_ --test-threads=1", program.path.display()))
}

/// Compiles the programs of the tests of collectives. Returns the shell command that runs these tests.
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
