//! Large counts: more elements than 32 bits can count, in virtual time and without the memory for them.

use std::cell::RefCell;
use std::rc::Rc;
use weft_collective::algorithm::{Algorithm, Carrier};
use weft_collective::{RankPlacement, SelectionKey};
use weft_fabric::boxed;
use weft_fabric::wait::WaitPolicy;
use weft_fabric_sim::{Machine, SimOptions, run};
use weft_p2p::ProtocolLimits;
use weft_patterns::{ALL, PatternPlan, PatternRank, PatternWorld, PayloadPresence};

/// Number of elements, of four bytes each.
const ELEMENTS: usize = 3_000_000_000;
/// Rates of the machine of these tests, in MB/s (bytes a microsecond).
const BANDWIDTH: f64 = 40_000.0;
const HOST: f64 = 10_000.0;

/// Returns the figures of one plan whose payload has sizes only: microseconds, or MB/s.
fn simulated(machine: &Rc<Machine>, plan: &PatternPlan) -> Vec<f64> {
    let world = PatternWorld::new(plan.clone()).expect("a plan that fits");
    let failed = Rc::new(RefCell::new(None));
    let outcome = run(machine, SimOptions::new(plan.ranks), |sim| {
        let rank =
            PatternRank::new(boxed(sim), WaitPolicy::new(true), ProtocolLimits::default(), &world)
                .program();
        let failed = failed.clone();
        async move { rank.await.map_err(|error| *failed.borrow_mut() = Some(error)).ok() }
    });
    assert!(failed.borrow().is_none(), "{plan:?}: {:?}", failed.borrow());
    let laps = outcome.unwrap_or_else(|e| panic!("{plan:?}: {e}")).results;
    let laps: Vec<_> = laps.into_iter().flatten().flatten().collect();
    plan.about.measured.figures(&laps, plan.bytes)
}

fn machine() -> Rc<Machine> {
    let (bandwidth, host) = (BANDWIDTH.to_string(), HOST.to_string());
    let rates = [("rail.bandwidth", &*bandwidth), ("host.copy", &*host), ("host.reduce", &*host)];
    Rc::new(Machine::load_with("ndr", &rates).expect("a machine"))
}

fn large(pattern: &str, ranks: usize) -> PatternPlan {
    let plan = PatternPlan::new(pattern, ranks).expect("a pattern");
    let once = PatternPlan { warm_up: 0, repeat: 1, payload: PayloadPresence::Phantom, ..plan };
    PatternPlan { bytes: 4 * ELEMENTS, isolated: true, ..once }
}

/// Returns the peak memory of this process, in bytes.
fn high_water() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).expect("a high-water mark");
    let kilobytes = line.trim().strip_suffix(" kB").expect("kB");
    kilobytes.parse::<usize>().expect("a number") * 1024
}

/// The time lies between the minimum that the ports need, and twice the time of a tree that moves, copies and adds everything in
/// each of its rounds, up and down.
#[test]
fn an_allreduce_takes_what_its_bytes_take() {
    let machine = machine();
    for algorithm in ["MPI-PE", "MPI-GB"] {
        for ranks in [2, 5, 16] {
            let plan = large("allreduce", ranks).algorithm(algorithm).expect("an algorithm");
            let time = simulated(&machine, &plan)[0];
            let (bytes, n) = (plan.bytes as f64, ranks as f64);
            let ports = machine.rail.len() as f64 * BANDWIDTH;
            let least = 2.0 * (n - 1.0) / n * bytes / ports;
            let most = 2.0 * 2.0 * n.log2().ceil() * bytes * (1.0 / BANDWIDTH + 2.0 / HOST);
            assert!((least..most).contains(&time), "{plan:?}: {time} us, not {least} to {most}");
            // A tenth of the elements takes a tenth of the time, so no element was cut off.
            let tenth =
                simulated(&machine, &PatternPlan { bytes: plan.bytes / 10, ..plan.clone() })[0];
            assert!((9.0..11.0).contains(&(time / tenth)), "{plan:?}: {time} us, a tenth {tenth}");
        }
    }
}

/// A network of single ranks, without multicast.
const EVERYWHERE: SelectionKey = {
    let site = RankPlacement::apart(6);
    SelectionKey { ranks: 0, bytes: 0, element: 1, commutes: true, equal: true, site }
};

/// All patterns of messages carry this number of elements. The payload of one rank would be 12 GB.
#[test]
fn memory_is_bounded() {
    let (machine, before) = (machine(), high_water());
    let mut done = 0;
    for about in ALL.iter().filter(|about| about.payload.is_some() && !about.bare) {
        for algorithm in about.algorithms() {
            let mut plan = large(about.name, 6).algorithm(algorithm.name).expect("both are known");
            if let Some(choice) = &mut plan.algorithm.choice {
                let Algorithm { carrier, parameter, .. } = choice.algorithm;
                // Streams have many segments; their memory has a bound and tests of its own.
                if *carrier == Carrier::Streams {
                    continue;
                }
                if let Some(range) = parameter.filter(|range| range.what.starts_with("segment")) {
                    choice.parameter = range.most;
                }
            }
            let case = SelectionKey { ranks: 6, bytes: plan.bytes, element: 4, ..EVERYWHERE };
            if algorithm.choice.is_some_and(|c| c.algorithm.eligible(&case).is_err()) {
                continue;
            }
            let figures = simulated(&machine, &plan);
            assert!(figures.len() == 1 && figures[0] > 0.0, "{plan:?}: {figures:?}");
            done += 1;
        }
    }
    assert!(done >= 10, "{done} algorithms");
    let more = high_water() - before;
    assert!(more < 64 << 20, "{more} bytes more than before");
}
