//! A datagram from rank 0 to all other ranks: the latency of Kini 2003, section 2.1.
//!
//! ```text
//!   0 --datagram--> switch --> 1, 2, ... n-1       then each answers, outside of the lap
//! ```
//! Cost: one datagram, for any number of members. The lap begins when the root begins and ends when the last member has the data.
//! Datagrams may be lost: if an answer is missing after [`PATIENCE`], the root repeats its datagram. Members ignore a datagram that
//! they already have.

use crate::about::{PatternAlgorithm, PatternText};
use crate::bare::{head, require, send_head, until_seen};
use crate::data::{holds, key};
use crate::error::PatternError;
use crate::laps::{LapReduction, Laps};
use crate::rank::PatternRank;
use std::time::Duration;
use weft_fabric::{Fabric, FabricExt, GroupId, Head};

pub static ABOUT: PatternText = PatternText {
    own: &[PatternAlgorithm::new("datagram", "unreliable, repeated if an answer is missing")],
    least_ranks: 2,
    payload: Some((1, 1)),
    bare: true,
    measured: LapReduction::Span,
    messages: |ranks| 2 * ranks,
    ..PatternText::new(
        "fabric-multicast",
        "bare fabric: a multicast datagram from rank 0 to all others",
    )
};

const GROUP: GroupId = GroupId(1);

/// Time for which the root waits for answers before it repeats.
const PATIENCE: Duration = Duration::from_millis(10);

pub async fn play<F: Fabric>(rank: &PatternRank<F>) -> Result<Laps, PatternError> {
    let (fabric, me, size) = (rank.fabric(), rank.me(), rank.size());
    let bytes = rank.plan().bytes;
    let most = fabric.capabilities((me + 1) % size).multicast_max;
    require(most > 0, || "this fabric has no multicast".to_owned())?;
    require(bytes <= most, || format!("{bytes} bytes: a datagram carries at most {most} here"))?;
    let data = rank.real(bytes);
    let mut watch = rank.watch();
    fabric.join(GROUP);
    // The root begins only when all ranks are members of the group.
    if me == 0 {
        for member in 1..size {
            head(fabric, member).await?;
        }
    } else {
        send_head(fabric, 0, [0; 3]);
    }
    while let Some(lap) = watch.lap() {
        if me > 0 {
            receive(rank, lap, &data).await?;
            watch.end();
            let payload = data.all().part(1, bytes - 1);
            rank.compare(lap, "datagram", || holds(payload, key(0, 0, lap)))?;
            send_head(fabric, 0, [lap as u64, 0, 0]);
            continue;
        }
        rank.fill(lap, data.all().part(1, bytes - 1), key(0, 0, lap));
        // The first byte distinguishes the datagrams of different laps.
        data.all().part(0, 1).fill(&[lap as u8]);
        watch.start();
        let mut answers = 0;
        while answers + 1 < size {
            fabric.multicast(GROUP, data.all())?;
            let deadline = Some(fabric.now() + PATIENCE);
            while answers + 1 < size {
                let look = || fabric.receive(None);
                let Some(message) = until_seen(fabric, deadline, look).await? else { break };
                let Head([of, ..]) = message.head;
                answers += usize::from(of == lap as u64);
                fabric.release(message);
            }
        }
    }
    fabric.leave(GROUP);
    watch.laps()
}

/// Waits for the datagram of `lap`.
async fn receive<F: Fabric>(
    rank: &PatternRank<F>,
    lap: usize,
    data: &crate::data::PayloadBuffer,
) -> Result<(), PatternError> {
    let fabric = rank.fabric();
    let look = || {
        while let Some(datagram) = fabric.receive_multicast(data.all()) {
            let mut number = [0];
            data.all().part(0, 1).read(&mut number);
            if datagram.len == data.all().len() && number == [lap as u8] {
                return Some(());
            }
        }
        None
    };
    until_seen(fabric, None, look).await?;
    Ok(())
}
