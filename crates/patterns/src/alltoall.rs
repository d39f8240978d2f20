//! A block from each rank to each rank, one operation after another, by [`weft_collective::alltoall`].

use crate::about::PatternText;
use crate::data::{holds, key};
use crate::error::PatternError;
use crate::laps::Laps;
use crate::rank::PatternRank;
use weft_collective::CollectiveKind;
use weft_fabric::Fabric;
use weft_process::Lengths;

pub static ABOUT: PatternText = PatternText {
    messages: |ranks| ranks * ranks,
    ..PatternText::collective(CollectiveKind::Alltoall, "a block from each rank to each rank")
};

pub async fn play<F: Fabric>(rank: &PatternRank<F>) -> Result<Laps, PatternError> {
    rank.select(CollectiveKind::Alltoall)?;
    let (me, size, bytes) = (rank.me(), rank.size(), rank.plan().bytes);
    let (out, into) = (rank.data(size * bytes), rank.data(size * bytes));
    let mut watch = rank.watch();
    while let Some(lap) = watch.lap() {
        for to in 0..size {
            rank.fill(lap, out.block(to, bytes), key(me, to, lap));
        }
        let (send, receive) = (rank.blocks(&out, size), rank.blocks(&into, size));
        rank.together_if_isolated().await?;
        watch.start();
        rank.comm.alltoall(Some(send.into()), receive.into(), Lengths::Equal).await?;
        watch.end();
        let right = || (0..size).all(|r| holds(into.block(r, bytes), key(r, me, lap)));
        rank.compare(lap, "block", right)?;
    }
    watch.laps()
}
