//! Effects of a flight that is due: messages enter inboxes, writes are placed, counters advance.

use crate::arrival_record::Arrival;
use crate::in_flight::{
    AfterWrite, FlightAction, FlightAtomic, FlightPayload, NO_RAIL, NONE, SimFlight,
};
use crate::processes::{RankCounter, RankMemory};
use crate::threads::RankArrival;
use crate::trace::Travel;
use crate::units::Picoseconds;
use crate::world::WorldState;
use std::rc::Rc;
use weft_fabric::{Counter, Fault, GroupId, RemoteAddr, Sge, Staging};

impl WorldState {
    /// Carries out the flight `number`, which is due.
    pub fn apply(&mut self, number: u32) {
        let SimFlight { from, to, bytes, sent, begun, rail, .. } = self.flights[number];
        let (from, to) = (from as usize, to as usize);
        let obituary = matches!(self.flights[number].action, FlightAction::Obituary(_));
        if !obituary && (self.ranks[to].dead || self.outlived(from, sent)) {
            self.flights.end(number);
            return;
        }
        self.note_arrival(number);
        if matches!(self.flights[number].action, FlightAction::Message { .. }) {
            self.counts.messages += 1;
            self.arrow(from, to, Travel::Message, bytes, sent);
            self.deliver_in_turn(number);
            return;
        }
        if let FlightAction::Write { then: AfterWrite::Flag(..), .. } = self.flights[number].action
            && self.behind.keeps(number)
        {
            return;
        }
        match self.flights.take(number) {
            FlightAction::Write { src, dst, then, done } => {
                let next_flag = self.behind.over(number);
                next_flag.into_iter().for_each(|flag| self.queue.push(self.now, flag));
                self.place(from, to, src, dst);
                self.arrow(from, to, Travel::Write, bytes, sent);
                let acknowledged = self.finish_write(from, to, then, done);
                if let Some(flight) = acknowledged {
                    self.flights[flight].begun = begun;
                    self.flights[flight].bytes = bytes;
                }
            }
            FlightAction::Packets { src, dst } => self.place(from, to, src, dst),
            FlightAction::ReadRequest { dst, src, done } => {
                let latency = self.prices.read.latency;
                let back = FlightAction::ReadReply { dst, src, done };
                // The answer takes the same rail as the request.
                let rail = (rail != NO_RAIL).then_some(rail as usize);
                let (len, latency) = (dst.len(), latency - latency / 2);
                let flight = self.launch_over(rail, self.now, to, from, len, latency, back);
                flight.into_iter().for_each(|flight| self.flights[flight].begun = begun);
            }
            FlightAction::ReadReply { dst, src, done } => {
                self.fetch(from, to, src, dst);
                self.counts.reads += 1;
                self.arrow(from, to, Travel::Read, bytes, sent);
                self.complete(to, done);
            }
            FlightAction::AtomicRequest { target, operation, result, done } => {
                let before = self.change_word(from, to, target, operation);
                let back = FlightAction::AtomicReply { before, result, done };
                self.answer_atomic(from, to, begun, back);
            }
            FlightAction::AtomicReply { before, result, done } => {
                if let Err(fault) = self.write_word(RankMemory { rank: to, memory: result }, before)
                {
                    self.fail(to, fault);
                }
                self.counts.atomics += 1;
                self.arrow(from, to, Travel::Atomic, bytes, sent);
                self.complete(to, done);
            }
            FlightAction::Datagram { group, payload, member } => {
                self.spread(from, group, payload, member, sent)
            }
            FlightAction::Complete { counter } => {
                self.advance(to, counter, RankArrival::Completion)
            }
            FlightAction::Death(death) => self.kill(death),
            FlightAction::Obituary(rank) => self.announce(rank),
            FlightAction::Parted { peer } => self.fail(to, Fault::lost(peer)),
            FlightAction::Free | FlightAction::Message { .. } => unreachable!("handled before"),
        }
    }

    /// Copies the bytes of a read from `from`, which owns them, to `to`.
    fn fetch(&mut self, from: usize, to: usize, src: RemoteAddr, dst: Sge) {
        let copied = self.memory.find(from, src, dst.len()).and_then(|memory| {
            let from = RankMemory { rank: from, memory };
            self.copy_between(RankMemory { rank: to, memory: dst }, from)
        });
        if let Err(fault) = copied {
            self.fail(to, fault);
        }
    }

    /// Carries out an atomic operation of `from` on a word of `to`. Returns the former value.
    fn change_word(
        &mut self,
        from: usize,
        to: usize,
        target: RemoteAddr,
        operation: FlightAtomic,
    ) -> u64 {
        let changed = self.memory.word(to, target).and_then(|memory| {
            let word = RankMemory { rank: to, memory };
            let before = self.read_word(word)?;
            self.write_word(word, operation.apply(before))?;
            Ok(before)
        });
        match changed {
            Ok(before) => {
                self.wake(to, RankArrival::Silent);
                before
            }
            Err(fault) => {
                self.fail(from, fault);
                0
            }
        }
    }

    /// Sends the former value of a word of `to` back to `from`, which posted its request at `begun`.
    fn answer_atomic(&mut self, from: usize, to: usize, begun: Picoseconds, back: FlightAction) {
        let latency = self.prices.atomic.latency;
        let flight = match self.levels.is_some() && self.is_local(from, to) {
            // The processor of `from` has the line, and the value with it.
            true => Some(self.post(self.now, to, from, back)),
            false => self.launch(self.now, to, from, 8, latency - latency / 2, back),
        };
        flight.into_iter().for_each(|flight| self.flights[flight].begun = begun);
    }

    /// Puts a message into the inbox of its receiver.
    pub fn deliver(&mut self, number: u32) {
        let SimFlight { from, to, .. } = self.flights[number];
        if let FlightAction::Message { payload, done, .. } = &mut self.flights[number].action
            && let FlightPayload::Kept(source) = *payload
        {
            let copy = self.pool.take_for(source);
            copy.sge().copy_from(source);
            *payload = FlightPayload::Copied(copy);
            if let Some(counter) = done.take() {
                let at = self.now + self.prices.write.latency;
                self.post(at, to as usize, from as usize, FlightAction::Complete { counter });
            }
        }
        self.flights[number].next = NONE;
        let state = &mut self.ranks[to as usize];
        match state.last {
            NONE => state.first = number,
            last => self.flights[last].next = number,
        }
        self.ranks[to as usize].last = number;
        self.ranks[to as usize].arrived += 1;
        self.wake(to as usize, RankArrival::Message(number));
    }

    /// Removes the first message from rank `from` from the inbox of `rank`. If `from` is `None`, messages of all ranks count.
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
                self.ranks[rank].arrived -= 1;
                return Some(number);
            }
            (before, number) = (number, next);
        }
        None
    }

    /// Ends all waits of `rank` with `fault`.
    pub fn fail(&mut self, rank: usize, fault: Fault) {
        self.rest[rank].fault.get_or_insert(fault);
        self.ranks[rank].failed = true;
        self.wake(rank, RankArrival::Rousing);
    }

    fn place(&mut self, from: usize, to: usize, src: Sge, dst: RemoteAddr) {
        let copied = self.memory.find(to, dst, src.len()).and_then(|memory| {
            let from = RankMemory { rank: from, memory: src };
            self.copy_between(RankMemory { rank: to, memory }, from)
        });
        if let Err(fault) = copied {
            self.fail(from, fault);
        }
        self.wake(to, RankArrival::Silent);
    }

    /// Ends a write. Returns the flight of its acknowledgement, if the sender wants any.
    fn finish_write(
        &mut self,
        from: usize,
        to: usize,
        then: AfterWrite,
        done: weft_fabric::Completion,
    ) -> Option<u32> {
        self.counts.writes += 1;
        match then {
            AfterWrite::Nothing => {}
            AfterWrite::Flag(flag, value) => {
                let set = self
                    .memory
                    .word(to, flag.at)
                    .and_then(|memory| self.write_word(RankMemory { rank: to, memory }, value));
                match set {
                    Ok(()) if flag.waking => self.wake(to, RankArrival::Rousing),
                    Ok(()) => self.wake(to, RankArrival::Silent),
                    Err(fault) => self.fail(from, fault),
                }
            }
            AfterWrite::Immediate(immediate) => {
                self.counts.immediates += 1;
                self.count(to, RankCounter::Immediate(immediate));
                self.wake(to, RankArrival::Rousing);
            }
        }
        done.map(|counter| {
            // The acknowledgement travels back like a small write.
            let latency = match self.is_local(from, to) {
                true if self.levels.is_some() || self.machine.local.busy => 0,
                true => self.prices.local.latency,
                false => self.prices.write.latency,
            };
            self.post(self.now + latency, to, from, FlightAction::Complete { counter })
        })
    }

    fn complete(&mut self, rank: usize, done: weft_fabric::Completion) {
        match done {
            Some(counter) => self.advance(rank, counter, RankArrival::Completion),
            None => self.wake(rank, RankArrival::Silent),
        }
    }

    fn advance(&mut self, rank: usize, counter: Counter, arrival: RankArrival) {
        self.count(rank, RankCounter::Completion(counter));
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
            let (poster, bytes) = (from as u32, payload.len());
            let (posted, arrived) = (sent, self.now);
            let arrival = Arrival { from: poster, poster, posted, arrived, wire: 0, bytes };
            self.set_arrival(to, arrival);
            self.arrow(from, to, Travel::Datagram, payload.len(), sent);
            self.wake(to, RankArrival::Rousing);
        }
    }
}
