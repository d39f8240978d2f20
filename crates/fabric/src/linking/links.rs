//! What a network keeps of links with other jobs, how their losses are heard, and how they end.

use std::rc::Rc;
use weft_bootstrap::ports::SessionMonitor;

/// What is kept of a link.
struct ConnectionMembers {
    monitor: SessionMonitor,
    /// Numbers of the members, by place; those that came with this link are `new`.
    peers: Vec<usize>,
    new: Vec<usize>,
}

/// What processes of several jobs share: until all of them have left it.
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

    /// What this process calls each member, by place.
    pub fn peers(&self) -> &[usize] {
        &self.0.peers
    }

    /// The peers that this link has brought.
    pub fn new_peers(&self) -> &[usize] {
        &self.0.new
    }

    /// Whether no member needs this process any more.
    pub fn others_left(&self) -> bool {
        self.0.monitor.is_over()
    }

    /// Says that this process needs the others no more.
    pub(super) fn leave(&self) {
        self.0.monitor.leave();
    }
}

/// The links of a process.
#[derive(Default)]
pub struct JobConnections {
    live: Vec<JobConnection>,
    /// Left, but not by all.
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

    /// Whether all others have left, too, what this process has left, or have ended.
    pub(super) fn have_parted(&self) -> bool {
        self.leaving.iter().all(JobConnection::others_left)
    }

    /// Peers of other jobs that have ended without a word, since the last call.
    pub fn take_lost(&self) -> Vec<usize> {
        let mut lost: Vec<usize> = Vec::new();
        for JobConnection(bond) in &self.live {
            while let Some(place) = bond.monitor.take_lost() {
                lost.extend(bond.peers.get(place).filter(|peer| bond.new.contains(peer)));
            }
        }
        lost
    }

    /// The peers of links that all have left: nobody needs them, and they are to be forgotten.
    pub fn take_over(&mut self) -> Vec<usize> {
        let over = self.leaving.extract_if(.., |link| link.others_left());
        over.flat_map(|link| link.0.new.clone()).collect()
    }
}
