//! Small protocols, each in a right and a wrong form. Exploration finds the error of the wrong form within 1000 seeds, and none
//! in 1000 seeds of the right form. They are also examples of exploration.

mod credits;
mod last_byte;
mod lost;
mod order;
mod reuse;

use std::future::{Future, poll_fn};
use std::rc::Rc;
use std::task::Poll;
use weft_fabric::{Fabric, Head, Region, RemoteAddr, Sge};
use weft_fabric_sim::explore::WrongSeed;
use weft_fabric_sim::{Machine, Sim, SimOptions, explore};
use weft_fabric_testing::machine;

const SEEDS: u64 = 1000;

/// Checks both forms on `ranks` ranks, one a node. Returns the failure of the wrong form.
fn check<P: Future<Output = Result<u64, String>> + 'static>(
    ranks: usize,
    right: impl Fn(Sim) -> P,
    wrong: impl Fn(Sim) -> P,
) -> WrongSeed {
    check_on(&machine::machine(1), ranks, right, wrong)
}

fn check_on<P: Future<Output = Result<u64, String>> + 'static>(
    machine: &Rc<Machine>,
    ranks: usize,
    right: impl Fn(Sim) -> P,
    wrong: impl Fn(Sim) -> P,
) -> WrongSeed {
    match explore(machine, SimOptions::new(ranks), 0..SEEDS, right) {
        Ok(explored) => assert_eq!(explored.seeds, SEEDS),
        Err(found) => panic!("the right form: {found}"),
    }
    let found = explore(machine, SimOptions::new(ranks), 0..SEEDS, wrong);
    let found = found.expect_err("an error is planted");
    println!("{found}");
    found
}

/// Returns the sender and head of the next message from `from`, or from any rank.
async fn message(sim: &Sim, from: Option<usize>) -> (usize, Head) {
    poll_fn(|_| match sim.receive(from) {
        Some(message) => {
            let seen = (message.peer, message.head);
            sim.release(message);
            Poll::Ready(seen)
        }
        None => Poll::Pending,
    })
    .await
}

/// Sends a message of three words.
fn tell(sim: &Sim, to: usize, words: [u64; 3]) {
    sim.send(to, Head(words), Sge::EMPTY, None);
}

/// Returns the address of each rank's region: all ranks send theirs to all.
async fn addresses(sim: &Sim, mine: Region) -> Vec<RemoteAddr> {
    let mut all = vec![mine.remote; sim.size()];
    let others: Vec<_> = (0..sim.size()).filter(|&r| r != sim.rank()).collect();
    for &other in &others {
        tell(sim, other, [mine.remote.key.0[0], mine.remote.addr, 0]);
    }
    for &other in &others {
        let (_, Head([key, addr, _])) = message(sim, Some(other)).await;
        all[other] = RemoteAddr::new(key, addr);
    }
    all
}

fn word(memory: Sge, offset: usize) -> u64 {
    let mut bytes = [0; 8];
    memory.part(offset, 8).read(&mut bytes);
    u64::from_ne_bytes(bytes)
}

fn set_word(memory: Sge, offset: usize, value: u64) {
    memory.part(offset, 8).fill(&value.to_ne_bytes());
}
