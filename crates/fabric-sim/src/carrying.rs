//! Transfers within a node that the processors of its ranks carry (`local.busy` of a machine file without levels).
//!
//! ```text
//!   write     the poster is busy for the time of the payload          message   the receiver is busy when it takes the message
//!   read      the poster is busy; of private memory, the owner helps while it waits:
//!
//!             reader   ▓▓▓▓▓▓▓▓▓▓            both ranks read    ▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓    local.unaided
//!             owner    ░░░░░░░░░░ helps                         ▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓▓
//!                      local.transfers
//! ```
//! A rank is busy until its local clock. So a reader sees when the owner begins to help. Of two ranks that read from each other, the second
//! reader delays the first read, with which it has helped. An owner that begins to read from a third rank delays no read.

use crate::aided_read::AidedRead;
use crate::in_flight::{FlightAction, SimFlight};
use crate::trace::Activity;
use crate::units::Picoseconds;
use crate::world::WorldState;
use weft_fabric::RemoteAddr;

/// Returns the part of `time` in the ratio of `part` to `whole`.
fn scaled(time: Picoseconds, part: Picoseconds, whole: Picoseconds) -> Picoseconds {
    (u128::from(time) * u128::from(part) / u128::from(whole.max(1))) as Picoseconds
}

impl WorldState {
    /// Returns true if processors carry the payloads between two ranks.
    fn carries(&self, a: usize, b: usize) -> bool {
        self.machine.local.busy && self.levels.is_none() && self.is_local(a, b)
    }

    /// Returns the time of a flight within a node without levels. The time of a payload that a processor carries is not a part of it.
    pub(crate) fn time_within_node(&self, flight: &SimFlight) -> Picoseconds {
        let (local, bytes) = (&self.machine.local, flight.bytes);
        let latency = self.prices.local.latency;
        match flight.action {
            FlightAction::ReadReply { .. } if local.busy => 0,
            FlightAction::Write { .. } | FlightAction::Message { .. } if local.busy => latency,
            FlightAction::ReadReply { src, .. } if self.memory.is_allocated(src) => {
                latency + local.read_time(bytes)
            }
            _ => latency + local.time(bytes),
        }
    }

    /// Lets the time pass for which `me` carries a write of `bytes` bytes to `peer`.
    pub(crate) fn carry_write(&mut self, me: usize, peer: usize, bytes: usize) {
        if self.carries(me, peer) {
            self.spend(me, self.machine.local.time(bytes), Activity::Copy);
        }
    }

    /// Lets the time pass for which `me` carries a read of `bytes` bytes at `src`, which `owner` has.
    pub(crate) fn carry_read(&mut self, me: usize, owner: usize, src: RemoteAddr, bytes: usize) {
        if !self.carries(me, owner) {
            return;
        }
        let time = match self.memory.is_allocated(src) {
            true => self.machine.local.read_time(bytes),
            false => self.time_of_private_read(me, owner, bytes),
        };
        self.spend(me, time, Activity::Copy);
    }

    /// Lets the time pass for which `me` carries the message of flight `number`, which it takes.
    pub(crate) fn carry_message(&mut self, me: usize, number: u32) {
        let SimFlight { from, bytes, .. } = self.flights[number];
        if self.carries(me, from as usize) {
            self.spend(me, self.machine.local.time(bytes), Activity::Copy);
        }
    }

    /// Returns the time of a read of private memory of `owner`, which helps as soon as it waits.
    fn time_of_private_read(&mut self, me: usize, owner: usize, bytes: usize) -> Picoseconds {
        let local = &self.machine.local;
        let (aided, unaided) = (local.time(bytes), local.unaided_time(bytes));
        if me == owner || unaided <= aided || aided == 0 {
            return aided;
        }
        let now = self.ranks[me].clock;
        // A read that begins later in virtual time finds this rank busy, and has no help from the start.
        let helped =
            |read: &mut AidedRead| read.owner == me && (read.start..read.end).contains(&now);
        if let Some(read) = self.rest[owner].aided_read.take_if(helped) {
            // The owner's read goes on without the help of this rank.
            let left = read.end - now;
            self.delay(owner, scaled(left, read.unaided, read.aided) - left);
        }
        let busy = self.ranks[owner].clock.saturating_sub(now).min(unaided);
        let time = busy + scaled(unaided - busy, aided, unaided);
        self.rest[me].aided_read =
            Some(AidedRead { owner, start: now, end: now + time, aided, unaided });
        time
    }
}
