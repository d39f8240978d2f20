//! Posts of writes, reads, atomics and messages: their cost to the rank, and the flights that they start.

use crate::in_flight::{AfterWrite, FlightAction, FlightAtomic, FlightPayload};
use crate::machine::SEND_MAX;
use crate::prices::Price;
use crate::sim::Sim;
use crate::trace::Activity;
use crate::world::WorldState;
use weft_fabric::{
    Completion, Fabric, Fault, Head, PostOutcome, RemoteAddr, RemoteRead, RemoteWrite, Sge,
};

impl WorldState {
    /// Returns the cost of an operation from `me` to `peer`.
    pub(crate) fn price(&self, me: usize, peer: usize, of: Price) -> Price {
        if self.is_local(me, peer) { self.prices.local } else { of }
    }

    /// Returns the cost of a write or a message from `me` to `peer`, which change lines that `peer` has read.
    fn price_of_lines(&self, me: usize, peer: usize, of: Price) -> Price {
        let price = self.price(me, peer, of);
        match &self.levels {
            Some(levels) if self.is_local(me, peer) => {
                Price { overhead: price.overhead + levels.rewrite(me, peer), ..price }
            }
            _ => price,
        }
    }

    /// Lets the time pass for which `me` copies `bytes` bytes to or from `peer` itself. On other nodes, and on machines without
    /// levels, somebody else moves them.
    fn spend_copying(&mut self, me: usize, peer: usize, bytes: usize) {
        if let Some(levels) = &self.levels
            && self.is_local(me, peer)
        {
            let time = levels.copying(me, peer, bytes);
            self.spend(me, time, Activity::Copy);
        }
    }
}

impl Sim {
    /// Posts a write that ends with `then`.
    pub(crate) fn post_write(
        &self,
        rail: Option<usize>,
        peer: usize,
        write: &RemoteWrite,
        then: AfterWrite,
    ) -> Result<(), Fault> {
        let &RemoteWrite { src, dst, done } = write;
        let state = &mut *self.state();
        state.memory.find(peer, dst, src.len())?;
        if let AfterWrite::Flag(flag, _) = then {
            state.memory.word(peer, flag.at)?;
        }
        let me = self.rank();
        let local = state.is_local(me, peer);
        let prices = state.prices;
        let mut price = state.price_of_lines(me, peer, prices.write);
        let len = src.len();
        if !local && len > prices.inline {
            price.latency += prices.fetch;
        }
        if !local && matches!(then, AfterWrite::Immediate(_)) {
            price.latency += prices.immediate;
        }
        state.spend(me, price.overhead, Activity::Post);
        state.carry_write(me, peer, len);
        let at = state.ranks[me].clock;
        // Data and flag lie at different addresses, so they are two writes that are posted together.
        let pair = len > 0 && matches!(then, AfterWrite::Flag(..));
        if pair && !local {
            state.spend(me, prices.second.overhead, Activity::Post);
            price.latency += prices.second.latency;
        }
        let wire = match then {
            AfterWrite::Flag(..) => len + 8,
            _ => len,
        };
        let action = FlightAction::Write { src, dst, then, done };
        // If bytes may arrive in any order, the halves of a packet arrive separately.
        let scattered = !prices.in_order && state.options.chaos.is_some();
        let unit = if scattered && len <= prices.mtu { len.div_ceil(2) } else { prices.mtu };
        let flight = if len > unit && !local && !src.is_phantom() {
            state.launch_packets(rail, at, me, peer, wire, price.latency, unit, action)
        } else {
            state.launch_over(rail, at, me, peer, wire, price.latency, action)
        };
        state.spend_copying(me, peer, wire);
        if let (Some(rail), Some(flight)) = (rail, flight) {
            state.behind.posted((me as u32, peer as u32, rail as u8), flight);
        }
        Ok(())
    }

    pub(crate) fn post_read(
        &self,
        rail: Option<usize>,
        peer: usize,
        read: &RemoteRead,
    ) -> Result<(), Fault> {
        let &RemoteRead { dst, src, done } = read;
        let state = &mut *self.state();
        state.memory.find(peer, src, dst.len())?;
        let price = state.price(self.rank(), peer, state.prices.read);
        state.spend(self.rank(), price.overhead, Activity::Post);
        let len = dst.len();
        state.carry_read(self.rank(), peer, src, len);
        let at = state.ranks[self.rank()].clock;
        let request = FlightAction::ReadRequest { dst, src, done };
        state.launch_over(rail, at, self.rank(), peer, 0, price.latency / 2, request);
        state.spend_copying(self.rank(), peer, len);
        Ok(())
    }

    pub(crate) fn post_atomic(
        &self,
        peer: usize,
        target: RemoteAddr,
        operation: FlightAtomic,
        result: Sge,
        done: Completion,
    ) -> Result<(), Fault> {
        let state = &mut *self.state();
        state.memory.word(peer, target)?;
        let price = state.price(self.rank(), peer, state.prices.atomic);
        state.spend(self.rank(), price.overhead, Activity::Post);
        let at = state.ranks[self.rank()].clock;
        let request = FlightAction::AtomicRequest { target, operation, result, done };
        state.launch(at, self.rank(), peer, 8, price.latency / 2, request);
        Ok(())
    }

    #[inline]
    pub(crate) fn send_marked(
        &self,
        peer: usize,
        head: Head,
        solicited: bool,
        payload: Sge,
        done: Completion,
    ) -> PostOutcome {
        let state = &mut *self.state();
        let (me, len) = (self.rank(), payload.len());
        state.ranks[me].home = std::ptr::from_ref(self).addr();
        let prices = &state.prices;
        let inline = prices.inline.clamp(64, SEND_MAX);
        let mut price = state.price_of_lines(me, peer, prices.send);
        if len > prices.inline && !state.is_local(me, peer) {
            price.latency += prices.fetch;
        }
        state.spend(me, price.overhead, Activity::Post);
        let kept = len > inline
            && state.processes.is_none()
            && state.options.chaos.is_some_and(|chaos| state.rng.f64() < chaos.later.0);
        let (payload, posted) = if kept {
            (FlightPayload::Kept(payload), PostOutcome::Later)
        } else if len == 0 {
            (FlightPayload::None(Sge::EMPTY), PostOutcome::Done)
        } else {
            let time = state.prices.call + state.machine.host.copy_time(len);
            state.spend(me, time, Activity::Copy);
            (FlightPayload::copy(payload, &state.pool), PostOutcome::Done)
        };
        let at = state.ranks[me].clock;
        let done = if kept { done } else { None };
        let message = FlightAction::Message { head, solicited, payload, done };
        let flight = state.launch(at, me, peer, len, price.latency, message);
        state.number(flight);
        posted
    }
}
