//! Sums of MPI_INT one after the other, by the algorithms of [`weft_collective::allreduce`], where
//! their pictures and costs are: what Kini 2003 measures in its section 5.5.

use crate::about::{About, Algorithm, rounds};
use crate::bare::require;
use crate::data::{Sum, fill_numbers, holds_sums};
use crate::error::Error;
use crate::laps::Laps;
use crate::rank::Rank;
use std::rc::Rc;
use weft_collective::SLOT;
use weft_fabric::Fabric;
use weft_process::{AllreduceAlgorithm, Selection};

pub static ABOUT: About = About {
    algorithms: &[
        Algorithm { name: "MPI-PE", about: "pairwise exchange over messages (Kini 5.2.1)" },
        Algorithm { name: "MPI-GB", about: "reduction, then broadcast (Kini 5.2)" },
        Algorithm { name: "CENTRAL", about: "slots at rank 0, up to 64 bytes, for shared memory" },
    ],
    usual: 2,
    payload: Some((0, 4)),
    messages: |ranks| ranks * rounds(ranks).max(1),
    ..About::new("allreduce", "sums of 32-bit integers over all ranks, for all ranks")
};

pub async fn play<F: Fabric>(rank: &Rank<F>) -> Result<Laps, Error> {
    let (bytes, size) = (rank.plan().bytes, rank.size());
    let allreduce = match rank.plan().algorithm.name {
        "MPI-PE" => AllreduceAlgorithm::PairwiseExchange,
        "MPI-GB" => AllreduceAlgorithm::GatherBroadcast,
        _ => AllreduceAlgorithm::Central,
    };
    let fits = allreduce != AllreduceAlgorithm::Central || bytes <= SLOT;
    require(fits, || format!("{bytes} bytes: CENTRAL carries at most {SLOT}"))?;
    rank.comm.selection.set(Selection { allreduce, ..Selection::default() });
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
