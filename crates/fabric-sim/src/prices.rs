//! The numbers of a machine that each operation needs, in one struct.

use crate::machine::{Cost, Machine};
use crate::units::{Picoseconds, Rate};

/// Cost of a kind of operation without payload.
#[derive(Debug, Clone, Copy, Default)]
pub struct Price {
    /// Time of the processor that posts.
    pub overhead: Picoseconds,
    pub latency: Picoseconds,
}

impl From<Cost> for Price {
    fn from(cost: Cost) -> Price {
        Price { overhead: cost.overhead.0, latency: cost.latency.0 }
    }
}

/// Costs of the host and of the first rail. Other rails differ only in numbers that [`crate::network`] uses.
#[derive(Debug, Clone, Copy)]
pub struct Prices {
    pub write: Price,
    pub read: Price,
    pub atomic: Price,
    pub send: Price,
    pub second: Price,
    pub local: Price,
    pub immediate: Picoseconds,
    pub fetch: Picoseconds,
    pub descriptor: Picoseconds,
    pub matching: Picoseconds,
    pub poll: Picoseconds,
    /// Time at the start of each collective operation.
    pub entry: Picoseconds,
    /// Time before each copy and each reduction.
    pub call: Picoseconds,
    pub registration: Picoseconds,
    pub registration_page: Picoseconds,
    pub reduce: Rate,
    /// Rate of a message that waits for nothing.
    pub bandwidth: Rate,
    /// Maximum inline payload, in bytes.
    pub inline: usize,
    pub mtu: usize,
    pub in_order: bool,
    /// Round trip through the kernel's network code in nanoseconds, or 0.
    pub round_trip: u32,
}

impl Prices {
    pub fn of(machine: &Machine) -> Prices {
        let (rail, host) = (&machine.rail[0], &machine.host);
        let local = Cost { overhead: machine.local.overhead, latency: machine.local.latency };
        Prices {
            write: rail.write.into(),
            read: rail.read.into(),
            atomic: rail.atomic.into(),
            send: rail.send.into(),
            second: rail.second.into(),
            local: local.into(),
            immediate: rail.immediate.0,
            fetch: rail.fetch.0,
            descriptor: rail.receive.descriptor.0,
            matching: rail.receive.matching.0,
            poll: host.poll.0,
            entry: host.entry.0,
            call: host.call.0,
            registration: host.registration.0,
            registration_page: host.registration_page.0,
            reduce: host.reduce,
            bandwidth: rail.line(),
            inline: rail.inline,
            mtu: rail.mtu.0,
            in_order: rail.in_order,
            round_trip: u32::try_from(rail.round_trip.0 / 1000).unwrap_or(u32::MAX),
        }
    }
}
