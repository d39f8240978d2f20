//! Start and end of flights: posts, launches over ports and buses, and the next event.

use crate::in_flight::{FlightAction, NO_RAIL, SimFlight};
use crate::node_levels::CarriedSpan;
use crate::processes::RankProcesses;
use crate::units::Picoseconds;
use crate::world::{POLLS, WorldState};
use std::rc::Rc;
use weft_fabric::{GroupId, Sge, Staging};

/// Maximum number of parts in which a write is placed.
const MOST_PARTS: usize = 16;

impl WorldState {
    /// Schedules an effect at time `at`, without use of the network. Returns its flight.
    pub fn post(&mut self, at: Picoseconds, from: usize, to: usize, action: FlightAction) -> u32 {
        let flight = SimFlight { to: to as u32, ..SimFlight::aside(action, from, self.now) };
        let index = self.flights.add(flight);
        self.queue.push(at, index);
        index
    }

    /// Sends `bytes` bytes over the network, with the latency `latency` of the operation. Returns `None` if no path works.
    pub fn launch(
        &mut self,
        at: Picoseconds,
        from: usize,
        to: usize,
        bytes: usize,
        latency: Picoseconds,
        action: FlightAction,
    ) -> Option<u32> {
        self.launch_over(None, at, from, to, bytes, latency, action)
    }

    /// Sends bytes as [`launch`](Self::launch), over `rail` if the rail works.
    #[allow(clippy::too_many_arguments)]
    pub fn launch_over(
        &mut self,
        rail: Option<usize>,
        at: Picoseconds,
        from: usize,
        to: usize,
        bytes: usize,
        latency: Picoseconds,
        action: FlightAction,
    ) -> Option<u32> {
        let path = rail.map(|rail| (from as u32, to as u32, rail as u8));
        let mut flight = SimFlight { to: to as u32, bytes, ..SimFlight::aside(action, from, at) };
        let (a, b) = (self.node(from), self.node(to));
        let mut tail = if a == b && self.levels.is_some() {
            // The flight begins at its time, in the order of all flights of the node.
            flight.leaving = true;
            let index = self.flights.add(flight);
            self.queue.push(at, index);
            return Some(index);
        } else if a == b {
            at + self.time_within_node(&flight)
        } else {
            let works = |&rail: &usize| self.network.works(a, rail) && self.network.works(b, rail);
            let Some(rail) = rail.filter(works).or_else(|| self.network.rail(a, b)) else {
                self.part(from, to, at);
                return None;
            };
            flight.rail = rail as u8;
            flight.admitted = false;
            if self.network.shares(rail) {
                (flight.leaving, flight.latency) = (true, latency);
                let index = self.flights.add(flight);
                self.queue.push(at, index);
                return Some(index);
            }
            self.network.depart(a, rail, at, bytes, latency)
        };
        if self.options.jitter.0 > 0 || self.options.chaos.is_some() {
            tail = self.unsteady(tail);
        }
        if matches!(flight.action, FlightAction::Message { .. }) {
            tail = self.in_order(from, to, at, tail);
        }
        if let Some(path) = path {
            tail = self.behind.tail(path, &flight.action, tail);
        }
        let index = self.flights.add(flight);
        self.queue.push(tail, index);
        Some(index)
    }

    /// Sends a write of more than one packet, in parts. A part chosen at random arrives last and ends the write with `then`. The
    /// other parts arrive before it, in any order.
    #[allow(clippy::too_many_arguments)]
    pub fn launch_packets(
        &mut self,
        rail: Option<usize>,
        at: Picoseconds,
        from: usize,
        to: usize,
        bytes: usize,
        latency: Picoseconds,
        mtu: usize,
        action: FlightAction,
    ) -> Option<u32> {
        let FlightAction::Write { src, dst, then, done } = action else {
            unreachable!("writes only")
        };
        let per_part = mtu * src.len().div_ceil(mtu).div_ceil(MOST_PARTS);
        let mut parts: Vec<usize> = (0..src.len()).step_by(per_part).collect();
        self.rng.shuffle(&mut parts);
        let last = parts.pop().expect("a write of many packets has one");
        let processes = self.processes.clone();
        let part = |at: usize| {
            let part = src.part(at, per_part.min(src.len() - at));
            let spares = |processes: &Rc<dyn RankProcesses>| {
                processes.spares(src.len(), at..at + part.len())
            };
            if processes.as_ref().is_some_and(spares) { Sge::phantom(part.len()) } else { part }
        };
        let length = self.prices.bandwidth.time(src.len());
        // The part that is placed last ends the write. The other parts are placed earlier, at random times.
        let arrived = at + latency + length;
        let mut times: Vec<_> = parts
            .iter()
            .map(|_| arrived - self.rng.u64(0..=length.min(latency + length)))
            .collect();
        times.sort_unstable();
        for (offset, time) in parts.into_iter().zip(times) {
            let action =
                FlightAction::Packets { src: part(offset), dst: dst.offset(offset as u64) };
            let index = self.post(time.max(self.now), from, to, action);
            self.flights[index].begun = at;
        }
        let rest =
            FlightAction::Write { src: part(last), dst: dst.offset(last as u64), then, done };
        self.launch_over(rail, at, from, to, bytes, latency, rest)
    }

    /// Sends a datagram to all members of a group.
    pub fn launch_datagram(
        &mut self,
        at: Picoseconds,
        from: usize,
        group: GroupId,
        payload: Staging,
        latency: Picoseconds,
    ) {
        let (bytes, node) = (payload.len(), self.node(from));
        let Some(rail) = self.network.rail(node, node) else { return };
        let action = FlightAction::Datagram { group, payload, member: None };
        let mut flight = SimFlight { bytes, latency, ..SimFlight::aside(action, from, at) };
        if self.network.shares(rail) {
            // The datagram waits in the same queue as all other flights, so that it does not keep earlier flights from leaving.
            (flight.rail, flight.leaving) = (rail as u8, true);
            let index = self.flights.add(flight);
            self.queue.push(at, index);
            return;
        }
        let tail = self.network.depart(node, rail, at, bytes, latency);
        let index = self.flights.add(flight);
        self.fan_out(index, tail);
    }

    /// Delivers a datagram that has left to the members of its group, at times around `tail`.
    fn fan_out(&mut self, number: u32, tail: Picoseconds) {
        if self.options.chaos.is_none() && self.options.jitter.0 == 0 {
            self.queue.push(tail, number);
            return;
        }
        // Each member receives the datagram at its own time.
        let SimFlight { from, bytes, sent, .. } = self.flights[number];
        let FlightAction::Datagram { group, payload, .. } = self.flights.take(number) else {
            unreachable!("datagrams only")
        };
        for member in self.members.get(&group).cloned().unwrap_or_default() {
            let copy = self.pool.take_for(payload.sge());
            copy.sge().copy_from(payload.sge());
            let action = FlightAction::Datagram { group, payload: copy, member: Some(member) };
            let flight = SimFlight { bytes, ..SimFlight::aside(action, from as usize, sent) };
            let tail = self.unsteady(tail);
            let index = self.flights.add(flight);
            self.queue.push(tail, index);
        }
    }

    /// Adds a random delay to the time of a flight.
    fn unsteady(&mut self, mut tail: Picoseconds) -> Picoseconds {
        tail += self.rng.u64(0..=self.options.jitter.0);
        if let Some(chaos) = self.options.chaos
            && self.rng.f64() < chaos.delay.0
        {
            tail += self.rng.u64(0..=chaos.most.0);
        }
        tail
    }

    /// Handles the next event, if it is due at `until` or before. Returns false if no event is due.
    pub fn step(&mut self, until: Picoseconds) -> bool {
        let Some((time, number)) = self.queue.pop_until(until) else { return false };
        debug_assert!(time >= self.now, "time runs forwards");
        self.now = time;
        self.counts.events += 1;
        if number & POLLS != 0 {
            let rank = (number & !POLLS) as usize;
            if self.ranks[rank].poll_at == time {
                self.ready.push_back(rank as u32);
            }
            return true;
        }
        let flight = &mut self.flights[number];
        if flight.leaving {
            match flight.rail {
                NO_RAIL => self.begin_within_node(number),
                _ => self.leave(number),
            }
            return true;
        }
        if !flight.admitted {
            flight.admitted = true;
            let (from, to, rail, bytes) =
                (flight.from as usize, flight.to as usize, flight.rail as usize, flight.bytes);
            let (a, b) = (self.node(from), self.node(to));
            if !self.network.works(a, rail) || !self.network.works(b, rail) {
                self.repeat(number);
                return true;
            }
            let behind = self.network.is_taken(b, rail, time);
            let arrived = self.network.arrive(b, rail, time, bytes);
            if behind || arrived > time {
                self.queue.push(arrived, number);
                return true;
            }
        }
        self.apply(number);
        true
    }

    /// Begins a flight between processors of a node that has levels.
    fn begin_within_node(&mut self, number: u32) {
        let SimFlight { from, to, bytes, .. } = self.flights[number];
        let (from, to, now) = (from as usize, to as usize, self.now);
        self.flights[number].leaving = false;
        let Some(levels) = self.levels.as_deref_mut() else { return };
        let mut tail = match self.flights[number].action {
            // A load is one transfer, from the owner to the reader.
            FlightAction::ReadRequest { .. } => now,
            FlightAction::AtomicRequest { target, .. } => {
                levels.take_line(to, target, from, now + levels.delay(from))
            }
            FlightAction::ReadReply { .. } => self.copy_within_node(to, number),
            FlightAction::Write { .. } => self.copy_within_node(from, number),
            _ => levels.carry(from, to, now + levels.delay(from), bytes).end,
        };
        if self.options.jitter.0 > 0 || self.options.chaos.is_some() {
            tail = self.unsteady(tail);
        }
        if matches!(self.flights[number].action, FlightAction::Message { .. }) {
            // A short message may be faster than a longer one before it, at every level.
            tail = self.remember(from, to, tail);
        }
        if let Some(path) = self.behind.path(number) {
            tail = self.behind.tail(path, &self.flights[number].action, tail);
        }
        self.queue.push(tail, number);
    }

    /// Lets the processor of `copier` do the copy of a flight. If limits delay the copy, they delay the rank. Returns the time at which
    /// the last byte arrives.
    fn copy_within_node(&mut self, copier: usize, number: u32) -> Picoseconds {
        let SimFlight { from, to, bytes, .. } = self.flights[number];
        let Some(levels) = self.levels.as_deref_mut() else { return self.now };
        let at = self.now + levels.delay(copier);
        let CarriedSpan { begin, end } = levels.carry(from as usize, to as usize, at, bytes);
        levels.add_delay(copier, begin - at);
        self.delay(copier, begin - at);
        end
    }

    /// Lets a flight leave if it is the first at its port, and if port and bus are free. Otherwise the flight waits.
    fn leave(&mut self, number: u32) {
        let SimFlight { from, to, rail, bytes, latency, .. } = self.flights[number];
        let (node, rail) = (self.node(from as usize), rail as usize);
        let line = self.waiting.entry((node as u32, rail as u32)).or_default();
        if line.front().is_some_and(|&first| first != number) {
            line.push_back(number);
            return;
        }
        let free = self.network.free(node, rail);
        if free > self.now {
            if line.is_empty() {
                line.push_back(number);
            }
            self.queue.push(free, number);
            return;
        }
        line.pop_front();
        let next = line.front().copied();
        let mut tail = self.network.depart(node, rail, self.now, bytes, latency);
        if let Some(next) = next {
            self.queue.push(self.network.free(node, rail).max(self.now), next);
        }
        self.flights[number].leaving = false;
        if matches!(self.flights[number].action, FlightAction::Datagram { .. }) {
            self.fan_out(number, tail);
            return;
        }
        if self.options.jitter.0 > 0 || self.options.chaos.is_some() {
            tail = self.unsteady(tail);
        }
        if matches!(self.flights[number].action, FlightAction::Message { .. }) {
            // `in_order` expects the time of the post, which is before the sender's overhead.
            let at = self.now.saturating_sub(self.prices.send.overhead);
            tail = self.in_order(from as usize, to as usize, at, tail);
        }
        if let Some(path) = self.behind.path(number) {
            tail = self.behind.tail(path, &self.flights[number].action, tail);
        }
        self.queue.push(tail, number);
    }
}
