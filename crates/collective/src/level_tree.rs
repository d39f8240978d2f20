//! The tree of all ranks of a node by its levels: in each group of a level, data go from the leader to the other members or back.
//!
//! ```text
//!   ranks 0 .. 7 in caches of two and sockets of four, root 0
//!   star:    0 ─ 1        4 ─ 5        chain:  each member passes the data to the next member of its group
//!            0 ─ 2 ─ 3    4 ─ 6 ─ 7            (the same among two)
//!            0 ─ 4
//! ```
//! The leader of a group is the root, if the root is in the group, and else the first rank. Levels are those of
//! [`crate::level_steps`], so the tree has as many levels as the machine.

use crate::level_steps::{LevelSteps, numbered};
use crate::{CommView, members};
use std::cell::RefCell;
use std::rc::Rc;
use weft_fabric::Fabric;
use weft_fabric::copies::ProcessorGroups;

/// Way of the data in a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GroupShape {
    /// Between the leader and each other member.
    Star,
    /// From the leader to the next member, and so on.
    Chain,
}

/// Parent and children of a rank.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct LevelNode {
    pub parent: Option<usize>,
    /// Children, those at the nearest level first.
    pub children: Vec<usize>,
    /// True if the groups of all levels have consecutive ranks, so that a chain to rank 0 has the order of ranks.
    pub in_order: bool,
}

/// Places of a rank in the trees that operations of a communicator have used, so that calls with the same root do not compute them again.
#[derive(Default)]
pub(crate) struct LevelNodes(RefCell<Vec<KnownNode>>);

/// Place of a rank in a tree.
struct KnownNode {
    root: usize,
    shape: GroupShape,
    node: Rc<LevelNode>,
}

/// Maximum number of trees that are kept, so that memory does not grow with the number of roots.
const KEPT: usize = 4;

impl LevelNodes {
    /// Returns the place of this rank in the tree of `root`. Returns `None` if the ranks are not all on one node, or if the processors of
    /// some rank are not known.
    pub fn of<F: Fabric>(
        &self,
        link: &CommView<F>,
        root: usize,
        shape: GroupShape,
    ) -> Option<Rc<LevelNode>> {
        let mut known = self.0.borrow_mut();
        let found = known.iter().find(|known| known.root == root && known.shape == shape);
        if let Some(found) = found {
            return Some(found.node.clone());
        }
        let node = Rc::new(LevelNode::of(link, root, shape)?);
        if known.len() == KEPT {
            known.remove(0);
        }
        known.push(KnownNode { root, shape, node: node.clone() });
        Some(node)
    }
}

impl LevelNode {
    fn of<F: Fabric>(link: &CommView<F>, root: usize, shape: GroupShape) -> Option<LevelNode> {
        let fabric = link.endpoint.fabric();
        let is_one = link.members.topology(fabric).nodes == 1;
        let groups = members::places(fabric, &link.members).filter(|_| is_one)?;
        Some(LevelNode::among(&groups, link.rank, root, shape))
    }

    /// Returns the place of rank `me` among ranks whose processors are in `groups`.
    fn among(groups: &[ProcessorGroups], me: usize, root: usize, shape: GroupShape) -> LevelNode {
        let mut node = LevelNode::default();
        let mut members: Vec<usize> = (0..groups.len()).collect();
        let steps = LevelSteps::of(groups);
        node.in_order = steps.iter().all(|step| step.contiguous);
        for step in steps.iter() {
            let places: Vec<ProcessorGroups> = members.iter().map(|&rank| groups[rank]).collect();
            let mut by_group = vec![Vec::new(); step.groups.into()];
            for (group, &rank) in numbered(&places, step.level).into_iter().zip(&members) {
                by_group[group].push(rank);
            }
            for group in &mut by_group {
                node.join(group, me, root, shape);
            }
            members = by_group.iter().map(|group| group[0]).collect();
        }
        node.join(&mut members, me, root, shape);
        node
    }

    /// Adds the edges of `me` in a group. The leader becomes the first member of the group.
    fn join(&mut self, group: &mut [usize], me: usize, root: usize, shape: GroupShape) {
        if let Some(at) = group.iter().position(|&rank| rank == root) {
            group[..=at].rotate_right(1);
        }
        let Some(at) = group.iter().position(|&rank| rank == me) else { return };
        match shape {
            GroupShape::Star if at == 0 => self.children.extend(&group[1..]),
            GroupShape::Star => self.parent = Some(group[0]),
            GroupShape::Chain => {
                self.children.extend(group.get(at + 1));
                self.parent = at.checked_sub(1).map(|before| group[before]).or(self.parent);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn machine(ranks: u32) -> Vec<ProcessorGroups> {
        let place = |p| ProcessorGroups { core: p, cache: p / 8, numa: p / 24, socket: p / 96 };
        (0..ranks).map(place).collect()
    }

    /// Every rank but the root has a parent, of which the rank is a child, and all ways end at the root.
    #[test]
    fn trees_reach_all_ranks() {
        for (ranks, root) in [(2, 1), (9, 0), (26, 25), (192, 0), (192, 101)] {
            let groups = machine(ranks);
            for shape in [GroupShape::Star, GroupShape::Chain] {
                let all = 0..ranks as usize;
                let node = |rank| LevelNode::among(&groups, rank, root, shape);
                let nodes: Vec<LevelNode> = all.clone().map(node).collect();
                for rank in all {
                    let (mut at, mut hops) = (rank, 0);
                    while let Some(parent) = nodes[at].parent {
                        assert!(nodes[parent].children.contains(&at), "{at} of {parent}");
                        (at, hops) = (parent, hops + 1);
                        assert!(hops < ranks, "a circle at {rank}");
                    }
                    assert_eq!(at, root, "{ranks} ranks, from {rank}");
                }
                let children: usize = nodes.iter().map(|node| node.children.len()).sum();
                assert_eq!(children, ranks as usize - 1);
            }
        }
    }

    /// Ranks that are dealt to the sockets in turn are not in order, on every rank and for every root.
    #[test]
    fn chains_are_in_order_where_groups_are_consecutive() {
        let dealt: Vec<ProcessorGroups> =
            (0..16).map(|r| machine(192)[r % 2 * 96 + r / 2]).collect();
        let in_order = |groups: &[ProcessorGroups]| {
            let node = |rank| LevelNode::among(groups, rank, 0, GroupShape::Chain).in_order;
            (0..groups.len()).map(node).collect::<Vec<_>>()
        };
        assert_eq!(in_order(&dealt), [false; 16]);
        assert_eq!(in_order(&machine(40)), [true; 40]);
    }

    #[test]
    fn one_message_crosses_each_boundary() {
        let groups = machine(192);
        let socket = |rank: usize| rank / 96;
        for shape in [GroupShape::Star, GroupShape::Chain] {
            let crossing = |rank: usize| {
                let node = LevelNode::among(&groups, rank, 5, shape);
                node.children.iter().filter(|&&child| socket(child) != socket(rank)).count()
            };
            assert_eq!((0..192).map(crossing).sum::<usize>(), 1);
        }
        let leader = LevelNode::among(&groups, 0, 0, GroupShape::Star);
        assert_eq!(leader.children.len(), 7 + 2 + 3 + 1);
        let leader = LevelNode::among(&groups, 0, 0, GroupShape::Chain);
        assert_eq!(leader.children, [1, 8, 24, 96]);
    }
}
