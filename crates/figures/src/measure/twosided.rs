//! One-sided operations made of messages: Multi-rail's point-to-point based design (section 2.3).
//!
//! ```text
//!   target: exposes, sends an empty message ──▶ origin: a message for each put, an empty one at the end ──▶ target: receives all
//! ```

use super::progress::{DesignProgram, registered};
use super::{Measured, WARM_UP, each, first, world};
use crate::workload::{OneSidedPattern, Progress};
use std::rc::Rc;
use weft_fabric_sim::{Machine, SimOptions};
use weft_p2p::ProtocolLimits;

/// Number of puts in an epoch, as for the direct design.
const PUTS: usize = super::onesided::OPERATIONS;

/// Runs an epoch of access to `peer`.
async fn access(
    program: &DesignProgram,
    peer: usize,
    puts: usize,
    bytes: usize,
) -> Result<(), String> {
    program.finish(program.receive(0, peer)).await?;
    let mut all: Vec<_> = (0..puts).map(|_| program.send(bytes, peer)).collect();
    all.push(program.send(0, peer));
    for active in all {
        program.finish(active).await?;
    }
    Ok(())
}

/// Runs an epoch of exposure to `peer`.
async fn expose(
    program: &DesignProgram,
    peer: usize,
    puts: usize,
    bytes: usize,
) -> Result<(), String> {
    program.finish(program.send(0, peer)).await?;
    let mut all: Vec<_> = (0..puts).map(|_| program.receive(bytes, peer)).collect();
    all.push(program.receive(0, peer));
    for active in all {
        program.finish(active).await?;
    }
    Ok(())
}

/// Measures an epoch on one rail, with memory in the registration cache. For the latency test, returns the time of one put in
/// microseconds. For the other tests, returns the bytes per microsecond of [`PUTS`] puts.
pub fn measure(
    machine: &Rc<Machine>,
    bytes: usize,
    test: OneSidedPattern,
    rounds: usize,
) -> Measured {
    let mut used = Machine::clone(machine);
    used.rail.truncate(1);
    let machine = &registered(&Rc::new(used));
    let there_and_back = match test {
        OneSidedPattern::PutLatency => true,
        OneSidedPattern::Put => false,
        other => return Err(format!("{other:?} is not made of messages here")),
    };
    let puts = if there_and_back { 1 } else { PUTS };
    let outcome = world(machine, SimOptions::new(2), ProtocolLimits::default(), |rank| {
        let program = DesignProgram::new(rank, Progress::None, machine);
        async move {
            let peer = 1 - program.rank.comm.rank();
            let mut start = 0;
            for round in 0..WARM_UP + rounds {
                if round == WARM_UP {
                    start = program.sim().clock();
                }
                if peer == 1 {
                    access(&program, peer, puts, bytes).await?;
                    if there_and_back {
                        expose(&program, peer, puts, bytes).await?;
                    }
                } else {
                    expose(&program, peer, puts, bytes).await?;
                    if there_and_back {
                        access(&program, peer, puts, bytes).await?;
                    }
                }
            }
            let time = each(start, program.sim().clock(), rounds);
            Ok(if there_and_back { time / 2.0 } else { (bytes * puts) as f64 / time })
        }
    })?;
    first(&outcome)
}
