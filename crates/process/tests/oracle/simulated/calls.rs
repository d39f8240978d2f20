//! Choice of the calls: every algorithm of the catalogue, each with several forms of data.

use super::call::Call;
use super::memory::Layout::{self, Dense, Gaps};
use super::ops::Op;
use weft_collective::AlgorithmChoice;
use weft_collective::algorithm::{Algorithm, Only};
use weft_collective::catalog::ALGORITHMS;

/// Returns parameters to try: the default, the minimum, an odd number between, and the maximum.
pub fn parameters(algorithm: &'static Algorithm) -> Vec<AlgorithmChoice> {
    let Some(range) = algorithm.parameter else { return vec![algorithm.usual()] };
    let odd = match range.only {
        Only::All => range.least + 1 + range.least / 2,
        Only::OneLessThanPowers => 3,
    };
    let all = [range.default, range.least, odd.min(range.most), range.most];
    all.into_iter().map(|parameter| AlgorithmChoice { algorithm, parameter }).collect()
}

/// A form of data.
#[derive(Debug, Clone, Copy)]
pub struct Form {
    pub count: usize,
    pub op: Op,
    pub layouts: (Layout, Layout),
    pub in_place: bool,
    pub varying: bool,
}

const fn form(
    count: usize,
    op: Op,
    layouts: (Layout, Layout),
    in_place: bool,
    varying: bool,
) -> Form {
    Form { count, op, layouts, in_place, varying }
}

/// Forms with few elements.
pub const SMALL: [Form; 10] = [
    form(0, Op::Sum, (Dense, Dense), false, false),
    form(1, Op::Sum, (Gaps, Gaps), true, false),
    form(7, Op::Product, (Dense, Gaps), false, false),
    form(7, Op::Product, (Gaps, Gaps), true, true),
    form(0, Op::Product, (Gaps, Gaps), true, true),
    form(41, Op::Sum, (Dense, Dense), true, false),
    form(38, Op::Float, (Gaps, Dense), false, true),
    form(35, Op::Sum, (Gaps, Gaps), false, false),
    form(5, Op::Float, (Dense, Dense), true, false),
    form(1, Op::Product, (Dense, Dense), false, false),
];

/// Returns the calls of all algorithms on `ranks` ranks.
pub fn all(ranks: usize, forms: &[Form]) -> Vec<Call> {
    ALGORITHMS.iter().flat_map(|a| of(a, ranks, forms)).collect()
}

/// Returns the calls of one algorithm: every form, with parameters and roots in turn.
pub fn of(algorithm: &'static Algorithm, ranks: usize, forms: &[Form]) -> Vec<Call> {
    let choices = parameters(algorithm);
    let call = |(i, form): (usize, &Form)| {
        let Form { count, op, layouts, in_place, varying } = *form;
        let root = [0, ranks - 1, ranks / 2, 1 % ranks, ranks / 3][(i + i / 5) % 5];
        let choice = choices[(i + ranks) % choices.len()];
        let key = (i + 31 * ranks) as u64;
        Call { choice, count, root, op, layouts, in_place, varying, key }
    };
    forms.iter().enumerate().map(call).collect()
}
