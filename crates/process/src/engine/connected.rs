//! Processes of other jobs to which this process is connected (MPI 5.0, section 11.10).
//!
//! A rank in the world is this process's own number for a process. The first numbers are ranks of this job, and further numbers are
//! processes of other jobs. Another process has other numbers for the same processes. So messages between processes contain
//! identities: the job, and the rank in the job.
//!
//! ```text
//!   a link      the connection that brought peers; it lasts as long as a communicator has a process of the link in it
//!   a lease     a communicator's hold on the links of its members
//! ```

use super::Engine;
use crate::{Error, Group, class};
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::{Rc, Weak};
use weft_fabric::{Fabric, FabricExt};

/// Identity of a process. All processes of all jobs use the same identity for the process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Identity {
    /// Number of the process's job. No other job has this number.
    pub job: u64,
    /// Rank of the process in its job.
    pub rank: u32,
}

impl Identity {
    /// Number of bytes of [`Identity::encode`].
    pub const LEN: usize = 12;

    /// Encodes the identity for a message.
    pub fn encode(self) -> [u8; Self::LEN] {
        let mut bytes = [0; Self::LEN];
        bytes[..8].copy_from_slice(&self.job.to_le_bytes());
        bytes[8..].copy_from_slice(&self.rank.to_le_bytes());
        bytes
    }

    /// Decodes the identity in a message.
    pub fn decode(bytes: &[u8; Self::LEN]) -> Identity {
        let (job, rank) = bytes.split_first_chunk().expect("8 of 12 bytes");
        let rank = rank.try_into().expect("the other 4");
        Identity { job: u64::from_le_bytes(*job), rank: u32::from_le_bytes(rank) }
    }
}

/// Hold on a link. The link lasts as long as there is a reference to this value.
#[derive(Debug)]
struct Held;

/// A communicator's hold on links. The links last as long as the lease.
#[derive(Debug, Clone)]
pub struct Lease {
    _links: Vec<Rc<Held>>,
}

/// A link: the hold on the link, and the processes that the link brought.
#[derive(Debug)]
pub struct LinkId {
    held: Rc<Held>,
    peers: Vec<u32>,
}

impl LinkId {
    /// Returns true if no communicator has a process of the link in it.
    pub fn is_idle(&self) -> bool {
        Rc::strong_count(&self.held) == 1
    }

    /// Returns the processes that the link brought.
    pub fn peers(&self) -> &[u32] {
        &self.peers
    }
}

/// A process of another job, with its number at this process and the facts that the jobs exchange when they connect.
#[derive(Debug, Clone, Copy)]
pub struct ForeignPeer {
    /// Number of the process at this process.
    pub number: u32,
    /// Identity of the process.
    pub identity: Identity,
    /// Arithmetic of the process's job, see [`Engine::arithmetic`].
    pub arithmetic: u64,
    /// Model of copies of the process, see [`Engine::copies`].
    pub copies: u64,
}

struct Known {
    identity: Identity,
    arithmetic: u64,
    copies: u64,
    link: Weak<Held>,
}

/// The known processes of other jobs.
#[derive(Default)]
pub(super) struct Connected {
    job: Cell<u64>,
    arithmetic: Cell<u64>,
    copies: Cell<u64>,
    peers: RefCell<HashMap<u32, Known>>,
    ranks: RefCell<HashMap<Identity, u32>>,
    /// True if there ever were connections. Then numbers of communicators must differ from the numbers of other jobs.
    ever: Cell<bool>,
}

impl<F: Fabric> Engine<F> {
    /// Sets the number of this job. All processes of the job have the same number, and no other job has this number. `arithmetic`
    /// stands for the arithmetic of the process, and is not 0.
    pub fn set_job(&self, job: u64, arithmetic: u64) {
        self.connected.job.set(job);
        let is_one = self.endpoint().fabric().same_arithmetic();
        self.connected.arithmetic.set(if is_one { arithmetic } else { 0 });
    }

    /// Returns the arithmetic of this job: a number that is equal in jobs whose processes all compute alike. 0 if the processes of
    /// the job differ.
    pub fn arithmetic(&self) -> u64 {
        self.connected.arithmetic.get()
    }

    /// Returns true if the jobs whose processes are in `group` compute with the same arithmetic. All members of the group get the
    /// same answer, because each member knows the arithmetic of each job.
    pub(crate) fn computes_alike(&self, group: &Group) -> bool {
        let peers = self.connected.peers.borrow();
        let own = self.arithmetic();
        let is_alike = |known: &Known| known.arithmetic == own && own != 0;
        peers.is_empty() || group.ranks().iter().filter_map(|rank| peers.get(rank)).all(is_alike)
    }

    /// Sets a hash of this process's model of copies. All processes of a job on one node have the same model.
    pub fn set_copies(&self, hash: u64) {
        self.connected.copies.set(hash);
    }

    /// Returns the hash of [`Engine::set_copies`].
    pub fn copies(&self) -> u64 {
        self.connected.copies.get()
    }

    /// Returns true if the processes of `group` on this node have the same model of copies. All members of the group on this node
    /// get the same answer, because each member knows the models of the processes of other jobs.
    pub(crate) fn copies_alike(&self, group: &Group) -> bool {
        let peers = self.connected.peers.borrow();
        if peers.is_empty() {
            return true;
        }
        let (own, fabric) = (self.copies(), self.endpoint().fabric());
        let is_here = |rank: u32| fabric.capabilities(rank as usize).shares_memory;
        let known = group.ranks().iter().filter_map(|rank| Some((*rank, peers.get(rank)?)));
        known.into_iter().all(|(rank, known)| known.copies == own || !is_here(rank))
    }

    /// Returns the identity of a process, for messages to other processes.
    pub fn identity(&self, peer: u32) -> Identity {
        let connected = &self.connected;
        match connected.peers.borrow().get(&peer) {
            Some(known) => known.identity,
            None => Identity { job: connected.job.get(), rank: peer },
        }
    }

    /// Returns this process's number for a process. Errors: [`class::GROUP`] if the two processes are not connected.
    pub fn peer_of(&self, identity: Identity) -> Result<u32, Error> {
        let connected = &self.connected;
        if identity.job == connected.job.get() {
            return Ok(identity.rank);
        }
        connected.ranks.borrow().get(&identity).copied().ok_or_else(|| {
            let Identity { job, rank } = identity;
            let text = format!(
                "process {rank} of job {job:016x} is not connected to this one: connect the two jobs by \
                 MPI_Comm_connect and MPI_Comm_accept first"
            );
            Error::new(class::GROUP, text)
        })
    }

    /// Returns this process's number for a process, if the process is of another job and connected.
    pub fn known(&self, identity: Identity) -> Option<u32> {
        self.connected.ranks.borrow().get(&identity).copied()
    }

    /// Adds processes of other jobs, and returns their link.
    pub fn add_link(&self, peers: &[ForeignPeer]) -> LinkId {
        let (connected, held) = (&self.connected, Rc::new(Held));
        connected.ever.set(true);
        for &ForeignPeer { number: peer, identity, arithmetic, copies } in peers {
            let known = Known { identity, arithmetic, copies, link: Rc::downgrade(&held) };
            // Two links that were made at the same time may both have brought the process. Then each link has a number for the
            // process, and the later number counts.
            connected.ranks.borrow_mut().insert(identity, peer);
            connected.peers.borrow_mut().insert(peer, known);
        }
        LinkId { held, peers: peers.iter().map(|peer| peer.number).collect() }
    }

    /// Forgets the processes of a link. No operation with these processes may be under way.
    pub fn forget_link(&self, link: &LinkId) {
        let connected = &self.connected;
        for &peer in &link.peers {
            let ours = |known: &Known| std::ptr::eq(known.link.as_ptr(), &*link.held);
            let mut peers = connected.peers.borrow_mut();
            if peers.get(&peer).is_some_and(ours) {
                let known = peers.remove(&peer).expect("it is there");
                connected.ranks.borrow_mut().retain(|_, number| *number != peer);
                // The removed process may also be known through another link, under another number.
                let other = peers.iter().find(|(_, other)| other.identity == known.identity);
                if let Some((&number, _)) = other {
                    connected.ranks.borrow_mut().insert(known.identity, number);
                }
                self.forget_peer(peer);
            }
        }
    }

    /// Returns the identities of a group, by rank.
    pub(crate) fn identities(&self, group: &Group) -> Vec<Identity> {
        group.ranks().iter().map(|&rank| self.identity(rank)).collect()
    }

    fn forget_peer(&self, peer: u32) {
        self.endpoint().forget_peer(peer as usize);
        self.mailbox().forget(peer);
    }

    /// Returns true if a number of this process for communicators must differ from the numbers of all other jobs.
    pub(crate) fn numbers_are_shared(&self) -> bool {
        self.connected.ever.get()
    }

    /// Returns a hold on the links of the processes in `groups`. `None` if all processes are of this job.
    pub(crate) fn lease(&self, groups: [Option<&Group>; 2]) -> Option<Lease> {
        let peers = self.connected.peers.borrow();
        if peers.is_empty() {
            return None;
        }
        let all = groups.into_iter().flatten().flat_map(|group| group.ranks().iter());
        let mut links: Vec<Rc<Held>> = Vec::new();
        for link in all.filter_map(|rank| peers.get(rank)?.link.upgrade()) {
            if !links.iter().any(|one| Rc::ptr_eq(one, &link)) {
                links.push(link);
            }
        }
        (!links.is_empty()).then_some(Lease { _links: links })
    }
}
