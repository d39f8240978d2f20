//! The reachable processes by number: first the processes of the job, then processes of other jobs that are linked to it.

/// Facts about a process of another job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Foreign {
    /// The secret of the link, which only the processes of the link know.
    pub secret: u128,
    /// The number under which the process knows this process.
    pub me: u32,
    /// The number of the node of the process. No node of this job has this number.
    pub node: usize,
}

/// The use of a number.
enum Slot<M> {
    Free,
    /// Reserved for a process of another job that is being made a peer.
    Reserved,
    Taken(M, Option<Foreign>),
}

impl<M> Slot<M> {
    fn taken(&self) -> Option<(&M, Option<Foreign>)> {
        match self {
            Slot::Taken(member, foreign) => Some((member, *foreign)),
            Slot::Free | Slot::Reserved => None,
        }
    }
}

/// The table of reachable processes; `M` is the data that the fabric keeps for each process.
pub struct Roster<M> {
    slots: Vec<Slot<M>>,
    /// Number of processes of the job.
    own: usize,
    /// Nodes of other jobs: the job, and the number of the node in that job.
    nodes: Vec<(u64, u32)>,
}

impl<M> Roster<M> {
    /// Makes the table of the processes of the job, by rank.
    pub fn new(own: Vec<M>) -> Roster<M> {
        let slots: Vec<_> = own.into_iter().map(|member| Slot::Taken(member, None)).collect();
        Roster { own: slots.len(), slots, nodes: Vec::new() }
    }

    /// Returns the process with this number.
    ///
    /// # Panics
    /// If no process has this number.
    #[inline]
    pub fn member(&self, rank: usize) -> &M {
        self.slots[rank].taken().expect("a process of the job or of a link").0
    }

    /// Returns the process with this number, or `None` if there is no such process.
    pub fn get(&self, rank: usize) -> Option<&M> {
        Some(self.slots.get(rank)?.taken()?.0)
    }

    /// Returns the facts about a process of another job; `None` for a process of this job.
    #[inline]
    pub fn foreign(&self, rank: usize) -> Option<Foreign> {
        if rank < self.own { None } else { self.slots.get(rank)?.taken()?.1 }
    }

    /// Iterates over the processes with their numbers, in ascending order.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &M)> {
        self.slots.iter().enumerate().filter_map(|(rank, slot)| Some((rank, slot.taken()?.0)))
    }

    /// Returns the number of processes of the job.
    #[inline]
    pub fn own(&self) -> usize {
        self.own
    }

    /// Returns one more than the largest number in the table.
    #[expect(clippy::len_without_is_empty, reason = "this process is always there")]
    pub fn len(&self) -> usize {
        self.slots.len()
    }

    /// Reserves `count` free numbers for processes of other jobs. All these numbers are less than `own + most`. The numbers
    /// belong to the caller until [`Roster::put`] or [`Roster::take`]. `None`: there are not enough free numbers.
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

    /// Puts a process of another job into the table, under a number that was reserved for it.
    pub fn put(&mut self, rank: usize, member: M, foreign: Foreign) {
        self.slots[rank] = Slot::Taken(member, Some(foreign));
    }

    /// Frees the number of a process of another job, and returns the data of the process. Numbers of the job's own processes are
    /// not freed.
    pub fn take(&mut self, rank: usize) -> Option<M> {
        let slot = self.slots.get_mut(rank).filter(|_| rank >= self.own)?;
        match std::mem::replace(slot, Slot::Free) {
            Slot::Taken(member, _) => Some(member),
            Slot::Free | Slot::Reserved => None,
        }
    }

    /// Returns the number that this process uses for node `node` of another job.
    pub fn node(&mut self, job: u64, node: u32) -> usize {
        let known = self.nodes.iter().position(|&one| one == (job, node));
        let at = known.unwrap_or_else(|| {
            self.nodes.push((job, node));
            self.nodes.len() - 1
        });
        // This job uses no node numbers from `own` on, because it has no more nodes than processes.
        self.own + at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn foreign(secret: u128) -> Foreign {
        Foreign { secret, me: 1, node: 9 }
    }

    #[test]
    fn numbers_are_given_again() {
        let mut roster = Roster::new(vec!["a", "b"]);
        assert_eq!(roster.reserve(2, 9), Some(vec![2, 3]));
        assert_eq!(roster.reserve(1, 3), Some(vec![4]), "what is reserved is not given twice");
        assert_eq!((roster.reserve(1, 3), roster.len()), (None, 5));
        roster.put(3, "c", foreign(7));
        roster.put(2, "d", foreign(8));
        assert_eq!(roster.foreign(3).unwrap().secret, 7);
        assert_eq!(roster.take(2), Some("d"));
        assert!([2, 0, 9, 4].into_iter().all(|rank| roster.take(rank).is_none()));
        assert_eq!((roster.foreign(2), roster.foreign(0)), (None, None));
        assert_eq!((roster.get(3), roster.get(2), roster.get(9)), (Some(&"c"), None, None));
        assert_eq!(roster.reserve(2, 9), Some(vec![2, 4]));
        assert_eq!(roster.iter().map(|(rank, _)| rank).collect::<Vec<_>>(), [0, 1, 3]);
    }

    #[test]
    fn nodes_of_other_jobs_have_numbers_of_their_own() {
        let mut roster = Roster::new(vec![(), ()]);
        let all = [roster.node(5, 0), roster.node(6, 0), roster.node(5, 1), roster.node(6, 0)];
        assert_eq!(all, [2, 3, 4, 3]);
    }
}
