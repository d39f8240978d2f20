//! The programs that are measured, on every rank of a simulated cluster.

pub mod cannon;
pub mod collectives;
pub mod conjugate;
pub mod fences;
pub mod halos;
pub mod messages;
pub mod onesided;
pub mod osu;
mod progress;
pub mod raw;
pub mod streams;
pub mod sweeps;
pub mod tuned;
pub mod twosided;

use std::rc::Rc;
use weft_collective::arena::ArenaLimits;
use weft_fabric::wait::WaitPolicy;
use weft_fabric_sim::units::{MICROSECOND, Picoseconds};
use weft_fabric_sim::{Machine, RunOutcome, Sim, SimOptions, run};
use weft_p2p::ProtocolLimits;
use weft_process::{Comm, Engine, Group};

/// Number of iterations before the measured iterations.
const WARM_UP: usize = 4;

/// A rank of an MPI program in virtual time.
pub struct SimRank {
    pub sim: Sim,
    pub comm: Rc<Comm<Sim>>,
}

/// Result of a rank's program: its measurement, or the reason why it failed.
pub type Measured = Result<f64, String>;

/// Runs `program` as every rank of MPI_COMM_WORLD.
pub fn world<P>(
    machine: &Rc<Machine>,
    options: SimOptions,
    limits: ProtocolLimits,
    program: impl FnMut(SimRank) -> P,
) -> Result<RunOutcome<Measured>, String>
where
    P: Future<Output = Measured> + 'static,
{
    world_bounded(machine, options, limits, ArenaLimits::default(), program)
}

/// Runs `program` as [`world`] does, with limits on the writes of collective operations.
pub fn world_bounded<P>(
    machine: &Rc<Machine>,
    options: SimOptions,
    limits: ProtocolLimits,
    bounds: ArenaLimits,
    mut program: impl FnMut(SimRank) -> P,
) -> Result<RunOutcome<Measured>, String>
where
    P: Future<Output = Measured> + 'static,
{
    let group = Group::new((0..options.ranks as u32).collect::<Rc<[u32]>>());
    run(machine, options, |sim| {
        let engine = Engine::with_bounds(sim.clone(), WaitPolicy::new(true), limits, bounds);
        let comm = Comm::world_of(&engine, group.clone());
        engine.run(program(SimRank { sim, comm }))
    })
    .map_err(|e| e.to_string())
}

/// Returns the mean of the ranks' measurements.
pub fn mean(outcome: &RunOutcome<Measured>) -> Measured {
    let mut sum = 0.0;
    for (rank, result) in outcome.results.iter().enumerate() {
        match result {
            Some(Ok(value)) => sum += value,
            Some(Err(why)) => return Err(format!("rank {rank}: {why}")),
            None => return Err(format!("rank {rank} did not end")),
        }
    }
    Ok(sum / outcome.results.len() as f64)
}

/// Returns the measurement of rank 0, if no rank failed.
pub fn first(outcome: &RunOutcome<Measured>) -> Measured {
    mean(outcome)?;
    outcome.results[0].clone().unwrap_or_else(|| Err("rank 0 did not end".to_owned()))
}

/// Returns the mean time of an iteration in microseconds, given the start and the end of `iterations` iterations.
pub fn each(start: Picoseconds, end: Picoseconds, iterations: usize) -> f64 {
    (end - start) as f64 / MICROSECOND as f64 / iterations as f64
}

/// Formats an error of the fabric or of MPI.
pub fn text(error: impl std::fmt::Debug) -> String {
    format!("{error:?}")
}
