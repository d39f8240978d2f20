//! A message of the bare fabric to the last rank and back, by send and receive of the adapter, without matching.
//!
//! ```text
//!   0      --send--> n-1
//!          <--send--            half of the lap is the latency
//! ```
//! Cost: 2 sends, each of which takes a descriptor at the receiver. The payload is compared in the memory in which it arrived.

use crate::about::{PatternAlgorithm, PatternText};
use crate::bare::{OperationsUnderWay, message, require};
use crate::data::{holds, key};
use crate::error::PatternError;
use crate::laps::{LapReduction, Laps};
use crate::rank::PatternRank;
use weft_fabric::Fabric;

pub static ABOUT: PatternText = PatternText {
    own: &[PatternAlgorithm::new("send", "two-sided, taken where it arrived")],
    least_ranks: 2,
    bare: true,
    measured: LapReduction::Half,
    messages: |_| 2,
    ..PatternText::new(
        "fabric-send",
        "bare fabric: a send from the first rank to the last and back",
    )
};

pub async fn play<F: Fabric>(rank: &PatternRank<F>) -> Result<Laps, PatternError> {
    let (fabric, me, last) = (rank.fabric(), rank.me(), rank.size() - 1);
    let bytes = rank.plan().bytes;
    let mut watch = rank.watch();
    if me != 0 && me != last {
        return watch.laps();
    }
    let peer = last - me;
    let most = fabric.capabilities(peer).send_max;
    require(bytes <= most, || format!("{bytes} bytes: one send carries at most {most} here"))?;
    let (out, posted) = (rank.real(bytes), OperationsUnderWay::new(fabric));
    let take = async |lap: usize| {
        let message = message(fabric, peer).await?;
        let right = message.payload.len() == bytes && holds(message.payload, key(peer, 0, lap));
        fabric.release(message);
        rank.compare(lap, "message", || right)
    };
    while let Some(lap) = watch.lap() {
        rank.fill(lap, out.all(), key(me, 0, lap));
        if me == 0 {
            watch.start();
            posted.send(peer, out.all()).await?;
            take(lap).await?;
            watch.end();
        } else {
            take(lap).await?;
            posted.send(peer, out.all()).await?;
        }
    }
    watch.laps()
}
