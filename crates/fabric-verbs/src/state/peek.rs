//! Actions that a signal handler may do ([`weft_fabric::FabricExt::peek`]). A handler takes plain messages from the queue of
//! arrivals, and posts operations on memory that is already registered.
//!
//! ```text
//!   arrivals ── plain messages ──> inbox of the peer ── look: taken ──> buffer posted again, credits
//!            └─ all else ───────> `aside`: the next poll begins with it
//! ```
//! This module does not allocate or register memory, and does not give back registered memory. It uses lists that were allocated
//! beforehand. When these lists are full, completions and buffers stay where they are.

use super::VerbsState;
use super::onesided::PART;
use crate::adapter::object::BATCH;
use crate::address::{self, VerbsTarget};
use crate::connection::ConnectionPhase;
use crate::connection::pending::{
    Attention, LocalMemory, PostedMessage, PostedWork, WorkRead, WorkWrite, WriteTail,
};
use crate::ffi::*;
use crate::job::VerbsCore;
use crate::memory::receive_pool::{BufferUse, IDLE_MOST, InboxPlace};
use crate::memory::{NONE, Uses};
use crate::trouble;
use crate::wire::{ImmediateTag, WireKind};
use arrayvec::ArrayVec;
use std::cell::RefCell;
use weft_fabric::{ArrivedMessage, Head, Peek, RemoteAddr, RemoteRead, RemoteWrite, Sge};

/// Maximum number of completions that can be put aside between two polls.
const ASIDE: usize = 4 * BATCH;
/// Maximum number of messages that can be taken between two polls.
const TAKEN: usize = 128;

/// A completion that was put aside.
struct AsideCompletion {
    rail: u8,
    wc: ibv_wc,
}

/// A receive buffer that could not be given back.
struct HeldBuffer {
    rail: u8,
    buffer: u32,
    peer: u32,
}

/// A failed post.
struct FailedPost {
    peer: usize,
    errno: i32,
}

/// Work that handlers have left to the next poll.
#[derive(Default)]
pub struct Peeked {
    /// True if handlers have left work.
    any: bool,
    aside: ArrayVec<AsideCompletion, ASIDE>,
    taken: ArrayVec<HeldBuffer, TAKEN>,
    failed: Option<FailedPost>,
}

/// Memory of a handler's operation: at the peer, and in this process.
struct HandlerMemory {
    there: RemoteAddr,
    here: Sge,
    uses: Uses,
}

/// Shows arrived messages to `look`, which may post through the same state. Returns true if a list became full, so that there may
/// be more messages.
pub fn peek(
    state: &RefCell<VerbsState>,
    core: &VerbsCore,
    look: &mut dyn FnMut(&ArrivedMessage) -> Peek,
) -> bool {
    let mut all = true;
    for rail in 0..core.rails {
        all &= state.borrow_mut().collect(core, rail);
    }
    for i in 0.. {
        let Some(peer) = state.borrow().arrivals.get(i) else { break };
        let mut before = NONE;
        let mut buffer = state.borrow_mut().connections.of(peer).inbox.first();
        while buffer != NONE && !state.borrow().peeked.taken.is_full() {
            let (message, next) = state.borrow_mut().shown(peer, buffer);
            match look(&message) {
                Peek::Behind => break,
                Peek::Left => before = buffer,
                Peek::Taken => {
                    let place = InboxPlace { before, buffer, next };
                    state.borrow_mut().take(core, peer, place);
                }
            }
            buffer = next;
        }
    }
    !all || state.borrow().peeked.taken.is_full()
}

impl VerbsState {
    /// Sorts the arrivals of a rail: delivers plain messages, and puts all other completions into the list `aside`. Returns false
    /// if this list is full.
    fn collect(&mut self, core: &VerbsCore, rail: usize) -> bool {
        while self.peeked.aside.remaining_capacity() >= BATCH {
            let mut done = [ibv_wc::default(); BATCH];
            let n = self.rails[rail].base.arrivals.poll(&mut done);
            for wc in &done[..n] {
                if !self.is_plain(core, rail, wc) {
                    self.peeked.aside.push(AsideCompletion { rail: rail as u8, wc: *wc });
                    self.peeked.any = true;
                }
            }
            if n == 0 {
                return true;
            }
        }
        false
    }

    /// Delivers a message that came over an open connection. Returns false for any other completion.
    fn is_plain(&mut self, core: &VerbsCore, rail: usize, wc: &ibv_wc) -> bool {
        let VerbsState { connections, rails, arrivals, .. } = self;
        let Some(number) = connections.of_pair(rail, wc.qp_num) else { return false };
        let tag = ImmediateTag::decode(u32::from_be(wc.imm_data));
        let plain = wc.status == IBV_WC_SUCCESS
            && wc.opcode != IBV_WC_RECV_RDMA_WITH_IMM
            && wc.wc_flags & IBV_WC_WITH_IMM != 0
            && tag.kind == WireKind::Message
            && !core.is_secondary(number);
        let link = connections.of(number);
        if !plain || link.phase != ConnectionPhase::Open || !arrivals.has_room_for(link) {
            return false;
        }
        if !arrivals.deliver(link, &mut rails[rail].receives, wc) {
            return false;
        }
        link.messages += tag.messages;
        link.events += tag.events;
        true
    }

    /// Returns a message in an inbox, and the buffer of the next message.
    fn shown(&mut self, peer: usize, buffer: u32) -> (ArrivedMessage, u32) {
        let rail = self.connections.of(peer).rail;
        let pool = &self.rails[rail].receives;
        (pool.message(peer, rail, buffer), pool.next(buffer))
    }

    /// Takes a message out of an inbox.
    fn take(&mut self, core: &VerbsCore, peer: usize, place: InboxPlace) {
        let VerbsState { connections, rails, peeked, debts, .. } = self;
        let link = connections.of(peer);
        let (rail, buffer) = (link.rail, place.buffer);
        let pool = &mut rails[rail].receives;
        pool.unlink(&mut link.inbox, place);
        if !debts.has_room(IDLE_MOST) {
            peeked.taken.push(HeldBuffer { rail: rail as u8, buffer, peer: peer as u32 });
            peeked.any = true;
        } else if pool.give_back(buffer, peer, BufferUse::Message) {
            // The peer may need the credits to continue.
            self.repost(core, rail);
        }
    }

    /// Posts a read into registered memory over the first connection. Returns false if it cannot be posted now.
    pub fn try_read(&mut self, core: &VerbsCore, peer: usize, read: &RemoteRead) -> bool {
        let &RemoteRead { dst, src, done } = read;
        let memory = HandlerMemory { there: src, here: dst, uses: Uses::Writes };
        self.try_post(core, peer, memory, |into, target| {
            PostedWork::Read(WorkRead { into, target, done })
        })
    }

    /// Posts a write from registered memory over the first connection. Returns false if it cannot be posted now.
    pub fn try_write(&mut self, core: &VerbsCore, peer: usize, write: &RemoteWrite) -> bool {
        let &RemoteWrite { src, dst, done } = write;
        let memory = HandlerMemory { there: dst, here: src, uses: Uses::Reads };
        self.try_post(core, peer, memory, |from, target| {
            PostedWork::Write(WorkWrite { from, target, tail: WriteTail::Nothing, done })
        })
    }

    fn try_post(
        &mut self,
        core: &VerbsCore,
        peer: usize,
        memory: HandlerMemory,
        work: impl FnOnce(LocalMemory, VerbsTarget) -> PostedWork,
    ) -> bool {
        let HandlerMemory { there, here: memory, uses } = memory;
        let Ok(target) = address::decode(peer, there, memory.len()) else { return false };
        let VerbsState { connections, posting, memories, peeked, .. } = self;
        let open = |link: &&mut crate::connection::VerbsConnection| {
            link.phase == ConnectionPhase::Open && link.kept_work.is_empty()
        };
        let Some(link) = connections.get_mut(peer).filter(open) else { return false };
        if memory.len() > PART || core.is_secondary(peer) {
            return false;
        }
        let Some(registration) = memories.share(memory, uses) else { return false };
        let work = work(LocalMemory { memory, registration }, target);
        if !posting.add_work(memories, link, &work) {
            // The caller has prepared the memory and is still a user, so the registration stays.
            memories.release(registration);
            return false;
        }
        posting.await_work(&work);
        peeked.note_post(peer, posting.post(link));
        true
    }

    /// Sends a head without payload, if it can be sent now.
    pub fn try_send(&mut self, peer: usize, head: Head) -> bool {
        let VerbsState { connections, posting, memories, peeked, .. } = self;
        let message = PostedMessage { head, attention: Attention::Program, payload: Sge::EMPTY };
        if let Some(link) = connections.get_mut(peer)
            && link.phase == ConnectionPhase::Open
            && link.kept_messages.is_empty()
            && posting.add_message(memories, link, message)
        {
            peeked.note_post(peer, posting.post(link));
            return true;
        }
        false
    }

    /// Does the work that handlers have left. Returns true if there was such work.
    #[inline]
    pub fn follow_up(&mut self, core: &VerbsCore) -> bool {
        self.peeked.any && self.follow(core)
    }

    #[cold]
    fn follow(&mut self, core: &VerbsCore) -> bool {
        let Peeked { aside, taken, failed, .. } = std::mem::take(&mut *self.peeked);
        if let Some(FailedPost { peer, errno }) = failed {
            trouble::refuse_post(&mut self.trouble, peer, errno);
        }
        let mut due = [false; crate::RAILS_MAX];
        for AsideCompletion { rail, wc } in aside {
            due[rail as usize] |= self.arrival(core, rail as usize, &wc);
        }
        for HeldBuffer { rail, buffer, peer } in taken {
            let pool = &mut self.rails[rail as usize].receives;
            due[rail as usize] |= pool.give_back(buffer, peer as usize, BufferUse::Message);
        }
        for rail in (0..self.rails.len()).filter(|&rail| due[rail]) {
            self.repost(core, rail);
        }
        true
    }
}

impl Peeked {
    /// Leaves the report of a failed post to the next poll.
    fn note_post(&mut self, peer: usize, errno: i32) {
        if errno != 0 {
            self.failed = Some(FailedPost { peer, errno });
            self.any = true;
        }
    }
}
