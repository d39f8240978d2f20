//! GROMACS in double precision, as Debian built it for Open MPI in C++: water must have the same energies and pressures.

use super::program::{PackagedProgram, PackagedRun, ProgramResult};

/// The package's box of 216 molecules.
const TOPOLOGY: &str = "#include \"oplsaa.ff/forcefield.itp\"
#include \"oplsaa.ff/spce.itp\"
[ system ]
Water
[ molecules ]
SOL 216
";

/// Parameters of 100 steps. Forces over long distances need parallel Fourier transforms.
const STEPS: &str = "integrator = md
dt = 0.001
nsteps = 100
nstcalcenergy = 10
nstenergy = 10
nstlog = 10
rcoulomb = 0.7
rvdw = 0.7
coulombtype = PME
gen-vel = yes
gen-temp = 300
gen-seed = 7
";

/// Variables for the folders of GROMACS' data.
const FOLDERS: [(&str, &str); 2] =
    [("GMXDATA", "{soak}/usr/share/gromacs"), ("GMXLIB", "{soak}/usr/share/gromacs/top")];

pub(super) const SOAK: &[PackagedProgram] = &[PackagedProgram {
    name: "GROMACS, water",
    // Each number of ranks has a pair list of its own, which changes the last digits.
    theirs: &[1, 2, 4],
    before: &[
        "{soak}/usr/bin/gmx_mpi_d",
        "grompp",
        "-f",
        "water.mdp",
        "-p",
        "water.top",
        "-c",
        "{soak}/usr/share/gromacs/top/spc216.gro",
        "-o",
        "water.tpr",
    ],
    command: &[
        "{soak}/usr/bin/gmx_mpi_d",
        "mdrun",
        "-s",
        "water.tpr",
        "-deffnm",
        "water",
        "-ntomp",
        "1",
        "-pin",
        "off",
        "-notunepme",
        "-reprod",
    ],
    settings: &FOLDERS,
    files: &[("water.top", TOPOLOGY), ("water.mdp", STEPS)],
    outcome: energies,
    // The last of six digits of an energy is tenths of kJ/mol.
    tolerance: 0.11,
    ..PackagedProgram::USUAL
}];

/// Number of tables in the log: one every ten steps, and the averages.
const TABLES: usize = 12;

/// Numbers of a table: energies, the temperature and the pressure.
const COLUMNS: usize = 8;

/// Returns the numbers of all tables of energies in the log.
fn energies(run: &PackagedRun) -> Result<ProgramResult, String> {
    let log = String::from_utf8_lossy(&run.file("water.log")?).into_owned();
    let tables: Vec<_> = log.split("Energies (kJ/mol)\n").skip(1).collect();
    let lines = tables.iter().flat_map(|table| table.lines().take_while(|line| !line.is_empty()));
    // Lines of names and of numbers alternate. Names have words that are no numbers.
    let row = |line: &str| line.split_whitespace().map(str::parse).collect::<Result<Vec<f64>, _>>();
    let numbers: Vec<_> = lines.filter_map(|line| row(line).ok()).flatten().collect();
    let processes = format!("Using {} MPI process", run.ranks);
    if !log.contains(&processes) || tables.len() != TABLES || numbers.len() != TABLES * COLUMNS {
        return Err(format!("{} tables, {} numbers:\n{log}", tables.len(), numbers.len()));
    }
    Ok(ProgramResult { numbers, ..ProgramResult::default() })
}
