//! Posting of requests. This module adds messages, operations and control messages to the batch, and provides the memory that they
//! need. It also counts the operations whose completion is awaited.
//!
//! A request is added only if the window of its connection, the batch, the peer's credits and the pool have room for it.

use crate::VerbsConnectError;
use crate::connection::batch::Batch;
use crate::connection::pending::{
    Attention, LocalMemory, PendingAtomic, PostedMessage, PostedWork, WorkAtomic, WorkRead,
    WorkWrite, WriteTail,
};
use crate::connection::{ConnectionPhase, NewRequest, Record, Signal, VerbsConnection};
use crate::ffi::*;
use crate::job::VerbsCore;
use crate::memory::pool::RegisteredPool;
use crate::memory::{Memories, NONE, Uses};
use crate::sizes::{BUFFER, HEAD, INLINE_MAX};
use crate::trouble;
use crate::wire::{ImmediateTag, WAKE, WireKind};
use weft_fabric::{FabricTrouble, Fault, Sge};

/// Direction in which the bytes of an operation move, seen from this process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    Out,
    In,
}

/// The batch under construction, and the pool of buffers for data that is not in registered memory.
pub struct Posting {
    batch: Box<Batch>,
    pool: RegisteredPool,
    /// Number of incomplete one-sided operations that have a completion.
    awaited: usize,
}

impl Posting {
    pub fn new(memories: &mut Memories) -> Result<Posting, VerbsConnectError> {
        Ok(Posting { batch: Batch::new(), pool: RegisteredPool::new(memories)?, awaited: 0 })
    }

    /// Returns true if the completion of an operation is awaited.
    #[inline]
    pub fn awaits(&self) -> bool {
        self.awaited > 0
    }

    /// Counts an operation that is submitted.
    #[inline]
    pub fn await_work(&mut self, work: &PostedWork) {
        self.awaited += usize::from(work.is_awaited());
    }

    /// Returns true if no request is in the batch.
    pub fn is_empty(&self) -> bool {
        self.batch.is_empty()
    }

    /// Posts the batch on `link` with one call. Returns 0, or the errno of the failure.
    #[inline]
    pub fn post(&mut self, link: &VerbsConnection) -> i32 {
        self.batch.post(&link.pair)
    }

    /// Posts the batch on `link`. If this fails, records a fault.
    #[inline]
    pub fn ring(&mut self, link: &VerbsConnection, trouble: &mut FabricTrouble) {
        let errno = self.post(link);
        if errno != 0 {
            trouble::refuse_post(trouble, link.number as usize, errno);
        }
    }

    /// Handles the completion of all requests of `link` up to `number`.
    pub fn departed(
        &mut self,
        core: &VerbsCore,
        memories: &mut Memories,
        link: &mut VerbsConnection,
        number: u32,
    ) {
        link.lively = true;
        while let Some(record) = link.completed(number) {
            if let Some(landing) = record.landing {
                landing.copy_from(self.pool.part(record.buffer, 0, landing.len()));
            }
            self.end(core, memories, record);
        }
    }

    /// Ends a request: gives its buffer back, releases its registration, and signals its completion.
    #[inline]
    fn end(&mut self, core: &VerbsCore, memories: &mut Memories, record: Record) {
        self.give_back(record.buffer);
        memories.release(record.registration);
        self.awaited -= usize::from(record.done.is_some());
        core.complete(record.done);
    }

    /// Gives a buffer back to the pool. Does nothing for [`NONE`].
    #[inline]
    pub fn give_back(&mut self, buffer: u32) {
        if buffer != NONE {
            self.pool.give_back(buffer);
        }
    }

    /// Ends requests whose completions will not be handled any more.
    pub fn abandon(&mut self, core: &VerbsCore, memories: &mut Memories, records: Vec<Record>) {
        for record in records {
            self.end(core, memories, record);
        }
    }

    /// Completes work that will never be posted.
    pub fn give_up(&mut self, core: &VerbsCore, memories: &mut Memories, work: &PostedWork) {
        memories.release(work.registration());
        self.awaited -= usize::from(work.is_awaited());
        core.complete(work.done());
    }

    /// Prepares a piece of local memory for the network. A short piece is copied, or goes through a bounce buffer. A longer
    /// piece is registered for this operation, unless it lies in registered memory.
    pub fn prepare(
        memories: &mut Memories,
        memory: Sge,
        direction: Direction,
    ) -> Result<LocalMemory, Fault> {
        let len = memory.len();
        if len <= INLINE_MAX && direction == Direction::Out {
            return Ok(LocalMemory { memory, registration: NONE });
        }
        let uses = match direction {
            Direction::In => Uses::Writes,
            Direction::Out => Uses::Reads,
        };
        let registration = match memories.share(memory, uses) {
            Some(id) => id,
            None if len <= BUFFER => NONE,
            // SAFETY: `acquire` needs memory that stays mapped: the maker of the `Sge` promised that the memory outlives the
            // operation.
            None => unsafe { memories.acquire(memory, uses) }?,
        };
        Ok(LocalMemory { memory, registration })
    }

    /// Adds a message to the batch, if there is room for it.
    #[inline]
    pub fn add_message(
        &mut self,
        memories: &Memories,
        link: &mut VerbsConnection,
        message: PostedMessage,
    ) -> bool {
        let PostedMessage { head, attention, payload } = message;
        if link.messages == 0 || !link.has_room(1) || !self.batch.has_room(1) {
            return false;
        }
        let len = HEAD + payload.len();
        let inline = len <= link.inline;
        let mut record = Record::NOTHING;
        let mut signal = Signal::WhenDue;
        if !inline {
            signal = self.signal_of_pool();
            let Some(buffer) = self.pool.take() else { return false };
            record.buffer = buffer;
            let mut bytes = [0; HEAD];
            for (to, word) in bytes.chunks_exact_mut(8).zip(head.0) {
                to.copy_from_slice(&word.to_ne_bytes());
            }
            self.pool.part(buffer, 0, HEAD).fill(&bytes);
            self.pool.part(buffer, HEAD, payload.len()).copy_from(payload);
        }
        link.messages -= 1;
        let tag = link.take_credits(WireKind::Message);
        let NewRequest { id, flags } = link.note(record, signal);
        let wake = if attention == Attention::Helper { IBV_SEND_SOLICITED } else { 0 };
        let request =
            self.batch.add(id, IBV_WR_SEND_WITH_IMM, flags | wake).immediate(tag.encode());
        if inline {
            request.head(head).inline(payload);
        } else {
            request.data(self.pool.sge(memories, link.rail, record.buffer, len));
        }
        true
    }

    /// Returns the urgency of the completion of a request that takes a buffer. If few buffers are free, the completion must come
    /// soon, because it frees the buffer.
    #[inline]
    fn signal_of_pool(&self) -> Signal {
        if self.pool.is_low() { Signal::Always } else { Signal::WhenDue }
    }

    /// Adds an operation to the batch, if there is room for it.
    pub fn add_work(
        &mut self,
        memories: &Memories,
        link: &mut VerbsConnection,
        work: &PostedWork,
    ) -> bool {
        let added = match work {
            PostedWork::Write(write) => self.add_write(memories, link, write),
            PostedWork::Read(read) => self.add_read(memories, link, read),
            PostedWork::Atomic(atomic) => self.add_atomic(memories, link, atomic),
            PostedWork::Short { .. } | PostedWork::Long { .. } => {
                unreachable!("messages are kept elsewhere")
            }
        };
        if added && let Some(secondary) = &mut link.secondary {
            secondary.posted.push_back(Some(*work));
            if let PostedWork::Atomic(WorkAtomic { target, .. }) = work
                && target.wake
            {
                secondary.posted.push_back(None);
            }
        }
        added
    }

    fn add_write(
        &mut self,
        memories: &Memories,
        link: &mut VerbsConnection,
        write: &WorkWrite,
    ) -> bool {
        let &WorkWrite { from: LocalMemory { memory, registration }, target, tail, done } = write;
        let data = !memory.is_empty();
        // The tail of a write can carry any immediate except [`WAKE`].
        let carried = match tail {
            WriteTail::Immediate(immediate) if immediate != WAKE => Some(immediate),
            _ => None,
        };
        let separate = !matches!(tail, WriteTail::Nothing) && carried.is_none();
        let requests = usize::from(data || carried.is_some()) + usize::from(separate);
        let event = match tail {
            WriteTail::Nothing => false,
            WriteTail::Flag { at, .. } => at.wake,
            WriteTail::Immediate(_) => true,
        };
        let room = link.has_room(requests) && self.batch.has_room(requests);
        if !room || event && link.events == 0 {
            return false;
        }
        let inline = registration == NONE && memory.len() <= link.inline;
        let mut last = Record { done, ..Record::NOTHING };
        let mut signal = link.signal();
        if data && registration == NONE && !inline {
            if signal == Signal::WhenDue {
                signal = self.signal_of_pool();
            }
            let Some(buffer) = self.pool.take() else { return false };
            self.pool.part(buffer, 0, memory.len()).copy_from(memory);
            last.buffer = buffer;
        }
        if registration != NONE && !memories.is_lasting(registration) {
            last.registration = registration;
        }
        link.events -= u32::from(event);
        let rail = link.rail;
        if data || carried.is_some() {
            let (record, signal) = match separate {
                true => (Record::NOTHING, Signal::WhenDue),
                false => (last, signal),
            };
            let NewRequest { id, flags } = link.note(record, signal);
            let opcode = match carried {
                Some(_) => IBV_WR_RDMA_WRITE_WITH_IMM,
                None => IBV_WR_RDMA_WRITE,
            };
            let request = self.batch.add(id, opcode, flags);
            let request = request.immediate(carried.unwrap_or(0)).to(target.at, target.keys[rail]);
            if registration != NONE {
                request.data(memories.sge(registration, rail, memory));
            } else if inline {
                request.inline(memory);
            } else {
                request.data(self.pool.sge(memories, rail, last.buffer, memory.len()));
            }
        }
        if separate {
            let request = link.note(last, signal);
            self.add_tail(request, rail, tail);
        }
        true
    }

    /// Adds the request that follows the data of a write: a flag, or the immediate [`WAKE`].
    fn add_tail(&mut self, request: NewRequest, rail: usize, tail: WriteTail) {
        let NewRequest { id, flags } = request;
        match tail {
            WriteTail::Flag { at, value } if at.wake => {
                let request = self.batch.add(id, IBV_WR_RDMA_WRITE_WITH_IMM, flags);
                request.immediate(WAKE).to(at.at, at.keys[rail]).word(value);
            }
            WriteTail::Flag { at, value } => {
                self.batch.add(id, IBV_WR_RDMA_WRITE, flags).to(at.at, at.keys[rail]).word(value);
            }
            _ => {
                let tag = ImmediateTag { kind: WireKind::Reserved, messages: 0, events: 0 };
                self.batch.control(request, tag);
            }
        }
    }

    /// Returns the place to which the adapter writes the data of a read or of an atomic operation: registered memory, or a buffer
    /// whose content is copied at the end. Records the place in `record`. Returns `None` if the pool is empty.
    fn landing(
        &mut self,
        memories: &Memories,
        rail: usize,
        into: LocalMemory,
        record: &mut Record,
    ) -> Option<ibv_sge> {
        let LocalMemory { memory, registration } = into;
        if registration == NONE {
            let buffer = self.pool.take()?;
            (record.buffer, record.landing) = (buffer, Some(memory));
            return Some(self.pool.sge(memories, rail, buffer, memory.len()));
        }
        if !memories.is_lasting(registration) {
            record.registration = registration;
        }
        Some(memories.sge(registration, rail, memory))
    }

    fn add_read(
        &mut self,
        memories: &Memories,
        link: &mut VerbsConnection,
        read: &WorkRead,
    ) -> bool {
        let &WorkRead { into, target, done } = read;
        if !link.has_room(1) || !self.batch.has_room(1) {
            return false;
        }
        let mut record = Record { done, ..Record::NOTHING };
        let Some(sge) = self.landing(memories, link.rail, into, &mut record) else { return false };
        // Reads are always signaled, because the data must be copied out soon, even if nobody waits for the completion.
        let NewRequest { id, flags } = link.note(record, Signal::Always);
        self.batch.add(id, IBV_WR_RDMA_READ, flags).to(target.at, target.keys[link.rail]).data(sge);
        true
    }

    fn add_atomic(
        &mut self,
        memories: &Memories,
        link: &mut VerbsConnection,
        atomic: &WorkAtomic,
    ) -> bool {
        let &WorkAtomic { target, what, result, done } = atomic;
        let requests = 1 + usize::from(target.wake);
        let room = link.has_room(requests) && self.batch.has_room(requests);
        if !room || target.wake && link.events == 0 {
            return false;
        }
        let mut record = Record { done, ..Record::NOTHING };
        let sge = self.landing(memories, link.rail, result, &mut record);
        let Some(sge) = sge else { return false };
        let (opcode, operand, swap) = match what {
            PendingAtomic::Add { operand } => (IBV_WR_ATOMIC_FETCH_AND_ADD, operand, 0),
            PendingAtomic::Swap { compare, swap } => (IBV_WR_ATOMIC_CMP_AND_SWP, compare, swap),
        };
        let NewRequest { id, flags } = link.note(record, Signal::Always);
        self.batch
            .add(id, opcode, flags)
            .atomic(target.at, target.keys[link.rail], operand, swap)
            .data(sge);
        if target.wake {
            link.events -= 1;
            let NewRequest { id, flags } = link.note(Record::NOTHING, Signal::WhenDue);
            let request = self.batch.add(id, IBV_WR_RDMA_WRITE_WITH_IMM, flags);
            request.immediate(WAKE).inline(Sge::EMPTY);
        }
        true
    }

    /// Adds a request that transfers nothing. Its completion proves that all requests before it have completed.
    pub fn add_probe(&mut self, link: &mut VerbsConnection) -> bool {
        if link.phase != ConnectionPhase::Open || !link.has_room(1) || !self.batch.has_room(1) {
            return false;
        }
        let NewRequest { id, flags } = link.note(Record::NOTHING, Signal::Always);
        self.batch.add(id, IBV_WR_RDMA_WRITE, flags).to(0, 0).inline(Sge::EMPTY);
        if let Some(secondary) = &mut link.secondary {
            secondary.posted.push_back(None);
        }
        true
    }

    /// Adds the disconnect message to the batch. Returns false if there is no room.
    pub fn add_disconnect(&mut self, link: &mut VerbsConnection) -> bool {
        if !link.has_room(1) {
            return false;
        }
        let tag = link.take_credits(WireKind::Disconnect);
        let request = link.note(Record::NOTHING, Signal::Always);
        self.batch.control(request, tag);
        true
    }

    /// Adds a message with the credits that are owed to the peer. Returns false if there is no room.
    pub fn add_credits(&mut self, link: &mut VerbsConnection) -> bool {
        if !link.has_room(1) {
            return false;
        }
        let tag = link.take_credits(WireKind::Credits);
        let request = link.note(Record::NOTHING, link.signal());
        if let Some(secondary) = &mut link.secondary {
            secondary.posted.push_back(None);
        }
        self.batch.control(request, tag);
        true
    }

    /// Adds a message on first connection `link`. The message says that this end of the secondary connection over `rail` is shut.
    /// Returns false if there is no room.
    pub fn add_shut(&mut self, link: &mut VerbsConnection, rail: usize) -> bool {
        if !link.has_room(1) {
            return false;
        }
        let tag = link.take_credits(WireKind::Credits);
        let NewRequest { id, flags } = link.note(Record::NOTHING, Signal::WhenDue);
        // The peer may be computing, so the message wakes its helper thread.
        self.batch
            .add(id, IBV_WR_SEND_WITH_IMM, flags | IBV_SEND_SOLICITED)
            .immediate(tag.encode())
            .word(rail as u64);
        true
    }
}
