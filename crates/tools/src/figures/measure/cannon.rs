//! Matrix multiplication by Cannon's algorithm on a square of ranks, its blocks on their way while
//! the product of the blocks before is computed.
//!
//! ```text
//!   align   row i of A goes i to the left, column j of B j up
//!   step    receive and send the next blocks ── product of these ── MPI_Wait for all four
//! ```
//! q ranks a side: q steps, of which the last sends nothing.

use super::progress::{Program, limits, registered, under};
use super::{Measured, mean, world};
use crate::figures::workload::{Cannon, Part, Team};
use std::rc::Rc;
use weft_fabric_sim::machine::Policy;
use weft_fabric_sim::units::{Count, MICROSECOND, Picoseconds};
use weft_fabric_sim::{Machine, Options};

/// Cores of a node that the document could use: 4 of 8, for a square of processes (section 5.4).
const CORES: usize = 4;
/// A double.
const ELEMENT: usize = 8;

/// Microseconds of one multiplication of two `size` by `size` matrices on `nodes` nodes, or of it in
/// MPI_Wait, the mean over ranks.
pub fn multiply(machine: &Rc<Machine>, (nodes, size): (usize, usize), what: Cannon) -> Measured {
    let mut machine = Machine::clone(&under(&registered(machine), Policy::RoundRobin));
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
    let outcome = world(machine, Options::new(ranks), limits(), |rank| {
        let program = Program::new(rank, what.progress, machine);
        async move {
            let (row, column) = (program.rank.comm.rank() / side, program.rank.comm.rank() % side);
            let at = |row: usize, column: usize| row % side * side + column % side;
            let bytes = block * block * ELEMENT;
            program.together().await?;
            program.waited();
            let start = program.sim().clock();
            let (left, right) = (at(row, column + side - row), at(row, column + row));
            let (up, down) = (at(row + side - column, column), at(row + column, column));
            let ways = [(row > 0, left, right), (column > 0, up, down)];
            let moves: Vec<_> = ways.into_iter().filter(|way| way.0).collect();
            let mut actives = Vec::new();
            actives.extend(moves.iter().map(|&(_, _, from)| program.receive(bytes, from)));
            actives.extend(moves.iter().map(|&(_, to, _)| program.send(bytes, to)));
            for active in actives {
                program.finish(active).await?;
            }
            for step in 0..side {
                let mut actives = Vec::new();
                if step + 1 < side {
                    actives.push(program.receive(bytes, at(row, column + 1)));
                    actives.push(program.receive(bytes, at(row + 1, column)));
                    actives.push(program.send(bytes, at(row, column + side - 1)));
                    actives.push(program.send(bytes, at(row + side - 1, column)));
                }
                program.compute(work).await;
                for active in actives {
                    program.finish(active).await?;
                }
            }
            let took = match what.part {
                Part::Total => program.sim().clock() - start,
                Part::Wait => program.waited(),
            };
            Ok(took as f64 / MICROSECOND as f64)
        }
    })?;
    mean(&outcome)
}

/// A product of two square blocks, shared by threads: each on a core of its own.
fn product(machine: &Machine, block: usize, threads: usize) -> Picoseconds {
    let alone = machine.host.flops.time(2 * block.pow(3)) / threads as Picoseconds;
    if threads > 1 { alone + machine.host.fork.0 } else { alone }
}
