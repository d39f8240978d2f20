//! The receive buffers of a rail. All connections over the rail share them.
//!
//! A buffer is posted, holds an arrival, is idle, and is posted again together with other idle buffers. The buffers of messages
//! that have arrived from a peer but have not been received yet form a list: the peer's [`Inbox`].

use crate::VerbsConnectError;
use crate::adapter::object::{self, BATCH, Domain, SharedQueue};
use crate::ffi::*;
use crate::memory::{Memories, NONE};
use crate::sizes::{BUFFER, HEAD, QueueDepths, SEND_MAX};
use std::ptr;
use weft_fabric::{ArrivedMessage, Fault, Head, Sge};

/// Kind of the arrival for which a receive buffer was used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BufferUse {
    Message,
    Event,
    /// An arrival for whose buffer no credit is owed, such as a return of credits.
    Control,
}

/// A receive buffer.
struct ReceiveBuffer {
    memory: Sge,
    sge: ibv_sge,
    /// The buffer of the next message of the same peer.
    next: u32,
    /// Number of bytes received.
    len: u32,
    peer: u32,
    of: BufferUse,
}

/// Arrived messages of a peer, as a list of buffers.
#[derive(Debug, Clone, Copy)]
pub struct Inbox {
    /// The first and the last buffer, or [`NONE`].
    first: u32,
    last: u32,
}

impl Inbox {
    pub const EMPTY: Inbox = Inbox { first: NONE, last: NONE };

    /// Returns the buffer of the first message, or [`NONE`].
    #[inline]
    pub fn first(&self) -> u32 {
        self.first
    }
}

/// Place of a message in an [`Inbox`].
#[derive(Debug, Clone, Copy)]
pub struct InboxPlace {
    /// The buffer of the message before this message, or [`NONE`].
    pub before: u32,
    pub buffer: u32,
    /// The buffer of the message after this message, or [`NONE`].
    pub next: u32,
}

/// The receive buffers of a rail.
pub struct ReceivePool {
    shared: SharedQueue,
    buffers: Vec<ReceiveBuffer>,
    /// Buffers that will be posted again together.
    idle: Vec<u32>,
    /// Number of buffers of closed connections. The next connections use these buffers.
    spare: usize,
    /// Number of idle buffers that are collected before they are posted again.
    together: usize,
}

/// Maximum number of idle buffers that are collected before they are posted again.
const TOGETHER: usize = 8;

/// Maximum number of idle buffers. A batch of completions may add buffers to the collected buffers.
pub const IDLE_MOST: usize = TOGETHER + BATCH;

impl ReceivePool {
    pub fn new(domain: &Domain, bounds: QueueDepths) -> Result<ReceivePool, VerbsConnectError> {
        let all = bounds.all_connections() * bounds.buffers();
        Ok(ReceivePool {
            shared: object::shared_queue(domain, all)?,
            buffers: Vec::new(),
            idle: Vec::with_capacity(IDLE_MOST),
            spare: 0,
            together: (bounds.messages.min(bounds.events) / 4).clamp(1, TOGETHER),
        })
    }

    /// Returns the queue from which connections take their receive buffers.
    pub fn queue(&self) -> &SharedQueue {
        &self.shared
    }

    /// Appends a message of `len` bytes to an inbox. Returns false if the size of the message is impossible.
    #[inline]
    pub fn append(&mut self, inbox: &mut Inbox, buffer: u32, len: u32) -> bool {
        let it = &mut self.buffers[buffer as usize];
        if (len as usize) < HEAD || len as usize > it.memory.len() {
            return false;
        }
        (it.len, it.next) = (len, NONE);
        match inbox.last {
            _ if inbox.first == NONE => inbox.first = buffer,
            last => self.buffers[last as usize].next = buffer,
        }
        inbox.last = buffer;
        true
    }

    /// Returns the buffer of the message after the message in `buffer`, or [`NONE`].
    #[inline]
    pub fn next(&self, buffer: u32) -> u32 {
        self.buffers[buffer as usize].next
    }

    /// Takes the first message out of an inbox. Returns its buffer.
    #[inline]
    pub fn take_first(&self, inbox: &mut Inbox) -> Option<u32> {
        let buffer = inbox.first;
        (buffer != NONE).then(|| {
            inbox.first = self.next(buffer);
            buffer
        })
    }

    /// Takes the message at `place` out of an inbox.
    pub fn unlink(&mut self, inbox: &mut Inbox, place: InboxPlace) {
        match place.before {
            NONE => inbox.first = place.next,
            before => self.buffers[before as usize].next = place.next,
        }
        if place.next == NONE {
            inbox.last = place.before;
        }
    }

    /// Returns the message of `peer` in a buffer. `rail` is the number of this rail.
    #[inline]
    pub fn message(&self, peer: usize, rail: usize, buffer: u32) -> ArrivedMessage {
        let it = &self.buffers[buffer as usize];
        let mut bytes = [0; HEAD];
        it.memory.read(&mut bytes);
        let word = |i: usize| u64::from_ne_bytes(std::array::from_fn(|k| bytes[8 * i + k]));
        ArrivedMessage {
            peer,
            head: Head([word(0), word(1), word(2)]),
            payload: it.memory.part(HEAD, it.len as usize - HEAD),
            token: (rail as u64) << 32 | u64::from(buffer),
        }
    }

    /// Returns the first 8 bytes of a buffer as a word.
    pub fn word(&self, buffer: u32) -> u64 {
        let mut word = [0; 8];
        self.buffers[buffer as usize].memory.part(0, 8).read(&mut word);
        u64::from_ne_bytes(word)
    }

    /// Provides `count` receive buffers on rail `number` for a new connection. First uses buffers of closed connections. If they
    /// are not enough, allocates and posts new buffers.
    pub fn grow(
        &mut self,
        number: usize,
        count: usize,
        memories: &mut Memories,
    ) -> Result<(), Fault> {
        let found = count.min(self.spare);
        self.spare -= found;
        let count = count - found;
        if count == 0 {
            return Ok(());
        }
        let (registration, start) = memories.buffers(count * BUFFER, Some(number))?;
        // SAFETY: `Sge::new` needs valid bytes: `memories.buffers` has just mapped them, and they live as long as `memories`.
        let all = unsafe { Sge::new(start, count * BUFFER) };
        let first = self.buffers.len() as u32;
        for i in 0..count {
            let memory = all.part(i * BUFFER, HEAD + SEND_MAX);
            let sge = memories.sge(registration, number, memory);
            let (peer, of) = (0, BufferUse::Control);
            self.buffers.push(ReceiveBuffer { memory, sge, next: NONE, len: 0, peer, of });
        }
        let new: Vec<u32> = (first..self.buffers.len() as u32).collect();
        new.chunks(IDLE_MOST).try_for_each(|buffers| self.post(buffers))
    }

    /// Takes over the `count` buffers of the closed connection `link`. No credits are owed for them any more, and new connections
    /// may use them.
    pub fn shrink(&mut self, link: usize, count: usize) {
        for &buffer in &self.idle {
            let it = &mut self.buffers[buffer as usize];
            if it.peer as usize == link {
                it.of = BufferUse::Control;
            }
        }
        self.spare += count;
    }

    /// Takes a buffer back. Returns true if the idle buffers should be posted.
    #[inline]
    pub fn give_back(&mut self, buffer: u32, peer: usize, of: BufferUse) -> bool {
        let it = &mut self.buffers[buffer as usize];
        (it.peer, it.of) = (peer as u32, of);
        self.idle.push(buffer);
        // Only few buffers are reserved for control messages, so the buffer of a control message is posted again immediately.
        self.idle.len() >= self.together || of == BufferUse::Control
    }

    /// Posts all idle buffers with one call. Calls `owe` for each buffer, with the peer to which a credit is owed.
    pub fn repost(&mut self, mut owe: impl FnMut(usize, BufferUse)) -> Result<(), Fault> {
        let idle = std::mem::take(&mut self.idle);
        let posted = self.post(&idle);
        for &buffer in &idle {
            let it = &self.buffers[buffer as usize];
            owe(it.peer as usize, it.of);
        }
        self.idle = idle;
        self.idle.clear();
        posted
    }

    /// Posts at most [`IDLE_MOST`] buffers with one call.
    fn post(&mut self, buffers: &[u32]) -> Result<(), Fault> {
        if buffers.is_empty() {
            return Ok(());
        }
        let none =
            ibv_recv_wr { wr_id: 0, next: ptr::null_mut(), sg_list: ptr::null_mut(), num_sge: 1 };
        let mut list = [none; IDLE_MOST];
        for (wr, &buffer) in list.iter_mut().zip(buffers) {
            wr.wr_id = buffer.into();
            wr.sg_list = &mut self.buffers[buffer as usize].sge;
        }
        for i in 1..buffers.len() {
            list[i - 1].next = &raw mut list[i];
        }
        let mut bad = ptr::null_mut();
        let post = self.shared.context.table.post_srq_recv;
        // SAFETY: `post_srq_recv` needs a live queue with room for all buffers, and memory that stays until the completion:
        // each buffer lives as long as the queue, and is idle.
        match unsafe { post(self.shared.raw(), list.as_mut_ptr(), &mut bad) } {
            0 => Ok(()),
            errno => Err(Fault::system("posting receive buffers", errno.abs())),
        }
    }
}
