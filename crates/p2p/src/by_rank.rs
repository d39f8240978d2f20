//! Table of entries by rank. A process communicates with only a few ranks, so an entry is made only when it is first used. An entry
//! can be removed, because processes of other jobs may leave.
//!
//! The table uses open addressing with a hash of the rank. The length of the table is a power of two, and at most three quarters of
//! its places are taken.

/// Rank of an empty place.
const NOBODY: u32 = u32::MAX;

/// Table with a `T` for each rank for which [`RankTable::get_or_insert`] was called. An entry stays until it is removed; a rank has
/// at most one entry.
#[derive(Default)]
pub struct RankTable<T> {
    /// Rank and entry; [`NOBODY`] marks an empty place.
    places: Box<[(u32, T)]>,
    len: usize,
}

impl<T: Default> RankTable<T> {
    /// Returns the entry of `peer`. If there is no entry, adds the value of `make`.
    #[inline(always)]
    pub fn get_or_insert(&mut self, peer: usize, make: impl FnOnce() -> T) -> &mut T {
        let peer = peer as u32;
        let at = match self.find(peer) {
            Some(at) => at,
            None => self.insert(peer, make()),
        };
        &mut self.places[at].1
    }

    /// Returns the entry of `peer`, if there is one.
    pub fn get(&self, peer: usize) -> Option<&T> {
        self.find(peer as u32).map(|at| &self.places[at].1)
    }

    /// Returns the entry of `peer` for changes, if there is one.
    pub fn get_mut(&mut self, peer: usize) -> Option<&mut T> {
        self.find(peer as u32).map(|at| &mut self.places[at].1)
    }

    /// Removes the entry of `peer`, if there is one.
    pub fn remove(&mut self, peer: usize) {
        let Some(hole) = self.find(peer as u32) else { return };
        self.places[hole] = (NOBODY, T::default());
        self.len -= 1;
        // The entries from the next place up to an empty place may lie there only because this place was taken. These entries are
        // inserted again.
        let mask = self.places.len() - 1;
        let mut at = (hole + 1) & mask;
        while self.places[at].0 != NOBODY {
            let (rank, entry) = std::mem::replace(&mut self.places[at], (NOBODY, T::default()));
            self.put(rank, entry);
            at = (at + 1) & mask;
        }
    }

    /// Calls `change` for each entry, with its rank.
    pub fn each(&mut self, mut change: impl FnMut(usize, &mut T)) {
        let entries = self.places.iter_mut().filter(|place| place.0 != NOBODY);
        entries.for_each(|(rank, peer)| change(*rank as usize, peer));
    }

    /// Returns the number of entries.
    pub fn len(&self) -> usize {
        self.len
    }

    #[inline(always)]
    fn find(&self, peer: u32) -> Option<usize> {
        let mask = self.places.len().wrapping_sub(1);
        let mut at = hash(peer) & mask;
        loop {
            match self.places.get(at)?.0 {
                rank if rank == peer => return Some(at),
                NOBODY => return None,
                _ => at = (at + 1) & mask,
            }
        }
    }

    #[cold]
    fn insert(&mut self, peer: u32, entry: T) -> usize {
        self.len += 1;
        if 4 * self.len > 3 * self.places.len() {
            let len = (2 * self.places.len()).max(4);
            let empty = std::iter::repeat_with(|| (NOBODY, T::default())).take(len).collect();
            let old = std::mem::replace(&mut self.places, empty);
            for (rank, entry) in old.into_iter().filter(|&(rank, _)| rank != NOBODY) {
                self.put(rank, entry);
            }
        }
        self.put(peer, entry)
    }

    fn put(&mut self, peer: u32, entry: T) -> usize {
        let mask = self.places.len() - 1;
        let mut at = hash(peer) & mask;
        while self.places[at].0 != NOBODY {
            at = (at + 1) & mask;
        }
        self.places[at] = (peer, entry);
        at
    }
}

/// Returns a hash that spreads neighbouring ranks, and ranks whose distance is a power of two.
#[inline(always)]
fn hash(peer: u32) -> usize {
    (peer.wrapping_mul(0x9e37_79b9) >> 8) as usize
}

// Skipped under Miri, because the tests take long there, and no code here is unsafe.
#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn every_peer_keeps_its_entry() {
        let mut peers = RankTable::default();
        // A prime, so that steps of 64 reach every rank.
        let size = 4999;
        for round in 0..3 {
            for rank in (0..size).map(|i| i * 64 % size) {
                let entry = peers.get_or_insert(rank, || {
                    assert!(round == 0);
                    rank
                });
                assert_eq!(*entry, rank);
            }
        }
        assert_eq!(peers.len(), size);
        for rank in (0..size).step_by(3) {
            peers.remove(rank);
            peers.remove(rank);
        }
        for rank in 0..size {
            assert_eq!(peers.get(rank).copied(), (rank % 3 != 0).then_some(rank));
        }
        assert_eq!(peers.len(), size - size.div_ceil(3));
    }
}
