//! Messages of several ranks to rank 0 at the same time, the hot spot of Kini 2003, section 4.3.
//!
//! ```text
//!   1 --.
//!   2 --+--> 0        the fan-in is 3; ranks above send nothing
//!   3 --'
//! ```
//! Cost: as many messages as the fan-in, all through the port of rank 0. The lap begins when all senders begin and ends when rank
//! 0 has all messages.

use crate::about::{PatternAlgorithm, PatternText, rounds};
use crate::data::{holds, key};
use crate::error::PatternError;
use crate::laps::{LapReduction, Laps};
use crate::rank::PatternRank;
use weft_fabric::Fabric;

pub static ABOUT: PatternText = PatternText {
    own: &[PatternAlgorithm::new("messages", "one message from each sender")],
    least_ranks: 2,
    fans_in: true,
    measured: LapReduction::Span,
    messages: |ranks| ranks * (1 + rounds(ranks)),
    ..PatternText::new("fan-in", "so many ranks send to rank 0 at once")
};

pub async fn play<F: Fabric>(rank: &PatternRank<F>) -> Result<Laps, PatternError> {
    let (me, bytes, fan_in) = (rank.me(), rank.plan().bytes, rank.plan().fan_in);
    let data = rank.data(if me == 0 { fan_in * bytes } else { bytes });
    let mut watch = rank.watch();
    while let Some(lap) = watch.lap() {
        if me == 0 {
            // The receives are posted before any rank sends, so that each message finds its receive.
            let receive = |i| rank.irecv(data.block(i, bytes), i + 1, 0);
            let receives: Vec<_> = (0..fan_in).map(receive).collect();
            rank.together().await?;
            rank.finish_all(receives).await?;
            watch.end();
            let right = || (0..fan_in).all(|i| holds(data.block(i, bytes), key(i + 1, 0, lap)));
            rank.compare(lap, "message", right)?;
        } else {
            rank.fill(lap, data.all(), key(me, 0, lap));
            rank.together().await?;
            if me <= fan_in {
                watch.start();
                rank.send(data.all(), 0, 0).await?;
            }
        }
    }
    watch.laps()
}
