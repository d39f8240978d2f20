//! Operators, and their expected results.

use weft_collective::ElementReduction;
use weft_fabric::Sge;

/// Operator of a reduction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Op {
    /// Sum of 64-bit words. Commutes.
    Sum,
    /// Product of 2 by 2 matrices of words. Associative, does not commute.
    Product,
    /// Sum of floating-point numbers. Commutes, but the bits of the result depend on the order.
    Float,
}

impl Op {
    /// Returns the number of bytes of one element.
    pub fn unit(self) -> usize {
        match self {
            Op::Sum | Op::Float => 8,
            Op::Product => 32,
        }
    }

    /// Returns `left op right`.
    pub fn apply(self, left: &[u8], right: &[u8]) -> Vec<u8> {
        let mut result = right.to_vec();
        let pairs = left.chunks_exact(self.unit()).zip(result.chunks_exact_mut(self.unit()));
        pairs.for_each(|(left, right)| self.element(left, right));
        result
    }

    /// Computes `right = left op right` for one element.
    fn element(self, left: &[u8], right: &mut [u8]) {
        let word =
            |of: &[u8], i: usize| u64::from_ne_bytes(of[8 * i..][..8].try_into().expect("8"));
        let float = |of: &[u8]| f64::from_bits(word(of, 0));
        match self {
            Op::Sum => {
                let sum = word(left, 0).wrapping_add(word(right, 0));
                right.copy_from_slice(&sum.to_ne_bytes());
            }
            Op::Float => right.copy_from_slice(&(float(left) + float(right)).to_ne_bytes()),
            Op::Product => {
                let (a, b): ([u64; 4], [u64; 4]) = (
                    std::array::from_fn(|i| word(left, i)),
                    std::array::from_fn(|i| word(right, i)),
                );
                for (i, word) in product(a, b).into_iter().enumerate() {
                    right[8 * i..][..8].copy_from_slice(&word.to_ne_bytes());
                }
            }
        }
    }

    /// Returns `count` elements that depend only on `key`.
    pub fn operand(self, key: u64, count: usize) -> Vec<u8> {
        let mut rng = fastrand::Rng::with_seed(key);
        let word = || match self {
            Op::Float => (rng.f64() - 0.5).to_bits(),
            _ => rng.u64(..),
        };
        let words = std::iter::repeat_with(word).take(count * self.unit() / 8);
        words.flat_map(u64::to_ne_bytes).collect()
    }
}

fn product(a: [u64; 4], b: [u64; 4]) -> [u64; 4] {
    let entry = |row: usize, column: usize| {
        let (x, y) =
            (a[2 * row].wrapping_mul(b[column]), a[2 * row + 1].wrapping_mul(b[2 + column]));
        x.wrapping_add(y)
    };
    [entry(0, 0), entry(0, 1), entry(1, 0), entry(1, 1)]
}

impl ElementReduction for Op {
    fn combine(&self, left: Sge, right: Sge) {
        assert!(left.len() == right.len() && left.len().is_multiple_of(self.unit()), "whole ones");
        // Uses no heap memory, since tests count allocations.
        let (mut a, mut b) = ([0; 1024], [0; 1024]);
        for at in (0..left.len()).step_by(a.len()) {
            let some = a.len().min(left.len() - at);
            let (a, b) = (&mut a[..some], &mut b[..some]);
            left.part(at, some).read(a);
            right.part(at, some).read(b);
            let pairs = a.chunks_exact(self.unit()).zip(b.chunks_exact_mut(self.unit()));
            pairs.for_each(|(left, right)| self.element(left, right));
            right.part(at, some).fill(b);
        }
    }

    fn commutes(&self) -> bool {
        *self != Op::Product
    }
}
