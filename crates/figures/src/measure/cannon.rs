//! Matrix multiplication by Cannon's algorithm on a square of ranks. The next blocks travel while the product of the present
//! blocks is computed.
//!
//! ```text
//!   align     row i of A goes i to the left, column j of B j up
//!   step      send these blocks, receive the next ones ── product of these ── MPI_Wait for all four
//!   restore   as align, the other way
//! ```
//! With q ranks a side there are q steps. This is the nonblocking program of the book that the document cites: Kumar, Grama, Gupta,
//! Karypis, Introduction to Parallel Computing.

use super::progress::{DesignProgram, limits, registered, usual};
use super::{Measured, mean, world};
use crate::workload::{Cannon, MeasuredPart, Team};
use std::rc::Rc;
use weft_fabric_sim::units::{Count, MICROSECOND, Picoseconds};
use weft_fabric_sim::{Machine, SimOptions};

/// Number of cores of a node that the document uses. It uses only 4 of 8 cores, because the number of processes must be a square
/// (section 5.4).
const CORES: usize = 4;
/// Number of bytes of a double.
const ELEMENT: usize = 8;

/// Multiplication of two square matrices.
pub struct Multiplication {
    pub nodes: usize,
    /// Number of rows of a matrix.
    pub size: usize,
    pub what: Cannon,
}

/// Returns the time of a multiplication in microseconds, or only the time in MPI_Wait. The value is the mean over ranks.
pub fn multiply(machine: &Rc<Machine>, multiplication: Multiplication) -> Measured {
    let Multiplication { nodes, size, what } = multiplication;
    let mut machine = Machine::clone(&usual(&registered(machine), what.progress));
    let (each_node, threads) = match what.team {
        Team::Threads => (1, CORES),
        Team::Single => (1, 1),
        Team::Four => (CORES, 1),
    };
    machine.ranks_per_node = Count(each_node);
    let machine = &Rc::new(machine);
    let ranks = nodes * each_node;
    let side = ranks.isqrt();
    if side * side != ranks || !size.is_multiple_of(side) {
        return Err(format!("{size} by {size} elements on {ranks} ranks"));
    }
    let block = size / side;
    let work = product(machine, block, threads);
    let outcome = world(machine, SimOptions::new(ranks), limits(), |rank| {
        let program = DesignProgram::new(rank, what.progress, machine);
        async move {
            let (row, column) = (program.rank.comm.rank() / side, program.rank.comm.rank() % side);
            let at = |row: usize, column: usize| row % side * side + column % side;
            let bytes = block * block * ELEMENT;
            program.begin().await?;
            program.waited();
            let start = program.sim().clock();
            let (left, right) = (at(row, column + side - row), at(row, column + row));
            let (up, down) = (at(row + side - column, column), at(row + column, column));
            let (shifts_a, shifts_b) = (row > 0, column > 0);
            replace(&program, bytes, shifts_a.then_some((left, right))).await?;
            replace(&program, bytes, shifts_b.then_some((up, down))).await?;
            for _ in 0..side {
                let actives = [
                    program.send(bytes, at(row, column + side - 1)),
                    program.send(bytes, at(row + side - 1, column)),
                    program.receive(bytes, at(row, column + 1)),
                    program.receive(bytes, at(row + 1, column)),
                ];
                program.compute(work).await;
                for active in actives {
                    program.finish(active).await?;
                }
            }
            replace(&program, bytes, shifts_a.then_some((right, left))).await?;
            replace(&program, bytes, shifts_b.then_some((down, up))).await?;
            let took = match what.part {
                MeasuredPart::Total => program.sim().clock() - start,
                MeasuredPart::Wait => program.waited(),
            };
            Ok(took as f64 / MICROSECOND as f64)
        }
    })?;
    mean(&outcome)
}

/// Runs MPI_Sendrecv_replace: sends to one rank and receives from another rank.
async fn replace(
    program: &DesignProgram,
    bytes: usize,
    ways: Option<(usize, usize)>,
) -> Result<(), String> {
    let Some((to, from)) = ways else { return Ok(()) };
    let (receive, send) = (program.receive(bytes, from), program.send(bytes, to));
    program.finish(receive).await?;
    program.finish(send).await
}

/// Returns the time to multiply two square blocks with several threads, each on its own core.
fn product(machine: &Machine, block: usize, threads: usize) -> Picoseconds {
    let alone = machine.host.flops.time(2 * block.pow(3)) / threads as Picoseconds;
    if threads > 1 { alone + machine.host.fork.0 } else { alone }
}
