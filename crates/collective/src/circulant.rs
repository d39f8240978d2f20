//! Schedules of broadcasts in circulant graphs: Träff, "Round-optimal n-block broadcast schedules in
//! logarithmic time" (2023), and ACM TOPC 2025, doi 10.1145/3735139.
//!
//! ```text
//!   9 ranks, skips 1 2 3 5:   in round k rank r receives from r - skip[k], and sends to r + skip[k]
//! ```
//! With q = ceil(log2 size), the same q rounds are repeated. In each repetition a rank receives q different blocks. Only one of
//! these blocks belongs to this repetition: the rank's *base block*. The number of the base block is the number of the smallest
//! skip on the way from the root to the rank.
//!
//! [`rounds`] has the schedules of reduce-scatter and allgather over the same graphs: Träff, "Optimal, non-pipelined reduce-scatter
//! and allreduce algorithms" (2024, arXiv 2410.14234).

/// Number of a block that never comes.
const NEVER: i64 = i64::MIN / 2;

/// Returns the skips from 1 to `size`. Each skip is half of the next skip, rounded up.
fn skips(size: usize) -> Vec<usize> {
    let mut skips = vec![size];
    while skips[skips.len() - 1] > 1 {
        skips.push(skips[skips.len() - 1].div_ceil(2));
    }
    skips.reverse();
    skips
}

/// A round of a reduce-scatter. A rank has sums of `all` blocks: its own block and the blocks of the ranks behind it. The rank
/// keeps its first `skip` sums. The rank sends all other sums to the rank `skip` ahead, and combines its first sums with the sums
/// that it receives from the rank `skip` behind. In reverse, the round is a round of an allgather.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CirculantRound {
    /// Distance of the partners, in ranks.
    pub skip: usize,
    /// Number of blocks for which the rank has sums before the round.
    pub all: usize,
}

impl CirculantRound {
    /// Returns the number of blocks sent, which is also the number received.
    pub fn moved(&self) -> usize {
        self.all - self.skip
    }
}

/// Returns the rounds of a reduce-scatter over `size` ranks: ceil(log2 size) rounds.
pub fn rounds(size: usize) -> Vec<CirculantRound> {
    skips(size)
        .windows(2)
        .rev()
        .map(|pair| CirculantRound { skip: pair[0], all: pair[1] })
        .collect()
}

/// The graph over `size` ranks, with root 0.
pub struct Circulant {
    /// `skips[q] = size`, and `skips[0] = 1`.
    skips: Vec<usize>,
}

impl Circulant {
    /// Makes the graph over `size` ranks.
    ///
    /// # Panics
    /// If there are fewer than 2 ranks, which need no rounds.
    pub fn new(size: usize) -> Circulant {
        assert!(size >= 2, "a circulant graph over {size} ranks");
        Circulant { skips: skips(size) }
    }

    /// Returns q, the number of rounds until all ranks have the first block.
    pub fn rounds(&self) -> usize {
        self.skips.len() - 1
    }

    fn size(&self) -> usize {
        self.skips[self.rounds()]
    }

    /// Returns the rank to which `rank` sends in round `k` (modulo q).
    pub fn to(&self, rank: usize, k: usize) -> usize {
        (rank + self.skips[k % self.rounds()]) % self.size()
    }

    /// Returns the rank from which `rank` receives in round `k` (modulo q).
    pub fn from(&self, rank: usize, k: usize) -> usize {
        (rank + self.size() - self.skips[k % self.rounds()]) % self.size()
    }

    /// Returns the number of the smallest skip on the way from the root to `rank`, if the way takes the largest skips first.
    /// Returns q for the root itself.
    fn base_block(&self, rank: usize) -> usize {
        let mut left = rank;
        for k in (0..self.rounds()).rev() {
            if left == self.skips[k] {
                return k;
            }
            left -= if left > self.skips[k] { self.skips[k] } else { 0 };
        }
        self.rounds()
    }

    /// Returns the block that `rank` receives in each of q rounds, in O(log size) steps. A negative number is a block of the
    /// previous repetition, whose block 0 has the number -q.
    pub fn receives(&self, rank: usize) -> Vec<i64> {
        let (q, base) = (self.rounds(), self.base_block(rank));
        let mut search = Search {
            skips: &self.skips,
            goal: self.size() + rank,
            unused: (1 << (q + 1)) - 1 - (1 << base),
            found: Vec::with_capacity(q),
        };
        search.below(0, 2 * self.size(), q);
        let block = |&skip: &usize| if skip == q { base as i64 } else { skip as i64 - q as i64 };
        search.found.iter().map(block).collect()
    }

    /// Returns the schedule by which `rank` receives each of `blocks` blocks once. The root receives nothing.
    pub fn arrivals(&self, rank: usize, blocks: usize) -> BlockArrivals {
        assert!(blocks > 0, "no block to broadcast");
        let q = self.rounds();
        // Rounds that would send only blocks with negative numbers are left out.
        let shift = (q - (blocks - 1) % q) % q;
        let block = if rank == 0 { vec![NEVER; q] } else { self.receives(rank) };
        let mut arrivals = BlockArrivals { block, shift, blocks, last: usize::MAX };
        // Later rounds would bring the last block again.
        let mut end = shift + blocks - 1..shift + blocks - 1 + q;
        if let Some(last) = end.find(|&round| arrivals.number(round) >= blocks as i64 - 1) {
            arrivals.last = last;
        }
        arrivals
    }
}

/// A depth-first search over sums of skips, largest skip first. For each round k it finds the closest rank at or below `goal -
/// skips[k]` that no earlier round has found.
struct Search<'a> {
    skips: &'a [usize],
    goal: usize,
    /// Set of unused skips, a bit for each skip.
    unused: u64,
    /// Number of the skip found for each round.
    found: Vec<usize>,
}

impl Search<'_> {
    /// Continues from `at` with skips up to number `top`, below `limit`.
    fn below(&mut self, at: usize, mut limit: usize, top: usize) {
        for skip in (0..=top).rev() {
            let round = self.found.len();
            if round + 1 == self.skips.len() {
                return;
            }
            let next = at + self.skips[skip];
            let unused = self.unused & 1 << skip != 0;
            if !unused || next + self.skips[round] > self.goal || next >= limit {
                continue;
            }
            if next + self.skips[round + 1] <= self.goal {
                self.below(next, limit, skip);
            }
            let round = self.found.len();
            if round + 1 == self.skips.len() || at + self.skips[round + 1] > self.goal {
                return;
            }
            limit = next;
            self.found.push(skip);
            self.unused &= !(1 << skip);
        }
    }
}

/// Schedule of a rank: the block that it receives in each round.
pub struct BlockArrivals {
    block: Vec<i64>,
    shift: usize,
    blocks: usize,
    /// The round in which the last block comes.
    last: usize,
}

impl BlockArrivals {
    /// Returns the rounds of the broadcast. The first round may have a number other than 0.
    pub fn rounds(&self) -> std::ops::Range<usize> {
        self.shift..self.shift + self.blocks - 1 + self.block.len()
    }

    /// Returns the schedule's number for `round`. A number below 0 means that there is no block yet. A number beyond the end stands
    /// for the last block.
    fn number(&self, round: usize) -> i64 {
        let q = self.block.len();
        self.block[round % q] + (q * (round / q)) as i64 - self.shift as i64
    }

    /// Returns the block that comes in `round`.
    pub fn block(&self, round: usize) -> Option<usize> {
        let number = usize::try_from(self.number(round)).ok()?;
        match number + 1 < self.blocks {
            true => Some(number),
            false => (round == self.last).then_some(self.blocks - 1),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks the paper's conditions: each repetition brings q different blocks, exactly one of them is new, and no block is sent
    /// before it has arrived.
    #[test]
    fn schedules_are_right() {
        for size in 2..=1024 {
            let graph = Circulant::new(size);
            let q = graph.rounds();
            let all: Vec<Vec<i64>> = (0..size).map(|rank| graph.receives(rank)).collect();
            for rank in 1..size {
                let base = graph.base_block(rank) as i64;
                let mut blocks = all[rank].clone();
                blocks.sort();
                let old = (-(q as i64)..0).filter(|&b| b != base - q as i64);
                assert!(blocks.into_iter().eq(old.chain([base])), "rank {rank} of {size}");
                for k in 0..q {
                    let from = graph.from(rank, k);
                    assert_eq!(graph.to(from, k), rank);
                    let block = all[rank][k];
                    // The root sends block k; other ranks send a block that they had, or that came in an earlier round.
                    let known = match from {
                        0 => block == k as i64 || block < 0,
                        _ => {
                            let base = graph.base_block(from) as i64;
                            block == base - q as i64 || all[from][..k].contains(&block)
                        }
                    };
                    assert!(known, "rank {rank} of {size} gets {block} of {from} in round {k}");
                }
            }
        }
    }

    /// Checks that each operand of a block is in its sum once. All ranks do the same, so the test follows one rank. The test names
    /// an operand by the distance from this rank to the operand's rank.
    #[test]
    fn reduce_scatters_count_each_operand_once() {
        for size in 1..=1024 {
            // For each block, from the rank's own block on: the ranks whose operands are in the sum.
            let mut sums: Vec<Vec<usize>> = vec![vec![0]; size];
            let rounds = rounds(size);
            assert_eq!(rounds.len() as u32, crate::rank::rounds(size));
            assert_eq!(rounds.iter().map(CirculantRound::moved).sum::<usize>(), size - 1);
            for CirculantRound { skip, all } in rounds {
                assert_eq!(sums.len(), all);
                let given = sums.split_off(skip);
                assert!(given.len() <= sums.len(), "{size} ranks, skip {skip}");
                // Block i + skip of rank r - skip is block i of rank r.
                for (sum, more) in sums.iter_mut().zip(given) {
                    sum.extend(more.into_iter().map(|ahead| (ahead + size - skip) % size));
                }
            }
            assert_eq!(sums.len(), 1);
            sums[0].sort();
            assert!(sums[0].iter().copied().eq(0..size), "{size} ranks: {:?}", sums[0]);
        }
    }

    /// Allgathers are the rounds in reverse: no rank sends a block that it does not have, and all ranks get each block once, at its
    /// place.
    #[test]
    fn allgathers_bring_each_block_once() {
        for size in 1..=1024 {
            let mut has = 1;
            for round in rounds(size).into_iter().rev() {
                assert!(round.skip == has && round.moved() <= has, "{size} ranks, {round:?}");
                // Block i of the rank `skip` ahead is block i + skip of this rank.
                has += round.moved();
            }
            assert_eq!(has, size);
        }
    }

    /// All ranks get every block once, from a rank that has it, in n - 1 + q rounds.
    #[test]
    fn broadcasts_are_complete() {
        for size in (2..=130).chain([255, 256, 257, 1000, 1023, 1024]) {
            let graph = Circulant::new(size);
            for blocks in [1, 2, 3, 7, 16, 17] {
                let plans: Vec<_> = (0..size).map(|r| graph.arrivals(r, blocks)).collect();
                let mut has = vec![vec![false; blocks]; size];
                has[0].fill(true);
                assert_eq!(plans[0].rounds().len(), blocks - 1 + graph.rounds());
                for round in plans[0].rounds() {
                    let before = has.clone();
                    for rank in 1..size {
                        let Some(block) = plans[rank].block(round) else { continue };
                        assert!(before[graph.from(rank, round)][block], "{blocks} to {size}");
                        assert!(!before[rank][block], "block {block} twice to {rank} of {size}");
                        has[rank][block] = true;
                    }
                }
                assert!(has.iter().flatten().all(|&here| here), "{blocks} blocks to {size}");
            }
        }
    }
}
