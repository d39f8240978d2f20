//! Properties of several operations: a barrier holds all ranks, and operations that follow closely,
//! overlap, or belong to different communicators do not disturb each other.

use crate::group::{Group, Product, Sum, bytes_of, words_of};
use fastrand::Rng;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use weft_collective::run::CollectiveCall;
use weft_collective::{
    AlgorithmChoice, CollectiveKind, CollectiveState, CommView, ReductionBuffers, allreduce,
    barrier, bcast,
};
use weft_fabric::{Fabric, Fault, Staging};
use weft_fabric_testing::world::{RankBody, SETUPS, TestRank, world};

#[derive(Debug, Clone, Copy, PartialEq)]
enum Algorithm {
    Central,
    Dissemination,
    PairwiseExchange,
    Rpe,
    Rds,
}
use Algorithm::*;

fn named(operation: CollectiveKind, name: &str) -> AlgorithmChoice {
    AlgorithmChoice::parse(operation, name).expect("in the catalogue")
}

async fn wait_for_all<F: Fabric>(
    link: CommView<F>,
    state: Rc<CollectiveState<F>>,
    algorithm: Algorithm,
) -> Result<(), Fault> {
    match algorithm {
        Central => {
            CollectiveCall {
                link: &link,
                state: &state,
                choice: named(CollectiveKind::Barrier, "CENTRAL"),
            }
            .barrier()
            .await
        }
        Dissemination => barrier::dissemination(&link).await,
        PairwiseExchange => barrier::pairwise_exchange(&link).await,
        Rpe => barrier::rpe(&link, &state).await.map(|had| assert!(had, "room for slots")),
        Rds => barrier::rds(&link, &state).await.map(|had| assert!(had, "room for slots")),
    }
}

/// Each rank increments a counter before each barrier; after the barrier the counter must include all ranks.
struct Holding {
    algorithm: Algorithm,
    entered: AtomicUsize,
}

const ROUNDS: usize = 40;

impl RankBody for Holding {
    fn run<F: Fabric>(&self, rank: &TestRank<F>) {
        let group = Group::world(rank);
        let n = rank.size();
        let mut rng = Rng::with_seed(rank.me() as u64);
        for round in 0..ROUNDS {
            // Ranks are late at random.
            for _ in 0..rng.usize(0..30) {
                rank.progress();
                if rng.u8(0..8) == 0 {
                    std::thread::yield_now();
                }
            }
            self.entered.fetch_add(1, Ordering::SeqCst);
            rank.block_on(wait_for_all(group.link(), group.state.clone(), self.algorithm)).unwrap();
            let entered = self.entered.load(Ordering::SeqCst);
            let possible = n * (round + 1)..=n * (round + 2);
            assert!(possible.contains(&entered), "{:?}: {entered} of {n}", self.algorithm);
        }
    }
}

#[test]
fn nobody_leaves_a_barrier_before_everybody_has_come() {
    for algorithm in [Central, Dissemination, PairwiseExchange, Rpe, Rds] {
        let test = |n, setup| {
            world(n, setup, &Holding { algorithm, entered: AtomicUsize::new(0) });
        };
        (1..=9).for_each(|n| test(n, SETUPS[0]));
        (1..=9).for_each(|n| test(n, SETUPS[6]));
        [2, 3, 7].into_iter().for_each(|n| test(n, SETUPS[3]));
        [2, 5].into_iter().for_each(|n| test(n, SETUPS[4]));
    }
}

/// Several operations of one communicator under way at once, completed in any order. Further operations run in a second
/// communicator, of all of these ranks except one, in another order.
struct Overlapping;

/// An operation under way and its expected result.
struct Started {
    task: weft_process::NonblockingTask,
    result: Option<(Staging, Vec<u64>)>,
}

fn operand(key: u64, r: usize) -> Vec<u64> {
    let mut rng = Rng::with_seed(key << 8 | r as u64);
    (0..4).map(|_| rng.u64(..)).collect()
}

fn fold(key: u64, n: usize, f: impl Fn(Vec<u64>, Vec<u64>) -> Vec<u64>) -> Vec<u64> {
    (1..n).fold(operand(key, 0), |sum, r| f(sum, operand(key, r)))
}

fn start<F: Fabric>(group: &Group<F>, key: u64) -> Started {
    let (rank, n) = (group.rank, group.size());
    let (link, state) = (group.link(), group.state.clone());
    // All ranks draw the same kind, because the key is the same on all ranks.
    let kind = Rng::with_seed(key).u8(0..11);
    let data = rank.buffer(&bytes_of(&operand(key, group.me)));
    let result = rank.empty(32);
    let out = result.sge();
    let sum = |a: Vec<u64>, b: Vec<u64>| a.iter().zip(b).map(|(a, b)| a.wrapping_add(b)).collect();
    let product = |a: Vec<u64>, b: Vec<u64>| {
        crate::group::product(a.try_into().expect("4"), b.try_into().expect("4")).to_vec()
    };
    let engine = rank.engine();
    let (task, expected) = match kind {
        0 | 1 => {
            let algorithm = if kind == 0 { Central } else { Dissemination };
            let barrier = wait_for_all(link, state, algorithm);
            (engine.spawn(async move { Ok(barrier.await?) }), None)
        }
        2 | 3 => {
            let central = async move {
                let choice = named(CollectiveKind::Allreduce, "CENTRAL");
                let buffers = ReductionBuffers { data: data.sge(), result: out, element: 32 };
                Ok(CollectiveCall { link: &link, state: &state, choice }
                    .allreduce(buffers, &Product)
                    .await?)
            };
            (engine.spawn(central), Some(fold(key, n, product)))
        }
        9 | 10 => {
            let all = crate::group::shm(CollectiveKind::Allreduce, n, 32, true);
            let choice = all[Rng::with_seed(key + 1).usize(0..all.len())];
            let shm = async move {
                let buffers = ReductionBuffers { data: data.sge(), result: out, element: 32 };
                Ok(CollectiveCall { link: &link, state: &state, choice }
                    .allreduce(buffers, &Product)
                    .await?)
            };
            (engine.spawn(shm), Some(fold(key, n, product)))
        }
        4 => {
            let exchange = async move {
                let buffers = ReductionBuffers { data: data.sge(), result: out, element: 8 };
                Ok(allreduce::pairwise_exchange(&link, buffers, &Sum).await?)
            };
            (engine.spawn(exchange), Some(fold(key, n, sum)))
        }
        5 | 6 => {
            let algorithm = if kind == 5 { Rpe } else { Rds };
            let barrier = wait_for_all(link, state, algorithm);
            (engine.spawn(async move { Ok(barrier.await?) }), None)
        }
        7 => {
            let exchange = async move {
                let buffers = ReductionBuffers { data: data.sge(), result: out, element: 8 };
                assert!(allreduce::rpe(&link, &state, buffers, &Sum).await?, "room");
                Ok(())
            };
            (engine.spawn(exchange), Some(fold(key, n, sum)))
        }
        _ => {
            let root = key as usize % n;
            out.copy_from(data.sge());
            let bcast = async move { Ok(bcast::binomial(&link, root, out).await?) };
            (engine.spawn(bcast), Some(operand(key, root)))
        }
    };
    Started { task, result: expected.map(|words| (result, words)) }
}

impl RankBody for Overlapping {
    fn run<F: Fabric>(&self, rank: &TestRank<F>) {
        let mut rng = Rng::with_seed(90 + rank.me() as u64);
        let first = Group::world(rank);
        let some = (0..rank.size() as u32).rev().filter(|&r| r != 1).collect();
        let second = Group::new(rank, 200, some);
        let mut under_way = Vec::new();
        for key in 0..150 {
            under_way.push((key, start(&first, key)));
            if let Some(second) = &second {
                under_way.push((key, start(second, 1000 + key)));
            }
            // This rank now completes its operations in any order; other ranks do so at other times.
            while under_way.len() > 12 || (!under_way.is_empty() && rng.u8(0..3) == 0) {
                let (key, started) = under_way.swap_remove(rng.usize(0..under_way.len()));
                end(rank, key, started);
            }
        }
        under_way.into_iter().for_each(|(key, started)| end(rank, key, started));
        assert_eq!(rank.engine().tasks(), 0);
    }
}

fn end<F: Fabric>(rank: &TestRank<F>, key: u64, started: Started) {
    let result = rank.until(|| started.task.result());
    result.expect("a collective operation");
    if let Some((result, expected)) = started.result {
        assert_eq!(words_of(result.sge()), expected, "operation {key}");
    }
}

#[test]
fn operations_under_way_at_once_do_not_meet() {
    (1..=6).for_each(|n| world(n, SETUPS[0], &Overlapping));
    (1..=6).for_each(|n| world(n, SETUPS[6], &Overlapping));
    [2, 4].into_iter().for_each(|n| world(n, SETUPS[3], &Overlapping));
    [3, 5].into_iter().for_each(|n| world(n, SETUPS[4], &Overlapping));
}
