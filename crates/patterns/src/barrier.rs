//! Barriers one after the other, by the algorithms of [`weft_collective::barrier`], where their
//! pictures and costs are: what Kini 2003 measures in its section 4.4.

use crate::about::{About, rounds};
use crate::error::Error;
use crate::laps::Laps;
use crate::rank::Rank;
use weft_collective::Operation;
use weft_fabric::Fabric;

pub static ABOUT: About = About {
    payload: None,
    messages: |ranks| ranks * rounds(ranks).max(1),
    ..About::collective(Operation::Barrier, "barriers one after the other")
};

pub async fn play<F: Fabric>(rank: &Rank<F>) -> Result<Laps, Error> {
    rank.select(Operation::Barrier)?;
    let mut watch = rank.watch();
    while watch.lap().is_some() {
        rank.together_if_isolated().await?;
        watch.start();
        rank.comm.barrier().await?;
        watch.end();
    }
    watch.laps()
}
