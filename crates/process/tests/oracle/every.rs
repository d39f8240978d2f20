//! Every algorithm of the catalogue, for every number of ranks from 1 to 33, in place and not in place, with operators that do not
//! commute, derived types and no elements at all: the result equals the result of an oracle.
//!
//! A new entry of the catalogue is tested without further code.

use crate::simulated::calls::{self, Form, SMALL};
use crate::simulated::memory::Layout;
use crate::simulated::ops::Op;
use crate::simulated::world::{Blocking, Notes, name, share, simulate};
use std::sync::Arc;
use weft_collective::algorithm::{Algorithm, Carrier, Requirement};
use weft_collective::catalog::ALGORITHMS;
use weft_fabric_sim::{Chaos, SimOptions};
use weft_fabric_testing::machine::{self, machine, together};

/// Checks that every algorithm that is carried by one of `carriers` served at least once. Without hierarchies among them, the test has
/// no levels, and algorithms that need levels are left out.
fn all_served(notes: &Notes, carriers: &[Carrier]) {
    let served = notes.served.lock().unwrap();
    let has_levels = carriers.contains(&Carrier::Hierarchy);
    let missing: Vec<_> = ALGORITHMS
        .iter()
        .filter(|a| carriers.contains(&a.carrier))
        .filter(|a| has_levels || !a.needs.contains(&Requirement::Levels))
        .map(|a| name(a.usual()))
        .filter(|name| !served.contains(name))
        .collect();
    assert!(missing.is_empty(), "eligible nowhere in this test: {missing:?}");
}

/// Returns the compositions of levels, and the other algorithms that need levels.
fn hierarchies() -> impl Iterator<Item = &'static Algorithm> {
    let needs_levels = |a: &Algorithm| a.needs.contains(&Requirement::Levels);
    ALGORITHMS.iter().filter(move |a| a.carrier == Carrier::Hierarchy || needs_levels(a))
}

/// Simulates all calls with one rank per node, or with several.
fn simulated(ranks: impl Iterator<Item = usize>) {
    let (notes, machines) = (Arc::new(Notes::default()), [machine(1), machine(4)]);
    for n in ranks {
        // Compositions of levels need several nodes, and several ranks on a node.
        let machine = &machines[usize::from(n % 3 == 1)];
        simulate(machine, SimOptions::new(n), Blocking, calls::all(n, &SMALL), &notes);
        // Some compositions need groups of the same size.
        let whole = n.next_multiple_of(4);
        let levels = hierarchies().flat_map(|a| calls::of(a, whole, &SMALL)).collect();
        simulate(&machine::levels(), SimOptions::new(whole), Blocking, levels, &notes);
    }
    use Carrier::*;
    all_served(&notes, &[Messages, Streams, Writes, Immediates, Atomics, Reads, Hierarchy]);
    let refused = notes.refused.lock().unwrap();
    assert!(refused.contains("the operator does not commute"), "{refused:?}");
    assert!(refused.contains("the ranks do not share memory"), "{refused:?}");
}

#[test]
fn all_algorithms_on_an_odd_number_of_ranks() {
    // 4 is included, so that algorithms for powers of two are tested.
    simulated((1..=33).filter(|n| n % 2 == 1).chain([4]));
}

#[test]
fn all_algorithms_on_an_even_number_of_ranks() {
    simulated((1..=33).filter(|n| n % 2 == 0));
}

/// Ranks of one node, for every number of ranks.
#[test]
fn algorithms_of_shared_memory_in_virtual_time() {
    let notes = Arc::new(Notes::default());
    let memory = || ALGORITHMS.iter().filter(|a| a.carrier == Carrier::Memory);
    for n in 1..=33 {
        let calls = memory().flat_map(|a| calls::of(a, n, &SMALL)).collect();
        simulate(&together(n), SimOptions::new(n), Blocking, calls, &notes);
    }
    for n in [2, 3, 8] {
        let options = SimOptions::new(n).seed(5).chaos(Chaos::rough());
        let calls = memory().flat_map(|a| calls::of(a, n, &SMALL)).collect();
        simulate(&together(n), options, Blocking, calls, &notes);
    }
    all_served(&notes, &[Carrier::Memory]);
}

#[test]
fn all_algorithms_in_trouble_with_three_multicasts_of_ten_lost() {
    let notes = Arc::new(Notes::default());
    let chaos = Chaos { loss: Some(weft_fabric_sim::units::Chance(0.3)), ..Chaos::rough() };
    for n in [2, 3, 4, 7, 8, 16] {
        for seed in 1..=2 {
            let options = SimOptions::new(n).seed(seed).chaos(chaos);
            let counts =
                simulate(&machine(1 + n % 3), options, Blocking, calls::all(n, &SMALL), &notes);
            assert!(counts.lost_datagrams > 0, "{counts:?}");
        }
    }
}

#[test]
fn all_algorithms_on_shared_memory() {
    let notes = Arc::new(Notes::default());
    for n in 1..=9 {
        share(n, "", Blocking, calls::all(n, &SMALL), &notes);
    }
    // Some algorithms support only somewhat longer data.
    let longer = Form {
        count: 300,
        op: Op::Sum,
        layouts: (Layout::Dense, Layout::Gaps),
        in_place: false,
        varying: false,
    };
    for n in [2, 3, 5] {
        share(n, "", Blocking, calls::all(n, &[longer]), &notes);
    }
    use Carrier::*;
    all_served(&notes, &[Messages, Streams, Writes, Immediates, Atomics, Reads, Memory]);
}

#[test]
fn all_algorithms_on_shared_memory_in_trouble() {
    let notes = Arc::new(Notes::default());
    let faults = "seed=3,multicast_loss=0.3,multicast_duplicate=0.1,message_delay=0.1,reorder=1,\
                  completion_delay=0.3,registration_failure=0.3,mtu=256";
    for n in [2, 5] {
        share(n, faults, Blocking, calls::all(n, &SMALL), &notes);
    }
}
