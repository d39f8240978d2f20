//! The collective operations for which an algorithm is chosen.

use std::fmt;

/// A collective operation, as distinguished by the selection of algorithms.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum CollectiveKind {
    /// MPI_Barrier (MPI 5.0, section 6.3).
    Barrier,
    /// MPI_Bcast (MPI 5.0, section 6.4).
    Bcast,
    /// MPI_Gather: blocks of equal length, which all ranks know (MPI 5.0, section 6.5).
    Gather,
    /// MPI_Gatherv: blocks of lengths that only the root knows (MPI 5.0, section 6.5).
    Gatherv,
    /// MPI_Scatter: blocks of equal length, which all ranks know (MPI 5.0, section 6.6).
    Scatter,
    /// MPI_Scatterv: blocks of lengths that only the root knows (MPI 5.0, section 6.6).
    Scatterv,
    /// MPI_Allgather and MPI_Allgatherv (MPI 5.0, section 6.7).
    Allgather,
    /// MPI_Alltoall: blocks of equal length, which all ranks know (MPI 5.0, section 6.8).
    Alltoall,
    /// MPI_Alltoallv and MPI_Alltoallw: a rank knows the lengths of its own blocks (MPI 5.0,
    /// section 6.8).
    Alltoallv,
    /// MPI_Reduce (MPI 5.0, section 6.9.1).
    Reduce,
    /// MPI_Allreduce (MPI 5.0, section 6.9.6).
    Allreduce,
    /// MPI_Reduce_scatter and MPI_Reduce_scatter_block (MPI 5.0, section 6.10).
    ReduceScatter,
    /// MPI_Scan: combines the operands of the ranks up to and including this rank (MPI 5.0, section 6.11.1).
    Scan,
    /// MPI_Exscan: combines the operands of the lower ranks only (MPI 5.0, section 6.11.2).
    Exscan,
}

impl CollectiveKind {
    /// All operations; `operation as usize` is an operation's index in this array.
    pub const ALL: [CollectiveKind; 14] = {
        use CollectiveKind::*;
        [
            Barrier,
            Bcast,
            Gather,
            Gatherv,
            Scatter,
            Scatterv,
            Allgather,
            Alltoall,
            Alltoallv,
            Reduce,
            Allreduce,
            ReduceScatter,
            Scan,
            Exscan,
        ]
    };

    /// Returns the name in maps and settings.
    pub const fn name(self) -> &'static str {
        use CollectiveKind::*;
        match self {
            Barrier => "barrier",
            Bcast => "bcast",
            Gather => "gather",
            Gatherv => "gatherv",
            Scatter => "scatter",
            Scatterv => "scatterv",
            Allgather => "allgather",
            Alltoall => "alltoall",
            Alltoallv => "alltoallv",
            Reduce => "reduce",
            Allreduce => "allreduce",
            ReduceScatter => "reduce_scatter",
            Scan => "scan",
            Exscan => "exscan",
        }
    }

    /// Returns the operation of this name. The error lists the known names.
    pub fn named(name: &str) -> Result<CollectiveKind, String> {
        let found = CollectiveKind::ALL.into_iter().find(|o| o.name().eq_ignore_ascii_case(name));
        found.ok_or_else(|| {
            let known: Vec<_> = CollectiveKind::ALL.iter().map(|o| o.name()).collect();
            format!("no collective operation {name:?}; known: {}", known.join(", "))
        })
    }

    /// Returns the meaning of "bytes" when an algorithm is selected for the operation.
    pub fn measure(self) -> &'static str {
        use CollectiveKind::*;
        match self {
            Barrier => "nothing",
            Bcast | Reduce | Allreduce | Scan | Exscan => "the whole buffer",
            Gather | Scatter | Alltoall => "one rank's block",
            Allgather => "one rank's block, the mean where they differ",
            ReduceScatter => "the whole send buffer",
            Gatherv | Scatterv | Alltoallv => "nothing: no rank knows all lengths",
        }
    }
}

impl fmt::Display for CollectiveKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
