//! Ports and buses: the share of each of several messages at the same time.

use std::rc::Rc;
use weft_fabric::{Fabric, RemoteWrite, Sge, until};
use weft_fabric_sim::{Machine, Sim, SimOptions, run};

const BYTES: usize = 1 << 20;
const WRITES: u64 = 64;

/// Measures the bytes per microsecond (MB/s) that two nodes move in total. `senders` of them write to the other node.
fn throughput(machine: &str, senders: usize) -> f64 {
    let machine = Rc::new(Machine::load(machine).unwrap());
    let names = Rc::new(std::cell::RefCell::new(Vec::new()));
    let outcome = run(&machine, SimOptions::new(2), |sim: Sim| {
        names.borrow_mut().push(sim.expose(Sge::phantom(BYTES)).unwrap().remote);
        let names = names.clone();
        async move {
            let begin = sim.clock();
            let me = sim.rank();
            if me < senders {
                let done = sim.counters().allocate();
                let at = names.borrow()[1 - me];
                for _ in 0..WRITES {
                    sim.write(1 - me, &RemoteWrite::new(Sge::phantom(BYTES), at, Some(done)))
                        .unwrap();
                }
                until(&sim, done, WRITES).await.unwrap();
            }
            sim.clock() - begin
        }
    })
    .unwrap();
    let time = outcome.results.into_iter().flatten().max().unwrap() as f64 / 1e6;
    (senders as u64 * WRITES * BYTES as u64) as f64 / time
}

/// Allows the small gaps that whole messages leave when they take turns on a bus.
fn assert_near(found: f64, expected: f64) {
    assert!((found / expected - 1.0).abs() < 0.04, "{found:.0} MB/s instead of {expected:.0}");
}

/// A PCI-X bus carries both directions together. Departures do not keep the bus from arrivals.
#[test]
fn both_directions_share_a_bus() {
    assert_near(throughput("ia32", 1), 880.0);
    assert_near(throughput("ia32", 2), 941.0);
}

/// PCI Express carries each direction by itself.
#[test]
fn directions_do_not_disturb_each_other_where_nothing_is_shared() {
    assert_near(throughput("em64t", 1), 971.0);
    assert_near(throughput("em64t", 2), 2.0 * 971.0);
}
