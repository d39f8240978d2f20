//! The stages of `cargo xtask test`, and the seconds that each may take on two processors.

use super::tally::{OFI, SIMULATOR, Tally, VERBS};
use super::{
    built, c_programs, checks, cluster, file_soak, fortran, job_start, launchers, limits, network,
    packages, peers, programs, python, sim_figures, sim_programs, verbs,
};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// A group of tests with a time budget of its own (CONTRIBUTING.md).
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum, Serialize, Deserialize)]
pub enum Stage {
    /// The library and its commands, installed in target/weft, and the test programs of the stage Oracle.
    Build,
    /// Collective operations, datatypes, messages, windows and files, all in one process, compared with oracles.
    Oracle,
    /// C programs under mpiexec: the programs in tests/c, the examples, random programs, bad arguments to all functions, and the
    /// start of jobs: settings, limits, places of the library.
    Programs,
    /// mpi4py's own tests on one and three ranks.
    Python,
    /// Format, lint, documentation, layers.
    Lint,
    /// All other unit and integration tests of the crates.
    Unit,
    /// The simulated cluster: its own tests, patterns, and the documents' figures.
    Simulator,
    /// RDMA: the fabric of verbs on a real kernel's soft-RoCE, in a virtual machine.
    Verbs,
    /// Models of the lock-free parts under Loom: every interleaving within bounds.
    Loom,
    /// Checks for undefined behaviour, in the parts that Miri can run.
    Miri,
    /// Programs under limits and tools: full file systems, killed ranks, valgrind, counted instructions; the book's commands.
    Limits,
    /// Fortran programs with all three interfaces, built by mpifort, and programs that were built with two older ABIs.
    Fortran,
    /// mpi4py on other numbers of ranks, with NumPy, and built by MPICH's mpicc; our answers compared with the answers of MPICH's
    /// library.
    Peers,
    /// Programs that were built with other MPI libraries, of PyPI and Debian, unchanged: they compute what they compute with those.
    Built,
    /// Parallel files of other projects' programs: the tests of HDF5 and PnetCDF, built from their sources by our mpicc.
    Files,
    /// Programs under other launchers (Hydra, PRRTE, Slurm), and under our launcher on several hosts.
    Launchers,
    /// The packages (tar archive, wheel, Debian package): used by build systems and shells, and in a bare Debian 12 installed, run on
    /// 4 ranks and removed. Linters on the recipes of packaging/.
    Packages,
    /// Programs over verbs: in one virtual machine, with and without packet loss, and on two machines, one of which dies.
    Cluster,
    /// Programs over Ethernet, by the built-in TCP and through libfabric: on hosts made of network namespaces, with broken cables
    /// and strangers.
    Network,
}

/// Stages of the quick set, which tests the library in a quarter of an hour.
pub const QUICK: [Stage; 4] = [Stage::Build, Stage::Oracle, Stage::Programs, Stage::Python];

/// All other stages. They repeat nothing that the quick set runs.
pub const REST: [Stage; 15] = [
    Stage::Lint,
    Stage::Unit,
    Stage::Simulator,
    Stage::Verbs,
    Stage::Loom,
    Stage::Miri,
    Stage::Limits,
    Stage::Fortran,
    Stage::Peers,
    Stage::Built,
    Stage::Files,
    Stage::Launchers,
    Stage::Packages,
    Stage::Cluster,
    Stage::Network,
];

impl Stage {
    /// Returns the maximum number of seconds of the stage on two processors.
    pub fn budget(self) -> u64 {
        match self {
            Stage::Build => 290,
            Stage::Oracle => 130,
            Stage::Programs => 190,
            Stage::Python => 150,
            Stage::Lint => 95,
            Stage::Unit => 300,
            Stage::Simulator => 95,
            Stage::Verbs => 245,
            Stage::Loom => 75,
            Stage::Miri => 190,
            Stage::Limits => 80,
            Stage::Fortran => 150,
            Stage::Peers => 200,
            Stage::Built => 230,
            Stage::Files => 75,
            Stage::Launchers => 35,
            Stage::Packages => 125,
            Stage::Cluster => 220,
            Stage::Network => 255,
        }
    }

    /// Returns true if the stage only computes. Such a stage uses no installation and no build of another stage, so it can run in the
    /// background.
    pub fn only_computes(self) -> bool {
        matches!(self, Stage::Lint | Stage::Loom | Stage::Miri)
    }

    /// Runs the stage, and counts its tests.
    pub fn run(self, tally: &mut Tally) -> Result<(), String> {
        match self {
            Stage::Build => checks::build(),
            Stage::Oracle => programs::run_oracles(tally),
            Stage::Programs => {
                c_programs::run(tally)?;
                sim_programs::run(tally)?;
                job_start::run(tally)
            }
            Stage::Python => python::run(tally),
            Stage::Lint => checks::lint(),
            Stage::Unit => {
                programs::run(|program| !has_own_stage(program), tally)?;
                programs::run_chores(tally)
            }
            Stage::Simulator => {
                programs::run(is_simulated, tally)?;
                sim_figures::run(tally)
            }
            Stage::Verbs => verbs::run(tally),
            Stage::Loom => checks::loom(tally),
            Stage::Miri => checks::miri(tally),
            Stage::Limits => limits::run(tally),
            Stage::Fortran => {
                fortran::run(tally)?;
                built::fortran::run(tally)
            }
            Stage::Peers => peers::run(tally),
            Stage::Built => built::run(tally),
            Stage::Files => file_soak::run(tally),
            Stage::Launchers => launchers::run(tally),
            Stage::Packages => packages::run(tally),
            Stage::Cluster => cluster::run(tally),
            Stage::Network => network::run(tally),
        }
    }
}

/// The stages of a run.
#[derive(Debug, PartialEq)]
pub struct StagePlan {
    /// Stages that run one after the other.
    pub foreground: Vec<Stage>,
    /// Stages that run in the background, from the first stage after the build on.
    pub background: Vec<Stage>,
}

impl StagePlan {
    /// Puts stages that only compute into the background if there are stages that also wait. The build does not wait.
    pub fn of(stages: Vec<Stage>) -> StagePlan {
        if stages.iter().all(|&stage| stage.only_computes() || stage == Stage::Build) {
            return StagePlan { foreground: stages, background: Vec::new() };
        }
        let (background, foreground) = stages.into_iter().partition(|stage| stage.only_computes());
        StagePlan { foreground, background }
    }
}

/// Returns true if a program belongs to the stage Simulator.
fn is_simulated(program: &programs::TestProgram) -> bool {
    SIMULATOR.contains(&program.package.as_str())
}

/// Returns true if a program belongs to a stage other than Unit.
fn has_own_stage(program: &programs::TestProgram) -> bool {
    let package = program.package.as_str();
    program.is_oracle() || is_simulated(program) || VERBS.contains(&package) || package == OFI
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budget(stages: &[Stage]) -> u64 {
        stages.iter().map(|stage| stage.budget()).sum()
    }

    /// Seconds that cargo takes to build this program, before the first stage.
    const BEFORE: u64 = 50;

    #[test]
    fn the_quick_set_may_take_a_quarter_of_an_hour_and_the_foreground_47_minutes() {
        assert!(BEFORE + budget(&QUICK) <= 900, "{}", budget(&QUICK));
        let foreground: Vec<_> = REST.into_iter().filter(|stage| !stage.only_computes()).collect();
        let seconds = BEFORE + budget(&QUICK) + budget(&foreground);
        assert!(seconds <= 2820, "{seconds}");
    }

    #[test]
    fn each_stage_is_in_one_set() {
        for stage in Stage::value_variants() {
            assert_ne!(QUICK.contains(stage), REST.contains(stage), "{stage:?}");
        }
    }

    #[test]
    fn no_selected_stage_is_left_out() {
        use Stage::{Build, Lint, Loom, Verbs};
        let plan = |stages: &[Stage]| StagePlan::of(stages.to_vec());
        let of = |foreground: &[Stage], background: &[Stage]| StagePlan {
            foreground: foreground.to_vec(),
            background: background.to_vec(),
        };
        assert_eq!(plan(&[Build, Lint]), of(&[Build, Lint], &[]));
        assert_eq!(plan(&[Lint, Loom]), of(&[Lint, Loom], &[]));
        assert_eq!(plan(&[Build, Lint, Verbs, Loom]), of(&[Build, Verbs], &[Lint, Loom]));
    }
}
