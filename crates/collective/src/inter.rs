//! Operations between the two groups of an intercommunicator (MPI 5.0, section 6.2.2). The data of a group go to the other group.
//!
//! ```text
//!        local            bridge            remote
//!     0 ── 1 ── 2     every rank of one     0 ── 1
//!     a link like      group to every       their own
//!     any other        one of the other     local link
//! ```
//! [`direct`]: messages between each pair of ranks that have data for each other. [`leaders`]: steps within the groups, and
//! messages between their ranks 0.

pub mod direct;
pub mod leaders;

use crate::CommView;
use weft_fabric::Fabric;

/// Both views of an operation between two groups.
pub struct Sides<F: Fabric> {
    /// View of this process's group.
    pub local: CommView<F>,
    /// View of the other group: `members` are the members of the other group, `rank` is this process's rank in its own group.
    pub bridge: CommView<F>,
}

/// Root of an operation, as seen by one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Root {
    /// A rank of this group or, in an intercommunicator, of the other group.
    Rank(usize),
    /// MPI_ROOT: this process is the root of an operation with the other group.
    ThisProcess,
    /// MPI_PROC_NULL: another process of this group is the root of an operation with the other group.
    NotInvolved,
}

impl From<usize> for Root {
    fn from(rank: usize) -> Root {
        Root::Rank(rank)
    }
}
