//! A block from each rank to each rank, one operation after the other, by
//! [`weft_collective::alltoall`].

use crate::about::{About, Algorithm};
use crate::data::{holds, key};
use crate::error::Error;
use crate::laps::Laps;
use crate::rank::Rank;
use weft_fabric::Fabric;

pub static ABOUT: About = About {
    algorithms: &[Algorithm { name: "pairwise", about: "with one partner after the other" }],
    messages: |ranks| ranks * ranks,
    ..About::new("alltoall", "a block from each rank to each rank")
};

pub async fn play<F: Fabric>(rank: &Rank<F>) -> Result<Laps, Error> {
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
        rank.comm.alltoall(Some(send), receive).await?;
        watch.end();
        let right = || (0..size).all(|r| holds(into.block(r, bytes), key(r, me, lap)));
        rank.compare(lap, "block", right)?;
    }
    watch.laps()
}
