//! Operations between the two groups of an intercommunicator (MPI 5.0, section 6.2.2): what one group
//! gives, the other gets.
//!
//! ```text
//!        local            bridge            remote
//!     0 ── 1 ── 2     every rank of one     0 ── 1
//!     a link like      group to every       their own
//!     any other        one of the other     local link
//! ```
//! [`direct`]: each pair that has data for one another. [`leaders`]: within the groups, and rank 0 of
//! each to the other.

pub mod direct;
pub mod leaders;

use crate::CommView;
use weft_fabric::Fabric;

/// Both views of one operation.
pub struct Sides<F: Fabric> {
    /// The own group.
    pub local: CommView<F>,
    /// The other group: `members` are the other group's, `rank` is the own one in the own group.
    pub bridge: CommView<F>,
}

/// Where the root of an operation is, as seen by one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Root {
    /// A rank of the group; in an intercommunicator, of the other group.
    Rank(usize),
    /// MPI_ROOT: this process, for the other group.
    ThisProcess,
    /// MPI_PROC_NULL: another process of this group, for the other group.
    NotInvolved,
}

impl From<usize> for Root {
    fn from(rank: usize) -> Root {
        Root::Rank(rank)
    }
}
