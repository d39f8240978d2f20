//! What has been posted and is not over: by the pointer that the provider hands back, or by the number that a peer does.

use crate::address::OfiTarget;
use crate::object::MemoryRegistration;
use crate::registrations::RegistrationId;
use std::ffi::c_void;
use std::ptr::NonNull;
use weft_fabric::block::OwnedBlock;
use weft_fabric::{Completion, RemoteAddr, Sge};

/// Requests that are made at a time.
const CHUNK: usize = 64;

/// What comes behind a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransferTail {
    /// A flag there takes this value.
    Flag(RemoteAddr, u64),
    /// An immediate is counted there.
    Immediate(u32),
}

/// A write or a read of this process's `local` memory.
#[derive(Debug, Clone, Copy)]
pub struct RemoteTransfer {
    pub write: bool,
    pub local: Sge,
    pub remote: OfiTarget,
    /// What comes behind a write.
    pub tail: Option<TransferTail>,
    pub done: Completion,
    /// The rail of which it counts as a write, by whatever way it goes.
    pub counts: Option<u8>,
}

impl RemoteTransfer {
    pub fn write(
        src: Sge,
        dst: OfiTarget,
        tail: Option<TransferTail>,
        done: Completion,
    ) -> RemoteTransfer {
        RemoteTransfer { write: true, local: src, remote: dst, tail, done, counts: None }
    }

    pub fn read(dst: Sge, src: OfiTarget, done: Completion) -> RemoteTransfer {
        RemoteTransfer { write: false, local: dst, remote: src, tail: None, done, counts: None }
    }

    /// Its parts of at most `most` bytes; the last one has what comes behind all.
    pub fn parts(self, most: usize) -> impl Iterator<Item = RemoteTransfer> {
        let whole = self.local.len();
        (0..whole).step_by(most).map(move |offset| {
            let len = most.min(whole - offset);
            let (local, remote) = (self.local.part(offset, len), self.remote.further(offset));
            let last = offset + len == whole;
            let (tail, done) = if last { (self.tail, self.done) } else { (None, None) };
            RemoteTransfer { local, remote, tail, done, ..self }
        })
    }
}

/// The registration of a transfer's memory of this process, where the provider wants one.
pub enum Held {
    Nothing,
    /// One that others use, too.
    Shared(RegistrationId),
    /// Of this transfer alone.
    Own(MemoryRegistration),
}

pub enum OfiRequest {
    Free,
    /// A buffer for what arrives.
    Receive(u32),
    /// A message of ours in a buffer.
    Send(u32),
    /// A transfer on a rail. Behind a write, where the provider keeps no order, comes its tail.
    Transfer(u8, RemoteTransfer, Held),
    /// A read that shows that a rail leads to the peer. Not counted: it may never be answered.
    Probe(u8),
    /// An answer of the peer is awaited: where its value goes (8 bytes), if anywhere.
    Reply(Option<Sge>, Completion),
}

/// The provider writes to the first field as long as the operation is under way.
#[repr(C)]
struct Slot {
    context: [u64; 8],
    number: u32,
    /// How often the slot was used, so that an old number finds nothing.
    turn: u32,
    peer: u32,
    request: OfiRequest,
}

#[derive(Default)]
pub struct RequestTable {
    chunks: Vec<OwnedBlock<Slot>>,
    free: Vec<u32>,
    /// Those under way that are neither free, nor receives, nor probes.
    open: usize,
}

impl OfiRequest {
    fn is_counted(&self) -> bool {
        !matches!(self, OfiRequest::Free | OfiRequest::Receive(_) | OfiRequest::Probe(_))
    }
}

impl RequestTable {
    fn slot(&self, number: u32) -> NonNull<Slot> {
        let chunk = &self.chunks[number as usize / CHUNK];
        // SAFETY: inside the chunk.
        unsafe { chunk.first().add(number as usize % CHUNK) }
    }

    /// Notes a request towards `peer`, and returns its number.
    pub fn add(&mut self, peer: usize, request: OfiRequest) -> u32 {
        if self.free.is_empty() {
            let first = (self.chunks.len() * CHUNK) as u32;
            let slot = |number| Slot {
                context: [0; 8],
                number,
                turn: 0,
                peer: 0,
                request: OfiRequest::Free,
            };
            self.chunks.push(OwnedBlock::new((first..first + CHUNK as u32).map(slot)));
            self.free.extend((first..first + CHUNK as u32).rev());
        }
        let number = self.free.pop().expect("has just grown");
        self.open += usize::from(request.is_counted());
        // SAFETY: a free slot, which nobody else has a pointer to.
        let slot = unsafe { self.slot(number).as_mut() };
        slot.turn = slot.turn.wrapping_add(1).max(1);
        (slot.peer, slot.request) = (peer as u32, request);
        number
    }

    /// What the provider is given.
    pub fn context(&self, number: u32) -> *mut c_void {
        self.slot(number).as_ptr().cast()
    }

    /// The number of what the provider hands back; `None` for null.
    pub fn number(&self, context: *mut c_void) -> Option<u32> {
        let slot = NonNull::new(context.cast::<Slot>())?;
        // SAFETY: the provider hands back what it was given; slots stay.
        Some(unsafe { (*slot.as_ptr()).number })
    }

    /// What a peer is told to answer with; never zero.
    pub fn ticket(&self, number: u32) -> u64 {
        // SAFETY: slots stay; this is the one thread that reads and writes these fields.
        let turn = unsafe { (*self.slot(number).as_ptr()).turn };
        u64::from(turn) << 32 | u64::from(number)
    }

    /// The request that `peer` answers with `ticket`, if there is such a one.
    pub fn answered(&mut self, peer: usize, ticket: u64) -> Option<OfiRequest> {
        let number = ticket as u32;
        if number as usize >= self.chunks.len() * CHUNK {
            return None;
        }
        // SAFETY: slots stay, only this thread reads and writes them, and `number` was checked above.
        let slot = unsafe { self.slot(number).as_ref() };
        let meant = slot.turn == (ticket >> 32) as u32 && slot.peer as usize == peer;
        (meant && matches!(slot.request, OfiRequest::Reply(..))).then(|| self.take(number).1)
    }

    /// Ends a request: its peer, and what it was.
    pub fn take(&mut self, number: u32) -> (usize, OfiRequest) {
        // SAFETY: slots stay, and only this thread reads and writes them.
        let slot = unsafe { self.slot(number).as_mut() };
        let request = std::mem::replace(&mut slot.request, OfiRequest::Free);
        self.open -= usize::from(request.is_counted());
        self.free.push(number);
        (slot.peer as usize, request)
    }

    /// How many are under way, not counting buffers for what arrives.
    pub fn open(&self) -> usize {
        self.open
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_finds_its_request_once() {
        let mut requests = RequestTable::default();
        let number = requests.add(3, OfiRequest::Reply(None, None));
        let ticket = requests.ticket(number);
        assert_eq!(requests.number(requests.context(number)), Some(number));
        assert!(requests.answered(2, ticket).is_none(), "of another peer");
        assert!(requests.answered(3, ticket ^ 1 << 40).is_none(), "of another turn");
        assert!(requests.answered(3, u64::MAX).is_none(), "no such slot");
        assert!(requests.answered(3, ticket).is_some());
        assert!(requests.answered(3, ticket).is_none(), "twice");
        assert_eq!(requests.open(), 0);
        let again = requests.add(3, OfiRequest::Send(0));
        assert_eq!(again, number);
        assert!(requests.answered(3, requests.ticket(again)).is_none(), "of another kind");
    }
}
