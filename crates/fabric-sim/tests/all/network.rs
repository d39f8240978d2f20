//! Ports and buses: the share of each of several messages at the same time.

use std::rc::Rc;
use weft_fabric::{Fabric, RemoteWrite, Sge, until};
use weft_fabric_sim::units::{Picoseconds, Rate};
use weft_fabric_sim::{Machine, Sim, SimOptions, run};

const BYTES: usize = 1 << 20;
const WRITES: u64 = 64;

/// Measures the bytes per microsecond (MB/s) that two nodes move in total. `senders` of them write to the other node.
fn throughput(machine: &str, senders: usize) -> f64 {
    let time = time_of_writes(Machine::load(machine).unwrap(), senders) as f64 / 1e6;
    (senders as u64 * WRITES * BYTES as u64) as f64 / time
}

/// Returns the virtual time of the writes of `senders` nodes to the other node.
fn time_of_writes(machine: Machine, senders: usize) -> Picoseconds {
    let machine = Rc::new(machine);
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
    outcome.results.into_iter().flatten().max().unwrap()
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

/// Returns a machine with a rail of `bandwidth` MB/s. `bucket` is the line of the file for the rail's token bucket, or empty.
fn shaped(bandwidth: u32, bucket: &str) -> Machine {
    let text = format!(
        "name = \"shaped\"\nabout = \"a shaped port\"\nnodes = 2\n[host]\ncopy = 1000\nreduce = 1000\n[[rail]]\nbandwidth = {bandwidth}\n\
         mtu = 65536\n{bucket}\nwrite = {{ overhead = 0, latency = 2 }}\nsecond = {{ overhead = 0, latency = 0 }}\n\
         read = {{ overhead = 0, latency = 4 }}\natomic = {{ overhead = 0, latency = 4 }}\nsend = {{ overhead = 0, latency = 2 }}\n\
         receive = {{ matching = 0 }}\n[local]\noverhead = 0\nlatency = 0\nbandwidth = 1000\n"
    );
    Machine::parse("shaped", &text).unwrap()
}

/// A stream gains the time of the bucket's bytes, once. A stream within the bucket passes at the rate of the line.
#[test]
fn a_token_bucket_lets_its_bytes_through_and_then_holds_the_rate() {
    let plain = time_of_writes(shaped(125, ""), 1);
    let bucket = |bytes: usize| {
        let line = format!("bucket = {{ bytes = {bytes}, line = 1000 }}");
        time_of_writes(shaped(125, &line), 1)
    };
    let saved = |bytes: usize| Rate::from_mb_per_s(125.0).time(bytes);
    for bytes in [1, 256 << 10, 5 << 20] {
        assert_eq!(plain - bucket(bytes), saved(bytes), "{bytes}");
    }
    let all = WRITES as usize * BYTES;
    assert_eq!(bucket(all), time_of_writes(shaped(1000, ""), 1));
    // Both directions have a bucket each.
    let both = |bytes| {
        let line = format!("bucket = {{ bytes = {bytes}, line = 1000 }}");
        time_of_writes(shaped(125, &line), 2)
    };
    assert_eq!(both(256 << 10), bucket(256 << 10));
}
