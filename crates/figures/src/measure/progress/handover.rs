//! Our design: one helper that makes progress while the main thread is outside of the library, and does nothing while it is
//! inside. It needs no lock and no signal.

use super::Rank;

pub fn start(rank: &Rank, priority: i32) {
    let engine = rank.comm.engine().clone();
    rank.sim.help(priority, move || engine.help());
}
