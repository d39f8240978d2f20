//! Every algorithm that moves data, on 1 to 33 ranks, compared with the expected contents.

use crate::group::Group;
use fastrand::Rng;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use weft_collective::{
    BlockList, CommView, Packed, allgather, alltoall, barrier, bcast, gather, scatter,
};
use weft_fabric::{Fabric, Fault, Sge, Staging};
use weft_fabric_testing::world::{RankBody, SETUPS, TestRank, bytes, pattern, world};

/// Parameter with which a payload is one segment, and all messages are under way at once.
const WHOLE: usize = 1 << 30;

/// Runs `body` on shared memory and in the simulator, with and without injected faults and delays.
fn everywhere(body: &impl RankBody) {
    for n in 1..=9 {
        world(n, SETUPS[0], body);
    }
    for n in [2, 3, 4, 7] {
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

/// Returns the first root, the last root, and a root between them; for many ranks, only the root between.
fn roots(n: usize) -> Vec<usize> {
    let mut roots = if n > 17 { vec![n / 2] } else { vec![0, n / 2, n - 1] };
    roots.dedup();
    roots
}

/// Returns lengths of data in bytes: zero, one, an odd length and, for a few numbers of ranks, a large odd length.
fn lengths(n: usize) -> &'static [usize] {
    match n {
        2 | 3 | 5 | 8 | 16 => &[0, 1, 1003, 70_001],
        1..=17 => &[0, 1, 1003],
        _ => &[1003],
    }
}

fn sges(buffers: &[Staging]) -> Vec<Sge> {
    buffers.iter().map(|b| b.sge()).collect()
}

const BCASTS: usize = 15;

async fn bcast<F: Fabric>(
    which: usize,
    link: &CommView<F>,
    root: usize,
    data: Sge,
) -> Result<(), Fault> {
    match which {
        0 => bcast::binomial(link, root, data).await,
        1 => bcast::flat(link, root, data).await,
        2 => bcast::k_nomial(link, root, data, 2).await,
        3 => bcast::k_nomial(link, root, data, 3).await,
        4 => bcast::k_nomial(link, root, data, 8).await,
        5 => bcast::chain(link, root, data, WHOLE).await,
        6 => bcast::chain(link, root, data, 300).await,
        7 => bcast::binary(link, root, data, WHOLE).await,
        8 => bcast::binary(link, root, data, 4096).await,
        9 => bcast::split_binary(link, root, data, WHOLE).await,
        10 => bcast::split_binary(link, root, data, 300).await,
        11 => bcast::scatter_allgather(link, root, data).await,
        12 if link.size().is_power_of_two() => bcast::scatter_doubling(link, root, data).await,
        13 => bcast::circulant(link, root, data, WHOLE).await,
        14 => bcast::circulant(link, root, data, 900).await,
        _ => bcast::binomial(link, root, data).await,
    }
}

struct Broadcasts;

impl RankBody for Broadcasts {
    fn run<F: Fabric>(&self, rank: &TestRank<F>) {
        let group = Group::world(rank);
        let (me, n) = (rank.me(), rank.size());
        for &len in lengths(n) {
            for root in roots(n) {
                for which in 0..BCASTS {
                    let data = pattern((which << 40 | len << 8 | root) as u64, len);
                    let buffer = if me == root { rank.buffer(&data) } else { rank.empty(len) };
                    let link = group.link();
                    rank.block_on(bcast(which, &link, root, buffer.sge())).unwrap();
                    assert!(bytes(&buffer) == data, "bcast {which} of {len} from {root} of {n}");
                }
            }
        }
    }
}

#[test]
fn broadcasts_reach_everybody() {
    everywhere(&Broadcasts);
}

/// Returns the bytes of the block from `a` to `b`; `equal`: length of all blocks, or `None` for random lengths.
fn block(round: usize, a: usize, b: usize, equal: Option<usize>) -> Vec<u8> {
    let key = (round << 16 | a << 8 | b) as u64;
    let drawn = || [0, 1, 100, 3000][Rng::with_seed(key).usize(0..4)];
    pattern(key, equal.unwrap_or_else(drawn))
}

/// Lengths of blocks, by round; `None`: the lengths differ.
const ROUNDS: [Option<usize>; 5] = [Some(0), Some(1), Some(5000), Some(333), None];

/// Returns the first round: with many ranks, only the last rounds run.
fn first_round(n: usize) -> usize {
    match n {
        0..=9 => 0,
        10..=17 => 2,
        _ => 3,
    }
}

struct Rooted;

impl RankBody for Rooted {
    fn run<F: Fabric>(&self, rank: &TestRank<F>) {
        let group = Group::world(rank);
        let (me, n) = (rank.me(), rank.size());
        for (round, equal) in ROUNDS.into_iter().enumerate().skip(first_round(n)) {
            for root in roots(n) {
                for unequal in [false, true] {
                    if equal.is_none() && !unequal {
                        continue;
                    }
                    let mine = rank.buffer(&block(round, me, root, equal));
                    let empty = |from| rank.empty(block(round, from, root, equal).len());
                    let into: Vec<_> = (0..n).filter(|_| me == root).map(empty).collect();
                    let (link, to) = (group.link(), sges(&into));
                    rank.block_on(async {
                        match unequal {
                            true => gather::binomial_unequal(&link, root, mine.sge(), &to).await,
                            false => gather::binomial(&link, root, mine.sge(), &to).await,
                        }
                    })
                    .unwrap();
                    for (from, got) in into.iter().enumerate() {
                        assert!(bytes(got) == block(round, from, root, equal), "{from} to {root}");
                    }

                    let fill = |to| rank.buffer(&block(round, root, to, equal));
                    let out: Vec<_> = (0..n).filter(|_| me == root).map(fill).collect();
                    let mine = rank.empty(block(round, root, me, equal).len());
                    let (link, from) = (group.link(), sges(&out));
                    rank.block_on(async {
                        match unequal {
                            true => scatter::binomial_unequal(&link, root, &from, mine.sge()).await,
                            false => scatter::binomial(&link, root, &from, mine.sge()).await,
                        }
                    })
                    .unwrap();
                    assert!(bytes(&mine) == block(round, root, me, equal), "scatter from {root}");
                }
            }
            // The root's own block is in place.
            let root = n / 2;
            let into: Vec<_> = match me == root {
                true => (0..n).map(|r| rank.buffer(&block(round, r, 0, equal))).collect(),
                false => Vec::new(),
            };
            let mine = rank.buffer(&block(round, me, 0, equal));
            let to = sges(&into);
            let own = if me == root { to[root] } else { mine.sge() };
            let link = group.link();
            rank.block_on(gather::binomial_unequal(&link, root, own, &to)).unwrap();
            let link = group.link();
            rank.block_on(scatter::binomial_unequal(&link, root, &to, own)).unwrap();
            assert!(bytes(&mine) == block(round, me, 0, equal), "back again");
        }
    }
}

#[test]
fn gathers_and_scatters_bring_blocks_to_their_places() {
    everywhere(&Rooted);
}

async fn allgather<F: Fabric>(
    which: usize,
    link: &CommView<F>,
    blocks: &BlockList,
) -> Result<(), Fault> {
    let n = link.size();
    match which {
        1 if n.is_power_of_two() => allgather::recursive_doubling(link, blocks).await,
        2 if n == 1 || n.is_multiple_of(2) => allgather::neighbor_exchange(link, blocks).await,
        3 => allgather::gather_broadcast(link, blocks).await,
        4 => allgather::circulant(link, blocks).await,
        _ => allgather::bruck(link, blocks).await,
    }
}

async fn alltoall<F: Fabric>(
    which: usize,
    link: &CommView<F>,
    out: &[Sge],
    into: &[Sge],
) -> Result<(), Fault> {
    match which {
        0 => alltoall::linear(link, out, into, WHOLE).await,
        1 => alltoall::linear(link, out, into, 3).await,
        2 => alltoall::bruck(link, out, into, 2).await,
        3 => alltoall::bruck(link, out, into, 3).await,
        _ => alltoall::bruck(link, out, into, 64).await,
    }
}

struct All;

impl RankBody for All {
    fn run<F: Fabric>(&self, rank: &TestRank<F>) {
        let group = Group::world(rank);
        let (me, n) = (rank.me(), rank.size());
        for (round, equal) in ROUNDS.into_iter().enumerate().skip(first_round(n)) {
            for which in 0..5 {
                let own = |r: usize| match r == me {
                    true => rank.buffer(&block(round, r, which, equal)),
                    false => rank.empty(block(round, r, which, equal).len()),
                };
                let apart: Vec<_> = (0..n).map(own).collect();
                let link = group.link();
                let packed = Packed::own(&link, &sges(&apart));
                rank.block_on(allgather(which, &link, &packed.blocks)).unwrap();
                packed.deliver(&link, &sges(&apart));
                for (r, got) in apart.iter().enumerate() {
                    assert!(bytes(got) == block(round, r, which, equal), "allgather {which}: {r}");
                }
            }
            for which in 0..5 {
                if equal.is_none() && which > 1 {
                    continue;
                }
                let fill = |to| rank.buffer(&block(round, me, to, equal));
                let out: Vec<_> = (0..n).map(fill).collect();
                let empty = |from| rank.empty(block(round, from, me, equal).len());
                let into: Vec<_> = (0..n).map(empty).collect();
                let link = group.link();
                rank.block_on(alltoall(which, &link, &sges(&out), &sges(&into))).unwrap();
                for (from, got) in into.iter().enumerate() {
                    let expected = block(round, from, me, equal);
                    assert!(bytes(got) == expected, "alltoall {which}: {from} to {me} of {n}");
                }
            }
        }
    }
}

#[test]
fn allgathers_and_alltoalls_bring_blocks_to_their_places() {
    everywhere(&All);
}

/// Number of ranks that have come to each barrier of a world. In each round one rank is late: it comes last.
#[derive(Default)]
struct Barriers {
    come: [AtomicUsize; 10],
}

impl RankBody for Barriers {
    fn run<F: Fabric>(&self, rank: &TestRank<F>) {
        let group = Group::world(rank);
        let (me, n) = (rank.me(), rank.size());
        for (round, come) in self.come.iter().enumerate() {
            if me == (7 * round + 3) % n {
                let others = || come.load(SeqCst) == n - 1;
                rank.until(|| others().then_some(()));
            }
            come.fetch_add(1, SeqCst);
            let radix = [2, 3, 4, 9, 40][round % 5];
            rank.block_on(barrier::n_way_dissemination(&group.link(), radix)).unwrap();
            assert_eq!(come.load(SeqCst), n, "rank {me} left barrier {round} of radix {radix}");
        }
    }
}

#[test]
fn nobody_leaves_a_barrier_before_the_last_has_come() {
    for n in 1..=9 {
        world(n, SETUPS[0], &Barriers::default());
    }
    for n in 1..=33 {
        world(n, SETUPS[5], &Barriers::default());
    }
    for n in [2, 5, 8] {
        world(n, SETUPS[4], &Barriers::default());
        world(n, SETUPS[6], &Barriers::default());
    }
}
