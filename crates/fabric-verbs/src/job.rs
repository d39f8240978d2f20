//! The part of the fabric that does not change: the processes that can be reached, and the numbers of the connections with them.

use crate::VerbsOptions;
use crate::connection::connections::SECONDARY;
use crate::sizes::QueueDepths;
use crate::wire::{RailAddress, VerbsAddress};
use std::cell::{Cell, RefCell};
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use weft_fabric::{Completion, Counters};
use weft_job_connections::Roster;

/// A process that can be reached.
pub struct VerbsProcess {
    pub address: VerbsAddress,
    /// Rank in its own job.
    pub home: usize,
    /// True for a process of another job that this process does not need any more. The death of such a process is not a loss.
    pub unmissed: Cell<bool>,
}

impl VerbsProcess {
    pub fn new(address: VerbsAddress, home: usize) -> VerbsProcess {
        VerbsProcess { address, home, unmissed: Cell::new(false) }
    }
}

/// The part of the fabric that does not change.
pub struct VerbsCore {
    pub rank: usize,
    pub counters: Rc<Counters>,
    pub bounds: QueueDepths,
    pub options: VerbsOptions,
    pub nonce: u64,
    /// Number of processes of the job.
    pub size: usize,
    /// All reachable processes: the processes of the job and of connected jobs.
    pub roster: RefCell<Roster<VerbsProcess>>,
    /// True if there is news about a connection with another job: a process is lost, or all processes have left.
    pub alarm: Arc<AtomicBool>,
    /// Number of rails that all processes have.
    pub rails: usize,
    /// The networks of the rails. All processes use the same names.
    pub networks: Vec<String>,
    /// An IP address at which other hosts reach this process; `None` if a process of the job has no IP address.
    pub ip: Option<IpAddr>,
    /// True if all processes compute with the same arithmetic.
    pub same_arithmetic: bool,
}

impl VerbsCore {
    /// Returns the rail of the first connection with `peer`. Both ends choose the same rail.
    pub fn rail_to(&self, peer: usize) -> usize {
        // A process connects with itself on the rail that carries the atomics on its own memory.
        let usual = if peer == self.rank { peer } else { self.rank + self.home(peer) };
        self.options.rail.unwrap_or(usual) % self.rails
    }

    /// Returns the rank of `peer` in the peer's own job. Both ends know this rank.
    pub fn home(&self, peer: usize) -> usize {
        if peer < self.size { peer } else { self.roster.borrow().member(peer).home }
    }

    /// Returns the address of a rail of `peer`.
    pub fn address_of(&self, peer: usize, rail: usize) -> RailAddress {
        self.roster.borrow().member(peer).address.rails[rail]
    }

    /// Returns the host of `peer`.
    pub fn host_of(&self, peer: usize) -> String {
        self.roster.borrow().member(peer).address.host.clone()
    }

    /// Returns true if the death of `peer` is a loss, which this process must report.
    pub fn misses(&self, peer: usize) -> bool {
        self.roster.borrow().get(peer).is_some_and(|member| !member.unmissed.get())
    }

    pub fn complete(&self, done: Completion) {
        if let Some(counter) = done {
            self.counters.add(counter, 1);
        }
    }

    /// Returns the maximum number of events that a peer may have in flight to this process on connection `link`.
    pub fn events_by(&self, link: usize) -> usize {
        match self.is_secondary(link) {
            true => self.bounds.secondary_events(),
            false => self.bounds.events,
        }
    }

    /// Returns the number of receive buffers that connection `link` needs.
    pub fn buffers_of(&self, link: usize) -> usize {
        match self.is_secondary(link) {
            true => self.bounds.secondary_buffers(),
            false => self.bounds.buffers(),
        }
    }

    /// Returns the number of rails that carry data between this process and `peer`.
    pub fn rails_to(&self, peer: usize) -> usize {
        if peer == self.rank || self.options.rail.is_some() { 1 } else { self.rails }
    }

    /// Returns the number of the connection with `peer` over `rail`, see [`crate::connection::connections`].
    pub fn link_over(&self, peer: usize, rail: usize) -> usize {
        let rails = self.rails_to(peer);
        if rails == 1 {
            return peer;
        }
        match (rail % rails + rails - self.rail_to(peer)) % rails {
            0 => peer,
            place => SECONDARY + peer * (rails - 1) + place - 1,
        }
    }

    /// Returns the peer of connection `link`.
    #[inline]
    pub fn peer_of(&self, link: usize) -> usize {
        if link < SECONDARY { link } else { (link - SECONDARY) / (self.rails - 1) }
    }

    /// Returns the rail of connection `link`.
    pub fn rail_of(&self, link: usize) -> usize {
        let place = if link < SECONDARY { 0 } else { 1 + (link - SECONDARY) % (self.rails - 1) };
        (self.rail_to(self.peer_of(link)) + place) % self.rails
    }

    /// Returns the numbers of all connections with `peer`, beginning with the first connection.
    pub fn links_with(&self, peer: usize) -> impl Iterator<Item = usize> + use<> {
        let further = self.rails - 1;
        let behind = SECONDARY + peer * further;
        std::iter::once(peer).chain(behind..behind + further)
    }

    /// Returns true if `link` is the number of a secondary connection.
    #[inline]
    pub fn is_secondary(&self, link: usize) -> bool {
        link >= SECONDARY
    }

    /// Returns the number of the connection that carries atomics on memory of `peer`.
    pub fn atomics_to(&self, peer: usize) -> usize {
        self.link_over(peer, self.home(peer) % self.rails)
    }
}
