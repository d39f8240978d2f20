//! Random MPI programs against an oracle.
//!
//! Every rank makes the same program from a seed: communicators, and phases of messages and collective calls that are under way at
//! the same time, with random datatypes, counts and roots. The rank runs its part through the C ABI of the MPI library. Then it
//! computes in one process, without the library, the expected value of every byte of its buffers: data, gaps between data, and
//! bytes around them.

mod basic;
mod buffer;
mod comm;
mod construct;
mod generate;
mod grow;
mod ledger;
mod mpi;
mod onesided;
mod oracle;
mod program;
mod reduce;
mod run;
mod types;
mod user_ops;
mod watch;

use clap::Parser;
use generate::Recipe;
use mpi::Mpi;
use std::process::ExitCode;
use std::time::{Duration, Instant};
use watch::Watch;

/// Run random MPI programs and compare every buffer with an oracle: mpiexec -n 4 weft-random
#[derive(Parser, Clone)]
struct Args {
    /// The seed of all programs.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of programs to run.
    #[arg(long, default_value_t = 100)]
    programs: u64,
    /// Run programs for this number of seconds, whatever their number.
    #[arg(long, value_name = "SECONDS")]
    seconds: Option<u64>,
    /// Number of steps of a program.
    #[arg(long, default_value_t = 6)]
    steps: usize,
    /// Only the program of this number.
    #[arg(long, value_name = "PROGRAM")]
    only: Option<u64>,
    /// Print the programs instead of running them (needs no MPI).
    #[arg(long)]
    print: bool,
    /// The number of ranks to print them for.
    #[arg(long, default_value_t = 2, requires = "print")]
    ranks: usize,
    /// Spoil a byte of rank 0's memory before it is compared, which must be found.
    #[arg(long, value_enum, num_args = 0..=1, default_missing_value = "message")]
    plant: Option<run::Plant>,
    /// The MPI library: a path, or a name for the loader to search.
    #[arg(long, default_value = "libmpi_abi.so.1")]
    library: String,
    /// A program's step that takes longer than this counts as hanging.
    #[arg(long, value_name = "SECONDS", default_value_t = 60)]
    limit: u64,
    /// Leave out items whose description, as printed, contains this text.
    #[arg(long, value_name = "TEXT")]
    skip: Vec<String>,
    /// Complete all requests only with MPI_Waitall.
    #[arg(long)]
    waitall: bool,
    /// Print the number of calls of each MPI function on rank 0.
    #[arg(long)]
    tally: bool,
}

impl Args {
    fn recipe(&self, number: u64, ranks: usize) -> Recipe {
        Recipe { seed: self.seed, number, ranks, steps: self.steps }
    }

    /// Returns the program of this number, without the items to leave out.
    fn program(&self, recipe: &Recipe) -> program::RandomProgram {
        let mut program = recipe.program();
        let keep = |item: &program::Item| {
            let text = if self.skip.is_empty() { String::new() } else { item.to_string() };
            !self.skip.iter().any(|s| text.contains(s))
        };
        let stays = |action: &onesided::Action| {
            let text = if self.skip.is_empty() { String::new() } else { action.to_string() };
            !self.skip.iter().any(|s| text.contains(s))
        };
        for step in &mut program.steps {
            match step {
                program::ProgramStep::Phase(phase) => phase.items.retain(keep),
                program::ProgramStep::Epoch(epoch) => epoch.actions.retain(stays),
                _ => {}
            }
        }
        program
    }

    /// Returns the number of the first program, and that after the last.
    fn range(&self) -> (u64, u64) {
        match (self.only, self.seconds) {
            (Some(only), _) => (only, only + 1),
            (None, Some(_)) => (0, u64::MAX),
            (None, None) => (0, self.programs),
        }
    }

    fn command(&self, ranks: usize, number: u64) -> String {
        let Args { seed, steps, library, .. } = self;
        let program = std::env::args().next().unwrap_or_default();
        format!(
            "mpiexec -n {ranks} {program} --library {library} --seed {seed} --steps {steps} --only \
             {number}"
        )
    }
}

fn main() -> ExitCode {
    let args = Args::parse();
    if args.print {
        let (first, end) = args.range();
        for number in first..end {
            let program = args.program(&args.recipe(number, args.ranks));
            println!(
                "program {number} of seed {} on {} ranks\n{program}",
                args.seed, program.ranks
            );
        }
        return ExitCode::SUCCESS;
    }
    match launch(&args) {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("weft-random: {e}");
            ExitCode::FAILURE
        }
    }
}

fn launch(args: &Args) -> Result<(), String> {
    let mpi = Mpi::load(&args.library)?;
    mpi.call("MPI_Init", &[0, 0])?;
    for comm in [mpi::COMM_WORLD, mpi::COMM_SELF] {
        mpi.call("MPI_Comm_set_errhandler", &[comm, mpi::ERRORS_RETURN])?;
    }
    let me = mpi.int("MPI_Comm_rank", &[mpi::COMM_WORLD])? as usize;
    let ranks = mpi.int("MPI_Comm_size", &[mpi::COMM_WORLD])? as usize;
    let told = args.clone();
    let watch = Watch::start(Duration::from_secs(args.limit), move |program, step, item| {
        format!(
            "weft-random: rank {me}: seed {}, program {program}, step {step}, item {item} has not \
             ended in {} s; to repeat: {}",
            told.seed,
            told.limit,
            told.command(ranks, program)
        )
    });
    let mut session = run::RankSession::new(&mpi, me, &watch);
    session.waitall = args.waitall;
    session.plant = args.plant.filter(|_| me == 0);
    let began = Instant::now();
    let (first, end) = args.range();
    let mut done = 0;
    for number in first..end {
        if let Some(seconds) = args.seconds
            && over(&mpi, began, Duration::from_secs(seconds))?
        {
            break;
        }
        let recipe = args.recipe(number, ranks);
        let program = args.program(&recipe);
        if let Err(e) = session.run(&recipe, &program) {
            let command = args.command(ranks, number);
            eprintln!(
                "weft-random: rank {me}: seed {}, program {number}, {e}\n\
                 to repeat: {command}\n\
                 to read:   weft-random --seed {} --steps {} --only {number} --print --ranks {ranks}",
                args.seed, args.seed, args.steps
            );
            mpi.call("MPI_Abort", &[mpi::COMM_WORLD, 1])?;
        }
        done += 1;
    }
    if session.plant.is_some() {
        return Err("nothing was planted: no program had such memory on rank 0".to_owned());
    }
    session.close()?;
    if me == 0 {
        println!("correct: {done} programs of seed {} on {ranks} ranks", args.seed);
    }
    if me == 0 && args.tally {
        for (name, calls) in mpi.tally() {
            println!("{calls:>8} {name}");
        }
    }
    mpi.call("MPI_Finalize", &[])
}

/// Returns true on all ranks if more than `limit` has passed since `began` on rank 0.
fn over(mpi: &Mpi, began: Instant, limit: Duration) -> Result<bool, String> {
    let mut word = [u8::from(began.elapsed() > limit)];
    let byte = basic::ElementType::named("BYTE").handle();
    mpi.call("MPI_Bcast", &[word.as_mut_ptr() as usize, 1, byte, 0, mpi::COMM_WORLD])?;
    Ok(std::hint::black_box(word)[0] != 0)
}
