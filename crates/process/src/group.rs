//! Groups: ordered sets of processes, each named by its rank in the world (MPI 5.0, section 7.3).

use std::collections::HashSet;
use std::rc::Rc;
use weft_collective::Members;

/// Result of comparing two groups or communicators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compare {
    /// The same communicator, or groups with the same members in the same order.
    Ident,
    /// Only for communicators: members and order agree, but messages of the two communicators do not match each other.
    Congruent,
    /// Members agree, but in another order.
    Similar,
    /// Members differ, or only one of the two communicators is an intercommunicator.
    Unequal,
}

/// An ordered set of world ranks. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Group {
    ranks: Rc<[u32]>,
    session: usize,
    /// The list of ranks, with data derived from the list. All clones of a group share these data. So if simulated ranks share a
    /// group of the world, the data are derived only once.
    members: Rc<Members>,
}

impl PartialEq for Group {
    fn eq(&self, other: &Group) -> bool {
        (&self.ranks, self.session) == (&other.ranks, other.session)
    }
}

impl Eq for Group {}

impl Group {
    /// Makes a group. `ranks` are different world ranks.
    pub fn new(ranks: impl Into<Rc<[u32]>>) -> Group {
        let ranks = ranks.into();
        Group { ranks: ranks.clone(), session: 0, members: Rc::new(ranks.into()) }
    }

    /// Returns the same group, derived from a session. `session` is a handle of the layer above; 0 means no session. Groups derived
    /// from this group, and their communicators, keep the session.
    pub fn of_session(self, session: usize) -> Group {
        Group { session, ..self }
    }

    /// Returns the handle of the session from which the group is derived; 0 if there is no session.
    pub fn session(&self) -> usize {
        self.session
    }

    /// Makes a group of other members with the same session.
    fn with(&self, ranks: Vec<u32>) -> Group {
        Group::new(ranks).of_session(self.session)
    }

    /// Returns the members' ranks in the world, by rank in this group.
    pub fn ranks(&self) -> &Rc<[u32]> {
        &self.ranks
    }

    /// Returns the members in the form that views of collective operations use.
    pub fn members(&self) -> &Rc<Members> {
        &self.members
    }

    /// Returns the number of members, which is 0 for MPI_GROUP_EMPTY.
    pub fn size(&self) -> usize {
        self.ranks.len()
    }

    /// Returns true if `other` is a clone of this group, and not another group with the same members.
    pub fn is(&self, other: &Group) -> bool {
        Rc::ptr_eq(&self.ranks, &other.ranks)
    }

    /// Returns the place of a world rank in this group.
    pub fn rank_of(&self, world: u32) -> Option<usize> {
        match self.ranks.get(world as usize) {
            // In the world, and in groups that begin like the world, each process is at the place of its rank.
            Some(&rank) if rank == world => Some(world as usize),
            _ => self.ranks.iter().position(|&r| r == world),
        }
    }

    /// Compares two groups: [`Compare::Ident`], [`Compare::Similar`] or [`Compare::Unequal`] (MPI_Group_compare). Their sessions do
    /// not matter.
    pub fn compare(&self, other: &Group) -> Compare {
        if self.ranks == other.ranks {
            return Compare::Ident;
        }
        let (a, b): (HashSet<_>, HashSet<_>) =
            (self.ranks.iter().collect(), other.ranks.iter().collect());
        if a == b { Compare::Similar } else { Compare::Unequal }
    }

    /// Returns the members of this group in its order, then the members of `other` that are not in this group.
    pub fn union(&self, other: &Group) -> Group {
        let mine: HashSet<_> = self.ranks.iter().collect();
        let more = other.ranks.iter().filter(|r| !mine.contains(r));
        self.with(self.ranks.iter().chain(more).copied().collect())
    }

    /// Returns the members of this group that are in `other`, in the order of this group.
    pub fn intersection(&self, other: &Group) -> Group {
        let theirs: HashSet<_> = other.ranks.iter().collect();
        self.with(self.ranks.iter().filter(|r| theirs.contains(r)).copied().collect())
    }

    /// Returns the members of this group that are not in `other`, in the order of this group.
    pub fn difference(&self, other: &Group) -> Group {
        let theirs: HashSet<_> = other.ranks.iter().collect();
        self.with(self.ranks.iter().filter(|r| !theirs.contains(r)).copied().collect())
    }

    /// Returns the members at `places`, in that order. Places are in range and different.
    pub fn include(&self, places: &[usize]) -> Group {
        self.with(places.iter().map(|&p| self.ranks[p]).collect())
    }

    /// Returns all members except the members at `places`.
    pub fn exclude(&self, places: &[usize]) -> Group {
        let out: HashSet<_> = places.iter().collect();
        let keep = (0..self.size()).filter(|p| !out.contains(p));
        self.with(keep.map(|p| self.ranks[p]).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(ranks: &[u32]) -> Group {
        Group::new(ranks.to_vec())
    }

    #[test]
    fn set_operations_keep_the_first_groups_order() {
        let (a, b) = (group(&[5, 1, 3]), group(&[3, 4, 5]));
        assert_eq!(a.union(&b), group(&[5, 1, 3, 4]));
        assert_eq!(a.intersection(&b), group(&[5, 3]));
        assert_eq!(a.difference(&b), group(&[1]));
        assert_eq!(a.include(&[2, 0]), group(&[3, 5]));
        assert_eq!(a.exclude(&[1]), group(&[5, 3]));
        assert_eq!(a.rank_of(3), Some(2));
        assert_eq!(a.rank_of(9), None);
    }

    #[test]
    fn what_is_made_of_a_sessions_group_is_the_sessions() {
        let (a, b) = (group(&[5, 1, 3]).of_session(7), group(&[3, 4, 5]));
        let made =
            [a.union(&b), a.intersection(&b), a.difference(&b), a.include(&[0]), a.exclude(&[0])];
        assert_eq!(made.map(|group| group.session()), [7; 5]);
        assert_eq!(b.union(&a).session(), 0);
        assert_eq!(a.compare(&group(&[5, 1, 3])), Compare::Ident);
    }

    #[test]
    fn comparison_sees_order() {
        let a = group(&[1, 2]);
        assert_eq!(a.compare(&group(&[1, 2])), Compare::Ident);
        assert_eq!(a.compare(&group(&[2, 1])), Compare::Similar);
        assert_eq!(a.compare(&group(&[2, 3])), Compare::Unequal);
        assert_eq!(group(&[]).compare(&group(&[])), Compare::Ident);
    }
}
