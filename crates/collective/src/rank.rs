//! Rank arithmetic: pure functions of rank and size, tested for every size up to 1024.

/// Returns the largest power of two that is at most `size` (which is at least 1).
pub fn power_below(size: usize) -> usize {
    1 << size.ilog2()
}

/// Returns the number of rounds of a dissemination: ceil(log2 size).
pub fn rounds(size: usize) -> u32 {
    size.next_power_of_two().ilog2()
}

/// Returns the parent in the binomial tree over `0..size` with root 0: the rank without its lowest set bit.
/// The subtree of `r` is the contiguous range of ranks that starts at `r`.
pub fn parent(rank: usize) -> Option<usize> {
    (rank > 0).then(|| rank & (rank - 1))
}

/// Returns the children in the binomial tree of [`parent`], nearest first: `rank + 1, rank + 2, rank + 4, ...`.
pub fn children(rank: usize, size: usize) -> impl DoubleEndedIterator<Item = usize> {
    let bits = if rank == 0 { rounds(size) } else { rank.trailing_zeros() };
    (0..bits).map(move |k| rank + (1 << k)).filter(move |&c| c < size)
}

/// Returns the number of ranks in the subtree of `rank` in the binomial tree of [`parent`]. The subtree is `rank..rank +
/// subtree(rank, size)`.
pub fn subtree(rank: usize, size: usize) -> usize {
    match rank {
        0 => size,
        _ => (1 << rank.trailing_zeros()).min(size - rank),
    }
}

/// Place of a rank in a binomial tree like [`parent`]'s, but with any root. Ranks in the tree are relative to the root.
#[derive(Clone, Copy)]
pub struct BinomialPlace {
    size: usize,
    root: usize,
    /// This rank, relative to the root.
    pub me: usize,
}

impl BinomialPlace {
    /// Returns the place of `rank` among `size` ranks.
    pub fn new(rank: usize, size: usize, root: usize) -> BinomialPlace {
        BinomialPlace { size, root, me: (rank + size - root) % size }
    }

    /// Returns the rank in the communicator of a rank that is relative to the root.
    pub fn absolute(self, relative: usize) -> usize {
        (relative + self.root) % self.size
    }

    /// Returns the rank of the parent.
    pub fn parent(self) -> Option<usize> {
        parent(self.me).map(|parent| self.absolute(parent))
    }

    /// Returns the number of ranks in this rank's subtree.
    pub fn subtree(self) -> usize {
        subtree(self.me, self.size)
    }

    /// Returns the children, nearest first and relative to the root, each with the number of ranks in its subtree.
    pub fn children(self) -> impl DoubleEndedIterator<Item = (usize, usize)> {
        children(self.me, self.size).map(move |child| (child, subtree(child, self.size)))
    }
}

/// Returns the offset of part `i` of `parts` in `len` bytes that are cut only at multiples of `element`;
/// `i == parts` is the end. Parts differ by at most one element; the last part also has a remainder of less than an element.
pub fn cut(len: usize, element: usize, parts: usize, i: usize) -> usize {
    match i == parts {
        true => len,
        false => len / element * i / parts * element,
    }
}

/// Returns the largest power of `radix` that is at most `size`, and its exponent.
pub fn power_of(radix: usize, size: usize) -> (usize, u32) {
    let exponent = size.ilog(radix);
    (radix.pow(exponent), exponent)
}

/// Returns the parent in the k-nomial tree over `0..size` with root 0: the rank without its lowest nonzero digit
/// to base `radix`. Subtrees are contiguous.
pub fn k_parent(rank: usize, radix: usize) -> Option<usize> {
    let mut above = radix;
    while rank > 0 && rank.is_multiple_of(above) {
        above *= radix;
    }
    (rank > 0).then(|| rank - rank % above)
}

/// Returns the places of the digits below the lowest nonzero digit: `rank + d * place` with `0 < d < radix` are the children of
/// `rank`, if they are below `size`. The subtree of each child has at most `place` ranks, including the child.
pub fn k_places(
    rank: usize,
    size: usize,
    radix: usize,
) -> impl DoubleEndedIterator<Item = usize> + Clone {
    assert!(radix >= 2, "{size} ranks to base {radix}: at least 2");
    let (mut count, mut place) = (0, 1);
    while place < size && rank.is_multiple_of(place.saturating_mul(radix)) {
        count += 1;
        place = place.saturating_mul(radix);
    }
    (0..count).map(move |digit| radix.pow(digit))
}

/// Returns the children of `rank` whose lowest nonzero digit is at `place`.
pub fn k_children(
    rank: usize,
    size: usize,
    radix: usize,
    place: usize,
) -> impl DoubleEndedIterator<Item = usize> {
    (1..radix).map(move |digit| rank + digit * place).filter(move |&child| child < size)
}

/// Returns the places of the digits of the distances below `size`, to base `radix`: 1, `radix`, its square...
pub fn places(size: usize, radix: usize) -> impl Iterator<Item = usize> {
    k_places(0, size, radix)
}

/// Returns the effective radix for `size` ranks. Every radix of at least `size` means one round.
pub fn radix_for(radix: usize, size: usize) -> usize {
    radix.min(size.max(2))
}

/// Returns the nonzero digits at `place` of the distances below `size`.
pub fn digits(size: usize, radix: usize, place: usize) -> impl Iterator<Item = usize> {
    (1..radix).take_while(move |digit| digit * place < size)
}

/// Returns the distances below `size` whose digit at `place` is `digit`.
pub fn with_digit(
    size: usize,
    radix: usize,
    place: usize,
    digit: usize,
) -> impl Iterator<Item = usize> {
    (1..size).filter(move |distance| distance / place % radix == digit)
}

/// Neighbouring ranks folded into groups, so that the number of groups is a power of two (or of
/// another radix). The first `size % groups` groups have one rank more than the other groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fold {
    /// Number of ranks.
    pub size: usize,
    /// Number of groups, at most one per rank.
    pub groups: usize,
}

impl Fold {
    /// Returns the first rank of `group`, or the number of ranks if `group` is the number of groups.
    pub fn first(&self, group: usize) -> usize {
        group * (self.size / self.groups) + group.min(self.size % self.groups)
    }

    /// Returns the group of `rank`.
    pub fn group(&self, rank: usize) -> usize {
        let (each, longer) = (self.size / self.groups, self.size % self.groups);
        match rank / (each + 1) {
            group if group < longer => group,
            _ => (rank - longer) / each,
        }
    }

    /// Returns the ranks of `group`.
    pub fn ranks(&self, group: usize) -> std::ops::Range<usize> {
        self.first(group)..self.first(group + 1)
    }
}

/// Returns the peer of `rank` in step `step` of the Swing butterfly over `size` ranks, a power of two (De Sensi et al. 2024). Even
/// ranks go `1, -1, 3, -5, 11, ...` in one direction, odd ranks in the other.
pub fn swing_peer(rank: usize, size: usize, step: u32) -> usize {
    let way = if rank.is_multiple_of(2) { swing_way(step) } else { -swing_way(step) };
    (rank as i64 + way).rem_euclid(size as i64) as usize
}

/// Returns the sum of `(-2)^i` for `i` from 0 to `step`.
fn swing_way(step: u32) -> i64 {
    (1 - (-2i64).pow(step + 1)) / 3
}

/// Returns true if `rank` is in the upper of the two Swing groups that separate in step `step`. Bit `step + 1` of an even rank
/// gives its group. An odd rank is in the group of the even rank that it meets in the next step. In the last step, the even rank is
/// the lower group, and the odd rank is the upper group.
pub fn swing_upper(rank: usize, size: usize, step: u32) -> bool {
    if step + 1 == size.ilog2() {
        return !rank.is_multiple_of(2);
    }
    let even = match rank.is_multiple_of(2) {
        true => rank as i64,
        false => rank as i64 - swing_way(step + 1),
    };
    even.rem_euclid(1 << (step + 2)) >> (step + 1) == 1
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
            // Ranks whose arrival rank 0 knows: a contiguous run of ranks behind rank 0.
            let known = (0..rounds(size)).fold(1usize, |known, k| known + (1 << k).min(known));
            assert!(known >= size, "size {size}");
            assert!(power_below(size) <= size && 2 * power_below(size) > size);
        }
    }

    #[test]
    fn parts_are_whole_and_even() {
        for parts in 1..=1024 {
            for (len, element) in [(0, 1), (1, 1), (1000, 8), (1 << 20, 16), (4099, 4)] {
                let cuts: Vec<usize> = (0..=parts).map(|i| cut(len, element, parts, i)).collect();
                assert_eq!((cuts[0], cuts[parts]), (0, len));
                assert!(cuts[..parts].iter().all(|at| at % element == 0));
                let each = len / element / parts;
                let even = |w: &[usize]| (w[1] - w[0]) / element - each <= 1;
                assert!(cuts.windows(2).all(even), "{len} bytes in {parts} parts: {cuts:?}");
            }
        }
    }

    #[test]
    fn subtrees_have_their_ranks() {
        for size in 1..=1024 {
            for rank in 0..size {
                let below: usize = children(rank, size).map(|c| subtree(c, size)).sum();
                assert_eq!(subtree(rank, size), 1 + below, "rank {rank} of {size}");
            }
        }
    }

    #[test]
    fn k_nomial_trees_are_trees_with_contiguous_subtrees() {
        fn walk(rank: usize, size: usize, radix: usize, out: &mut Vec<usize>) {
            out.push(rank);
            for place in k_places(rank, size, radix) {
                for child in k_children(rank, size, radix, place) {
                    assert_eq!(k_parent(child, radix), Some(rank), "{size} ranks, radix {radix}");
                    let before = out.len();
                    walk(child, size, radix, out);
                    assert_eq!(out.len() - before, place.min(size - child));
                }
            }
        }
        for size in 1..=1024 {
            for radix in [2, 3, 4, 5, 8, 16, 1024] {
                let mut order = Vec::new();
                walk(0, size, radix, &mut order);
                assert!(order.iter().copied().eq(0..size), "{size} ranks, radix {radix}");
            }
        }
        assert_eq!(k_parent(0, 3), None);
    }

    #[test]
    fn a_fold_has_every_rank_once() {
        for size in 1..=1024 {
            for groups in [1, power_below(size), power_of(3, size).0, size] {
                let fold = Fold { size, groups };
                assert_eq!((fold.first(0), fold.first(groups)), (0, size));
                for group in 0..groups {
                    assert!(fold.ranks(group).all(|rank| fold.group(rank) == group));
                    assert!(fold.ranks(group).len() - size / groups <= 1);
                }
            }
        }
    }

    #[test]
    fn swing_is_a_butterfly() {
        for bits in 1..=10 {
            let size = 1usize << bits;
            for rank in 0..size {
                for step in 0..bits {
                    let peer = swing_peer(rank, size, step);
                    assert_eq!(swing_peer(peer, size, step), rank);
                    // Both ranks were in the same half so far, and separate in this step.
                    let differ = |s| swing_upper(rank, size, s) != swing_upper(peer, size, s);
                    assert!(differ(step), "rank {rank} of {size}, step {step}");
                    assert!(!(0..step).any(differ), "rank {rank} of {size}, step {step}");
                }
            }
        }
    }

    #[test]
    fn every_distance_is_the_sum_of_its_digits() {
        for size in (1..=70).chain([100, 243, 1000, 1024]) {
            for radix in [2, 3, 4, 16, 64, 1024] {
                let mut way = vec![0; size];
                for place in places(size, radix) {
                    for digit in digits(size, radix, place) {
                        assert!(digit > 0 && digit < radix && digit * place < size);
                        let mut any = false;
                        for distance in with_digit(size, radix, place, digit) {
                            way[distance] += digit * place;
                            any = true;
                        }
                        assert!(any, "{size} {radix}: nothing goes {digit} x {place}");
                    }
                }
                assert!(way.iter().enumerate().all(|(j, &went)| went == j), "{size} {radix}");
            }
        }
    }
}
