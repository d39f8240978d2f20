//! Messages and operations that could not be posted because there was no room. They are kept in order for each connection, and
//! posted later.

use crate::connection::connections::Connections;
use crate::connection::pending::{PostedMessage, PostedWork, WorkSlab};
use crate::connection::posting::Posting;
use crate::connection::{ConnectionPhase, VerbsConnection};
use crate::job::VerbsCore;
use crate::memory::Memories;
use crate::sizes::INLINE_MAX;
use weft_fabric::{Completion, FabricTrouble, PostOutcome, Sge};

/// The kept work of all connections.
pub struct WorkBacklog {
    slab: WorkSlab,
    /// Connections with kept work.
    waiting: Vec<u32>,
}

/// A kept message. The payload lies in the slab, or in memory of the caller.
struct KeptMessage {
    message: PostedMessage,
    done: Completion,
}

impl KeptMessage {
    fn of(work: &PostedWork) -> KeptMessage {
        match *work {
            PostedWork::Short { head, attention, len, ref bytes } => {
                // SAFETY: `Sge::new` needs valid bytes: the slab's entry does not change until the message is posted, and
                // posting copies it.
                let payload = unsafe { Sge::new(bytes.as_ptr().cast_mut(), len) };
                let message = PostedMessage { head, attention, payload };
                KeptMessage { message, done: None }
            }
            PostedWork::Long { message, done } => KeptMessage { message, done },
            _ => unreachable!("only messages are kept among messages"),
        }
    }
}

impl WorkBacklog {
    /// Makes an empty list with room for `connections` connections.
    pub fn new(connections: usize) -> WorkBacklog {
        WorkBacklog { slab: WorkSlab::new(), waiting: Vec::with_capacity(connections) }
    }

    /// Returns true if nothing is kept.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.slab.used() == 0
    }

    /// Returns true if the list of connections with kept work contains any connection.
    #[inline]
    pub fn waits(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Keeps a message. A short payload is copied. A long payload stays in the memory of the caller.
    pub fn keep_message(
        &mut self,
        link: &mut VerbsConnection,
        message: PostedMessage,
        done: Completion,
    ) -> PostOutcome {
        let PostedMessage { head, attention, payload } = message;
        let len = payload.len();
        let (work, outcome) = if len <= INLINE_MAX {
            let mut bytes = [0; INLINE_MAX];
            payload.read(&mut bytes[..len]);
            (PostedWork::Short { head, attention, len, bytes }, PostOutcome::Done)
        } else {
            (PostedWork::Long { message, done }, PostOutcome::Later)
        };
        self.slab.push(&mut link.kept_messages, work);
        self.wait_for(link);
        outcome
    }

    /// Keeps an operation.
    pub fn keep(&mut self, link: &mut VerbsConnection, work: PostedWork) {
        self.slab.push(&mut link.kept_work, work);
        self.wait_for(link);
    }

    /// Records that work is kept for `link`.
    fn wait_for(&mut self, link: &mut VerbsConnection) {
        if !std::mem::replace(&mut link.waiting, true) {
            self.waiting.push(link.number);
        }
    }

    /// Posts work that is kept for `link`, with few doorbell rings. Returns true if any work was posted.
    pub fn drain(
        &mut self,
        core: &VerbsCore,
        memories: &Memories,
        link: &mut VerbsConnection,
        posting: &mut Posting,
        trouble: &mut FabricTrouble,
    ) -> bool {
        let mut moved = false;
        while link.phase == ConnectionPhase::Open && !link.is_empty() {
            let message = self.slab.front(&link.kept_messages).map(KeptMessage::of);
            let work = self.slab.front(&link.kept_work).copied();
            let sent = message.is_some_and(|KeptMessage { message, done }| {
                let added = posting.add_message(memories, link, message);
                if added {
                    core.complete(done);
                }
                added
            });
            let done = work.is_some_and(|work| posting.add_work(memories, link, &work));
            // A popped entry stays in the slab, where it is readable until the next push.
            if sent {
                self.slab.pop(&mut link.kept_messages);
            }
            if done {
                self.slab.pop(&mut link.kept_work);
            }
            moved |= sent || done;
            if !(sent || done) {
                if posting.is_empty() {
                    break;
                }
                // If the batch is full, posting it makes room, and then the loop tries again.
                posting.ring(link, trouble);
            }
        }
        posting.ring(link, trouble);
        moved
    }

    /// Posts kept work for all peers. Returns true if any work was posted.
    #[cold]
    pub fn drain_all(
        &mut self,
        core: &VerbsCore,
        memories: &Memories,
        connections: &mut Connections,
        posting: &mut Posting,
        trouble: &mut FabricTrouble,
    ) -> bool {
        let mut moved = false;
        for i in (0..self.waiting.len()).rev() {
            let link = connections.of(self.waiting[i] as usize);
            moved |= self.drain(core, memories, link, posting, trouble);
            if link.is_empty() {
                link.waiting = false;
                self.waiting.swap_remove(i);
            }
        }
        moved
    }

    /// Takes the kept operations of `link`.
    pub fn take_work(&mut self, link: &mut VerbsConnection, into: &mut Vec<PostedWork>) {
        while let Some(&work) = self.slab.front(&link.kept_work) {
            self.slab.pop(&mut link.kept_work);
            into.push(work);
        }
    }

    /// Takes everything that is kept for `link`, which is closed.
    pub fn take_all(&mut self, link: &mut VerbsConnection, into: &mut Vec<PostedWork>) {
        self.waiting.retain(|&other| other != link.number);
        while let Some(&work) = self.slab.front(&link.kept_messages) {
            self.slab.pop(&mut link.kept_messages);
            into.push(work);
        }
        self.take_work(link, into);
    }
}
