//! What found no room: lists in one slab that is allocated beforehand and grows only when a program
//! sends far more than its peers take.

use crate::address::VerbsTarget;
use crate::memory::NONE;
use crate::rail::INLINE_MAX;
use weft_fabric::{Completion, Head, Sge};

/// Entries from the start.
const FIRST: usize = 64;

/// Memory of this process in a one-sided operation.
#[derive(Debug, Clone, Copy)]
pub struct LocalMemory {
    pub memory: Sge,
    /// [`NONE`]: not registered; it goes through a buffer of the fabric.
    pub registration: u32,
}

/// What follows the data of a write.
#[derive(Debug, Clone, Copy)]
pub enum WriteTail {
    Nothing,
    Flag { at: VerbsTarget, value: u64 },
    Immediate(u32),
}

/// An atomic operation.
#[derive(Debug, Clone, Copy)]
pub enum PendingAtomic {
    Add { operand: u64 },
    Swap { compare: u64, swap: u64 },
}

/// What is to be posted.
#[derive(Debug, Clone, Copy)]
pub enum PostedWork {
    /// A payload that was copied.
    Short {
        head: Head,
        solicited: bool,
        len: usize,
        bytes: [u8; INLINE_MAX],
    },
    /// A payload that the caller keeps.
    Long {
        head: Head,
        solicited: bool,
        payload: Sge,
        done: Completion,
    },
    Write {
        from: LocalMemory,
        target: VerbsTarget,
        tail: WriteTail,
        done: Completion,
    },
    Read {
        into: LocalMemory,
        target: VerbsTarget,
        done: Completion,
    },
    Atomic {
        target: VerbsTarget,
        what: PendingAtomic,
        result: LocalMemory,
        done: Completion,
    },
}

impl PostedWork {
    /// A flag without data.
    pub fn flag(tail: WriteTail) -> PostedWork {
        let from = LocalMemory { memory: Sge::EMPTY, registration: NONE };
        PostedWork::Write { from, target: VerbsTarget::NOWHERE, tail, done: None }
    }

    /// The registration that it uses, or [`NONE`].
    pub fn registration(&self) -> u32 {
        match self {
            PostedWork::Write { from: memory, .. }
            | PostedWork::Read { into: memory, .. }
            | PostedWork::Atomic { result: memory, .. } => memory.registration,
            PostedWork::Short { .. } | PostedWork::Long { .. } => NONE,
        }
    }

    /// What counts when it is over.
    pub fn done(&self) -> Completion {
        match *self {
            PostedWork::Long { done, .. }
            | PostedWork::Write { done, .. }
            | PostedWork::Read { done, .. }
            | PostedWork::Atomic { done, .. } => done,
            PostedWork::Short { .. } => None,
        }
    }

    /// Whether somebody asks for the end of this one-sided operation.
    pub fn is_awaited(&self) -> bool {
        match self {
            PostedWork::Write { done, .. }
            | PostedWork::Read { done, .. }
            | PostedWork::Atomic { done, .. } => done.is_some(),
            PostedWork::Short { .. } | PostedWork::Long { .. } => false,
        }
    }
}

struct Entry {
    next: u32,
    work: PostedWork,
}

/// The entries of all lists.
pub struct WorkSlab {
    entries: Vec<Entry>,
    free: u32,
    used: usize,
}

/// First come, first served. Its entries are in a [`WorkSlab`].
#[derive(Debug, Clone, Copy)]
pub struct WorkList {
    first: u32,
    last: u32,
}

impl WorkList {
    pub const EMPTY: WorkList = WorkList { first: NONE, last: NONE };

    pub fn is_empty(&self) -> bool {
        self.first == NONE
    }
}

impl WorkSlab {
    pub fn new() -> WorkSlab {
        WorkSlab { entries: Vec::with_capacity(FIRST), free: NONE, used: 0 }
    }

    /// Entries in all lists.
    pub fn used(&self) -> usize {
        self.used
    }

    pub fn push(&mut self, list: &mut WorkList, work: PostedWork) {
        let entry = Entry { next: NONE, work };
        let at = if self.free == NONE {
            self.entries.push(entry);
            self.entries.len() as u32 - 1
        } else {
            let at = self.free;
            self.free = std::mem::replace(&mut self.entries[at as usize], entry).next;
            at
        };
        match list.last {
            NONE => list.first = at,
            last => self.entries[last as usize].next = at,
        }
        list.last = at;
        self.used += 1;
    }

    /// The first entry of a list. It stays where it is until the slab changes.
    pub fn front(&self, list: &WorkList) -> Option<&PostedWork> {
        (list.first != NONE).then(|| &self.entries[list.first as usize].work)
    }

    pub fn pop(&mut self, list: &mut WorkList) {
        let at = list.first;
        let next = std::mem::replace(&mut self.entries[at as usize].next, self.free);
        self.free = at;
        list.first = next;
        if next == NONE {
            list.last = NONE;
        }
        self.used -= 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(number: u64) -> PostedWork {
        PostedWork::Long {
            head: Head([number; 3]),
            solicited: false,
            payload: Sge::EMPTY,
            done: None,
        }
    }

    fn front(slab: &WorkSlab, list: &WorkList) -> Option<u64> {
        slab.front(list).map(|work| match work {
            PostedWork::Long { head, .. } => head.0[0],
            other => panic!("{other:?}"),
        })
    }

    #[test]
    fn lists_keep_their_order_and_share_entries() {
        let mut slab = WorkSlab::new();
        let (mut a, mut b) = (WorkList::EMPTY, WorkList::EMPTY);
        for round in 0..3 {
            for i in 0..40 {
                slab.push(&mut a, work(i));
                slab.push(&mut b, work(100 + i));
            }
            assert_eq!(slab.used(), 80);
            for i in 0..40 {
                assert_eq!((front(&slab, &a), front(&slab, &b)), (Some(i), Some(100 + i)));
                slab.pop(&mut a);
                slab.pop(&mut b);
            }
            assert!(a.is_empty() && b.is_empty() && slab.used() == 0, "round {round}");
        }
        assert_eq!(slab.entries.len(), 80);
    }
}
