//! RDMA writes to the last rank and back, found by polling: the latency of Kini 2003, section 2.3
//! and figure 2.3.
//!
//! ```text
//!   0      ==write==> n-1 polls
//!   polls  <==write==             half of the lap is the latency
//! ```
//! FLAG: data, then a flag behind them: a second write, and right for any length. IMMEDIATE: data
//! with an immediate, which takes a descriptor. BOTTOM-FILL: one write whose last word is the flag;
//! where bytes come in order within a packet, and up to that length.

use crate::about::{About, Algorithm};
use crate::bare::{Posted, address, require, send_address};
use crate::data::{fill, holds, key};
use crate::error::Error;
use crate::laps::{Laps, Measured};
use crate::rank::Rank;
use weft_fabric::{Fabric, RemoteFlag, until};

pub static ABOUT: About = About {
    algorithms: &[
        Algorithm { name: "FLAG", about: "data, then a flag; of 0 bytes: the flag alone" },
        Algorithm { name: "IMMEDIATE", about: "data with an immediate" },
        Algorithm { name: "BOTTOM-FILL", about: "at least 8 bytes, of which the last are polled" },
    ],
    usual: 2,
    least_ranks: 2,
    bare: true,
    measured: Measured::Half,
    messages: |_| 2,
    ..About::new(
        "fabric-write",
        "bare fabric: an RDMA write from the first rank to the last and back",
    )
};

/// The flag's place in the region; data begin at the next line, or after.
const LINE: usize = 64;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Flag,
    Immediate,
    Bottom,
}

/// The immediate of these writes.
const IMMEDIATE: u32 = 1;

pub async fn play<F: Fabric>(rank: &Rank<F>) -> Result<Laps, Error> {
    let (fabric, me, last) = (rank.fabric(), rank.me(), rank.size() - 1);
    let mut watch = rank.watch();
    if me != 0 && me != last {
        return watch.laps();
    }
    let peer = last - me;
    let way = match rank.plan().algorithm.name {
        "FLAG" => Way::Flag,
        "IMMEDIATE" => Way::Immediate,
        _ => Way::Bottom,
    };
    let bytes = if way == Way::Bottom { rank.plan().bytes.max(8) } else { rank.plan().bytes };
    if way == Way::Bottom {
        let able = fabric.capabilities(peer);
        let fits = able.in_order_placement && bytes <= able.mtu;
        require(fits, || match able.in_order_placement {
            false => "BOTTOM-FILL: this fabric places bytes in any order; use FLAG".to_owned(),
            true => format!("{bytes} bytes: BOTTOM-FILL carries at most {}", able.mtu),
        })?;
    }
    // The end of the data is a word.
    let start = LINE + bytes.wrapping_neg() % 8;
    let end = start + bytes;
    let region = fabric.allocate(end)?;
    let arrived = match way {
        Way::Flag => fabric.flag(&region, 0, true).local,
        Way::Immediate => fabric.immediate(IMMEDIATE),
        Way::Bottom => fabric.flag(&region, end - 8, false).local,
    };
    send_address(fabric, peer, region.remote);
    let there = address(fabric, peer).await?;
    let out = rank.real(bytes);
    // The last word of a bottom fill is its number; the rest is payload.
    let kept = if way == Way::Bottom { bytes - 8 } else { bytes };
    let posted = Posted::new(fabric);
    let write = |lap: usize| {
        let done = posted.one();
        let (data, at) = (out.all(), there.offset(start as u64));
        let number = lap as u64 + 1;
        match way {
            Way::Flag => {
                let flag = RemoteFlag { at: there, waking: true };
                fabric.write_flag(peer, data, at, flag, number, done)
            }
            Way::Immediate => fabric.write_imm(peer, data, at, IMMEDIATE, done),
            Way::Bottom => fabric.write(peer, data, at, done),
        }
    };
    // The memory of the last write is free once the other side has answered.
    let fill = |lap: usize| {
        if rank.plan().compares(lap) {
            fill(out.all().part(0, kept), key(me, 0, lap));
        }
        if way == Way::Bottom {
            out.all().part(kept, 8).fill(&(lap as u64 + 1).to_ne_bytes());
        }
    };
    while let Some(lap) = watch.lap() {
        let arrival = until(fabric, arrived, lap as u64 + 1);
        let came = || holds(region.local.part(start, kept), key(peer, 0, lap));
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
