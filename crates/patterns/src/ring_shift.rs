//! Everybody sends to the right and receives from the left (MPI_Sendrecv in a ring).
//!
//! ```text
//!   0 --> 1 --> 2 --> ... --> n-1 --> 0        all at once
//! ```
//! Cost: one message a rank, no waiting for anybody but the left neighbour.

use crate::about::{About, Algorithm};
use crate::data::{holds, key};
use crate::error::Error;
use crate::laps::Laps;
use crate::rank::Rank;
use weft_fabric::Fabric;

pub static ABOUT: About = About {
    own: &[Algorithm::new("sendrecv", "a send and a receive at once")],
    ..About::new("ring-shift", "everybody sends to the right and receives from the left")
};

pub async fn play<F: Fabric>(rank: &Rank<F>) -> Result<Laps, Error> {
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
