//! Collective operations: the mean over all ranks of the mean over the iterations, as Kini measures
//! (sections 4.4 and 5.5).

use super::{Measured, WARM_UP, each, mean, text, world};
use std::collections::HashMap;
use std::rc::Rc;
use weft_collective::Reduce;
use weft_datatype::{Basic, Form, Op, Predefined};
use weft_fabric::{Fabric, Sge};
use weft_fabric_sim::{Machine, Options};
use weft_p2p::Limits;
use weft_process::{AllreduceAlgorithm, BarrierAlgorithm, Buffer, Selection};

/// Barriers by the documents' names. A new one is a line here.
const BARRIERS: &[(&str, BarrierAlgorithm)] =
    &[("MPI-PE", BarrierAlgorithm::PairwiseExchange), ("MPI-DS", BarrierAlgorithm::Dissemination)];

/// Allreduces by the documents' names. A new one is a line here.
const ALLREDUCES: &[(&str, AllreduceAlgorithm)] = &[
    ("MPI-PE", AllreduceAlgorithm::PairwiseExchange),
    ("MPI-GB", AllreduceAlgorithm::GatherBroadcast),
];

fn named<A: Copy>(what: &str, list: &[(&str, A)], name: &str) -> Result<A, String> {
    let known: Vec<_> = list.iter().map(|(name, _)| *name).collect();
    let found = list.iter().find(|(known, _)| *known == name).map(|(_, algorithm)| *algorithm);
    found.ok_or_else(|| format!("no {what} is called {name}; known: {}", known.join(", ")))
}

pub fn barrier(machine: &Rc<Machine>, ranks: usize, name: &str, iterations: usize) -> Measured {
    let selection =
        Selection { barrier: named("barrier", BARRIERS, name)?, ..Selection::default() };
    let outcome = world(machine, Options::new(ranks), Limits::default(), |rank| async move {
        rank.comm.selection.set(selection);
        for _ in 0..WARM_UP {
            rank.comm.barrier().await.map_err(text)?;
        }
        let start = rank.sim.clock();
        for _ in 0..iterations {
            rank.comm.barrier().await.map_err(text)?;
        }
        Ok(each(start, rank.sim.clock(), iterations))
    })?;
    mean(&outcome)
}

/// Messages of the longest chain in which each was sent after the one before had arrived.
pub fn steps(machine: &Rc<Machine>, ranks: usize, name: &str) -> Measured {
    let selection =
        Selection { barrier: named("barrier", BARRIERS, name)?, ..Selection::default() };
    let options = Options::new(ranks).trace();
    let outcome = world(machine, options, Limits::default(), |rank| async move {
        rank.comm.selection.set(selection);
        rank.comm.barrier().await.map_err(text)?;
        Ok(0.0)
    })?;
    mean(&outcome)?;
    let mut arrows = outcome.trace.unwrap_or_default().arrows;
    arrows.sort_by_key(|arrow| (arrow.sent, arrow.arrived));
    // By rank: when a message arrived, and the length of the chain that it ends.
    let mut arrived: HashMap<u32, Vec<(u64, usize)>> = HashMap::new();
    let mut longest = 0;
    for arrow in arrows {
        let before = arrived.get(&arrow.from).into_iter().flatten();
        let chain = 1 + before.filter(|(at, _)| *at <= arrow.sent).map(|c| c.1).max().unwrap_or(0);
        arrived.entry(arrow.to).or_default().push((arrow.arrived, chain));
        longest = longest.max(chain);
    }
    Ok(longest as f64)
}

/// MPI_SUM on MPI_INT.
struct Sum;

impl Reduce for Sum {
    fn combine(&self, left: Sge, right: Sge) {
        let count = right.len() / Basic::INT.size();
        let done = Op::Sum.apply(Basic::INT, Form::Packed, count, left, right);
        done.expect("MPI_SUM is defined on MPI_INT");
    }

    fn commutes(&self) -> bool {
        true
    }
}

fn bytes_of(values: impl Iterator<Item = i32>) -> Vec<u8> {
    values.flat_map(i32::to_ne_bytes).collect()
}

/// Real integers, and a wrong sum is an error.
pub fn allreduce(
    machine: &Rc<Machine>,
    ranks: usize,
    name: &'static str,
    integers: usize,
    iterations: usize,
) -> Measured {
    let selection =
        Selection { allreduce: named("allreduce", ALLREDUCES, name)?, ..Selection::default() };
    let (n, count) = (ranks as i32, integers as i32);
    let outcome = world(machine, Options::new(ranks), Limits::default(), |rank| async move {
        let (sim, comm) = (rank.sim, rank.comm);
        comm.selection.set(selection);
        let len = integers * Basic::INT.size();
        let (input, output) = (sim.allocate(len).map_err(text)?, sim.allocate(len).map_err(text)?);
        let me = comm.rank() as i32;
        // Element i of rank r is i * n + r, so that every element of every rank differs.
        input.local.fill(&bytes_of((0..count).map(|i| i * n + me)));
        let expected = bytes_of((0..count).map(|i| i * n * n + n * (n - 1) / 2));
        let op: Rc<dyn Reduce> = Rc::new(Sum);
        let int = Predefined::new().of(Basic::INT).clone();
        let call = || {
            let send = Buffer::over(input.local, int.clone());
            let receive = Buffer::over(output.local, int.clone());
            comm.allreduce(Some(send), receive, op.clone())
        };
        let mut result = vec![0; len];
        let mut start = 0;
        for i in 0..WARM_UP + iterations {
            if i == WARM_UP {
                start = sim.clock();
            }
            output.local.fill(&vec![0; len]);
            call().await.map_err(text)?;
            output.local.read(&mut result);
            if result != expected {
                return Err(format!("{name} of {integers} integers: a wrong sum"));
            }
        }
        Ok(each(start, sim.clock(), iterations))
    })?;
    mean(&outcome)
}
