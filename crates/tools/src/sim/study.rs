//! Runs of which a table consists: every number of ranks with every algorithm, payload and fan-in.

use super::measure::{Conditions, RunFigure, measure};
use super::{SimArgs, SimFailure};
use indicatif::{ProgressBar, ProgressStyle};
use std::rc::Rc;
use std::time::Duration;
use weft_fabric_sim::Machine;
use weft_patterns::{PatternAlgorithm, PatternError, PatternPlan, PatternText, PayloadPresence};

/// Properties of a column, in which the columns of a table differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableColumn {
    pub algorithm: PatternAlgorithm,
    pub bytes: usize,
    /// Number of ranks that send to one rank; `None` for all other ranks.
    pub fan_in: Option<usize>,
}

/// A table to be made.
pub struct StudyTable {
    pub about: &'static PatternText,
    pub ranks: Vec<usize>,
    pub algorithms: Vec<PatternAlgorithm>,
    /// Payloads in bytes; a single 0 for a pattern without payload.
    pub bytes: Vec<usize>,
    /// Numbers of ranks that send to one rank; a single `None` for a pattern without a fan-in.
    pub fan_ins: Vec<Option<usize>>,
    pub repeat: usize,
    pub warm_up: usize,
    pub isolated: bool,
}

/// Maximum total number of bytes in the messages of a repetition with real payload. If there are more, payload has only a size.
pub const REAL_MOST: usize = 16 << 20;

/// Payload in bytes if none is given.
const USUAL_BYTES: usize = 8;

/// Maximum number of ranks if the user gives no numbers. Then powers of two up to this number are used.
const USUAL_RANKS: usize = 64;

/// Minimum number of messages of a run that shows a progress bar.
const LONG: u64 = 1_000_000;

fn refuse<T>(why: impl Into<String>) -> Result<T, SimFailure> {
    Err(SimFailure::Request(why.into()))
}

impl StudyTable {
    /// Creates a study. Errors: an impossible request, with the allowed values.
    pub fn new(args: &SimArgs, machine: &Machine) -> Result<StudyTable, SimFailure> {
        let name = args.pattern.as_deref().unwrap_or_default();
        let about = weft_patterns::find(name).map_err(request)?;
        let study = StudyTable {
            about,
            ranks: ranks(args, about, machine)?,
            algorithms: algorithms(args, about)?,
            bytes: bytes(args, about)?,
            fan_ins: fan_ins(args, about)?,
            repeat: args.repeat,
            warm_up: args.warm_up,
            isolated: args.isolated,
        };
        for plan in study.plans() {
            plan.check().map_err(request)?;
        }
        Ok(study)
    }

    /// Returns the columns of a table whose rows are numbers of ranks.
    pub fn series(&self) -> Vec<TableColumn> {
        let mut series = Vec::new();
        for &algorithm in &self.algorithms {
            for &bytes in &self.bytes {
                for &fan_in in &self.fan_ins {
                    series.push(TableColumn { algorithm, bytes, fan_in });
                }
            }
        }
        series
    }

    pub fn plan(&self, ranks: usize, series: &TableColumn) -> PatternPlan {
        let mut plan = PatternPlan {
            about: self.about,
            ranks,
            algorithm: series.algorithm,
            bytes: series.bytes,
            fan_in: series.fan_in.unwrap_or(ranks.saturating_sub(1)),
            warm_up: self.warm_up,
            repeat: self.repeat,
            isolated: self.isolated,
            payload: PayloadPresence::Real,
        };
        if (self.about.messages)(ranks).saturating_mul(series.bytes) > REAL_MOST {
            plan.payload = PayloadPresence::Phantom;
        }
        plan
    }

    /// Returns the plans of all runs: all columns for each number of ranks.
    pub fn plans(&self) -> Vec<PatternPlan> {
        let series = self.series();
        let row = |&ranks| series.iter().map(move |series| self.plan(ranks, series));
        self.ranks.iter().flat_map(row).collect()
    }

    /// Returns the figures of all plans, in their order.
    pub fn run(
        &self,
        machine: &Rc<Machine>,
        conditions: &Conditions,
    ) -> Result<Vec<RunFigure>, SimFailure> {
        let plans = self.plans();
        let bar = progress(plans.iter().map(work).fold(0, u64::saturating_add));
        let mut figures = Vec::with_capacity(plans.len());
        for plan in &plans {
            bar.set_message(format!("{} ranks, {}", plan.ranks, plan.algorithm.label()));
            let (each, lap) = ((plan.about.messages)(plan.ranks) as u64, bar.clone());
            figures.push(measure(machine, plan, conditions, move || lap.inc(each))?);
        }
        bar.finish_and_clear();
        Ok(figures)
    }
}

/// Returns the approximate work of simulating a plan, in messages.
fn work(plan: &PatternPlan) -> u64 {
    let laps = plan.warm_up.saturating_add(plan.repeat) as u64;
    ((plan.about.messages)(plan.ranks) as u64).saturating_mul(laps.saturating_add(1))
}

/// Returns a progress bar, which is visible on a terminal if the run is long.
fn progress(work: u64) -> ProgressBar {
    if work < LONG {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(work);
    let style = "{msg:24} {bar:30} {percent:>3} %  {eta_precise} left";
    bar.set_style(ProgressStyle::with_template(style).expect("a right template"));
    bar.enable_steady_tick(Duration::from_millis(250));
    bar
}

fn request(error: PatternError) -> SimFailure {
    SimFailure::Request(error.to_string())
}

fn ranks(args: &SimArgs, about: &PatternText, machine: &Machine) -> Result<Vec<usize>, SimFailure> {
    let most = machine.nodes.0.saturating_mul(machine.ranks_per_node.0);
    let least = about.least_ranks.max(1);
    let Some(given) = &args.ranks else {
        let widest = args.fan_in.as_ref().and_then(|f| f.0.iter().max());
        if let Some(fan_in) = widest.filter(|_| about.fans_in) {
            let ranks = fan_in.saturating_add(1).max(2);
            return match ranks <= most {
                true => Ok(vec![ranks]),
                false => refuse(format!(
                    "--fan-in {fan_in}: {} has room for {most} ranks, so at most {}",
                    machine.name,
                    most - 1
                )),
            };
        }
        let usual: Vec<usize> = if most <= 16 {
            (2.min(most)..=most).collect()
        } else {
            let doubled = |n: &usize| Some(2 * n).filter(|&n| n <= most.min(USUAL_RANKS));
            std::iter::successors(Some(2), doubled).collect()
        };
        return Ok(usual);
    };
    for &ranks in &given.0 {
        if ranks < least {
            let name = about.name;
            return refuse(format!("--ranks {ranks}: {name} runs on {least} or more"));
        }
        if ranks > most {
            let name = &machine.name;
            return refuse(format!("--ranks {ranks}: {name} has room for 1 to {most}"));
        }
    }
    Ok(given.0.clone())
}

fn algorithms(
    args: &SimArgs,
    about: &'static PatternText,
) -> Result<Vec<PatternAlgorithm>, SimFailure> {
    if args.algorithm.is_empty() {
        return Ok(vec![about.algorithms()[0]]);
    }
    if args.algorithm.iter().any(|name| name.trim().eq_ignore_ascii_case("all")) {
        return Ok(about.algorithms());
    }
    let wrong = |why| SimFailure::Request(format!("--algorithm: {why}"));
    let find = |name: &String| about.algorithm(name.trim()).map_err(wrong);
    args.algorithm.iter().map(find).collect()
}

fn bytes(args: &SimArgs, about: &PatternText) -> Result<Vec<usize>, SimFailure> {
    match (&args.bytes, about.payload) {
        (None, None) => Ok(vec![0]),
        (None, Some(_)) => Ok(vec![USUAL_BYTES]),
        (Some(_), None) => refuse(format!("--bytes: {} has no payload", about.name)),
        (Some(given), Some(_)) => Ok(given.0.clone()),
    }
}

fn fan_ins(args: &SimArgs, about: &PatternText) -> Result<Vec<Option<usize>>, SimFailure> {
    let Some(given) = &args.fan_in else { return Ok(vec![None]) };
    if !about.fans_in {
        let others = weft_patterns::ALL.iter().filter(|a| a.fans_in);
        let names: Vec<_> = others.map(|a| a.name).collect();
        let text = "has none; patterns that have one:";
        return refuse(format!("--fan-in: {} {text} {}", about.name, names.join(", ")));
    }
    if given.0.contains(&0) {
        return refuse("--fan-in 0: at least 1, and less than the number of ranks");
    }
    Ok(given.0.iter().copied().map(Some).collect())
}
