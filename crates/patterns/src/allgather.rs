//! Allgathers of one block from each rank, one after another, by [`weft_collective::allgather`].

use crate::about::PatternText;
use crate::data::{holds, key};
use crate::error::PatternError;
use crate::laps::Laps;
use crate::rank::PatternRank;
use weft_collective::CollectiveKind;
use weft_fabric::Fabric;

pub static ABOUT: PatternText = PatternText {
    messages: |ranks| ranks * ranks,
    ..PatternText::collective(CollectiveKind::Allgather, "a block from each rank to all ranks")
};

pub async fn play<F: Fabric>(rank: &PatternRank<F>) -> Result<Laps, PatternError> {
    rank.select(CollectiveKind::Allgather)?;
    let (me, size, bytes) = (rank.me(), rank.size(), rank.plan().bytes);
    let (mine, all) = (rank.data(bytes), rank.data(size * bytes));
    let mut watch = rank.watch();
    while let Some(lap) = watch.lap() {
        rank.fill(lap, mine.all(), key(me, 0, lap));
        let blocks = rank.blocks(&all, size);
        rank.together_if_isolated().await?;
        watch.start();
        rank.comm.allgather(Some(rank.bytes(mine.all())), blocks.into()).await?;
        watch.end();
        let right = || (0..size).all(|r| holds(all.block(r, bytes), key(r, 0, lap)));
        rank.compare(lap, "gathered block", right)?;
    }
    watch.laps()
}
