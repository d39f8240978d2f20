//! What is measured: a workload on a machine at one `x`, in virtual time.

use super::measure::{collectives, fences, messages, onesided, raw, streams};
use std::rc::Rc;
use weft_collective::Operation;
use weft_fabric_sim::Machine;
use weft_rma::{Design, Order};

/// Rounds of a collective operation over streams: they repeat themselves at once.
const FEW: usize = 3;

/// Something to run. The value is microseconds where nothing else is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Workload {
    /// MPI_Barrier by the algorithm's name; x: ranks.
    Barrier(&'static str),
    /// MPI_Allreduce (MPI_INT, MPI_SUM) of so many integers; x: ranks.
    Allreduce(&'static str, usize),
    /// A collective operation by the algorithm's name on so many ranks, from a common start to the last
    /// rank's end; x: bytes as the operation's measure counts them.
    Collective(Operation, &'static str, usize),
    /// 32 MiB from rank to rank over a stream; x: bytes of a segment.
    Segments,
    /// 32 MiB by a stream's rendezvous; x: bytes of a block that is registered at once.
    Blocks,
    /// Half a ping-pong of RDMA writes on the bare fabric; x: bytes.
    WriteLatency,
    /// Half a ping-pong of sends and receives on the bare fabric; x: bytes.
    SendLatency,
    /// A datagram of so many bytes to a group, to the last receiver; x: receivers.
    MulticastLatency(usize),
    /// A window of RDMA writes on the bare fabric, from one rank or from both; x: bytes; MB/s.
    WriteBandwidth { both: bool },
    /// Epochs of one-sided operations; x: bytes; us for latencies, else MB/s.
    OneSided(OneSided),
    /// A fence of this design, and what comes before it; x: ranks, of the overlap bytes; us, or %.
    Fence(Fence, Design),
    /// A window of MPI messages; x: bytes; MB/s.
    Bandwidth(Memory),
    /// Computation beside an MPI message, in percent of the message's time; x: bytes.
    Availability(Side, Memory),
    /// Whether an MPI message is a rendezvous: 1 or 0; x: bytes.
    IsRendezvous,
    /// Steps of the rank that takes most of them in a barrier; x: ranks.
    BarrierSteps(&'static str),
}

/// What comes between two fences.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fence {
    Alone,
    /// A put of 64 bytes by each rank.
    Put,
    /// Puts of 64 bytes to eight neighbours.
    Puts,
    /// Four faces, and computation.
    Halo,
    /// A put between two ranks, and computation that takes as long.
    Overlap,
}

/// A test of one-sided operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OneSided {
    pub test: Test,
    /// All of the machine's rails, or its first one alone.
    pub all_rails: bool,
    pub order: Order,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Test {
    /// 16 puts an epoch, or gets.
    Put,
    Get,
    /// 16 puts an epoch by each of both ranks.
    BothPut,
    /// One put an epoch, or get, there and back: half of it.
    PutLatency,
    GetLatency,
    /// 16 puts, then 16 gets, an epoch.
    Interleaved,
}

impl Test {
    fn is_latency(self) -> bool {
        matches!(self, Test::PutLatency | Test::GetLatency)
    }
}

/// Who computes beside a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Side {
    Sender,
    Receiver,
}

/// When the memory of a rendezvous is registered with the adapter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Memory {
    /// For each message, as p2p does.
    Each,
    /// Before the measurement, as by a library that keeps registrations.
    Once,
}

/// How long to measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Effort {
    /// Iterations that are measured, of what takes microseconds.
    pub iterations: usize,
    /// Of what takes milliseconds.
    pub few: usize,
}

impl Effort {
    /// As the documents measure.
    pub const FULL: Effort = Effort { iterations: 1000, few: 20 };
    /// A virtual cluster without jitter repeats itself soon.
    pub const QUICK: Effort = Effort { iterations: 20, few: 2 };
    /// To see what a parameter moves.
    pub const STUDY: Effort = Effort { iterations: 100, few: 4 };
}

impl Workload {
    /// Of its value.
    pub fn unit(self) -> &'static str {
        match self {
            Workload::Barrier(_)
            | Workload::Allreduce(..)
            | Workload::Collective(..)
            | Workload::Segments
            | Workload::Blocks
            | Workload::WriteLatency
            | Workload::SendLatency
            | Workload::MulticastLatency(_) => "us",
            Workload::OneSided(what) if what.test.is_latency() => "us",
            Workload::Fence(Fence::Overlap, _) => "%",
            Workload::Fence(..) => "us",
            Workload::WriteBandwidth { .. } | Workload::Bandwidth(_) | Workload::OneSided(_) => {
                "MB/s"
            }
            Workload::Availability(..) => "%",
            Workload::IsRendezvous | Workload::BarrierSteps(_) => "",
        }
    }

    /// Runs it on `machine`.
    pub fn run(self, machine: &Rc<Machine>, x: usize, effort: Effort) -> Result<f64, String> {
        let Effort { iterations, few } = effort;
        match self {
            Workload::Barrier(name) => collectives::barrier(machine, x, name, iterations),
            Workload::Allreduce(name, integers) => {
                collectives::allreduce(machine, x, name, integers, iterations)
            }
            Workload::Collective(operation, name, ranks) => {
                streams::collective(machine, ranks, operation, name, x, few.min(FEW))
            }
            Workload::Segments => streams::segments(machine, x),
            Workload::Blocks => streams::blocks(machine, x),
            Workload::BarrierSteps(name) => collectives::steps(machine, x, name),
            Workload::WriteLatency => raw::write_latency(machine, x, iterations),
            Workload::SendLatency => raw::send_latency(machine, x, iterations),
            Workload::MulticastLatency(bytes) => {
                raw::multicast_latency(machine, x, bytes, iterations)
            }
            Workload::WriteBandwidth { both } => raw::write_bandwidth(machine, x, both, few),
            Workload::Fence(fence, design) => {
                let puts = match fence {
                    Fence::Alone => 0,
                    Fence::Put => 1,
                    Fence::Puts => 8,
                    Fence::Halo => return fences::halo(machine, x, design, few),
                    Fence::Overlap => return fences::overlap(machine, x, design, few),
                };
                fences::after_puts(machine, x, design, (puts, 64), 0, few)
            }
            Workload::OneSided(what) => onesided::measure(machine, x, what, few),
            Workload::Bandwidth(memory) => messages::bandwidth(machine, x, memory, few),
            Workload::Availability(side, memory) => {
                messages::availability(machine, x, side, memory, few)
            }
            Workload::IsRendezvous => messages::is_rendezvous(machine, x),
        }
        .map_err(|e| format!("{self:?} at {x} on {}: {e}", machine.name))
    }
}
