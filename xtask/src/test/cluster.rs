//! MPI programs over verbs, in virtual machines. In one machine, ranks run on nodes that `WEFT_NODES` simulates, with and without
//! packet loss. On two machines, one of the machines dies.
//!
//! This module runs on the host, where it builds the programs and counts the tests. Inside the machine, the same program runs as
//! `vm-cluster`.

pub mod inside;
pub(super) mod job;
mod one;
pub(super) mod parts;
mod two;

use super::c_programs::{self, compile};
use super::python::{self, Mpi4py};
use super::tally::Tally;
use super::{tools, verbs};
use crate::root;
use inside::{Machines, VmClusterArgs};
use std::process::Command;

/// Programs of tests/c that run over verbs.
const PROGRAMS: &[&str] = &[
    "hello",
    "ring",
    "halo",
    "collectives",
    "semantics",
    "out_of_order",
    "flood",
    "partitioned",
    "windows",
    "windows_asleep",
    "counters",
    "helper",
    "overlap_stress",
    "split_type",
    "interrupted",
    "threads",
    "tools_fabric",
    "survivors",
    "connect",
    "connect_threads",
    "spawn",
    "spawn_killed",
];

/// Seconds after which a virtual machine counts as stuck, even on a busy host.
const TIMEOUT: &str = "5000";

/// Runs all tests inside the virtual machine, and fails if any of them failed.
pub fn within(inside: &VmClusterArgs) -> Result<(), String> {
    match inside.machines {
        Machines::One => one::run(inside),
        Machines::Two => two::run(inside),
        Machines::Long => one::long(inside),
    }
}

pub fn run(tally: &mut Tally) -> Result<(), String> {
    machines(tally, &[("one", &[]), ("two", &["--two", "--only", "0"])])
}

/// Runs the tests that take too long for CI.
pub fn soak(tally: &mut Tally) -> Result<(), String> {
    machines(tally, &[("long", &[])])
}

/// Runs the tests in virtual machines. Each element of `machines` has a name of [`Machines`] and options of the virtual machine.
fn machines(tally: &mut Tally, machines: &[(&str, &[&str])]) -> Result<(), String> {
    let prefix = crate::demo::install()?;
    let programs = c_programs::folder()?;
    for name in PROGRAMS {
        let source = root().join("tests/c").join(name).with_extension("c");
        compile(&prefix, &source, &programs.join(name))?;
    }
    compile(&prefix, &root().join("bench/latency.c"), &programs.join("latency"))?;
    let Mpi4py { python, sdist } = python::mpi4py(&prefix)?;
    let conformance = verbs::conformance()?;
    for &(machines, options) in machines {
        let xtask = std::env::current_exe().map_err(|e| format!("this program's path: {e}"))?;
        let mut command = Command::new(&xtask);
        command.args(["vm", "--timeout", TIMEOUT]).args(options).arg("--").arg(&xtask);
        command.args(["vm-cluster", machines]);
        let paths = [&prefix, &programs, &python, &sdist, &conformance];
        let names = ["--prefix", "--programs", "--python", "--sdist", "--conformance"];
        for (name, path) in names.iter().zip(paths) {
            command.arg(name).arg(path);
        }
        match tools::captured_code(&mut command)? {
            (0, output) => tally.passed += parts::count(&output)?,
            (code, _) if code == i32::from(weft_vm::NOT_RUN) => {
                let reason =
                    "the virtual machine cannot run here; the line `NOT RUN` above says why";
                tally.not_run.push(format!("programs over verbs: {reason}"));
                return Ok(());
            }
            (code, output) => {
                let failures = tools::failures(&output);
                return Err(format!(
                    "programs over verbs, in machines: {machines}: code {code} (target/vm/last.log){failures}"
                ));
            }
        }
    }
    Ok(())
}
