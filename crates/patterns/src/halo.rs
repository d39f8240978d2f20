//! The halo exchange of a stencil on a periodic grid of 1, 2 or 3 dimensions.
//!
//! ```text
//!   2D, 12 ranks, 4 x 3:    0  1  2        rank 4 sends to and receives from 1, 3, 5 and 7;
//!                           3  4  5        the edges meet: rank 0 has 9, 3, 2 and 1
//!                           6  7  8
//!                           9 10 11
//! ```
//! Cost: two messages for each dimension and rank, all at the same time. The grid has the dimensions of MPI_Dims_create. In a
//! dimension of one rank, a rank is its own neighbour.

use crate::about::{PatternAlgorithm, PatternText};
use crate::data::{holds, key};
use crate::error::PatternError;
use crate::laps::Laps;
use crate::rank::PatternRank;
use weft_fabric::Fabric;
use weft_process::{Cartesian, balanced_dims};

pub static ABOUT: PatternText = PatternText {
    own: &[
        PatternAlgorithm::new("1D", "a ring, 2 neighbours"),
        PatternAlgorithm::new("2D", "a torus, 4 neighbours"),
        PatternAlgorithm::new("3D", "a torus of 3 dimensions, 6 neighbours"),
    ],
    messages: |ranks| 4 * ranks,
    ..PatternText::new("halo", "an exchange with all neighbours on a periodic grid")
};

pub async fn play<F: Fabric>(rank: &PatternRank<F>) -> Result<Laps, PatternError> {
    let (me, bytes) = (rank.me(), rank.plan().bytes);
    let dimensions = match rank.plan().algorithm.name {
        "1D" => 1,
        "2D" => 2,
        _ => 3,
    };
    let dims = balanced_dims(rank.size(), &vec![0; dimensions]);
    let dims = dims.expect("a grid of which no side is given fits any number of ranks");
    let grid = Cartesian { periods: vec![true; dimensions], dims };
    // Returns the destination and the source of direction `way`. Direction 2d goes down dimension d, and direction 2d + 1 goes up.
    let neighbours = |way: usize| {
        let step = if way.is_multiple_of(2) { -1 } else { 1 };
        let [from, to] = grid.shift(me, way / 2, step);
        (to.expect("the grid is periodic"), from.expect("the grid is periodic"))
    };
    let ways: Vec<(usize, usize)> = (0..2 * dimensions).map(neighbours).collect();
    let (out, into) = (rank.data(ways.len() * bytes), rank.data(ways.len() * bytes));
    let mut watch = rank.watch();
    while let Some(lap) = watch.lap() {
        for way in 0..ways.len() {
            rank.fill(lap, out.block(way, bytes), key(me, way, lap));
        }
        rank.together_if_isolated().await?;
        watch.start();
        let mut operations = Vec::with_capacity(2 * ways.len());
        for (way, &(_, from)) in ways.iter().enumerate() {
            operations.push(rank.irecv(into.block(way, bytes), from, way as i32));
        }
        for (way, &(to, _)) in ways.iter().enumerate() {
            operations.push(rank.isend(out.block(way, bytes), to, way as i32));
        }
        rank.finish_all(operations).await?;
        watch.end();
        let came = |(way, &(_, from)): (usize, &(usize, usize))| {
            holds(into.block(way, bytes), key(from, way, lap))
        };
        rank.compare(lap, "halo", || ways.iter().enumerate().all(came))?;
    }
    watch.laps()
}
