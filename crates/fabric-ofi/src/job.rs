//! The part of the state that does not change: the processes that can be reached, and the endpoints of this process.

use crate::connection_state::{ConnectionState, KeepaliveTimes};
use crate::extra_rail::{ExtraRail, Probes};
use crate::helper_thread::HelperPlace;
use crate::object::Objects;
use crate::sleep::OfiSleeper;
use crate::wire::{FOREIGN, proof};
use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use weft_fabric::{Completion, Counters};
use weft_job_connections::Roster;

/// Host and address of a peer, in readable form.
#[derive(Debug, Clone)]
pub struct Where {
    pub host: String,
    pub address: String,
    /// True if the process is on this machine, but in another network namespace.
    pub is_apart: bool,
}

/// A reachable process: of this job, or of a linked job.
pub struct OfiProcess {
    /// The provider's number for the address of the process.
    pub number: u64,
    pub place: Where,
    /// Address of the process's endpoint, if the provider uses TCP.
    pub ip: Option<SocketAddr>,
}

/// The part of the state that does not change.
pub struct OfiCore {
    pub objects: Arc<Objects>,
    pub sleeper: Arc<OfiSleeper>,
    pub helper: Arc<HelperPlace>,
    pub counters: Rc<Counters>,
    pub rank: usize,
    /// Secret of the job.
    pub secret: u128,
    /// Number of processes of the job.
    pub size: usize,
    /// All processes that can be reached, on the first rail.
    pub roster: RefCell<Roster<OfiProcess>>,
    /// True if a link with another job has news: a process is lost, or all processes of the other job have left.
    pub alarm: Arc<AtomicBool>,
    /// The further rails. They connect only processes of this job.
    pub others: Vec<ExtraRail>,
    /// Memory for probes, if there are further rails.
    pub probes: Option<Probes>,
    /// Time of silence after which a waiting process asks a peer for a sign of life (zero: a peer is never asked), and the maximum
    /// time for which a peer's host may leave data unacknowledged.
    pub times: KeepaliveTimes,
    /// Credits of each peer: maximum number of messages that a peer may send before credits return to it.
    pub credits: usize,
    pub same_arithmetic: bool,
    /// Reason for this provider and this interface.
    pub why: String,
    /// Function that prints a line for the user.
    pub say: fn(&str),
}

impl OfiCore {
    /// Returns the number of rails.
    pub fn rails(&self) -> usize {
        1 + self.others.len()
    }

    /// Returns the address of an endpoint on a rail, if the provider uses TCP.
    pub fn ip(&self, rail: usize, rank: usize) -> Option<SocketAddr> {
        match rail {
            0 => self.roster.borrow().member(rank).ip,
            _ => self.others[rail - 1].ips.get(rank).copied().flatten(),
        }
    }

    /// Returns true if `there` is the endpoint of a process on the rail.
    pub fn is_an_endpoint(&self, rail: usize, there: SocketAddr) -> bool {
        match rail {
            0 => self.roster.borrow().iter().any(|(_, member)| member.ip == Some(there)),
            _ => self.others[rail - 1].ips.contains(&Some(there)),
        }
    }

    /// Returns the state of the connection to a peer on a rail, or `None` if the provider does not show the state.
    pub fn way(&self, rail: usize, rank: usize) -> Option<ConnectionState> {
        match rail {
            0 => self.objects.way(self.roster.borrow().member(rank).number),
            _ => {
                let rail = &self.others[rail - 1];
                rail.objects.way(*rail.numbers.get(rank)?)
            }
        }
    }

    /// Returns the host and the address of process `rank`, in readable form.
    pub fn place(&self, rank: usize) -> Where {
        self.roster.borrow().member(rank).place.clone()
    }

    /// Returns the proof with which a message from `rank` must begin, or `None` if there is no such process.
    pub fn proof_of(&self, rank: usize) -> Option<u64> {
        if rank < self.size {
            return Some(proof(self.secret, rank as u32, self.rank as u32));
        }
        let foreign = self.roster.borrow().foreign(rank)?;
        Some(proof(foreign.secret, rank as u32, FOREIGN))
    }

    /// Returns true if the provider holds data that only a poll sends.
    #[inline]
    pub fn has_unsent(&self) -> bool {
        self.objects.has_unsent() || self.others.iter().any(|rail| rail.objects.has_unsent())
    }

    #[inline]
    pub fn complete(&self, done: Completion) {
        if let Some(counter) = done {
            self.counters.add(counter, 1);
        }
    }
}
