//! Broadcasts from rank 0, begun by all ranks at once, by [`weft_collective::bcast`].
//!
//! The lap begins when the root begins and ends when the last rank has the data. So a broadcast does not look cheap if its root
//! runs ahead.

use crate::about::{PatternText, rounds};
use crate::data::{holds, key};
use crate::error::PatternError;
use crate::laps::{LapReduction, Laps};
use crate::rank::PatternRank;
use weft_collective::CollectiveKind;
use weft_fabric::Fabric;

pub static ABOUT: PatternText = PatternText {
    measured: LapReduction::Span,
    messages: |ranks| ranks * (1 + rounds(ranks)),
    ..PatternText::collective(CollectiveKind::Bcast, "a broadcast from rank 0")
};

pub async fn play<F: Fabric>(rank: &PatternRank<F>) -> Result<Laps, PatternError> {
    rank.select(CollectiveKind::Bcast)?;
    let root = rank.me() == 0;
    let data = rank.data(rank.plan().bytes);
    let mut watch = rank.watch();
    while let Some(lap) = watch.lap() {
        let key = |root: bool| key(usize::from(!root), 0, lap);
        // Other ranks fill the buffer with bytes that the broadcast must overwrite.
        rank.fill(lap, data.all(), key(root));
        rank.together().await?;
        if root {
            watch.start();
        }
        rank.comm.bcast(rank.bytes(data.all()), 0.into()).await?;
        watch.end();
        rank.compare(lap, "broadcast", || holds(data.all(), key(true)))?;
    }
    watch.laps()
}
