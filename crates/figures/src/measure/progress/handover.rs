//! Our design: one helper, which makes progress while the main thread is outside of the library. While the main thread is inside,
//! the helper does nothing. The design needs no lock and no signal.

use super::SimRank;

pub fn start(rank: &SimRank, priority: i32) {
    let engine = rank.comm.engine().clone();
    rank.sim.help(priority, move || engine.help());
}
