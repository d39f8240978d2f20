//! One run of a pattern in virtual time.

use super::failure::SimFailure;
use crate::library_selection::MapChoice;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::Instant;
use weft_fabric::FabricExt;
use weft_fabric::wait::WaitPolicy;
use weft_fabric_sim::units::{Picoseconds, Time};
use weft_fabric_sim::{Machine, SimOptions, Trace, run};
use weft_p2p::ProtocolLimits;
use weft_patterns::{Laps, PatternError, PatternPlan, PatternRank, PatternWorld};

/// Parameters of a run that belong neither to the pattern nor to the machine.
#[derive(Debug, Clone)]
pub struct Conditions {
    /// Parameters of the machine that differ from its file: key, value.
    pub changes: Vec<(String, String)>,
    /// Seed of random numbers.
    pub seed: u64,
    /// Maximum delay of each operation.
    pub jitter: Time,
}

impl Conditions {
    /// Returns the changes for a title: nothing, or ` with a = 1, b = 2`.
    pub fn changed(&self) -> String {
        let list: Vec<_> =
            self.changes.iter().map(|(key, value)| format!("{key} = {value}")).collect();
        if list.is_empty() { String::new() } else { format!(" with {}", list.join(", ")) }
    }

    /// Returns the jitter for a title: nothing, or the maximum delay and the seed.
    pub fn noise(&self) -> String {
        match self.jitter {
            Time(0) => String::new(),
            jitter => format!("; jitter up to {} us, seed {}", jitter.us(), self.seed),
        }
    }
}

/// Result over the repetitions of one run, in the unit of the pattern.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RunFigure {
    /// Mean over all repetitions.
    pub mean: f64,
    /// Minimum over the repetitions.
    pub least: f64,
    /// Maximum over the repetitions.
    pub most: f64,
}

/// Outcome of a run: the laps of each rank, and the trace.
pub struct Ran {
    /// Laps, by rank.
    pub laps: Vec<Laps>,
    /// The trace, if requested.
    pub trace: Option<Trace>,
    /// The instant at which virtual time began.
    origin: Instant,
}

impl Ran {
    /// Converts an instant of a lap to virtual time, with a precision of a nanosecond.
    pub fn time(&self, at: Instant) -> Picoseconds {
        at.saturating_duration_since(self.origin).as_nanos() as u64 * 1000
    }
}

/// Record that a run makes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Recording {
    /// Only the laps of the ranks.
    Figure,
    /// Also the trace of the simulator.
    Trace,
}

/// Runs a plan. Calls `on_lap` at the start of each repetition. Errors: parameters that the machine does not allow, a deadlock.
pub fn ran(
    machine: &Rc<Machine>,
    plan: &PatternPlan,
    conditions: &Conditions,
    recording: Recording,
    on_lap: impl Fn() + 'static,
) -> Result<Ran, SimFailure> {
    let world = PatternWorld::watched(plan.clone(), on_lap).map_err(failure)?;
    let selection = MapChoice::by_environment(Some(machine)).selection();
    let selection = Rc::new(selection.map_err(SimFailure::Request)?);
    let Conditions { seed, jitter, .. } = *conditions;
    let trace = recording == Recording::Trace;
    let options = SimOptions { jitter, trace, ..SimOptions::new(plan.ranks).seed(seed) };
    let origin = Cell::new(None);
    let error: Rc<RefCell<Option<PatternError>>> = Rc::default();
    let outcome = run(machine, options, |sim| {
        // No rank has run yet, so its clock is zero.
        origin.set(Some(sim.now()));
        let rank = PatternRank::new(sim, WaitPolicy::new(true), ProtocolLimits::default(), &world);
        rank.choose_by(selection.clone());
        let (program, error) = (rank.program(), error.clone());
        async move {
            match program.await {
                Ok(laps) => laps,
                Err(why) => {
                    error.borrow_mut().get_or_insert(why);
                    Laps::default()
                }
            }
        }
    });
    // If a rank has failed, the other ranks wait for it for ever. So the error of the rank is the reason of a deadlock.
    if let Some(error) = error.take() {
        return Err(failure(error));
    }
    let what =
        || format!("{} on {} ranks, {}", plan.about.name, plan.ranks, plan.algorithm.label());
    let outcome = outcome.map_err(|e| SimFailure::Run(format!("{}: {e}", what())))?;
    let laps: Vec<Laps> = outcome.results.into_iter().flatten().collect();
    let origin = origin.get().expect("there is at least one rank");
    Ok(Ran { laps, trace: outcome.trace, origin })
}

fn failure(error: PatternError) -> SimFailure {
    match error {
        PatternError::Refused(why) => SimFailure::Request(why),
        other => SimFailure::Run(other.to_string()),
    }
}

/// Runs a plan as [`ran`] does, and returns its figure.
pub fn measure(
    machine: &Rc<Machine>,
    plan: &PatternPlan,
    conditions: &Conditions,
    on_lap: impl Fn() + 'static,
) -> Result<RunFigure, SimFailure> {
    let ran = ran(machine, plan, conditions, Recording::Figure, on_lap)?;
    let figures = plan.about.measured.figures(&ran.laps, plan.bytes);
    let sum: f64 = figures.iter().sum();
    Ok(RunFigure {
        mean: sum / figures.len() as f64,
        least: figures.iter().copied().fold(f64::INFINITY, f64::min),
        most: figures.iter().copied().fold(0.0, f64::max),
    })
}
