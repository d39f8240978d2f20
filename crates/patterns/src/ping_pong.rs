//! A message to the last rank and back, as in OSU's `osu_latency` and in NetPIPE.
//!
//! ```text
//!   0      --> n-1
//!          <--            half of the lap is the latency
//! ```
//! Cost: 2 messages. The other ranks do nothing. So the number of ranks determines the path: within a node, or to another node.

use crate::about::{PatternAlgorithm, PatternText};
use crate::data::{holds, key};
use crate::error::PatternError;
use crate::laps::{LapReduction, Laps};
use crate::rank::PatternRank;
use weft_fabric::Fabric;

pub static ABOUT: PatternText = PatternText {
    own: &[PatternAlgorithm::new("send-receive", "blocking sends and receives")],
    least_ranks: 2,
    measured: LapReduction::Half,
    messages: |_| 2,
    ..PatternText::new("ping-pong", "a message from the first rank to the last and back")
};

pub async fn play<F: Fabric>(rank: &PatternRank<F>) -> Result<Laps, PatternError> {
    let (me, last, bytes) = (rank.me(), rank.size() - 1, rank.plan().bytes);
    let mut watch = rank.watch();
    if me != 0 && me != last {
        return watch.laps();
    }
    let (out, into) = (rank.data(bytes), rank.data(bytes));
    while let Some(lap) = watch.lap() {
        rank.fill(lap, out.all(), key(me, 0, lap));
        if me == 0 {
            watch.start();
            rank.send(out.all(), last, 0).await?;
            rank.recv(into.all(), last, 0).await?;
            watch.end();
        } else {
            rank.recv(into.all(), 0, 0).await?;
            rank.send(out.all(), 0, 0).await?;
        }
        rank.compare(lap, "message", || holds(into.all(), key(last - me, 0, lap)))?;
    }
    watch.laps()
}
