//! CollGM's transport, and collective operations, which are measured from a common start until the last rank ends.

use super::collectives::{NumberSum, named, served};
use super::{Measured, SimRank, first, mean, text, world};
use crate::workload::{Bound, Contenders, Passing, Workload};
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use weft_collective::{CollectiveKind, CommView, Reception, Via};
use weft_datatype::{Basic, Predefined};
use weft_fabric::{FabricExt, Sge, Work};
use weft_fabric_sim::units::{MICROSECOND, Picoseconds};
use weft_fabric_sim::{Machine, Sim, SimOptions};
use weft_p2p::stream::StreamSizes;
use weft_p2p::{MatchingContext, ProtocolLimits};
use weft_process::{Buffer, Lengths};

/// Number of operations before the measured operations. The first operation of a pair of ranks creates the state of the pair.
const WARM_UP: usize = 2;
/// Number of bytes of segments under way. The document states no such number. This value was chosen by a comparison with figure 3.
const OUTSTANDING: usize = 128 << 10;
/// Time from the moment at which the ranks agree on a common start until this start.
const AHEAD: Picoseconds = 100 * MICROSECOND;

/// Number of bytes of the transfer of figure 3.
const TRANSFER: usize = 32 << 20;

/// Opens the streams from a rank to all other ranks.
fn linked(rank: &SimRank) -> CommView<Sim> {
    let endpoint = rank.comm.engine().endpoint().clone();
    let members = rank.comm.group().members().clone();
    let (context, tag, via) = (MatchingContext(3), 1, Via::Native);
    let (rank, reception) = (rank.comm.rank(), Reception::default());
    CommView { endpoint, members, rank, context, tag, via, reception }
}

/// Measures the time in microseconds to transfer [`TRANSFER`] bytes from rank 0 to rank 1. A first transfer, which is not measured,
/// creates and registers the buffers of the streams.
fn transfer(machine: &Rc<Machine>, sizes: StreamSizes) -> Measured {
    let latest = Rc::new(Cell::new(0));
    let outcome = world(machine, SimOptions::new(2), ProtocolLimits::default(), |rank| {
        let early = rank.comm.engine().endpoint().streams().set_sizes(sizes);
        let (link, me, latest) = (linked(&rank), rank.comm.rank(), latest.clone());
        async move {
            if !early {
                return Err("streams have their sizes already".to_owned());
            }
            let data = Sge::phantom(TRANSFER);
            let mut start = 0;
            for _ in 0..2 {
                same_node(&rank, &latest).await?;
                start = rank.sim.clock();
                match me {
                    0 => link.send(1, data).await.map_err(text)?,
                    _ => link.recv(0, data).await.map_err(text)?,
                }
            }
            Ok((rank.sim.clock() - start) as f64 / MICROSECOND as f64)
        }
    })?;
    let both = outcome.results.iter().flatten().flatten().copied();
    first(&outcome)?;
    Ok(both.fold(0.0, f64::max))
}

/// Measures a transfer by the eager protocol, in segments of `segment` bytes.
pub fn segments(machine: &Rc<Machine>, segment: usize) -> Measured {
    let window = (OUTSTANDING / segment).max(1);
    let allowance = window.min(2);
    let rendezvous = usize::MAX;
    transfer(
        machine,
        StreamSizes { segment, window, allowance, rendezvous, ..StreamSizes::default() },
    )
}

/// Measures a transfer by the eager protocol. `bound` limits the number of segments in flight.
pub fn stream(machine: &Rc<Machine>, segment: usize, bound: Bound) -> Measured {
    let usual = StreamSizes { segment, rendezvous: usize::MAX, ..StreamSizes::default() };
    transfer(
        machine,
        match bound {
            Bound::Usual => usual,
            Bound::Unlimited => {
                let all = TRANSFER.div_ceil(segment);
                StreamSizes { window: all, slots: all, tokens: all, ..usual }
            }
        },
    )
}

/// Measures a transfer by rendezvous that registers blocks of `block` bytes.
pub fn blocks(machine: &Rc<Machine>, block: usize) -> Measured {
    transfer(machine, StreamSizes { rendezvous: 0, block, ..StreamSizes::default() })
}

/// A broadcast that sends segments: its name, and its names with each of the segment lengths in [`CUTS`].
type Cut = (&'static str, [&'static str; 3]);
/// Lengths of segments to try, in bytes, shortest first. MPI's messages of these lengths need no rendezvous.
const CUTS: [usize; 3] = [4 << 10, 8 << 10, 16 << 10];
const STREAMED: [Cut; 3] = [
    ("BINARY", ["BINARY:4096", "BINARY:8192", "BINARY:16384"]),
    ("SPLIT-BINARY", ["SPLIT-BINARY:4096", "SPLIT-BINARY:8192", "SPLIT-BINARY:16384"]),
    ("PIPELINE", ["PIPELINE:4096", "PIPELINE:8192", "PIPELINE:16384"]),
];
const OVER_MESSAGES: [Cut; 3] = [
    ("MPI-BINARY", ["MPI-BINARY:4096", "MPI-BINARY:8192", "MPI-BINARY:16384"]),
    (
        "MPI-SPLIT-BINARY",
        ["MPI-SPLIT-BINARY:4096", "MPI-SPLIT-BINARY:8192", "MPI-SPLIT-BINARY:16384"],
    ),
    ("MPI-PIPELINE", ["MPI-PIPELINE:4096", "MPI-PIPELINE:8192", "MPI-PIPELINE:16384"]),
];

/// Returns the workloads that compete in an operation of `bytes` bytes. The shortest of their times counts.
pub fn contenders(
    who: Contenders,
    operation: CollectiveKind,
    ranks: usize,
    bytes: usize,
) -> Vec<Workload> {
    let tuned = who == Contenders::Tuned;
    let whole: &[&'static str] = match (operation, tuned) {
        (CollectiveKind::Bcast, false) => &["FLAT", "BINOMIAL"],
        (CollectiveKind::Bcast, true) => &["MPI-FLAT", "MPI-BINOMIAL"],
        (CollectiveKind::Alltoall, false) => &["LINEAR", "PAIRWISE", "BRUCK"],
        (CollectiveKind::Alltoall, true) => &["MPI-LINEAR", "MPI-PAIRWISE", "MPI-BRUCK"],
        (_, false) => &["FLAT", "BINOMIAL"],
        (_, true) => &["MPI-FLAT", "MPI-BINOMIAL"],
    };
    let mut names = whole.to_vec();
    if operation == CollectiveKind::Bcast {
        for (name, cut) in if tuned { OVER_MESSAGES } else { STREAMED } {
            names.push(name);
            if who != Contenders::Component {
                // A length is tried only if it divides the broadcast into more than one segment.
                let shorter = cut.into_iter().zip(CUTS).filter(|(_, segment)| *segment < bytes);
                names.extend(shorter.map(|(name, _)| name));
            }
        }
    }
    let mut all: Vec<_> =
        names.iter().map(|name| Workload::Collective(operation, name, ranks)).collect();
    // If a message with the blocks of all ranks exceeds the eager limit, also tries a higher eager limit.
    if tuned && bytes * ranks > ProtocolLimits::default().eager {
        let whole = names.iter().filter(|name| !name.contains(':'));
        all.extend(whole.map(|name| Workload::CollectiveAtOnce(operation, name, ranks)));
    }
    all
}

/// Waits until all ranks can continue at the same moment.
pub(super) async fn same_node(rank: &SimRank, latest: &Cell<Picoseconds>) -> Result<(), String> {
    rank.comm.barrier().await.map_err(text)?;
    latest.set(latest.get().max(rank.sim.clock()));
    // After this barrier, all ranks have recorded the time at which they left the first barrier.
    rank.comm.barrier().await.map_err(text)?;
    let start = latest.get() + AHEAD;
    rank.sim.charge(Work::Compute(start.saturating_sub(rank.sim.clock())));
    Ok(())
}

/// Runs one operation with buffers or blocks of `bytes` bytes.
pub(super) async fn operate(
    rank: &SimRank,
    operation: CollectiveKind,
    bytes: usize,
) -> Result<(), String> {
    let comm = &rank.comm;
    let byte = Predefined::new().of(Basic::BYTE).clone();
    let one = || Buffer::phantom(bytes, byte.clone());
    let all = || (0..comm.size()).map(|_| one()).collect::<Vec<_>>();
    let at_root = || if comm.rank() == 0 { all() } else { Vec::new() };
    let done = match operation {
        CollectiveKind::Bcast => comm.bcast(one(), 0.into()).await,
        CollectiveKind::Scatter => {
            comm.scatter(at_root().into(), Some(one()), 0.into(), Lengths::Equal).await
        }
        CollectiveKind::Gather => {
            comm.gather(Some(one()), at_root().into(), 0.into(), Lengths::Equal).await
        }
        CollectiveKind::Allreduce => {
            let int = Predefined::new().of(Basic::INT).clone();
            let integers = || Buffer::phantom(bytes / Basic::INT.size(), int.clone());
            comm.allreduce(Some(integers()), integers(), Rc::new(NumberSum(Basic::INT))).await
        }
        CollectiveKind::Alltoall => {
            comm.alltoall(Some(all().into()), all().into(), Lengths::Equal).await
        }
        other => return Err(format!("{other} is not measured here")),
    };
    done.map_err(text)
}

/// Collective operation of a named algorithm, over streams or messages.
pub struct StreamCollective {
    pub ranks: usize,
    pub operation: CollectiveKind,
    /// Name of the algorithm.
    pub name: &'static str,
    pub limits: ProtocolLimits,
}

/// Returns the time of an operation in microseconds, from the common start until the last rank ends. The payload has a size but no
/// bytes.
pub fn collective(
    machine: &Rc<Machine>,
    what: StreamCollective,
    bytes: usize,
    rounds: usize,
) -> Measured {
    let StreamCollective { ranks, operation, name, limits } = what;
    let selection = named(operation, name)?;
    let latest = Rc::new(Cell::new(0));
    // Start of each round, and the time at which the last rank ends the round.
    let times = Rc::new(RefCell::new(vec![(0u64, 0u64); rounds]));
    let outcome = world(machine, SimOptions::new(ranks), limits, |rank| {
        let (selection, latest, times) = (selection.clone(), latest.clone(), times.clone());
        async move {
            rank.comm.select(selection);
            served(&rank.comm, operation, bytes)?;
            for round in 0..WARM_UP + rounds {
                same_node(&rank, &latest).await?;
                let start = rank.sim.clock();
                operate(&rank, operation, bytes).await?;
                if let Some(round) = round.checked_sub(WARM_UP) {
                    let all = &mut times.borrow_mut()[round];
                    *all = (start, all.1.max(rank.sim.clock()));
                }
            }
            Ok(0.0)
        }
    })?;
    first(&outcome)?;
    let total: u64 = times.borrow().iter().map(|(start, end)| end - start).sum();
    Ok(total as f64 / MICROSECOND as f64 / rounds as f64)
}

/// Measures the time in microseconds until `CHAINED` bytes have come from rank 0 to the last rank. Each rank sends them in segments
/// to the next rank.
pub fn chain(machine: &Rc<Machine>, ranks: usize, passing: Passing) -> Measured {
    const CHAINED: usize = 1 << 20;
    const SEGMENT: usize = 64 << 10;
    let latest = Rc::new(Cell::new(0));
    let outcome = world(machine, SimOptions::new(ranks), ProtocolLimits::default(), |rank| {
        let latest = latest.clone();
        async move {
            let (link, me) = (linked(&rank), rank.comm.rank());
            let segment = Sge::phantom(SEGMENT);
            let next: &[usize] = if me + 1 < ranks { &[me + 1] } else { &[] };
            let mut start = 0;
            for _ in 0..=WARM_UP {
                same_node(&rank, &latest).await?;
                start = rank.sim.clock();
                let mut sends = Vec::new();
                for _ in 0..CHAINED / SEGMENT {
                    match (me, passing) {
                        (0, _) => sends.extend(link.isend(1, segment)),
                        (_, Passing::Forwarded) => {
                            link.relay(me - 1, segment, next, &mut sends).await.map_err(text)?;
                        }
                        (_, Passing::SentAgain) => {
                            link.recv(me - 1, segment).await.map_err(text)?;
                            sends.extend(next.iter().filter_map(|&to| link.isend(to, segment)));
                        }
                    }
                }
                link.wait_all(sends).await.map_err(text)?;
            }
            Ok((rank.sim.clock() - start) as f64 / MICROSECOND as f64)
        }
    })?;
    mean(&outcome)?;
    Ok(outcome.results.iter().flatten().flatten().copied().fold(0.0, f64::max))
}
