//! Expected results of reductions. The simulated ranks of a thread share them, because each rank expects the operands of all ranks
//! combined: among N ranks, N separate computations would take more time than the simulation.

use super::ops::Op;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Operands of a call: `count` elements on each rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Operands {
    pub op: Op,
    pub key: u64,
    pub count: usize,
}

impl Operands {
    /// Returns the operand of one rank.
    pub fn of_rank(self, rank: usize) -> Vec<u8> {
        self.op.operand(self.key << 16 | (rank << 8) as u64, self.count)
    }

    /// Returns the operands of the first `ranks` ranks, combined in their order.
    pub fn fold(self, ranks: usize) -> Rc<[u8]> {
        FOLDS.with_borrow_mut(|folds| folds.fold(self, ranks))
    }
}

thread_local! {
    static FOLDS: RefCell<Folds> = RefCell::default();
}

/// Results of the latest call.
#[derive(Default)]
struct Folds {
    operands: Option<Operands>,
    /// Combined operands of the first ranks, by the number of these ranks.
    by_ranks: BTreeMap<usize, Rc<[u8]>>,
}

impl Folds {
    fn fold(&mut self, operands: Operands, ranks: usize) -> Rc<[u8]> {
        assert!(ranks > 0, "a fold of no operands");
        if self.operands != Some(operands) {
            *self = Folds { operands: Some(operands), by_ranks: BTreeMap::new() };
        }
        let shorter = self.by_ranks.range(..=ranks).next_back();
        let (first, fold) = match shorter {
            Some((&first, fold)) if first == ranks => return fold.clone(),
            Some((&first, fold)) => (first, fold.to_vec()),
            None => (1, operands.of_rank(0)),
        };
        let more = (first..ranks).map(|rank| operands.of_rank(rank));
        let fold: Rc<[u8]> = more.fold(fold, |a, b| operands.op.apply(&a, &b)).into();
        self.by_ranks.insert(ranks, fold.clone());
        fold
    }
}

#[test]
fn folds_of_any_length_and_order_are_those_of_the_operands() {
    for op in [Op::Sum, Op::Product, Op::Float] {
        let operands = Operands { op, key: 7, count: 3 };
        for ranks in [5, 2, 9, 1, 5, 8] {
            let each = (0..ranks).map(|rank| operands.of_rank(rank));
            let expected = each.reduce(|a, b| op.apply(&a, &b)).expect("a rank");
            assert_eq!(*operands.fold(ranks), *expected, "{op:?} of {ranks} ranks");
            // Another call in between.
            if ranks == 9 {
                Operands { key: 8, ..operands }.fold(4);
            }
        }
    }
}
