//! The list of algorithms. Within an operation, algorithms that were published together are listed together.

use crate::algorithm::{
    Algorithm, AlgorithmParameter, Carrier, DEFAULT_AT_ONCE, DEFAULT_RADIX, Method, Only,
    Requirement,
};
use crate::area::PAIR_MOST;
use crate::bounce::{BUFFER, UNIT_MOST};
use crate::costs::CostFunction;
use crate::costs::pipelines::DEFAULT_SEGMENT;
use crate::operation::CollectiveKind;
use crate::{CENTRAL_MOST, SLOT, leader_lines, slots};
use Carrier::{Atomics, Immediates, Memory, Messages, Reads, Streams, Writes};
use CollectiveKind::*;
use Requirement::{
    AtMost, BlocksAtMost, Commutes, Direct, ElementAtMost, ElementEach, EqualBlocks, Even,
    EvenLevels, Levels, Many, Nodes, PowerOfTwo, SameArithmetic, SameArithmeticOfTwo, Two,
};

const fn entry(
    operation: CollectiveKind,
    name: &'static str,
    method: Method,
    carrier: Carrier,
    needs: &'static [Requirement],
    about: &'static str,
    cost: &'static str,
) -> Algorithm {
    Algorithm {
        operation,
        name,
        method,
        carrier,
        parameter: None,
        needs,
        usual: false,
        about,
        cost,
        time: None,
    }
}

/// Returns the entry with `parameter` added.
const fn with(parameter: AlgorithmParameter, entry: Algorithm) -> Algorithm {
    Algorithm { parameter: Some(parameter), ..entry }
}

/// Returns the entry, marked as a choice for calls for which no map has a line.
const fn usual(entry: Algorithm) -> Algorithm {
    Algorithm { usual: true, ..entry }
}

const fn number(
    what: &'static str,
    default: usize,
    least: usize,
    most: usize,
) -> AlgorithmParameter {
    AlgorithmParameter { what, default, least, most, only: Only::All }
}

const RADIX: AlgorithmParameter = number("radix", DEFAULT_RADIX, 2, 64);
const SEGMENT: AlgorithmParameter = number("segment in bytes", DEFAULT_SEGMENT, 64, 1 << 30);
const AT_ONCE: AlgorithmParameter =
    number("number of messages at once", DEFAULT_AT_ONCE, 1, 1 << 20);

/// Makes the entry of a composition of levels.
const fn two_level(operation: CollectiveKind, needs: &'static [Requirement]) -> Algorithm {
    let about = "within nodes, between their leaders, within nodes";
    let cost = "that of its steps";
    entry(operation, "TWO-LEVEL", Method::TwoLevel, Carrier::Hierarchy, needs, about, cost)
}

/// Makes the entry of a composition of the levels of one node.
const fn levels(operation: CollectiveKind, needs: &'static [Requirement]) -> Algorithm {
    let about = "within caches, NUMA domains and sockets, between their leaders, within them";
    let cost = "that of its steps";
    entry(operation, "LEVELS", Method::Levels, Carrier::Hierarchy, needs, about, cost)
}

/// Kini 2003, section 4.1.3: at most 2^k - 1 children at each step; 7 is best (figure 4.7).
const FAN_IN: AlgorithmParameter = AlgorithmParameter {
    what: "fan-in",
    default: 7,
    least: 1,
    most: 63,
    only: Only::OneLessThanPowers,
};

/// Maximum payload in bytes that is written into slots.
const WRITTEN: usize = slots::MOST;

/// Returns the entry with a cost function. Ranks that share memory select algorithms by the predicted time.
const fn shm(time: CostFunction, entry: Algorithm) -> Algorithm {
    Algorithm { time: Some(time), ..entry }
}

/// Requirements of algorithms that use a release-gather area, and of algorithms that cut payloads between elements.
const TOGETHER: Requirement = Requirement::Together(CENTRAL_MOST);
const ELEMENT: Requirement = ElementAtMost(UNIT_MOST);

/// Makes the entries of a prefix reduction among ranks that share memory.
#[rustfmt::skip]
const fn scans(operation: CollectiveKind) -> [Algorithm; 3] {
    use crate::scan::{scan_shm_read, scan_shm_slices, scan_shm_staged};
    const HALF: Requirement = ElementAtMost(UNIT_MOST / 2);
    [shm(scan_shm_staged::time, entry(operation, "SHM-STAGED", Method::Staged, Memory, &[TOGETHER, ELEMENT],
      "copied in; each rank combines those up to its own", "1 barrier a part")),
     shm(scan_shm_slices::time, entry(operation, "SHM-SLICES", Method::Slices, Memory, &[TOGETHER, HALF],
      "copied in; each rank computes all prefixes of a slice", "1 barrier a segment, and 1")),
     shm(scan_shm_read::time, entry(operation, "SHM-READ", Method::Read, Memory, &[TOGETHER, Direct, HALF],
      "each rank computes all prefixes of a slice of the others' own memory", "3 barriers"))]
}

/// Makes two entries for an algorithm of messages: `MPI-X`, the baseline over MPI's messages, and `X` over streams.
macro_rules! messages {
    ($operation:ident $name:literal $method:ident $([$parameter:expr])? {$($need:expr),*} $usual:literal
        $about:literal, $cost:literal $(, $time:path)?) => {
        &[
            Algorithm {
                name: concat!("MPI-", $name),
                usual: $usual,
                $(time: Some($time),)?
                $(parameter: Some($parameter),)?
                ..entry($operation, "", Method::$method, Messages, &[$($need),*],
                    concat!($about, ", over messages"), $cost)
            },
            Algorithm {
                $(time: Some($time),)?
                $(parameter: Some($parameter),)?
                ..entry($operation, $name, Method::$method, Streams, &[$($need),*],
                    concat!($about, ", over streams"), $cost)
            },
        ]
    };
}

/// All algorithms.
pub static ALGORITHMS: &[Algorithm] = &joined::<{ count() }>();

const fn count() -> usize {
    let (mut row, mut count) = (0, 0);
    while row < TABLE.len() {
        count += TABLE[row].len();
        row += 1;
    }
    count
}

const fn joined<const N: usize>() -> [Algorithm; N] {
    let mut all = [TABLE[0][0]; N];
    let (mut row, mut at) = (0, 0);
    while row < TABLE.len() {
        let mut i = 0;
        while i < TABLE[row].len() {
            all[at] = TABLE[row][i];
            at += 1;
            i += 1;
        }
        row += 1;
    }
    all
}

#[rustfmt::skip]
const TABLE: &[&[Algorithm]] = &[
    // Algorithms of ranks that share memory. These algorithms come first, so they are chosen if they are eligible.
    &[usual(shm(crate::barrier::barrier_central::time, entry(Barrier, "CENTRAL", Method::Central, Memory, &[TOGETHER],
        "a counter at rank 0; the last to come lets the others go", "1 wake-up a rank"))),
     usual(shm(crate::allreduce::allreduce_central::time, entry(Allreduce, "CENTRAL", Method::Central, Memory, &[TOGETHER, SameArithmeticOfTwo, AtMost(SLOT)],
        "slots at rank 0; the last to come combines them", "1 wake-up a rank")))],
    // The model has no time for them, so that only the levels of a node choose them.
    &[entry(Barrier, "SHM-LINES", Method::Lines, Memory, &[TOGETHER],
        "lines at rank 0, which lets the others go", "2 cache lines"),
     entry(Allreduce, "SHM-LINES", Method::Lines, Memory, &[TOGETHER, AtMost(leader_lines::MOST)],
        "lines at rank 0, which combines them", "2 cache lines, N - 1 combinations by one")],
    &[shm(crate::allreduce::shm_last::time, entry(Allreduce, "SHM-LAST", Method::Last, Memory, &[TOGETHER, Many, AtMost(BUFFER)],
        "copied in; the last to come combines all", "1 barrier, N - 1 payloads by one")),
     shm(crate::allreduce::allreduce_shm_pair::time, entry(Allreduce, "SHM-PAIR", Method::Pair, Memory, &[TOGETHER, Two, SameArithmetic, ELEMENT],
        "copied in part by part; both combine everything", "1 barrier a part"))],
    &[shm(crate::allreduce::allreduce_shm_slices::time, entry(Allreduce, "SHM-SLICES", Method::Slices, Memory, &[TOGETHER, ELEMENT],
        "copied in; each rank combines a slice (Rabenseifner 2004, by reads)", "1 barrier a segment, and 1")),
     shm(crate::allreduce::allreduce_shm_read::time, entry(Allreduce, "SHM-READ", Method::Read, Memory, &[TOGETHER, Direct, ELEMENT],
        "each rank combines a slice of the others' own memory (Rabenseifner 2004, Hashmi 2018)", "4 barriers"))],
    &[shm(crate::allreduce::shm_read_staged::time, entry(Allreduce, "SHM-READ-STAGED", Method::ReadStaged, Memory, &[TOGETHER, Direct, ELEMENT],
        "each rank combines a slice of the others' own memory, and copies the sum in", "1 barrier a part, and 1")),
     shm(crate::allreduce::allreduce_shm_read_whole::time, entry(Allreduce, "SHM-READ-WHOLE", Method::ReadWhole, Memory, &[TOGETHER, Direct, SameArithmetic, ELEMENT],
        "each rank combines all of the others' own memory", "2 barriers"))],
    &[shm(crate::reduce::reduce_shm_pair::time, entry(Reduce, "SHM-PAIR", Method::Pair, Memory, &[TOGETHER, Two, ELEMENT],
        "one copies in, and the other combines at once", "1 barrier a part")),
     shm(crate::allreduce::allreduce_shm_slices::time_to_root, entry(Reduce, "SHM-SLICES", Method::Slices, Memory, &[TOGETHER, ELEMENT],
        "copied in; each rank combines a slice, and the root reads it", "1 barrier a segment, and 1"))],
    &[shm(crate::allreduce::allreduce_shm_read::time_to_root, entry(Reduce, "SHM-READ", Method::Read, Memory, &[TOGETHER, Direct, ELEMENT],
        "each rank combines a slice of the others' own memory, and writes it to the root", "3 barriers")),
     shm(crate::reduce::reduce_shm_read_whole::time, entry(Reduce, "SHM-READ-WHOLE", Method::ReadWhole, Memory, &[TOGETHER, Direct, ELEMENT],
        "the root combines all of the others' own memory", "2 barriers"))],
    &[shm(crate::bcast::bcast_shm_ring::time, entry(Bcast, "SHM-RING", Method::StagingRing, Memory, &[TOGETHER],
        "the root fills a staging ring once, from which all read", "2 (N - 1) flags a part")),
     shm(crate::gather::gather_shm_ring::time, entry(Gather, "SHM-RING", Method::StagingRing, Memory, &[TOGETHER, EqualBlocks],
        "staging rings, from which the root reads", "2 (N - 1) flags a part"))],
    &[shm(crate::scatter::scatter_shm_ring::time, entry(Scatter, "SHM-RING", Method::StagingRing, Memory, &[TOGETHER, EqualBlocks],
        "the root fills a staging ring, from which each reads its own", "2 (N - 1) flags a part")),
     shm(crate::allgather::allgather_shm_swap::time, entry(Allgather, "SHM-SWAP", Method::Swap, Memory, &[TOGETHER, Two, EqualBlocks, AtMost(PAIR_MOST)],
        "each of two writes to the other, with the news of it", "1 flag"))],
    &[shm(crate::allgather::allgather_shm_staged::time, entry(Allgather, "SHM-STAGED", Method::Staged, Memory, &[TOGETHER],
        "blocks are copied in and read", "1 barrier a part")),
     shm(crate::allgather::allgather_shm_read::time, entry(Allgather, "SHM-READ", Method::Read, Memory, &[TOGETHER, Direct],
        "blocks are read from the others' own memory", "2 barriers"))],
    &[shm(crate::alltoall::alltoall_shm_swap::time, entry(Alltoall, "SHM-SWAP", Method::Swap, Memory, &[TOGETHER, Two, AtMost(PAIR_MOST)],
        "each of two writes to the other, with the news of it", "1 flag")),
     shm(crate::alltoall::alltoall_shm_staged::time, entry(Alltoall, "SHM-STAGED", Method::Staged, Memory, &[TOGETHER],
        "blocks are copied in and read", "1 barrier a part"))],
    &[shm(crate::alltoall::alltoall_shm_read::time, entry(Alltoall, "SHM-READ", Method::Read, Memory, &[TOGETHER, Direct],
        "blocks are read from the others' own memory", "2 barriers")),
     shm(crate::reduce_scatter::reduce_scatter_shm_swap::time, entry(ReduceScatter, "SHM-SWAP", Method::Swap, Memory, &[TOGETHER, Two, EqualBlocks, AtMost(2 * PAIR_MOST)],
        "each of two writes to the other, with the news of it", "1 flag"))],
    &[shm(crate::reduce_scatter::reduce_scatter_shm_staged::time, entry(ReduceScatter, "SHM-STAGED", Method::Staged, Memory, &[TOGETHER, ELEMENT],
        "copied in; each rank combines its block", "1 barrier a part")),
     shm(crate::reduce_scatter::reduce_scatter_shm_read::time, entry(ReduceScatter, "SHM-READ", Method::Read, Memory, &[TOGETHER, Direct, ELEMENT],
        "each rank combines its block of the others' own memory", "2 barriers"))],
    &scans(Scan), &scans(Exscan),

    // Algorithms of ranks on several nodes.
    &[two_level(Barrier, &[Nodes]), two_level(Bcast, &[Nodes])],
    &[two_level(Gather, &[Nodes, EqualBlocks]), two_level(Scatter, &[Nodes, EqualBlocks])],
    &[two_level(Allgather, &[Nodes]), two_level(Alltoall, &[Nodes, EqualBlocks])],
    &[two_level(Reduce, &[Nodes]), two_level(Allreduce, &[Nodes])],
    &[two_level(ReduceScatter, &[Nodes]), two_level(Scan, &[Nodes]), two_level(Exscan, &[Nodes])],

    // Algorithms of ranks in several caches of one node.
    &[levels(Barrier, &[Levels]), levels(Bcast, &[Levels])],
    &[levels(Gather, &[Levels, EqualBlocks]), levels(Scatter, &[Levels, EqualBlocks])],
    &[levels(Allgather, &[Levels]), levels(Alltoall, &[Levels, EqualBlocks])],
    &[levels(Reduce, &[Levels]), levels(Allreduce, &[Levels])],
    &[entry(Allreduce, "LEVEL-SLICES", Method::LevelSlices, Carrier::Hierarchy, &[Levels, EvenLevels, ElementEach],
        "slices combined within caches, NUMA domains and sockets, and by the ranks of each slice between them", "that of its steps")],
    &[with(SEGMENT, shm(crate::bcast::bcast_level_pipeline::time, entry(Bcast, "LEVEL-PIPELINE", Method::LevelPipeline, Messages, &[Levels],
        "segments down the tree of caches, NUMA domains and sockets (xhc, Katevenis 2022)", "a segment a level, then S - 1 segments"))),
      with(SEGMENT, shm(crate::reduce::reduce_level_pipeline::time, entry(Reduce, "LEVEL-PIPELINE", Method::LevelPipeline, Messages, &[Levels],
        "segments up the tree of caches, NUMA domains and sockets, along chains", "a segment a hop, then S - 1 segments a level")))],
    &[with(SEGMENT, shm(crate::allreduce::allreduce_level_pipeline::time, entry(Allreduce, "LEVEL-PIPELINE", Method::LevelPipeline, Messages, &[Levels],
        "segments up the tree of caches, NUMA domains and sockets along chains, and down it (xhc, Katevenis 2022)", "a segment a hop up and a level down, then S - 1 segments")))],
    &[levels(ReduceScatter, &[Levels]), levels(Scan, &[Levels]), levels(Exscan, &[Levels])],

    // Barriers.
    &[shm(crate::barrier::barrier_pairwise_exchange::time, entry(Barrier, "RPE", Method::PairwiseExchange, Writes, &[],
        "pairwise exchange by RDMA writes (Kini 4.1.1)", "log2 N, else floor(log2 N) + 2 rounds")),
     shm(crate::barrier::dissemination::time, entry(Barrier, "RDS", Method::Dissemination, Writes, &[],
        "dissemination by RDMA writes (Kini 4.1.2)", "ceil(log2 N) rounds"))],
    &[with(FAN_IN, entry(Barrier, "RGM", Method::GatherMulticast, Writes, &[Requirement::Multicast],
        "gather by RDMA writes, then one multicast (Kini 4.1.3)", "ceil(log_(l+1) N) writes, 1 datagram")),
     shm(crate::barrier::barrier_pairwise_exchange::time, entry(Barrier, "MPI-PE", Method::PairwiseExchange, Messages, &[],
        "pairwise exchange over messages (Kini 4.1.1)", "log2 N, else floor(log2 N) + 2 rounds"))],
    &[usual(shm(crate::barrier::dissemination::time, entry(Barrier, "MPI-DS", Method::Dissemination, Messages, &[],
        "dissemination over messages (Kini 4.1.2)", "ceil(log2 N) rounds"))),
     shm(crate::barrier::barrier_pairwise_exchange::time, entry(Barrier, "RECURSIVE-DOUBLING", Method::PairwiseExchange, Streams, &[],
        "recursive doubling over streams (CollGM 3.4)", "log2 N, else floor(log2 N) + 2 rounds"))],
    &[shm(crate::barrier::dissemination::time, entry(Barrier, "BRUCK", Method::Dissemination, Streams, &[],
        "Bruck's dissemination over streams (CollGM 3.4)", "ceil(log2 N) rounds")),
     shm(crate::allreduce::allreduce_pairwise_exchange::time, entry(Allreduce, "RPE", Method::PairwiseExchange, Writes, &[Commutes, SameArithmetic, AtMost(WRITTEN)],
        "pairwise exchange by RDMA writes (Kini 5.2.1)", "log2 N, else floor(log2 N) + 2 rounds"))],
    &[entry(Barrier, "RPE-IMM", Method::PairwiseExchange, Immediates, &[],
        "RPE by writes with immediate (Kini 3.3.2)", "log2 N, else floor(log2 N) + 2 rounds, a receive each"),
     entry(Barrier, "RDS-IMM", Method::Dissemination, Immediates, &[],
        "RDS by writes with immediate (Kini 3.3.2)", "ceil(log2 N) rounds, a receive each")],
    &[with(FAN_IN, entry(Barrier, "RGM-IMM", Method::GatherMulticast, Immediates, &[Requirement::Multicast],
        "RGM by writes with immediate (Kini 3.3.2)", "ceil(log_(l+1) N) writes, a receive each, 1 datagram")),
     entry(Allreduce, "RPE-IMM", Method::PairwiseExchange, Immediates, &[Commutes, SameArithmetic, AtMost(WRITTEN)],
        "RPE by writes with immediate (Kini 3.3.2)", "log2 N, else floor(log2 N) + 2 rounds, a receive each")],
    &[with(FAN_IN, entry(Barrier, "RGM-ACK", Method::GatherMulticastAcknowledged, Writes, &[Requirement::Multicast],
        "RGM whose multicast is acknowledged by all (Kini 3.3.4)",
        "ceil(log_(l+1) N) writes, 1 datagram, N - 1 messages"))],
    &[with(FAN_IN, shm(crate::barrier::fetch_add::time, entry(Barrier, "FETCH-ADD", Method::FetchAdd, Atomics, &[Requirement::Atomics],
        "fetch-and-add up a tree, RDMA writes down (Kini 4.1.3; Mellor-Crummey and Scott 1991)",
        "ceil(log_(l+1) N) atomics, then as many rounds of l writes")))],
    messages!(Barrier "N-WAY" NWay [RADIX] {} false "n-way dissemination",
        "ceil(log_k N) rounds of k - 1 messages", crate::barrier::n_way::time),

    // Broadcasts.
    messages!(Bcast "FLAT" Flat {} false "the root to everybody", "N - 1 messages at the root", crate::bcast::bcast_flat::time),
    messages!(Bcast "BINOMIAL" Binomial {} true "a binomial tree", "ceil(log2 N) rounds", crate::bcast::bcast_binomial::time),
    messages!(Bcast "K-NOMIAL" KNomial [RADIX] {} false "a k-nomial tree",
        "ceil(log_k N) rounds of k - 1 messages", crate::bcast::bcast_k_nomial::time),
    messages!(Bcast "BINARY" Binary [SEGMENT] {} false "a binary tree, in segments (CollGM 3.4)",
        "2 (floor(log2 N) + S - 1) segments", crate::bcast::binary::time),
    messages!(Bcast "SPLIT-BINARY" SplitBinary [SEGMENT] {} false
        "halves down a binary tree, then exchanged (Pjesivac-Grbovic 2005; CollGM 3.4)",
        "about 2 (log2 N - 2) + 1.5 S segments", crate::bcast::split_binary::time),
    messages!(Bcast "PIPELINE" Chain [SEGMENT] {} false "segments from rank to rank (CollGM 3.4)",
        "N - 2 + S segments", crate::bcast::bcast_chain::time),
    messages!(Bcast "SCATTER-ALLGATHER" ScatterAllgather {} false
        "scattered, then gathered by all round a ring (van de Geijn)", "log2 N + N - 1 rounds, 2 n bytes", crate::bcast::scatter_allgather::time),
    messages!(Bcast "SCATTER-DOUBLING" ScatterDoubling {PowerOfTwo} false
        "scattered, then gathered by all in doubling blocks", "2 log2 N rounds, 2 n bytes", crate::bcast::scatter_allgather::time_by_doubling),
    messages!(Bcast "CIRCULANT" Circulant [SEGMENT] {} false
        "round-optimal on circulant graphs (Traff 2023)", "S - 1 + ceil(log2 N) segments", crate::bcast::bcast_circulant::time),
    &[with(number("bytes of one multicast", 16 << 10, 64, 1 << 24),
        entry(Bcast, "MULTICAST", Method::GatherMulticast, Writes, &[Requirement::Multicast],
        "reliable multicast (Kini 6.1)", "n bytes, once")),
     usual(shm(crate::gather::gather_flat::time, entry(Gather, "MPI-FLAT", Method::Flat, Messages, &[],
        "everybody straight to the root, over messages", "N - 1 messages at the root")))],

    // Gathers and scatters.
    &[shm(crate::gather::gather_flat::time, entry(Gather, "FLAT", Method::Flat, Streams, &[],
        "everybody straight to the root, over streams (CollGM 3.4)", "N - 1 messages at the root")),
     shm(crate::scatter::scatter_flat::time, entry(Scatter, "FLAT", Method::Flat, Streams, &[],
        "the root straight to everybody, over streams (CollGM 3.4)", "N - 1 messages at the root"))],
    messages!(Gather "BINOMIAL" Binomial {EqualBlocks} false "a binomial tree (CollGM 3.4)",
        "ceil(log2 N) rounds", crate::gather::gather_binomial::time),
    &[entry(Gather, "ALLGATHER", Method::Allgather, Carrier::Hierarchy, &[EqualBlocks],
        "the map's allgather, of which all but the root forget the result", "that of an allgather")],
    messages!(Gatherv "FLAT" Flat {} true "everybody straight to the root", "N - 1 messages at the root",
        crate::gather::gather_flat::time),
    messages!(Gatherv "BINOMIAL" Binomial {} false "a binomial tree, lengths first",
        "2 ceil(log2 N) rounds", crate::gather::gather_binomial::time_unequal),
    &[usual(shm(crate::scatter::scatter_flat::time, entry(Scatter, "MPI-FLAT", Method::Flat, Messages, &[],
        "the root straight to everybody, over messages", "N - 1 messages at the root"))),
     entry(Allgather, "MULTICAST", Method::GatherMulticast, Writes, &[Requirement::Multicast, AtMost(WRITTEN)],
        "everybody multicasts its block (Kini 6.1)", "n bytes a rank out, N n in")],
    messages!(Scatter "BINOMIAL" Binomial {EqualBlocks} false "a binomial tree (CollGM 3.4)",
        "ceil(log2 N) rounds", crate::scatter::scatter_binomial::time),
    messages!(Scatterv "FLAT" Flat {} true "the root straight to everybody", "N - 1 messages at the root",
        crate::scatter::scatter_flat::time),
    messages!(Scatterv "BINOMIAL" Binomial {} false "a binomial tree, lengths first",
        "2 ceil(log2 N) rounds", crate::scatter::scatter_binomial::time_unequal),

    // Allgathers and alltoalls.
    messages!(Allgather "RING" Ring {} true "blocks travel round a ring", "N - 1 rounds",
        crate::allgather::allgather_ring::time),
    messages!(Allgather "BRUCK" Bruck {} false "doubling blocks (Bruck 1997)", "ceil(log2 N) rounds",
        crate::allgather::allgather_bruck::time),
    messages!(Allgather "CIRCULANT" Circulant {} false
        "growing runs of blocks, each received at its place (Traff 2024)", "ceil(log2 N) rounds",
        crate::allgather::allgather_circulant::time),
    messages!(Allgather "RECURSIVE-DOUBLING" RecursiveDoubling {PowerOfTwo} false
        "doubling blocks between partners", "log2 N rounds", crate::allgather::allgather_recursive_doubling::time),
    messages!(Allgather "NEIGHBORS" Neighbors {Even} false "two blocks at a time with either neighbour",
        "N / 2 rounds", crate::allgather::neighbor_exchange::time),
    messages!(Allgather "GATHER-BROADCAST" GatherBroadcast {} false "gathered, then broadcast",
        "2 ceil(log2 N) rounds", crate::allgather::allgather_gather_broadcast::time),
    &[with(RADIX, shm(crate::allgather::allgather_rds::time, entry(Allgather, "RDS", Method::Dissemination, Writes, &[EqualBlocks, BlocksAtMost(WRITTEN)],
        "growing blocks by RDMA writes (Bruck 1997, Kini 6.1)", "ceil(log_k N) rounds of k - 1 writes"))),
     with(RADIX, shm(crate::alltoall::alltoall_rds::time, entry(Alltoall, "RDS", Method::Dissemination, Writes, &[EqualBlocks, BlocksAtMost(WRITTEN)],
        "blocks by the digits of their way, by RDMA writes (Bruck 1997, Kini 6.1)",
        "ceil(log_k N) rounds of k - 1 writes of N / k blocks")))],
    &[with(RADIX, entry(Allgather, "RDS-IMM", Method::Dissemination, Immediates, &[EqualBlocks, BlocksAtMost(WRITTEN)],
        "RDS by writes with immediate (Kini 3.3.2)", "ceil(log_k N) rounds of k - 1 writes, a receive each")),
     with(RADIX, entry(Alltoall, "RDS-IMM", Method::Dissemination, Immediates, &[EqualBlocks, BlocksAtMost(WRITTEN)],
        "RDS by writes with immediate (Kini 3.3.2)",
        "ceil(log_k N) rounds of k - 1 writes of N / k blocks, a receive each"))],
    &[with(AT_ONCE, shm(crate::allgather::allgather_read::time, entry(Allgather, "READ", Method::Read, Reads, &[EqualBlocks],
        "all read each other's blocks, so many at a time (CollGM 3.2, Sur 2006)",
        "2 ceil(log2 N) rounds, N - 1 reads"))),
     with(AT_ONCE, shm(crate::alltoall::alltoall_read::time, entry(Alltoall, "READ", Method::Read, Reads, &[EqualBlocks],
        "all read their blocks, so many at a time (CollGM 3.2, Sur 2006)",
        "2 ceil(log2 N) rounds, N - 1 reads")))],
    messages!(Alltoall "LINEAR" Linear [AT_ONCE] {} false "all messages at once, so many at a time",
        "N - 1 messages", crate::alltoall::linear::time),
    messages!(Alltoall "PAIRWISE" Pairwise {} true "one partner a round", "N - 1 rounds",
        crate::alltoall::alltoall_pairwise::time),
    messages!(Alltoall "BRUCK" Bruck [RADIX] {EqualBlocks} false "blocks by the digits of their way (Bruck 1997)",
        "ceil(log_k N) rounds of k - 1 messages of N / k blocks", crate::alltoall::alltoall_bruck::time),
    messages!(Alltoallv "LINEAR" Linear [AT_ONCE] {} false "all messages at once, so many at a time",
        "N - 1 messages", crate::alltoall::linear::time),
    messages!(Alltoallv "PAIRWISE" Pairwise {} true "one partner a round", "N - 1 rounds",
        crate::alltoall::alltoall_pairwise::time),

    // Reductions.
    messages!(Reduce "BINOMIAL" Binomial {} true "a binomial tree", "ceil(log2 N) rounds", crate::reduce::reduce_binomial::time),
    messages!(Reduce "FLAT" Flat {} false "everybody straight to the root", "N - 1 messages and combinations at the root",
        crate::reduce::reduce_flat::time),
    messages!(Reduce "K-NOMIAL" KNomial [RADIX] {} false "a k-nomial tree",
        "ceil(log_k N) rounds of k - 1 messages", crate::reduce::reduce_k_nomial::time),
    messages!(Reduce "PIPELINE" Chain [SEGMENT] {} false "segments from rank to rank", "N - 2 + S segments", crate::reduce::reduce_chain::time),
    messages!(Reduce "RABENSEIFNER" Rabenseifner {} false "reduced and scattered, then gathered (Rabenseifner)",
        "2 log2 N rounds, 2 n bytes", crate::reduce::scatter_gather::time),
    &[with(FAN_IN, entry(Allreduce, "RGM", Method::GatherMulticast, Writes, &[Requirement::Multicast, AtMost(WRITTEN)],
        "reduction by RDMA writes, then multicast (Kini 5.2.2)", "ceil(log_(l+1) N) writes, 1 datagram")),
     shm(crate::allreduce::allreduce_pairwise_exchange::time, entry(Allreduce, "RECURSIVE-DOUBLING", Method::PairwiseExchange, Streams, &[Commutes, SameArithmetic],
        "pairwise exchange over streams", "log2 N, else floor(log2 N) + 2 rounds"))],
    &[usual(shm(crate::allreduce::allreduce_pairwise_exchange::time, entry(Allreduce, "MPI-PE", Method::PairwiseExchange, Messages, &[Commutes, SameArithmetic],
        "pairwise exchange over messages (Kini 5.2.1)", "log2 N, else floor(log2 N) + 2 rounds"))),
     usual(shm(crate::allreduce::allreduce_gather_broadcast::time, entry(Allreduce, "MPI-GB", Method::GatherBroadcast, Messages, &[],
        "reduction, then broadcast (Kini 5.2)", "2 ceil(log2 N) rounds")))],
    &[with(FAN_IN, entry(Allreduce, "RGM-ACK", Method::GatherMulticastAcknowledged, Writes, &[Requirement::Multicast, AtMost(WRITTEN)],
        "RGM whose multicast is acknowledged by all (Kini 3.3.4)",
        "ceil(log_(l+1) N) writes, 1 datagram, N - 1 messages"))],
    &[with(FAN_IN, entry(Allreduce, "RGM-IMM", Method::GatherMulticast, Immediates, &[Requirement::Multicast, AtMost(WRITTEN)],
        "RGM by writes with immediate (Kini 3.3.2)", "ceil(log_(l+1) N) writes, a receive each, 1 datagram"))],
    messages!(Allreduce "K-NOMIAL" KNomial [RADIX] {SameArithmetic} false "exchanges in groups of k",
        "ceil(log_k N) rounds of k - 1 messages", crate::allreduce::allreduce_k_nomial::time),
    messages!(Allreduce "RABENSEIFNER" Rabenseifner {} false
        "reduced and scattered by halving, gathered by doubling (Rabenseifner)",
        "2 log2 N rounds, 2 n bytes", crate::allreduce::rabenseifner::time),
    messages!(Allreduce "RING" Ring {Commutes} false "reduced and scattered, then gathered round a ring",
        "2 (N - 1) rounds, 2 n bytes", crate::allreduce::allreduce_ring::time),
    messages!(Allreduce "SWING" Swing {Commutes, PowerOfTwo} false
        "as Rabenseifner's, by swinging distances (De Sensi 2024)", "2 log2 N rounds, 2 n bytes", crate::allreduce::swing::time),
    messages!(Allreduce "CIRCULANT" Circulant {Commutes} false
        "reduced and scattered, then gathered on circulant graphs (Traff 2024)",
        "2 ceil(log2 N) rounds, 2 n bytes", crate::allreduce::allreduce_circulant::time),
    &[entry(Allreduce, "REDUCE-BCAST", Method::ReduceBroadcast, Carrier::Hierarchy, &[],
        "the map's reduce, then its bcast", "that of both")],
    messages!(ReduceScatter "REDUCE-SCATTERV" ReduceScatterv {} true "reduced to rank 0, which scatters",
        "ceil(log2 N) rounds, then N - 1 messages", crate::reduce_scatter::reduce_scatterv::time),
    messages!(ReduceScatter "PAIRWISE" Pairwise {Commutes} false "one partner a round", "N - 1 rounds, n bytes",
        crate::reduce_scatter::reduce_scatter_pairwise::time),
    messages!(ReduceScatter "RING" Ring {Commutes} false "sums travel round a ring", "N - 1 rounds, n bytes",
        crate::reduce_scatter::reduce_scatter_ring::time),
    messages!(ReduceScatter "HALVING" Halving {Commutes} false "recursive halving",
        "log2 N, else floor(log2 N) + 2 rounds, n bytes", crate::reduce_scatter::reduce_scatter_halving::time),
    messages!(ReduceScatter "CIRCULANT" Circulant {Commutes} false
        "halving runs of blocks on circulant graphs (Traff 2024)", "ceil(log2 N) rounds, n bytes", crate::reduce_scatter::reduce_scatter_circulant::time),
    messages!(Scan "CHAIN" Chain {} true "from rank to rank", "N - 1 rounds", crate::scan::scan_chain::time),
    messages!(Scan "RECURSIVE-DOUBLING" RecursiveDoubling {} false "doubling distances", "ceil(log2 N) rounds",
        crate::scan::scan_recursive_doubling::time),
    messages!(Exscan "CHAIN" Chain {} true "from rank to rank", "N - 1 rounds", crate::scan::scan_chain::time),
    messages!(Exscan "RECURSIVE-DOUBLING" RecursiveDoubling {} false "doubling distances",
        "ceil(log2 N) rounds", crate::scan::scan_recursive_doubling::time),
];
