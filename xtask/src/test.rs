//! `cargo xtask test`: every test of the project, in stages; what `.ci/run` runs.

mod abuse;
mod accesses;
mod alike;
mod answers;
mod book;
mod c_programs;
pub(crate) mod cluster;
mod copies;
mod counts;
mod debian;
pub(crate) mod file_soak;
mod files;
mod fortran;
mod instructions;
mod jobs;
mod launchers;
mod man;
mod memory;
pub(crate) mod mutation;
pub(crate) mod network;
mod open_files;
mod programs;
mod python;
mod random;
mod rotation;
mod skips;
mod slurm;
mod tally;
pub(crate) mod tools;
mod tsan;
pub(crate) mod verbs;

use clap::{Args as ClapArgs, ValueEnum};
use file_soak::FileParts;
use std::thread::ScopedJoinHandle;
use std::time::Instant;
use tally::{OFI, SIMULATOR, Tally, VERBS, cargo};
use tools::step;

/// A group of tests with a time budget of its own (CONTRIBUTING.md).
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Stage {
    /// Format, lint, documentation, layers, release build.
    Build,
    /// Unit and integration tests of the crates.
    Unit,
    /// The simulated cluster: its own tests, patterns, and the documents' figures.
    Simulator,
    /// RDMA: the fabric of verbs on a real kernel's soft-RoCE, in a virtual machine.
    Verbs,
    /// Models of the lock-free parts, every interleaving within bounds.
    Loom,
    /// Undefined behaviour, in the parts that Miri can run.
    Miri,
    /// Programs under mpiexec: the examples, those in tests/, random ones, bad arguments to all functions.
    Programs,
    /// Fortran programs, all three ways, built by mpifort.
    Fortran,
    /// mpi4py, built by our mpicc and by MPICH's, on our library.
    Python,
    /// Parallel files by programs of others: the tests of HDF5 and PnetCDF, built from their sources by our mpicc.
    Files,
    /// Programs under other launchers: Hydra, PRRTE, Slurm; and under ours on several hosts.
    Launchers,
    /// Programs over verbs: in the virtual machine, with and without loss; on two machines, one of which dies.
    Cluster,
    /// Programs over Ethernet, through libfabric: on hosts made of network namespaces, with cables that go out and strangers.
    Network,
}

/// Which tests to run.
#[derive(ClapArgs)]
pub struct Args {
    /// Only these stages.
    #[arg(long, value_enum, value_delimiter = ',')]
    only: Vec<Stage>,
}

const ALL: [Stage; 13] = [
    Stage::Build,
    Stage::Unit,
    Stage::Simulator,
    Stage::Verbs,
    Stage::Loom,
    Stage::Miri,
    Stage::Programs,
    Stage::Fortran,
    Stage::Python,
    Stage::Files,
    Stage::Launchers,
    Stage::Cluster,
    Stage::Network,
];

impl Stage {
    /// The seconds that the stage may take on two processors. All together are at most an hour.
    fn budget(self) -> u64 {
        match self {
            Stage::Build => 250,
            Stage::Unit => 740,
            Stage::Simulator => 150,
            Stage::Verbs => 300,
            Stage::Loom => 130,
            Stage::Miri => 360,
            Stage::Programs => 300,
            Stage::Fortran => 240,
            Stage::Python => 340,
            Stage::Files => 120,
            Stage::Launchers => 60,
            Stage::Cluster => 250,
            Stage::Network => 360,
        }
    }
}

/// How long the soak test runs.
#[derive(ClapArgs)]
pub struct SoakArgs {
    /// Jobs that are killed; a tenth of it is how often other programs run.
    #[arg(long, default_value_t = 100)]
    times: usize,
    /// Random programs alone, for so many seconds (without it, for a minute after the others).
    #[arg(long, value_name = "SECONDS")]
    random: Option<u64>,
    /// Programs of many threads under ThreadSanitizer alone.
    #[arg(long)]
    tsan: bool,
    /// Windows on one to five ranks over two rails in the virtual machine alone: mpi4py's tests, all fences.
    #[arg(long)]
    verbs: bool,
    /// The programs of tests/c under the copy costs of other machines alone: seven minutes.
    #[arg(long)]
    copy_models: bool,
    /// Fortran programs of others, MUMPS and FFTW, from Debian's sources alone: three minutes.
    #[arg(long)]
    fortran: bool,
    /// mpi4py's tests on four hosts made of network namespaces alone: two minutes.
    #[arg(long)]
    network: bool,
    /// Parallel files alone, or one part of it: in virtual machines cuts of power, quotas, mpi4py's tests on ext4, and NFS between two hosts; and others' programs by their own tests, HDF5, PnetCDF and
    /// h5py. Half an hour, and some ten minutes for builds the first time.
    #[arg(long, value_name = "PART", num_args = 0..=1, default_missing_value = "all")]
    files: Option<FileParts>,
}

/// Runs a part of which nothing may be left out.
fn whole(part: impl FnOnce(&mut Tally) -> Result<(), String>) -> Result<(), String> {
    let mut tally = Tally::default();
    part(&mut tally)?;
    tally.not_run.pop().map_or(Ok(()), Err)
}

/// Longer runs of the tests that depend on chance.
pub fn soak(args: &SoakArgs) -> Result<(), String> {
    if args.verbs {
        return whole(cluster::soak);
    }
    if args.network {
        return whole(network::soak);
    }
    let prefix = crate::demo::install()?;
    if args.copy_models {
        return whole(|tally| c_programs::other_machines(&prefix, tally));
    }
    if args.fortran {
        return whole(|tally| fortran::soak(&prefix, tally));
    }
    if let Some(parts) = args.files {
        return file_soak::soak(&prefix, parts);
    }
    if args.tsan || args.random.is_none() {
        whole(|tally| tsan::run(&prefix, args.tsan, tally))?;
        if args.tsan {
            return Ok(());
        }
    }
    if args.random.is_none() {
        c_programs::soak(&prefix, args.times)?;
    }
    random::soak(&prefix, args.random.unwrap_or(60))
}

/// Runs the stages in order, all of them: a failure is told at once and again at the end. Only without a build there is nothing
/// to go on with.
pub fn run(args: &Args) -> Result<(), String> {
    let stages: Vec<Stage> =
        ALL.into_iter().filter(|s| args.only.is_empty() || args.only.contains(s)).collect();
    let mut tally = Tally::default();
    let (mut times, mut failed, start) = (Vec::new(), Vec::new(), Instant::now());
    for (i, &stage) in stages.iter().enumerate() {
        let (count, so_far) = (stages.len(), start.elapsed().as_secs());
        let budget = stage.budget();
        let n = i + 1;
        println!("\n==== stage {n} of {count}: {stage:?}, after {so_far} s; budget {budget} s");
        let began = Instant::now();
        let result = match stage {
            Stage::Build => build(),
            Stage::Unit => unit(&mut tally),
            Stage::Simulator => simulator(&mut tally),
            Stage::Verbs => verbs::run(&mut tally),
            Stage::Loom => loom(&mut tally),
            Stage::Miri => miri(&mut tally),
            Stage::Programs => c_programs::run(&mut tally),
            Stage::Fortran => fortran::run(&mut tally),
            Stage::Python => python::run(&mut tally),
            Stage::Files => file_soak::run(&mut tally),
            Stage::Launchers => launchers::run(&mut tally),
            Stage::Cluster => cluster::run(&mut tally),
            Stage::Network => network::run(&mut tally),
        };
        if let Err(error) = result {
            println!("\n==== {stage:?} FAILED: {error}");
            failed.push((stage, error));
        }
        times.push((stage, began.elapsed()));
        if failed.iter().any(|(stage, _)| *stage == Stage::Build) {
            break;
        }
    }
    println!();
    for (stage, time) in times {
        let (name, budget) = (format!("{stage:?}"), stage.budget());
        // Told, not failed: a busy machine is no error of the code.
        let over = if time.as_secs() > budget { "   OVER ITS BUDGET" } else { "" };
        println!("{name:<10} {:>5.0} s of {budget}{over}", time.as_secs_f64());
    }
    for reason in &tally.not_run {
        println!("NOT RUN: {reason}");
    }
    let (passed, skipped) = (tally.passed, tally.not_run.len());
    println!("{passed} passed, {} stages failed, {skipped} skipped", failed.len());
    let told: Vec<_> = failed.iter().map(|(stage, error)| format!("{stage:?}: {error}")).collect();
    if told.is_empty() { Ok(()) } else { Err(told.join("\n")) }
}

fn build() -> Result<(), String> {
    step(cargo().args(["fmt", "--all", "--check"]))?;
    crate::layers::check()?;
    crate::clean::check()?;
    crate::documents::check()?;
    crate::house::check()?;
    step(cargo().args(["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]))?;
    // Links of the documentation lead somewhere.
    step(cargo().args(["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings"))?;
    crate::demo::install().map(|_| ())
}

fn unit(tally: &mut Tally) -> Result<(), String> {
    let elsewhere = |name: &str| SIMULATOR.contains(&name) || VERBS.contains(&name) || name == OFI;
    programs::run(|program| !elsewhere(&program.package), tally)
}

fn simulator(tally: &mut Tally) -> Result<(), String> {
    programs::run(|program| SIMULATOR.contains(&program.package.as_str()), tally)
}

fn loom(tally: &mut Tally) -> Result<(), String> {
    let mut command = cargo();
    command
        .args(["test", "--release", "-p", "weft-fabric", "-p", "weft-intranode"])
        .args(["-p", "weft-fabric-shm", "-p", "weft-rma", "--lib", "loom"])
        .env("RUSTFLAGS", "--cfg loom")
        .env("CARGO_TARGET_DIR", crate::root().join("target/loom"));
    let output = tools::captured(&mut command)?;
    tally.passed += tools::count_cargo_tests(&output)?;
    Ok(())
}

/// Crates whose tests Miri can run, each kept short by the crate itself.
const MIRI: &[&str] =
    &["weft-fabric", "weft-intranode", "weft-fabric-shm", "weft-datatype", "weft-p2p"];

fn miri(tally: &mut Tally) -> Result<(), String> {
    if !tools::have_miri() {
        tally.not_run.push(
            "Miri: no nightly toolchain with the component miri (rustup toolchain install nightly \
             --component miri,rust-src)"
                .to_owned(),
        );
        return Ok(());
    }
    let miri = |arguments: &[&str]| {
        let mut command = cargo();
        command.args(["+nightly", "miri"]).args(arguments);
        command.env("CARGO_TARGET_DIR", crate::root().join("target/miri")).env(
            "MIRIFLAGS",
            "-Zmiri-disable-isolation -Zmiri-ignore-leaks -Zmiri-permissive-provenance",
        );
        command
    };
    // What all need, before they build beside each other.
    step(&mut miri(&["setup"]))?;
    // Miri uses one processor.
    let outputs: Vec<Result<String, String>> = std::thread::scope(|scope| {
        let test = |name| move || tools::captured(&mut miri(&["test", "-p", name, "--lib"]));
        let threads: Vec<_> = MIRI.iter().map(|&name| scope.spawn(test(name))).collect();
        let ended =
            |thread: ScopedJoinHandle<_>| thread.join().map_err(|_| "Miri's output".to_owned())?;
        threads.into_iter().map(ended).collect()
    });
    for output in outputs {
        tally.passed += tools::count_cargo_tests(&output?)?;
    }
    Ok(())
}

#[cfg(test)]
mod budgets {
    #[test]
    fn all_stages_together_may_take_an_hour() {
        assert_eq!(super::ALL.map(super::Stage::budget).iter().sum::<u64>(), 3600);
    }
}
