//! Deaths of ranks and of ports, and the notice that other ranks get of a death.
//!
//! A rank that dies does nothing more, and after [`crate::SimOptions::detection`] the waits of all other ranks end with an error. A
//! port that dies loses the operations under way through it. Once the loss is detected, each of these operations is sent again
//! through another rail. Messages of a pair of ranks stay in order, because the receiver takes them in the order of their numbers.
//! If two nodes no longer have a common rail, their ranks can no longer reach each other.

use crate::in_flight::FlightAction;
use crate::in_flight::SimFlight;
use crate::options::Death;
use crate::units::Picoseconds;
use crate::world::WorldState;
use weft_fabric::Fault;

impl WorldState {
    // ---- messages in order ---------------------------------------------------------------------

    /// Numbers a message that is sent for the first time.
    #[inline]
    pub fn number(&mut self, flight: Option<u32>) {
        let (Some(turns), Some(flight)) = (&mut self.turns, flight) else { return };
        let SimFlight { from, to, .. } = self.flights[flight];
        let pair = turns.pairs.entry((from, to)).or_default();
        turns.numbers.insert(flight, pair.sent);
        pair.sent += 1;
    }

    /// Puts a message that has arrived into the inbox, once all messages that were sent before it have arrived.
    #[inline]
    pub fn deliver_in_turn(&mut self, flight: u32) {
        if self.turns.is_none() {
            self.deliver(flight);
            return;
        }
        let SimFlight { from, to, .. } = self.flights[flight];
        let turns = self.turns.as_deref_mut().expect("asked above");
        let number = turns.numbers.remove(&flight).expect("numbered when it was sent");
        let pair = turns.pairs.entry((from, to)).or_default();
        pair.early.insert(number, flight);
        let mut due = Vec::new();
        while let Some(flight) = pair.early.remove(&pair.taken) {
            pair.taken += 1;
            due.push(flight);
        }
        due.into_iter().for_each(|flight| self.deliver(flight));
    }

    /// Sends a flight whose rail has died again through another rail, after the time of detection.
    pub fn repeat(&mut self, flight: u32) {
        let SimFlight { from, to, bytes, .. } = self.flights[flight];
        let number = self.turns.as_mut().and_then(|turns| turns.numbers.remove(&flight));
        let action = self.flights.take(flight);
        let at = self.now + self.options.detection.0;
        let latency = self.prices.write.latency;
        let again = self.launch(at, from as usize, to as usize, bytes, latency, action);
        self.behind.renamed(flight, again);
        if let (Some(turns), Some(again), Some(number)) = (&mut self.turns, again, number) {
            turns.numbers.insert(again, number);
        }
    }

    // ---- death --------------------------------------------------------------------------------

    pub fn kill(&mut self, death: Death) {
        match death {
            Death::Rank(rank) => {
                self.ranks[rank].dead = true;
                while let Some(number) = self.take_message(rank, None) {
                    self.flights.end(number);
                }
                let at = self.now + self.options.detection.0;
                self.post(at, rank, rank, FlightAction::Obituary(rank));
            }
            Death::Rail { node, rail } => {
                self.network.kill(node, rail);
                if self.network.rail(node, node).is_none() {
                    self.cut_off(node);
                }
            }
        }
    }

    /// Ends the waits of all ranks with an error, because `rank` is dead.
    pub fn announce(&mut self, rank: usize) {
        for other in 0..self.ranks.len() {
            self.fail(other, Fault::lost(rank));
        }
    }

    /// Reports to `from` and `to` that no rail connects them any more.
    #[cold]
    pub fn part(&mut self, from: usize, to: usize, at: Picoseconds) {
        let at = at + self.options.detection.0;
        self.post(at, to, from, FlightAction::Parted { peer: to });
        self.post(at, from, to, FlightAction::Parted { peer: from });
    }

    /// Handles the loss of a node's last rail: its ranks and the ranks of other nodes can no longer reach each other.
    fn cut_off(&mut self, node: usize) {
        let ranks = 0..self.ranks.len();
        let inside = ranks.clone().find(|&r| self.node(r) == node);
        let outside = ranks.clone().find(|&r| self.node(r) != node);
        let (Some(inside), Some(outside)) = (inside, outside) else { return };
        let at = self.now + self.options.detection.0;
        for rank in ranks {
            let peer = if self.node(rank) == node { outside } else { inside };
            self.post(at, peer, rank, FlightAction::Parted { peer });
        }
    }

    /// Returns true if messages from one rank can reach another.
    pub fn is_connected(&self, from: usize, to: usize) -> bool {
        let (a, b) = (self.node(from), self.node(to));
        a == b || self.network.rail(a, b).is_some()
    }

    /// Returns true if `rail` connects two ranks.
    pub fn rail_works(&self, rail: usize, from: usize, to: usize) -> bool {
        let works = |rank| self.network.works(self.node(rank), rail);
        self.node(from) == self.node(to) || works(from) && works(to)
    }

    /// Returns true if `rank` died before `time`. A rank can reach such a time, because it runs ahead of global time.
    #[inline]
    pub fn outlived(&self, rank: usize, time: Picoseconds) -> bool {
        let died = |&(at, death): &(Picoseconds, Death)| death == Death::Rank(rank) && at < time;
        !self.options.deaths.is_empty() && self.options.deaths.iter().any(died)
    }
}
