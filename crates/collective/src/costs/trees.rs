//! Costs of trees, and of rounds in which a rank has several partners. All times are infinite unless the ranks are at known places in
//! several caches.

use super::CallCosts;

impl CallCosts<'_> {
    /// Returns the nanoseconds of a tree or of exchanges in groups of `radix` ranks: in each round `radix - 1` messages of `len` bytes,
    /// and `then` nanoseconds of work for each of them. `busy` returns the time of a processor for one of the messages.
    pub fn k_nomial(
        &self,
        radix: f64,
        len: f64,
        busy: impl Fn(&CallCosts) -> f64,
        then: f64,
    ) -> f64 {
        let rounds = (self.ranks.ln() / radix.ln() - 1e-9).ceil() as i32;
        let round = |k: i32| {
            let place = radix.powi(k);
            let partners = (radix - 1.0).min((self.ranks / place).ceil() - 1.0).max(1.0);
            let Some(costs) = self.at_difference(place) else { return f64::INFINITY };
            costs.in_round(len) + (partners - 1.0) * busy(&costs) + partners * then
        };
        (0..rounds).map(round).sum()
    }

    /// Returns the nanoseconds in which blocks of `len` bytes of all ranks go up or down a binomial tree, joined on the way.
    pub fn binomial_blocks(&self, len: f64) -> f64 {
        let joined = |k: i32| len * 2f64.powi(k).min(self.ranks - 2f64.powi(k));
        // The root copies all blocks into its messages or out of them, and the ranks on the way copy their own.
        let copies = self.copy_blocks(self.ranks + self.rounds(), len);
        self.doubling(self.rounds(), joined, |_| 0.0) + copies
    }

    /// Returns the nanoseconds of `rounds` rounds in which a rank exchanges messages with ranks at the distances of Swing. `len` returns
    /// the bytes of a message of a round; each is followed by `then` nanoseconds of work.
    pub fn swinging(
        &self,
        rounds: f64,
        len: impl Fn(i32) -> f64,
        then: impl Fn(f64) -> f64,
    ) -> f64 {
        // The sums of the powers of -2: 1, 1, 3, 5, 11 and so on.
        let distance = |k: i32| ((1.0 - (-2f64).powi(k + 1)) / 3.0).abs();
        (0..rounds as i32).map(|k| self.exchange(distance(k), len(k)) + then(len(k))).sum()
    }

    /// Returns the nanoseconds in which each rank combines a share of `len` bytes of all ranks along a circulant graph: runs of blocks
    /// that halve, followed by `then` nanoseconds of work for each byte.
    pub fn circulant_shares(&self, len: f64, then: impl Fn(f64) -> f64) -> f64 {
        let block = len / self.ranks;
        let moved = |k: i32| block * 2f64.powi(k).min(self.ranks - 2f64.powi(k));
        self.doubling(self.rounds(), moved, then)
    }
}
