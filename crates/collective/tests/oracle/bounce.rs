//! Shared memory of ranks: it is freed once no rank reads it any more, and not before.

use crate::group::Group;
use fastrand::Rng;
use weft_collective::run::CollectiveCall;
use weft_collective::{AlgorithmChoice, CollectiveKind, allgather, barrier, bcast};
use weft_fabric::{Fabric, FaultCause, Sge, Staging};
use weft_fabric_testing::world::{RankBody, SETUPS, TestRank, bytes, pattern, world};

/// One communicator per round, which ends with its only operation. The next communicator reuses the memory of the last communicator
/// as soon as all ranks have finished with the memory.
struct Rounds;

const ROUNDS: u64 = 60;

impl RankBody for Rounds {
    fn run<F: Fabric>(&self, rank: &TestRank<F>) {
        let (me, n) = (rank.me(), rank.size());
        let mut rng = Rng::with_seed(me as u64);
        for round in 0..ROUNDS {
            let all = (0..n as u32).collect();
            let group = Group::new(rank, 300 + round, all).expect("everybody is a member");
            let data = |r: usize| pattern(round << 8 | r as u64, 5000);
            let own = |r: usize| if r == me { rank.buffer(&data(r)) } else { rank.empty(5000) };
            let blocks: Vec<_> = (0..n).map(own).collect();
            let sges: Vec<_> = blocks.iter().map(|b| b.sge()).collect();
            let (link, area) = (group.link(), &group.state.area);
            rank.block_on(allgather::shm_staged(&link, area, sges[me], &sges)).unwrap();
            for (r, got) in blocks.iter().enumerate() {
                assert!(bytes(got) == data(r), "round {round}, block of {r}");
            }
            // Ranks are late at random.
            for _ in 0..rng.usize(0..20) {
                rank.progress();
                if rng.u8(0..4) == 0 {
                    std::thread::yield_now();
                }
            }
        }
        let mapped = rank.endpoint().fabric().capabilities(me).coherent_atomics;
        let parked = rank.endpoint().parked();
        assert!(!mapped || parked <= 4, "{parked} of {ROUNDS} buffers have not gone back");
    }
}

#[test]
fn buffers_go_back_when_all_have_read_them() {
    for n in [1, 2, 3, 8] {
        world(n, SETUPS[0], &Rounds);
        world(n, SETUPS[6], &Rounds);
    }
}

/// Operations of any kinds, lengths and roots, up to three under way at once, of ranks that are late at random. Data that a
/// rank copies in for other ranks stay until these ranks have read them.
struct Pieces;

fn ring(operation: CollectiveKind) -> AlgorithmChoice {
    AlgorithmChoice::parse(operation, "SHM-RING").expect("in the catalogue")
}

/// An operation under way, its buffers, and their expected contents.
struct Moved {
    task: weft_process::NonblockingTask,
    buffers: Vec<(Staging, Vec<u8>)>,
    _others: Vec<Staging>,
}

fn start<F: Fabric>(group: &Group<F>, key: u64) -> Moved {
    let (rank, me, n) = (group.rank, group.me, group.size());
    let mut rng = Rng::with_seed(key / 20);
    // About twenty operations in a row have one length, with other lengths between.
    let lens = [8, 16, 500, 4096, 20_000, 65_536, 150_000];
    let mut len = lens[rng.usize(0..lens.len())];
    rng.seed(key);
    if rng.u8(0..6) == 0 {
        len = lens[rng.usize(0..lens.len())];
    }
    let root = if rng.bool() { 0 } else { key as usize % n };
    let kind = rng.u8(0..3);
    let (link, state) = (group.link(), group.state.clone());
    let data = |r: usize| pattern(key << 8 | r as u64, len);
    let all = |own: &dyn Fn(usize) -> Staging| -> Vec<Staging> {
        if me == root { (0..n).map(own).collect() } else { Vec::new() }
    };
    let sges = |blocks: &[Staging]| -> Vec<Sge> { blocks.iter().map(|b| b.sge()).collect() };
    let engine = rank.engine();
    match kind {
        0 => {
            let (mine, blocks) = (rank.buffer(&data(me)), all(&|_| rank.empty(len)));
            let (out, into) = (mine.sge(), sges(&blocks));
            let task = engine.spawn(async move {
                Ok(CollectiveCall {
                    link: &link,
                    state: &state,
                    choice: ring(CollectiveKind::Gather),
                }
                .gather(root, out, &into)
                .await?)
            });
            let buffers = blocks.into_iter().enumerate().map(|(r, b)| (b, data(r))).collect();
            Moved { task, buffers, _others: vec![mine] }
        }
        1 => {
            let (mine, blocks) = (rank.empty(len), all(&|r| rank.buffer(&data(r))));
            let (into, out) = (mine.sge(), sges(&blocks));
            let task = engine.spawn(async move {
                Ok(CollectiveCall {
                    link: &link,
                    state: &state,
                    choice: ring(CollectiveKind::Scatter),
                }
                .scatter(root, &out, into)
                .await?)
            });
            Moved { task, buffers: vec![(mine, data(me))], _others: blocks }
        }
        _ => {
            let buffer = if me == root { rank.buffer(&data(root)) } else { rank.empty(len) };
            let sge = buffer.sge();
            let task = engine.spawn(async move {
                Ok(CollectiveCall {
                    link: &link,
                    state: &state,
                    choice: ring(CollectiveKind::Bcast),
                }
                .bcast(root, sge)
                .await?)
            });
            Moved { task, buffers: vec![(buffer, data(root))], _others: Vec::new() }
        }
    }
}

impl RankBody for Pieces {
    fn run<F: Fabric>(&self, rank: &TestRank<F>) {
        let mut rng = Rng::with_seed(70 + rank.me() as u64);
        for context in 0..3 {
            let all = (0..rank.size() as u32).collect();
            let group = Group::new(rank, 400 + context, all).expect("everybody is a member");
            let mut under_way = Vec::new();
            for key in 0..200 {
                under_way.push((key, start(&group, 1000 * context + key)));
                while under_way.len() > 2 || (!under_way.is_empty() && rng.u8(0..3) == 0) {
                    end(rank, under_way.swap_remove(rng.usize(0..under_way.len())));
                }
                if rng.u8(0..8) == 0 {
                    (0..rng.usize(0..20)).for_each(|_| std::thread::yield_now());
                }
            }
            under_way.into_iter().for_each(|moved| end(rank, moved));
        }
        assert_eq!(rank.engine().tasks(), 0);
        // All ranks have read everything, and reported it: all memory is freed.
        rank.block_on(barrier::dissemination(&Group::world(rank).link())).unwrap();
        rank.endpoint().clear_parked();
        assert_eq!(rank.endpoint().parked(), 0);
    }
}

fn end<F: Fabric>(rank: &TestRank<F>, (key, moved): (u64, Moved)) {
    rank.until(|| moved.task.result()).expect("a collective operation");
    for (i, (got, expected)) in moved.buffers.iter().enumerate() {
        assert!(bytes(got) == *expected, "operation {key}, buffer {i}");
    }
}

#[test]
fn pieces_are_there_until_they_are_read() {
    (2..=6).for_each(|n| world(n, SETUPS[0], &Pieces));
    world(9, SETUPS[0], &Pieces);
    [3, 4].into_iter().for_each(|n| world(n, SETUPS[3], &Pieces));
    [3, 4].into_iter().for_each(|n| world(n, SETUPS[4], &Pieces));
    [2, 3, 5].into_iter().for_each(|n| world(n, SETUPS[5], &Pieces));
    [2, 5].into_iter().for_each(|n| world(n, SETUPS[6], &Pieces));
}

/// A broadcast in which one rank expects fewer, or more, bytes than the root has. That rank gets an error, now and in the
/// following operations, and no other rank waits for it.
struct Disagreement;

impl RankBody for Disagreement {
    fn run<F: Fabric>(&self, rank: &TestRank<F>) {
        let (root_s, odd) = (1_000_000, rank.size() - 1);
        for (context, len) in [(0, 65_536), (1, 999_999), (2, 2_000_000)] {
            let all = (0..rank.size() as u32).collect();
            let group = Group::new(rank, 500 + context, all).expect("everybody is a member");
            let area = &group.state.area;
            let data = pattern(context, root_s);
            let bcast = |root: usize, sge: Sge| {
                let link = group.link();
                rank.block_on(bcast::shm_ring(&link, area, root, sge))
                    .map_err(|f| f.cause().clone())
            };
            if rank.me() == odd {
                let into = rank.empty(len);
                let told =
                    FaultCause::Truncated { rank: 0, expected: len as u64, got: root_s as u64 };
                assert_eq!(bcast(0, into.sge()), Err(told.clone()));
                // Data of a later operation are not mistaken for data of this operation.
                assert_eq!(bcast(0, rank.empty(root_s).sge()), Err(told));
                continue;
            }
            for _ in 0..2 {
                let buffer = if rank.me() == 0 { rank.buffer(&data) } else { rank.empty(root_s) };
                bcast(0, buffer.sge()).expect("ranks that agree");
                assert!(bytes(&buffer) == data);
            }
        }
        rank.block_on(barrier::dissemination(&Group::world(rank).link())).unwrap();
        rank.endpoint().clear_parked();
        // The other ranks may have written to the rank that disagreed for longer than it knows, so its memory is kept.
        assert_eq!(rank.endpoint().parked(), if rank.me() == odd { 3 } else { 0 });
    }
}

#[test]
fn who_disagrees_about_a_length_is_told() {
    [3, 5].into_iter().for_each(|n| world(n, SETUPS[0], &Disagreement));
    [3, 5].into_iter().for_each(|n| world(n, SETUPS[6], &Disagreement));
}
