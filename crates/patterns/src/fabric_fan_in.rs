//! RDMA writes of several ranks to rank 0 at the same time: a hot spot that takes no time of rank 0's processor (Kini 2003, section
//! 4.3).
//!
//! ```text
//!   1 ==write==.
//!   2 ==write==+==> 0 polls one flag each        the fan-in is 3
//!   3 ==write=='
//! ```
//! Cost: as many writes as the fan-in, all through the port of rank 0. The lap begins when all writers begin and ends when rank 0
//! has seen all flags. Ranks above the fan-in do nothing.

use crate::about::{PatternAlgorithm, PatternText, rounds};
use crate::bare::{OperationsUnderWay, address, send_address};
use crate::data::{holds, key};
use crate::error::PatternError;
use crate::laps::{LapReduction, Laps};
use crate::rank::PatternRank;
use weft_fabric::{Fabric, FlagKind, RemoteFlag, RemoteWrite, until};

pub static ABOUT: PatternText = PatternText {
    own: &[PatternAlgorithm::new("FLAG", "data, then a flag; of 0 bytes: the flag alone")],
    least_ranks: 2,
    fans_in: true,
    bare: true,
    measured: LapReduction::Span,
    messages: |ranks| ranks * (1 + rounds(ranks)),
    ..PatternText::new("fabric-fan-in", "bare fabric: so many ranks write to rank 0 at once")
};

/// Number of bytes of a cache line. A writer's flag has its own line, and the data begin at the next line.
const LINE: usize = 64;

pub async fn play<F: Fabric>(rank: &PatternRank<F>) -> Result<Laps, PatternError> {
    let (fabric, me, fan_in) = (rank.fabric(), rank.me(), rank.plan().fan_in);
    let bytes = rank.plan().bytes;
    let mut watch = rank.watch();
    if me > fan_in {
        return watch.laps();
    }
    let place = LINE + bytes.next_multiple_of(LINE);
    if me > 0 {
        let there = address(fabric, 0).await?;
        let (out, posted) = (rank.real(bytes), OperationsUnderWay::new(fabric));
        while let Some(lap) = watch.lap() {
            rank.fill(lap, out.all(), key(me, 0, lap));
            rank.together_bare(fan_in + 1).await?;
            watch.start();
            let flag = RemoteFlag { at: there, waking: true };
            let (at, number) = (there.offset(LINE as u64), lap as u64 + 1);
            fabric.write_flag(
                0,
                &RemoteWrite::new(out.all(), at, posted.one()),
                &flag.with(number),
            )?;
            // The writes must be complete, because their memory is changed in the next lap.
            posted.wait().await?;
        }
        return watch.laps();
    }
    let region = fabric.allocate(fan_in * place)?;
    let flags: Vec<_> =
        (0..fan_in).map(|i| fabric.flag(&region, i * place, FlagKind::Waking)).collect();
    for writer in 0..fan_in {
        send_address(fabric, writer + 1, region.at(writer * place));
    }
    while let Some(lap) = watch.lap() {
        rank.together_bare(fan_in + 1).await?;
        for flag in &flags {
            until(fabric, flag.local, lap as u64 + 1).await?;
        }
        watch.end();
        let came = |i: usize| region.local.part(i * place + LINE, bytes);
        let right = || (0..fan_in).all(|i| holds(came(i), key(i + 1, 0, lap)));
        rank.compare(lap, "write", right)?;
    }
    fabric.withdraw(region);
    watch.laps()
}
