//! Trees with few children per rank, along which segments flow: pure functions of rank and size, tested
//! for every size up to 1024. Rank 0 is the root.

/// Parent and children of a rank. A single child is the first child.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeNode {
    pub parent: Option<usize>,
    pub children: [Option<usize>; 2],
}

/// Returns the place of `rank` in a chain: `0 -> 1 -> 2 -> ...`.
pub fn chain(rank: usize, size: usize) -> TreeNode {
    let child = (rank + 1 < size).then_some(rank + 1);
    TreeNode { parent: rank.checked_sub(1), children: [child, None] }
}

/// Returns the place of `rank` in the complete binary tree in level order: children `2r + 1` and `2r + 2`.
pub fn binary(rank: usize, size: usize) -> TreeNode {
    let child = |c| (c < size).then_some(c);
    let parent = (rank > 0).then(|| (rank - 1) / 2);
    TreeNode { parent, children: [child(2 * rank + 1), child(2 * rank + 2)] }
}

/// Half of the data that comes down to a rank of the split binary tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TreeHalf {
    Root,
    Left,
    Right,
}

/// A rank of the split binary tree: the root, and two complete binary trees next to each other, ranks
/// `1..=left` and `left + 1..size`. If their sizes differ, the left tree has one rank more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Split {
    pub side: TreeHalf,
    pub place: TreeNode,
    /// Rank with which this rank exchanges halves at the end. The root has both halves, and sends the other half to a left rank
    /// without a partner.
    pub partner: Option<usize>,
}

/// Returns the place of `rank` in the split binary tree.
pub fn split(rank: usize, size: usize) -> Split {
    let left = size / 2;
    let right = size - 1 - left;
    let lone = (left > right).then_some(left);
    if rank == 0 {
        let children = [(left > 0).then_some(1), (right > 0).then_some(left + 1)];
        let place = TreeNode { parent: None, children };
        return Split { side: TreeHalf::Root, place, partner: lone };
    }
    let (side, first, ranks) = match rank <= left {
        true => (TreeHalf::Left, 1, left),
        false => (TreeHalf::Right, left + 1, right),
    };
    let at = binary(rank - first, ranks);
    let place = TreeNode {
        parent: Some(at.parent.map_or(0, |p| p + first)),
        children: at.children.map(|c| c.map(|c| c + first)),
    };
    let partner = match side {
        TreeHalf::Left if lone == Some(rank) => 0,
        TreeHalf::Left => rank + left,
        _ => rank - left,
    };
    Split { side, place, partner: Some(partner) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_a_tree(size: usize, place: impl Fn(usize) -> TreeNode) {
        let mut seen = vec![0; size];
        for rank in 0..size {
            let TreeNode { parent, children } = place(rank);
            assert_eq!(parent.is_none(), rank == 0);
            // A parent has a lower rank than its child, so there is no cycle.
            assert!(parent.is_none_or(|p| p < rank), "rank {rank} of {size}");
            for child in children.into_iter().flatten() {
                assert_eq!(place(child).parent, Some(rank), "{child} of {size}");
                seen[child] += 1;
            }
        }
        assert!(seen[1..].iter().all(|&n| n == 1), "size {size}");
    }

    #[test]
    fn they_are_trees() {
        for size in 1..=1024 {
            is_a_tree(size, |rank| chain(rank, size));
            is_a_tree(size, |rank| binary(rank, size));
            is_a_tree(size, |rank| split(rank, size).place);
        }
    }

    #[test]
    fn partners_have_the_other_half() {
        for size in 2..=1024 {
            for rank in 1..size {
                let Split { side, place, partner } = split(rank, size);
                let partner = partner.expect("all but the root have one");
                let other = split(partner, size);
                assert_eq!(other.partner, Some(rank), "rank {rank} of {size}");
                assert_ne!(other.side, side);
                // The parent is on the same side, or is the root.
                let parent = split(place.parent.expect("not the root"), size).side;
                assert!(parent == side || parent == TreeHalf::Root);
            }
        }
    }
}
