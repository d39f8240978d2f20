//! What happens next: events in order of time, and of posting where times are equal.
//!
//! Most events of a simulation are posted in the order in which they fall due, or nearly: delays are
//! few and constant. So there are some lanes in ascending order, looked at from their fronts; what
//! fits behind none of them goes into a heap.

use crate::units::Picoseconds;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

const LANES: usize = 4;
/// Bits of an event's number, which is its place in a table.
pub const NUMBER_BITS: u32 = 28;
const NUMBER_MASK: u64 = (1 << NUMBER_BITS) - 1;

/// time (64) | order of posting (36) | number (28)
type Key = u128;

#[derive(Default)]
pub struct Queue {
    lanes: [VecDeque<Key>; LANES],
    heap: BinaryHeap<Reverse<Key>>,
    posted: u64,
}

impl Queue {
    /// Posts the event `number`, due at `time`.
    pub fn push(&mut self, time: Picoseconds, number: u32) {
        debug_assert!(u64::from(number) <= NUMBER_MASK);
        self.posted += 1;
        let order = self.posted << NUMBER_BITS | u64::from(number);
        let key = u128::from(time) << 64 | u128::from(order);
        for lane in &mut self.lanes {
            if lane.back().is_none_or(|&last| last < key) {
                lane.push_back(key);
                return;
            }
        }
        self.heap.push(Reverse(key));
    }

    /// The first event, if it is due at `until` at the latest.
    pub fn pop_until(&mut self, until: Picoseconds) -> Option<(Picoseconds, u32)> {
        let mut best = Key::MAX;
        let mut from = LANES;
        for (i, lane) in self.lanes.iter().enumerate() {
            if let Some(&first) = lane.front()
                && first < best
            {
                (best, from) = (first, i);
            }
        }
        let heaped = self.heap.peek().is_some_and(|&Reverse(first)| first < best);
        if heaped {
            best = self.heap.peek().map_or(Key::MAX, |&Reverse(first)| first);
        }
        let time = (best >> 64) as u64;
        if best == Key::MAX || time > until {
            return None;
        }
        if heaped {
            self.heap.pop();
        } else {
            self.lanes[from].pop_front();
        }
        Some((time, (best as u64 & NUMBER_MASK) as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_by_time_then_by_order_of_posting() {
        let mut queue = Queue::default();
        let mut rng = fastrand::Rng::with_seed(5);
        let mut expected = Vec::new();
        for number in 0..5000 {
            let time = rng.u64(0..300);
            queue.push(time, number);
            expected.push((time, number));
        }
        expected.sort();
        let mut seen = Vec::new();
        assert_eq!(queue.pop_until(0).map(|e| e.0), Some(0));
        queue.push(0, 5000);
        while let Some(event) = queue.pop_until(u64::MAX) {
            seen.push(event);
        }
        let first = expected.remove(0);
        assert_eq!(first.0, 0);
        let zeros = expected.iter().take_while(|e| e.0 == 0).count();
        expected.insert(zeros, (0, 5000));
        assert_eq!(seen, expected);
    }

    #[test]
    fn what_is_not_due_stays() {
        let mut queue = Queue::default();
        queue.push(7, 1);
        assert_eq!(queue.pop_until(6), None);
        assert_eq!(queue.pop_until(7), Some((7, 1)));
        assert_eq!(queue.pop_until(u64::MAX), None);
    }
}
