//! Who can be reached: the processes of the job, and behind them those of other jobs that are linked to it, by number.

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
enum Slot<M> {
    Free,
    /// A process of another job is being made a peer under it.
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

/// All of them; `M`: what the fabric keeps of each.
pub struct Roster<M> {
    slots: Vec<Slot<M>>,
    /// Processes of the job.
    own: usize,
    /// Nodes of other jobs, by job and number there.
    nodes: Vec<(u64, u32)>,
}

impl<M> Roster<M> {
    /// The processes of the job, by rank.
    pub fn new(own: Vec<M>) -> Roster<M> {
        let slots: Vec<_> = own.into_iter().map(|member| Slot::Taken(member, None)).collect();
        Roster { own: slots.len(), slots, nodes: Vec::new() }
    }

    /// A process that is there.
    ///
    /// # Panics
    /// If there is none under this number.
    #[inline]
    pub fn member(&self, rank: usize) -> &M {
        self.slots[rank].taken().expect("a process of the job or of a link").0
    }

    /// The same; `None`: there is none.
    pub fn get(&self, rank: usize) -> Option<&M> {
        Some(self.slots.get(rank)?.taken()?.0)
    }

    /// What is known of a process of another job; `None`: it is of this one.
    #[inline]
    pub fn foreign(&self, rank: usize) -> Option<Foreign> {
        if rank < self.own { None } else { self.slots.get(rank)?.taken()?.1 }
    }

    /// By rank, those that are there.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &M)> {
        self.slots.iter().enumerate().filter_map(|(rank, slot)| Some((rank, slot.taken()?.0)))
    }

    /// Processes of the job.
    #[inline]
    pub fn own(&self) -> usize {
        self.own
    }

    /// One more than the largest number.
    #[expect(clippy::len_without_is_empty, reason = "this process is always there")]
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
    pub fn put(&mut self, rank: usize, member: M, foreign: Foreign) {
        self.slots[rank] = Slot::Taken(member, Some(foreign));
    }

    /// Frees a number again, and returns whose it was.
    pub fn take(&mut self, rank: usize) -> Option<M> {
        let slot = self.slots.get_mut(rank).filter(|_| rank >= self.own)?;
        match std::mem::replace(slot, Slot::Free) {
            Slot::Taken(member, _) => Some(member),
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

    fn foreign(secret: u64) -> Foreign {
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
