//! RDMA writes to the last rank and back, which the receiver detects by polling. The latency is measured as in Kini 2003, section
//! 2.3 and figure 2.3.
//!
//! ```text
//!   0      ==write==> n-1 polls
//!   polls  <==write==             half of the lap is the latency
//! ```
//! FLAG and BOTTOM-FILL are the two methods of [`weft_collective::notified_write`]. IMMEDIATE is data with an immediate, which
//! takes a descriptor.

use crate::about::{PatternAlgorithm, PatternText};
use crate::bare::{OperationsUnderWay, address, send_address};
use crate::data::{fill, holds, key};
use crate::error::PatternError;
use crate::laps::{LapReduction, Laps};
use crate::rank::PatternRank;
use weft_collective::notified_write::{self, MARK, NotifyBuffer, NotifyMethod, NotifyTarget};
use weft_fabric::{Fabric, FabricExt, RemoteWrite, until};

pub static ABOUT: PatternText = PatternText {
    own: &[
        PatternAlgorithm::new("FLAG", "data, then a flag; of 0 bytes: the flag alone"),
        PatternAlgorithm::new("IMMEDIATE", "data with an immediate"),
        PatternAlgorithm::new("BOTTOM-FILL", "at least 8 bytes, of which the last are polled"),
    ],
    least_ranks: 2,
    bare: true,
    measured: LapReduction::Half,
    messages: |_| 2,
    ..PatternText::new(
        "fabric-write",
        "bare fabric: an RDMA write from the first rank to the last and back",
    )
};

/// Immediate value of these writes.
const IMMEDIATE: u32 = 1;

pub async fn play<F: Fabric>(rank: &PatternRank<F>) -> Result<Laps, PatternError> {
    let (fabric, me, last) = (rank.fabric(), rank.me(), rank.size() - 1);
    let mut watch = rank.watch();
    if me != 0 && me != last {
        return watch.laps();
    }
    let peer = last - me;
    // Method of notification; `None` for an immediate.
    let way = match rank.plan().algorithm.name {
        "FLAG" => Some(NotifyMethod::Flag),
        "IMMEDIATE" => None,
        _ => Some(NotifyMethod::BottomFill),
    };
    let bottom = way == Some(NotifyMethod::BottomFill);
    // The last word of a bottom fill is its mark, and the other bytes are payload.
    let bytes = if bottom { rank.plan().bytes.saturating_sub(MARK) } else { rank.plan().bytes };
    if bottom {
        notified_write::bottom_fill(&fabric.capabilities(peer), bytes)
            .map_err(|obstacle| PatternError::Refused(obstacle.to_string()))?;
    }
    let region = fabric.allocate(notified_write::size(bytes))?;
    let here = NotifyBuffer::new(fabric, &region, 0, bytes, way.unwrap_or(NotifyMethod::Flag));
    let arrived = way.map_or_else(|| fabric.immediate(IMMEDIATE), |_| here.arrived());
    send_address(fabric, peer, region.remote);
    let at = address(fabric, peer).await?;
    let there = NotifyTarget::new(peer, at, bytes);
    let out = rank.real(notified_write::size(bytes));
    let payload = notified_write::payload(out.all(), bytes);
    let posted = OperationsUnderWay::new(fabric);
    let write = |lap: usize| {
        let done = posted.one();
        match way {
            Some(way) => there.write(fabric, way, out.all(), bytes, lap as u64 + 1, done),
            None => fabric.write_imm(
                peer,
                &RemoteWrite::new(payload, there.payload(bytes), done),
                IMMEDIATE,
            ),
        }
    };
    // Once the other rank has answered, the memory of the last write may be changed.
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
