//! Queue of events, in order of time. Events of equal time are in the order in which they were posted.
//!
//! Most events of a simulation are posted nearly in the order in which they fall due: there are few different delays, and they are
//! constant. So the queue has several lanes, each in ascending order, and examines only the first event of each lane. An event that
//! cannot be appended to any lane goes into a heap.

use crate::units::Picoseconds;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

const LANES: usize = 4;
/// Number of bits of an event's number, which is its index in a table.
pub const NUMBER_BITS: u32 = 28;
const NUMBER_MASK: u64 = (1 << NUMBER_BITS) - 1;

/// Key of an event: time (64) | order of posting (36) | number (28)
type EventKey = u128;

pub struct EventQueue {
    lanes: [VecDeque<EventKey>; LANES],
    /// First and last key of each lane, so that the lanes need not be examined. An empty lane has [`EventKey::MAX`] and 0.
    first: [EventKey; LANES],
    last: [EventKey; LANES],
    heap: BinaryHeap<Reverse<EventKey>>,
    /// First key of the heap, or [`EventKey::MAX`].
    heaped: EventKey,
    /// Lowest of the first keys of all lanes and the heap.
    next: EventKey,
    posted: u64,
}

impl Default for EventQueue {
    fn default() -> EventQueue {
        EventQueue {
            lanes: Default::default(),
            first: [EventKey::MAX; LANES],
            last: [0; LANES],
            heap: BinaryHeap::new(),
            heaped: EventKey::MAX,
            next: EventKey::MAX,
            posted: 0,
        }
    }
}

impl EventQueue {
    /// Posts the event `number`, due at `time`.
    #[inline]
    pub fn push(&mut self, time: Picoseconds, number: u32) {
        debug_assert!(u64::from(number) <= NUMBER_MASK);
        self.posted += 1;
        let order = self.posted << NUMBER_BITS | u64::from(number);
        let key = u128::from(time) << 64 | u128::from(order);
        self.next = self.next.min(key);
        for i in 0..LANES {
            if self.last[i] < key {
                self.last[i] = key;
                if self.first[i] == EventKey::MAX {
                    self.first[i] = key;
                }
                self.lanes[i].push_back(key);
                return;
            }
        }
        self.heap.push(Reverse(key));
        self.heaped = self.heaped.min(key);
    }

    /// Returns true if an event is due at `until` or before.
    #[inline]
    pub fn due(&self, until: Picoseconds) -> bool {
        (self.next >> 64) as u64 <= until && self.next != EventKey::MAX
    }

    /// Returns the first event, if it is due at `until` or before.
    #[inline]
    pub fn pop_until(&mut self, until: Picoseconds) -> Option<(Picoseconds, u32)> {
        if !self.due(until) {
            return None;
        }
        let next = self.next;
        if self.heaped == next {
            self.heap.pop();
            self.heaped = self.heap.peek().map_or(EventKey::MAX, |&Reverse(key)| key);
        } else {
            let lane = self.first.iter().position(|&key| key == next).expect("the first of one");
            self.lanes[lane].pop_front();
            match self.lanes[lane].front() {
                Some(&key) => self.first[lane] = key,
                None => (self.first[lane], self.last[lane]) = (EventKey::MAX, 0),
            }
        }
        self.next = self.first.iter().fold(self.heaped, |least, &key| least.min(key));
        Some(((next >> 64) as u64, (next as u64 & NUMBER_MASK) as u32))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_come_by_time_then_by_order_of_posting() {
        let mut queue = EventQueue::default();
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
        let mut queue = EventQueue::default();
        queue.push(7, 1);
        assert_eq!(queue.pop_until(6), None);
        assert_eq!(queue.pop_until(7), Some((7, 1)));
        assert_eq!(queue.pop_until(u64::MAX), None);
    }
}
