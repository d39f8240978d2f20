//! Ports and buses: the times at which messages leave and arrive.
//!
//! ```text
//!   post ──wait for port and bus──> start ── latency + n / bandwidth ──> tail ──wait for port and bus──> arrived
//! ```
//! A port carries one message at a time in each direction, for the time of its bytes and at least for its gap. A message that is
//! alone on the machine never waits.

use crate::machine::Machine;
use crate::token_bucket::{BucketLimits, TokenBucket};
use crate::units::{Picoseconds, Rate};

/// Time at which a port or a bus is free again.
type Free = Picoseconds;

#[derive(Debug, Clone, Copy, Default)]
struct SwitchPort {
    out: Free,
    into: Inwards,
    /// Time at which the port would have taken all messages so far at the interval of [`Burst`](crate::machine::Burst).
    full: Free,
    /// Buckets of the two directions, if the port has them.
    bucket_out: TokenBucket,
    bucket_in: TokenBucket,
    dead: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct BusState {
    out: Free,
    into: Inwards,
    both: Free,
}

/// Inward traffic of a port or a bus.
#[derive(Debug, Clone, Copy, Default)]
struct Inwards {
    free: Free,
    /// Start and end of the last period in which no message came in.
    idle: (Picoseconds, Picoseconds),
}

impl Inwards {
    /// Occupies the port or bus for `time` with a message whose last byte comes at `now`. Returns the time at which the message has
    /// passed. The port may have been busy with the message while its bytes were arriving. Messages that came in between delay the
    /// message only by their own time.
    fn carry(&mut self, now: Picoseconds, time: Picoseconds) -> Picoseconds {
        let begin = now.saturating_sub(time);
        let (from, to) = self.idle;
        let unused = to.min(now).saturating_sub(from.max(begin));
        let done = now.max(self.free + time.saturating_sub(unused));
        self.idle = match begin > self.free {
            true => (self.free, begin),
            false => (0, 0),
        };
        done
    }
}

/// Constants of one rail.
#[derive(Debug, Clone, Copy)]
struct Path {
    /// Rate of a message that waits for nothing.
    line: Rate,
    /// Limit of each direction, if the line is faster than its bandwidth.
    bucket: Option<BucketLimits>,
    /// Rate of a message that is alone: the lower of the rates of line and bus.
    slowest: Rate,
    gap_out: Picoseconds,
    gap_in: Picoseconds,
    /// Maximum number of messages that may arrive together, and the interval of further messages.
    burst: Option<(u64, Picoseconds)>,
    bus: Option<usize>,
}

/// Constants of one bus. A direction without a limit takes no time.
#[derive(Debug, Clone, Copy)]
struct BusPath {
    out: Rate,
    into: Rate,
    both: Rate,
}

/// The network's state.
pub struct NetworkState {
    contention: bool,
    deaths: bool,
    rails: usize,
    paths: Vec<Path>,
    buses: Vec<BusPath>,
    ports: Vec<SwitchPort>,
    states: Vec<BusState>,
}

fn slower(a: Rate, b: Rate) -> Rate {
    if a.time(1 << 20) >= b.time(1 << 20) { a } else { b }
}

impl NetworkState {
    pub fn new(machine: &Machine, nodes: usize) -> NetworkState {
        let limit = |rate: Option<Rate>| rate.unwrap_or(Rate::INFINITE);
        let buses: Vec<BusPath> = machine
            .bus
            .iter()
            .map(|b| BusPath { out: limit(b.out), into: limit(b.into), both: limit(b.both) })
            .collect();
        let path = |rail: &crate::machine::NetworkPort| {
            let bus = machine.bus.iter().position(|b| Some(&b.name) == rail.bus.as_ref());
            let slowest = bus.map_or(rail.line(), |b| {
                let BusPath { out, into, both } = buses[b];
                slower(rail.line(), slower(out, slower(into, both)))
            });
            let (gap_out, gap_in) = (rail.gap_out.0, rail.gap_in.0);
            let burst = rail.burst.map(|b| (b.messages.0 as u64, b.gap.0));
            let (line, bucket) = (rail.line(), BucketLimits::of(rail));
            Path { line, bucket, slowest, gap_out, gap_in, burst, bus }
        };
        let paths: Vec<Path> = machine.rail.iter().map(path).collect();
        let rails = paths.len();
        let ports = vec![SwitchPort::default(); nodes * rails];
        let states = vec![BusState::default(); nodes * buses.len()];
        NetworkState {
            contention: machine.contention,
            deaths: false,
            rails,
            paths,
            buses,
            ports,
            states,
        }
    }

    fn bus(&self, node: usize, rail: usize) -> Option<(usize, usize)> {
        self.paths[rail].bus.map(|bus| (bus, node * self.buses.len() + bus))
    }

    /// Returns true if a rail shares a bus with other traffic. Then a departure must not be computed before its time, because it
    /// would block the bus for arrivals until then.
    #[inline]
    pub fn shares(&self, rail: usize) -> bool {
        self.contention && self.paths[rail].bus.is_some()
    }

    /// Returns the time at which port and bus are free for a departure.
    pub fn free(&self, node: usize, rail: usize) -> Picoseconds {
        let port = self.ports[node * self.rails + rail].out;
        self.bus(node, rail).map_or(port, |(_, i)| {
            let BusState { out, both, .. } = self.states[i];
            port.max(out).max(both)
        })
    }

    /// Sends a message of `bytes` bytes, which is ready at `at`, out of `node`. Returns the time at which its last byte reaches the
    /// receiver's port if nothing delays it there.
    pub fn depart(
        &mut self,
        node: usize,
        rail: usize,
        at: Picoseconds,
        bytes: usize,
        latency: Picoseconds,
    ) -> Picoseconds {
        let path = self.paths[rail];
        if !self.contention {
            // Each message finds a full bucket.
            let tokens = path.bucket.map_or(0, |b| TokenBucket::default().send(b, at, bytes));
            return (at + path.slowest.time(bytes)).max(tokens) + latency;
        }
        let bus = self.bus(node, rail);
        let port = &mut self.ports[node * self.rails + rail];
        let mut start = at.max(port.out);
        if let Some((_, i)) = bus {
            start = start.max(self.states[i].out).max(self.states[i].both);
        }
        let tokens = path.bucket.map_or(0, |b| port.bucket_out.send(b, start, bytes));
        port.out = (start + path.gap_out.max(path.line.time(bytes))).max(tokens);
        if let Some((bus, i)) = bus {
            self.states[i].out = start + self.buses[bus].out.time(bytes);
            self.states[i].both = start + self.buses[bus].both.time(bytes);
        }
        (start + path.slowest.time(bytes)).max(tokens) + latency
    }

    /// Returns true if the port has taken another message exactly at `now`, even if the event of this message is handled later.
    /// Then a message that comes now has to wait.
    #[inline]
    pub fn is_taken(&self, node: usize, rail: usize, now: Picoseconds) -> bool {
        self.contention && self.ports[node * self.rails + rail].into.free == now
    }

    /// Returns the time of arrival of a message whose last byte would arrive at `now`. The time is later than `now` if other
    /// messages are before it.
    pub fn arrive(
        &mut self,
        node: usize,
        rail: usize,
        now: Picoseconds,
        bytes: usize,
    ) -> Picoseconds {
        let path = self.paths[rail];
        if !self.contention {
            return now;
        }
        let bus = self.bus(node, rail);
        let port = &mut self.ports[node * self.rails + rail];
        let mut done = port.into.carry(now, path.gap_in.max(path.line.time(bytes)));
        if let Some(limits) = path.bucket {
            done = done.max(port.bucket_in.receive(limits, now, bytes));
        }
        if let Some((messages, gap)) = path.burst {
            done = done.max(port.full.saturating_sub((messages - 1) * gap));
            port.full = port.full.max(now) + gap;
        }
        if let Some((bus, i)) = bus {
            let (limits, state) = (self.buses[bus], &mut self.states[i]);
            done = state
                .into
                .carry(done, limits.into.time(bytes))
                .max(state.both + limits.both.time(bytes));
            (state.into.free, state.both) = (done, done);
        }
        port.into.free = done;
        done
    }

    /// Returns the first rail that works at both nodes.
    #[inline]
    pub fn rail(&self, from: usize, to: usize) -> Option<usize> {
        if !self.deaths {
            return Some(0);
        }
        (0..self.rails).find(|&rail| self.works(from, rail) && self.works(to, rail))
    }

    #[inline]
    pub fn works(&self, node: usize, rail: usize) -> bool {
        !self.deaths || !self.ports[node * self.rails + rail].dead
    }

    pub fn kill(&mut self, node: usize, rail: usize) {
        self.deaths = true;
        self.ports[node * self.rails + rail].dead = true;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks a long message whose last byte comes just after a short message. Its other bytes had already arrived, so it is
    /// delayed only by the time of the short message.
    #[test]
    fn a_short_message_does_not_hold_up_a_long_one_by_its_length() {
        let mut port = Inwards::default();
        assert_eq!(port.carry(1000, 5), 1000);
        port.free = 1000;
        assert_eq!(port.carry(1002, 300), 1007);
        port.free = 1007;
        // If two messages come at the same time, the second is carried after the first.
        assert_eq!(port.carry(2000, 300), 2000);
        port.free = 2000;
        assert_eq!(port.carry(2000, 300), 2300);
    }

    #[test]
    fn a_gap_lies_between_messages_that_arrive_together() {
        let mut port = Inwards::default();
        for i in 0..4 {
            assert_eq!(port.carry(100, 10), 100 + 10 * i);
            port.free = 100 + 10 * i;
        }
    }
}
