//! Collective operations, measured as in Kini (sections 4.4 and 5.5): each rank computes the mean over its iterations, and the
//! result is the mean over the ranks.
//!
//! Barriers follow one another without a pause. All ranks begin an allreduce at a common instant, and each rank measures its own
//! time. If allreduces followed one another without a pause, all ranks would have the same mean, the longest round trip, and "the
//! average time taken across all the process" (5.5) would be meaningless. The time of MPI-GB confirms this: at 8 nodes it is 1.56
//! times the time of MPI-PE (5.5.3, 5.5.5). 3 hops up and on average 1.5 hops down are 1.5 times the 3 hops of an exchange. If all
//! ranks counted the longest round trip, 3 hops up and 3 down, the factor would be 2.
//!
//! Algorithms on RDMA writes use the document's own maximum payload of a single write. This maximum is too large by one flag: 2 KiB
//! and a flag are two packets of the document's MTU. With this MTU, the flag overtakes data in the simulation, and sums are wrong.
//! So such a write is one packet here, as section 5.3.2 assumes. Nothing else depends on the MTU.

use super::{Measured, SimRank, WARM_UP, each, mean, text, world_bounded};
use crate::workload::RegistrationTime;
use std::collections::BTreeSet;
use std::future::poll_fn;
use std::rc::Rc;
use std::time::Duration;
use weft_collective::arena::{self, ArenaLimits, NotifyArena};
use weft_collective::run::CollectiveCall;
use weft_collective::{
    AlgorithmChoice, CollectiveKind, CollectiveState, ElementReduction, ReductionBuffers,
    Selection, SelectionKey, notified_write,
};
use weft_datatype::{Basic, ElementSpacing, Predefined, PredefinedOp};
use weft_fabric::{Fabric, FabricExt, FaultCause, Sge};
use weft_fabric_sim::units::{MICROSECOND, Picoseconds};
use weft_fabric_sim::{Arrow, Machine, RunOutcome, Sim, SimOptions};
use weft_p2p::ProtocolLimits;
use weft_process::{Buffer, Comm};

/// Maximum payload, in bytes, that the document sends with its flag in one write (section 5.3.2).
pub const SINGLE: usize = 2 << 10;
const BOUNDS: ArenaLimits = ArenaLimits { bytes: arena::USUAL, single: Some(SINGLE) };

/// Runs `program` as every rank.
pub(super) fn world<P>(
    machine: &Rc<Machine>,
    options: SimOptions,
    program: impl FnMut(SimRank) -> P,
) -> Result<RunOutcome<Measured>, String>
where
    P: Future<Output = Measured> + 'static,
{
    let mut machine = Machine::clone(machine);
    let packet = SINGLE + notified_write::MARK;
    machine.rail.iter_mut().for_each(|rail| rail.mtu.0 = rail.mtu.0.max(packet));
    world_bounded(&Rc::new(machine), options, ProtocolLimits::default(), BOUNDS, program)
}

/// Returns a selection that uses only the algorithm of this name.
pub(super) fn named(operation: CollectiveKind, name: &str) -> Result<Rc<Selection>, String> {
    let mut selection = Selection::default();
    selection.ask_for(operation, name)?;
    Ok(Rc::new(selection))
}

/// Returns an error if the chosen algorithm cannot serve `operation` of `bytes` bytes.
pub(super) fn served(
    comm: &Comm<Sim>,
    operation: CollectiveKind,
    bytes: usize,
) -> Result<(), String> {
    let (ranks, site) = (comm.size(), comm.site());
    let case = SelectionKey { ranks, bytes, element: 4, commutes: true, equal: true, site };
    match comm.chosen(operation, &case).refused {
        None => Ok(()),
        Some((choice, why)) => Err(format!("{choice}: {why}")),
    }
}

pub fn barrier(machine: &Rc<Machine>, ranks: usize, name: &str, iterations: usize) -> Measured {
    let selection = named(CollectiveKind::Barrier, name)?;
    let outcome = world(machine, SimOptions::new(ranks), |rank| {
        let selection = selection.clone();
        async move {
            rank.comm.select(selection);
            served(&rank.comm, CollectiveKind::Barrier, 0)?;
            for _ in 0..WARM_UP {
                rank.comm.barrier().await.map_err(text)?;
            }
            let start = rank.sim.clock();
            for _ in 0..iterations {
                rank.comm.barrier().await.map_err(text)?;
            }
            Ok(each(start, rank.sim.clock(), iterations))
        }
    })?;
    mean(&outcome)
}

/// Returns the number of steps of the rank with the most steps. A send and a receive count as one step if no other send lies
/// between them. Any other send or receive is a step of its own.
pub fn steps(
    machine: &Rc<Machine>,
    ranks: usize,
    operation: CollectiveKind,
    name: &str,
) -> Measured {
    let arrows = second(machine, ranks, operation, name)?;
    let of_rank = |rank: u32| {
        let mut sends: Vec<_> = arrows.iter().filter(|a| a.from == rank).map(|a| a.sent).collect();
        sends.sort_unstable();
        let receives = arrows.iter().filter(|a| a.to == rank).map(|a| a.arrived);
        steps_of(&sends, receives)
    };
    Ok((0..ranks as u32).map(of_rank).max().unwrap_or(0) as f64)
}

/// Counts the send descriptors that all ranks post in a broadcast. A multicast is one descriptor, for any number of receivers.
pub fn send_descriptors(machine: &Rc<Machine>, ranks: usize, name: &str) -> Measured {
    let arrows = second(machine, ranks, CollectiveKind::Bcast, name)?;
    let carries = arrows.iter().filter(|arrow| arrow.bytes > 0);
    let sends: BTreeSet<_> = carries.map(|arrow| (arrow.from, arrow.sent)).collect();
    Ok(sends.len() as f64)
}

/// Runs an operation twice, and returns the messages of the second run. The first run creates the state that the algorithm needs.
fn second(
    machine: &Rc<Machine>,
    ranks: usize,
    operation: CollectiveKind,
    name: &str,
) -> Result<Vec<Arrow>, String> {
    let selection = named(operation, name)?;
    let options = SimOptions::new(ranks).trace();
    let outcome = world(machine, options, |rank| {
        let selection = selection.clone();
        async move {
            let comm = &rank.comm;
            comm.select(selection);
            let word = rank.sim.allocate(Basic::INT.size()).map_err(text)?;
            let mut start = 0;
            for _ in 0..2 {
                // During this pause, all messages of the first operation leave.
                rank.sim.sleep(PERIOD).await;
                start = rank.sim.clock();
                let int = Predefined::new().of(Basic::INT).clone();
                let one = || Buffer::over(word.local, int.clone());
                match operation {
                    CollectiveKind::Barrier => comm.barrier().await,
                    CollectiveKind::Bcast => comm.bcast(one(), 0.into()).await,
                    CollectiveKind::Allreduce => {
                        comm.allreduce(Some(one()), one(), Rc::new(NumberSum(Basic::INT))).await
                    }
                    other => return Err(format!("steps of {other} are not counted here")),
                }
                .map_err(text)?;
            }
            Ok(start as f64)
        }
    })?;
    mean(&outcome)?;
    let start = |result: &Option<Measured>| match result {
        Some(Ok(start)) => *start as u64,
        _ => u64::MAX,
    };
    let starts: Vec<_> = outcome.results.iter().map(start).collect();
    let mut arrows = outcome.trace.unwrap_or_default().arrows;
    arrows.retain(|arrow| arrow.sent >= starts[arrow.from as usize]);
    Ok(arrows)
}

/// Counts the messages that rank 0 gets because of its multicast in a barrier by the named algorithm. These are the messages that
/// are sent after the multicast.
pub fn acknowledgements(machine: &Rc<Machine>, ranks: usize, name: &str) -> Measured {
    let arrows = second(machine, ranks, CollectiveKind::Barrier, name)?;
    let released = arrows.iter().filter(|arrow| arrow.from == 0).map(|arrow| arrow.sent).min();
    let released = released.ok_or("rank 0 sends nothing")?;
    Ok(arrows.iter().filter(|arrow| arrow.to == 0 && arrow.sent > released).count() as f64)
}

/// Counts the steps of one rank. `sends` has the times of its sends in ascending order, and `receives` has the times of its
/// receives.
fn steps_of(sends: &[u64], receives: impl Iterator<Item = u64>) -> usize {
    // Number of receives before the first send, then between the first and the second send, and so on.
    let mut between = vec![0usize; sends.len() + 1];
    receives.for_each(|at| between[sends.partition_point(|&sent| sent <= at)] += 1);
    let all = sends.len() + between.iter().sum::<usize>();
    let mut pairs = 0;
    for send in 0..sends.len() {
        let place = if between[send] > 0 { send } else { send + 1 };
        if between[place] > 0 {
            between[place] -= 1;
            pairs += 1;
        }
    }
    all - pairs
}

/// MPI_SUM on a numeric type.
pub(super) struct NumberSum(pub(super) Basic);

impl ElementReduction for NumberSum {
    fn combine(&self, left: Sge, right: Sge) {
        // A payload that has a size but no bytes has no sum.
        if left.is_phantom() || right.is_phantom() {
            return;
        }
        let count = right.len() / self.0.size();
        let done = PredefinedOp::Sum.apply(self.0, ElementSpacing::Packed, count, left, right);
        done.expect("MPI_SUM is defined on numbers");
    }

    fn commutes(&self) -> bool {
        true
    }
}

fn bytes_of(values: impl Iterator<Item = i32>) -> Vec<u8> {
    values.flat_map(i32::to_ne_bytes).collect()
}

/// Time between two common starts. It is longer than any allreduce here, including the setup of the first call.
const PERIOD: Picoseconds = 10_000 * MICROSECOND;
const NANOSECOND: Picoseconds = MICROSECOND / 1000;

/// Waits until the virtual time `at`, with a precision of a nanosecond, and returns the time.
async fn begin(sim: &Sim, at: Picoseconds) -> Result<Picoseconds, String> {
    let left = at.checked_sub(sim.clock()).ok_or("an operation took longer than a period")?;
    let until = sim.now() + Duration::from_nanos(left.div_ceil(NANOSECOND));
    let outcome = poll_fn(|cx| sim.poll_any(&[], Some(until), cx)).await;
    match outcome {
        Err(fault) if !fault.is(FaultCause::TimedOut) => Err(text(fault)),
        _ if sim.clock() - at < NANOSECOND => Ok(sim.clock()),
        _ => Err(format!("begun at {} ps in place of {at}", sim.clock())),
    }
}

/// Runs an allreduce that allocates, registers and announces its buffers in this call. Writes from the buffers may still be under
/// way after the call, so `states` keeps the buffers until the end of the program.
async fn registering(
    comm: &Comm<Sim>,
    name: &str,
    data: Sge,
    result: Sge,
    states: &mut Vec<CollectiveState<Sim>>,
) -> Result<(), String> {
    let choice = AlgorithmChoice::parse(CollectiveKind::Allreduce, name)?;
    let arena = NotifyArena::new(comm.engine().endpoint().clone(), BOUNDS);
    let state = CollectiveState::in_turn(Rc::new(arena));
    let link = comm.link().carried(choice);
    let buffers = ReductionBuffers { data, result, element: Basic::INT.size() };
    CollectiveCall { link: &link, state: &state, choice }
        .allreduce(buffers, &NumberSum(Basic::INT))
        .await
        .map_err(text)?;
    states.push(state);
    Ok(())
}

/// Allreduce of actual data.
pub struct IntegerSum {
    /// Name of the algorithm.
    pub name: &'static str,
    pub integers: usize,
    /// Time at which buffers are registered. `None`: before the measured calls start.
    pub registered: Option<RegistrationTime>,
}

/// Measures an allreduce of actual data. Returns an error if a sum is wrong.
pub fn allreduce(
    machine: &Rc<Machine>,
    ranks: usize,
    sum: IntegerSum,
    iterations: usize,
) -> Measured {
    let IntegerSum { name, integers, registered } = sum;
    let selection = named(CollectiveKind::Allreduce, name)?;
    let (n, count) = (ranks as i32, integers as i32);
    let (warm_up, iterations) = match registered {
        Some(RegistrationTime::FirstCall) => (0, 1),
        _ => (WARM_UP, iterations),
    };
    let outcome = world(machine, SimOptions::new(ranks), |rank| {
        let selection = selection.clone();
        async move {
            let (sim, comm) = (rank.sim, rank.comm);
            comm.select(selection);
            let len = integers * Basic::INT.size();
            served(&comm, CollectiveKind::Allreduce, len)?;
            let (input, output) =
                (sim.allocate(len).map_err(text)?, sim.allocate(len).map_err(text)?);
            let me = comm.rank() as i32;
            // Element i of rank r is i * n + r, so all elements of all ranks are different.
            input.local.fill(&bytes_of((0..count).map(|i| i * n + me)));
            let expected = bytes_of((0..count).map(|i| i * n * n + n * (n - 1) / 2));
            let op: Rc<dyn ElementReduction> = Rc::new(NumberSum(Basic::INT));
            let int = Predefined::new().of(Basic::INT).clone();
            let call = || {
                let send = Buffer::over(input.local, int.clone());
                let receive = Buffer::over(output.local, int.clone());
                comm.allreduce(Some(send), receive, op.clone())
            };
            let (mut result, mut states) = (vec![0; len], Vec::new());
            let mut sum = 0;
            for i in 0..warm_up + iterations {
                output.local.fill(&vec![0; len]);
                let start = begin(&sim, PERIOD * (i + 1) as Picoseconds).await?;
                match registered {
                    Some(RegistrationTime::EveryCall) => {
                        registering(&comm, name, input.local, output.local, &mut states).await?;
                    }
                    _ => call().await.map_err(text)?,
                }
                if i >= warm_up {
                    sum += sim.clock() - start;
                }
                output.local.read(&mut result);
                if result != expected {
                    return Err(format!("{name} of {integers} integers: a wrong sum"));
                }
            }
            Ok(each(0, sum, iterations))
        }
    })?;
    mean(&outcome)
}

#[cfg(test)]
mod tests {
    use super::steps_of;

    #[test]
    fn an_exchange_is_one_step() {
        let steps = |sends: &[u64], receives: &[u64]| steps_of(sends, receives.iter().copied());
        // Three exchanges. The second partner sends early.
        assert_eq!(steps(&[10, 20, 30], &[11, 12, 31]), 3);
        // Rank 0 in a pairwise exchange of 5 ranks: receives from 4, exchanges with 1 (which sends early) and with 2, and sends to
        // 4.
        assert_eq!(steps(&[11, 12, 21], &[10, 10, 20]), 4);
        assert_eq!((steps(&[], &[1, 2]), steps(&[1, 2], &[]), steps(&[], &[])), (2, 2, 0));
    }
}
