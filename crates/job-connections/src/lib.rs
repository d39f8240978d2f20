//! Connections between jobs: the messages by which processes of several jobs become peers, and what a network of any kind keeps
//! of such connections. In each round every member sends bytes and receives the bytes of all members.

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
    /// The number of its job. All members use the same number for a job, and no two jobs share a number.
    pub job: u64,
    /// The rank among the processes of its job that a shared-memory fabric connects.
    pub rank: usize,
    /// The node, as its job numbers nodes.
    pub node: u32,
    /// The number under which this process already knows the peer, if it does.
    pub known: Option<usize>,
}

/// A function that sends bytes to all members and returns the bytes that each member sent, by place.
pub type Exchange<'e> = &'e mut dyn FnMut(Vec<u8>) -> Result<Vec<Vec<u8>>, String>;
