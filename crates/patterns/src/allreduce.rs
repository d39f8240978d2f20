//! Sums of MPI_INT one after another, as measured in Kini 2003, section 5.5. The algorithms are those of
//! [`weft_collective::allreduce`], which has their pictures and costs.

use crate::about::{PatternText, rounds};
use crate::data::{IntSum, fill_numbers, holds_sums};
use crate::error::PatternError;
use crate::laps::Laps;
use crate::rank::PatternRank;
use std::rc::Rc;
use weft_collective::CollectiveKind;
use weft_fabric::Fabric;

pub static ABOUT: PatternText = PatternText {
    payload: Some((0, 4)),
    messages: |ranks| ranks * rounds(ranks).max(1),
    ..PatternText::collective(
        CollectiveKind::Allreduce,
        "sums of 32-bit integers over all ranks, for all ranks",
    )
};

pub async fn play<F: Fabric>(rank: &PatternRank<F>) -> Result<Laps, PatternError> {
    rank.select(CollectiveKind::Allreduce)?;
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
        rank.comm.allreduce(Some(from), to, Rc::new(IntSum)).await?;
        watch.end();
        rank.compare(lap, "sum", || holds_sums(sum.all(), size, lap))?;
    }
    watch.laps()
}
