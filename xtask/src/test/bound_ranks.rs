//! Collective operations of ranks that are bound to the caches and NUMA domains of a large machine, which a directory describes
//! (`WEFT_SYSFS`). The ranks take turns on the processors of this machine.

use super::c_programs::folder;
use super::tally::Tally;
use super::tools::text;
use std::path::Path;
use std::process::Command;
use weft_topology::SYSFS_ROOT;
use weft_topology::fake::FakeMachine;

/// A job on a node with two EPYC 9654 in 8 NUMA domains: its number of ranks, the groups that the library must find, and the
/// algorithms that are requested by name. Caches have 8 cores.
struct BoundJob {
    ranks: &'static str,
    groups: &'static str,
    algorithms: &'static [(&'static str, &'static str)],
}

/// Operations that LEVELS serves, by their settings.
const LEVELS: &[(&str, &str)] = &[
    ("WEFT_BARRIER", "LEVELS"),
    ("WEFT_BCAST", "LEVELS"),
    ("WEFT_REDUCE", "LEVELS"),
    ("WEFT_ALLREDUCE", "LEVELS"),
    ("WEFT_ALLGATHER", "LEVELS"),
    ("WEFT_REDUCE_SCATTER", "LEVELS"),
    ("WEFT_SCAN", "LEVELS"),
];

const JOBS: [BoundJob; 4] = [
    BoundJob { ranks: "12", groups: "bound to 2 caches", algorithms: &[] },
    BoundJob { ranks: "12", groups: "bound to 2 caches", algorithms: LEVELS },
    BoundJob {
        ranks: "16",
        groups: "bound to 2 caches",
        algorithms: &[("WEFT_ALLREDUCE", "LEVEL-SLICES"), ("WEFT_BARRIER", "SHM-LINES")],
    },
    BoundJob { ranks: "26", groups: "bound to 4 caches, 2 NUMA domains", algorithms: LEVELS },
];

pub fn run(prefix: &Path, tally: &mut Tally) -> Result<(), String> {
    let root = tempfile::tempdir_in(folder()?).map_err(|e| format!("a folder: {e}"))?;
    FakeMachine::epyc_genoa(4).write(root.path()).map_err(|e| format!("a machine: {e}"))?;
    for BoundJob { ranks, groups, algorithms } in JOBS {
        let mut job = Command::new(prefix.join("bin/mpiexec"));
        job.args(["--timeout", "120", "--bind-to", "core", "-n", ranks]);
        job.arg(folder()?.join("collectives")).arg("1");
        job.env(SYSFS_ROOT, root.path()).env("WEFT_VERBOSE", "1").envs(algorithms.iter().copied());
        let output = job.output().map_err(|e| format!("cannot start '{}': {e}", text(&job)))?;
        let said = [output.stdout, output.stderr]
            .map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let said = said.concat();
        if !output.status.success() || !said.contains("correct") || !said.contains(groups) {
            return Err(format!("'{}' ({groups}): {}\n{said}", text(&job), output.status));
        }
        let asked: Vec<_> = algorithms.iter().map(|(_, name)| *name).collect();
        println!("ok   {ranks} ranks {groups} {}", asked.join(" "));
        tally.passed += 1;
    }
    Ok(())
}
