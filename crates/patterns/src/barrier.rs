//! Barriers one after another, as measured in Kini 2003, section 4.4. The algorithms are those of [`weft_collective::barrier`],
//! which has their pictures and costs.

use crate::about::{PatternText, rounds};
use crate::error::PatternError;
use crate::laps::Laps;
use crate::rank::PatternRank;
use weft_collective::CollectiveKind;
use weft_fabric::Fabric;

pub static ABOUT: PatternText = PatternText {
    payload: None,
    messages: |ranks| ranks * rounds(ranks).max(1),
    ..PatternText::collective(CollectiveKind::Barrier, "barriers one after the other")
};

pub async fn play<F: Fabric>(rank: &PatternRank<F>) -> Result<Laps, PatternError> {
    rank.select(CollectiveKind::Barrier)?;
    let mut watch = rank.watch();
    while watch.lap().is_some() {
        rank.together_if_isolated().await?;
        watch.start();
        rank.comm.barrier().await?;
        watch.end();
    }
    watch.laps()
}
