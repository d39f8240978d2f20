//! Barriers one after the other, by the algorithms of [`weft_collective::barrier`], where their
//! pictures and costs are: what Kini 2003 measures in its section 4.4.

use crate::about::{About, Algorithm, rounds};
use crate::error::Error;
use crate::laps::Laps;
use crate::rank::Rank;
use weft_fabric::Fabric;
use weft_process::{BarrierAlgorithm, Selection};

pub static ABOUT: About = About {
    algorithms: &[
        Algorithm { name: "MPI-PE", about: "pairwise exchange over messages (Kini 4.1.1)" },
        Algorithm { name: "MPI-DS", about: "dissemination over messages (Kini 4.1.2)" },
        Algorithm { name: "CENTRAL", about: "a counter at rank 0, for ranks that share memory" },
    ],
    usual: 2,
    payload: None,
    messages: |ranks| ranks * rounds(ranks).max(1),
    ..About::new("barrier", "barriers one after the other")
};

pub async fn play<F: Fabric>(rank: &Rank<F>) -> Result<Laps, Error> {
    let barrier = match rank.plan().algorithm.name {
        "MPI-PE" => BarrierAlgorithm::PairwiseExchange,
        "MPI-DS" => BarrierAlgorithm::Dissemination,
        _ => BarrierAlgorithm::Central,
    };
    rank.comm.selection.set(Selection { barrier, ..Selection::default() });
    let mut watch = rank.watch();
    while watch.lap().is_some() {
        rank.together_if_isolated().await?;
        watch.start();
        rank.comm.barrier().await?;
        watch.end();
    }
    watch.laps()
}
