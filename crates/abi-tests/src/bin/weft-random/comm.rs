//! Communicators, as all ranks know them: their seats, and the seats that receive from each other in a collective call.

/// The number of a communicator in a program; 0 is MPI_COMM_WORLD.
pub type CommId = usize;

/// A communicator. A seat is a member's place in `members`; in an intracommunicator the seat is the rank.
#[derive(Clone)]
pub struct CommModel {
    /// World ranks. In an intercommunicator, first those of one group, then those of the other.
    pub members: Vec<usize>,
    /// Number of members of the first group of an intercommunicator.
    pub first: Option<usize>,
    pub topology: Option<Topology>,
}

/// Neighbours of each seat. `None` stands for MPI_PROC_NULL.
#[derive(Clone)]
pub struct Topology {
    pub sources: Vec<Vec<Option<usize>>>,
    pub destinations: Vec<Vec<Option<usize>>>,
    /// True for a Cartesian grid, where data that leave in one direction arrive from the opposite direction.
    pub grid: bool,
}

/// For each seat, the sources of its pieces: the sending seat, and the index of the piece there.
pub type Wiring = Vec<Vec<Option<(usize, usize)>>>;

/// Ranks with which a rank exchanges data in a collective call.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum ExchangePeers {
    /// All other seats.
    All,
    /// Neighbours in the topology, if there is a topology.
    Neighbors,
}

impl CommModel {
    pub fn new(members: Vec<usize>) -> CommModel {
        CommModel { members, first: None, topology: None }
    }

    /// Returns the seat of a world rank.
    pub fn seat(&self, world: usize) -> Option<usize> {
        self.members.iter().position(|m| *m == world)
    }

    /// Returns the seats of a seat's own group.
    pub fn group(&self, seat: usize) -> std::ops::Range<usize> {
        match self.first {
            Some(first) if seat < first => 0..first,
            Some(first) => first..self.members.len(),
            None => 0..self.members.len(),
        }
    }

    /// Returns the seats that a seat can send to: all, or the other group.
    pub fn others(&self, seat: usize) -> std::ops::Range<usize> {
        match self.first {
            Some(first) if seat < first => first..self.members.len(),
            Some(first) => 0..first,
            None => 0..self.members.len(),
        }
    }

    /// Returns the rank of a seat in its own group, as MPI numbers it.
    pub fn rank_of(&self, seat: usize) -> usize {
        seat - self.group(seat).start
    }

    /// Returns, for each seat, the destinations of its pieces. Without a topology all other ranks are peers.
    pub fn outgoing(&self, peers: ExchangePeers) -> Vec<Vec<Option<usize>>> {
        match &self.topology {
            Some(topology) if peers == ExchangePeers::Neighbors => topology.destinations.clone(),
            _ => (0..self.members.len()).map(|s| self.others(s).map(Some).collect()).collect(),
        }
    }

    pub fn wiring(&self, peers: ExchangePeers) -> Wiring {
        let all = |seat: usize| {
            let from = |from: usize| Some((from, seat - self.others(from).start));
            self.others(seat).map(from).collect()
        };
        match &self.topology {
            Some(topology) if peers == ExchangePeers::Neighbors => topology.wiring(),
            _ => (0..self.members.len()).map(all).collect(),
        }
    }
}

impl Topology {
    /// Matches the n-th edge between two seats in both their lists. In a grid, matches opposite directions.
    fn wiring(&self) -> Wiring {
        let one = |to: usize, i: usize| {
            let sources = &self.sources[to];
            let from = sources[i]?;
            if self.grid {
                return Some((from, i ^ 1));
            }
            let nth = sources[..i].iter().filter(|s| **s == Some(from)).count();
            let mut edges = (0..).zip(&self.destinations[from]).filter(|(_, d)| **d == Some(to));
            Some((from, edges.nth(nth).expect("both ends know of an edge").0))
        };
        let seats = 0..self.sources.len();
        seats.map(|to| (0..self.sources[to].len()).map(|i| one(to, i)).collect()).collect()
    }

    /// Makes a grid, in which the last dimension varies fastest.
    pub fn cart(dims: &[usize], periodic: &[bool]) -> Topology {
        let n: usize = dims.iter().product();
        let neighbours = |seat: usize| {
            let mut out = Vec::new();
            let mut step = n;
            for (size, periodic) in dims.iter().zip(periodic) {
                step /= size;
                let at = seat / step % size;
                for to in [at.checked_sub(1), (at + 1 < *size).then_some(at + 1)] {
                    let around =
                        if to.is_none() && at == 0 && out.len() % 2 == 0 { size - 1 } else { 0 };
                    let to = to.or(periodic.then_some(around));
                    out.push(to.map(|to| seat + to * step - at * step));
                }
            }
            out
        };
        let all: Vec<_> = (0..n).map(neighbours).collect();
        Topology { sources: all.clone(), destinations: all, grid: true }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_in_a_grid() {
        let t = Topology::cart(&[2, 3], &[false, true]);
        // 0 1 2
        // 3 4 5
        assert_eq!(t.sources[0], [None, Some(3), Some(2), Some(1)]);
        assert_eq!(t.sources[5], [Some(2), None, Some(4), Some(3)]);
        // The piece that seat 0 receives from below is the piece that seat 3 sends upwards.
        assert_eq!(t.wiring()[0], [None, Some((3, 0)), Some((2, 3)), Some((1, 2))]);
        let ring = Topology::cart(&[1], &[true]);
        assert_eq!(ring.wiring()[0], [Some((0, 1)), Some((0, 0))]);
    }

    #[test]
    fn the_groups_of_an_intercommunicator() {
        let comm = CommModel { members: vec![4, 2, 7], first: Some(1), topology: None };
        assert_eq!((comm.others(0), comm.others(2), comm.rank_of(2)), (1..3, 0..1, 1));
        let wiring = comm.wiring(ExchangePeers::All);
        assert_eq!(wiring[0], [Some((1, 0)), Some((2, 0))]);
        assert_eq!(wiring[2], [Some((0, 1))]);
    }

    #[test]
    fn double_edges_keep_their_order() {
        let (sources, destinations) =
            (vec![vec![], vec![Some(0), Some(0)]], vec![vec![Some(1), Some(1)], vec![]]);
        let t = Topology { sources, destinations, grid: false };
        assert_eq!(t.wiring()[1], [Some((0, 0)), Some((0, 1))]);
    }
}
