//! All connections of a process by number: first connections by peer, then the secondary connections.
//!
//! ```text
//!   peer                            the first connection with the peer
//!   SECONDARY + peer * (r - 1) + k  the secondary connection over rail k of the peer's r - 1 further rails
//! ```
//! A peer of another job that comes later gets its numbers in the same way. The numbers of existing peers do not change.

use crate::RAILS_MAX;
use crate::connection::{ConnectionPhase, VerbsConnection};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// First number of a secondary connection. This is also the maximum number of processes.
pub const SECONDARY: usize = 1 << 24;

/// A connection that is open or is being made; `None` if there is no such connection.
type Slot = Option<Box<VerbsConnection>>;

/// A hasher for numbers of queue pairs: one multiplication.
#[derive(Default)]
struct QueuePairHasher(u64);

impl Hasher for QueuePairHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("only numbers are hashed");
    }

    fn write_u32(&mut self, number: u32) {
        self.0 = u64::from(number).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

/// Map from the number of a queue pair to the number of its connection.
type QueuePairs = HashMap<u32, u32, BuildHasherDefault<QueuePairHasher>>;

/// Table of connections. A number without a connection has an empty slot.
pub struct Connections {
    first: Vec<Slot>,
    secondary: Vec<Slot>,
    /// Number of rails of a peer, without the rail of its first connection.
    further: usize,
    /// Number of first connections that exist.
    connected: usize,
    /// Queue pairs of the connections, by rail.
    pairs: [QueuePairs; RAILS_MAX],
}

impl Connections {
    /// Makes a table for `peers` peers. Each peer has at most `rails` rails.
    pub fn new(peers: usize, rails: usize) -> Connections {
        let further = rails - 1;
        let (first, secondary, pairs) = Default::default();
        let mut made = Connections { first, secondary, further, connected: 0, pairs };
        made.make_room(peers);
        made
    }

    /// Makes room for `peers` peers. Existing slots do not change.
    pub fn make_room(&mut self, peers: usize) {
        let peers = peers.max(self.first.len());
        assert!(peers <= SECONDARY, "{peers} processes");
        self.first.resize_with(peers, || None);
        self.secondary.resize_with(peers * self.further, || None);
    }

    /// Returns the number of peers for which the table has room.
    pub fn peers(&self) -> usize {
        self.first.len()
    }

    /// Returns the numbers of all slots, with or without a connection.
    pub fn numbers(&self) -> impl Iterator<Item = usize> + use<> {
        (0..self.first.len()).chain(SECONDARY..SECONDARY + self.secondary.len())
    }

    /// Returns the number of first connections.
    pub fn connected(&self) -> usize {
        self.connected
    }

    /// Returns the number of open secondary connections.
    pub fn secondary_open(&self) -> usize {
        self.secondary().filter(|it| it.phase == ConnectionPhase::Open).count()
    }

    /// Returns true if no secondary connection has requests in flight.
    pub fn is_secondary_idle(&self) -> bool {
        self.secondary().all(|it| it.phase != ConnectionPhase::Open || it.outstanding() == 0)
    }

    fn secondary(&self) -> impl Iterator<Item = &VerbsConnection> {
        self.secondary.iter().flatten().map(|it| &**it)
    }

    // The bounds check also selects the vector that has the slot.
    #[inline]
    fn slot(&mut self, number: usize) -> &mut Slot {
        match self.first.get_mut(number) {
            Some(first) => first,
            None => &mut self.secondary[number.wrapping_sub(SECONDARY)],
        }
    }

    /// Returns connection `number`, if it exists.
    ///
    /// # Panics
    /// If there is no such number.
    #[inline]
    pub fn get(&self, number: usize) -> Option<&VerbsConnection> {
        match self.first.get(number) {
            Some(first) => first.as_deref(),
            None => self.secondary[number.wrapping_sub(SECONDARY)].as_deref(),
        }
    }

    /// Returns connection `number`, if it exists.
    ///
    /// # Panics
    /// If there is no such number.
    #[inline]
    pub fn get_mut(&mut self, number: usize) -> Option<&mut VerbsConnection> {
        self.slot(number).as_deref_mut()
    }

    /// Returns connection `number`, or `None` if there is no such connection or number.
    #[inline]
    pub fn find(&mut self, number: usize) -> Option<&mut VerbsConnection> {
        let slot = match self.first.get_mut(number) {
            None => self.secondary.get_mut(number.wrapping_sub(SECONDARY)),
            first => first,
        };
        slot?.as_deref_mut()
    }

    /// Returns connection `number`, which must exist.
    #[inline]
    pub fn of(&mut self, number: usize) -> &mut VerbsConnection {
        self.get_mut(number).expect("a connection")
    }

    /// Returns true if connection `number` exists and is open.
    #[inline]
    pub fn is_open(&self, number: usize) -> bool {
        self.get(number).is_some_and(|it| it.phase == ConnectionPhase::Open)
    }

    /// Returns the number of the connection that has queue pair `pair` on `rail`.
    #[inline]
    pub fn of_pair(&self, rail: usize, pair: u32) -> Option<usize> {
        self.pairs[rail].get(&pair).map(|&number| number as usize)
    }

    /// Adds a connection under its number.
    pub fn insert(&mut self, connection: VerbsConnection) {
        let number = connection.number as usize;
        self.connected += usize::from(number < SECONDARY);
        self.pairs[connection.rail].insert(connection.pair.number(), connection.number);
        *self.slot(number) = Some(Box::new(connection));
    }

    /// Takes connection `number` out of the table.
    pub fn take(&mut self, number: usize) -> Option<Box<VerbsConnection>> {
        let it = self.slot(number).take()?;
        self.connected -= usize::from(number < SECONDARY);
        self.pairs[it.rail].remove(&it.pair.number());
        Some(it)
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
            assert!(after.iter().all(|&number| all.get(number).is_none()));
            assert!(all.find(5).is_none());
            all.make_room(1);
            assert_eq!(all.peers(), 5, "nothing is taken away");
        }
    }
}
