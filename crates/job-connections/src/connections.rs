//! The links of a network with other jobs: reports of lost peers, and the end of links.

use std::rc::Rc;
use weft_bootstrap::ports::SessionMonitor;

/// The state of a link.
struct ConnectionMembers {
    monitor: SessionMonitor,
    /// Numbers of the members, by place. `new` has the numbers of the peers that this link has added.
    peers: Vec<usize>,
    new: Vec<usize>,
}

/// A link between processes of several jobs. It lasts until all its processes have left it.
#[derive(Clone)]
pub struct JobConnection(Rc<ConnectionMembers>);

impl JobConnection {
    pub(super) fn new(
        monitor: SessionMonitor,
        peers: Vec<usize>,
        new: Vec<usize>,
    ) -> JobConnection {
        JobConnection(Rc::new(ConnectionMembers { monitor, peers, new }))
    }

    /// Returns the number under which this process knows each member, by place.
    pub fn peers(&self) -> &[usize] {
        &self.0.peers
    }

    /// Returns the numbers of the peers that this link has added.
    pub fn new_peers(&self) -> &[usize] {
        &self.0.new
    }

    /// Returns true if no member needs this process any more.
    pub fn others_left(&self) -> bool {
        self.0.monitor.is_over()
    }

    /// Declares that this process no longer needs the other members.
    pub(super) fn leave(&self) {
        self.0.monitor.leave();
    }
}

/// The links of a process.
#[derive(Default)]
pub struct JobConnections {
    live: Vec<JobConnection>,
    /// Links that this process has left and that other members still use.
    leaving: Vec<JobConnection>,
}

impl JobConnections {
    pub(super) fn add(&mut self, link: JobConnection) {
        self.live.push(link);
    }

    pub(super) fn leave(&mut self, link: JobConnection) {
        self.live.retain(|live| !Rc::ptr_eq(&live.0, &link.0));
        self.leaving.push(link);
    }

    /// Returns true if all other members have left, or have ended, in each link that this process has left.
    pub(super) fn have_parted(&self) -> bool {
        self.leaving.iter().all(JobConnection::others_left)
    }

    /// Returns the peers of other jobs that have died since the last call.
    pub fn take_lost(&self) -> Vec<usize> {
        let mut lost: Vec<usize> = Vec::new();
        for JobConnection(bond) in &self.live {
            while let Some(place) = bond.monitor.take_lost() {
                lost.extend(bond.peers.get(place).filter(|peer| bond.new.contains(peer)));
            }
        }
        lost
    }

    /// Takes the peers of links that all members have left. Nobody needs these peers, and the caller forgets them.
    pub fn take_over(&mut self) -> Vec<usize> {
        let over = self.leaving.extract_if(.., |link| link.others_left());
        over.flat_map(|link| link.0.new.clone()).collect()
    }
}
