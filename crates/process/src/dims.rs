//! Dimensions of a balanced grid (MPI_Dims_create; MPI 5.0, section 8.5.2).
//!
//! ```text
//!   5850 in 3 ── 25 x 18 x 13   spread 12, the least largest
//!            └── 26 x 15 x 15   spread 11: the result
//! ```
//! "As close to each other as possible" is read as follows: the difference of the largest and the smallest factor is minimal. Among
//! several solutions, the largest factor is minimal, then the second, and so on. Source: Träff and Lübbe, Specification Guideline
//! Violations by MPI_Dims_create, EuroMPI 2015. Cost: for numbers of 31 bits fewer than 20,000 partial factorisations, most of
//! which have few divisors left.

use std::collections::HashSet;

/// Fills the zeros of `dims` so that the product is `nodes` and the filled factors are as close to each other as possible, in
/// falling order. Returns `None` if the given factors do not divide `nodes`, or if no factor is free and the product is wrong.
pub fn balanced_dims(nodes: usize, dims: &[usize]) -> Option<Vec<usize>> {
    let mut given = dims.iter().filter(|&&d| d > 0);
    let given = given.try_fold(1usize, |product, &d| product.checked_mul(d))?;
    let free = dims.iter().filter(|&&d| d == 0).count();
    if !nodes.is_multiple_of(given) || free == 0 && nodes != given {
        return None;
    }
    let filled = if free == 0 { Vec::new() } else { balanced(nodes / given, free).0 };
    let mut next = filled.into_iter();
    Some(dims.iter().map(|&d| if d > 0 { d } else { next.next().unwrap_or(1) }).collect())
}

/// Returns the factorisation of `n` into at most `parts` falling factors that are as close as possible. Factors of 1 at the end may
/// be left out. Also returns the number of partial factorisations that were examined.
fn balanced(n: usize, parts: usize) -> (Vec<usize>, usize) {
    let primes = prime_factors(n);
    // With more parts than primes, all further factors are 1.
    let parts = parts.min(primes.len() + 1);
    let mut search =
        Search { divisors: divisors(&primes), now: Vec::new(), best: None, seen: HashSet::new() };
    search.extend(n, parts);
    (search.best.map_or(Vec::new(), |best| best.1), search.seen.len())
}

struct Search {
    /// Divisors of the number, rising.
    divisors: Vec<usize>,
    /// The factors so far, falling.
    now: Vec<usize>,
    /// The best factors so far, and their spread.
    best: Option<(usize, Vec<usize>)>,
    /// Splits that were tried before: number, number of factors, and maximum factor. If a split comes again, the factors before it
    /// come later in the order, and their spread is no smaller. So the result is never better.
    seen: HashSet<(usize, usize, usize)>,
}

impl Search {
    /// Tries all ways to split `rest` into `parts` more factors that can be better than the best so far. Ways are tried in rising
    /// lexicographic order, so that among equal spreads the first result is the best.
    fn extend(&mut self, rest: usize, parts: usize) {
        let most = self.now.last().copied().unwrap_or(rest);
        if parts == 1 {
            if rest <= most && rest >= self.least() {
                self.now.push(rest);
                self.best = Some((self.now[0] - rest, self.now.clone()));
                self.now.pop();
            }
            return;
        }
        if !self.seen.insert((rest, parts, most)) {
            return;
        }
        let start = self.divisors.partition_point(|&d| !reaches(d, parts, rest));
        for at in start..self.divisors.len() {
            let d = self.divisors[at];
            // The other factors are at least `least`. If their product would exceed the rest, this divisor and all larger divisors
            // are too large.
            let least = match self.now.is_empty() {
                true => self.best.as_ref().map_or(1, |(spread, _)| (d + 1).saturating_sub(*spread)),
                false => self.least(),
            };
            let too_large = least > 1 && reaches(least, parts - 1, rest / d + 1);
            if d > most || too_large {
                return;
            }
            if d >= least && rest.is_multiple_of(d) {
                self.now.push(d);
                self.extend(rest / d, parts - 1);
                self.now.pop();
            }
        }
    }

    /// Returns the least factor with which the spread is below the best.
    fn least(&self) -> usize {
        match (&self.best, self.now.first()) {
            (Some((spread, _)), Some(first)) => (first + 1).saturating_sub(*spread).max(1),
            // No spread is below 0.
            _ => 1,
        }
    }
}

/// Returns true if `d` to the power of `parts` is at least `n`.
fn reaches(d: usize, parts: usize, n: usize) -> bool {
    d.checked_pow(parts as u32).is_none_or(|power| power >= n)
}

/// Returns the prime factors, rising, each as often as it divides `n`.
fn prime_factors(mut n: usize) -> Vec<usize> {
    let (mut primes, mut p) = (Vec::new(), 2);
    while p * p <= n {
        while n.is_multiple_of(p) {
            primes.push(p);
            n /= p;
        }
        p += 1;
    }
    primes.extend((n > 1).then_some(n));
    primes
}

/// Returns all divisors of the product of `primes`, rising.
fn divisors(primes: &[usize]) -> Vec<usize> {
    let mut all = vec![1];
    for power in primes.chunk_by(|a, b| a == b) {
        let before = all.clone();
        let mut factor = 1;
        for p in power {
            factor *= p;
            all.extend(before.iter().map(|d| d * factor));
        }
    }
    all.sort_unstable();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls `f` with all falling factorisations of `n` into `parts` factors of at most `most`.
    fn every(
        n: usize,
        parts: usize,
        most: usize,
        now: &mut Vec<usize>,
        f: &mut dyn FnMut(&[usize]),
    ) {
        if parts == 0 {
            if n == 1 {
                f(now);
            }
            return;
        }
        for d in (1..=most.min(n)).filter(|d| n.is_multiple_of(*d)) {
            now.push(d);
            every(n / d, parts - 1, d, now, f);
            now.pop();
        }
    }

    fn best_of_all(n: usize, parts: usize) -> Vec<usize> {
        let mut best: Option<(usize, Vec<usize>)> = None;
        every(n, parts, n, &mut Vec::new(), &mut |dims| {
            let found = (dims[0] - dims[parts - 1], dims.to_vec());
            if best.as_ref().is_none_or(|best| found < *best) {
                best = Some(found);
            }
        });
        best.expect("n x 1 x ...").1
    }

    #[test]
    fn dims_are_balanced() {
        for (n, dims, filled) in [
            (6, &[0, 0][..], &[3, 2][..]),
            (7, &[0, 0], &[7, 1]),
            (6, &[0, 3, 0], &[2, 3, 1]),
            (16, &[0, 0, 0], &[4, 2, 2]),
            (36, &[0, 0], &[6, 6]),
            (1, &[0, 0, 0], &[1, 1, 1]),
            (8, &[2, 4], &[2, 4]),
            (5_850, &[0, 0, 0], &[26, 15, 15]),
            (31_050, &[0, 0, 0], &[46, 27, 25]),
            (62_100, &[0, 0, 2, 0], &[46, 27, 2, 25]),
            (2_147_483_647, &[0, 0], &[2_147_483_647, 1]),
            (1_000_000_000, &[0, 0, 0], &[1000, 1000, 1000]),
        ] {
            assert_eq!(balanced_dims(n, dims).as_deref(), Some(filled), "{n} in {dims:?}");
        }
        for (n, dims) in [(7, &[0, 3, 0][..]), (8, &[2, 2]), (0x10000, &[0, 1 << 32, 1 << 32])] {
            assert_eq!(balanced_dims(n, dims), None, "{n} in {dims:?}");
        }
        let many = balanced_dims(12, &vec![0; 100_000]).unwrap();
        assert!(many.starts_with(&[3, 2, 2, 1]) && many.iter().product::<usize>() == 12);
    }

    #[test]
    fn they_are_the_best_of_all_factorisations() {
        let step = if cfg!(miri) { 997 } else { 1 };
        for parts in 2..=5 {
            for n in (1..=5_000).step_by(step).chain([5_850, 31_050]) {
                let found = balanced_dims(n, &vec![0; parts]).unwrap();
                assert_eq!(found, best_of_all(n, parts), "{n} in {parts}");
            }
        }
    }

    /// Numbers with very many divisors, in every number of dimensions.
    #[test]
    fn large_numbers_take_few_steps() {
        let worst =
            [2_095_133_040, 1_396_755_360, 1 << 30, 223_092_870, 1_162_261_467, 2_147_483_647];
        for n in worst {
            for parts in 1..=34 {
                let (found, steps) = balanced(n, parts);
                assert_eq!(found.iter().product::<usize>(), n);
                assert!(found.is_sorted_by(|a, b| a >= b), "{n}: {found:?}");
                assert!(steps < 20_000, "{n} in {parts}: {steps} steps");
            }
        }
    }
}
