//! Counts of the collective operations that were started, by kind.

use crate::chapter_state::ChapterState;
use crate::engine::CommObject;
use std::cell::Cell;

/// Names of the kinds. Blocking, nonblocking and persistent operations of a kind are counted together, under the name of the
/// blocking function.
pub const KINDS: &[&str] = &[
    "MPI_Barrier",
    "MPI_Bcast",
    "MPI_Gather",
    "MPI_Gatherv",
    "MPI_Scatter",
    "MPI_Scatterv",
    "MPI_Allgather",
    "MPI_Allgatherv",
    "MPI_Alltoall",
    "MPI_Alltoallv",
    "MPI_Alltoallw",
    "MPI_Reduce",
    "MPI_Allreduce",
    "MPI_Reduce_scatter",
    "MPI_Reduce_scatter_block",
    "MPI_Scan",
    "MPI_Exscan",
    "MPI_Neighbor_allgather",
    "MPI_Neighbor_allgatherv",
    "MPI_Neighbor_alltoall",
    "MPI_Neighbor_alltoallv",
    "MPI_Neighbor_alltoallw",
    OTHER,
];

/// Kind of all operations whose name is not in the list.
const OTHER: &str = "MPI_Other";

/// Number of operations that were started, by index in [`KINDS`].
pub static STARTED: ChapterState<[Cell<u64>; KINDS.len()]> =
    ChapterState::new([const { Cell::new(0) }; KINDS.len()]);

/// Returns the index of an operation in [`KINDS`].
pub const fn kind(name: &str) -> usize {
    let mut at = 0;
    while at < KINDS.len() - 1 && !same(KINDS[at].as_bytes(), name.as_bytes()) {
        at += 1;
    }
    at
}

const fn same(a: &[u8], b: &[u8]) -> bool {
    let mut at = 0;
    while at < a.len() && at < b.len() && a[at] == b[at] {
        at += 1;
    }
    at == a.len() && at == b.len()
}

/// Counts an operation on a communicator. `kind` is an index in [`KINDS`].
#[inline]
pub fn count(kind: usize, comm: &CommObject) {
    for count in [&STARTED[kind], &comm.started] {
        count.set(count.get() + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_have_their_places() {
        for (place, name) in KINDS.iter().enumerate() {
            assert_eq!(kind(name), place);
        }
        assert_eq!(KINDS[kind("MPI_Reduce_scatte")], OTHER);
        assert_eq!(KINDS[kind("")], OTHER);
    }
}
