//! Sums of MPI_INT at rank 0, begun by all ranks at once, by [`weft_collective::reduce`].
//!
//! The lap begins when all ranks do and ends when the root has the sum.

use crate::about::{About, rounds};
use crate::data::{Sum, fill_numbers, holds_sums};
use crate::error::Error;
use crate::laps::{Laps, Measured};
use crate::rank::Rank;
use std::rc::Rc;
use weft_collective::Operation;
use weft_fabric::Fabric;

pub static ABOUT: About = About {
    payload: Some((0, 4)),
    measured: Measured::Span,
    messages: |ranks| ranks * (1 + rounds(ranks)),
    ..About::collective(Operation::Reduce, "a sum of 32-bit integers at rank 0")
};

pub async fn play<F: Fabric>(rank: &Rank<F>) -> Result<Laps, Error> {
    rank.select(Operation::Reduce)?;
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
        rank.comm.reduce(Some(from), to, 0.into(), Rc::new(Sum)).await?;
        if root {
            watch.end();
            rank.compare(lap, "sum", || holds_sums(sum.all(), size, lap))?;
        }
    }
    watch.laps()
}
