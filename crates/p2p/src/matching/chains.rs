//! Chains of slots by key. The number of chains grows with the slots, so that a search for a key examines few slots of other keys.
//!
//! ```text
//!   ends    first and last slot, by the key's hash      about 2 slots per end, if keys are searched often
//!   links   next and previous slot, by slot              8 bytes
//! ```
//! When the number of ends grows, the slots of each end are divided among several ends. Slots with the same key keep their order.

use crate::slab::NONE;
use std::cell::Cell;

/// Initial number of ends.
const FIRST: usize = 4;

#[derive(Debug, Clone, Copy)]
struct Pair {
    /// First slot, if this is the pair of a chain; previous slot, if this is the pair of a slot.
    first: u32,
    /// Last slot, if this is the pair of a chain; next slot, if this is the pair of a slot.
    last: u32,
}

/// Number of slots whose links lie together.
const CHUNK: usize = 64;

const EMPTY: Pair = Pair { first: NONE, last: NONE };

/// Hash of a key. The high bits of the hash are well mixed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Hash(u64);

impl Hash {
    #[inline(always)]
    pub(super) fn of(context: u64, low: u32, high: u32) -> Hash {
        let words =
            context.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ (u64::from(high) << 32 | u64::from(low));
        Hash((words ^ words >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93))
    }
}

pub(super) struct Chains {
    ends: Vec<Pair>,
    /// Links by slot. The links are kept in chunks, so that growth neither copies nor frees memory.
    #[allow(clippy::vec_box)] // existing chunks must not move when chunks are added
    links: Vec<Box<[Pair; CHUNK]>>,
    len: usize,
    /// 64 minus the logarithm of the number of ends.
    shift: u32,
    /// Number of slots that searches have examined beyond the first slot of a chain: now (`passed`), and when the number of ends
    /// last grew (`before`).
    passed: Cell<u64>,
    before: u64,
}

impl Chains {
    pub(super) fn new() -> Chains {
        Chains {
            ends: vec![EMPTY; FIRST],
            links: Vec::new(),
            len: 0,
            shift: 64 - FIRST.ilog2(),
            passed: Cell::new(0),
            before: 0,
        }
    }

    pub(super) fn passed(&self) -> u64 {
        self.passed.get()
    }

    #[inline(always)]
    fn end(&self, hash: Hash) -> usize {
        (hash.0 >> self.shift) as usize
    }

    /// Adds a slot at the end of its chain.
    #[inline(always)]
    pub(super) fn push(&mut self, slot: u32, hash: Hash) {
        while self.links.len() <= slot as usize / CHUNK {
            self.links.push(Box::new([EMPTY; CHUNK]));
        }
        self.len += 1;
        self.attach(slot, self.end(hash));
    }

    /// Adds ends if there are too few for another slot. `hash` returns the hash of a slot's key.
    #[inline(always)]
    pub(super) fn make_room(&mut self, hash: impl Fn(u32) -> Hash) {
        if self.len >= 2 * self.ends.len() {
            self.grow(&hash);
        }
    }

    /// Adds ends once examining slots in vain has cost more than adding ends would cost. So chains that are rarely searched have
    /// few ends.
    #[inline]
    pub(super) fn adapt(&mut self, hash: impl Fn(u32) -> Hash) {
        if self.passed.get() - self.before > self.len as u64 && self.len >= 2 * self.ends.len() {
            self.grow(&hash);
        }
    }

    #[inline(always)]
    fn linked(&self, slot: u32) -> Pair {
        self.links[slot as usize / CHUNK][slot as usize % CHUNK]
    }

    #[inline(always)]
    fn link(&mut self, slot: u32) -> &mut Pair {
        &mut self.links[slot as usize / CHUNK][slot as usize % CHUNK]
    }

    #[inline(always)]
    fn attach(&mut self, slot: u32, end: usize) {
        let before = std::mem::replace(&mut self.ends[end].last, slot);
        *self.link(slot) = Pair { first: before, last: NONE };
        match before {
            NONE => self.ends[end].first = slot,
            before => self.link(before).last = slot,
        }
    }

    #[cold]
    fn grow(&mut self, hash: &impl Fn(u32) -> Hash) {
        let more = (self.len / 2 + 1).next_power_of_two();
        self.shift = 64 - more.ilog2();
        self.before = self.passed.get();
        for pair in std::mem::replace(&mut self.ends, vec![EMPTY; more]) {
            let mut at = pair.first;
            while at != NONE {
                let next = self.linked(at).last;
                self.attach(at, self.end(hash(at)));
                at = next;
            }
        }
    }

    /// Removes a slot. Allocates nothing.
    #[inline(always)]
    pub(super) fn remove(&mut self, slot: u32, hash: Hash) {
        let end = self.end(hash);
        let Pair { first: before, last: next } = self.linked(slot);
        match before {
            NONE => self.ends[end].first = next,
            before => self.link(before).last = next,
        }
        match next {
            NONE => self.ends[end].last = before,
            next => self.link(next).first = before,
        }
        self.len -= 1;
    }

    /// Returns the first slot of a chain for which `fits` returns true.
    #[inline(always)]
    pub(super) fn find(&self, hash: Hash, fits: impl Fn(u32) -> bool) -> Option<u32> {
        let first = self.ends[self.end(hash)].first;
        if first == NONE || fits(first) {
            return (first != NONE).then_some(first);
        }
        let mut at = first;
        loop {
            at = self.linked(at).last;
            self.passed.set(self.passed.get() + 1);
            if at == NONE || fits(at) {
                return (at != NONE).then_some(at);
            }
        }
    }

    /// Iterates over all slots. The slots of each key come in the order of their chain.
    pub(super) fn all(&self) -> impl Iterator<Item = u32> {
        let links = move |first: u32| {
            let some = |slot: u32| (slot != NONE).then_some(slot);
            std::iter::successors(some(first), move |&at| some(self.linked(at).last))
        };
        self.ends.iter().flat_map(move |pair| links(pair.first))
    }
}
