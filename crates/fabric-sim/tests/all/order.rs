//! Order of messages of one pair of ranks, if times are equal to the picosecond.

use std::cell::RefCell;
use std::rc::Rc;
use weft_fabric::{Fabric, FabricExt, Head, Sge, Work};
use weft_fabric_sim::units::MICROSECOND;
use weft_fabric_sim::{Machine, Sim, SimOptions, run};

/// Returns a machine on which one byte takes a nanosecond, and nothing else has a cost except the post and the latency.
fn machine() -> Rc<Machine> {
    let text = r#"
name = "equal"
about = "for a test"
nodes = 3

[host]
copy = 1e9
reduce = 1e9

[[rail]]
bandwidth = 1000
mtu = 1024
inline = 1024
in_order = true
write = { overhead = 0.5, latency = 2.0 }
second = { overhead = 0.0, latency = 0.0 }
read = { overhead = 0.5, latency = 4.0 }
atomic = { overhead = 0.5, latency = 4.0 }
send = { overhead = 0.5, latency = 2.0 }
receive = { matching = 0.25 }

[local]
overhead = 0.1
latency = 0.2
bandwidth = 10000
"#;
    Rc::new(Machine::parse("tests/all/order.rs", text).expect("a machine"))
}

/// Ranks 0 and 1 send 900 bytes each to rank 2, rank 0 a little later, so that its message waits at the port. The second message
/// of rank 0, which is empty, comes exactly at the time at which the port becomes free.
#[test]
fn a_message_that_finds_the_port_free_is_behind_one_that_waits_there() {
    let seen = Rc::new(RefCell::new(Vec::new()));
    let program = |sim: Sim| {
        let seen = seen.clone();
        async move {
            let payload = Sge::phantom(900);
            match sim.rank() {
                0 => {
                    sim.charge(Work::Compute(MICROSECOND / 5));
                    sim.send(2, Head([1, 0, 0]), payload, None);
                    // Rank 1's message arrives at 0.5 + 2.0 + 0.9 us, this message at 4.3 us. The next arrives then, too, if it
                    // has been posted by 2.3 us: a post takes 0.5 us, and the time is 0.7 us now.
                    sim.charge(Work::Compute(1_100_000));
                    sim.send(2, Head([2, 0, 0]), Sge::EMPTY, None);
                }
                1 => {
                    sim.send(2, Head([0, 0, 0]), payload, None);
                }
                _ => {
                    while seen.borrow().len() < 3 {
                        sim.charge(Work::Compute(MICROSECOND));
                        sim.catch_up().await;
                        while let Some(message) = sim.receive(None) {
                            seen.borrow_mut().push(message.head.0[0]);
                            sim.release(message);
                        }
                    }
                }
            }
        }
    };
    run(&machine(), SimOptions::new(3), program).unwrap();
    assert_eq!(*seen.borrow(), [0, 1, 2]);
}
