//! Choice of Open MPI's component `tuned` on one node, as its table of decisions has it (`coll_tuned_decision_fixed.c`, the functions
//! for any communicator, of 2020 and later). Each of its algorithms is the algorithm of this library that does the same over messages.

use weft_collective::CollectiveKind;

/// A line of the table: the algorithm from this number of ranks and from this number of bytes on.
struct TunedLine {
    ranks: usize,
    bytes: usize,
    name: &'static str,
}

const fn line(ranks: usize, bytes: usize, name: &'static str) -> TunedLine {
    TunedLine { ranks, bytes, name }
}

/// `binary_tree` without segments: one segment has the longest length that the algorithm takes.
const WHOLE_BINARY: &str = "MPI-BINARY:1073741824";

/// `binomial`, `knomial` of radix 4, `binary_tree`, `basic_linear`.
const BCAST: [TunedLine; 8] = [
    line(32, 0, "MPI-BINOMIAL"),
    line(32, 2 << 10, "MPI-K-NOMIAL"),
    line(64, 0, "MPI-K-NOMIAL"),
    line(128, 0, "MPI-BINOMIAL"),
    line(128, 2, WHOLE_BINARY),
    line(128, 16 << 10, "MPI-FLAT"),
    line(128, 32 << 10, WHOLE_BINARY),
    line(128, 64 << 10, "MPI-K-NOMIAL"),
];

/// `segmented_ring`, which is recursive doubling if there are fewer elements of a byte than ranks and else a ring; `rabenseifner`;
/// `recursive_doubling`; `nonoverlapping`, which is a reduction and a broadcast.
const ALLREDUCE: [TunedLine; 8] = [
    line(32, 0, "MPI-PE"),
    line(32, 32, "MPI-RING"),
    line(32, 128, "MPI-RABENSEIFNER"),
    line(64, 0, "MPI-PE"),
    line(64, 256 << 10, "MPI-RABENSEIFNER"),
    line(128, 0, "MPI-GB"),
    line(128, 128 << 10, "MPI-PE"),
    line(128, 256 << 10, "MPI-RABENSEIFNER"),
];

/// `binomial`.
const GATHER: [TunedLine; 1] = [line(8, 0, "MPI-BINOMIAL")];

/// Returns the name of the algorithm for a call of `operation`.
pub fn choice(
    operation: CollectiveKind,
    ranks: usize,
    bytes: usize,
) -> Result<&'static str, String> {
    let table: &[TunedLine] = match operation {
        CollectiveKind::Bcast => &BCAST,
        CollectiveKind::Allreduce => &ALLREDUCE,
        CollectiveKind::Gather => &GATHER,
        other => return Err(format!("no table of {other} here")),
    };
    let group = table.iter().rev().find(|line| line.ranks <= ranks).map(|line| line.ranks);
    let of_group = |line: &&TunedLine| Some(line.ranks) == group && line.bytes <= bytes;
    let found = table.iter().rev().find(of_group).map(|line| line.name);
    found.ok_or_else(|| format!("{operation} on {ranks} ranks is not in the table"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_found_by_ranks_and_then_by_bytes() {
        let bcast = |ranks, bytes| choice(CollectiveKind::Bcast, ranks, bytes).unwrap();
        assert_eq!(bcast(63, 2047), "MPI-BINOMIAL");
        assert_eq!(bcast(63, 2 << 20), "MPI-K-NOMIAL");
        assert_eq!(bcast(96, 8), "MPI-K-NOMIAL");
        assert_eq!((bcast(192, 8), bcast(192, 20 << 10)), (WHOLE_BINARY, "MPI-FLAT"));
        let allreduce = |ranks, bytes| choice(CollectiveKind::Allreduce, ranks, bytes).unwrap();
        assert_eq!((allreduce(32, 8), allreduce(32, 64)), ("MPI-PE", "MPI-RING"));
        assert_eq!((allreduce(128, 8), allreduce(96, 8)), ("MPI-GB", "MPI-PE"));
        assert_eq!(choice(CollectiveKind::Gather, 192, 0).unwrap(), "MPI-BINOMIAL");
        assert!(choice(CollectiveKind::Bcast, 16, 8).unwrap_err().contains("16 ranks"));
        assert!(choice(CollectiveKind::Scan, 64, 8).is_err());
    }
}
