//! The list itself.

use super::{Algorithm, Carrier, Method, Need, Only, Operation, Parameter};
use crate::{CENTRAL_MOST, SLOT, shared::UNIT_MOST, slots};
use Carrier::{Memory, Messages, Writes};
use Need::*;
use Operation::*;

const fn entry(
    operation: Operation,
    name: &'static str,
    (method, carrier): (Method, Carrier),
    needs: &'static [Need],
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
    }
}

/// Serves where no map says anything.
const fn usual(entry: Algorithm) -> Algorithm {
    Algorithm { usual: true, ..entry }
}

const fn with(parameter: Parameter, entry: Algorithm) -> Algorithm {
    Algorithm { parameter: Some(parameter), ..entry }
}

/// Kini 2003, section 4.1.3: 2^k - 1 children at each step, best 7 (figure 4.7).
const FAN_IN: Parameter =
    Parameter { what: "fan-in", default: 7, least: 1, most: 63, only: Only::OneLessThanPowers };

const WRITTEN: usize = slots::MOST;

/// Bytes of a scan up to which nobody waits for ranks above, and those below run ahead.
const CHAIN_MOST: usize = 2 << 10;

/// All algorithms. Within an operation those that were published together stand together.
#[rustfmt::skip]
pub static ALGORITHMS: &[Algorithm] = &[
    usual(entry(Barrier, "CENTRAL", (Method::Central, Memory), &[Together(CENTRAL_MOST)],
        "a counter at rank 0; the last to come lets the others go", "1 wake-up a rank")),
    entry(Barrier, "RPE", (Method::PairwiseExchange, Writes), &[],
        "pairwise exchange by RDMA writes (Kini 4.1.1)", "log2 N, else floor(log2 N) + 2 rounds"),
    entry(Barrier, "RDS", (Method::Dissemination, Writes), &[],
        "dissemination by RDMA writes (Kini 4.1.2)", "ceil(log2 N) rounds"),
    entry(Barrier, "MPI-PE", (Method::PairwiseExchange, Messages), &[],
        "pairwise exchange over messages (Kini 4.1.1)", "log2 N, else floor(log2 N) + 2 rounds"),
    usual(entry(Barrier, "MPI-DS", (Method::Dissemination, Messages), &[],
        "dissemination over messages (Kini 4.1.2)", "ceil(log2 N) rounds")),

    usual(entry(Bcast, "SHARED", (Method::Shared, Memory), &[Together(CENTRAL_MOST)],
        "straight from the root, or from its desk", "1 round; 1 meeting a part")),
    usual(entry(Bcast, "MPI-BINOMIAL", (Method::Binomial, Messages), &[],
        "a binomial tree", "ceil(log2 N) rounds")),

    usual(entry(Gather, "MPI-FLAT", (Method::Flat, Messages), &[],
        "everybody straight to the root", "N - 1 messages at the root")),
    usual(entry(Gatherv, "MPI-FLAT", (Method::Flat, Messages), &[],
        "everybody straight to the root", "N - 1 messages at the root")),
    usual(entry(Scatter, "MPI-FLAT", (Method::Flat, Messages), &[],
        "the root straight to everybody", "N - 1 messages at the root")),
    usual(entry(Scatterv, "MPI-FLAT", (Method::Flat, Messages), &[],
        "the root straight to everybody", "N - 1 messages at the root")),

    usual(entry(Allgather, "SHARED", (Method::Shared, Memory), &[Together(CENTRAL_MOST)],
        "blocks are put down and read", "1 meeting a part")),
    usual(entry(Allgather, "MPI-RING", (Method::Ring, Messages), &[],
        "blocks travel round a ring", "N - 1 rounds")),

    usual(entry(Alltoall, "SHARED", (Method::Shared, Memory), &[Together(CENTRAL_MOST)],
        "blocks are put down and read", "1 meeting a part")),
    usual(entry(Alltoall, "MPI-PAIRWISE", (Method::Pairwise, Messages), &[],
        "one partner a round", "N - 1 rounds")),
    usual(entry(Alltoallv, "MPI-PAIRWISE", (Method::Pairwise, Messages), &[],
        "one partner a round", "N - 1 rounds")),

    usual(entry(Reduce, "SHARED", (Method::Shared, Memory), &[Together(CENTRAL_MOST), ElementAtMost(UNIT_MOST)],
        "straight to the root, or each rank combines a slice", "N - 1 messages; 1 meeting a segment")),
    usual(entry(Reduce, "MPI-BINOMIAL", (Method::Binomial, Messages), &[],
        "a binomial tree", "ceil(log2 N) rounds")),

    usual(entry(Allreduce, "CENTRAL", (Method::Central, Memory), &[Together(CENTRAL_MOST), AtMost(SLOT)],
        "slots at rank 0; the last to come combines them", "1 wake-up a rank")),
    usual(entry(Allreduce, "SHARED", (Method::Shared, Memory), &[Together(CENTRAL_MOST), ElementAtMost(UNIT_MOST)],
        "each rank combines a slice (Rabenseifner 2004, by reads)", "1 meeting a segment, and 1")),
    entry(Allreduce, "RPE", (Method::PairwiseExchange, Writes), &[Commutes, SameArithmetic, AtMost(WRITTEN)],
        "pairwise exchange by RDMA writes (Kini 5.2.1)", "log2 N, else floor(log2 N) + 2 rounds"),
    usual(entry(Allreduce, "MPI-PE", (Method::PairwiseExchange, Messages), &[Commutes, SameArithmetic],
        "pairwise exchange over messages (Kini 5.2.1)", "log2 N, else floor(log2 N) + 2 rounds")),
    usual(entry(Allreduce, "MPI-GB", (Method::GatherBroadcast, Messages), &[],
        "reduction, then broadcast (Kini 5.2)", "2 ceil(log2 N) rounds")),

    usual(entry(ReduceScatter, "SHARED", (Method::Shared, Memory), &[Together(CENTRAL_MOST), ElementAtMost(UNIT_MOST)],
        "each rank combines its block of what was put down", "1 meeting a part")),
    usual(entry(ReduceScatter, "MPI-REDUCE-SCATTERV", (Method::ReduceScatterv, Messages), &[],
        "reduction to rank 0, which scatters", "ceil(log2 N) rounds, then N - 1 messages")),
    usual(entry(Scan, "SHARED", (Method::Shared, Memory),
        &[Together(CENTRAL_MOST), ElementAtMost(UNIT_MOST / 2), MoreThan(CHAIN_MOST)],
        "each rank computes all prefixes of a slice", "1 meeting a segment, and 1")),
    usual(entry(Scan, "MPI-CHAIN", (Method::Chain, Messages), &[], "from rank to rank", "N - 1 rounds")),
    usual(entry(Exscan, "SHARED", (Method::Shared, Memory),
        &[Together(CENTRAL_MOST), ElementAtMost(UNIT_MOST / 2), MoreThan(CHAIN_MOST)],
        "each rank computes all prefixes of a slice", "1 meeting a segment, and 1")),
    usual(entry(Exscan, "MPI-CHAIN", (Method::Chain, Messages), &[], "from rank to rank", "N - 1 rounds")),
];

/// Used by the table of RGM.
#[allow(dead_code)]
pub(crate) const RGM_FAN_IN: Parameter = FAN_IN;
#[allow(dead_code)]
const _: fn(Parameter, Algorithm) -> Algorithm = with;
