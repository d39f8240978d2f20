//! A small machine on which everything that can wait, waits: two rails on one bus, gaps, a cost of every copy, packets in any
//! order.

use std::rc::Rc;
use weft_fabric_sim::Machine;

const TEXT: &str = r#"
name = "test"
about = "for tests: everything costs something"
nodes = 64
ranks_per_node = RANKS

[host]
copy = 2000
reduce = 1000
call = 0.05
poll = 0.1
registration = 1.0
registration_page = 0.1

[[rail]]
bus = "bus"
bandwidth = 1000
mtu = 1024
inline = 64
fetch = 0.3
gap_out = 0.1
gap_in = 0.2
write = { overhead = 0.5, latency = 2.0 }
read = { overhead = 0.5, latency = 4.0 }
atomic = { overhead = 0.5, latency = 4.0 }
send = { overhead = 0.5, latency = 3.0 }
receive = { descriptor = 0.2, matching = 0.3 }
second = { overhead = 0.1, latency = 0.2 }
immediate = 0.4

[[rail]]
bus = "bus"
bandwidth = 1000
mtu = 1024
inline = 64
fetch = 0.3
gap_out = 0.1
gap_in = 0.2
write = { overhead = 0.5, latency = 2.0 }
read = { overhead = 0.5, latency = 4.0 }
atomic = { overhead = 0.5, latency = 4.0 }
send = { overhead = 0.5, latency = 3.0 }
receive = { descriptor = 0.2, matching = 0.3 }
second = { overhead = 0.1, latency = 0.2 }
immediate = 0.4

[[bus]]
name = "bus"
both = 1500

[local]
overhead = 0.1
latency = 0.3
bandwidth = 3000

[multicast]
overhead = 0.5
latency = 4.0
member = 0.1
receive = 0.2
loss = 0.01
largest = 1024
queue = 64
"#;

/// Returns the machine with this number of ranks per node.
pub fn machine(ranks_per_node: usize) -> Rc<Machine> {
    parse(&TEXT.replace("RANKS", &ranks_per_node.to_string()))
}

/// Returns the machine with all ranks on one node, where they share memory.
pub fn together(ranks: usize) -> Rc<Machine> {
    parse(&TEXT.replace("RANKS", &ranks.to_string()).replace("[local]", "[local]\nshared = true"))
}

/// Returns the machine with all ranks on one node of 64 processors: two sockets, each with four NUMA domains of two caches.
pub fn levels() -> Rc<Machine> {
    let level = |name: &str, processors: usize, line: f64| {
        format!(
            "[[level]]\nname = \"{name}\"\nprocessors = {processors}\nline = {line}\ncopy = 3000\n\n"
        )
    };
    let levels = [("cache", 4, 0.1), ("numa", 8, 0.2), ("socket", 32, 0.3), ("node", 64, 0.6)];
    let levels: String =
        levels.into_iter().map(|(name, processors, line)| level(name, processors, line)).collect();
    let text = TEXT.replace("RANKS", "64").replace("[local]", "[local]\nshared = true");
    parse(&text.replace("[multicast]", &format!("{levels}[multicast]")))
}

/// Returns the machine with one rank per node, on which packets become visible from their first byte to their last.
pub fn in_order() -> Rc<Machine> {
    parse(&TEXT.replace("RANKS", "1").replace("inline =", "in_order = true\ninline ="))
}

fn parse(text: &str) -> Rc<Machine> {
    Rc::new(Machine::parse("weft-fabric-testing/src/machine.rs", text).expect("a machine"))
}
