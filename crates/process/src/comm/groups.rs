//! The processes of a communicator: its group, the other group of an intercommunicator, and the rank of this process.

use crate::{Compare, Group};

/// The groups of a communicator.
pub struct CommGroups {
    /// This process's group.
    pub local: Group,
    /// The other group of an intercommunicator.
    pub remote: Option<Group>,
    /// Group to which messages go: the other group of an intercommunicator, or the own group of an intracommunicator. With this
    /// field, the code for messages need not distinguish the two cases.
    pub peers: Group,
    /// Rank of this process in its group.
    pub rank: usize,
}

impl CommGroups {
    /// Creates the groups. Process `me` of the world is a member of `local`.
    pub fn new(local: Group, remote: Option<Group>, me: u32) -> CommGroups {
        let rank = local.rank_of(me).expect("a member makes the communicator");
        let peers = remote.as_ref().unwrap_or(&local).clone();
        CommGroups { local, remote, peers, rank }
    }

    /// Compares the groups of two communicators that are not the same.
    pub fn compare(&self, other: &CommGroups) -> Compare {
        let groups = self.local.compare(&other.local);
        let remotes = match (&self.remote, &other.remote) {
            (None, None) => Compare::Ident,
            (Some(mine), Some(theirs)) => mine.compare(theirs),
            _ => Compare::Unequal,
        };
        match (groups, remotes) {
            (Compare::Ident, Compare::Ident) => Compare::Congruent,
            (Compare::Unequal, _) | (_, Compare::Unequal) => Compare::Unequal,
            _ => Compare::Similar,
        }
    }
}
