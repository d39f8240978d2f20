//! CP2K, as Debian built it for Open MPI in Fortran, with ScaLAPACK and ELPA: the total energy of a molecule of water.

use super::program::{PackagedProgram, PackagedRun, ProgramResult};

/// A molecule of water in a periodic box. The package has the basis sets and the potentials.
const WATER: &str = "&GLOBAL
  PROJECT water
  RUN_TYPE ENERGY
  PRINT_LEVEL LOW
&END GLOBAL
&FORCE_EVAL
  METHOD Quickstep
  &DFT
    BASIS_SET_FILE_NAME GTH_BASIS_SETS
    POTENTIAL_FILE_NAME GTH_POTENTIALS
    &MGRID
      CUTOFF 120
    &END MGRID
    &SCF
      EPS_SCF 1.0E-7
      SCF_GUESS ATOMIC
    &END SCF
    &XC
      &XC_FUNCTIONAL PADE
      &END XC_FUNCTIONAL
    &END XC
  &END DFT
  &SUBSYS
    &CELL
      ABC 5.0 5.0 5.0
    &END CELL
    &COORD
      O 0.00 0.00 0.00
      H 0.76 0.59 0.00
      H -0.76 0.59 0.00
    &END COORD
    &KIND H
      BASIS_SET DZVP-GTH
      POTENTIAL GTH-PADE-q1
    &END KIND
    &KIND O
      BASIS_SET DZVP-GTH
      POTENTIAL GTH-PADE-q6
    &END KIND
  &END SUBSYS
&END FORCE_EVAL
";

pub(super) const SOAK: &[PackagedProgram] = &[PackagedProgram {
    name: "CP2K, water",
    command: &["{soak}/usr/bin/cp2k.psmp", "-i", "water.inp"],
    settings: &[("CP2K_DATA_DIR", "{soak}/usr/share/cp2k")],
    files: &[("water.inp", WATER)],
    outcome: energy,
    // In hartrees.
    tolerance: 1e-6,
    ..PackagedProgram::USUAL
}];

/// Returns the total energy, if the calculation has converged on all ranks together.
fn energy(run: &PackagedRun) -> Result<ProgramResult, String> {
    let last = |start: &str| {
        let line = run.output.lines().find(|line| line.trim_start().starts_with(start));
        line.and_then(|line| line.split_whitespace().last())
    };
    let ranks = last("GLOBAL| Total number of message passing processes");
    let number = last("ENERGY| Total FORCE_EVAL").and_then(|word| word.parse().ok());
    match number {
        Some(number)
            if run.output.contains("SCF run converged")
                && ranks == Some(run.ranks.to_string().as_str()) =>
        {
            Ok(ProgramResult { numbers: vec![number], ..ProgramResult::default() })
        }
        _ => Err(format!("CP2K has not converged on {} ranks:\n{}", run.ranks, run.output)),
    }
}
