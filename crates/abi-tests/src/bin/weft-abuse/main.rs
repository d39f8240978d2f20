//! Bad arguments to every function of MPI.
//!
//! For each function of the standard and each of its parameters: handles that are null, freed, of another kind or random; numbers
//! that are negative or huge; NULL. All other arguments are good. The call must give an error or a result, and the library must
//! keep working. Separate processes make the calls, so that a process that dies names its call, and the remaining calls follow.

mod arguments;
mod exceptions;
mod files;
mod fixture;
mod mpi;
mod plant;
mod signature;
mod supervisor;
mod worker;

use clap::Parser;
use std::process::ExitCode;

/// Call every MPI function with bad arguments; it starts its processes itself, without mpiexec
#[derive(Parser, Clone)]
struct Args {
    /// The seed of the random values.
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Only functions of this name, or if it ends with `*`, functions whose names begin so.
    #[arg(long, value_name = "FUNCTION")]
    only: Vec<String>,
    /// The MPI library: a path, or a name for the loader to search.
    #[arg(long, default_value = "libmpi_abi.so.1")]
    library: String,
    /// Maximum number of processes that run at the same time.
    #[arg(long, default_value_t = 2)]
    processes: usize,
    /// A call that takes longer than this counts as hanging.
    #[arg(long, value_name = "SECONDS", default_value_t = 5)]
    limit: u64,
    /// Call functions of this program, too, that crash, hang, exit, or accept bad arguments.
    #[arg(long)]
    plant: bool,
    /// Print the result of each call.
    #[arg(long)]
    verbose: bool,
    /// Print the calls of each function, with the calls left out and the reasons, and make none.
    #[arg(long)]
    print: bool,
    /// Make the calls of these functions in this process, the first from this case on.
    #[arg(long, hide = true)]
    worker: Option<usize>,
}

impl Args {
    fn functions(&self) -> Vec<signature::Signature> {
        let wanted = |name: &str| {
            let fits = |o: &String| match o.strip_suffix('*') {
                Some(start) => name.starts_with(start),
                None => name == o,
            };
            self.only.is_empty() || self.only.iter().any(fits)
        };
        let mut all = signature::all();
        if self.plant {
            all.extend(plant::functions());
        }
        let called = |f: &signature::Signature| exceptions::NEVER.iter().all(|n| n.0 != f.stem());
        all.retain(|f| wanted(f.name) && called(f));
        all
    }
}

fn main() -> ExitCode {
    let args = Args::parse();
    let functions = args.functions();
    if args.print {
        supervisor::print(&functions, args.seed);
        return ExitCode::SUCCESS;
    }
    if let Some(from) = args.worker {
        return match mpi::AbusedLibrary::load(&args.library) {
            Ok(mpi) => {
                let limit = std::time::Duration::from_secs(args.limit);
                worker::run(&mpi, &functions, from, args.seed, limit);
                ExitCode::SUCCESS
            }
            Err(e) => {
                eprintln!("weft-abuse: {e}");
                ExitCode::FAILURE
            }
        };
    }
    match supervisor::run(&args, &functions) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(e) => {
            eprintln!("weft-abuse: {e}");
            ExitCode::FAILURE
        }
    }
}
