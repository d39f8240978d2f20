//! Two-sided messages: posted immediately if the peer has room, otherwise kept.

use crate::connection::{Connection, ConnectionPhase, Record};
use crate::ffi::*;
use crate::memory::NONE;
use crate::pending::PostedWork;
use crate::rail::{BufferUse, HEAD, INLINE_MAX, SEND_MAX};
use crate::state::{VerbsCore, VerbsState, request_id};
use crate::wire::{ImmediateTag, WireKind};
use weft_fabric::{ArrivedMessage, Completion, Head, PostOutcome, Sge};

impl Connection {
    /// Returns the credits that the peer is owed, as a tag. Afterwards the peer is owed nothing.
    pub fn take_credits(&mut self, kind: WireKind) -> ImmediateTag {
        let messages = std::mem::take(&mut self.owed_messages);
        let events = std::mem::take(&mut self.owed_events);
        ImmediateTag { kind, messages, events }
    }
}

/// Returns head, flag `solicited`, payload and completion of a kept message. The payload lies in the slab, or in memory of
/// the caller.
fn kept_message(work: &PostedWork) -> (Head, bool, Sge, Completion) {
    match *work {
        PostedWork::Short { head, solicited, len, ref bytes } => {
            // SAFETY: `Sge::new` needs valid bytes: the slab's entry does not change until the message is posted, and posting
            // copies it.
            (head, solicited, unsafe { Sge::new(bytes.as_ptr().cast_mut(), len) }, None)
        }
        PostedWork::Long { head, solicited, payload, done } => (head, solicited, payload, done),
        _ => unreachable!("only messages are kept among messages"),
    }
}

impl VerbsState {
    /// Sends a message. `solicited`: the message wakes the peer's helper thread.
    #[inline]
    pub fn send(
        &mut self,
        core: &VerbsCore,
        peer: usize,
        head: Head,
        solicited: bool,
        payload: Sge,
        done: Completion,
    ) -> PostOutcome {
        if let Some(link) = &self.peers[peer]
            && link.phase == ConnectionPhase::Open
            && link.kept_messages.is_empty()
            && payload.len() <= SEND_MAX
            && self.add_message(peer, head, solicited, payload)
        {
            self.ring(peer);
            return PostOutcome::Done;
        }
        self.send_slowly(core, peer, head, solicited, payload, done)
    }

    #[cold]
    fn send_slowly(
        &mut self,
        core: &VerbsCore,
        peer: usize,
        head: Head,
        solicited: bool,
        payload: Sge,
        done: Completion,
    ) -> PostOutcome {
        let len = payload.len();
        assert!(len <= SEND_MAX, "a payload of {len} bytes exceeds the {SEND_MAX} of send_max");
        if !self.reach(core, peer) {
            return PostOutcome::Done;
        }
        // A caller that only sends may never call `progress`, so this call polls and drains: kept messages must not pile up.
        self.poll(core);
        self.drain(core, peer);
        let link = self.link(peer);
        if link.phase == ConnectionPhase::Open
            && link.kept_messages.is_empty()
            && self.add_message(peer, head, solicited, payload)
        {
            self.ring(peer);
            return PostOutcome::Done;
        }
        let (work, posted) = if len <= INLINE_MAX {
            let mut bytes = [0; INLINE_MAX];
            payload.read(&mut bytes[..len]);
            (PostedWork::Short { head, solicited, len, bytes }, PostOutcome::Done)
        } else {
            (PostedWork::Long { head, solicited, payload, done }, PostOutcome::Later)
        };
        let VerbsState { peers, slab, .. } = self;
        let link = peers[peer].as_deref_mut().expect("reached");
        slab.push(&mut link.kept_messages, work);
        self.wait_for(peer);
        posted
    }

    /// Records that work is kept for `peer`.
    pub fn wait_for(&mut self, peer: usize) {
        let link = self.link(peer);
        if !std::mem::replace(&mut link.waiting, true) {
            self.waiting.push(peer as u32);
        }
    }

    /// Begins a connection with `peer` if there is none. Returns false if the peer has left, or is lost; leaving before is a
    /// fault.
    pub fn reach(&mut self, core: &VerbsCore, peer: usize) -> bool {
        match &self.peers[peer] {
            Some(link) if link.phase == ConnectionPhase::Gone => {
                self.lose(core, peer, "it has left already".to_owned());
                false
            }
            Some(link) => link.phase != ConnectionPhase::Lost,
            None => self.begin(core, peer),
        }
    }

    /// Adds a message to the batch, if there is room for it.
    #[inline]
    pub fn add_message(&mut self, peer: usize, head: Head, solicited: bool, payload: Sge) -> bool {
        let VerbsState { peers, batch, pool, memories, .. } = self;
        let link = peers[peer].as_deref_mut().expect("a connection");
        if link.messages == 0 || !link.has_room(1) || !batch.has_room(1) {
            return false;
        }
        let len = HEAD + payload.len();
        let inline = len <= link.inline;
        let mut record = Record::NOTHING;
        let mut eager = false;
        if !inline {
            eager = pool.is_low();
            let Some(buffer) = pool.take() else { return false };
            record.buffer = buffer;
            let mut bytes = [0; HEAD];
            for (to, word) in bytes.chunks_exact_mut(8).zip(head.0) {
                to.copy_from_slice(&word.to_ne_bytes());
            }
            pool.part(buffer, 0, HEAD).fill(&bytes);
            pool.part(buffer, HEAD, payload.len()).copy_from(payload);
        }
        link.messages -= 1;
        let tag = link.take_credits(WireKind::Message);
        let (number, signaled) = link.note(record, eager);
        let flags = if signaled { IBV_SEND_SIGNALED } else { 0 };
        let flags = flags | if solicited { IBV_SEND_SOLICITED } else { 0 };
        let request = batch
            .add(request_id(peer, number), IBV_WR_SEND_WITH_IMM, flags)
            .immediate(tag.encode());
        if inline {
            request.head(head).inline(payload);
        } else {
            request.data(pool.sge(memories, link.rail, record.buffer, len));
        }
        true
    }

    /// Posts work that is kept for `peer`, with few doorbell rings. Returns true if any was posted.
    pub fn drain(&mut self, core: &VerbsCore, peer: usize) -> bool {
        let mut moved = false;
        loop {
            let VerbsState { peers, slab, .. } = &*self;
            let Some(link) = &peers[peer] else { return moved };
            if link.phase != ConnectionPhase::Open || link.is_empty() {
                break;
            }
            let message = slab.front(&link.kept_messages).map(kept_message);
            let work = slab.front(&link.kept_work).copied();
            let sent = message.is_some_and(|(head, solicited, payload, done)| {
                let added = self.add_message(peer, head, solicited, payload);
                if added {
                    core.complete(done);
                }
                added
            });
            let done = work.is_some_and(|work| self.add_work(peer, &work));
            let VerbsState { peers, slab, batch, .. } = &mut *self;
            let link = peers[peer].as_deref_mut().expect("looked at above");
            // An entry popped from the slab stays there, and readable, until the next push.
            if sent {
                slab.pop(&mut link.kept_messages);
            }
            if done {
                slab.pop(&mut link.kept_work);
            }
            moved |= sent || done;
            if !(sent || done) {
                if batch.is_empty() {
                    break;
                }
                // The batch may have been the full part, so it is posted and the loop tries again.
                self.ring(peer);
            }
        }
        self.ring(peer);
        moved
    }

    /// Posts kept work for all peers. Returns true if any was posted.
    #[cold]
    pub fn drain_all(&mut self, core: &VerbsCore) -> bool {
        let mut moved = false;
        for i in (0..self.waiting.len()).rev() {
            let peer = self.waiting[i] as usize;
            moved |= self.drain(core, peer);
            let link = self.link(peer);
            if link.is_empty() {
                link.waiting = false;
                self.waiting.swap_remove(i);
            }
        }
        moved
    }

    /// Puts a message from `peer` into its inbox. Returns false if its size is impossible.
    pub fn deliver(&mut self, rail: usize, peer: usize, wc: &ibv_wc) -> bool {
        let buffer = wc.wr_id as u32;
        let VerbsState { peers, rails, arrived, .. } = self;
        let link = peers[peer].as_deref_mut().expect("a connection");
        let buffers = &mut rails[rail].buffers;
        let it = &mut buffers[buffer as usize];
        if (wc.byte_len as usize) < HEAD || wc.byte_len as usize > it.memory.len() {
            return false;
        }
        (it.len, it.next) = (wc.byte_len, NONE);
        match link.inbox {
            (NONE, _) => link.inbox = (buffer, buffer),
            (first, last) => {
                buffers[last as usize].next = buffer;
                link.inbox = (first, buffer);
            }
        }
        if !std::mem::replace(&mut link.listed, true) {
            arrived.push_back(peer as u32);
        }
        true
    }

    #[inline]
    pub fn receive(&mut self, from: Option<usize>) -> Option<ArrivedMessage> {
        if let Some(peer) = from {
            return self.take_message(peer);
        }
        loop {
            let peer = *self.arrived.front()? as usize;
            let message = self.take_message(peer);
            self.arrived.pop_front();
            let link = self.link(peer);
            link.listed = link.inbox.0 != NONE;
            if link.listed {
                self.arrived.push_back(peer as u32);
            }
            if message.is_some() {
                return message;
            }
        }
    }

    fn take_message(&mut self, peer: usize) -> Option<ArrivedMessage> {
        let link = self.peers[peer].as_deref_mut()?;
        let buffer = link.inbox.0;
        if buffer == NONE {
            return None;
        }
        let rail = link.rail;
        link.inbox.0 = self.rails[rail].buffers[buffer as usize].next;
        Some(self.message_in(peer, rail, buffer))
    }

    /// Returns the message of `peer` in a receive buffer.
    #[inline]
    pub fn message_in(&self, peer: usize, rail: usize, buffer: u32) -> ArrivedMessage {
        let it = &self.rails[rail].buffers[buffer as usize];
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

    #[inline]
    pub fn release(&mut self, core: &VerbsCore, message: &ArrivedMessage) {
        let rail = (message.token >> 32) as usize;
        if self.rails[rail].give_back(message.token as u32, message.peer, BufferUse::Message) {
            self.repost(core, rail);
        }
    }
}
