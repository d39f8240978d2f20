//! Writers and readers in the algorithms of RDMA writes: pure functions of rank and size.
//!
//! A rank has one slot for each rank that writes to it. Slots are in the order in which the rank waits for the writes: by round or
//! child, not by rank as in Kini 2003, section 4.2.1. So the number of slots is O(log N), except in a dissemination to all ranks at
//! once.

use crate::rank::{digits, places, power_below};

/// A pattern of writes among the ranks `0..size`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WritePattern {
    /// Pairwise exchange among the first N' = 2^floor(log2 N) ranks. Each rank r >= N' is folded into a rank below N' (Kini 4.1.1).
    Exchange,
    /// Writes to r + d k^m in round m, for the nonzero digits d to base k. With base 2, writes to r + 2^m (Kini 4.1.2).
    Dissemination(usize),
    /// Writes from the leaves of a tree to its root, with this maximum number of children at each step (Kini 4.1.3).
    Tree(usize),
    /// Writes from the root of the [`WritePattern::Tree`] to its leaves.
    Release(usize),
}

/// The writes of one rank.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Edges {
    /// Ranks that write to this rank's slots, in the order of the slots.
    pub from: Vec<usize>,
    /// Ranks to which this rank writes, in order.
    pub to: Vec<usize>,
}

impl WritePattern {
    /// Returns the ranks to which `rank` of `size` ranks writes, and the ranks that write to it.
    pub fn edges(self, rank: usize, size: usize) -> Edges {
        match self {
            WritePattern::Exchange => exchange(rank, size),
            WritePattern::Dissemination(radix) => {
                let hops =
                    || places(size, radix).flat_map(|p| digits(size, radix, p).map(move |d| d * p));
                Edges {
                    from: hops().map(|hop| (rank + size - hop) % size).collect(),
                    to: hops().map(|hop| (rank + hop) % size).collect(),
                }
            }
            WritePattern::Tree(fan_in) => Edges {
                from: children(rank, size, fan_in).collect(),
                to: parent(rank, size, fan_in).into_iter().collect(),
            },
            WritePattern::Release(fan_in) => {
                let Edges { from, to } = WritePattern::Tree(fan_in).edges(rank, size);
                Edges { from: to, to: from }
            }
        }
    }
}

/// Returns the edges of the exchange. A lower rank first receives from the rank that is folded into it, and finally writes to this
/// rank.
fn exchange(rank: usize, size: usize) -> Edges {
    let lower = power_below(size);
    if rank >= lower {
        return Edges { from: vec![rank - lower], to: vec![rank - lower] };
    }
    let folded = (rank + lower < size).then_some(rank + lower);
    let partners = (0..lower.ilog2()).map(|k| rank ^ 1 << k);
    Edges {
        from: folded.into_iter().chain(partners.clone()).collect(),
        to: partners.chain(folded).collect(),
    }
}

/// Returns the effective fan-in of the tree for `size` ranks. The fan-in is the maximum number of children at each step, so a
/// larger value than the number of other ranks changes nothing. All fan-ins that lead to the same tree have the same effective
/// fan-in.
pub fn fan_in_for(fan_in: usize, size: usize) -> usize {
    fan_in.min(size.max(2).next_power_of_two() - 1)
}

/// Returns the number of steps of the tree: ceil(log_(fan-in + 1) size).
pub fn height(size: usize, fan_in: usize) -> u32 {
    let (mut height, mut reach) = (0, 1usize);
    while reach < size {
        reach = reach.saturating_mul(fan_in + 1);
        height += 1;
    }
    height
}

/// Returns the children of `rank` of all steps, in order. In step s, with b = fan-in + 1, a rank r that is a multiple of b^(s+1)
/// receives from r + j b^s for j from 1 to the fan-in.
pub fn children(rank: usize, size: usize, fan_in: usize) -> impl Iterator<Item = usize> {
    let steps = (0..height(size, fan_in)).map(move |s| (fan_in + 1).pow(s));
    let mine = steps.take_while(move |step| rank.is_multiple_of(step * (fan_in + 1)));
    mine.flat_map(move |step| (1..=fan_in).map(move |j| rank + j * step)).filter(move |&c| c < size)
}

/// Returns the rank that `rank` notifies after all children have notified `rank`.
pub fn parent(rank: usize, size: usize, fan_in: usize) -> Option<usize> {
    let steps = (0..height(size, fan_in)).map(|s| (fan_in + 1).pow(s + 1));
    steps.map(|group| rank - rank % group).find(|&parent| parent != rank)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATTERNS: [WritePattern; 10] = [
        WritePattern::Exchange,
        WritePattern::Dissemination(2),
        WritePattern::Dissemination(3),
        WritePattern::Dissemination(16),
        WritePattern::Tree(1),
        WritePattern::Tree(3),
        WritePattern::Tree(7),
        WritePattern::Tree(63),
        WritePattern::Release(1),
        WritePattern::Release(7),
    ];

    /// The n-th write from a rank to another rank goes to the n-th slot that the other rank has for the sender.
    #[test]
    fn every_write_has_its_slot() {
        for pattern in PATTERNS {
            for size in (1..=65).chain([100, 127, 128, 129, 500, 1000, 1024]) {
                let all: Vec<_> = (0..size).map(|rank| pattern.edges(rank, size)).collect();
                let mut writes: Vec<_> =
                    (0..size).flat_map(|r| all[r].to.iter().map(move |&to| (r, to))).collect();
                let mut slots: Vec<_> = (0..size)
                    .flat_map(|r| all[r].from.iter().map(move |&from| (from, r)))
                    .collect();
                writes.sort_unstable();
                slots.sort_unstable();
                assert_eq!(writes, slots, "{pattern:?}, {size} ranks");
                assert!(writes.iter().all(|(from, to)| from != to && *to < size), "{pattern:?}");
            }
        }
    }

    #[test]
    fn slots_do_not_grow_with_the_ranks() {
        for rank in [0, 1, 512, 1023] {
            assert!(WritePattern::Exchange.edges(rank, 1024).from.len() <= 10);
            assert!(WritePattern::Dissemination(2).edges(rank, 1024).from.len() <= 10);
            assert!(WritePattern::Tree(7).edges(rank, 1024).from.len() <= 4 * 7);
        }
    }

    /// The examples of Kini 2003: figures 4.1 and 4.3, and the heights of section 4.1.3.
    #[test]
    fn the_examples_of_the_document() {
        let edges = |rank| WritePattern::Exchange.edges(rank, 5);
        assert_eq!(edges(4), Edges { from: vec![0], to: vec![0] });
        assert_eq!(edges(0), Edges { from: vec![4, 1, 2], to: vec![1, 2, 4] });
        assert_eq!(edges(3), Edges { from: vec![2, 1], to: vec![2, 1] });
        let tree = |rank| WritePattern::Tree(3).edges(rank, 8);
        assert_eq!(tree(0).from, [1, 2, 3, 4]);
        assert_eq!(tree(4), Edges { from: vec![5, 6, 7], to: vec![0] });
        assert_eq!((height(8, 1), height(8, 3), height(8, 7)), (3, 2, 1));
        assert_eq!(height(1, 7), 0);
    }

    #[test]
    fn a_fan_in_beyond_the_ranks_is_a_tree_of_one_level() {
        for (fan_in, size, of) in
            [(7, 7, 7), (7, 5, 7), (7, 4, 3), (7, 8, 7), (7, 9, 7), (63, 2, 1)]
        {
            assert_eq!(fan_in_for(fan_in, size), of, "{fan_in} for {size}");
            let edges = |rank, fan_in| WritePattern::Tree(fan_in).edges(rank, size);
            assert!((0..size).all(|rank| edges(rank, fan_in) == edges(rank, of)));
        }
        assert_eq!(WritePattern::Tree(7).edges(0, 7).from, [1, 2, 3, 4, 5, 6]);
    }

    #[test]
    fn trees_have_one_root_and_no_more_children_a_step_than_the_fan_in() {
        for size in 1..=300 {
            for fan_in in [1, 3, 7, 15] {
                for rank in 0..size {
                    let parent = parent(rank, size, fan_in);
                    assert_eq!(parent.is_none(), rank == 0);
                    if let Some(parent) = parent {
                        assert!(children(parent, size, fan_in).any(|c| c == rank), "{size} {rank}");
                    }
                }
            }
        }
    }
}
