//! Tests of ranks on hosts that only Ethernet connects. First, the tests of the fabric run, over the built-in TCP and through
//! libfabric. Then programs run on hosts made of network namespaces (`cargo xtask net`), with broken cables, dead hosts, firewalls
//! and strangers.
//!
//! This part builds the programs and counts the tests. Between the hosts, the same program runs as `net-tests`.

mod counts;
mod first;
mod hosts;
pub mod inside;
mod privileged;
mod rails;
mod silence;
mod trouble;

use super::c_programs::{self, compile};
use super::cluster::parts::{self, TestParts};
use super::programs::HarnessOptions;
use super::python::{self, Mpi4py};
use super::tally::{OFI, Tally};
use super::{programs, tools};
use crate::{net, root};
use inside::{KILLED, NetTestsArgs, PROGRAMS};
use std::ffi::OsString;
use std::process::Command;

/// Maximum number of seconds of all programs between hosts together.
const TIMEOUT: &str = "1500";

/// Runs all tests between the hosts, and fails if any of them failed.
pub fn within(inside: &NetTestsArgs) -> Result<(), String> {
    let mut parts = TestParts::new(&inside.only);
    if inside.long {
        hosts::long(inside, &mut parts)?;
        return parts.end();
    }
    if inside.ipv6 {
        hosts::over_ipv6(inside, &mut parts)?;
        rails::over_ipv6(inside, &mut parts)?;
        first::over_ipv6(inside, &mut parts)?;
        return parts.end();
    }
    hosts::run(inside, &mut parts)?;
    counts::run(inside, &mut parts)?;
    rails::run(inside, &mut parts)?;
    silence::run(inside, &mut parts)?;
    first::run(inside, &mut parts)?;
    privileged::run(inside, &mut parts)?;
    trouble::run(inside, &mut parts)?;
    parts.end()
}

/// Runs the fabric's own tests: of the fabric alone, and of the fabric below shared memory.
fn fabric(tally: &mut Tally) -> Result<(), String> {
    let wanted = |p: &programs::TestProgram| {
        p.package == OFI || (p.package == "weft-fabric-join" && p.name == "ofi")
    };
    // Each test that needs libfabric reports if libfabric is missing.
    let environment = if tools::have_libfabric() { MUST_HAVE_LIBFABRIC } else { &[] };
    programs::run_with(wanted, &HarnessOptions { environment, arguments: &[] }, tally)
}

/// Environment in which a test that lacks libfabric fails.
const MUST_HAVE_LIBFABRIC: &[(&str, &str)] = &[("WEFT_TEST_OFI", "1")];

/// Runs the fabric's tests that fail now and then by faults of libfabric's providers.
fn unreliable_providers(tally: &mut Tally) -> Result<(), String> {
    let wanted = |p: &programs::TestProgram| p.package == OFI && p.name == "all";
    let options = HarnessOptions { environment: MUST_HAVE_LIBFABRIC, arguments: &["--ignored"] };
    programs::run_with(wanted, &options, tally)
}

pub fn run(tally: &mut Tally) -> Result<(), String> {
    if !tools::have_libfabric() {
        tally.not_run.push(format!("tests of libfabric: {}", tools::NO_LIBFABRIC));
    }
    fabric(tally)?;
    let words = words()?;
    between_hosts(&["--hosts", "4"], &words, tally)?;
    between_hosts(&["--hosts", "2", "--ipv6"], &with(&words, "--ipv6"), tally)
}

/// Runs the tests that take too long for the usual tests, or that fail by faults of others: mpi4py's tests on four hosts, and
/// libfabric's ofi_rxd in disorder.
pub fn soak(tally: &mut Tally) -> Result<(), String> {
    between_hosts(&["--hosts", "4"], &with(&words()?, "--long"), tally)?;
    unreliable_providers(tally)
}

fn with(words: &[OsString], more: &str) -> Vec<OsString> {
    [words, &[more.into()]].concat()
}

/// Builds the programs that run between the hosts. Returns the arguments that give the paths of these programs.
fn words() -> Result<Vec<OsString>, String> {
    let prefix = crate::demo::install()?;
    let programs = c_programs::folder()?;
    for name in PROGRAMS.iter().map(|(name, _)| *name).chain([
        KILLED,
        first::PROGRAM,
        counts::MANY,
        counts::WOKEN,
    ]) {
        let source = root().join("tests/c").join(name).with_extension("c");
        compile(&prefix, &source, &programs.join(name))?;
    }
    let random = crate::install::test_programs()?.join("weft-random");
    let Mpi4py { python, sdist } = python::mpi4py(&prefix)?;
    let names = ["--prefix", "--programs", "--random", "--python", "--sdist"];
    let paths = [prefix, programs, random, python, sdist];
    let pairs = names.into_iter().zip(paths);
    Ok(pairs.flat_map(|(name, path)| [name.into(), path.into_os_string()]).collect())
}

/// Runs the tests between hosts, with the arguments `words`. `hosts` are the options of `cargo xtask net`.
fn between_hosts(hosts: &[&str], words: &[OsString], tally: &mut Tally) -> Result<(), String> {
    let xtask = std::env::current_exe().map_err(|e| format!("this program's path: {e}"))?;
    let mut command = Command::new(&xtask);
    command.arg("net").args(hosts).args(["--timeout", TIMEOUT, "--"]);
    command.arg(&xtask).arg("net-tests").args(words);
    match tools::captured_code(&mut command)? {
        (0, output) => tally.passed += parts::count(&output)?,
        (code, _) if code == i32::from(net::NOT_RUN) => {
            let reason = "hosts cannot be made here; the line `NOT RUN` above says why";
            tally.not_run.push(format!("programs between hosts: {reason}"));
        }
        (code, output) => {
            let failures = tools::failures(&output);
            return Err(format!("the tests between hosts ended with {code}{failures}"));
        }
    }
    Ok(())
}
