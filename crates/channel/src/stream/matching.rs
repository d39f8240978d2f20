//! Who an arriving message is for: a direct lookup by sender, context and tag, in order. Nothing is
//! received from anybody or with any tag here, so nothing is searched.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// One operation's messages from one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Key {
    pub context: u64,
    pub peer: u32,
    pub tag: u32,
}

/// Numbers from peers index nothing by this: a multiplication spreads them well enough.
#[derive(Default, Clone)]
pub struct Spread(u64);

impl Hasher for Spread {
    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|&byte| self.write_u64(byte.into()));
    }

    fn write_u32(&mut self, n: u32) {
        self.write_u64(n.into());
    }

    fn write_usize(&mut self, n: usize) {
        self.write_u64(n as u64);
    }

    fn write_u64(&mut self, n: u64) {
        self.0 = (self.0.rotate_left(23) ^ n).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn finish(&self) -> u64 {
        self.0 ^ self.0 >> 32
    }
}

pub type Map<K, V> = HashMap<K, V, BuildHasherDefault<Spread>>;

const NONE: u32 = u32::MAX;

/// One end of a message that lacks the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Half {
    /// A receive that no message has come for.
    Posted,
    /// A message that nobody has asked for yet.
    Arrived,
}

struct Queue {
    half: Half,
    first: u32,
    last: u32,
}

/// Unmatched records by key. All of one key are of the same half.
#[derive(Default)]
pub struct Matching {
    queues: Map<Key, Queue>,
    /// The record behind each, by number.
    next: Vec<u32>,
    /// Lookups so far, which is all that matching costs.
    pub lookups: u64,
}

impl Matching {
    /// The oldest record of the other half of `key`, taken out; if there is none, `fresh` makes one
    /// of this half, which is queued and returned as `Err`.
    pub fn meet(&mut self, key: Key, half: Half, fresh: impl FnOnce() -> u32) -> Result<u32, u32> {
        self.lookups += 1;
        use std::collections::hash_map::Entry;
        match self.queues.entry(key) {
            Entry::Occupied(mut entry) if entry.get().half != half => {
                let queue = entry.get_mut();
                let first = queue.first;
                match self.next[first as usize] {
                    NONE => drop(entry.remove()),
                    next => queue.first = next,
                }
                Ok(first)
            }
            entry => {
                let new = fresh();
                if self.next.len() <= new as usize {
                    self.next.resize(new as usize + 1, NONE);
                }
                self.next[new as usize] = NONE;
                let next = &mut self.next;
                entry
                    .and_modify(|queue| {
                        next[queue.last as usize] = new;
                        queue.last = new;
                    })
                    .or_insert(Queue { half, first: new, last: new });
                Err(new)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_meet_in_order_and_by_key_alone() {
        let mut matching = Matching::default();
        let key = |tag| Key { context: 9, peer: 3, tag };
        let mut number = 0..;
        let mut meet = |tag, half| matching.meet(key(tag), half, || number.next().unwrap());
        assert_eq!(meet(1, Half::Arrived), Err(0));
        assert_eq!(meet(1, Half::Arrived), Err(1));
        assert_eq!(meet(2, Half::Posted), Err(2));
        assert_eq!(meet(1, Half::Posted), Ok(0));
        assert_eq!(meet(2, Half::Arrived), Ok(2));
        assert_eq!(meet(1, Half::Posted), Ok(1));
        assert_eq!(meet(1, Half::Posted), Err(3));
        assert_eq!(meet(1, Half::Arrived), Ok(3));
        // However many others wait, a lookup is one.
        for tag in 10..1000 {
            assert!(meet(tag, Half::Posted).is_err());
        }
        assert!(meet(500, Half::Arrived).is_ok());
        assert_eq!(matching.lookups, 8 + 990 + 1);
        assert!(matching.queues.len() == 989);
    }
}
