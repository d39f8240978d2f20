//! One run of a program on a simulated machine.

use super::SimRunArgs;
use crate::library_selection::MapChoice;
use crate::sim::failure::SimFailure;
use indicatif::{ProgressBar, ProgressStyle};
use std::fs::File;
use std::process::{Command, Stdio};
use std::rc::Rc;
use weft_fabric_sim::{Chaos, Machine, SimOptions, Stopped, units};
use weft_sim_job::{ComputeTime, SimJob, SimJobFailure, SimJobOutcome};

/// Exit code after a deadlock, as of `mpiexec`.
const DEADLOCK: u8 = 35;

/// Surroundings of a run.
pub struct Launching<'l> {
    /// Progress bar, which shows virtual time.
    pub bar: &'l ProgressBar,
    /// Maximum number of transfers in the outcome.
    pub arrows: usize,
    /// Files for standard output and standard error of the program; `None` for those of this process.
    pub output: Option<[File; 2]>,
}

/// A run that has ended.
pub struct EndedRun {
    /// The machine.
    pub machine: Rc<Machine>,
    /// Times and traffic; `None` if no rank could go on.
    pub outcome: Option<SimJobOutcome>,
    /// Reason why no rank could go on.
    pub stopped: Option<Stopped>,
    /// Exit code.
    pub code: u8,
}

impl EndedRun {
    /// Returns the text about a run that did not come to its end.
    pub fn stopped_text(&self) -> String {
        self.stopped.as_ref().map_or_else(String::new, |stopped| format!("weft sim: {stopped}\n"))
    }
}

/// Runs the program.
pub fn launch(args: &SimRunArgs, launching: Launching<'_>) -> Result<EndedRun, SimFailure> {
    let Launching { bar, arrows, output } = launching;
    let machine = Rc::new(load(args)?);
    let mut options = SimOptions::new(args.ranks).seed(args.seed);
    options.jitter = units::Time::from_us(args.jitter);
    options.deaths = args.kill_rank.iter().chain(&args.kill_rail).copied().collect();
    options.chaos =
        args.delays.map(|us| Chaos { most: units::Time::from_us(us), ..Chaos::rough() });
    let mut progress = |clock: u64| {
        bar.set_message(format!("{:.3} ms of virtual time", clock as f64 / 1e9));
        bar.tick();
    };
    let map = map_choice(args, &machine);
    let mut launcher = launcher(args, &map)?;
    if let Some([stdout, stderr]) = output {
        launcher.stdin(Stdio::null()).stdout(stdout).stderr(stderr);
    }
    let compute = compute_time(args);
    let job = SimJob {
        machine: &machine,
        options,
        compute,
        phantom: args.phantom.map(|limit| limit.bytes(args.ranks)),
        arrows,
        progress: &mut progress,
    };
    match job.run(&mut launcher) {
        Ok(outcome) => {
            let code = exit_code(&outcome);
            Ok(EndedRun { machine, outcome: Some(outcome), stopped: None, code })
        }
        Err(SimJobFailure::Stopped(stopped)) => {
            Ok(EndedRun { machine, outcome: None, stopped: Some(stopped), code: DEADLOCK })
        }
        Err(failure @ SimJobFailure::Impossible(_)) => {
            Err(SimFailure::Request(failure.to_string()))
        }
        Err(failure) => Err(SimFailure::Run(failure.to_string())),
    }
}

/// Returns the time of the program's computing.
pub fn compute_time(args: &SimRunArgs) -> ComputeTime {
    let usual = match args.delays {
        None => ComputeTime::Measured { factor: 1.0 },
        Some(_) => ComputeTime::None,
    };
    args.compute.unwrap_or(usual)
}

/// Loads the machine, with as many nodes as asked for.
pub fn load(args: &SimRunArgs) -> Result<Machine, SimFailure> {
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

/// Returns the progress bar that the user wants.
pub fn bar(args: &SimRunArgs) -> ProgressBar {
    let bar = if args.quiet { ProgressBar::hidden() } else { ProgressBar::new_spinner() };
    let style = ProgressStyle::with_template("{spinner} {elapsed} {msg}");
    bar.with_style(style.expect("the template is right"))
}

/// Returns the maps by which the ranks choose algorithms: those of the program's environment, or else those of the machine.
pub fn map_choice(args: &SimRunArgs, machine: &Machine) -> MapChoice {
    let of_program = args.environment.iter().rev().find(|(name, _)| name == "WEFT_MAP");
    let setting = of_program.map(|(_, value)| value.clone());
    let setting = setting.or_else(|| std::env::var("WEFT_MAP").ok());
    MapChoice::by(setting.as_deref(), Some(machine))
}

/// Returns the command that starts the ranks.
fn launcher(args: &SimRunArgs, map: &MapChoice) -> Result<Command, SimFailure> {
    let own = std::env::current_exe();
    let own = own.map_err(|error| SimFailure::Run(format!("the path of this program: {error}")))?;
    let mut command = Command::new(own.with_file_name("mpiexec"));
    command.args(["-n", &args.ranks.to_string(), "-deadlock", "off", "--"]).args(&args.program);
    command.env("WEFT_PROGRESS", "none");
    command.env("WEFT_SIM_CLOCKS", if args.clocks { "1" } else { "0" });
    command.envs(args.environment.iter().cloned());
    if let MapChoice::Named(name) = map {
        command.env("WEFT_MAP", name);
    }
    Ok(command)
}

fn exit_code(outcome: &SimJobOutcome) -> u8 {
    use std::os::unix::process::ExitStatusExt;
    let status = outcome.status;
    status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(1) as u8
}
