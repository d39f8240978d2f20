//! Time steps of a program on many ranks: large faces to four neighbours, computation that differs a little between ranks, and a
//! barrier in every fourth step.
//!
//! ```text
//!   torus of q * q ranks      step = start 4 receives, 4 sends ── compute ── wait for all     every 4th: a barrier
//! ```
//! If a rank makes no progress on transfers while it computes, the transfers and its neighbours wait until the computation is
//! complete. The distance over which such delays spread grows with the number of ranks. The machine has as many nodes as there are
//! ranks, and all designs run under the policy that the document found best, round robin.

use super::progress::{DesignProgram, limits, registered, under};
use super::{Measured, mean, world};
use crate::workload::Progress;
use std::rc::Rc;
use weft_fabric_sim::machine::SchedulerPolicy;
use weft_fabric_sim::units::{Count, MICROSECOND, Picoseconds};
use weft_fabric_sim::{Machine, SimOptions};

const FACE: usize = 256 << 10;
const STEPS: usize = 8;
const BETWEEN_BARRIERS: usize = 4;
/// Mean time of the computation in a step.
const WORK: Picoseconds = 1500 * MICROSECOND;
/// Maximum difference between the computing times of two ranks in a step.
const APART: Picoseconds = WORK / 2;

/// Returns a pseudo-random number below 1000.
fn scatter(rank: usize, step: usize) -> u64 {
    let word = (rank as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ step as u64;
    (word.wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 32) % 1000
}

/// Returns the time of a step in microseconds. The value is the mean over ranks.
pub fn step(machine: &Rc<Machine>, ranks: usize, design: Progress) -> Measured {
    let side = ranks.isqrt();
    if side * side != ranks || side < 3 {
        return Err(format!("{ranks} ranks are no square of 3 and more"));
    }
    let mut wide = Machine::clone(&under(&registered(machine), SchedulerPolicy::RoundRobin));
    wide.nodes = Count(wide.nodes.0.max(ranks));
    let machine = &Rc::new(wide);
    let outcome = world(machine, SimOptions::new(ranks), limits(), |rank| {
        let program = DesignProgram::new(rank, design, machine);
        async move {
            let me = program.rank.comm.rank();
            let (row, column) = (me / side, me % side);
            let at = |row: usize, column: usize| row % side * side + column % side;
            let neighbors = [
                at(row, column + 1),
                at(row, column + side - 1),
                at(row + 1, column),
                at(row + side - 1, column),
            ];
            program.begin().await?;
            let start = program.sim().clock();
            for step in 0..STEPS {
                let receives = neighbors.map(|peer| program.receive(FACE, peer));
                let sends = neighbors.map(|peer| program.send(FACE, peer));
                let more = APART / 1000 * scatter(me, step);
                program.compute(WORK - APART / 2 + more).await;
                for active in receives.into_iter().chain(sends) {
                    program.finish(active).await?;
                }
                if (step + 1) % BETWEEN_BARRIERS == 0 {
                    program.together().await?;
                }
            }
            Ok((program.sim().clock() - start) as f64 / MICROSECOND as f64 / STEPS as f64)
        }
    })?;
    mean(&outcome)
}
