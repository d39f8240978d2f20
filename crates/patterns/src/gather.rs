//! Gathers of one block from each rank at rank 0, begun by all ranks at once, by
//! [`weft_collective::gather`].
//!
//! The lap begins when all ranks begin and ends when the root has all blocks.

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
    ..PatternText::collective(CollectiveKind::Gather, "a block from each rank to rank 0")
};

pub async fn play<F: Fabric>(rank: &PatternRank<F>) -> Result<Laps, PatternError> {
    rank.select(CollectiveKind::Gather)?;
    let (me, size, bytes) = (rank.me(), rank.size(), rank.plan().bytes);
    let root = me == 0;
    let mine = rank.data(bytes);
    let all = rank.data(if root { size * bytes } else { 0 });
    let mut watch = rank.watch();
    while let Some(lap) = watch.lap() {
        rank.fill(lap, mine.all(), key(me, 0, lap));
        let blocks = if root { rank.blocks(&all, size) } else { Vec::new() };
        rank.together().await?;
        watch.start();
        rank.comm
            .gather(Some(rank.bytes(mine.all())), blocks.into(), 0.into(), Lengths::Equal)
            .await?;
        if root {
            watch.end();
            let right = || (0..size).all(|r| holds(all.block(r, bytes), key(r, 0, lap)));
            rank.compare(lap, "gathered block", right)?;
        }
    }
    watch.laps()
}
