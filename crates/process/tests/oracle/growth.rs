//! Memory that a communicator keeps for its collective operations. Among four times as many ranks, a rank keeps no more memory,
//! except for a few further partners. With `--nocapture` the test prints the bytes that each design keeps.
//!
//! Numbers of bytes are totals of all simulated ranks, divided by the number of ranks. So data that a single rank keeps for all
//! ranks may have an entry for each rank, but data that every rank keeps may not.

use crate::allocations::{LIVE, MOST};
use crate::phantom_call::{ELEMENT, PhantomCall};
use std::rc::Rc;
use weft_collective::algorithm::{Algorithm, Carrier, Requirement};
use weft_collective::catalog::ALGORITHMS;
use weft_collective::{CollectiveKind, Selection, SelectionKey, SelectionReason};
use weft_fabric::boxed;
use weft_fabric::wait::WaitPolicy;
use weft_fabric_sim::units::Count;
use weft_fabric_sim::{Machine, SimOptions, run};
use weft_p2p::ProtocolLimits;
use weft_process::{Comm, Engine, Group};

const RANKS_PER_NODE: usize = 8;
const FEW: usize = 1024;
const MANY: usize = 4 * FEW;

/// Number of bytes of a payload.
const BYTES: usize = 32;

/// Root of operations: neither the leader of a node nor on the first node.
const ROOT: usize = 2 * RANKS_PER_NODE + 3;

/// Maximum number of bytes by which a rank's memory may grow from [`FEW`] ranks to [`MANY`]: one byte for each further rank. A list
/// has at least four bytes per rank.
const GROWTH: isize = (MANY - FEW) as isize;

/// Number of bytes per rank.
#[derive(Debug, Clone, Copy)]
struct Bytes {
    /// After an operation.
    kept: isize,
    /// Maximum at any time, including the simulator's own memory.
    most: isize,
}

fn machine(ranks: usize) -> Rc<Machine> {
    let mut machine = Machine::clone(&weft_fabric_testing::machine::machine(RANKS_PER_NODE));
    machine.nodes = Count(ranks.div_ceil(RANKS_PER_NODE));
    Rc::new(machine)
}

/// Runs an operation twice by an algorithm. Returns `None` if the algorithm is not eligible here.
fn bytes(ranks: usize, algorithm: &'static Algorithm) -> Option<Bytes> {
    let machine = machine(ranks);
    let group = Group::new((0..ranks as u32).collect::<Vec<_>>());
    let mut selection = Selection::default();
    selection.ask_for(CollectiveKind::Barrier, "MPI-DS").expect("an algorithm");
    selection.ask(algorithm.operation, Some(algorithm.usual()));
    let (selection, before) = (Rc::new(selection), LIVE.get());
    let call = PhantomCall { operation: algorithm.operation, bytes: BYTES, root: ROOT };
    MOST.set(before);
    let outcome = run(&machine, SimOptions::new(ranks), |sim| {
        let engine = Engine::new(boxed(sim), WaitPolicy::new(true), ProtocolLimits::default());
        let comm = Comm::world_of(&engine, group.clone());
        comm.select(selection.clone());
        engine.run(async move {
            let (site, commutes, equal) = (comm.site(), true, true);
            let case =
                SelectionKey { ranks, bytes: BYTES, element: ELEMENT, commutes, equal, site };
            if comm.chosen(algorithm.operation, &case).reason != SelectionReason::Asked {
                return None;
            }
            call.run(&comm).await.expect("no error");
            call.run(&comm).await.expect("no error");
            // The rank that leaves first finds the communicators of all other ranks.
            comm.barrier().await.expect("no error");
            Some(LIVE.get())
        })
    });
    let lives = outcome.expect("no deadlock").results;
    let kept = lives.into_iter().flatten().flatten().max()?;
    let each = |live: isize| (live - before) / ranks as isize;
    Some(Bytes { kept: each(kept), most: each(MOST.get()) })
}

/// Returns the algorithms whose names satisfy `named`, of operations without blocks by rank.
fn algorithms(named: impl Fn(&str) -> bool) -> impl Iterator<Item = &'static Algorithm> {
    use CollectiveKind::*;
    let whole = [Barrier, Bcast, Allreduce, Reduce, Scan, Exscan];
    ALGORITHMS.iter().filter(move |a| whole.contains(&a.operation) && named(a.name))
}

/// Returns the bytes of a rank among few ranks, and the growth among many ranks. `None` if the algorithm is not eligible here.
fn growth(algorithm: &'static Algorithm) -> Option<(Bytes, Bytes)> {
    let (less, more) = (bytes(FEW, algorithm)?, bytes(MANY, algorithm)?);
    let (operation, name) = (algorithm.operation, algorithm.name);
    println!("{operation:?} {name}: {less:?} of {FEW} ranks, {more:?} of {MANY}");
    Some((less, Bytes { kept: more.kept - less.kept, most: more.most - less.most }))
}

/// Memory that is kept, and memory that is needed on the way, is shared by all ranks, or grows only with the node and the partners.
#[test]
fn levels_take_no_more_of_a_rank_among_more_ranks() {
    let mut seen = 0;
    for algorithm in algorithms(|name| name == "TWO-LEVEL") {
        let (_, more) = growth(algorithm).expect("several ranks a node");
        assert!(more.kept < GROWTH && more.most < GROWTH, "{:?}: {more:?}", algorithm.operation);
        seen += 1;
    }
    assert_eq!(seen, 6);
}

/// The same holds for the other designs that keep memory, except for memory for partners: a rank has a few more partners. Designs
/// are left out that take as many messages as the square of the number of ranks: rings, and repairs of lost multicasts in these
/// numbers.
#[test]
fn no_design_keeps_a_list_of_all_ranks() {
    let mut seen = 0;
    for algorithm in algorithms(|name| name != "TWO-LEVEL") {
        let long =
            algorithm.cost.contains("N - 1") || algorithm.needs.contains(&Requirement::Multicast);
        if algorithm.carrier == Carrier::Messages || long {
            continue;
        }
        let Some((less, more)) = growth(algorithm) else { continue };
        let name = (algorithm.operation, algorithm.name);
        // There are twelve partners instead of ten.
        assert!(more.kept < less.kept / 5 + GROWTH, "{name:?}: {more:?}");
        seen += 1;
    }
    assert!(seen > 15, "{seen} designs");
}
