//! Scatters of one block to each rank from rank 0, begun by all ranks at once, by
//! [`weft_collective::scatter`].
//!
//! The lap begins when the root begins and ends when the last rank has its block.

use crate::about::{PatternText, rounds};
use crate::data::{holds, key};
use crate::error::PatternError;
use crate::laps::{LapReduction, Laps};
use crate::rank::PatternRank;
use weft_collective::CollectiveKind;
use weft_fabric::Fabric;
use weft_process::Lengths;

pub static ABOUT: PatternText = PatternText {
    measured: LapReduction::Span,
    messages: |ranks| ranks * (1 + rounds(ranks)),
    ..PatternText::collective(CollectiveKind::Scatter, "a block from rank 0 to each rank")
};

pub async fn play<F: Fabric>(rank: &PatternRank<F>) -> Result<Laps, PatternError> {
    rank.select(CollectiveKind::Scatter)?;
    let (me, size, bytes) = (rank.me(), rank.size(), rank.plan().bytes);
    let root = me == 0;
    let mine = rank.data(bytes);
    let all = rank.data(if root { size * bytes } else { 0 });
    let mut watch = rank.watch();
    while let Some(lap) = watch.lap() {
        let mut blocks = Vec::new();
        if root {
            for to in 0..size {
                rank.fill(lap, all.block(to, bytes), key(0, to, lap));
            }
            blocks = rank.blocks(&all, size);
        }
        rank.together().await?;
        if root {
            watch.start();
        }
        rank.comm
            .scatter(blocks.into(), Some(rank.bytes(mine.all())), 0.into(), Lengths::Equal)
            .await?;
        watch.end();
        rank.compare(lap, "scattered block", || holds(mine.all(), key(0, me, lap)))?;
    }
    watch.laps()
}
