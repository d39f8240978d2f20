//! Every algorithm that combines data, on 1 to 33 ranks, compared with a fold in the order of ranks, and
//! bit by bit with the other ranks and other runs.

use crate::group::{Float, Group, Larger, Product, Sum, bytes_of, product, words_of};
use fastrand::Rng;
use std::collections::HashMap;
use std::sync::Mutex;
use weft_collective::{
    BlockList, CommView, ElementReduction, Prefix, ReduceScatterBuffers, ReductionBuffers,
    allreduce, reduce, reduce_scatter, scan,
};
use weft_fabric::{Fabric, Fault};
use weft_fabric_testing::world::{RankBody, SETUPS, TestRank, bytes, world};

fn everywhere(body: &impl RankBody) {
    for n in 1..=9 {
        world(n, SETUPS[0], body);
    }
    for n in [2, 3, 7] {
        world(n, SETUPS[2], body);
        world(n, SETUPS[4], body);
    }
    for n in 1..=33 {
        world(n, SETUPS[5], body);
    }
    for n in [2, 3, 5, 8, 13, 16] {
        world(n, SETUPS[6], body);
    }
}

/// Size in bytes of the largest element here, a matrix: data are cut only between elements.
const ELEMENT: usize = 32;

/// Returns lengths of the data in words: zero, one matrix, a prime number of matrices and, for a few numbers of ranks, a large
/// length.
fn lengths(n: usize) -> &'static [usize] {
    match n {
        2 | 3 | 5 | 8 | 16 => &[0, 4, 212, 8004],
        1..=17 => &[0, 4, 212],
        _ => &[212],
    }
}

/// Returns the words that rank `r` contributes.
fn operand(r: usize, words: usize) -> Vec<u64> {
    let mut rng = Rng::with_seed((words << 8 | r) as u64);
    std::iter::repeat_with(|| rng.u64(..)).take(words).collect()
}

/// Returns floating-point numbers of very different sizes, so that every order has its own sum.
fn floats(r: usize, words: usize) -> Vec<u64> {
    let mut rng = Rng::with_seed((words << 8 | r) as u64);
    let number = || (rng.f64() - 0.5) * 10f64.powi(rng.i32(-12..12));
    std::iter::repeat_with(number).map(f64::to_bits).take(words).collect()
}

fn products(ranks: std::ops::Range<usize>, words: usize) -> Vec<u64> {
    let mut all = ranks.map(|r| operand(r, words));
    let first = all.next().expect("at least one rank");
    let array = |chunk: &[u64]| -> [u64; 4] { chunk.try_into().expect("4 words") };
    all.fold(first, |a, b| {
        let pairs = a.chunks_exact(4).zip(b.chunks_exact(4));
        pairs.flat_map(|(a, b)| product(array(a), array(b))).collect()
    })
}

fn sums(n: usize, words: usize) -> Vec<u64> {
    let mut sum = operand(0, words);
    for r in 1..n {
        sum.iter_mut().zip(operand(r, words)).for_each(|(a, b)| *a = a.wrapping_add(b));
    }
    sum
}

const ALLREDUCES: usize = 8;

/// Returns true if an algorithm supports `n` ranks, with operators that commute if `commutes`, otherwise with any operator.
fn allreduce_takes(which: usize, n: usize, commutes: bool) -> bool {
    match which {
        4 => commutes,
        5 => commutes && n.is_power_of_two(),
        6 | 7 => commutes,
        _ => true,
    }
}

async fn allreduce<F: Fabric>(
    which: usize,
    link: &CommView<F>,
    buffers: ReductionBuffers,
    op: &dyn ElementReduction,
) -> Result<(), Fault> {
    match which {
        0 => allreduce::k_nomial(link, buffers, op, 2).await,
        1 => allreduce::k_nomial(link, buffers, op, 3).await,
        2 => allreduce::k_nomial(link, buffers, op, 5).await,
        3 => allreduce::rabenseifner(link, buffers, op).await,
        4 => allreduce::ring(link, buffers, op).await,
        5 => allreduce::swing(link, buffers, op).await,
        _ => allreduce::circulant(link, buffers, op).await,
    }
}

/// Results that must be the same on all ranks of a world, and in all runs.
#[derive(Default)]
struct Allreduces {
    same: Mutex<HashMap<Key, Vec<u64>>>,
}

/// Key of a result: ranks, words, algorithm, operator.
type Key = (usize, usize, usize, &'static str);

impl RankBody for Allreduces {
    fn run<F: Fabric>(&self, rank: &TestRank<F>) {
        let group = Group::world(rank);
        let (me, n) = (rank.me(), rank.size());
        let run = |which, operand: &[u64], op: &dyn ElementReduction| {
            let (data, result) = (rank.buffer(&bytes_of(operand)), rank.empty(8 * operand.len()));
            // Every other algorithm runs in place.
            let into = if which % 2 == 1 { data.sge() } else { result.sge() };
            let link = group.link();
            let buffers = ReductionBuffers { data: data.sge(), result: into, element: ELEMENT };
            rank.block_on(allreduce(which, &link, buffers, op)).unwrap();
            if which % 2 == 0 {
                assert!(bytes(&data) == bytes_of(operand), "{which} changed its operand");
            }
            words_of(into)
        };
        for &words in lengths(n) {
            for which in 0..ALLREDUCES {
                if allreduce_takes(which, n, false) {
                    let got = run(which, &operand(me, words), &Product);
                    assert!(got == products(0..n, words), "{which}, {words} words, {n} ranks");
                }
                if allreduce_takes(which, n, true) {
                    let got = run(which, &operand(me, words), &Sum);
                    assert!(got == sums(n, words), "{which}, {words} words, {n} ranks");
                    let ties = vec![(words << 8 | me) as u64; words];
                    let float = run(which, &floats(me, words), &Float);
                    for (name, got) in [("float", float), ("larger", run(which, &ties, &Larger))] {
                        let mut same = self.same.lock().unwrap();
                        let first = same.entry((n, words, which, name));
                        let first = first.or_insert_with(|| got.clone());
                        assert!(*first == got, "{which}, {name}: other bits than elsewhere");
                    }
                }
            }
        }
    }
}

#[test]
fn allreduces_agree_with_a_fold_and_in_every_bit() {
    everywhere(&Allreduces::default());
}

async fn reduce<F: Fabric>(
    which: usize,
    link: &CommView<F>,
    root: usize,
    buffers: ReductionBuffers,
) -> Result<(), Fault> {
    match which {
        0 => reduce::binomial(link, root, buffers, &Product).await,
        1 => reduce::k_nomial(link, root, buffers, &Product, 2).await,
        2 => reduce::k_nomial(link, root, buffers, &Product, 4).await,
        3 => reduce::chain(link, root, buffers, &Product, 1 << 30).await,
        4 => reduce::chain(link, root, buffers, &Product, 1000).await,
        5 => reduce::chain(link, root, buffers, &Product, 1).await,
        _ => reduce::scatter_gather(link, root, buffers, &Product).await,
    }
}

/// Reductions to one rank, and prefix reductions, of matrices.
struct Ordered;

impl RankBody for Ordered {
    fn run<F: Fabric>(&self, rank: &TestRank<F>) {
        let group = Group::world(rank);
        let (me, n) = (rank.me(), rank.size());
        let roots = if n > 17 { vec![n / 2] } else { vec![0, 1.min(n - 1), n / 2, n - 1] };
        for &words in lengths(n) {
            let own = bytes_of(&operand(me, words));
            for (root, which) in roots.iter().flat_map(|&r| (0..7).map(move |w| (r, w))) {
                if which == 5 && words > 1000 {
                    continue;
                }
                let (data, result) = (rank.buffer(&own), rank.empty(8 * words));
                // Every other algorithm runs in place.
                let into = if which % 2 == 1 && me == root { &data } else { &result };
                let link = group.link();
                let buffers =
                    ReductionBuffers { data: data.sge(), result: into.sge(), element: ELEMENT };
                rank.block_on(reduce(which, &link, root, buffers)).unwrap();
                if me == root {
                    let expected = bytes_of(&products(0..n, words));
                    assert!(bytes(into) == expected, "{which} to {root} of {n}, {words} words");
                } else {
                    assert!(bytes(&data) == own && bytes(&result) == vec![0xee; 8 * words]);
                }
            }
            let data = rank.buffer(&own);
            let link = group.link();
            let buffers =
                ReductionBuffers { data: data.sge(), result: data.sge(), element: ELEMENT };
            let scan = scan::recursive_doubling(&link, buffers, &Product, Prefix::Inclusive);
            rank.block_on(scan).unwrap();
            assert!(words_of(data.sge()) == products(0..me + 1, words), "scan of {n}");
            let (data, result) = (rank.buffer(&own), rank.empty(8 * words));
            let link = group.link();
            let buffers =
                ReductionBuffers { data: data.sge(), result: result.sge(), element: ELEMENT };
            rank.block_on(scan::recursive_doubling(&link, buffers, &Product, Prefix::Exclusive))
                .unwrap();
            let expected = match me {
                0 => vec![0xee; 8 * words],
                _ => bytes_of(&products(0..me, words)),
            };
            assert!(bytes(&result) == expected, "exclusive scan of {n}");
        }
    }
}

#[test]
fn reductions_and_scans_keep_the_order_of_ranks() {
    everywhere(&Ordered);
}

async fn reduce_scatter<F: Fabric>(
    which: usize,
    link: &CommView<F>,
    buffers: ReduceScatterBuffers<'_>,
    op: &dyn ElementReduction,
) -> Result<(), Fault> {
    let ReduceScatterBuffers { data, lens, result, .. } = buffers;
    let data = &BlockList::of(data, lens.iter().copied());
    match which {
        0 => reduce_scatter::reduce_scatterv(link, buffers, op).await,
        1 => reduce_scatter::pairwise(link, data, result, op).await,
        2 => reduce_scatter::recursive_halving(link, data, result, op).await,
        3 => reduce_scatter::ring(link, data, result, op).await,
        _ => reduce_scatter::circulant(link, data, result, op).await,
    }
}

struct Scattered;

impl RankBody for Scattered {
    fn run<F: Fabric>(&self, rank: &TestRank<F>) {
        let group = Group::world(rank);
        let (me, n) = (rank.me(), rank.size());
        // Numbers of elements: equal, all at one rank, and different on each rank.
        let counts: [Vec<usize>; 3] = [
            vec![3; n],
            (0..n).map(|r| if r == n / 2 { 50 } else { 0 }).collect(),
            (0..n).map(|r| [0, 1, 7, 40, 300][Rng::with_seed(r as u64).usize(0..5)]).collect(),
        ];
        for counts in &counts {
            let words = 4 * counts.iter().sum::<usize>();
            let own = bytes_of(&operand(me, words));
            for which in 0..5 {
                let data = rank.buffer(&own);
                let lens: Vec<usize> = counts.iter().map(|c| c * ELEMENT).collect();
                let result = rank.empty(lens[me]);
                let start = 4 * counts[..me].iter().sum::<usize>();
                let run = |op: &dyn ElementReduction, all: Vec<u64>| {
                    let link = group.link();
                    let (data, result) = (data.sge(), result.sge());
                    let buffers =
                        ReduceScatterBuffers { data, lens: &lens, result, element: ELEMENT };
                    rank.block_on(reduce_scatter(which, &link, buffers, op)).unwrap();
                    let mine = &all[start..start + 4 * counts[me]];
                    assert!(words_of(result) == mine, "{which} of {n}: {counts:?}");
                };
                run(&Sum, sums(n, words));
                if which == 0 {
                    run(&Product, products(0..n, words));
                }
                assert!(bytes(&data) == own, "{which} changed its operand");
            }
        }
    }
}

#[test]
fn everybody_gets_its_block_of_a_reduction() {
    everywhere(&Scattered);
}
