//! Quantum ESPRESSO, as Debian built it for Open MPI in Fortran: the total energy of silicon.

use super::program::{PackagedProgram, PackagedRun, ProgramResult};

/// Input of the program that makes a pseudopotential of silicon.
const ATOM: &str = " &input
   title='Si', zed=14.0, rel=0, config='[Ne] 3s2 3p2', iswitch=3, dft='LDA'
 /
 &inputp
   pseudotype=1, file_pseudopw='Si.upf', lloc=1, tm=.true.
 /
2
3S 1 0 2.00 0.00 2.2 2.2 0.0
3P 2 1 2.00 0.00 2.3 2.3 0.0
";

/// A crystal of silicon.
const CRYSTAL: &str = " &control
  calculation='scf', prefix='si', pseudo_dir='./', outdir='./out'
 /
 &system
  ibrav=2, celldm(1)=10.2, nat=2, ntyp=1, ecutwfc=12.0
 /
 &electrons
  conv_thr=1.0d-9
 /
ATOMIC_SPECIES
 Si 28.086 Si.upf
ATOMIC_POSITIONS alat
 Si 0.00 0.00 0.00
 Si 0.25 0.25 0.25
K_POINTS
 2
 0.25 0.25 0.25 1.0
 0.25 0.25 0.75 3.0
";

pub(super) const PROGRAMS: &[PackagedProgram] = &[PackagedProgram {
    name: "Quantum ESPRESSO, silicon",
    before: &["{debian}/usr/bin/ld1.x", "-in", "atom.in"],
    command: &["{debian}/usr/bin/pw.x", "-in", "si.in"],
    files: &[("atom.in", ATOM), ("si.in", CRYSTAL)],
    outcome: energy,
    // In rydbergs.
    tolerance: 1e-6,
    ..PackagedProgram::USUAL
}];

/// Returns the total energy, if the calculation has converged.
fn energy(run: &PackagedRun) -> Result<ProgramResult, String> {
    let line = run.output.lines().find_map(|line| line.strip_prefix("!    total energy"));
    let number = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok());
    match number {
        Some(number) if run.output.contains("convergence has been achieved") => {
            Ok(ProgramResult { numbers: vec![number], ..ProgramResult::default() })
        }
        _ => Err(format!("pw.x has not converged:\n{}", run.output)),
    }
}
