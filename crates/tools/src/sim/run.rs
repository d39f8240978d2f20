//! `weft sim run`: any MPI program on a simulated machine.

mod report;

use super::{SimFailure, change, microseconds};
use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};
use std::process::Command;
use std::rc::Rc;
use weft_fabric_sim::{Death, Machine, SimOptions, units};
use weft_sim_job::{ComputeTime, SimJob, SimJobFailure, SimJobOutcome};

/// Arguments of `weft sim run`.
#[derive(Parser, Debug)]
pub struct SimRunArgs {
    /// Machine by name, or the path of a machine file (with a `/` or a `.` in it).
    #[arg(long, value_name = "NAME|FILE")]
    pub machine: String,
    /// Number of ranks.
    #[arg(long, short = 'n', value_name = "N")]
    pub ranks: usize,
    /// Number of simulated nodes, which must have room for the ranks. Ranks fill them evenly. Default: as the machine file says.
    #[arg(long, value_name = "N")]
    pub nodes: Option<usize>,
    /// Time of the program's computing: none, or a factor on its measured processor time, such as 1 or 0.5.
    #[arg(long, value_name = "none|FACTOR", default_value = "1", value_parser = compute)]
    pub compute: ComputeTime,
    /// Seed of random choices.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Maximum random delay of each operation, in microseconds.
    #[arg(long, value_name = "US", default_value_t = 0.0, value_parser = microseconds, allow_negative_numbers = true)]
    pub jitter: f64,
    /// Changes a parameter of the machine, as in rail.gap_in=1.5; may be given several times.
    #[arg(long, value_name = "KEY=VALUE", value_parser = change)]
    pub set: Vec<(String, String)>,
    /// Rank that dies, and its time in microseconds; may be given several times.
    #[arg(long, value_name = "RANK@US", value_parser = rank_death)]
    pub kill_rank: Vec<(u64, Death)>,
    /// Rail of a node that dies, and its time in microseconds; may be given several times.
    #[arg(long, value_name = "NODE.RAIL@US", value_parser = rail_death)]
    pub kill_rail: Vec<(u64, Death)>,
    /// Lets the system's clocks and sleeps follow virtual time.
    #[arg(long)]
    pub clocks: bool,
    /// Shows no progress bar.
    #[arg(long)]
    pub quiet: bool,
    /// Program with its arguments.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub program: Vec<String>,
}

fn compute(text: &str) -> Result<ComputeTime, String> {
    if text == "none" {
        return Ok(ComputeTime::None);
    }
    let factor: Option<f64> = text.parse().ok().filter(|f: &f64| f.is_finite() && *f > 0.0);
    let factor = factor.ok_or("none, or a factor greater than 0")?;
    Ok(ComputeTime::Measured { factor })
}

/// Parses the time after `@`, in microseconds. Returns picoseconds.
fn at(text: &str) -> Result<u64, String> {
    microseconds(text).map(|us| units::Time::from_us(us).0)
}

fn rank_death(text: &str) -> Result<(u64, Death), String> {
    let wrong = || "RANK@US, as in 3@150".to_owned();
    let (rank, time) = text.split_once('@').ok_or_else(wrong)?;
    Ok((at(time)?, Death::Rank(rank.parse().map_err(|_| wrong())?)))
}

fn rail_death(text: &str) -> Result<(u64, Death), String> {
    let wrong = || "NODE.RAIL@US, as in 0.1@150".to_owned();
    let (place, time) = text.split_once('@').ok_or_else(wrong)?;
    let (node, rail) = place.split_once('.').ok_or_else(wrong)?;
    let number = |text: &str| text.parse().map_err(|_| wrong());
    Ok((at(time)?, Death::Rail { node: number(node)?, rail: number(rail)? }))
}

/// Outcome of `weft sim run`.
pub struct SimRunReport {
    /// Text to print.
    pub text: String,
    /// Exit code of the program.
    pub code: u8,
}

/// Exit code after a deadlock, as of `mpiexec`.
const DEADLOCK: u8 = 35;

/// Runs the program, and returns the report.
pub fn run(args: &SimRunArgs) -> Result<SimRunReport, SimFailure> {
    let machine = Rc::new(load(args)?);
    let mut options = SimOptions::new(args.ranks).seed(args.seed);
    options.jitter = units::Time::from_us(args.jitter);
    options.deaths = args.kill_rank.iter().chain(&args.kill_rail).copied().collect();
    let bar = if args.quiet { ProgressBar::hidden() } else { spinner() };
    let mut progress = |clock: u64| {
        bar.set_message(format!("{:.3} ms of virtual time", clock as f64 / 1e9));
        bar.tick();
    };
    let mut launcher = launcher(args)?;
    let job = SimJob { machine: &machine, options, compute: args.compute, progress: &mut progress };
    let outcome = job.run(&mut launcher);
    bar.finish_and_clear();
    match outcome {
        Ok(outcome) => {
            let code = exit_code(&outcome);
            Ok(SimRunReport { text: report::text(args, &machine, &outcome), code })
        }
        Err(SimJobFailure::Stopped(stopped)) => {
            Ok(SimRunReport { text: format!("weft sim: {stopped}\n"), code: DEADLOCK })
        }
        Err(failure @ SimJobFailure::Impossible(_)) => {
            Err(SimFailure::Request(failure.to_string()))
        }
        Err(failure) => Err(SimFailure::Run(failure.to_string())),
    }
}

/// Loads the machine, with as many nodes as asked for.
fn load(args: &SimRunArgs) -> Result<Machine, SimFailure> {
    let request = |error: &dyn std::fmt::Display| SimFailure::Request(error.to_string());
    if args.ranks == 0 {
        return Err(request(&"--ranks 0: a job has at least 1 rank"));
    }
    let mut changes = args.set.clone();
    if let Some(nodes) = args.nodes {
        if nodes == 0 || nodes > args.ranks {
            return Err(request(&format!("--nodes {nodes}: 1 to {} for these ranks", args.ranks)));
        }
        changes.push(("nodes".to_owned(), nodes.to_string()));
        changes.push(("ranks_per_node".to_owned(), args.ranks.div_ceil(nodes).to_string()));
    }
    Machine::load_with(&args.machine, &changes).map_err(|error| request(&error))
}

fn spinner() -> ProgressBar {
    let style = ProgressStyle::with_template("{spinner} {elapsed} {msg}");
    ProgressBar::new_spinner().with_style(style.expect("the template is right"))
}

/// Returns the command that starts the ranks.
fn launcher(args: &SimRunArgs) -> Result<Command, SimFailure> {
    let own = std::env::current_exe();
    let own = own.map_err(|error| SimFailure::Run(format!("the path of this program: {error}")))?;
    let mut command = Command::new(own.with_file_name("mpiexec"));
    command.args(["-n", &args.ranks.to_string(), "-deadlock", "off", "--"]).args(&args.program);
    command.env("WEFT_PROGRESS", "none");
    command.env("WEFT_SIM_CLOCKS", if args.clocks { "1" } else { "0" });
    Ok(command)
}

fn exit_code(outcome: &SimJobOutcome) -> u8 {
    use std::os::unix::process::ExitStatusExt;
    let status = outcome.status;
    status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(1) as u8
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deaths_and_factors_are_parsed() {
        assert_eq!(rank_death("3@1.5"), Ok((1_500_000, Death::Rank(3))));
        assert_eq!(rail_death("1.0@2"), Ok((2_000_000, Death::Rail { node: 1, rail: 0 })));
        assert!(rank_death("3").is_err() && rail_death("3@1").is_err());
        assert_eq!(compute("none"), Ok(ComputeTime::None));
        assert_eq!(compute("2"), Ok(ComputeTime::Measured { factor: 2.0 }));
        assert!(compute("0").is_err() && compute("NaN").is_err() && compute("x").is_err());
    }
}
