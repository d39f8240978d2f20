//! Distance between the ranks of a release-gather area: near or far. The ranks agree on the distance, so that all ranks choose the
//! same algorithm.
//!
//! ```text
//!   rank 0, before operation m:    if its answer has changed:    word = (from m + 1 on, far or near)
//!   every rank, before m:          reads rank 0's word:          is it far for m?
//! ```
//! Each process measures the cost of reading data that other ranks have written ([`weft_fabric::copies`]), so each process's answer
//! may change at a different time. The algorithms for near and far ranks differ in their barriers, so rank 0's answer counts for
//! all ranks.
//!
//! All ranks find the same distance, for the following reason. Rank 0 writes its word before it arrives at m, so no rank has begun
//! an operation beyond m. A rank that reads the word for m, before or after the write, finds the previous answer. A rank can only
//! begin operation m + 1 after it has left m, and rank 0 arrived at m after the write. Rank 0 writes a new answer only after the
//! last change has taken effect. By then all ranks have arrived at m - 1, so no rank asks about earlier operations any more. The
//! argument requires that operations begin one after the other, as blocking operations do.

/// Rank 0's word. `far` is valid from operation number `since` on; the opposite value is valid for earlier operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DistanceWord {
    since: u64,
    far: bool,
}

impl DistanceWord {
    /// Decodes a word. Zeroed memory means near.
    pub fn from_word(word: u64) -> DistanceWord {
        DistanceWord { since: word >> 1, far: word & 1 == 1 }
    }

    pub fn word(self) -> u64 {
        self.since << 1 | u64::from(self.far)
    }

    /// Returns true if the ranks are far from each other for operation `number`.
    pub fn is_far(self, number: u64) -> bool {
        self.far == (number >= self.since)
    }

    /// Returns the new word that rank 0 writes before operation `number`, if rank 0's answer has changed to `far` and the last
    /// change has taken effect. The new word makes `far` valid from operation `number` + 1 on.
    pub fn change(self, number: u64, far: bool) -> Option<DistanceWord> {
        let may = number >= self.since && far != self.far;
        may.then_some(DistanceWord { since: number + 1, far })
    }
}

#[cfg(all(test, not(loom)))]
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
        // The answer does not change before the last change takes effect, and does not change to its present value.
        assert_eq!(far.change(5, false), None);
        assert_eq!(far.change(6, true), None);
        assert!(far.change(6, false).is_some());
    }

    /// Ranks arrive at each operation at random times, and leave it when all have arrived. Rank 0's answer changes at random.
    #[test]
    fn all_choose_alike() {
        const RANKS: usize = 4;
        let mut rng = fastrand::Rng::with_seed(3);
        let mut word = NEAR.word();
        // The operation that each rank is in, and the choice of each rank for each operation.
        let mut at = [0u64; RANKS];
        let mut chosen: Vec<[Option<bool>; RANKS]> = vec![[None; RANKS]];
        let mut changes = 0;
        while at[0] < if cfg!(miri) { 300 } else { 20_000 } {
            let rank = rng.usize(0..RANKS);
            if at.iter().any(|&other| other < at[rank]) {
                // Another rank has not yet come to the operation that `rank` is in.
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
