//! The simulated cluster: every rank's clock and inbox, what is under way, and what happens when it
//! is due.
//!
//! A rank is polled when its local clock and global time agree, and may run ahead while it is
//! polled: it posts, copies and computes in local time. It sees what has arrived by global time, so
//! a wait is exact; a look that does not wait must first let global time catch up
//! ([`weft_fabric::Fabric::poll_clock`]).

use crate::deaths::Turns;
use crate::flight::{Action, Flight, Flights, NONE, Payload, Then};
use crate::host::{Arrival, Host, HostCounts};
use crate::machine::Machine;
use crate::memory::Memory;
use crate::network::Network;
use crate::options::Options;
use crate::prices::Prices;
use crate::queue::{NUMBER_BITS, Queue};
use crate::trace::{Activity, Arrow, Span, Trace, Travel};
use crate::units::Picoseconds;
use std::collections::{BTreeMap, VecDeque};
use std::rc::Rc;
use weft_fabric::{Counter, Counters, Fault, GroupId, RemoteAddr, Sge, Staging, StagingPool};

/// Numbers of events from here on are ranks to be polled.
const POLLS: u32 = 1 << (NUMBER_BITS - 1);

/// A write is placed in at most so many parts.
const MOST_PARTS: usize = 16;

/// No time: not scheduled.
const NEVER: Picoseconds = Picoseconds::MAX;

/// What happened in a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Messages that reached an inbox, and writes, reads, atomics and datagrams that were done.
    pub messages: u64,
    pub writes: u64,
    pub reads: u64,
    pub atomics: u64,
    pub datagrams: u64,
    pub lost_datagrams: u64,
    /// Events handled and ranks polled.
    pub events: u64,
    pub polls: u64,
}

/// One rank: what every event looks at.
pub(crate) struct RankState {
    pub clock: Picoseconds,
    /// When it will be polled; [`NEVER`]: when something happens.
    pub poll_at: Picoseconds,
    /// From when it has had nothing to do.
    idle_from: Picoseconds,
    /// When the last of its messages that another could overtake reaches its node.
    pub latest: Picoseconds,
    pub node: u32,
    /// Messages that have arrived, linked by [`Flight::next`].
    first: u32,
    last: u32,
    pub dead: bool,
    pub failed: bool,
    /// It has threads: [`RankRest::host`].
    pub hosted: bool,
    /// Where its fabric lies, and with it what uses the fabric: fetched before it is polled.
    pub home: usize,
}

/// One rank: the rest.
pub(crate) struct RankRest {
    pub counters: Rc<Counters>,
    pub groups: Vec<GroupId>,
    pub datagrams: VecDeque<(u32, GroupId, Rc<Staging>)>,
    pub fault: Option<Fault>,
    /// Its threads, once it has any but one that waits and charges.
    pub host: Option<Box<Host>>,
    /// Messages under way that could be overtaken: when each reaches its node, ascending, and to
    /// whom.
    pub sent: VecDeque<(Picoseconds, u32)>,
}

/// Everything that changes.
pub(crate) struct State {
    pub now: Picoseconds,
    pub ranks: Vec<RankState>,
    pub rest: Vec<RankRest>,
    pub flights: Flights,
    pub queue: Queue,
    /// Ranks to be polled now.
    pub ready: VecDeque<u32>,
    pub network: Network,
    /// Flights that wait at a port, by node and rail.
    waiting: BTreeMap<(u32, u32), VecDeque<u32>>,
    pub memory: Memory,
    pub members: BTreeMap<GroupId, Vec<u32>>,
    pub rng: fastrand::Rng,
    /// Where a rail may die.
    pub turns: Option<Box<Turns>>,
    pub trace: Option<Trace>,
    pub counts: Counts,
    /// Of ranks whose threads are over.
    pub host_counts: BTreeMap<usize, HostCounts>,
    pub machine: Rc<Machine>,
    pub prices: Prices,
    pub options: Options,
    pub pool: StagingPool,
}

impl State {
    pub fn new(machine: Rc<Machine>, options: Options) -> State {
        let ranks_per_node = machine.ranks_per_node.0;
        let nodes = options.ranks.div_ceil(ranks_per_node);
        let rank = |rank| RankState {
            clock: 0,
            poll_at: 0,
            idle_from: 0,
            latest: 0,
            node: (rank / ranks_per_node) as u32,
            first: NONE,
            last: NONE,
            dead: false,
            failed: false,
            hosted: false,
            home: 0,
        };
        let rest = |_| RankRest {
            counters: Rc::new(Counters::new()),
            groups: Vec::new(),
            datagrams: VecDeque::new(),
            fault: None,
            host: None,
            sent: VecDeque::new(),
        };
        let mut state = State {
            now: 0,
            ranks: (0..options.ranks).map(rank).collect(),
            rest: (0..options.ranks).map(rest).collect(),
            flights: Flights::default(),
            queue: Queue::default(),
            ready: (0..options.ranks as u32).collect(),
            network: Network::new(&machine, nodes),
            waiting: BTreeMap::new(),
            memory: Memory::default(),
            members: BTreeMap::new(),
            rng: fastrand::Rng::with_seed(options.seed),
            turns: Turns::of(&options),
            trace: options.trace.then(Trace::default),
            counts: Counts::default(),
            host_counts: BTreeMap::new(),
            prices: Prices::of(&machine),
            machine,
            pool: StagingPool::default(),
            options,
        };
        for (at, death) in state.options.deaths.clone() {
            state.post(at, 0, 0, Action::Death(death));
        }
        state
    }

    pub fn node(&self, rank: usize) -> usize {
        self.ranks[rank].node as usize
    }

    pub fn is_local(&self, a: usize, b: usize) -> bool {
        self.node(a) == self.node(b)
    }

    // ---- local time ---------------------------------------------------------------------------

    /// Time passes for `rank`.
    #[inline]
    pub fn spend(&mut self, rank: usize, time: Picoseconds, activity: Activity) {
        let clock = &mut self.ranks[rank].clock;
        let start = *clock;
        *clock += time;
        if let Some(trace) = &mut self.trace {
            let end = start + time;
            trace.span(Span { rank: rank as u32, activity, start, end });
        }
    }

    /// `rank` will be polled at `at`, or before.
    #[inline]
    pub fn schedule(&mut self, rank: usize, at: Picoseconds) {
        let state = &mut self.ranks[rank];
        if state.dead || state.poll_at <= at {
            return;
        }
        state.poll_at = at;
        if at <= self.now {
            self.ready.push_back(rank as u32);
        } else {
            self.queue.push(at, POLLS | rank as u32);
        }
    }

    /// Something that `rank` may be waiting for has happened.
    #[inline]
    fn wake(&mut self, rank: usize, arrival: Arrival) {
        if self.ranks[rank].hosted {
            self.rouse(rank, arrival);
            return;
        }
        let at = self.ranks[rank].clock.max(self.now + self.prices.poll);
        self.schedule(rank, at);
    }

    /// The next rank to be polled now, with its clock set; or one that has threads (`true`).
    pub fn next_ready(&mut self) -> Option<(usize, bool)> {
        loop {
            let rank = if self.options.chaos.is_some() && self.ready.len() > 1 {
                let i = self.rng.usize(0..self.ready.len());
                self.ready.swap_remove_back(i)?
            } else {
                self.ready.pop_front()?
            } as usize;
            let now = self.now;
            let state = &mut self.ranks[rank];
            if state.dead || state.poll_at > now {
                continue;
            }
            state.poll_at = NEVER;
            let idle_from = state.idle_from;
            self.counts.polls += 1;
            if state.hosted {
                return Some((rank, true));
            }
            state.clock = state.clock.max(now);
            if let Some(trace) = &mut self.trace {
                let activity = Activity::Wait;
                trace.span(Span { rank: rank as u32, activity, start: idle_from, end: now });
            }
            return Some((rank, false));
        }
    }

    /// A poll of `rank` is over, and it waits.
    pub fn rest(&mut self, rank: usize) {
        let state = &mut self.ranks[rank];
        state.idle_from = state.clock;
        if state.hosted {
            self.first_rest(rank);
        }
    }

    // ---- flights ------------------------------------------------------------------------------

    /// Posts what happens at `at` without any network.
    pub fn post(&mut self, at: Picoseconds, from: usize, to: usize, action: Action) {
        let flight = Flight { to: to as u32, ..Flight::aside(action, from, self.now) };
        let index = self.flights.add(flight);
        self.queue.push(at, index);
    }

    /// Sends something of `bytes` on its way; `latency` is of the operation. `None`: there is no way.
    pub fn launch(
        &mut self,
        at: Picoseconds,
        from: usize,
        to: usize,
        bytes: usize,
        latency: Picoseconds,
        action: Action,
    ) -> Option<u32> {
        let mut flight = Flight { to: to as u32, bytes, ..Flight::aside(action, from, at) };
        let (a, b) = (self.node(from), self.node(to));
        let mut tail = if a == b {
            at + self.prices.local.latency + self.prices.local_bandwidth.time(bytes)
        } else {
            let Some(rail) = self.network.rail(a, b) else {
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
        if matches!(flight.action, Action::Message { .. }) {
            tail = self.in_order(from, to, at, tail);
        }
        let index = self.flights.add(flight);
        self.queue.push(tail, index);
        Some(index)
    }

    /// Sends a write of more than one packet on its way: all packets but some arrive in any order
    /// while the last ones travel, and what the write ends with comes after all of them.
    #[allow(clippy::too_many_arguments)]
    pub fn launch_packets(
        &mut self,
        at: Picoseconds,
        from: usize,
        to: usize,
        bytes: usize,
        latency: Picoseconds,
        mtu: usize,
        action: Action,
    ) {
        let Action::Write { src, dst, then, done } = action else { unreachable!("writes only") };
        let per_part = mtu * src.len().div_ceil(mtu).div_ceil(MOST_PARTS);
        let mut parts: Vec<usize> = (0..src.len()).step_by(per_part).collect();
        self.rng.shuffle(&mut parts);
        let last = parts.pop().expect("a write of many packets has one");
        let part = |at: usize| src.part(at, per_part.min(src.len() - at));
        let length = self.prices.bandwidth.time(src.len());
        // The last part to be placed ends the write; the others come earlier, at random.
        let arrived = at + latency + length;
        let mut times: Vec<_> = parts
            .iter()
            .map(|_| arrived - self.rng.u64(0..=length.min(latency + length)))
            .collect();
        times.sort_unstable();
        for (offset, time) in parts.into_iter().zip(times) {
            let action = Action::Packets { src: part(offset), dst: dst.offset(offset as u64) };
            self.post(time.max(self.now), from, to, action);
        }
        let rest = Action::Write { src: part(last), dst: dst.offset(last as u64), then, done };
        self.launch(at, from, to, bytes, latency, rest);
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
        let action = Action::Datagram { group, payload, member: None };
        let mut flight = Flight { bytes, latency, ..Flight::aside(action, from, at) };
        if self.network.shares(rail) {
            // In line with all others, which it would keep from leaving otherwise.
            (flight.rail, flight.leaving) = (rail as u8, true);
            let index = self.flights.add(flight);
            self.queue.push(at, index);
            return;
        }
        let tail = self.network.depart(node, rail, at, bytes, latency);
        let index = self.flights.add(flight);
        self.fan_out(index, tail);
    }

    /// A datagram that has left reaches its members around `tail`.
    fn fan_out(&mut self, number: u32, tail: Picoseconds) {
        if self.options.chaos.is_none() && self.options.jitter.0 == 0 {
            self.queue.push(tail, number);
            return;
        }
        // Each member sees it at a time of its own.
        let Flight { from, bytes, sent, .. } = self.flights[number];
        let Action::Datagram { group, payload, .. } = self.flights.take(number) else {
            unreachable!("datagrams only")
        };
        for member in self.members.get(&group).cloned().unwrap_or_default() {
            let copy = self.pool.take_for(payload.sge());
            copy.sge().copy_from(payload.sge());
            let action = Action::Datagram { group, payload: copy, member: Some(member) };
            let flight = Flight { bytes, ..Flight::aside(action, from as usize, sent) };
            let tail = self.unsteady(tail);
            let index = self.flights.add(flight);
            self.queue.push(tail, index);
        }
    }

    /// A delay of its own for each flight.
    fn unsteady(&mut self, mut tail: Picoseconds) -> Picoseconds {
        tail += self.rng.u64(0..=self.options.jitter.0);
        if let Some(chaos) = self.options.chaos
            && self.rng.f64() < chaos.delay.0
        {
            tail += self.rng.u64(0..=chaos.most.0);
        }
        tail
    }

    /// Handles the next event, if it is due at `until` at the latest. False: there is none.
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
            self.leave(number);
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

    /// A flight leaves, if it is the first at its port and port and bus are free; else it waits.
    fn leave(&mut self, number: u32) {
        let Flight { from, to, rail, bytes, latency, .. } = self.flights[number];
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
        if matches!(self.flights[number].action, Action::Datagram { .. }) {
            self.fan_out(number, tail);
            return;
        }
        if self.options.jitter.0 > 0 || self.options.chaos.is_some() {
            tail = self.unsteady(tail);
        }
        if matches!(self.flights[number].action, Action::Message { .. }) {
            // Here nothing of the sender's overhead lies between two messages.
            let at = self.now.saturating_sub(self.prices.send.overhead);
            tail = self.in_order(from as usize, to as usize, at, tail);
        }
        self.queue.push(tail, number);
    }

    fn arrow(&mut self, from: usize, to: usize, what: Travel, bytes: usize, sent: Picoseconds) {
        if let Some(trace) = &mut self.trace {
            let (from, to, arrived) = (from as u32, to as u32, self.now);
            trace.arrows.push(Arrow { from, to, what, bytes, sent, arrived });
        }
    }

    /// What is due happens.
    fn apply(&mut self, number: u32) {
        let Flight { from, to, bytes, sent, .. } = self.flights[number];
        let (from, to) = (from as usize, to as usize);
        let obituary = matches!(self.flights[number].action, Action::Obituary(_));
        if !obituary && (self.ranks[to].dead || self.outlived(from, sent)) {
            self.flights.end(number);
            return;
        }
        if matches!(self.flights[number].action, Action::Message { .. }) {
            self.counts.messages += 1;
            self.arrow(from, to, Travel::Message, bytes, sent);
            self.deliver_in_turn(number);
            return;
        }
        match self.flights.take(number) {
            Action::Write { src, dst, then, done } => {
                self.place(from, to, src, dst);
                self.counts.writes += 1;
                self.arrow(from, to, Travel::Write, bytes, sent);
                self.finish_write(from, to, then, done);
            }
            Action::Packets { src, dst } => self.place(from, to, src, dst),
            Action::ReadRequest { dst, src, done } => {
                let latency = self.prices.read.latency;
                let back = Action::ReadReply { dst, src, done };
                self.launch(self.now, to, from, dst.len(), latency - latency / 2, back);
            }
            Action::ReadReply { dst, src, done } => {
                // Here `from` owns the memory.
                match self.memory.find(from, src, dst.len()) {
                    Ok(memory) => dst.copy_from(memory),
                    Err(fault) => self.fail(to, fault),
                }
                self.counts.reads += 1;
                self.arrow(from, to, Travel::Read, bytes, sent);
                self.complete(to, done);
            }
            Action::AtomicRequest { target, operation, result, done } => {
                let mut before = [0; 8];
                match self.memory.word(to, target) {
                    Ok(word) => {
                        word.read(&mut before);
                        let after = operation.apply(u64::from_ne_bytes(before));
                        word.fill(&after.to_ne_bytes());
                        self.wake(to, Arrival::Silent);
                    }
                    Err(fault) => self.fail(from, fault),
                }
                let before = u64::from_ne_bytes(before);
                let latency = self.prices.atomic.latency;
                let back = Action::AtomicReply { before, result, done };
                self.launch(self.now, to, from, 8, latency - latency / 2, back);
            }
            Action::AtomicReply { before, result, done } => {
                result.fill(&before.to_ne_bytes());
                self.counts.atomics += 1;
                self.arrow(from, to, Travel::Atomic, bytes, sent);
                self.complete(to, done);
            }
            Action::Datagram { group, payload, member } => {
                self.spread(from, group, payload, member, sent)
            }
            Action::Complete { counter } => self.advance(to, counter, Arrival::Completion),
            Action::Death(death) => self.kill(death),
            Action::Obituary(rank) => self.announce(rank),
            Action::Parted { peer } => self.fail(to, Fault::PeerLost { rank: peer }),
            Action::Free | Action::Message { .. } => unreachable!("handled before"),
        }
    }

    /// A message enters its inbox.
    pub fn deliver(&mut self, number: u32) {
        let Flight { from, to, .. } = self.flights[number];
        if let Action::Message { payload, done, .. } = &mut self.flights[number].action
            && let Payload::Kept(source) = *payload
        {
            let copy = self.pool.take_for(source);
            copy.sge().copy_from(source);
            *payload = Payload::Copied(copy);
            if let Some(counter) = done.take() {
                let at = self.now + self.prices.write.latency;
                self.post(at, to as usize, from as usize, Action::Complete { counter });
            }
        }
        self.flights[number].next = NONE;
        let state = &mut self.ranks[to as usize];
        match state.last {
            NONE => state.first = number,
            last => self.flights[last].next = number,
        }
        self.ranks[to as usize].last = number;
        self.wake(to as usize, Arrival::Message(number));
    }

    /// Takes the first message from `from`, or from anybody, out of the inbox of `rank`.
    #[inline]
    pub fn take_message(&mut self, rank: usize, from: Option<usize>) -> Option<u32> {
        let mut before = NONE;
        let mut number = self.ranks[rank].first;
        while number != NONE {
            let flight = &self.flights[number];
            let next = flight.next;
            if from.is_none_or(|peer| flight.from as usize == peer) {
                match before {
                    NONE => self.ranks[rank].first = next,
                    _ => self.flights[before].next = next,
                }
                if next == NONE {
                    self.ranks[rank].last = before;
                }
                return Some(number);
            }
            (before, number) = (number, next);
        }
        None
    }

    /// All waits of `rank` end with `fault`.
    pub fn fail(&mut self, rank: usize, fault: Fault) {
        self.rest[rank].fault.get_or_insert(fault);
        self.ranks[rank].failed = true;
        self.wake(rank, Arrival::Rousing);
    }

    fn place(&mut self, from: usize, to: usize, src: Sge, dst: RemoteAddr) {
        match self.memory.find(to, dst, src.len()) {
            Ok(memory) => memory.copy_from(src),
            Err(fault) => self.fail(from, fault),
        }
        self.wake(to, Arrival::Silent);
    }

    fn finish_write(&mut self, from: usize, to: usize, then: Then, done: weft_fabric::Completion) {
        match then {
            Then::Nothing => {}
            Then::Flag(flag, value) => match self.memory.word(to, flag.at) {
                Ok(word) => {
                    word.fill(&value.to_ne_bytes());
                    let rousing = if flag.waking { Arrival::Rousing } else { Arrival::Silent };
                    self.wake(to, rousing);
                }
                Err(fault) => self.fail(from, fault),
            },
            Then::Immediate(immediate) => {
                let counter = self.rest[to].counters.immediate(immediate);
                self.advance(to, counter, Arrival::Rousing);
            }
        }
        if let Some(counter) = done {
            // The acknowledgement travels back like a small write.
            let latency = match self.is_local(from, to) {
                true => self.prices.local.latency,
                false => self.prices.write.latency,
            };
            self.post(self.now + latency, to, from, Action::Complete { counter });
        }
    }

    fn complete(&mut self, rank: usize, done: weft_fabric::Completion) {
        match done {
            Some(counter) => self.advance(rank, counter, Arrival::Completion),
            None => self.wake(rank, Arrival::Silent),
        }
    }

    fn advance(&mut self, rank: usize, counter: Counter, arrival: Arrival) {
        self.rest[rank].counters.add(counter, 1);
        self.wake(rank, arrival);
    }

    // ---- datagrams ----------------------------------------------------------------------------

    fn spread(
        &mut self,
        from: usize,
        group: GroupId,
        payload: Staging,
        member: Option<u32>,
        sent: Picoseconds,
    ) {
        let Some(multicast) = &self.machine.multicast else { return };
        let (queue, rate) = (multicast.queue.0, multicast.loss.0);
        let chaos = self.options.chaos;
        let rate = chaos.and_then(|c| c.loss).map_or(rate, |c| c.0);
        let payload = Rc::new(payload);
        let members = match member {
            Some(one) => vec![one],
            None => self.members.get(&group).cloned().unwrap_or_default(),
        };
        for to in members.into_iter().map(|m| m as usize) {
            let state = &self.rest[to];
            if to == from || self.ranks[to].dead || !state.groups.contains(&group) {
                continue;
            }
            let lost = !self.is_connected(from, to) || rate > 0.0 && self.rng.f64() < rate;
            if lost || state.datagrams.len() >= queue {
                self.counts.lost_datagrams += 1;
                continue;
            }
            let twice = chaos.is_some_and(|c| self.rng.f64() < c.duplicate.0);
            for _ in 0..1 + usize::from(twice) {
                self.rest[to].datagrams.push_back((from as u32, group, payload.clone()));
            }
            self.counts.datagrams += 1;
            self.arrow(from, to, Travel::Datagram, payload.len(), sent);
            self.wake(to, Arrival::Rousing);
        }
    }
}
