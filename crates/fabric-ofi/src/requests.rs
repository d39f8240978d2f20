//! Table of requests that are not complete. A request is found by the pointer that the provider returns, or by the number that a
//! peer sends back.

use crate::access::TransferKind;
use crate::address::OfiTarget;
use crate::object::MemoryRegistration;
use crate::registrations::RegistrationId;
use std::ffi::c_void;
use std::ptr::NonNull;
use weft_fabric::block::OwnedBlock;
use weft_fabric::{Completion, RemoteAddr, Sge};

/// Number of requests that are allocated at a time.
const CHUNK: usize = 64;

/// Action that follows a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransferTail {
    /// Sets the peer's flag at this address to this value.
    Flag(RemoteAddr, u64),
    /// Advances the peer's counter for this immediate.
    Immediate(u32),
}

/// A write or a read of this process's `local` memory.
#[derive(Debug, Clone, Copy)]
pub struct RemoteTransfer {
    pub access: TransferKind,
    pub local: Sge,
    pub remote: OfiTarget,
    /// Action that follows the write.
    pub tail: Option<TransferTail>,
    pub done: Completion,
    /// Rail for which the transfer is counted in [`OfiPeer::written`](crate::peer::OfiPeer::written), even if another rail
    /// carries it.
    pub counts: Option<u8>,
}

impl RemoteTransfer {
    pub fn write(
        local: Sge,
        remote: OfiTarget,
        tail: Option<TransferTail>,
        done: Completion,
    ) -> RemoteTransfer {
        let access = TransferKind::Write;
        RemoteTransfer { access, local, remote, tail, done, counts: None }
    }

    pub fn read(dst: Sge, src: OfiTarget, done: Completion) -> RemoteTransfer {
        RemoteTransfer { access: TransferKind::Read, ..RemoteTransfer::write(dst, src, None, done) }
    }

    /// Splits the transfer into parts of at most `most` bytes. The last part has the tail and the completion.
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

/// Registration of a transfer's local memory, if the provider needs registered memory.
pub enum TransferRegistration {
    Nothing,
    /// A registration that other transfers or regions may also use.
    Shared(RegistrationId),
    /// A registration of this transfer only.
    Own(MemoryRegistration),
}

pub enum OfiRequest {
    Free,
    /// A posted receive buffer.
    Receive(u32),
    /// A posted send buffer.
    Send(u32),
    /// A transfer on a rail. If the provider does not keep messages behind writes, the tail of a write is posted after the write
    /// is complete.
    Transfer(u8, RemoteTransfer, TransferRegistration),
    /// A read that tests if a rail leads to the peer. The read is not counted as a request under way, because the answer may never
    /// come.
    Probe(u8),
    /// An answer of the peer that a request waits for. The `Sge` is the place (8 bytes) for the answer's value, if the value is
    /// needed.
    Reply(Option<Sge>, Completion),
}

/// Entry of the table. The provider writes to the first field while the operation is under way.
#[repr(C)]
struct Slot {
    context: [u64; 8],
    number: u32,
    /// Number of uses of the slot. A ticket contains this number, so that an old ticket finds no request.
    turn: u32,
    peer: u32,
    request: OfiRequest,
}

#[derive(Default)]
pub struct RequestTable {
    chunks: Vec<OwnedBlock<Slot>>,
    free: Vec<u32>,
    /// Number of requests under way, without receives and probes.
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
        // SAFETY: `add` needs an element inside the block: a chunk has `CHUNK` slots.
        unsafe { chunk.first().add(number as usize % CHUNK) }
    }

    /// Adds a request towards `peer` and returns its number.
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
        // SAFETY: the slot was free, so neither the provider nor another reference uses it. Slots stay allocated as long as the
        // table.
        let slot = unsafe { self.slot(number).as_mut() };
        slot.turn = slot.turn.wrapping_add(1).max(1);
        (slot.peer, slot.request) = (peer as u32, request);
        number
    }

    /// Returns the context that the provider gets for a request.
    pub fn context(&self, number: u32) -> *mut c_void {
        self.slot(number).as_ptr().cast()
    }

    /// Returns the number of the request whose context the provider returns, or `None` for null.
    pub fn number(&self, context: *mut c_void) -> Option<u32> {
        let slot = NonNull::new(context.cast::<Slot>())?;
        // SAFETY: the provider hands back only pointers that `context` returned, and slots stay allocated.
        Some(unsafe { (*slot.as_ptr()).number })
    }

    /// Returns the ticket that a peer sends back with its answer. The ticket is never 0.
    pub fn ticket(&self, number: u32) -> u64 {
        // SAFETY: slots stay allocated, and only this thread reads and writes these fields.
        let turn = unsafe { (*self.slot(number).as_ptr()).turn };
        u64::from(turn) << 32 | u64::from(number)
    }

    /// Returns the request that `peer` answers with `ticket`, if there is such a request.
    pub fn answered(&mut self, peer: usize, ticket: u64) -> Option<OfiRequest> {
        let number = ticket as u32;
        if number as usize >= self.chunks.len() * CHUNK {
            return None;
        }
        // SAFETY: slots stay allocated, only this thread reads and writes them, and `number` was checked above.
        let slot = unsafe { self.slot(number).as_ref() };
        let meant = slot.turn == (ticket >> 32) as u32 && slot.peer as usize == peer;
        (meant && matches!(slot.request, OfiRequest::Reply(..))).then(|| self.take(number).1)
    }

    /// Ends a request. Returns its peer and the request.
    pub fn take(&mut self, number: u32) -> (usize, OfiRequest) {
        // SAFETY: slots stay allocated, and only this thread reads and writes them.
        let slot = unsafe { self.slot(number).as_mut() };
        let request = std::mem::replace(&mut slot.request, OfiRequest::Free);
        self.open -= usize::from(request.is_counted());
        self.free.push(number);
        (slot.peer as usize, request)
    }

    /// Returns the number of requests under way, without receives and probes.
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
