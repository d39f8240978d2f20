//! LAMMPS, as Debian built it for Open MPI: a melt must have the same temperatures, energies and pressures.

use super::program::{PackagedProgram, PackagedRun, ProgramResult};

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

pub(super) const PROGRAMS: &[PackagedProgram] = &[PackagedProgram {
    name: "LAMMPS, a melt",
    command: &["{debian}/usr/bin/lmp", "-log", "none", "-in", "in.melt"],
    files: &[("in.melt", MELT)],
    outcome: thermo,
    // The order of sums depends on the number of ranks, and eight digits are printed.
    tolerance: 2e-6,
    ..PackagedProgram::USUAL
}];

/// Returns the numbers of the table of temperatures, energies and pressures.
fn thermo(run: &PackagedRun) -> Result<ProgramResult, String> {
    let rows = run.output.lines().skip_while(|line| !line.starts_with("Step")).skip(1);
    let rows: Vec<_> = rows.take_while(|line| !line.starts_with("Loop time")).collect();
    let numbers = rows.iter().flat_map(|row| row.split_whitespace()).map(str::parse);
    match numbers.collect::<Result<Vec<f64>, _>>() {
        Ok(numbers) if rows.len() == 5 => Ok(ProgramResult { numbers, ..ProgramResult::default() }),
        _ => Err(format!("LAMMPS prints no table of 5 rows:\n{}", run.output)),
    }
}
