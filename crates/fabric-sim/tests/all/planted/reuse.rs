//! An allreduce in which every rank writes its operand, with a flag, to all other ranks.
//!
//! ```text
//!   at each rank   landing [buffer][from]  |  flags [buffer][from]  |  source [buffer]
//! ```
//! A rank that has heard from all in round k goes on to k + 1, but a slower rank may still have to read the data of k. So there
//! are two buffers, used in turn. In k + 2 no rank is still reading k, because in k + 1 all have written after they had read. The
//! same holds for the source. Each buffer has its own flag: the write of k + 1 may overtake that of k.

use super::{addresses, check, set_word, word};
use weft_fabric::{Fabric, FlagKind, RemoteFlag, RemoteWrite, until};
use weft_fabric_sim::Sim;

const ROUNDS: u64 = 6;

fn operand(round: u64, rank: usize) -> u64 {
    round << 8 | rank as u64
}

/// Returns the sum of all rounds, with these numbers of landing and source buffers.
async fn allreduce(sim: Sim, landings: u64, sources: u64) -> Result<u64, String> {
    let (me, n) = (sim.rank(), sim.size());
    let all = n * landings as usize;
    let place = |round: u64, from: usize| (round % landings) as usize * n + from;
    let source = |round: u64| 8 * (2 * all + (round % sources) as usize);
    let region = sim.allocate(source(sources - 1) + 8).unwrap();
    let heard: Vec<_> =
        (0..all).map(|i| sim.flag(&region, 8 * (all + i), FlagKind::Waking).local).collect();
    let at = addresses(&sim, region).await;
    let mut total = 0;
    for round in 1..=ROUNDS {
        set_word(region.local, source(round), operand(round, me));
        for to in (0..n).filter(|&r| r != me) {
            let landing = at[to].offset(8 * place(round, me) as u64);
            let flag = RemoteFlag { at: landing.offset(8 * all as u64), waking: true };
            let data = region.local.part(source(round), 8);
            sim.write_flag(to, &RemoteWrite::new(data, landing, None), &flag.with(round)).unwrap();
        }
        let mut sum = operand(round, me);
        for from in (0..n).filter(|&r| r != me) {
            until(&sim, heard[place(round, from)], round)
                .await
                .map_err(|fault| fault.to_string())?;
            sum += word(region.local, 8 * place(round, from));
        }
        let expected: u64 = (0..n).map(|r| operand(round, r)).sum();
        if sum != expected {
            return Err(format!("round {round}: the sum is {sum:#x}, not {expected:#x}"));
        }
        total += sum;
    }
    Ok(total)
}

#[test]
fn a_landing_buffer_reused_one_round_too_early() {
    check(3, |sim| allreduce(sim, 2, 2), |sim| allreduce(sim, 1, 2));
}

#[test]
fn a_source_overwritten_before_it_was_read() {
    check(3, |sim| allreduce(sim, 2, 2), |sim| allreduce(sim, 2, 1));
}
