//! A collective operation in virtual time. All ranks begin at the same instant.
//!
//! ```text
//!   warm up, warm up, measured:   |begin ── the operation ── last end|  barrier, slack  |begin ...
//! ```
//! The figure is the time from the common beginning to the last rank's end. Payload has only a size.

use super::grid::{ELEMENT, UNKNOWN};
use std::cell::Cell;
use std::pin::Pin;
use std::rc::Rc;
use weft_collective::{CollectiveKind, ElementReduction, Prefix, RankPlacement, Selection};
use weft_datatype::{Basic, Predefined, Type};
use weft_fabric::wait::WaitPolicy;
use weft_fabric::{FabricExt, Sge};
use weft_fabric_sim::units::{MICROSECOND, Picoseconds};
use weft_fabric_sim::{Machine, Sim, SimOptions, run};
use weft_p2p::{ProtocolLimits, SendMode};
use weft_process::{Buffer, Comm, Destination, Engine, Error, Group, Lengths, Origin};

/// Number of repetitions before the measured repetition. They create slots, groups and registrations, which differ for even and odd
/// repetitions.
const WARM_UP: usize = 2;

/// Time from the last end of one repetition to the next beginning: longer than any barrier.
const SLACK: Picoseconds = 5000 * MICROSECOND;

/// A commutative operator that computes nothing, because payload has only a size.
struct Sum;

impl ElementReduction for Sum {
    fn combine(&self, _: Sge, _: Sge) {}

    fn commutes(&self) -> bool {
        true
    }
}

/// Datatypes of data and of numbers.
#[derive(Clone)]
struct PayloadTypes {
    byte: Type,
    int: Type,
}

/// Returns a call of `operation` with rank 0 as the root. [`CollectiveKind::measure`] defines the meaning of `bytes`.
fn call(
    comm: &Comm<Sim>,
    operation: CollectiveKind,
    bytes: usize,
    types: &PayloadTypes,
) -> Pin<Box<dyn Future<Output = Result<(), Error>>>> {
    let PayloadTypes { byte, int } = types;
    let (size, root) = (comm.size(), comm.rank() == 0);
    let data = |bytes: usize| Buffer::phantom(bytes, byte.clone());
    let numbers = |bytes: usize| Buffer::phantom(bytes / ELEMENT, int.clone());
    let blocks = |bytes: usize| (0..size).map(|_| data(bytes)).collect::<Vec<_>>();
    let at_root = |bytes: usize| if root { blocks(bytes) } else { Vec::new() };
    let sum = || Rc::new(Sum);
    use CollectiveKind::*;
    match operation {
        Barrier => Box::pin(comm.barrier()),
        Bcast => Box::pin(comm.bcast(data(bytes), 0.into())),
        Gather => Box::pin(comm.gather(
            Some(data(bytes)),
            at_root(bytes).into(),
            0.into(),
            Lengths::Equal,
        )),
        Gatherv => Box::pin(comm.gather(
            Some(data(UNKNOWN)),
            at_root(UNKNOWN).into(),
            0.into(),
            Lengths::Varying,
        )),
        Scatter => Box::pin(comm.scatter(
            at_root(bytes).into(),
            Some(data(bytes)),
            0.into(),
            Lengths::Equal,
        )),
        Scatterv => Box::pin(comm.scatter(
            at_root(UNKNOWN).into(),
            Some(data(UNKNOWN)),
            0.into(),
            Lengths::Varying,
        )),
        Allgather => Box::pin(comm.allgather(Some(data(bytes)), blocks(bytes).into())),
        Alltoall => Box::pin(comm.alltoall(
            Some(blocks(bytes).into()),
            blocks(bytes).into(),
            Lengths::Equal,
        )),
        Alltoallv => Box::pin(comm.alltoall(
            Some(blocks(UNKNOWN).into()),
            blocks(UNKNOWN).into(),
            Lengths::Varying,
        )),
        Reduce => {
            let receive = root.then(|| numbers(bytes));
            Box::pin(comm.reduce(Some(numbers(bytes)), receive, 0.into(), sum()))
        }
        Allreduce => Box::pin(comm.allreduce(Some(numbers(bytes)), numbers(bytes), sum())),
        ReduceScatter => {
            let count = bytes / ELEMENT;
            let counts: Vec<_> =
                (0..size).map(|i| count / size + usize::from(i < count % size)).collect();
            let receive = numbers(counts[comm.rank()] * ELEMENT);
            Box::pin(comm.reduce_scatter(numbers(bytes), counts, receive, sum()))
        }
        Scan | Exscan => {
            let prefix = if operation == Exscan { Prefix::Exclusive } else { Prefix::Inclusive };
            Box::pin(comm.scan(Some(numbers(bytes)), numbers(bytes), sum(), prefix))
        }
    }
}

/// Waits until the virtual time `at`.
async fn until(sim: &Sim, at: Picoseconds) {
    let span = at.saturating_sub(sim.clock());
    let deadline = sim.after(span);
    let _ = std::future::poll_fn(|cx| sim.poll_any(&[], Some(deadline), cx)).await;
}

/// Runs `program` as every rank of MPI_COMM_WORLD and returns the results.
fn world<T, P>(
    machine: &Rc<Machine>,
    ranks: usize,
    limits: ProtocolLimits,
    mut program: impl FnMut(Sim, Rc<Comm<Sim>>) -> P,
) -> Result<Vec<T>, String>
where
    T: 'static,
    P: Future<Output = Result<T, String>> + 'static,
{
    let group = Group::new((0..ranks as u32).collect::<Rc<[u32]>>());
    let outcome = run(machine, SimOptions::new(ranks), |sim| {
        let engine = Engine::new(sim.clone(), WaitPolicy::new(true), limits);
        let comm = Comm::world_of(&engine, group.clone());
        engine.run(program(sim, comm))
    });
    let outcome = outcome.map_err(|e| e.to_string())?;
    let result = |(rank, result)| match result {
        Some(Ok(value)) => Ok(value),
        Some(Err(why)) => Err(format!("rank {rank}: {why}")),
        None => Err(format!("rank {rank} did not end")),
    };
    outcome.results.into_iter().enumerate().map(result).collect()
}

fn text(error: Error) -> String {
    format!("{error:?}")
}

/// Returns the microseconds of one `operation` with the algorithm that `selection` chooses.
///
/// # Errors
/// A deadlock, or the error of the operation.
pub fn measure(
    machine: &Rc<Machine>,
    ranks: usize,
    operation: CollectiveKind,
    bytes: usize,
    selection: &Rc<Selection>,
) -> Result<f64, String> {
    let all = Predefined::new();
    let types = PayloadTypes { byte: all.of(Basic::BYTE).clone(), int: all.of(Basic::INT).clone() };
    // The latest end so far, over all ranks.
    let latest = Rc::new(Cell::new(0));
    let begins = world(machine, ranks, ProtocolLimits::default(), |sim, comm| {
        let (selection, types, latest) = (selection.clone(), types.clone(), latest.clone());
        async move {
            comm.select(selection);
            let aside = comm.nonblocking_context().clone();
            let mut begin = SLACK;
            for lap in 0..=WARM_UP {
                until(&sim, begin).await;
                call(&comm, operation, bytes, &types).await.map_err(text)?;
                latest.set(latest.get().max(sim.clock()));
                if lap < WARM_UP {
                    // After the barrier all ends are known, and no rank has begun again.
                    aside.barrier().await.map_err(text)?;
                    begin = latest.get() + SLACK;
                }
            }
            comm.close().await.map_err(text)?;
            Ok(begin)
        }
    })?;
    Ok((latest.get() - begins[0]) as f64 / MICROSECOND as f64)
}

/// Returns the microseconds of a message of `bytes` bytes from rank 0 to rank `peer`, until it is received.
///
/// # Errors
/// A deadlock, or the error of the message.
pub fn message(
    machine: &Rc<Machine>,
    peer: usize,
    bytes: usize,
    limits: ProtocolLimits,
) -> Result<f64, String> {
    let byte = Predefined::new().of(Basic::BYTE).clone();
    let times = world(machine, peer + 1, limits, |sim, comm| {
        let data = Buffer::phantom(bytes, byte.clone());
        async move {
            for lap in 0..=WARM_UP as u64 {
                until(&sim, (lap + 1) * SLACK).await;
                let active = match comm.rank() {
                    0 => comm.isend(&data, Destination::Rank(peer), 0, SendMode::Standard),
                    me if me == peer => comm.irecv(&data, Origin::Rank(0), Some(0)),
                    _ => continue,
                };
                comm.finished(active).await.map_err(text)?;
            }
            Ok(sim.clock())
        }
    })?;
    Ok((times[peer] - (WARM_UP as u64 + 1) * SLACK) as f64 / MICROSECOND as f64)
}

/// Returns the placement of the first `ranks` ranks of a machine, by which algorithms are chosen.
pub fn site(machine: &Rc<Machine>, ranks: usize) -> Result<RankPlacement, String> {
    let limits = ProtocolLimits::default();
    let sites = world(machine, ranks, limits, |_, comm| async move { Ok(comm.site()) })?;
    Ok(sites[0])
}
