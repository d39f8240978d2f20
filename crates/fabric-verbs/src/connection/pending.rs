//! Work that could not be posted because there was no room. The work is in lists whose entries share one slab. The slab is
//! allocated beforehand, and grows only if a program sends far more than its peers receive.

use crate::address::VerbsTarget;
use crate::memory::NONE;
use crate::sizes::INLINE_MAX;
use weft_fabric::{Completion, Head, Sge};

/// Initial capacity of the slab, in entries.
const FIRST: usize = 64;

/// Memory of this process in a one-sided operation.
#[derive(Debug, Clone, Copy)]
pub struct LocalMemory {
    pub memory: Sge,
    /// Registration of the memory. [`NONE`] means that the memory is not registered, so the data goes through a bounce buffer.
    pub registration: u32,
}

/// Request that follows the data of a write.
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

/// Threads of the receiver that a message wakes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attention {
    /// Sleepers of the program.
    Program,
    /// Also the helper thread, because the message is solicited.
    Helper,
}

/// A message to post.
#[derive(Debug, Clone, Copy)]
pub struct PostedMessage {
    pub head: Head,
    pub attention: Attention,
    pub payload: Sge,
}

/// A write to post.
#[derive(Debug, Clone, Copy)]
pub struct WorkWrite {
    pub from: LocalMemory,
    pub target: VerbsTarget,
    pub tail: WriteTail,
    pub done: Completion,
}

/// A read to post.
#[derive(Debug, Clone, Copy)]
pub struct WorkRead {
    pub into: LocalMemory,
    pub target: VerbsTarget,
    pub done: Completion,
}

/// An atomic operation to post.
#[derive(Debug, Clone, Copy)]
pub struct WorkAtomic {
    pub target: VerbsTarget,
    pub what: PendingAtomic,
    pub result: LocalMemory,
    pub done: Completion,
}

/// Work that is posted now, or kept until it can be posted.
#[derive(Debug, Clone, Copy)]
pub enum PostedWork {
    /// A message whose payload was copied.
    Short {
        head: Head,
        attention: Attention,
        len: usize,
        bytes: [u8; INLINE_MAX],
    },
    /// A message whose payload stays in the caller's memory.
    Long {
        message: PostedMessage,
        done: Completion,
    },
    Write(WorkWrite),
    Read(WorkRead),
    Atomic(WorkAtomic),
}

impl PostedWork {
    /// Returns the work for a write that has a tail but no data.
    pub fn flag(tail: WriteTail) -> PostedWork {
        let from = LocalMemory { memory: Sge::EMPTY, registration: NONE };
        PostedWork::Write(WorkWrite { from, target: VerbsTarget::NOWHERE, tail, done: None })
    }

    /// Returns the registration that the work uses, or [`NONE`].
    pub fn registration(&self) -> u32 {
        match self {
            PostedWork::Write(WorkWrite { from: memory, .. })
            | PostedWork::Read(WorkRead { into: memory, .. })
            | PostedWork::Atomic(WorkAtomic { result: memory, .. }) => memory.registration,
            PostedWork::Short { .. } | PostedWork::Long { .. } => NONE,
        }
    }

    /// Returns the completion that is signaled when the work is done.
    pub fn done(&self) -> Completion {
        match *self {
            PostedWork::Long { done, .. }
            | PostedWork::Write(WorkWrite { done, .. })
            | PostedWork::Read(WorkRead { done, .. })
            | PostedWork::Atomic(WorkAtomic { done, .. }) => done,
            PostedWork::Short { .. } => None,
        }
    }

    /// Returns true if this is a one-sided operation with a completion.
    pub fn is_awaited(&self) -> bool {
        match self {
            PostedWork::Write(WorkWrite { done, .. })
            | PostedWork::Read(WorkRead { done, .. })
            | PostedWork::Atomic(WorkAtomic { done, .. }) => done.is_some(),
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

/// A first-in, first-out list, whose entries are in a [`WorkSlab`].
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

    /// Returns the number of entries in all lists.
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

    /// Returns the first entry of a list. The entry does not move until the slab changes.
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
        let (head, payload) = (Head([number; 3]), Sge::EMPTY);
        let message = PostedMessage { head, attention: Attention::Program, payload };
        PostedWork::Long { message, done: None }
    }

    fn front(slab: &WorkSlab, list: &WorkList) -> Option<u64> {
        slab.front(list).map(|work| match work {
            PostedWork::Long { message, .. } => message.head.0[0],
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
