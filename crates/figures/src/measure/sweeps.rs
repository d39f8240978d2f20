//! A small model of a time step of NAS SP: each rank exchanges faces with all neighbours, and then solves lines in three
//! directions. Each solve is a pipeline forward and back over the cells of a multi-partition.
//!
//! ```text
//!   p = q * q ranks, q cells each     step = faces; 3 times: q stages forward, q stages back
//!   stage = receive from the rank before ── solve a cell ── send to the next rank
//! ```
//! Sizes of class B: 102 points a side. A cell has (102 / q) cubed points. A face of a solve carries 22 doubles a point forward
//! and 10 back; a face of the exchange carries 10 (two layers of five).

use super::progress::{DesignProgram, limits, registered, usual};
use super::{Measured, mean, world};
use crate::workload::{MeasuredPart, Progress};
use std::rc::Rc;
use weft_fabric_sim::units::{MICROSECOND, Picoseconds};
use weft_fabric_sim::{Machine, SimOptions};

const POINTS: usize = 102;
const DOUBLE: usize = 8;
/// Number of time steps. It is the same for every effort, because a scheduler remembers how long threads have run and slept.
const STEPS: usize = 20;
/// Number of operations at a point in a time step: 447 * 10^9 in 400 steps (NPB 2.3, class B).
const OPERATIONS: usize = 1054;

/// Returns the time of a time step in microseconds, or only its time in MPI_Wait. The value is the mean over ranks.
pub fn step(machine: &Rc<Machine>, ranks: usize, design: Progress, part: MeasuredPart) -> Measured {
    let machine = &usual(&registered(machine), design);
    let side = ranks.isqrt();
    if side * side != ranks || side < 2 {
        return Err(format!("{ranks} ranks are no square"));
    }
    let edge = POINTS / side;
    let cell = machine.host.flops.time(edge.pow(3) * OPERATIONS);
    let face = edge * edge * DOUBLE;
    let outcome = world(machine, SimOptions::new(ranks), limits(), |rank| {
        let program = DesignProgram::new(rank, design, machine);
        async move {
            let (row, column) = (program.rank.comm.rank() / side, program.rank.comm.rank() % side);
            let at = |row: usize, column: usize| row % side * side + column % side;
            // The row before and the column before. Adding `side` keeps the differences positive.
            let (less, back) = (row + side - 1, column + side - 1);
            // The rank before and the rank after, for each direction of the multi-partition.
            let ways = [
                (at(row, back), at(row, column + 1)),
                (at(less, column), at(row + 1, column)),
                (at(less, back), at(row + 1, column + 1)),
            ];
            program.begin().await?;
            program.waited();
            let start = program.sim().clock();
            for _ in 0..STEPS {
                faces(&program, &ways, 10 * face * side).await?;
                program.compute(cell * side as Picoseconds / 4).await;
                for (before, next) in ways {
                    // The right-hand side is a quarter of the work. The three solves are the rest.
                    let (bytes, stages) = (22 * face, side);
                    let forward = Solve { from: before, to: next, bytes, stages, work: cell / 6 };
                    solve(&program, forward).await?;
                    let bytes = 10 * face;
                    let back = Solve { from: next, to: before, bytes, stages, work: cell / 12 };
                    solve(&program, back).await?;
                }
            }
            let took = match part {
                MeasuredPart::Total => program.sim().clock() - start,
                MeasuredPart::Wait => program.waited(),
            };
            Ok(took as f64 / MICROSECOND as f64 / STEPS as f64)
        }
    })?;
    mean(&outcome)
}

async fn faces(
    program: &DesignProgram,
    ways: &[(usize, usize); 3],
    bytes: usize,
) -> Result<(), String> {
    let mut actives = Vec::new();
    for &(before, next) in ways {
        actives.push(program.receive(bytes, before));
        actives.push(program.receive(bytes, next));
    }
    for &(before, next) in ways {
        actives.push(program.send(bytes, next));
        actives.push(program.send(bytes, before));
    }
    for active in actives {
        program.finish(active).await?;
    }
    Ok(())
}

/// Computation of one rank in one direction, with a stage for each cell.
struct Solve {
    /// Rank from which the data of a stage come.
    from: usize,
    to: usize,
    bytes: usize,
    stages: usize,
    /// Time of a stage.
    work: Picoseconds,
}

/// Runs the stages of one direction. Like SP, it posts the receive for the next cell before it solves this cell.
async fn solve(program: &DesignProgram, solve: Solve) -> Result<(), String> {
    let Solve { from, to, bytes, stages, work } = solve;
    let mut sent = None;
    for stage in 0..stages {
        let asked = (stage > 0).then(|| program.receive(bytes, from));
        // Computes the half of the work that needs no data of the other rank.
        program.compute(work / 2).await;
        if let Some(asked) = asked {
            program.finish(asked).await?;
        }
        program.compute(work / 2).await;
        if let Some(sent) = sent.take() {
            program.finish(sent).await?;
        }
        if stage + 1 < stages {
            sent = Some(program.send(bytes, to));
        }
    }
    Ok(())
}
