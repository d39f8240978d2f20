//! A stream through a ring of slots in the receiver's memory. The sender may write into a slot once the receiver has read it and
//! has said so. The completion of a write shows only that the data has arrived.

use super::{addresses, check, message, set_word, tell, word};
use weft_fabric::{Fabric, FabricExt, FlagKind, RemoteFlag, RemoteWrite, Work, until};
use weft_fabric_sim::Sim;

const SLOTS: u64 = 3;
const MESSAGES: u64 = 12;
/// Time that the receiver takes for a message, in picoseconds.
const USE: u64 = 1_000_000;

/// Streams from rank 0 to rank 1. The sender's credit comes back from the receiver, or with completions.
async fn stream(sim: Sim, acknowledged: bool) -> Result<u64, String> {
    let (flag, source) = (8 * SLOTS as usize, 8 * SLOTS as usize + 8);
    let region = sim.allocate(source + 8 * MESSAGES as usize).unwrap();
    let arrived = sim.flag(&region, flag, FlagKind::Waking);
    let at = addresses(&sim, region).await;
    let done = sim.counters().allocate();
    if sim.rank() == 0 {
        for i in 0..MESSAGES {
            if i >= SLOTS {
                if acknowledged {
                    message(&sim, Some(1)).await;
                } else {
                    until(&sim, done, i + 1 - SLOTS).await.map_err(|f| f.to_string())?;
                }
            }
            // Writes are unordered: post one at a time, so that the flag can count.
            until(&sim, done, i).await.map_err(|f| f.to_string())?;
            let from = source + 8 * i as usize;
            set_word(region.local, from, 100 + i);
            let data = region.local.part(from, 8);
            let name = RemoteFlag { at: at[1].offset(flag as u64), waking: true };
            let slot = at[1].offset(8 * (i % SLOTS));
            sim.write_flag(1, &RemoteWrite::new(data, slot, Some(done)), &name.with(i + 1))
                .unwrap();
        }
        return Ok(0);
    }
    for i in 0..MESSAGES {
        until(&sim, arrived.local, i + 1).await.map_err(|f| f.to_string())?;
        sim.charge(Work::Compute(USE));
        sim.catch_up().await;
        let got = word(region.local, 8 * (i % SLOTS) as usize);
        if got != 100 + i {
            return Err(format!("message {i} is {got}, not {}", 100 + i));
        }
        if acknowledged {
            tell(&sim, 0, [i, 0, 0]);
        }
    }
    Ok(0)
}

#[test]
fn a_completion_taken_for_an_acknowledgement() {
    check(2, |sim| stream(sim, true), |sim| stream(sim, false));
}
