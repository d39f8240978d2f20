//! All connections of a process, by number: first ones by peer, and behind them the secondary ones.
//!
//! ```text
//!   peer                          the first connection with it
//!   SECONDARY + peer (r - 1) + k  over the k-th of its r - 1 further rails
//! ```
//! So a peer of another job that comes later gets numbers as any other, and none changes.

use crate::connection::Connection;
use std::ops::{Index, IndexMut};

/// The first number of a secondary connection; there are fewer processes.
pub const SECONDARY: usize = 1 << 24;

/// A connection that is there, or was begun.
type Slot = Option<Box<Connection>>;

/// The table. A number of which nothing is known is out of it.
pub struct Connections {
    first: Vec<Slot>,
    secondary: Vec<Slot>,
    /// Rails of a peer beside that of its first connection.
    further: usize,
}

impl Connections {
    /// Room for so many peers, which have at most `rails` rails.
    pub fn new(peers: usize, rails: usize) -> Connections {
        let further = rails - 1;
        let mut made = Connections { first: Vec::new(), secondary: Vec::new(), further };
        made.make_room(peers);
        made
    }

    /// Room for so many peers; those that are there stay.
    pub fn make_room(&mut self, peers: usize) {
        let peers = peers.max(self.first.len());
        assert!(peers <= SECONDARY, "{peers} processes");
        self.first.resize_with(peers, || None);
        self.secondary.resize_with(peers * self.further, || None);
    }

    /// Peers that there is room for.
    pub fn peers(&self) -> usize {
        self.first.len()
    }

    /// All numbers, of connections or of nothing.
    pub fn numbers(&self) -> impl Iterator<Item = usize> + use<> {
        (0..self.first.len()).chain(SECONDARY..SECONDARY + self.secondary.len())
    }

    /// The secondary ones that are there.
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

    // The check of the bounds is the choice between the two.
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
