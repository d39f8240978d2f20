//! Whether the ranks of a release-gather area are near or far from each other, so that all choose alike.
//!
//! ```text
//!   rank 0, before operation m:    has found another distance?   word = (from m + 1 on, far or near)
//!   every rank, before m:          reads rank 0's word:          is it far for m?
//! ```
//! Each process finds out by itself what it costs to read what others have written ([`weft_fabric::copies`]), and finds
//! another answer at another time. Where algorithms differ in their barriers, what rank 0 has found counts for all.
//!
//! Why all find the same. Rank 0 writes before it comes to m, so nobody has begun an operation beyond m: who reads the
//! word before or after finds for m what held so far. Who begins m + 1 has left m, to which rank 0 came after it had
//! written. And rank 0 says something new only from when the last change holds, when nobody asks about anything before
//! that any more: all have come to m - 1. This needs operations that begin one after the other: blocking ones.

/// Rank 0's word: the number of the operation from which on `far` holds; before that, the opposite.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DistanceWord {
    since: u64,
    far: bool,
}

impl DistanceWord {
    /// Zeroed memory says near.
    pub fn from_word(word: u64) -> DistanceWord {
        DistanceWord { since: word >> 1, far: word & 1 == 1 }
    }

    pub fn word(self) -> u64 {
        self.since << 1 | u64::from(self.far)
    }

    /// Whether it is far for operation `number`.
    pub fn is_far(self, number: u64) -> bool {
        self.far == (number >= self.since)
    }

    /// What rank 0 says before operation `number`, if it has found something else: it holds from the next one on.
    pub fn change(self, number: u64, far: bool) -> Option<DistanceWord> {
        let may = number >= self.since && far != self.far;
        may.then_some(DistanceWord { since: number + 1, far })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEAR: DistanceWord = DistanceWord { since: 0, far: false };

    #[test]
    fn words_are_read_as_they_were_meant() {
        assert_eq!(DistanceWord::from_word(0), NEAR);
        assert!(!NEAR.is_far(0) && !NEAR.is_far(7));
        let far = NEAR.change(5, true).unwrap();
        assert_eq!(DistanceWord::from_word(far.word()), far);
        assert_eq!([4, 5, 6, 7].map(|n| far.is_far(n)), [false, false, true, true]);
        // Not before it holds, and not to what holds.
        assert_eq!(far.change(5, false), None);
        assert_eq!(far.change(6, true), None);
        assert!(far.change(6, false).is_some());
    }

    /// Ranks that come to each operation when they like, and leave it when all have come; rank 0 finds something else at random.
    #[test]
    fn all_choose_alike() {
        const RANKS: usize = 4;
        let mut rng = fastrand::Rng::with_seed(3);
        let mut word = NEAR.word();
        // The operation that each rank is in, and what was chosen for each.
        let mut at = [0u64; RANKS];
        let mut chosen: Vec<[Option<bool>; RANKS]> = vec![[None; RANKS]];
        let mut changes = 0;
        while at[0] < if cfg!(miri) { 300 } else { 20_000 } {
            let rank = rng.usize(0..RANKS);
            if at.iter().any(|&other| other < at[rank]) {
                // Not all have come to the operation that it is in.
                continue;
            }
            let next = at[rank] + 1;
            let found = DistanceWord::from_word(word);
            if rank == 0
                && let Some(new) = found.change(next, rng.bool())
            {
                word = new.word();
                changes += 1;
            }
            chosen.resize((next as usize + 1).max(chosen.len()), [None; RANKS]);
            chosen[next as usize][rank] = Some(DistanceWord::from_word(word).is_far(next));
            at[rank] = next;
        }
        assert!(changes > 50);
        for (number, all) in chosen.iter().enumerate().skip(1) {
            let mut some = all.iter().flatten();
            let first = some.next().unwrap();
            assert!(some.all(|far| far == first), "operation {number}: {all:?}");
        }
    }
}
