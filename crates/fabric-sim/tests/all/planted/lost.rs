//! A broadcast by multicast, which may be lost.

use super::{check, message, set_word, tell, word};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::task::Poll;
use weft_fabric::{Counter, Fabric, FabricExt, GroupId, Head, Sge, until};
use weft_fabric_sim::Sim;

const GROUP: GroupId = GroupId(1);
const ROUNDS: u64 = 3;
/// Time without a datagram after which a receiver asks for it, in picoseconds.
const PATIENCE: u64 = 150_000_000;

const ACK: u64 = 1;
const NAK: u64 = 2;

/// Returns the next datagram's word, or `None` if no datagram came for [`PATIENCE`].
async fn datagram(sim: &Sim, into: Sge, never: Counter, patient: bool) -> Option<u64> {
    let value = sim.counters().value(never);
    let wait = until(sim, never, value + 1);
    let mut wait = pin!(if patient { wait } else { wait.before(sim.after(PATIENCE)) });
    poll_fn(|cx| match sim.receive_multicast(into) {
        Some(_) => Poll::Ready(Some(word(into, 0))),
        None => wait.as_mut().poll(cx).map(|_| None),
    })
    .await
}

/// Sends a word from rank 0 to all other ranks in each round. If `patient`, a rank waits for a word for any time.
async fn broadcast(sim: Sim, patient: bool) -> Result<u64, String> {
    let others = sim.size() - 1;
    let memory = sim.allocate(16).unwrap().local;
    let never = sim.counters().allocate();
    sim.join(GROUP);
    if sim.rank() > 0 {
        tell(&sim, 0, [ACK, 0, 0]);
        for round in 1..=ROUNDS {
            loop {
                match datagram(&sim, memory.part(0, 8), never, patient).await {
                    Some(word) if word == round => break,
                    // Rank 0 has repeated an old word for another rank.
                    Some(word) if word < round => {}
                    Some(word) => return Err(format!("round {round}: heard {word}")),
                    None => tell(&sim, 0, [NAK, round, 0]),
                }
            }
            tell(&sim, 0, [ACK, round, 0]);
        }
        return Ok(ROUNDS);
    }
    // Round 0: all have joined.
    for round in 0..=ROUNDS {
        set_word(memory, 8, round);
        if round > 0 {
            sim.multicast(GROUP, memory.part(8, 8)).unwrap();
        }
        let mut missing = others;
        while missing > 0 {
            match message(&sim, None).await {
                (_, Head([ACK, of, _])) if of == round => missing -= 1,
                (_, Head([NAK, of, _])) if of == round => {
                    sim.multicast(GROUP, memory.part(8, 8)).unwrap();
                }
                // A rank asks for the next word while another rank still misses this one.
                (_, Head([NAK, of, _])) if of == round + 1 => {}
                (from, head) => return Err(format!("rank {from} says {head:?}")),
            }
        }
    }
    Ok(ROUNDS)
}

#[test]
fn a_multicast_loss_ignored() {
    check(4, |sim| broadcast(sim, false), |sim| broadcast(sim, true));
}
