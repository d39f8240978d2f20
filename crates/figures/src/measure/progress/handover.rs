//! Ours: one helper that moves messages while the main thread is outside of the library, and nothing
//! while it is inside. No lock, no signal.

use super::Rank;

pub fn start(rank: &Rank, priority: i32) {
    let engine = rank.comm.engine().clone();
    rank.sim.help(priority, move || engine.help());
}
