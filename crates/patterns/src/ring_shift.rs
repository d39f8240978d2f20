//! A ring in which every rank sends to the right and receives from the left (MPI_Sendrecv).
//!
//! ```text
//!   0 --> 1 --> 2 --> ... --> n-1 --> 0        all at once
//! ```
//! Cost: one message for each rank. A rank waits only for its left neighbour.

use crate::about::{PatternAlgorithm, PatternText};
use crate::data::{holds, key};
use crate::error::PatternError;
use crate::laps::Laps;
use crate::rank::PatternRank;
use weft_fabric::Fabric;

pub static ABOUT: PatternText = PatternText {
    own: &[PatternAlgorithm::new("sendrecv", "a send and a receive at once")],
    ..PatternText::new("ring-shift", "everybody sends to the right and receives from the left")
};

pub async fn play<F: Fabric>(rank: &PatternRank<F>) -> Result<Laps, PatternError> {
    let (me, size, bytes) = (rank.me(), rank.size(), rank.plan().bytes);
    let (right, left) = ((me + 1) % size, (me + size - 1) % size);
    let (out, into) = (rank.data(bytes), rank.data(bytes));
    let mut watch = rank.watch();
    while let Some(lap) = watch.lap() {
        rank.fill(lap, out.all(), key(me, 0, lap));
        rank.together_if_isolated().await?;
        watch.start();
        let receive = rank.irecv(into.all(), left, 0);
        let send = rank.isend(out.all(), right, 0);
        rank.finish_all([send, receive]).await?;
        watch.end();
        rank.compare(lap, "message", || holds(into.all(), key(left, 0, lap)))?;
    }
    watch.laps()
}
