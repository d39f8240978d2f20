//! LAMMPS, as Debian built it for Open MPI: a melt on several numbers of ranks must print what it prints with Open MPI.

use super::debian;
use super::tally::Tally;
use super::tools::quiet;
use crate::root;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

/// A crystal of 4,000 atoms that melts.
const MELT: &str = "units lj
atom_style atomic
lattice fcc 0.8442
region box block 0 10 0 10 0 10
create_box 1 box
create_atoms 1 box
mass 1 1.0
velocity all create 3.0 87287 loop geom
pair_style lj/cut 2.5
pair_coeff 1 1 1.0 1.0 2.5
neighbor 0.3 bin
neigh_modify every 20 delay 0 check no
fix 1 all nve
thermo 25
run 100
";

/// Runs LAMMPS under both launchers. `open_mpi` is the folder of an environment with Open MPI from PyPI.
pub(super) fn run(prefix: &Path, open_mpi: &Path, tally: &mut Tally) -> Result<(), String> {
    let work = root().join("target/test-lammps");
    let unpacked = match debian::unpacked(&work, &["lammps"]) {
        Ok(unpacked) => unpacked,
        Err(reason) => {
            let last = reason.lines().last().unwrap_or_default();
            tally.not_run.push(format!("Debian's LAMMPS: no package: {last}"));
            return Ok(());
        }
    };
    let input = work.join("in.melt");
    fs::write(&input, MELT).map_err(|e| format!("{}: {e}", input.display()))?;
    let program = unpacked.join("usr/bin/lmp");
    let libraries = unpacked.join("usr/lib/x86_64-linux-gnu");
    for ranks in ["1", "2", "4"] {
        let mut ours = Command::new(prefix.join("bin/mpiexec"));
        ours.args(["--timeout", "100", "-n", ranks]).env("LD_LIBRARY_PATH", &libraries);
        let mut theirs = Command::new(open_mpi.join("bin/mpiexec"));
        theirs.args(["--allow-run-as-root", "--map-by", ":OVERSUBSCRIBE", "-n", ranks]);
        let folders = [open_mpi.join("lib"), libraries.clone()];
        let folders = std::env::join_paths(folders).map_err(|e| e.to_string())?;
        theirs.env("LD_LIBRARY_PATH", folders);
        let began = Instant::now();
        let [ours, theirs] = [ours, theirs].map(|mut command| {
            let arguments = ["-log", "none", "-in"];
            thermo(&quiet(command.arg(&program).args(arguments).arg(&input))?)
        });
        let (ours, theirs) = (ours?, theirs?);
        if ours != theirs {
            return Err(format!("LAMMPS on {ranks} ranks:\n{ours}\nwith Open MPI:\n{theirs}"));
        }
        let seconds = began.elapsed().as_secs_f64();
        println!("ok   LAMMPS on {ranks} ranks, as with Open MPI (both: {seconds:.1} s)");
        tally.passed += 1;
    }
    Ok(())
}

/// Returns the table of temperatures, energies and pressures.
fn thermo(output: &str) -> Result<String, String> {
    let rows = output.lines().skip_while(|line| !line.starts_with("Step"));
    let rows: Vec<_> = rows.take_while(|line| !line.starts_with("Loop time")).collect();
    match rows.len() {
        6 => Ok(rows.join("\n")),
        _ => Err(format!("LAMMPS prints no table of 5 rows:\n{output}")),
    }
}
