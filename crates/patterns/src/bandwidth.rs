//! A window of nonblocking sends to the last rank, then an empty answer, as in OSU's `osu_bw`.
//!
//! ```text
//!   0  ==64==> n-1,  <-- answer
//! ```
//! Cost: 65 messages.

use crate::about::{PatternAlgorithm, PatternText};
use crate::data::{holds, key};
use crate::error::PatternError;
use crate::laps::{LapReduction, Laps};
use crate::rank::PatternRank;
use weft_fabric::{Fabric, Sge};

/// Number of messages of a window.
const WINDOW: usize = 64;

pub static ABOUT: PatternText = PatternText {
    own: &[PatternAlgorithm::new("one-way", "64 sends from the first rank to the last")],
    least_ranks: 2,
    payload: Some((1, 1)),
    measured: LapReduction::Rate { payloads: WINDOW },
    messages: |_| WINDOW + 1,
    ..PatternText::new("bandwidth", "a window of 64 messages from the first rank to the last")
};

pub async fn play<F: Fabric>(rank: &PatternRank<F>) -> Result<Laps, PatternError> {
    let (me, last, bytes) = (rank.me(), rank.size() - 1, rank.plan().bytes);
    let mut watch = rank.watch();
    if me != 0 && me != last {
        return watch.laps();
    }
    // All sends use the same buffer, but each message is received in its own block.
    let data = rank.data(if me == 0 { bytes } else { WINDOW * bytes });
    while let Some(lap) = watch.lap() {
        if me == 0 {
            rank.fill(lap, data.all(), key(0, 0, lap));
            watch.start();
            let sends: Vec<_> = (0..WINDOW).map(|_| rank.isend(data.all(), last, 0)).collect();
            rank.finish_all(sends).await?;
            rank.recv(Sge::EMPTY, last, 1).await?;
            watch.end();
        } else {
            let receive = |i| rank.irecv(data.block(i, bytes), 0, 0);
            let receives: Vec<_> = (0..WINDOW).map(receive).collect();
            rank.finish_all(receives).await?;
            rank.send(Sge::EMPTY, 0, 1).await?;
            let right = || (0..WINDOW).all(|i| holds(data.block(i, bytes), key(0, 0, lap)));
            rank.compare(lap, "message", right)?;
        }
    }
    watch.laps()
}
