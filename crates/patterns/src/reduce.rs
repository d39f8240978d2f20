//! Sums of MPI_INT at rank 0, begun by all ranks at once, by [`weft_collective::reduce`].
//!
//! The lap begins when all ranks begin and ends when the root has the sum.

use crate::about::{PatternText, rounds};
use crate::data::{IntSum, fill_numbers, holds_sums};
use crate::error::PatternError;
use crate::laps::{LapReduction, Laps};
use crate::rank::PatternRank;
use std::rc::Rc;
use weft_collective::CollectiveKind;
use weft_fabric::Fabric;

pub static ABOUT: PatternText = PatternText {
    payload: Some((0, 4)),
    measured: LapReduction::Span,
    messages: |ranks| ranks * (1 + rounds(ranks)),
    ..PatternText::collective(CollectiveKind::Reduce, "a sum of 32-bit integers at rank 0")
};

pub async fn play<F: Fabric>(rank: &PatternRank<F>) -> Result<Laps, PatternError> {
    rank.select(CollectiveKind::Reduce)?;
    let (root, bytes, size) = (rank.me() == 0, rank.plan().bytes, rank.size());
    let (mine, sum) = (rank.data(bytes), rank.data(bytes));
    let mut watch = rank.watch();
    while let Some(lap) = watch.lap() {
        if rank.plan().compares(lap) {
            fill_numbers(mine.all(), (rank.me() + lap) as i32);
        }
        let from = rank.integers(mine.all());
        let to = root.then(|| rank.integers(sum.all()));
        rank.together().await?;
        watch.start();
        rank.comm.reduce(Some(from), to, 0.into(), Rc::new(IntSum)).await?;
        if root {
            watch.end();
            rank.compare(lap, "sum", || holds_sums(sum.all(), size, lap))?;
        }
    }
    watch.laps()
}
