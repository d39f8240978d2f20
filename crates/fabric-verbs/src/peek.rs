//! Actions of a signal handler ([`weft_fabric::FabricExt::peek`]): it takes plain messages from the queue of arrivals, and
//! posts operations on memory that is already registered.
//!
//! ```text
//!   arrivals ── plain messages ──> inbox of the peer ── look: taken ──> buffer posted again, credits
//!            └─ all else ───────> `aside`: the next poll begins with it
//! ```
//! This module does not allocate, register, or give registered memory back: all room is allocated beforehand. Once the room
//! is used up, completions and buffers stay where they are.

use crate::address::{self, VerbsTarget};
use crate::connection::ConnectionPhase;
use crate::ffi::*;
use crate::memory::{NONE, Uses};
use crate::object::BATCH;
use crate::onesided::PART;
use crate::pending::{LocalMemory, PostedWork, WriteTail};
use crate::rail::{BufferUse, IDLE_MOST};
use crate::state::{VerbsCore, VerbsState};
use crate::wire::{ImmediateTag, WireKind};
use arrayvec::ArrayVec;
use std::cell::RefCell;
use weft_fabric::{ArrivedMessage, Completion, Fault, Head, Peek, RemoteAddr, Sge};

/// Maximum number of completions that can be put aside between two polls.
const ASIDE: usize = 4 * BATCH;
/// Maximum number of messages that can be taken between two polls.
const TAKEN: usize = 128;

/// Work that handlers have left to the next poll.
#[derive(Default)]
pub struct Peeked {
    /// True if there is any such work.
    any: bool,
    /// Rail and completion of each arrival put aside.
    aside: ArrayVec<(u8, ibv_wc), ASIDE>,
    /// Rail, buffer and peer of each receive buffer that could not be given back.
    taken: ArrayVec<(u8, u32, u32), TAKEN>,
    /// Peer and errno of a failed post.
    failed: Option<(usize, i32)>,
}

/// Shows arrived messages to `look`, which may post through the same state. Returns true if there may be more messages, for
/// which there was no room.
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
        let Some(&peer) = state.borrow().arrived.get(i) else { break };
        let peer = peer as usize;
        let mut before = NONE;
        let mut buffer = state.borrow_mut().link(peer).inbox.0;
        while buffer != NONE && !state.borrow().peeked.taken.is_full() {
            let (message, rail, next) = state.borrow_mut().shown(peer, buffer);
            match look(&message) {
                Peek::Behind => break,
                Peek::Left => before = buffer,
                Peek::Taken => state.borrow_mut().take(core, peer, rail, (before, buffer, next)),
            }
            buffer = next;
        }
    }
    !all || state.borrow().peeked.taken.is_full()
}

impl VerbsState {
    /// Sorts the arrivals of a rail. Returns false if the room ran out.
    fn collect(&mut self, core: &VerbsCore, rail: usize) -> bool {
        while self.peeked.aside.remaining_capacity() >= BATCH {
            let mut done = [ibv_wc::default(); BATCH];
            let n = self.rails[rail].base.arrivals.poll(&mut done);
            for wc in &done[..n] {
                if !self.is_plain(core, rail, wc) {
                    self.peeked.aside.push((rail as u8, *wc));
                    self.peeked.any = true;
                }
            }
            if n == 0 {
                return true;
            }
        }
        false
    }

    /// Delivers a message that came over an open connection. Returns false if the completion is anything else.
    fn is_plain(&mut self, core: &VerbsCore, rail: usize, wc: &ibv_wc) -> bool {
        let Some(&number) = self.routes[rail].get(&wc.qp_num) else { return false };
        let number = number as usize;
        let tag = ImmediateTag::decode(u32::from_be(wc.imm_data));
        let plain = wc.status == IBV_WC_SUCCESS
            && wc.opcode != IBV_WC_RECV_RDMA_WITH_IMM
            && wc.wc_flags & IBV_WC_WITH_IMM != 0
            && tag.kind == WireKind::Message
            && !core.is_secondary(number);
        let room = self.arrived.len() < self.arrived.capacity();
        let link = self.link(number);
        if !plain || link.phase != ConnectionPhase::Open || !(link.listed || room) {
            return false;
        }
        if !self.deliver(rail, number, wc) {
            return false;
        }
        let link = self.link(number);
        link.messages += tag.messages;
        link.events += tag.events;
        true
    }

    /// Returns a message in an inbox, its rail, and the next buffer.
    fn shown(&mut self, peer: usize, buffer: u32) -> (ArrivedMessage, usize, u32) {
        let rail = self.link(peer).rail;
        let next = self.rails[rail].buffers[buffer as usize].next;
        (self.message_in(peer, rail, buffer), rail, next)
    }

    /// Takes a message out of an inbox, given the buffers before and behind it.
    fn take(&mut self, core: &VerbsCore, peer: usize, rail: usize, place: (u32, u32, u32)) {
        let (before, buffer, next) = place;
        let VerbsState { peers, rails, peeked, debts, .. } = self;
        let link = peers[peer].as_deref_mut().expect("a connection");
        match before {
            NONE => link.inbox.0 = next,
            _ => rails[rail].buffers[before as usize].next = next,
        }
        if next == NONE {
            link.inbox.1 = before;
        }
        if debts.len() + IDLE_MOST > debts.capacity() {
            peeked.taken.push((rail as u8, buffer, peer as u32));
            peeked.any = true;
        } else if rails[rail].give_back(buffer, peer, BufferUse::Message) {
            // The peer may need the credits to continue.
            self.repost(core, rail);
        }
    }

    /// Posts a read into registered memory over the first connection. Returns false if it cannot be posted now.
    pub fn try_read(
        &mut self,
        core: &VerbsCore,
        peer: usize,
        dst: Sge,
        src: RemoteAddr,
        done: Completion,
    ) -> bool {
        let work = |into, target| PostedWork::Read { into, target, done };
        self.try_post(core, (peer, src), (dst, Uses::Writes), done, work)
    }

    /// Posts a write from registered memory over the first connection. Returns false if it cannot be posted now.
    pub fn try_write(
        &mut self,
        core: &VerbsCore,
        peer: usize,
        src: Sge,
        dst: RemoteAddr,
        done: Completion,
    ) -> bool {
        let work =
            |from, target| PostedWork::Write { from, target, tail: WriteTail::Nothing, done };
        self.try_post(core, (peer, dst), (src, Uses::Reads), done, work)
    }

    fn try_post(
        &mut self,
        core: &VerbsCore,
        (peer, there): (usize, RemoteAddr),
        (memory, uses): (Sge, Uses),
        done: Completion,
        work: impl FnOnce(LocalMemory, VerbsTarget) -> PostedWork,
    ) -> bool {
        let Ok(target) = address::decode(peer, there, memory.len()) else { return false };
        let open = self.peers[peer]
            .as_deref()
            .is_some_and(|link| link.phase == ConnectionPhase::Open && link.kept_work.is_empty());
        if !open || memory.len() > PART || core.is_secondary(peer) {
            return false;
        }
        let Some(registration) = self.memories.share(memory, uses) else { return false };
        if !self.add_work(peer, &work(LocalMemory { memory, registration }, target)) {
            // The preparer of the memory is still a user, so this release does not drop the registration.
            self.memories.release(registration);
            return false;
        }
        self.awaited += usize::from(done.is_some());
        self.try_ring(peer);
        true
    }

    /// Sends a head without payload, if it can leave now.
    pub fn try_send(&mut self, peer: usize, head: Head) -> bool {
        let open = self.peers[peer].as_deref().is_some_and(|link| {
            link.phase == ConnectionPhase::Open && link.kept_messages.is_empty()
        });
        let sent = open && self.add_message(peer, head, false, Sge::EMPTY);
        if sent {
            self.try_ring(peer);
        }
        sent
    }

    /// Posts the batch like [`VerbsState::ring`], but leaves the message for a failure to the next poll.
    fn try_ring(&mut self, peer: usize) {
        let VerbsState { peers, batch, peeked, .. } = self;
        let pair = &peers[peer].as_deref().expect("a connection").pair;
        let errno = batch.post(pair);
        if errno != 0 {
            peeked.failed = Some((peer, errno.abs()));
            peeked.any = true;
        }
    }

    /// Does the work that handlers have left. Returns true if there was any.
    #[inline]
    pub fn follow_up(&mut self, core: &VerbsCore) -> bool {
        self.peeked.any && self.follow(core)
    }

    #[cold]
    fn follow(&mut self, core: &VerbsCore) -> bool {
        let Peeked { aside, taken, failed, .. } = std::mem::take(&mut *self.peeked);
        if let Some((peer, errno)) = failed {
            let fault = Fault::system("posting to the adapter", errno);
            self.fail(fault, format!("posting to process {peer} failed"));
        }
        let mut due = [false; crate::RAILS_MAX];
        for (rail, wc) in aside {
            due[rail as usize] |= self.arrival(core, rail as usize, &wc);
        }
        for (rail, buffer, peer) in taken {
            let rail = rail as usize;
            due[rail] |= self.rails[rail].give_back(buffer, peer as usize, BufferUse::Message);
        }
        for rail in (0..self.rails.len()).filter(|&rail| due[rail]) {
            self.repost(core, rail);
        }
        true
    }
}
