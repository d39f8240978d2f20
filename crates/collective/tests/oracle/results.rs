//! Every algorithm on 1 to 9 ranks, compared with a sequential program.

use crate::group::{Float, Group, Larger, Product, Sum, bytes_of, product, shm, words_of};
use fastrand::Rng;
use std::collections::HashMap;
use std::sync::Mutex;
use weft_collective::run::CollectiveCall;
use weft_collective::{
    AlgorithmChoice, CollectiveKind, ElementReduction, Prefix, ReduceScatterBuffers,
    ReductionBuffers, SLOT, allgather, allreduce, alltoall, bcast, gather, reduce, scan, scatter,
};
use weft_fabric::{Fabric, Sge};
use weft_fabric_testing::world::{RankBody, SETUPS, TestRank, bytes, pattern, world};

/// Runs `body` on every number of ranks, on shared memory, and simulated with and without chaos. On some numbers of ranks, also
/// runs it with faults, and with payload in pieces.
fn everywhere(body: &impl RankBody) {
    for n in 1..=9 {
        world(n, SETUPS[0], body);
    }
    for n in [2, 5, 8] {
        world(n, SETUPS[2], body);
        world(n, SETUPS[4], body);
    }
    for n in [1, 2, 3, 4, 5, 6, 7, 8, 9, 12, 16, 17] {
        world(n, SETUPS[5], body);
        world(n, SETUPS[6], body);
    }
}

/// Returns the words that rank `r` contributes to round `round`.
fn operand(round: u64, r: usize, words: usize) -> Vec<u64> {
    let mut rng = Rng::with_seed(round << 8 | r as u64);
    std::iter::repeat_with(|| rng.u64(..)).take(words).collect()
}

/// Returns floating-point numbers of very different sizes, so that every order has its own sum.
fn float_operand(round: u64, r: usize, words: usize) -> Vec<u64> {
    let mut rng = Rng::with_seed(round << 8 | r as u64);
    let number = || (rng.f64() - 0.5) * 10f64.powi(rng.i32(-12..12));
    std::iter::repeat_with(number).map(f64::to_bits).take(words).collect()
}

fn sums(round: u64, ranks: std::ops::Range<usize>, words: usize) -> Vec<u64> {
    let mut all = ranks.map(|r| operand(round, r, words));
    let first = all.next().expect("at least one rank");
    let add = |a: Vec<u64>, b: Vec<u64>| a.iter().zip(b).map(|(a, b)| a.wrapping_add(b)).collect();
    all.fold(first, add)
}

fn products(round: u64, ranks: std::ops::Range<usize>, words: usize) -> Vec<u64> {
    let mut all = ranks.map(|r| operand(round, r, words));
    let first = all.next().expect("at least one rank");
    let array = |chunk: &[u64]| -> [u64; 4] { chunk.try_into().expect("4 words") };
    all.fold(first, |a, b| {
        let pairs = a.chunks_exact(4).zip(b.chunks_exact(4));
        pairs.flat_map(|(a, b)| product(array(a), array(b))).collect()
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Algorithm {
    Central,
    PairwiseExchange,
    GatherBroadcast,
    /// An algorithm of ranks that share memory.
    Shm(&'static str),
    /// An algorithm of ranks that share memory, with the data in the place of the result.
    ShmInPlace(&'static str),
    Rpe,
}
use Algorithm::*;

fn allreduce<F: Fabric>(
    group: &Group<F>,
    algorithm: Algorithm,
    operand: &[u64],
    op: &impl ElementReduction,
) -> Vec<u64> {
    let rank = group.rank;
    let (data, result) = (rank.buffer(&bytes_of(operand)), rank.empty(8 * operand.len()));
    let (mut data, into, link) = (data.sge(), result.sge(), group.link());
    if matches!(algorithm, ShmInPlace(_)) {
        into.copy_from(data);
        data = into;
    }
    // 32 bytes is the longest element of all operators.
    let buffers = ReductionBuffers { data, result: into, element: 32 };
    rank.block_on(async {
        match algorithm {
            Central => {
                let choice = AlgorithmChoice::parse(CollectiveKind::Allreduce, "CENTRAL").unwrap();
                CollectiveCall { link: &link, state: &group.state, choice }
                    .allreduce(buffers, op)
                    .await
            }
            PairwiseExchange => allreduce::pairwise_exchange(&link, buffers, op).await,
            GatherBroadcast => allreduce::gather_broadcast(&link, buffers, op).await,
            Shm(name) | ShmInPlace(name) => {
                let choice = AlgorithmChoice::parse(CollectiveKind::Allreduce, name).unwrap();
                CollectiveCall { link: &link, state: &group.state, choice }
                    .allreduce(buffers, op)
                    .await
            }
            Rpe => {
                let had = allreduce::rpe(&link, &group.state, buffers, op).await;
                had.map(|had| assert!(had, "room for slots"))
            }
        }
    })
    .expect("an allreduce");
    words_of(result.sge())
}

/// Results that must be the same on all ranks of a world, by world size and round.
#[derive(Default)]
struct Allreduces {
    same: Mutex<HashMap<Key, Vec<u64>>>,
}

type Key = (usize, u64, Algorithm, &'static str);

impl Allreduces {
    /// Checks that the bits are the same on every rank, in every run and on every fabric.
    fn compare(&self, key: Key, got: Vec<u64>) {
        let mut same = self.same.lock().unwrap();
        let first = same.entry(key).or_insert_with(|| got.clone());
        assert!(*first == got, "{key:?}: other bits than on another rank or before");
    }
}

impl RankBody for Allreduces {
    fn run<F: Fabric>(&self, rank: &TestRank<F>) {
        let group = Group::world(rank);
        let n = rank.size();
        for (round, words) in [4, 8, 8, 4, 600, 4, 6000, 8, 3000].into_iter().enumerate() {
            let round = round as u64;
            let mine = operand(round, rank.me(), words);
            let shm = shm(CollectiveKind::Allreduce, n, 8 * words, true);
            let shm = shm.iter().map(|choice| choice.algorithm.name);
            let shm = shm.flat_map(|name| [Shm(name), Central, ShmInPlace(name)]);
            let others = [Central, PairwiseExchange, Rpe, GatherBroadcast];
            for algorithm in others.into_iter().chain(shm) {
                if algorithm == Central && 8 * words > SLOT {
                    continue;
                }
                let got = allreduce(&group, algorithm, &mine, &Sum);
                assert!(got == sums(round, 0..n, words), "{algorithm:?}, {words} words");
                // The pairwise exchanges support only operators that commute.
                if !matches!(algorithm, PairwiseExchange | Rpe) {
                    let got = allreduce(&group, algorithm, &mine, &Product);
                    assert!(got == products(round, 0..n, words), "{algorithm:?}, {words} words");
                }
                let floats = float_operand(round, rank.me(), words);
                let got = allreduce(&group, algorithm, &floats, &Float);
                self.compare((n, round, algorithm, "float"), got);
                let ties = vec![round << 8 | rank.me() as u64; words];
                let got = allreduce(&group, algorithm, &ties, &Larger);
                self.compare((n, round, algorithm, "larger"), got);
            }
        }
    }
}

#[test]
fn allreduces_agree_with_a_fold_and_in_every_bit() {
    everywhere(&Allreduces::default());
}

/// Reductions with a root, and prefix reductions.
struct Others;

impl Others {
    /// Runs the algorithms of ranks that read each other's memory, one after the other without pause, with the data
    /// separate from the result or in its place.
    fn shared<F: Fabric>(&self, group: &Group<F>, round: u64, words: usize) {
        let rank = group.rank;
        let (me, n, state, unit) = (rank.me(), rank.size(), &*group.state, 32);
        let mine = bytes_of(&operand(round, me, words));
        for in_place in [false, true] {
            let buffers = || {
                let data = rank.buffer(&mine);
                let result = if in_place { rank.buffer(&mine) } else { rank.empty(mine.len()) };
                let from = if in_place { result.sge() } else { data.sge() };
                (data, from, result)
            };
            let reduces = shm(CollectiveKind::Reduce, n, 8 * words, true);
            let flat = AlgorithmChoice::parse(CollectiveKind::Reduce, "MPI-FLAT").unwrap();
            let each = |root: usize| reduces.iter().chain([&flat]).map(move |c| (root, *c));
            for (root, choice) in (0..n).flat_map(each) {
                let (_data, from, result) = buffers();
                let before = bytes(&result);
                let link = group.link();
                let all = ReductionBuffers { data: from, result: result.sge(), element: unit };
                rank.block_on(
                    CollectiveCall { link: &link, state, choice }.reduce(root, all, &Product),
                )
                .unwrap();
                let expected = match me == root {
                    true => bytes_of(&products(round, 0..n, words)),
                    false => before,
                };
                assert!(bytes(&result) == expected, "{choice}: reduce to {root}, {words} words");
            }
            let scans = |prefix: Prefix| {
                let all = shm(prefix.operation(), n, 8 * words, true);
                all.into_iter().map(move |choice| (prefix, choice))
            };
            for (prefix, choice) in
                [Prefix::Inclusive, Prefix::Exclusive].into_iter().flat_map(scans)
            {
                let (_data, from, result) = buffers();
                let before = bytes(&result);
                let link = group.link();
                let all = ReductionBuffers { data: from, result: result.sge(), element: unit };
                let call = CollectiveCall { link: &link, state, choice };
                rank.block_on(call.scan(prefix, all, &Product)).unwrap();
                let expected = match (prefix, me) {
                    (Prefix::Exclusive, 0) => before,
                    (Prefix::Exclusive, _) => bytes_of(&products(round, 0..me, words)),
                    (Prefix::Inclusive, _) => bytes_of(&products(round, 0..me + 1, words)),
                };
                assert!(bytes(&result) == expected, "{choice}: scan, {words} words");
            }
            // The blocks have different lengths, and some are empty.
            let all = products(round, 0..n, words);
            let elements = words / 4;
            let bound = |r: usize| if r < n { elements * r * r / n / n } else { elements };
            let lens: Vec<_> = (0..n).map(|r| 32 * (bound(r + 1) - bound(r))).collect();
            for choice in shm(CollectiveKind::ReduceScatter, n, 8 * words, false) {
                let (_data, from, result) = buffers();
                let into = result.sge().part(0, lens[me]);
                let link = group.link();
                let buffers =
                    ReduceScatterBuffers { data: from, lens: &lens, result: into, element: unit };
                let scatter =
                    CollectiveCall { link: &link, state, choice }.reduce_scatter(buffers, &Product);
                rank.block_on(scatter).unwrap();
                let expected = &all[4 * bound(me)..4 * bound(me + 1)];
                assert!(words_of(into) == expected, "{choice}: {words} words");
            }
        }
    }
}

impl RankBody for Others {
    fn run<F: Fabric>(&self, rank: &TestRank<F>) {
        let group = Group::world(rank);
        let (me, n) = (rank.me(), rank.size());
        for (round, words) in [4, 400, 6000].into_iter().enumerate() {
            let round = 50 + round as u64;
            let data = rank.buffer(&bytes_of(&operand(round, me, words)));
            for root in 0..n {
                let result = rank.empty(8 * words);
                let link = group.link();
                let buffers =
                    ReductionBuffers { data: data.sge(), result: result.sge(), element: 32 };
                rank.block_on(reduce::binomial(&link, root, buffers, &Product)).unwrap();
                let expected = match me == root {
                    true => bytes_of(&products(round, 0..n, words)),
                    false => vec![0xee; 8 * words],
                };
                assert!(bytes(&result) == expected, "reduce to {root}, {words} words");
            }
            self.shared(&group, round, words);
            let result = rank.empty(8 * words);
            let link = group.link();
            let buffers = ReductionBuffers { data: data.sge(), result: result.sge(), element: 32 };
            rank.block_on(scan::chain(&link, buffers, &Product, Prefix::Inclusive)).unwrap();
            assert!(words_of(result.sge()) == products(round, 0..me + 1, words), "scan");
            let result = rank.empty(8 * words);
            let link = group.link();
            let buffers = ReductionBuffers { data: data.sge(), result: result.sge(), element: 32 };
            rank.block_on(scan::chain(&link, buffers, &Product, Prefix::Exclusive)).unwrap();
            let expected = match me {
                0 => vec![0xee; 8 * words],
                _ => bytes_of(&products(round, 0..me, words)),
            };
            assert!(bytes(&result) == expected, "exclusive scan");
        }
    }
}

#[test]
fn reductions_and_scans_keep_the_order_of_ranks() {
    everywhere(&Others);
}

/// Operations that only move data; blocks differ in length, some are empty.
struct Moves;

/// Returns the bytes of the block from `a` to `b`.
fn block(round: u64, a: usize, b: usize) -> Vec<u8> {
    let key = (round << 16) | (a << 8 | b) as u64;
    let len = [0, 1, 100, 3000, 20_000][Rng::with_seed(key).usize(0..5)];
    pattern(key, len)
}

impl Moves {
    /// Runs the algorithms of ranks that read each other's memory, one after the other.
    fn shared<F: Fabric>(&self, group: &Group<F>, round: u64) {
        let rank = group.rank;
        let (me, n, state) = (rank.me(), rank.size(), &*group.state);
        let sges =
            |buffers: &[weft_fabric::Staging]| buffers.iter().map(|b| b.sge()).collect::<Vec<_>>();
        for (turn, len) in [10, 3000, 20_000, 140_000, 0, 500].into_iter().enumerate() {
            let key = |r: usize, to: usize| (round << 24) | (turn << 16 | r << 8 | to) as u64;
            // Blocks of an allgather differ in length.
            let gathered = |r: usize| pattern(key(r, 99), len - len * r / n / 2);
            let own = |r: usize| match r == me {
                true => rank.buffer(&gathered(r)),
                false => rank.empty(gathered(r).len()),
            };
            for choice in shm(CollectiveKind::Allgather, n, len, false) {
                let blocks: Vec<_> = (0..n).map(own).collect();
                let (link, mine) = (group.link(), blocks[me].sge());
                let all = sges(&blocks);
                rank.block_on(CollectiveCall { link: &link, state, choice }.allgather(mine, &all))
                    .unwrap();
                for (r, got) in blocks.iter().enumerate() {
                    assert!(bytes(got) == gathered(r), "{choice}: of {r}, {len} bytes");
                }
            }
            let out: Vec<_> = (0..n).map(|to| rank.buffer(&pattern(key(me, to), len))).collect();
            for choice in shm(CollectiveKind::Alltoall, n, len, true) {
                let into: Vec<_> = (0..n).map(|_| rank.empty(len)).collect();
                let (link, from, to) = (group.link(), sges(&out), sges(&into));
                rank.block_on(CollectiveCall { link: &link, state, choice }.alltoall(&from, &to))
                    .unwrap();
                for (from, got) in into.iter().enumerate() {
                    assert!(bytes(got) == pattern(key(from, me), len), "{choice}: from {from}");
                }
            }
        }
    }
}

impl RankBody for Moves {
    fn run<F: Fabric>(&self, rank: &TestRank<F>) {
        let group = Group::world(rank);
        let (me, n) = (rank.me(), rank.size());
        let sges = |buffers: &[weft_fabric::Staging]| -> Vec<Sge> {
            buffers.iter().map(|b| b.sge()).collect()
        };
        for round in 0..3 {
            for root in 0..n {
                let data = block(round, root, 99);
                let buffer = if me == root { rank.buffer(&data) } else { rank.empty(data.len()) };
                let link = group.link();
                rank.block_on(bcast::binomial(&link, root, buffer.sge())).unwrap();
                assert!(bytes(&buffer) == data, "bcast from {root}");
                let buffer = if me == root { rank.buffer(&data) } else { rank.empty(data.len()) };
                rank.block_on(bcast::shm_ring(
                    &group.link(),
                    &group.state.area,
                    root,
                    buffer.sge(),
                ))
                .unwrap();
                assert!(bytes(&buffer) == data, "SHM-RING bcast from {root}");

                let mine = rank.buffer(&block(round, me, root));
                let empty = |from| rank.empty(block(round, from, root).len());
                let into: Vec<_> = (0..n).filter(|_| me == root).map(empty).collect();
                let link = group.link();
                rank.block_on(gather::flat(&link, root, mine.sge(), &sges(&into))).unwrap();
                for (from, got) in into.iter().enumerate() {
                    assert!(bytes(got) == block(round, from, root), "gather from {from} to {root}");
                }

                let fill = |to| rank.buffer(&block(round, root, to));
                let out: Vec<_> = (0..n).filter(|_| me == root).map(fill).collect();
                let mine = rank.empty(block(round, root, me).len());
                let link = group.link();
                rank.block_on(scatter::flat(&link, root, &sges(&out), mine.sge())).unwrap();
                assert!(bytes(&mine) == block(round, root, me), "scatter from {root}");
            }
            let own = |r: usize| match r == me {
                true => rank.buffer(&block(round, r, 77)),
                false => rank.empty(block(round, r, 77).len()),
            };
            let blocks: Vec<_> = (0..n).map(own).collect();
            let link = group.link();
            rank.block_on(allgather::ring(&link, &sges(&blocks))).unwrap();
            for (r, got) in blocks.iter().enumerate() {
                assert!(bytes(got) == block(round, r, 77), "allgather of {r}");
            }
            self.shared(&group, round);
            let out: Vec<_> = (0..n).map(|to| rank.buffer(&block(round, me, to))).collect();
            let empty = |from| rank.empty(block(round, from, me).len());
            let into: Vec<_> = (0..n).map(empty).collect();
            let link = group.link();
            rank.block_on(alltoall::pairwise(&link, &sges(&out), &sges(&into))).unwrap();
            for (from, got) in into.iter().enumerate() {
                assert!(bytes(got) == block(round, from, me), "alltoall from {from}");
            }
        }
    }
}

#[test]
fn blocks_arrive_where_they_belong() {
    everywhere(&Moves);
}
