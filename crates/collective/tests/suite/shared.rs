//! Memory that ranks see of each other: it goes back once nobody reads it any more, and not before.

use crate::group::Group;
use crate::group::common::{Body, Rank, SETUPS, bytes, pattern, world};
use fastrand::Rng;
use weft_collective::allgather;
use weft_fabric::Fabric;

/// A communicator a round, which ends with its only operation: the next one's memory is the last one's, as
/// soon as all ranks are done with that.
struct Rounds;

const ROUNDS: u64 = 60;

impl Body for Rounds {
    fn run<F: Fabric>(&self, rank: &Rank<F>) {
        let (me, n) = (rank.me(), rank.size());
        let mut rng = Rng::with_seed(me as u64);
        for round in 0..ROUNDS {
            let all = (0..n as u32).collect();
            let group = Group::new(rank, 300 + round, all).expect("everybody is a member");
            let data = |r: usize| pattern(round << 8 | r as u64, 5000);
            let own = |r: usize| if r == me { rank.buffer(&data(r)) } else { rank.empty(5000) };
            let blocks: Vec<_> = (0..n).map(own).collect();
            let sges: Vec<_> = blocks.iter().map(|b| b.sge()).collect();
            let (link, board) = (group.link(), &group.ground.board);
            rank.block_on(allgather::shared(&link, board, sges[me], &sges)).unwrap();
            for (r, got) in blocks.iter().enumerate() {
                assert!(bytes(got) == data(r), "round {round}, block of {r}");
            }
            // Now one rank is late and now another.
            for _ in 0..rng.usize(0..20) {
                rank.progress();
                if rng.u8(0..4) == 0 {
                    std::thread::yield_now();
                }
            }
        }
        let mapped = rank.endpoint().fabric().capabilities(me).coherent_atomics;
        let parked = rank.endpoint().parked();
        assert!(!mapped || parked <= 4, "{parked} of {ROUNDS} desks have not gone back");
    }
}

#[test]
fn desks_go_back_when_all_have_read_them() {
    for n in [1, 2, 3, 8] {
        world(n, SETUPS[0], &Rounds);
        world(n, SETUPS[6], &Rounds);
    }
}
