//! Sums of MPI_INT one after the other, by the algorithms of [`weft_collective::allreduce`], where
//! their pictures and costs are: what Kini 2003 measures in its section 5.5.

use crate::about::{About, rounds};
use crate::data::{Sum, fill_numbers, holds_sums};
use crate::error::Error;
use crate::laps::Laps;
use crate::rank::Rank;
use std::rc::Rc;
use weft_collective::Operation;
use weft_fabric::Fabric;

pub static ABOUT: About = About {
    payload: Some((0, 4)),
    messages: |ranks| ranks * rounds(ranks).max(1),
    ..About::collective(
        Operation::Allreduce,
        "sums of 32-bit integers over all ranks, for all ranks",
    )
};

pub async fn play<F: Fabric>(rank: &Rank<F>) -> Result<Laps, Error> {
    rank.select(Operation::Allreduce)?;
    let (bytes, size) = (rank.plan().bytes, rank.size());
    let (mine, sum) = (rank.data(bytes), rank.data(bytes));
    let mut watch = rank.watch();
    while let Some(lap) = watch.lap() {
        if rank.plan().compares(lap) {
            fill_numbers(mine.all(), (rank.me() + lap) as i32);
        }
        let (from, to) = (rank.integers(mine.all()), rank.integers(sum.all()));
        rank.together_if_isolated().await?;
        watch.start();
        rank.comm.allreduce(Some(from), to, Rc::new(Sum)).await?;
        watch.end();
        rank.compare(lap, "sum", || holds_sums(sum.all(), size, lap))?;
    }
    watch.laps()
}
