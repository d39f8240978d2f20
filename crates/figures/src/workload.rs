//! Workloads: measurements on a machine at one `x`.

use weft_collective::CollectiveKind;
use weft_fabric_sim::machine::SchedulerPolicy;
use weft_rma::{EpochEnding, FenceDesign, IssueOrder};

/// A workload to run. Its value is in microseconds unless another unit is given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Workload {
    /// MPI_Barrier by the named algorithm; x: ranks.
    Barrier(&'static str),
    /// MPI_Allreduce (MPI_INT, MPI_SUM) of this number of integers; x: ranks.
    Allreduce(&'static str, usize),
    /// A system of equations, solved by conjugate gradients with allreduces by the named algorithm; x: nodes.
    Equations(&'static str),
    /// A collective operation by the named algorithm on this number of ranks, from a common start until the last rank has finished;
    /// x: number of bytes as [`CollectiveKind::measure`] defines it.
    Collective(CollectiveKind, &'static str, usize),
    /// As `Collective`, but messages of up to 64 KiB are sent eagerly, through memory that stays registered.
    CollectiveAtOnce(CollectiveKind, &'static str, usize),
    /// A collective operation on this number of ranks by the named algorithm, or else by the one that the library chooses, from a
    /// common start: the mean of the ranks' own times, as the OSU benchmarks have it; x as for `Collective`.
    Osu(CollectiveKind, Option<&'static str>, usize),
    /// As `Osu`, by the algorithm that the table of Open MPI's component tuned names for the call.
    Tuned(CollectiveKind, usize),
    /// The shortest time of a group of algorithms; x as for `Collective`.
    Fastest(Contenders, CollectiveKind, usize),
    /// 32 MiB from rank to rank over a stream; x: bytes of a segment.
    Segments,
    /// 32 MiB by the rendezvous of a stream; x: bytes of a block that is registered in one call.
    Blocks,
    /// Half the time of a ping-pong of RDMA writes on the bare fabric; x: bytes.
    WriteLatency,
    /// Half the time of a ping-pong of sends and receives on the bare fabric; x: bytes.
    SendLatency,
    /// A datagram of this number of bytes to a group, until the last receiver has it; x: number of receivers.
    MulticastLatency(usize),
    /// Epochs of one-sided operations; x: bytes; unit: us for latencies, else MB/s.
    OneSided(OneSidedTest),
    /// A fence of this design after the given work; x: ranks; unit: us. If the work is [`Fence::Overlap`], x is a number of bytes,
    /// and the unit is %.
    Fence(Fence, FenceDesign),
    /// A window of MPI messages; x: bytes; unit: MB/s.
    Bandwidth(RegistrationPolicy, Progress),
    /// As `Bandwidth`, with memory that is registered once, and this scheduling policy for all threads.
    BandwidthUnder(SchedulerPolicy, Progress),
    /// Computing time that is available during an MPI message, in percent of the message's time; x: bytes.
    Availability(Overlap),
    /// As `Availability`, with a message of this number of bytes; x: number of iterations of the test.
    AvailabilityOver(usize, Overlap),
    /// Interrupts of both ranks for an MPI message while both compute; x: bytes.
    Interrupts(Progress),
    /// A multiplication of matrices with this number of elements a side; x: nodes.
    CannonOnNodes(usize, Cannon),
    /// A multiplication of matrices on this number of nodes; x: elements a side.
    CannonOfSize(usize, Cannon),
    /// A time step modelled on NAS SP, or its part in MPI_Wait; x: ranks.
    Sweeps(Progress, MeasuredPart),
    /// A time step with large faces to four neighbours; x: ranks, each on a node.
    Halos(Progress),
    /// 1 if an MPI message is a rendezvous, else 0; x: bytes.
    IsRendezvous,
    /// Number of steps of the rank with the most steps, in a barrier or an allreduce of one integer; x: ranks.
    Steps(CollectiveKind, &'static str),
    /// Number of descriptors that all ranks post to send in a broadcast of one integer; x: ranks.
    SendDescriptors(&'static str),
    /// Number of messages that come to rank 0 because of its multicast in a barrier by the named algorithm; x: ranks.
    Acknowledgements(&'static str),
    /// As `Allreduce`, with buffers that are registered during the measurement; x: ranks.
    RegisteringAllreduce(&'static str, usize, RegistrationTime),
    /// 32 MiB from rank to rank over a stream of segments. The bound limits the segments in flight; x: bytes of a segment.
    Stream(Bound),
    /// 1 MiB down a chain of ranks in segments of 64 KiB. Each rank forwards a segment from the memory in which it was received,
    /// or receives it and sends it again; x: ranks.
    Chain(Passing),
    /// The longest piece of an epoch of one kind of operation on all rails, divided by the shortest piece; x: bytes of an
    /// operation.
    PieceRatio(OneSidedPattern),
    /// The epoch of [`Workload::OneSided`] on one rail, made of messages instead of RDMA operations; x: bytes.
    OfMessages(OneSidedPattern),
}

/// Time at which the buffers of a collective operation are allocated, registered and announced to other ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RegistrationTime {
    /// Registration in the first call, which is the only call measured.
    FirstCall,
    /// Registration in every call.
    EveryCall,
}

/// Bound on the segments of a message that are in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Bound {
    /// The bound of the library's streams.
    Usual,
    /// No bound.
    Unlimited,
}

/// Way in which a rank of a chain passes a segment to the next rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Passing {
    /// A send from the memory in which the segment was received.
    Forwarded,
    /// A receive into memory of the rank, then a send.
    SentAgain,
}

/// Group of algorithms that compete in a collective operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Contenders {
    /// CollGM's algorithms, over streams of its segments of 64 KiB.
    Component,
    /// The algorithms of `Component`, also with shorter segments.
    ComponentCut,
    /// The same algorithms over MPI's messages, with the best segments and the best eager limit.
    Tuned,
}

/// Work between two fences.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fence {
    Alone,
    /// A put of 64 bytes by each rank.
    Put,
    /// Puts of 64 bytes to eight neighbours.
    Puts,
    /// Puts of four faces, and computation.
    Halo,
    /// A put between two ranks, and computation of the same length.
    Overlap,
}

/// Rails that a one-sided test uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RailUse {
    /// Only the first rail of the machine.
    First,
    /// All rails of the machine.
    All,
}

/// A test of one-sided operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct OneSidedTest {
    pub test: OneSidedPattern,
    pub rails: RailUse,
    pub order: IssueOrder,
    /// Way in which targets learn that an epoch is complete.
    pub ending: EpochEnding,
    pub pieces: FragmentLength,
}

/// Minimum length of an operation that is divided into fragments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FragmentLength {
    /// The length in the machine file.
    Usual,
    /// This number of bytes. `usize::MAX` stands for no fragments.
    From(usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum OneSidedPattern {
    /// 16 puts in an epoch.
    Put,
    /// 16 gets in an epoch.
    Get,
    /// 16 puts in an epoch by each of the two ranks.
    BothPut,
    /// Epochs of one put, in each direction in turn. The value is half of the round trip.
    PutLatency,
    /// Epochs of one get, in each direction in turn. The value is half of the round trip.
    GetLatency,
    /// 16 puts and 16 gets in an epoch.
    Interleaved,
}

impl OneSidedPattern {
    fn is_latency(self) -> bool {
        matches!(self, OneSidedPattern::PutLatency | OneSidedPattern::GetLatency)
    }
}

/// Rank that computes during a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ComputingSide {
    /// The rank that sends.
    Sender,
    /// The rank that receives.
    Receiver,
}

/// Time at which the memory of a rendezvous is registered with the adapter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RegistrationPolicy {
    /// Registration for each message, as `weft-p2p` does.
    Each,
    /// Registration before the measurement, as by a library with a registration cache.
    Once,
}

/// Progress of a rendezvous while the program computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Progress {
    /// No progress.
    None,
    /// A helper moves messages under a lock, for which threads sleep.
    Locked,
    /// As `Locked`, and threads spin for the lock.
    Spinning,
    /// As `Spinning`, but the helper has its own core.
    SpinningApart,
    /// A helper signals the main thread when a payload is offered.
    Signal,
    /// As `Signal`, and also when the read is complete.
    SignalTwice,
    /// A helper makes progress while the main thread is outside of the library.
    Handover,
}

/// A test of computation during a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Overlap {
    pub side: ComputingSide,
    pub memory: RegistrationPolicy,
    pub progress: Progress,
    /// Scheduling policy of all threads.
    pub policy: SchedulerPolicy,
    /// Number of iterations of the test, if it must differ from the usual number. It matters because schedulers remember how long
    /// threads have run and slept.
    pub rounds: Option<usize>,
}

/// A matrix multiplication, and the part of its time that is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Cannon {
    pub team: Team,
    pub progress: Progress,
    pub part: MeasuredPart,
}

/// Ranks and threads that compute on a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Team {
    /// One rank, with four threads (MPI and OpenMP).
    Threads,
    /// One rank (MPI x1).
    Single,
    /// Four ranks (MPI x4).
    Four,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MeasuredPart {
    Total,
    /// Only the time in MPI_Wait.
    Wait,
}

/// Length of a measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Effort {
    /// Number of measured iterations of operations that take microseconds.
    pub iterations: usize,
    /// Number of measured iterations of operations that take milliseconds.
    pub few: usize,
}

impl Effort {
    /// Effort with the numbers of iterations that the documents use.
    pub const FULL: Effort = Effort { iterations: 1000, few: 20 };
    /// Effort of a quick run. Few iterations are enough, because iterations on a virtual cluster without jitter soon take the same
    /// time.
    pub const QUICK: Effort = Effort { iterations: 20, few: 2 };
    /// Effort of a measurement that varies a parameter.
    pub const STUDY: Effort = Effort { iterations: 100, few: 4 };
}

impl Workload {
    /// Returns the unit of the value.
    pub fn unit(self) -> &'static str {
        match self {
            Workload::Barrier(_)
            | Workload::Allreduce(..)
            | Workload::Equations(_)
            | Workload::Collective(..)
            | Workload::CollectiveAtOnce(..)
            | Workload::Osu(..)
            | Workload::Tuned(..)
            | Workload::Fastest(..)
            | Workload::Segments
            | Workload::Blocks
            | Workload::RegisteringAllreduce(..)
            | Workload::Stream(_)
            | Workload::Chain(_)
            | Workload::WriteLatency
            | Workload::SendLatency
            | Workload::MulticastLatency(_) => "us",
            Workload::OneSided(what) if what.test.is_latency() => "us",
            Workload::OfMessages(test) if test.is_latency() => "us",
            Workload::Fence(Fence::Overlap, _) => "%",
            Workload::Fence(..) => "us",
            Workload::CannonOnNodes(..)
            | Workload::CannonOfSize(..)
            | Workload::Sweeps(..)
            | Workload::Halos(_) => "us",
            Workload::Bandwidth(..)
            | Workload::BandwidthUnder(..)
            | Workload::OneSided(_)
            | Workload::OfMessages(_) => "MB/s",
            Workload::Availability(_) | Workload::AvailabilityOver(..) => "%",
            Workload::IsRendezvous
            | Workload::Steps(..)
            | Workload::SendDescriptors(_)
            | Workload::Acknowledgements(_)
            | Workload::PieceRatio(_)
            | Workload::Interrupts(_) => "",
        }
    }
}
