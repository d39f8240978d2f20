//! Order of messages: messages of a pair of ranks arrive in the order in which they were sent, although a long message, or a
//! message that the adapter fetches, takes longer than a short message that follows it.

use crate::units::Picoseconds;
use crate::world::WorldState;

impl WorldState {
    /// Returns the time at which a message posted at `at` reaches its node. `tail` is its time without other messages. The result
    /// is not before the time of messages that were sent to the same rank earlier.
    #[inline]
    pub(crate) fn in_order(
        &mut self,
        from: usize,
        to: usize,
        at: Picoseconds,
        tail: Picoseconds,
    ) -> Picoseconds {
        let price = self.price(from, to, self.prices.send);
        // A message that takes the minimum time cannot be overtaken, and need not be remembered.
        let soonest = at + price.overhead + price.latency;
        if tail >= self.ranks[from].latest && tail <= soonest {
            return tail;
        }
        self.remember(from, to, tail)
    }

    /// Returns the arrival of a message that may overtake, or be overtaken.
    #[cold]
    pub(crate) fn remember(&mut self, from: usize, to: usize, tail: Picoseconds) -> Picoseconds {
        let (now, sent) = (self.now, &mut self.rest[from].sent);
        while sent.front().is_some_and(|&(arrives, _)| arrives <= now) {
            sent.pop_front();
        }
        let overtaken = sent.iter().rev().take_while(|&&(arrives, _)| arrives > tail).count();
        let first = sent.len() - overtaken;
        let before = (first..sent.len()).rev().find(|&i| sent[i].1 as usize == to);
        let (place, tail) = before.map_or((first, tail), |i| (i + 1, sent[i].0));
        sent.insert(place, (tail, to as u32));
        self.ranks[from].latest = self.ranks[from].latest.max(tail);
        tail
    }
}
