//! State of the peers with which this process has exchanged data.

use crate::job::OfiCore;
use crate::message_pools::{Assembly, PooledMessage};
use crate::options::RAILS_MAX;
use crate::peer_rail::PeerRail;
use crate::signs::Signs;
use crate::wire::{FOREIGN, proof};
use crate::work::OfiWork;
use std::collections::VecDeque;

/// State of a peer with which this process has exchanged data.
pub struct OfiPeer {
    /// The provider's number for the peer's address on the first rail.
    pub number: u64,
    /// First words of each message to the peer: `says` is a proof, and `me` is the peer's number for this process.
    pub says: u64,
    pub me: u32,
    /// The proof at the beginning of the peer's messages. `None`: the peer's messages have no proof.
    pub expects: Option<u64>,
    /// Credits: number of messages that may still be sent to the peer.
    pub credits: usize,
    /// Number of credits that the next message to the peer will return.
    pub owed: u16,
    /// Number of bytes of the next message that were already posted as parts.
    pub posted: usize,
    /// A long message of the peer of which some parts have arrived.
    pub assembly: Option<Assembly>,
    /// Messages that have arrived.
    pub inbox: VecDeque<PooledMessage>,
    /// True if the peer is in the queue of peers with messages.
    pub listed: bool,
    /// Operations for which there was no room: messages in `kept_messages`, all other operations in `kept_work`.
    pub kept_messages: VecDeque<OfiWork>,
    pub kept_work: VecDeque<OfiWork>,
    /// True if the peer is in the list of peers with kept operations.
    pub waiting: bool,
    /// The further rails to the peer.
    pub over: Box<[PeerRail]>,
    /// By rail: number of incomplete writes that were requested on the rail.
    pub written: [u32; RAILS_MAX],
    /// True if the peer has announced that nothing more will come.
    pub left: bool,
    /// True if this process does not need the peer any more. Then the death of the peer does not count as a loss.
    pub unmissed: bool,
    /// True if the peer is lost. Nothing is posted to it.
    pub lost: bool,
    pub signs: Signs,
}

impl OfiPeer {
    /// Makes the state of process `rank`, with which this process has not exchanged data yet.
    fn new(core: &OfiCore, rank: usize) -> OfiPeer {
        let roster = core.roster.borrow();
        let number = roster.member(rank).number;
        let foreign = roster.foreign(rank);
        let me = foreign.map_or(core.rank as u32, |foreign| foreign.me);
        let says = match foreign {
            Some(foreign) => proof(foreign.secret, me, FOREIGN),
            None => proof(core.secret, me, rank as u32),
        };
        let expects = core.proof_of(rank);
        let rails = if foreign.is_some() { 0 } else { core.others.len() };
        OfiPeer {
            number,
            says,
            me,
            expects,
            credits: core.credits,
            owed: 0,
            posted: 0,
            assembly: None,
            inbox: VecDeque::new(),
            listed: false,
            kept_messages: VecDeque::new(),
            kept_work: VecDeque::new(),
            waiting: false,
            over: (0..rails).map(|_| PeerRail::default()).collect(),
            written: [0; RAILS_MAX],
            left: false,
            unmissed: false,
            lost: false,
            signs: Signs::new(),
        }
    }

    /// Returns true if nothing is kept for the peer.
    fn is_drained(&self) -> bool {
        let over = self.over.iter().all(|over| over.kept.is_empty());
        self.kept_messages.is_empty() && self.kept_work.is_empty() && over
    }
}

/// The peers by rank, with the order in which they are served.
pub struct OfiPeers {
    peers: Vec<Option<Box<OfiPeer>>>,
    /// Peers with messages, in the order of their turns.
    arrived: VecDeque<u32>,
    /// Peers with kept operations.
    waiting: Vec<u32>,
}

impl OfiPeers {
    /// Makes the table of a job of `size` processes.
    pub fn new(size: usize) -> OfiPeers {
        let (arrived, waiting) = Default::default();
        OfiPeers { peers: (0..size).map(|_| None).collect(), arrived, waiting }
    }

    /// Makes room for `count` processes.
    pub fn make_room(&mut self, count: usize) {
        if self.peers.len() < count {
            self.peers.resize_with(count, || None);
        }
    }

    /// Returns the number of processes that there is room for.
    pub fn len(&self) -> usize {
        self.peers.len()
    }

    /// Returns the peer. Creates its state at the first use.
    #[inline]
    pub fn of(&mut self, core: &OfiCore, rank: usize) -> &mut OfiPeer {
        self.peers[rank].get_or_insert_with(|| Box::new(OfiPeer::new(core, rank)))
    }

    /// Returns the peer, if this process has exchanged data with it.
    ///
    /// # Panics
    /// If there is no such process.
    #[inline]
    pub fn get(&self, rank: usize) -> Option<&OfiPeer> {
        self.peers[rank].as_deref()
    }

    /// Returns the peer, if this process has exchanged data with it.
    ///
    /// # Panics
    /// If there is no such process.
    #[inline]
    pub fn get_mut(&mut self, rank: usize) -> Option<&mut OfiPeer> {
        self.peers[rank].as_deref_mut()
    }

    /// Returns the peer, or `None` if this process has not exchanged data with it or there is no such process.
    #[inline]
    pub fn find(&self, rank: usize) -> Option<&OfiPeer> {
        self.peers.get(rank)?.as_deref()
    }

    /// Returns the peers with which this process has exchanged data, with their ranks.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (usize, &mut OfiPeer)> {
        let peers = self.peers.iter_mut().enumerate();
        peers.filter_map(|(rank, peer)| Some((rank, peer.as_deref_mut()?)))
    }

    /// Returns the number of peers with which this process has exchanged data.
    pub fn count(&self) -> usize {
        self.peers.iter().flatten().count()
    }

    /// Appends a message to the queue of its peer.
    #[inline]
    pub fn enlist(&mut self, core: &OfiCore, rank: usize, message: PooledMessage) {
        let peer = self.of(core, rank);
        peer.inbox.push_back(message);
        if !std::mem::replace(&mut peer.listed, true) {
            self.arrived.push_back(rank as u32);
        }
    }

    /// Takes a message of the peer whose turn it is. Returns the rank of the peer and the message.
    pub fn take_next(&mut self) -> Option<(usize, PooledMessage)> {
        loop {
            let rank = self.arrived.pop_front()?;
            let Some(peer) = self.get_mut(rank as usize) else { continue };
            let message = peer.inbox.pop_front();
            peer.listed = !peer.inbox.is_empty();
            if peer.listed {
                self.arrived.push_back(rank);
            }
            if let Some(message) = message {
                return Some((rank as usize, message));
            }
        }
    }

    /// Records that an operation is kept for a peer.
    pub fn wait_for(&mut self, core: &OfiCore, rank: usize) {
        if !std::mem::replace(&mut self.of(core, rank).waiting, true) {
            self.waiting.push(rank as u32);
        }
    }

    /// Returns true if a peer is in the list of peers with kept operations.
    #[inline]
    pub fn waits(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Returns the number of peers with kept operations.
    pub fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Returns the peer at place `at` of the list of peers with kept operations.
    pub fn waiting_at(&self, at: usize) -> usize {
        self.waiting[at] as usize
    }

    /// Removes the peer at place `at` from the list of peers with kept operations, if no operation is kept for it any more.
    pub fn drop_drained(&mut self, core: &OfiCore, at: usize) {
        let peer = self.of(core, self.waiting[at] as usize);
        if peer.is_drained() {
            peer.waiting = false;
            self.waiting.swap_remove(at);
        }
    }

    /// Returns true if an operation is kept that a peer may wait for.
    pub fn must_leave(&self) -> bool {
        let waiting = self.waiting.iter().filter_map(|&rank| self.get(rank as usize));
        let mut staying = waiting.filter(|peer| !peer.left);
        staying.any(|peer| {
            !peer.kept_messages.is_empty() || peer.kept_work.iter().any(OfiWork::must_leave)
        })
    }

    /// Forgets a peer, whose messages have all been taken.
    pub fn forget(&mut self, rank: usize) {
        self.arrived.retain(|&one| one as usize != rank);
        self.waiting.retain(|&one| one as usize != rank);
        self.peers[rank] = None;
    }
}
