//! What a network keeps of links with other jobs, how their losses are heard, and how they end.

use std::rc::Rc;
use weft_bootstrap::ports::SessionMonitor;

/// What is kept of a link.
struct Bond {
    monitor: SessionMonitor,
    /// Numbers of the members, by place; those that came with this link are `new`.
    peers: Vec<usize>,
    new: Vec<usize>,
}

/// What processes of several jobs share: until all of them have left it.
#[derive(Clone)]
pub struct Link(Rc<Bond>);

impl Link {
    pub(super) fn new(monitor: SessionMonitor, peers: Vec<usize>, new: Vec<usize>) -> Link {
        Link(Rc::new(Bond { monitor, peers, new }))
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
pub struct Links {
    live: Vec<Link>,
    /// Left, but not by all.
    leaving: Vec<Link>,
}

impl Links {
    pub(super) fn add(&mut self, link: Link) {
        self.live.push(link);
    }

    pub(super) fn leave(&mut self, link: Link) {
        self.live.retain(|live| !Rc::ptr_eq(&live.0, &link.0));
        self.leaving.push(link);
    }

    /// Whether all others have left, too, what this process has left, or have ended.
    pub(super) fn have_parted(&self) -> bool {
        self.leaving.iter().all(Link::others_left)
    }

    /// Peers of other jobs that have ended without a word, since the last call.
    pub fn take_lost(&self) -> Vec<usize> {
        let mut lost: Vec<usize> = Vec::new();
        for Link(bond) in &self.live {
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
