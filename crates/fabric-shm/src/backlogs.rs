//! List of the peers for which messages are kept back, because there was no room for the messages.

use crate::control::RankControl;
use crate::sync::Ordering;
use std::cell::{Cell, RefCell};

/// Peers with a backlog. The messages themselves are kept with each peer.
#[derive(Default)]
pub(crate) struct BackloggedPeers {
    peers: RefCell<Vec<usize>>,
    count: Cell<usize>,
}

impl BackloggedPeers {
    /// Returns true if nothing is kept back.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.count.get() == 0
    }

    /// Adds a peer, and notes in the own control block that messages are kept back.
    pub fn add(&self, own: &RankControl, peer: usize) {
        let mut peers = self.peers.borrow_mut();
        if !peers.contains(&peer) {
            peers.push(peer);
        }
        self.note(own, peers.len());
    }

    /// Keeps the peers for which `rest` returns true.
    pub fn retain(&self, own: &RankControl, mut rest: impl FnMut(usize) -> bool) {
        self.peers.borrow_mut().retain(|&peer| rest(peer));
        self.note(own, self.peers.borrow().len());
    }

    fn note(&self, own: &RankControl, count: usize) {
        self.count.set(count);
        own.keeps.0.store(count as u64, Ordering::Release);
    }
}
