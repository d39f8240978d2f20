//! Allgathers of one block from each rank, one after the other, by
//! [`weft_collective::allgather`].

use crate::about::About;
use crate::data::{holds, key};
use crate::error::Error;
use crate::laps::Laps;
use crate::rank::Rank;
use weft_collective::Operation;
use weft_fabric::Fabric;

pub static ABOUT: About = About {
    messages: |ranks| ranks * ranks,
    ..About::collective(Operation::Allgather, "a block from each rank to all ranks")
};

pub async fn play<F: Fabric>(rank: &Rank<F>) -> Result<Laps, Error> {
    rank.select(Operation::Allgather)?;
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
