//! Exchanges along the edges of random graphs, compared with the data of each edge.

use crate::group::Group;
use fastrand::Rng;
use weft_collective::neighbor;
use weft_fabric::{Fabric, Fault};
use weft_fabric_testing::world::{RankBody, SETUPS, TestRank, bytes, pattern, world};

/// Returns random edges (from, to). All ranks know all edges, in one order; some occur several times, some lead
/// from a rank to itself.
fn edges(n: usize, round: u64) -> Vec<(usize, usize)> {
    let mut rng = Rng::with_seed(round << 8 | n as u64);
    let some = rng.usize(0..4 * n);
    std::iter::repeat_with(|| (rng.usize(0..n), rng.usize(0..n))).take(some).collect()
}

/// Returns the bytes that cross edge number `edge`.
fn load(round: u64, edge: usize) -> Vec<u8> {
    let key = round << 16 | edge as u64;
    pattern(key, [0, 1, 100, 3000, 20_000][Rng::with_seed(key).usize(0..5)])
}

struct Exchanges;

impl RankBody for Exchanges {
    fn run<F: Fabric>(&self, rank: &TestRank<F>) {
        let (group, me) = (Group::world(rank), rank.me());
        for round in 0..6 {
            let all = edges(rank.size(), round);
            let numbered = || all.iter().enumerate();
            let out = numbered().filter(|(_, edge)| edge.0 == me);
            let out: Vec<_> = out.map(|(i, edge)| (edge.1, rank.buffer(&load(round, i)))).collect();
            // Some receives have room for more bytes than arrive.
            let room = |i: usize| load(round, i).len() + i % 2 * 7;
            let into = numbered().filter(|(_, edge)| edge.1 == me);
            let into: Vec<_> = into.map(|(i, edge)| (edge.0, i, rank.empty(room(i)))).collect();
            let sends: Vec<_> = out.iter().map(|(to, buffer)| (*to, buffer.sge())).collect();
            let receives: Vec<_> = into.iter().map(|(from, _, b)| (*from, b.sge())).collect();
            let link = group.link();
            let came = rank.block_on(neighbor::direct(&link, &sends, &receives)).unwrap();
            assert_eq!(came.len(), into.len());
            for (came, (from, edge, buffer)) in came.into_iter().zip(&into) {
                let mut wanted = load(round, *edge);
                assert_eq!(came, wanted.len(), "round {round}, edge {edge} from {from}");
                wanted.resize(buffer.len(), 0xee);
                assert!(bytes(buffer) == wanted, "round {round}, edge {edge} from {from}");
            }
        }
    }
}

#[test]
fn every_edge_brings_its_own_load() {
    for n in 1..=9 {
        world(n, SETUPS[0], &Exchanges);
        world(n, SETUPS[6], &Exchanges);
    }
    for n in [2, 5, 8] {
        for setup in [SETUPS[2], SETUPS[3], SETUPS[4], SETUPS[7], SETUPS[8]] {
            world(n, setup, &Exchanges);
        }
    }
}

/// Two edges around a ring; the first message is longer than its receive.
struct TooLong;

impl RankBody for TooLong {
    fn run<F: Fabric>(&self, rank: &TestRank<F>) {
        let (me, n) = (rank.me(), rank.size());
        let (to, from) = ((me + 1) % n, (me + n - 1) % n);
        let group = Group::world(rank);
        let out = [rank.buffer(&[1; 30]), rank.buffer(&[7; 20_000])];
        let into = [rank.empty(10), rank.empty(20_000)];
        let sends = out.each_ref().map(|b| (to, b.sge()));
        let receives = into.each_ref().map(|b| (from, b.sge()));
        let link = group.link();
        let fault = rank.block_on(neighbor::direct(&link, &sends, &receives)).unwrap_err();
        assert_eq!(fault, Fault::truncated(from, 10, 30));
        // The receive after the failed one was still waited for.
        assert!(bytes(&into[1]) == vec![7; 20_000]);
    }
}

#[test]
fn a_load_that_is_too_long_leaves_nothing_under_way() {
    for n in 1..=4 {
        world(n, SETUPS[0], &TooLong);
        world(n, SETUPS[6], &TooLong);
    }
}
