//! The members of a communicator: their ranks in the fabric, and facts that follow from this list only.
//!
//! ```text
//!   ranks     0 1 2 | 3 4 | 5 6 7      groups in the order of their lowest ranks
//!   leaders   0       3     5          the lowest rank of each group
//! ```
//! A group is a node or, among members of one node, a cache, a NUMA domain or a socket ([`crate::level_steps`]).
//!
//! All users of a list share it: the contexts of a communicator, its duplicates, and simulated ranks, which have one list of the
//! world. Facts that follow from a list are derived once and kept with the list. So a simulated world keeps one [`Layout`] of its
//! ranks, instead of one [`Layout`] for each rank.

use crate::level_steps::{LevelSteps, first_groups};
use crate::selection_key::{Near, RankPlacement};
use std::cell::OnceCell;
use std::collections::HashMap;
use std::ops::Deref;
use std::rc::Rc;
use weft_fabric::copies::{ProcessorGroups, TopologyLevel};
use weft_fabric::{Fabric, FabricExt};

/// Map from a rank in the communicator to a rank in the fabric.
#[derive(Debug)]
pub struct Members {
    ranks: Rc<[u32]>,
    topology: OnceCell<RankPlacement>,
    layout: OnceCell<Rc<Layout>>,
}

impl<R: Into<Rc<[u32]>>> From<R> for Members {
    fn from(ranks: R) -> Members {
        Members { ranks: ranks.into(), topology: OnceCell::new(), layout: OnceCell::new() }
    }
}

impl Deref for Members {
    type Target = [u32];

    fn deref(&self) -> &[u32] {
        &self.ranks
    }
}

impl Members {
    /// Creates the list of ranks 0 to `size` - 1 of the fabric, in ascending order.
    pub fn world(size: usize) -> Rc<Members> {
        Rc::new((0..size as u32).collect::<Rc<[u32]>>().into())
    }

    /// Returns the list itself, to share.
    pub fn ranks(&self) -> &Rc<[u32]> {
        &self.ranks
    }

    /// Returns the placement of the members. The fabric is asked about each member only the first time.
    pub fn topology<F: Fabric>(&self, fabric: &F) -> RankPlacement {
        match self.topology.get() {
            Some(&known) => known,
            None if self.may_change(fabric) => survey(fabric, self),
            None => *self.topology.get_or_init(|| survey(fabric, self)),
        }
    }

    /// Returns the groups of the members, derived the first time: the nodes, or the groups of the first step of members on one node.
    pub(crate) fn layout<F: Fabric>(&self, fabric: &F) -> Rc<Layout> {
        let derived = || Rc::new(self.groups(fabric));
        match self.layout.get() {
            Some(known) => known.clone(),
            None if self.may_change(fabric) => derived(),
            None => self.layout.get_or_init(derived).clone(),
        }
    }

    fn groups<F: Fabric>(&self, fabric: &F) -> Layout {
        let steps = self.topology(fabric).levels;
        let places = places(fabric, self);
        let step = steps.first().zip(places.and_then(|places| first_groups(&steps, &places)));
        match step {
            Some((step, groups)) => Layout::new(step.level, groups),
            None => {
                let node = |&member: &u32| fabric.node(member as usize);
                Layout::new(TopologyLevel::Node, self.iter().map(node))
            }
        }
    }

    /// Returns true if the members' numbers may belong to other processes later. The numbers of another job's processes are reused
    /// when that job has left.
    fn may_change<F: Fabric>(&self, fabric: &F) -> bool {
        self.iter().any(|&member| member as usize >= fabric.size())
    }
}

/// The groups of a communicator's ranks at one level.
#[derive(Debug)]
pub struct Layout {
    /// Level of the groups.
    pub level: TopologyLevel,
    /// The ranks of each group in their order, the leader first; groups in the order of their leaders.
    pub groups: Vec<Vec<usize>>,
    /// The place of each rank: the index of its group, and its index in that group.
    pub places: Vec<(usize, usize)>,
    leaders: OnceCell<Rc<Members>>,
    /// Members of each group, made when first requested.
    locals: Box<[OnceCell<Rc<Members>>]>,
    /// Members of each column, made when first requested.
    columns: Box<[OnceCell<Rc<Members>>]>,
}

impl Layout {
    /// Sorts ranks by their groups, which may have any numbers.
    pub fn new(level: TopologyLevel, groups: impl IntoIterator<Item = usize>) -> Layout {
        let mut numbers: HashMap<usize, usize> = HashMap::new();
        let (mut by_group, mut places) = (Vec::<Vec<usize>>::new(), Vec::new());
        for (rank, group) in groups.into_iter().enumerate() {
            let at = *numbers.entry(group).or_insert(by_group.len());
            if at == by_group.len() {
                by_group.push(Vec::new());
            }
            places.push((at, by_group[at].len()));
            by_group[at].push(rank);
        }
        let locals = by_group.iter().map(|_| OnceCell::new()).collect();
        let smallest = by_group.iter().map(Vec::len).min().unwrap_or(0);
        let columns = (0..smallest).map(|_| OnceCell::new()).collect();
        Layout { level, groups: by_group, places, leaders: OnceCell::new(), locals, columns }
    }

    /// Iterates over the ranks group by group.
    pub fn order(&self) -> impl Iterator<Item = usize> + '_ {
        self.groups.iter().flatten().copied()
    }

    /// Returns true if each group has consecutive ranks, so that the order by groups is the order of ranks.
    pub fn is_contiguous(&self) -> bool {
        self.order().eq(0..self.places.len())
    }

    /// Returns the members of a group. `all` are the members from which this layout was derived.
    pub(crate) fn local(&self, all: &Members, group: usize) -> Rc<Members> {
        let ranks = || self.groups[group].iter().map(|&rank| all[rank]).collect::<Rc<[u32]>>();
        self.locals[group].get_or_init(|| Rc::new(ranks().into())).clone()
    }

    /// Returns true if all groups have the same number of ranks.
    pub fn is_even(&self) -> bool {
        self.groups.iter().all(|group| group.len() == self.groups[0].len())
    }

    /// Returns the members of a column: the ranks at `place` in all groups. Each group has such a rank.
    pub(crate) fn column(&self, all: &Members, place: usize) -> Rc<Members> {
        let ranks = || self.groups.iter().map(|ranks| all[ranks[place]]).collect::<Rc<[u32]>>();
        self.columns[place].get_or_init(|| Rc::new(ranks().into())).clone()
    }

    /// Returns the leaders of all groups. `all` are the members from which this layout was derived.
    pub(crate) fn leaders(&self, all: &Members) -> Rc<Members> {
        let ranks = || self.groups.iter().map(|ranks| all[ranks[0]]).collect::<Rc<[u32]>>();
        self.leaders.get_or_init(|| Rc::new(ranks().into())).clone()
    }
}

/// Returns the groups of processors of all `members`, if all of them are known.
pub(crate) fn places<F: Fabric>(fabric: &F, members: &[u32]) -> Option<Vec<ProcessorGroups>> {
    members.iter().map(|&member| fabric.groups(member as usize)).collect()
}

/// Finds the placement of `members` by asking the fabric about each member.
fn survey<F: Fabric>(fabric: &F, members: &[u32]) -> RankPlacement {
    let mut nodes: Vec<usize> = members.iter().map(|&m| fabric.node(m as usize)).collect();
    nodes.sort_unstable();
    let ranks_by_node = nodes.chunk_by(|a, b| a == b).map(<[usize]>::len);
    let (same_node, nodes) = (share_memory(fabric, members), ranks_by_node.clone().count());
    let places = if same_node && nodes == 1 { places(fabric, members) } else { None };
    RankPlacement {
        same_node,
        nodes,
        ranks_per_node: ranks_by_node.max().unwrap_or(0),
        by_kernel: carried_by_kernel(fabric, members),
        multicast: multicast_max(fabric, members),
        same_arithmetic: fabric.same_arithmetic(),
        atomics: all_do_atomics(fabric, members),
        levels: places.map_or(LevelSteps::UNKNOWN, |places| LevelSteps::of(&places)),
        in_place: (same_node && fabric.is_simulated()).then(|| all_reach_memory(fabric, members)),
        near: Near::default(),
    }
}

/// Returns true if this process can access the private memory of all `members`.
pub fn all_reach_memory<F: Fabric>(fabric: &F, members: &[u32]) -> bool {
    members.iter().all(|&peer| fabric.capabilities(peer as usize).direct)
}

/// Returns true if `members` share memory, so that the central algorithms are the best for them. All members get the same answer.
pub fn share_memory<F: Fabric>(fabric: &F, members: &[u32]) -> bool {
    members.iter().all(|&peer| fabric.capabilities(peer as usize).shares_memory)
}

/// Returns the maximum length in bytes of a datagram that reaches all `members`; 0 if no datagram does. All processes of a job have
/// the same multicast groups. Different jobs have different groups.
fn multicast_max<F: Fabric>(fabric: &F, members: &[u32]) -> usize {
    let own = fabric.capabilities(fabric.rank()).multicast_max;
    let foreign = members.iter().filter(|&&peer| peer as usize >= fabric.size());
    foreign.map(|&peer| fabric.capabilities(peer as usize).multicast_max).fold(own, usize::min)
}

/// Returns true if the kernel carries messages between some of `members`. All members get the same answer.
pub fn carried_by_kernel<F: Fabric>(fabric: &F, members: &[u32]) -> bool {
    members.iter().any(|&peer| fabric.capabilities(peer as usize).round_trip > 0)
}

/// Returns true if the adapters of all `members` support atomic operations. All members get the same answer.
fn all_do_atomics<F: Fabric>(fabric: &F, members: &[u32]) -> bool {
    members.iter().all(|&peer| fabric.capabilities(peer as usize).atomics)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_come_in_the_order_of_their_lowest_ranks() {
        let blocked = Layout::new(TopologyLevel::Node, [7, 7, 7, 2, 2, 9]);
        assert_eq!(blocked.groups, [vec![0, 1, 2], vec![3, 4], vec![5]]);
        assert!(blocked.is_contiguous());
        let dealt = Layout::new(TopologyLevel::Node, [4, 1, 4, 1, 0]);
        assert_eq!(dealt.groups, [vec![0, 2], vec![1, 3], vec![4]]);
        assert_eq!(dealt.places, [(0, 0), (1, 0), (0, 1), (1, 1), (2, 0)]);
        assert!(!dealt.is_contiguous());
        assert!(dealt.order().eq([0, 2, 1, 3, 4]));
    }

    #[test]
    fn levels_have_the_members_of_their_ranks_and_share_them() {
        let all = Members::from(vec![30, 31, 32, 33, 34]);
        let dealt = Layout::new(TopologyLevel::Node, [4, 1, 4, 1, 0]);
        assert_eq!(dealt.local(&all, 1)[..], [31, 33]);
        assert_eq!(dealt.leaders(&all)[..], [30, 31, 34]);
        assert!(Rc::ptr_eq(&dealt.local(&all, 1), &dealt.local(&all, 1)));
        assert!(Rc::ptr_eq(&dealt.leaders(&all), &dealt.leaders(&all)));
        assert!(!dealt.is_even());
        let even = Layout::new(TopologyLevel::Cache, [7, 7, 3, 3]);
        assert!(even.is_even());
        assert_eq!(
            [even.column(&all, 0)[..].to_vec(), even.column(&all, 1)[..].to_vec()],
            [[30, 32], [31, 33]]
        );
    }
}
