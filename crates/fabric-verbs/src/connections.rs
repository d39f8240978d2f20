//! All connections of a process by number: first connections by peer, then the secondary connections.
//!
//! ```text
//!   peer                          the first connection with it
//!   SECONDARY + peer (r - 1) + k  over the k-th of its r - 1 further rails
//! ```
//! A peer of another job that comes later gets its numbers in the same way, and no number changes.

use crate::connection::Connection;
use std::ops::{Index, IndexMut};

/// First number of a secondary connection. The number of processes is at most this.
pub const SECONDARY: usize = 1 << 24;

/// A connection that exists, or was begun.
type Slot = Option<Box<Connection>>;

/// Table of connections. The number of a connection that does not exist has an empty slot.
pub struct Connections {
    first: Vec<Slot>,
    secondary: Vec<Slot>,
    /// Number of rails of a peer besides the rail of its first connection.
    further: usize,
}

impl Connections {
    /// Makes a table for `peers` peers, which have at most `rails` rails each.
    pub fn new(peers: usize, rails: usize) -> Connections {
        let further = rails - 1;
        let mut made = Connections { first: Vec::new(), secondary: Vec::new(), further };
        made.make_room(peers);
        made
    }

    /// Makes room for `peers` peers. Existing slots stay.
    pub fn make_room(&mut self, peers: usize) {
        let peers = peers.max(self.first.len());
        assert!(peers <= SECONDARY, "{peers} processes");
        self.first.resize_with(peers, || None);
        self.secondary.resize_with(peers * self.further, || None);
    }

    /// Returns the number of peers that there is room for.
    pub fn peers(&self) -> usize {
        self.first.len()
    }

    /// Returns all numbers, with or without a connection.
    pub fn numbers(&self) -> impl Iterator<Item = usize> + use<> {
        (0..self.first.len()).chain(SECONDARY..SECONDARY + self.secondary.len())
    }

    /// Returns the existing secondary connections.
    pub fn secondary(&self) -> impl Iterator<Item = &Connection> {
        self.secondary.iter().flatten().map(|it| &**it)
    }

    #[inline]
    pub fn get_mut(&mut self, link: usize) -> Option<&mut Slot> {
        match self.first.get_mut(link) {
            None => self.secondary.get_mut(link.wrapping_sub(SECONDARY)),
            found => found,
        }
    }
}

impl Index<usize> for Connections {
    type Output = Slot;

    // The bounds check also chooses between the two vectors.
    #[inline]
    fn index(&self, link: usize) -> &Slot {
        match self.first.get(link) {
            Some(first) => first,
            None => &self.secondary[link.wrapping_sub(SECONDARY)],
        }
    }
}

impl IndexMut<usize> for Connections {
    #[inline]
    fn index_mut(&mut self, link: usize) -> &mut Slot {
        match self.first.get_mut(link) {
            Some(first) => first,
            None => &mut self.secondary[link.wrapping_sub(SECONDARY)],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn peers_that_come_later_change_no_number() {
        for rails in 1..=4 {
            let mut all = Connections::new(3, rails);
            let before: Vec<usize> = all.numbers().collect();
            assert_eq!(before.len(), 3 * rails);
            all.make_room(5);
            let after: Vec<usize> = all.numbers().collect();
            assert_eq!((after.len(), all.peers()), (5 * rails, 5));
            assert!(before.iter().all(|number| after.contains(number)), "{rails}");
            assert!(after.iter().all(|&number| all[number].is_none()));
            assert!(all.get_mut(5).is_none());
            all.make_room(1);
            assert_eq!(all.peers(), 5, "nothing is taken away");
        }
    }
}
