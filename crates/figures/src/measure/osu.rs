//! Collective operations as the OSU benchmarks measure them: all ranks begin at a common start, each rank measures its own time, and
//! the result is the mean over the ranks.

use super::collectives::{named, served};
use super::streams::{operate, same_node};
use super::{Measured, each, mean, world};
use std::cell::Cell;
use std::rc::Rc;
use weft_collective::{CollectiveKind, Selection};
use weft_fabric_sim::{Machine, SimOptions};
use weft_p2p::ProtocolLimits;

/// Number of operations before the measured operations. The first operation of a pair of ranks creates the state of the pair.
const WARM_UP: usize = 2;

/// Collective operation to measure.
pub struct OsuCollective {
    pub operation: CollectiveKind,
    /// Name of the algorithm. `None`: the library chooses.
    pub name: Option<&'static str>,
    pub ranks: usize,
}

/// Returns the mean time of an operation in microseconds, over the ranks and `rounds` rounds. The payload has a size but no bytes.
pub fn latency(
    machine: &Rc<Machine>,
    what: OsuCollective,
    bytes: usize,
    rounds: usize,
) -> Measured {
    let OsuCollective { operation, name, ranks } = what;
    let selection = match name {
        Some(name) => named(operation, name)?,
        None => Rc::new(Selection::default()),
    };
    let latest = Rc::new(Cell::new(0));
    let outcome = world(machine, SimOptions::new(ranks), ProtocolLimits::default(), |rank| {
        let (selection, latest) = (selection.clone(), latest.clone());
        async move {
            rank.comm.select(selection);
            served(&rank.comm, operation, bytes)?;
            let mut own = 0;
            for round in 0..WARM_UP + rounds {
                same_node(&rank, &latest).await?;
                let start = rank.sim.clock();
                operate(&rank, operation, bytes).await?;
                if round >= WARM_UP {
                    own += rank.sim.clock() - start;
                }
            }
            Ok(each(0, own, rounds))
        }
    })?;
    mean(&outcome)
}
