//! Grid of measurements: numbers of ranks and bytes, and algorithms with their parameters.

use weft_collective::algorithm::{Algorithm, AlgorithmChoice, Only};
use weft_collective::selection_key::{RankPlacement, SelectionKey};
use weft_collective::{CollectiveKind, catalog};

/// Number of bytes of an element of a reduction (MPI_INT).
pub const ELEMENT: usize = 4;

/// Number of bytes of a rank's block that is measured for operations in which no rank knows all lengths. The map of such an
/// operation has a single line for all sizes.
pub const UNKNOWN: usize = 4096;

/// Default sizes in bytes.
pub const BYTES: &[usize] =
    &[8, 32, 128, 512, 2 << 10, 8 << 10, 32 << 10, 128 << 10, 512 << 10, 2 << 20];

/// Default numbers of ranks: numbers at which the number of rounds changes, and some numbers between them.
pub const RANKS: &[usize] = &[2, 3, 4, 5, 6, 7, 8, 9, 12, 15, 16, 17, 24, 31, 32, 33, 48, 63, 64];

/// Maximum number of bytes of all blocks of an operation together. For larger blocks the best algorithm no longer changes, and
/// simulation takes long.
const MOST: usize = 32 << 20;

/// Returns the sizes that are measured for an operation on `ranks` ranks: the members of `bytes` that make sense for the operation.
pub fn sizes(operation: CollectiveKind, ranks: usize, bytes: &[usize]) -> Vec<usize> {
    use CollectiveKind::*;
    match operation {
        Barrier | Gatherv | Scatterv | Alltoallv => vec![0],
        Gather | Scatter | Allgather | Alltoall => {
            let fits = |b: &usize| b.saturating_mul(ranks) <= MOST;
            bytes.iter().copied().filter(fits).collect()
        }
        _ => bytes.to_vec(),
    }
}

/// Sorts the operations, so that each operation comes after the operations of which it consists.
pub fn in_order(operations: &[CollectiveKind]) -> Vec<CollectiveKind> {
    let mut order = operations.to_vec();
    // A gather may be carried out by an allgather.
    order.sort_by_key(|&operation| operation == CollectiveKind::Gather);
    order
}

/// Returns the call that a line of the map describes: the operator commutes, and blocks have equal size.
pub fn case(
    operation: CollectiveKind,
    ranks: usize,
    bytes: usize,
    site: RankPlacement,
) -> SelectionKey {
    use CollectiveKind::*;
    let element = match operation {
        Reduce | Allreduce | ReduceScatter | Scan | Exscan => ELEMENT,
        _ => 1,
    };
    SelectionKey { ranks, bytes, element, commutes: true, equal: true, site }
}

/// Returns the values of an algorithm's parameter that are tried.
fn values(algorithm: &Algorithm, case: &SelectionKey) -> Vec<usize> {
    let Some(parameter) = algorithm.parameter else { return vec![0] };
    let tried: Vec<usize> = match (parameter.what, parameter.only) {
        // A number of children above the number of other ranks has no further effect.
        (_, Only::OneLessThanPowers) => {
            [1, 3, 7, 15, 31].into_iter().filter(|&n| n == 1 || n < 2 * case.ranks - 1).collect()
        }
        // The first radix that is not less than the number of ranks needs only one step, so larger radices are not tried.
        ("radix", _) => [2, 4, 8, 16].into_iter().filter(|&k| k < 2 * case.ranks).collect(),
        ("number of messages at once", _) => {
            [4, 16, 64].into_iter().filter(|&n| n == 4 || n < case.ranks).collect()
        }
        // A piece larger than the message has the same effect as a piece of the message's size.
        (what, _) if what.contains("bytes") => {
            let all = [8 << 10, 32 << 10, 64 << 10, 256 << 10];
            let fits = |&n: &usize| n < case.bytes || n == 8 << 10;
            all.into_iter().filter(fits).collect()
        }
        _ => vec![parameter.default],
    };
    tried.into_iter().filter(|n| (parameter.least..=parameter.most).contains(n)).collect()
}

/// Returns all algorithms that may serve `case`, each with each value of its parameter.
pub fn choices(operation: CollectiveKind, case: &SelectionKey) -> Vec<AlgorithmChoice> {
    let eligible =
        catalog::ALGORITHMS.iter().filter(|a| a.operation == operation && a.eligible(case).is_ok());
    eligible
        .flat_map(|algorithm| {
            values(algorithm, case)
                .into_iter()
                .map(move |parameter| AlgorithmChoice { algorithm, parameter })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_tried_as_far_as_they_differ() {
        let site = RankPlacement { multicast: 2048, ..RankPlacement::apart(16) };
        let names = |operation, ranks, bytes| -> Vec<String> {
            let case = case(operation, ranks, bytes, site);
            choices(operation, &case).iter().map(AlgorithmChoice::to_string).collect()
        };
        let barrier = names(CollectiveKind::Barrier, 4, 0);
        for name in ["RGM:1", "RGM:3", "MPI-DS", "N-WAY:2", "N-WAY"] {
            assert!(barrier.iter().any(|n| n == name), "{name}: {barrier:?}");
        }
        for name in ["CENTRAL", "RGM:15", "N-WAY:8", "N-WAY:16"] {
            assert!(!barrier.iter().any(|n| n == name), "{name}: {barrier:?}");
        }
        let small = names(CollectiveKind::Bcast, 4, 8);
        assert!(small.iter().any(|n| n == "PIPELINE:8192"), "{small:?}");
        assert!(!small.iter().any(|n| n == "PIPELINE"), "{small:?}");
        assert!(names(CollectiveKind::Bcast, 4, 1 << 20).iter().any(|n| n == "PIPELINE"));
    }

    #[test]
    fn every_operation_is_measured_somewhere() {
        for operation in CollectiveKind::ALL {
            for ranks in [2, 64] {
                assert!(!sizes(operation, ranks, BYTES).is_empty(), "{operation}");
            }
        }
    }
}
