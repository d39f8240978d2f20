//! Who can be reached: the processes of the job, and behind them those of other jobs that are linked to it, by number.

use crate::state::Where;
use std::net::SocketAddr;

/// One process.
pub struct Member {
    /// The provider's number of its address.
    pub number: u64,
    pub place: Where,
    /// The address of its endpoint, of providers that speak TCP.
    pub ip: Option<SocketAddr>,
    /// Of another job.
    pub foreign: Option<Foreign>,
}

/// What is known of a process of another job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Foreign {
    /// Known to the two jobs alone.
    pub secret: u64,
    /// What it calls this process.
    pub me: u32,
    /// Its node: a number that no node of this job has.
    pub node: usize,
}

/// What a number is.
enum Slot {
    Free,
    /// A process of another job is being made a peer under it.
    Reserved,
    Taken(Member),
}

impl Slot {
    fn member(&self) -> Option<&Member> {
        match self {
            Slot::Taken(member) => Some(member),
            Slot::Free | Slot::Reserved => None,
        }
    }
}

/// All of them.
pub struct Roster {
    slots: Vec<Slot>,
    /// Processes of the job.
    own: usize,
    /// Nodes of other jobs, by job and number there.
    nodes: Vec<(u64, u32)>,
}

impl Roster {
    /// The processes of the job, by rank.
    pub fn new(own: Vec<Member>) -> Roster {
        let slots: Vec<_> = own.into_iter().map(Slot::Taken).collect();
        Roster { own: slots.len(), slots, nodes: Vec::new() }
    }

    /// A process that is there.
    pub fn member(&self, rank: usize) -> &Member {
        self.slots[rank].member().expect("a process of the job or of a link")
    }

    /// What is known of a process of another job; `None`: it is of this one.
    #[inline]
    pub fn foreign(&self, rank: usize) -> Option<Foreign> {
        if rank < self.own { None } else { self.slots.get(rank)?.member()?.foreign }
    }

    /// By rank, those that are there.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &Member)> {
        self.slots.iter().enumerate().filter_map(|(rank, slot)| Some((rank, slot.member()?)))
    }

    /// One more than the largest number.
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// So many free numbers, of at most `most` beyond those of the job: they are the caller's until [`Roster::put`] or
    /// [`Roster::take`]. `None`: there are not so many.
    pub fn reserve(&mut self, count: usize, most: usize) -> Option<Vec<usize>> {
        let is_free = |&rank: &usize| matches!(self.slots[rank], Slot::Free);
        let within = (self.own..self.slots.len()).filter(is_free);
        let numbers: Vec<usize> =
            within.chain(self.slots.len()..self.own + most).take(count).collect();
        if numbers.len() < count {
            return None;
        }
        let len = numbers.last().map_or(0, |last| last + 1).max(self.slots.len());
        self.slots.resize_with(len, || Slot::Free);
        numbers.iter().for_each(|&rank| self.slots[rank] = Slot::Reserved);
        Some(numbers)
    }

    /// Puts a process of another job in, at a number that was reserved for it.
    pub fn put(&mut self, rank: usize, member: Member) {
        self.slots[rank] = Slot::Taken(member);
    }

    /// Frees a number again, and returns whose it was.
    pub fn take(&mut self, rank: usize) -> Option<Member> {
        let slot = self.slots.get_mut(rank).filter(|_| rank >= self.own)?;
        match std::mem::replace(slot, Slot::Free) {
            Slot::Taken(member) => Some(member),
            Slot::Free | Slot::Reserved => None,
        }
    }

    /// The number of a node of another job.
    pub fn node(&mut self, job: u64, node: u32) -> usize {
        let known = self.nodes.iter().position(|&one| one == (job, node));
        let at = known.unwrap_or_else(|| {
            self.nodes.push((job, node));
            self.nodes.len() - 1
        });
        // A job has no more nodes than processes.
        self.own + at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(number: u64, foreign: bool) -> Member {
        let place = Where { host: "a".to_owned(), address: number.to_string() };
        let foreign = foreign.then_some(Foreign { secret: number, me: 1, node: 9 });
        Member { number, place, ip: None, foreign }
    }

    #[test]
    fn numbers_are_given_again() {
        let mut roster = Roster::new(vec![member(0, false), member(1, false)]);
        assert_eq!(roster.reserve(2, 9), Some(vec![2, 3]));
        assert_eq!(roster.reserve(1, 3), Some(vec![4]), "what is reserved is not given twice");
        assert_eq!((roster.reserve(1, 3), roster.len()), (None, 5));
        roster.put(3, member(7, true));
        roster.put(2, member(8, true));
        assert_eq!(roster.foreign(3).unwrap().secret, 7);
        assert_eq!(roster.take(2).unwrap().number, 8);
        assert!([2, 0, 9, 4].into_iter().all(|rank| roster.take(rank).is_none()));
        assert_eq!((roster.foreign(2), roster.foreign(0)), (None, None));
        assert_eq!(roster.reserve(2, 9), Some(vec![2, 4]));
        assert_eq!(roster.iter().map(|(rank, _)| rank).collect::<Vec<_>>(), [0, 1, 3]);
    }

    #[test]
    fn nodes_of_other_jobs_have_numbers_of_their_own() {
        let mut roster = Roster::new(vec![member(0, false), member(1, false)]);
        let all = [roster.node(5, 0), roster.node(6, 0), roster.node(5, 1), roster.node(6, 0)];
        assert_eq!(all, [2, 3, 4, 3]);
    }
}
