//! What is known of each peer, made at first use: a process talks to few of many.
//!
//! An open table of places by a hash of the rank, a power of two long and at most half full; the
//! entries lie in one row in the order of first use.

use crate::endpoint::Peer;

/// A place that holds nobody.
const NOBODY: u32 = u32::MAX;

/// Entries by rank.
#[derive(Default)]
pub struct Peers {
    /// Rank and entry, [`NOBODY`] where there is none.
    places: Box<[(u32, u32)]>,
    entries: Vec<Peer>,
}

impl Peers {
    /// The entry of `peer`; `make` makes it if there is none.
    #[inline]
    pub fn get_or_insert(&mut self, peer: usize, make: impl FnOnce() -> Peer) -> &mut Peer {
        let peer = peer as u32;
        let index = match self.find(peer) {
            Some(index) => index,
            None => self.insert(peer, make()),
        };
        &mut self.entries[index as usize]
    }

    #[inline]
    fn find(&self, peer: u32) -> Option<u32> {
        let mask = self.places.len().wrapping_sub(1);
        let mut at = hash(peer) & mask;
        loop {
            let &(rank, index) = self.places.get(at)?;
            if rank == peer {
                return Some(index);
            }
            if rank == NOBODY {
                return None;
            }
            at = (at + 1) & mask;
        }
    }

    #[cold]
    fn insert(&mut self, peer: u32, entry: Peer) -> u32 {
        let index = self.entries.len() as u32;
        self.entries.push(entry);
        if 2 * self.entries.len() > self.places.len() {
            let len = (2 * self.places.len()).max(4);
            let old = std::mem::replace(&mut self.places, vec![(NOBODY, 0); len].into());
            for place in old.into_iter().filter(|&(rank, _)| rank != NOBODY) {
                self.put(place);
            }
        }
        self.put((peer, index));
        index
    }

    fn put(&mut self, place: (u32, u32)) {
        let mask = self.places.len() - 1;
        let mut at = hash(place.0) & mask;
        while self.places[at].0 != NOBODY {
            at = (at + 1) & mask;
        }
        self.places[at] = place;
    }
}

/// Spreads neighbouring ranks, and ranks that are powers of two apart.
#[inline]
fn hash(peer: u32) -> usize {
    (peer.wrapping_mul(0x9e37_79b9) >> 8) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_peer_keeps_its_entry() {
        let mut peers = Peers::default();
        for round in 0..3 {
            for rank in (0..5000).map(|i| i * 64 % 4999) {
                let entry = peers.get_or_insert(rank, || {
                    assert!(round == 0);
                    Peer { eager: rank, ..Peer::default() }
                });
                assert_eq!(entry.eager, rank);
            }
        }
        assert_eq!(peers.entries.len(), 4999);
    }
}
