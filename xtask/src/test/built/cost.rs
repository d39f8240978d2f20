//! Instructions that the libraries of older ABIs add to a call, counted by callgrind (tests/legacy/cost.c). A clock would also measure
//! other work of the machine.

use super::super::c_programs::folder;
use super::super::python::merged;
use super::super::tally::Tally;
use super::super::tools::quiet;
use crate::root;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Number of calls of a run. The instructions of a run without calls are subtracted.
const CALLS: u64 = 1000;

/// For each kind of call: the maximum number of instructions that may be added. An
/// instruction takes less than 0.1 ns on processors of today, so 100 of them take less than 10 ns.
const BOUNDS: [(&str, u64); 5] = [
    ("rank", 50),
    ("nobody", 100),
    ("sendrecv", 150),
    ("allreduce", 70),
    // Three calls.
    ("window", 420),
];

/// Counts with a program that each `mpicc` has built. `peers` has the name and the `mpicc` of each library.
pub(super) fn run(
    prefix: &Path,
    peers: &[(&str, PathBuf)],
    tally: &mut Tally,
) -> Result<(), String> {
    if Command::new("valgrind").arg("--version").output().is_err() {
        tally.not_run.push("costs of older ABIs: there is no valgrind".to_owned());
        return Ok(());
    }
    let native = Counted::new(prefix, "native", &prefix.join("bin/mpicc"))?;
    let kinds = BOUNDS.iter().map(|(kind, _)| native.of(kind));
    let natives = kinds.collect::<Result<Vec<_>, _>>()?;
    for (name, mpicc) in peers {
        let legacy = Counted::new(prefix, name, mpicc)?;
        for ((kind, most), native) in BOUNDS.into_iter().zip(&natives) {
            let added = legacy.of(kind)?.saturating_sub(*native);
            let text = format!("{kind} by a program built with {name}: {added} instructions more");
            if added > most {
                return Err(format!("{text}, at most {most} are allowed"));
            }
            println!("ok   {text}, of at most {most}");
            tally.passed += 1;
        }
    }
    Ok(())
}

/// The program, built with one library.
struct Counted<'a> {
    prefix: &'a Path,
    program: PathBuf,
    /// Number of instructions of a run without calls.
    empty: u64,
}

impl Counted<'_> {
    fn new<'a>(prefix: &'a Path, name: &str, mpicc: &Path) -> Result<Counted<'a>, String> {
        let program = folder()?.join(format!("cost-{name}"));
        let mut command = Command::new(mpicc);
        command.args(["-O2", "-w"]).arg(root().join("tests/legacy/cost.c"));
        quiet(command.arg("-o").arg(&program))?;
        let mut counted = Counted { prefix, program, empty: 0 };
        counted.empty = counted.run(BOUNDS[0].0, 0)?;
        Ok(counted)
    }

    /// Returns the number of instructions of one call.
    fn of(&self, kind: &str) -> Result<u64, String> {
        Ok(self.run(kind, CALLS)?.saturating_sub(self.empty) / CALLS)
    }

    fn run(&self, kind: &str, calls: u64) -> Result<u64, String> {
        let libraries = [self.prefix.join("lib/weft/legacy"), self.prefix.join("lib")];
        let libraries = std::env::join_paths(libraries).map_err(|e| e.to_string())?;
        let mut command = Command::new("valgrind");
        command.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]);
        command.arg(&self.program).arg(kind).arg(calls.to_string());
        command.env("LD_LIBRARY_PATH", libraries);
        let said = quiet(&mut merged(command))?;
        let count = said.lines().find_map(|line| line.split_once("Collected : "));
        let count = count.and_then(|(_, count)| count.trim().parse().ok());
        count.ok_or_else(|| format!("callgrind has no count:\n{said}"))
    }
}
