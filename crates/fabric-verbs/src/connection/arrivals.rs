//! The peers whose messages have arrived, and the order in which they are served.

use crate::connection::VerbsConnection;
use crate::connection::connections::Connections;
use crate::ffi::ibv_wc;
use crate::memory::NONE;
use crate::memory::receive_pool::ReceivePool;
use crate::rail::VerbsRail;
use std::collections::VecDeque;
use weft_fabric::ArrivedMessage;

/// Peers with arrived messages, in the order of service.
pub struct Arrivals {
    peers: VecDeque<u32>,
}

impl Arrivals {
    /// Makes an empty list with room for `peers` peers.
    pub fn new(peers: usize) -> Arrivals {
        Arrivals { peers: VecDeque::with_capacity(peers) }
    }

    /// Puts a message into the inbox of its connection. Returns false if the size of the message is impossible.
    #[inline]
    pub fn deliver(
        &mut self,
        link: &mut VerbsConnection,
        pool: &mut ReceivePool,
        wc: &ibv_wc,
    ) -> bool {
        if !pool.append(&mut link.inbox, wc.wr_id as u32, wc.byte_len) {
            return false;
        }
        if !std::mem::replace(&mut link.listed, true) {
            self.peers.push_back(link.number);
        }
        true
    }

    /// Returns true if a message of `link` can be delivered without allocating memory.
    pub fn has_room_for(&self, link: &VerbsConnection) -> bool {
        link.listed || self.peers.len() < self.peers.capacity()
    }

    /// Returns the peer at place `at` in the order of service.
    pub fn get(&self, at: usize) -> Option<usize> {
        self.peers.get(at).map(|&peer| peer as usize)
    }

    /// Takes the next message of peer `from`. If `from` is `None`, takes a message of the peer whose turn it is.
    #[inline]
    pub fn receive(
        &mut self,
        connections: &mut Connections,
        rails: &[VerbsRail],
        from: Option<usize>,
    ) -> Option<ArrivedMessage> {
        if let Some(peer) = from {
            return take_message(connections.get_mut(peer)?, rails);
        }
        loop {
            let peer = *self.peers.front()?;
            let link = connections.of(peer as usize);
            let message = take_message(link, rails);
            self.peers.pop_front();
            link.listed = link.inbox.first() != NONE;
            if link.listed {
                self.peers.push_back(peer);
            }
            if message.is_some() {
                return message;
            }
        }
    }

    /// Forgets the connection `number`, because it is closed.
    pub fn forget(&mut self, number: u32) {
        self.peers.retain(|&other| other != number);
    }
}

#[inline]
fn take_message(link: &mut VerbsConnection, rails: &[VerbsRail]) -> Option<ArrivedMessage> {
    let pool = &rails[link.rail].receives;
    let buffer = pool.take_first(&mut link.inbox)?;
    Some(pool.message(link.number as usize, link.rail, buffer))
}
