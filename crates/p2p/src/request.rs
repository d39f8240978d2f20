//! Operations under way, by number.

use crate::protocol::Pattern;
use crate::protocol::co_copy::Shared;
use crate::slab::Slab;
use crate::{Context, Tag};
use weft_fabric::{Counter, Region, Sge};

/// An operation under way. Valid until [`crate::Endpoint::finish`] says that it is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct RequestId(pub u32);

/// How an operation ended (MPI 5.0, section 3.2.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Status {
    /// Sender's rank in the communicator; of a send: meaningless.
    pub source: i32,
    /// The message's tag, also where the receive took any.
    pub tag: Tag,
    /// Bytes received.
    pub bytes: u64,
    /// Bytes of the message that found no room in the buffer.
    pub lost: u64,
    /// It was taken back before it was matched; nothing was moved.
    pub cancelled: bool,
    /// A peer's message made no sense; the operation was given up.
    pub corrupt: bool,
}

/// What stage an operation is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Stage {
    #[default]
    Free,
    /// Send: the fabric still needs the payload.
    Queued,
    /// Send: an `EagerSync` that is not acknowledged.
    Unacknowledged,
    /// Send: an `Rts` that is not answered.
    Offered,
    /// Send: pieces are on their way.
    Pushing,
    /// Send: RDMA writes of the payload are under way.
    Writing,
    /// Receive: in the list of posted receives.
    Posted,
    /// Receive: an RDMA read is under way.
    Reading,
    /// Receive: pieces are awaited.
    Filling,
    /// Receive: the sender writes the payload.
    Landing,
    /// Receive: the sender is copying pieces too.
    Sharing,
    /// Over, not yet asked for.
    Complete,
}

/// An operation. The counter stays with the slot for good: it is never set back.
#[derive(Debug)]
pub struct Slot {
    pub stage: Stage,
    pub counter: Option<Counter>,
    /// The operation is over when `counter >= target` and the stage is `Complete` or `Queued`.
    pub target: u64,
    pub context: Context,
    /// In the fabric; `None`: any source.
    pub peer: Option<u32>,
    pub rank: i32,
    pub tag: Tag,
    pub buffer: Sge,
    /// Of a receive under way: bytes that have arrived. Of a send: pieces not yet taken.
    pub progress: u64,
    /// The peer's request; of a posted receive, its place among those.
    pub remote: u32,
    pub region: Option<Region>,
    pub shared: Option<Shared>,
    pub status: Status,
    /// The program asked to cancel it.
    pub cancelling: bool,
    /// A word says whether it is cancelled (`cancel.rs`).
    pub word: bool,
    /// It receives.
    pub receives: bool,
    /// Of a receive: what its caller knows of the message.
    pub pattern: Pattern,
    /// This process must act when the peer answers.
    pub acts: bool,
}

impl Default for Slot {
    fn default() -> Slot {
        Slot {
            stage: Stage::Free,
            counter: None,
            target: 0,
            context: Context(0),
            peer: None,
            rank: -1,
            tag: 0,
            buffer: Sge::EMPTY,
            progress: 0,
            remote: 0,
            region: None,
            shared: None,
            status: Status::default(),
            cancelling: false,
            word: false,
            receives: false,
            pattern: Pattern::Plain,
            acts: false,
        }
    }
}

impl Slot {
    /// A fresh operation, over at `target`. Only what nobody sets is set back: most of it is left as it must be.
    #[inline(always)]
    pub fn renew(&mut self, target: u64) {
        self.target = target;
        self.peer = None;
        self.rank = -1;
        self.progress = 0;
        self.remote = 0;
        self.status = Status::default();
        self.cancelling = false;
        self.word = false;
        self.receives = false;
        self.pattern = Pattern::Plain;
        self.acts = false;
        if self.region.is_some() || self.shared.is_some() {
            (self.region, self.shared) = (None, None);
        }
    }
}

/// All operations of a process.
pub type Requests = Slab<Slot>;
