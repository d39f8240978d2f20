//! Rank arithmetic: pure functions of rank and size, tested for every size up to 1024.

/// Largest power of two that is at most `size` (which is at least 1).
pub fn power_below(size: usize) -> usize {
    1 << size.ilog2()
}

/// Rounds of a dissemination: ceil(log2 size).
pub fn rounds(size: usize) -> u32 {
    size.next_power_of_two().ilog2()
}

/// Parent in the binomial tree over `0..size` with root 0: the rank without its lowest bit.
/// The subtree of `r` is the contiguous range of ranks that starts at `r`.
pub fn parent(rank: usize) -> Option<usize> {
    (rank > 0).then(|| rank & (rank - 1))
}

/// Children in that tree, nearest first: `rank + 1, rank + 2, rank + 4, ...`.
pub fn children(rank: usize, size: usize) -> impl DoubleEndedIterator<Item = usize> {
    let bits = if rank == 0 { rounds(size) } else { rank.trailing_zeros() };
    (0..bits).map(move |k| rank + (1 << k)).filter(move |&c| c < size)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rank_has_one_parent_and_is_its_child() {
        for size in 1..=1024 {
            let mut seen = vec![0; size];
            for rank in 0..size {
                for child in children(rank, size) {
                    assert_eq!(parent(child), Some(rank), "size {size}");
                    seen[child] += 1;
                }
            }
            assert_eq!(seen[0], 0);
            assert!(seen[1..].iter().all(|&n| n == 1), "size {size}");
        }
    }

    #[test]
    fn subtrees_are_contiguous() {
        fn walk(rank: usize, size: usize, out: &mut Vec<usize>) {
            out.push(rank);
            children(rank, size).for_each(|c| walk(c, size, out));
        }
        for size in 1..=1024 {
            let mut order = Vec::new();
            walk(0, size, &mut order);
            assert!(order.iter().copied().eq(0..size), "size {size}");
        }
    }

    #[test]
    fn a_dissemination_reaches_everybody_in_its_rounds() {
        for size in 1..=1024usize {
            // Ranks whose arrival rank 0 knows of: a contiguous run behind it.
            let known = (0..rounds(size)).fold(1usize, |known, k| known + (1 << k).min(known));
            assert!(known >= size, "size {size}");
            assert!(power_below(size) <= size && 2 * power_below(size) > size);
        }
    }
}
