//! Connections between jobs: the messages by which processes of several jobs become peers, and the state of such connections,
//! which is the same for all networks. The processes exchange messages in rounds: each member sends bytes and receives the bytes
//! of all members.

#![warn(missing_docs)]

mod connectable;
mod connections;
pub mod messages;
mod roster;

pub use connectable::{Connectable, Introduced, JobMembers, SessionBody, SessionMembers};
pub use connections::{JobConnection, JobConnections};
pub use roster::{Foreign, Roster};

/// The identity of a process that is about to become a peer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PeerIdentity {
    /// The number of the job of the process. All members use the same number for a job, and no two jobs share a number.
    pub job: u64,
    /// The rank of the process in the shared-memory fabric of its job.
    pub rank: usize,
    /// The node of the process, by the numbers of nodes in its job.
    pub node: u32,
    /// The number under which the local process already knows this process; `None` if it is not a peer yet.
    pub known: Option<usize>,
}

/// A function that sends bytes to all members and returns the bytes that each member sent, by place.
pub type Exchange<'e> = &'e mut dyn FnMut(Vec<u8>) -> Result<Vec<Vec<u8>>, String>;
