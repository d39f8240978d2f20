//! A communicator for tests: ranks of a world of threads, with views in a context of their own.

use std::cell::Cell;
use std::rc::Rc;
use weft_collective::{
    AlgorithmChoice, CollectiveKind, CollectiveState, CommView, ElementReduction, Members,
    RankPlacement, Reception, SelectionKey, Via,
};
use weft_fabric::{Fabric, Sge};
use weft_fabric_testing::world::TestRank;
use weft_p2p::MatchingContext;

pub struct Group<'r, F: Fabric> {
    pub rank: &'r TestRank<'r, F>,
    /// Map from a rank in the group to a rank in the world.
    pub members: Rc<Members>,
    /// This process's rank in the group.
    pub me: usize,
    /// State of its collective operations.
    pub state: Rc<CollectiveState<F>>,
    context: u64,
    sequence: Cell<i32>,
    /// Transport of its views.
    pub via: Via,
}

impl<'r, F: Fabric> Group<'r, F> {
    /// Makes the group of `members`. Returns `None` if this process is not a member.
    pub fn new(rank: &'r TestRank<'r, F>, context: u64, members: Vec<u32>) -> Option<Group<'r, F>> {
        let me = members.iter().position(|&m| m as usize == rank.me())?;
        let state = Rc::new(CollectiveState::new(rank.engine().arena().clone()));
        let (members, sequence) = (Rc::new(members.into()), Cell::new(0));
        Some(Group { rank, members, me, state, context, sequence, via: Via::Messages })
    }

    /// Makes the group of all ranks, in their order.
    pub fn world(rank: &'r TestRank<'r, F>) -> Group<'r, F> {
        let all = (0..rank.size() as u32).collect();
        Group::new(rank, 100, all).expect("everybody is a member")
    }

    pub fn size(&self) -> usize {
        self.members.len()
    }

    /// Returns the view of the next operation.
    pub fn link(&self) -> CommView<F> {
        let tag = self.sequence.get();
        self.sequence.set(tag + 1);
        CommView {
            endpoint: self.rank.endpoint().clone(),
            members: self.members.clone(),
            rank: self.me,
            context: MatchingContext(self.context),
            tag,
            via: self.via,
            reception: Reception::default(),
        }
    }
}

/// Returns the algorithms of ranks that share memory for a call with elements of 32 bytes. By name they run on any fabric.
pub fn shm(
    operation: CollectiveKind,
    ranks: usize,
    bytes: usize,
    equal: bool,
) -> Vec<AlgorithmChoice> {
    let site = RankPlacement::together(ranks);
    let case = SelectionKey { ranks, bytes, element: 32, commutes: false, equal, site };
    let able = operation.algorithms().filter(|a| a.meets() && a.eligible(&case).is_ok());
    able.map(|a| a.usual()).collect()
}

/// Sum of u64; it commutes.
pub struct Sum;

impl ElementReduction for Sum {
    fn combine(&self, left: Sge, right: Sge) {
        combine(left, right, |a: [u64; 1], b| [a[0].wrapping_add(b[0])]);
    }

    fn commutes(&self) -> bool {
        true
    }
}

/// Product of 2 by 2 matrices modulo 2^64; it is associative and does not commute.
pub struct Product;

pub fn product(a: [u64; 4], b: [u64; 4]) -> [u64; 4] {
    let entry = |row: usize, column: usize| {
        let (x, y) =
            (a[2 * row].wrapping_mul(b[column]), a[2 * row + 1].wrapping_mul(b[2 + column]));
        x.wrapping_add(y)
    };
    [entry(0, 0), entry(0, 1), entry(1, 0), entry(1, 1)]
}

impl ElementReduction for Product {
    fn combine(&self, left: Sge, right: Sge) {
        combine(left, right, product);
    }

    fn commutes(&self) -> bool {
        false
    }
}

/// Sum of f64; it commutes, but the bits of the result depend on the order of operands.
pub struct Float;

impl ElementReduction for Float {
    fn combine(&self, left: Sge, right: Sge) {
        let sum = |a: f64, b: f64| (a + b).to_bits();
        combine(left, right, |a: [u64; 1], b| [sum(f64::from_bits(a[0]), f64::from_bits(b[0]))]);
    }

    fn commutes(&self) -> bool {
        true
    }
}

/// Operator that returns the larger operand, compared without the lowest byte, and on a tie the left operand. It claims to
/// commute, but the bits of the result show which operand was left and which was right.
pub struct Larger;

impl ElementReduction for Larger {
    fn combine(&self, left: Sge, right: Sge) {
        combine(left, right, |a: [u64; 1], b| if a[0] >> 8 >= b[0] >> 8 { a } else { b });
    }

    fn commutes(&self) -> bool {
        true
    }
}

fn combine<const N: usize>(left: Sge, right: Sge, f: impl Fn([u64; N], [u64; N]) -> [u64; N]) {
    let (a, b) = (words_of(left), words_of(right));
    let pairs = a.chunks_exact(N).zip(b.chunks_exact(N));
    let array = |chunk: &[u64]| -> [u64; N] { chunk.try_into().expect("N words") };
    let result: Vec<u64> = pairs.flat_map(|(a, b)| f(array(a), array(b))).collect();
    assert_eq!(result.len(), b.len(), "whole elements");
    right.fill(&bytes_of(&result));
}

pub fn words_of(sge: Sge) -> Vec<u64> {
    let mut bytes = vec![0; sge.len()];
    sge.read(&mut bytes);
    bytes.chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().expect("8"))).collect()
}

pub fn bytes_of(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}
