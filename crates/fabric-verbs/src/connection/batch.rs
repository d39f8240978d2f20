//! Work requests that are posted together, so that the adapter's doorbell rings only once.

use crate::adapter::object::QueuePair;
use crate::connection::NewRequest;
use crate::ffi::*;
use crate::wire::ImmediateTag;
use std::ptr;
use weft_fabric::{Head, Sge};

/// Maximum number of requests in a batch.
pub const MOST: usize = 16;

/// Requests under construction. The parts of a batch point at each other, so a batch must stay in a box.
pub struct Batch {
    requests: [ibv_send_wr; MOST],
    elements: [[ibv_sge; 2]; MOST],
    /// Inline data that belongs to the batch and not to the caller: heads of messages, and values of flags.
    words: [[u64; 3]; MOST],
    len: usize,
}

// SAFETY: `Send` needs pointers that stay valid on any thread: they lead into the boxed batch itself, or to memory that is
// read before `post` returns.
unsafe impl Send for Batch {}

impl Batch {
    pub fn new() -> Box<Batch> {
        let request = ibv_send_wr {
            wr_id: 0,
            next: ptr::null_mut(),
            sg_list: ptr::null_mut(),
            num_sge: 0,
            opcode: 0,
            send_flags: 0,
            imm_data: 0,
            wr: ibv_target { none: [0; 4] },
            rest: [0; 7],
        };
        Box::new(Batch {
            requests: [request; MOST],
            elements: Default::default(),
            words: Default::default(),
            len: 0,
        })
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns true if `more` requests fit.
    pub fn has_room(&self, more: usize) -> bool {
        self.len + more <= MOST
    }

    /// Adds a request without data.
    pub fn add(&mut self, wr_id: u64, opcode: i32, send_flags: u32) -> BatchRequest<'_> {
        let i = self.len;
        self.len += 1;
        let request = &mut self.requests[i];
        request.wr_id = wr_id;
        request.opcode = opcode;
        request.send_flags = send_flags;
        request.num_sge = 0;
        request.sg_list = self.elements[i].as_mut_ptr();
        BatchRequest { request, elements: &mut self.elements[i], words: &mut self.words[i] }
    }

    /// Adds a request that carries only a tag.
    pub fn control(&mut self, request: NewRequest, tag: ImmediateTag) {
        let NewRequest { id, flags } = request;
        self.add(id, IBV_WR_SEND_WITH_IMM, flags).immediate(tag.encode()).inline(Sge::EMPTY);
    }

    /// Posts all requests. Returns 0 or the errno of the failure.
    pub fn post(&mut self, pair: &QueuePair) -> i32 {
        if self.len == 0 {
            return 0;
        }
        for i in 0..self.len {
            let next = match i + 1 < self.len {
                true => &raw mut self.requests[i + 1],
                false => ptr::null_mut(),
            };
            self.requests[i].next = next;
        }
        self.len = 0;
        let mut bad = ptr::null_mut();
        // SAFETY: `post_send` needs a live queue pair and a list of valid requests: `pair` is borrowed, and the list lies in
        // `self`. The makers of the `Sge`s promised that memory which is not inline stays valid until the completion.
        unsafe { (pair.context.table.post_send)(pair.raw(), self.requests.as_mut_ptr(), &mut bad) }
    }
}

/// Reference to a request in a [`Batch`].
pub struct BatchRequest<'b> {
    request: &'b mut ibv_send_wr,
    elements: &'b mut [ibv_sge; 2],
    words: &'b mut [u64; 3],
}

impl BatchRequest<'_> {
    fn element(&mut self, sge: ibv_sge) {
        self.elements[self.request.num_sge as usize] = sge;
        self.request.num_sge += 1;
    }

    /// Adds a piece of registered memory.
    pub fn data(mut self, sge: ibv_sge) -> Self {
        self.element(sge);
        self
    }

    /// Adds memory that is copied when the batch is posted.
    pub fn inline(mut self, memory: Sge) -> Self {
        self.request.send_flags |= IBV_SEND_INLINE;
        if !memory.is_empty() {
            let addr = memory.ptr().expose_provenance() as u64;
            self.element(ibv_sge { addr, length: memory.len() as u32, lkey: 0 });
        }
        self
    }

    fn words(mut self, words: &[u64]) -> Self {
        self.words[..words.len()].copy_from_slice(words);
        self.request.send_flags |= IBV_SEND_INLINE;
        let addr = self.words.as_mut_ptr().expose_provenance() as u64;
        self.element(ibv_sge { addr, length: 8 * words.len() as u32, lkey: 0 });
        self
    }

    /// Adds the head of a message, which is copied when the batch is posted.
    pub fn head(self, head: Head) -> Self {
        self.words(&head.0)
    }

    /// Adds a word, which is copied when the batch is posted.
    pub fn word(self, word: u64) -> Self {
        self.words(&[word])
    }

    pub fn immediate(self, immediate: u32) -> Self {
        self.request.imm_data = immediate.to_be();
        self
    }

    pub fn to(self, remote_addr: u64, rkey: u32) -> Self {
        self.request.wr = ibv_target { rdma: ibv_rdma { remote_addr, rkey } };
        self
    }

    pub fn atomic(self, remote_addr: u64, rkey: u32, compare_add: u64, swap: u64) -> Self {
        let atomic = ibv_atomic { remote_addr, compare_add, swap, rkey };
        self.request.wr = ibv_target { atomic };
        self
    }
}
