//! RDMA writes to the last rank and back, found by polling: the latency of Kini 2003, section 2.3
//! and figure 2.3.
//!
//! ```text
//!   0      ==write==> n-1 polls
//!   polls  <==write==             half of the lap is the latency
//! ```
//! FLAG and BOTTOM-FILL are the two ways of [`weft_collective::notified_write`]; IMMEDIATE is data with an
//! immediate, which takes a descriptor.

use crate::about::{About, Algorithm};
use crate::bare::{Posted, address, send_address};
use crate::data::{fill, holds, key};
use crate::error::Error;
use crate::laps::{Laps, Measured};
use crate::rank::Rank;
use weft_collective::notified_write::{self, MARK, NotifyBuffer, Target, Way};
use weft_fabric::{Fabric, FabricExt, until};

pub static ABOUT: About = About {
    own: &[
        Algorithm::new("FLAG", "data, then a flag; of 0 bytes: the flag alone"),
        Algorithm::new("IMMEDIATE", "data with an immediate"),
        Algorithm::new("BOTTOM-FILL", "at least 8 bytes, of which the last are polled"),
    ],
    least_ranks: 2,
    bare: true,
    measured: Measured::Half,
    messages: |_| 2,
    ..About::new(
        "fabric-write",
        "bare fabric: an RDMA write from the first rank to the last and back",
    )
};

/// The immediate of these writes.
const IMMEDIATE: u32 = 1;

pub async fn play<F: Fabric>(rank: &Rank<F>) -> Result<Laps, Error> {
    let (fabric, me, last) = (rank.fabric(), rank.me(), rank.size() - 1);
    let mut watch = rank.watch();
    if me != 0 && me != last {
        return watch.laps();
    }
    let peer = last - me;
    // `None`: by an immediate.
    let way = match rank.plan().algorithm.name {
        "FLAG" => Some(Way::Flag),
        "IMMEDIATE" => None,
        _ => Some(Way::BottomFill),
    };
    let bottom = way == Some(Way::BottomFill);
    // The last word of a bottom fill is its mark; the rest is payload.
    let bytes = if bottom { rank.plan().bytes.saturating_sub(MARK) } else { rank.plan().bytes };
    if bottom {
        notified_write::bottom_fill(&fabric.capabilities(peer), bytes)
            .map_err(|obstacle| Error::Refused(obstacle.to_string()))?;
    }
    let region = fabric.allocate(notified_write::size(bytes))?;
    let here = NotifyBuffer::new(fabric, &region, 0, bytes, way.unwrap_or(Way::Flag));
    let arrived = way.map_or_else(|| fabric.immediate(IMMEDIATE), |_| here.arrived());
    send_address(fabric, peer, region.remote);
    let at = address(fabric, peer).await?;
    let there = Target::new(peer, at, bytes);
    let out = rank.real(notified_write::size(bytes));
    let payload = notified_write::payload(out.all(), bytes);
    let posted = Posted::new(fabric);
    let write = |lap: usize| {
        let done = posted.one();
        match way {
            Some(way) => there.write(fabric, way, out.all(), bytes, lap as u64 + 1, done),
            None => fabric.write_imm(peer, payload, there.payload(bytes), IMMEDIATE, done),
        }
    };
    // The memory of the last write is free once the other side has answered.
    let fill = |lap: usize| {
        if rank.plan().compares(lap) {
            fill(payload, key(me, 0, lap));
        }
    };
    while let Some(lap) = watch.lap() {
        let arrival = until(fabric, arrived, lap as u64 + 1);
        let came = || holds(here.payload(bytes), key(peer, 0, lap));
        if me == 0 {
            fill(lap);
            watch.start();
            write(lap)?;
            arrival.await?;
            watch.end();
            rank.compare(lap, "write", came)?;
        } else {
            arrival.await?;
            rank.compare(lap, "write", came)?;
            fill(lap);
            write(lap)?;
        }
    }
    posted.wait().await?;
    fabric.withdraw(region);
    watch.laps()
}
