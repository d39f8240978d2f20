//! `cargo xtask test`: the tests of the project, in stages. Without options it runs the quick set, which tests the library in a
//! quarter of an hour by its budgets. `--rest` runs all other stages, and `--all` runs all stages.

mod abuse;
mod accesses;
mod alike;
mod answers;
mod background;
mod book;
mod bound_ranks;
mod built;
mod c_programs;
mod checking_mode;
mod checks;
pub(crate) mod cluster;
mod copies;
mod counts;
mod deadlocks;
mod debian;
mod debian_packages;
mod disk;
pub(crate) mod file_soak;
mod files;
mod first_calls;
mod fortran;
mod habits;
mod header_calls;
mod instructions;
mod job_start;
mod jobs;
mod lanes;
mod launchers;
mod limits;
mod man;
mod memory;
pub(crate) mod mutation;
pub(crate) mod network;
mod open_files;
mod packages;
mod peers;
mod programs;
mod python;
mod random;
mod recipes;
mod results;
mod rotation;
mod sim_choices;
mod sim_figures;
mod sim_programs;
mod skips;
mod slurm;
mod stage;
mod tally;
pub(crate) mod tools;
mod tsan;
pub(crate) mod verbs;

use background::BackgroundStages;
use clap::Args;
use file_soak::FileParts;
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::{TimeVal, TimeValLike};
use results::{StageFailure, StageResults, StageTime};
use stage::{QUICK, REST, Stage, StagePlan};
use std::path::PathBuf;
use std::time::Instant;
use tally::{Tally, cargo};

/// Selection of the tests to run.
#[derive(Args)]
pub struct TestArgs {
    /// Run all stages: the quick set, then the rest.
    #[arg(long)]
    all: bool,
    /// Run only the stages that the quick set leaves out.
    #[arg(long, conflicts_with = "all")]
    rest: bool,
    /// Run only these stages.
    #[arg(long, value_enum, value_delimiter = ',', conflicts_with_all = ["all", "rest"])]
    only: Vec<Stage>,
    /// Write the results to this file, in JSON. A run of stages in the background has this option.
    #[arg(long, value_name = "FILE", hide = true)]
    results: Option<PathBuf>,
}

impl TestArgs {
    /// Returns the selected stages, in the order in which they run.
    fn stages(&self) -> Vec<Stage> {
        let all = QUICK.into_iter().chain(REST);
        let wanted = |stage: &Stage| match (self.only.as_slice(), self.all, self.rest) {
            ([], true, _) => true,
            ([], false, rest) => REST.contains(stage) == rest,
            (only, _, _) => only.contains(stage),
        };
        all.filter(wanted).collect()
    }
}

/// Selection of the soak tests, and their length.
#[derive(Args)]
pub struct SoakArgs {
    /// Number of jobs that are killed. The other programs run a tenth as often.
    #[arg(long, default_value_t = 100)]
    times: usize,
    /// Run only random programs, for this number of seconds (default: after the other tests, for a minute).
    #[arg(long, value_name = "SECONDS")]
    random: Option<u64>,
    /// Run only programs with many threads, under ThreadSanitizer.
    #[arg(long)]
    tsan: bool,
    /// Run only tests of windows, on one to five ranks over two rails in the virtual machine: mpi4py's tests, and all fences.
    #[arg(long)]
    verbs: bool,
    /// Run only the programs of tests/c, with the copy costs of other machines: seven minutes.
    #[arg(long)]
    copy_models: bool,
    /// Run only Fortran programs of other projects (MUMPS and FFTW, from Debian's sources): three minutes.
    #[arg(long)]
    fortran: bool,
    /// Run only mpi4py's tests: with NumPy on one and three ranks, with modules that were built with other MPI libraries, and
    /// collective operations with each algorithm in turn; and further packaged programs: ScaLAPACK's longer tests, OpenFOAM, CP2K and
    /// GROMACS.
    #[arg(long)]
    python: bool,
    /// Run only tests of packages that take long: the steps of the containers' recipes, an installation by EasyBuild, and a wheel for
    /// glibc 2.28, built from the start. The tests take a quarter of an hour.
    #[arg(long)]
    packages: bool,
    /// Run only mpi4py's tests on four hosts made of network namespaces, and tests of libfabric's `udp;ofi_rxd`: two minutes.
    #[arg(long)]
    network: bool,
    /// Run only tests of parallel files, or one part of these tests. Virtual machines run power cuts, quotas, mpi4py's tests on
    /// ext4, and NFS between two hosts. This machine runs the tests of HDF5, PnetCDF and h5py. All parts take half an hour, and the
    /// first run takes about ten more minutes for builds.
    #[arg(long, value_name = "PART", num_args = 0..=1, default_missing_value = "all")]
    files: Option<FileParts>,
}

/// Runs a part of the tests. Returns an error also if a test of the part cannot run.
fn whole(part: impl FnOnce(&mut Tally) -> Result<(), String>) -> Result<(), String> {
    let mut tally = Tally::default();
    part(&mut tally)?;
    tally.not_run.pop().map_or(Ok(()), Err)
}

/// Runs the soak tests.
pub fn soak(args: &SoakArgs) -> Result<(), String> {
    if args.verbs {
        return whole(cluster::soak);
    }
    if args.network {
        return whole(network::soak);
    }
    let prefix = crate::demo::install()?;
    if args.packages {
        return whole(|tally| packages::soak(&prefix, tally));
    }
    if args.copy_models {
        return whole(|tally| c_programs::other_machines(&prefix, tally));
    }
    if args.fortran {
        return whole(|tally| fortran::soak(&prefix, tally));
    }
    if args.python {
        return whole(|tally| peers::soak(&prefix, tally));
    }
    if let Some(parts) = args.files {
        return file_soak::soak(&prefix, parts);
    }
    if args.tsan || args.random.is_none() {
        if args.tsan {
            return whole(|tally| tsan::run_all(&prefix, tally));
        }
        whole(|tally| tsan::run_short(&prefix, tally))?;
    }
    if args.random.is_none() {
        c_programs::soak(&prefix, args.times)?;
        whole(|tally| open_files::soak(&prefix, tally))?;
    }
    random::soak(&prefix, args.random.unwrap_or(60))
}

/// Returns the processor time in seconds of all programs that this program has started and that have ended. A stage that takes much
/// less processor time than elapsed time spends its time waiting.
fn processor_seconds() -> f64 {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).expect("getrusage takes no other argument");
    let seconds = |time: TimeVal| time.num_microseconds() as f64 / 1e6;
    seconds(usage.user_time()) + seconds(usage.system_time())
}

/// Runs all stages. Stages that only compute run in the background if there are other stages, too. A failure is reported immediately,
/// and again at the end. If the build fails, no other stage runs.
pub fn run(args: &TestArgs) -> Result<(), String> {
    disk::check(&crate::root())?;
    let StagePlan { foreground: stages, background: mut later } = StagePlan::of(args.stages());
    let mut results = StageResults::default();
    let (mut background, start) = (None, Instant::now());
    for (i, &stage) in stages.iter().enumerate() {
        if stage != Stage::Build && !later.is_empty() {
            let stages = std::mem::take(&mut later);
            background = Some(BackgroundStages::start(stages, &crate::root().join("target"))?);
        }
        let (n, count, so_far) = (i + 1, stages.len(), start.elapsed().as_secs());
        let budget = stage.budget();
        println!("\n==== stage {n} of {count}: {stage:?}, after {so_far} s; budget {budget} s");
        let is_built = run_stage(stage, &mut results);
        if !is_built {
            break;
        }
    }
    if let Some(background) = background {
        results.add(background.wait());
    }
    results.print();
    if let Some(path) = &args.results {
        results.write(path)?;
    }
    results.into_result()
}

/// Runs a stage and adds its results. Returns false if the library could not be built.
fn run_stage(stage: Stage, results: &mut StageResults) -> bool {
    let (began, computed_before) = (Instant::now(), processor_seconds());
    let result = stage.run(&mut results.tally);
    let elapsed = began.elapsed().as_secs_f64();
    results.times.push(StageTime {
        stage,
        elapsed,
        computed: processor_seconds() - computed_before,
    });
    let Err(error) = result else { return true };
    println!("\n==== {stage:?} FAILED: {error}");
    results.failures.push(StageFailure { stage, error });
    stage != Stage::Build
}
