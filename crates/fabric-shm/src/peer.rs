//! What this rank keeps for each other one: both ends of their boxes, what is kept back, and where the arena is mapped.

use crate::control::RankControl;
use crate::multicast::SlotReader;
use crate::ring::{Consumer, INLINE, Producer};
use crate::segment::Segment;
use crate::sync::Ordering;
use crate::view::MappedArena;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::ptr::NonNull;
use std::sync::Arc;
use weft_fabric::wait::Doorbell;
use weft_fabric::{Completion, Head, Sge};

/// Where the next look into all boxes begins; and the box that had the last message, and how many more it may have before.
#[derive(Default)]
pub struct PollTurn {
    pub(crate) next: Cell<usize>,
    pub(crate) last: Cell<usize>,
    pub(crate) left: Cell<u32>,
}

/// What this rank knows of another one (or of itself).
pub struct ShmPeer {
    /// The box from here to there, and back.
    pub(crate) output: Producer,
    pub(crate) input: Consumer,
    pub(crate) control: NonNull<RankControl>,
    /// The segment of its own job, and its rank there.
    pub(crate) home: Arc<Segment>,
    pub(crate) home_rank: usize,
    /// Which of its boxes is ours: the bit that says that we have sent.
    pub(crate) bit: usize,
    /// It belongs to another job.
    pub(crate) is_foreign: bool,
    /// Keeps the boxes mapped.
    _boxes: Arc<Segment>,
    /// The peer sleeps in poll(2).
    pub(crate) polls: bool,
    /// The peer knows that it must look into our box.
    pub(crate) announced: Cell<bool>,
    pub(crate) backlog: RefCell<VecDeque<QueuedSend>>,
    pub(crate) immediates_out: Producer,
    pub(crate) immediates_in: Consumer,
    /// Immediates for which there was no room.
    pub(crate) immediates_kept: RefCell<VecDeque<u32>>,
    pub(crate) listener: SlotReader,
    /// Whether cross-memory attach works; unknown before the first try.
    pub(crate) direct: Cell<Option<bool>>,
    /// Where the peer has mapped its arena.
    pub(crate) base: u64,
    /// Where that is here.
    pub(crate) view: MappedArena,
}

/// A message for which there was no room.
pub(crate) struct QueuedSend {
    pub(crate) head: Head,
    pub(crate) payload: QueuedPayload,
}

pub(crate) enum QueuedPayload {
    Held(Sge, Completion),
    Copied([u8; INLINE], usize),
}

/// Where a peer's boxes are, and where it is at home.
pub(crate) struct Situation<'s> {
    /// The segment with the boxes of both.
    pub boxes: &'s Arc<Segment>,
    /// This rank and the peer there.
    pub rank: usize,
    pub peer: usize,
    /// The peer's own segment, and its rank there.
    pub home: &'s Arc<Segment>,
    pub home_rank: usize,
    /// What the peer calls this rank.
    pub bit: usize,
    pub is_foreign: bool,
}

impl ShmPeer {
    /// # Safety
    /// Once for each pair in a segment.
    pub unsafe fn new(at: Situation<'_>) -> ShmPeer {
        let Situation { boxes, rank, peer, home, home_rank, bit, is_foreign } = at;
        let (messages, immediates) = (boxes.shape().messages(), boxes.shape().immediates());
        // SAFETY: promised by the caller: one user for each end of each ring.
        let ring = |to, from, ring| unsafe { boxes.ring(to, from, ring) };
        let control = home.control(home_rank);
        ShmPeer {
            output: Producer::new(ring(peer, rank, messages)),
            input: Consumer::new(ring(rank, peer, messages)),
            immediates_out: Producer::new(ring(peer, rank, immediates)),
            immediates_in: Consumer::new(ring(rank, peer, immediates)),
            immediates_kept: RefCell::default(),
            control: NonNull::from(control),
            home: home.clone(),
            home_rank,
            bit,
            is_foreign,
            _boxes: boxes.clone(),
            polls: control.facts.0.polls.load(Ordering::Relaxed) != 0,
            announced: Cell::new(false),
            backlog: RefCell::default(),
            listener: SlotReader::default(),
            direct: Cell::new(None),
            base: control.facts.0.base.load(Ordering::Relaxed),
            view: MappedArena::default(),
        }
    }

    pub(crate) fn send_max(&self) -> usize {
        self.output.send_max()
    }

    #[inline(always)]
    pub(crate) fn control(&self) -> &RankControl {
        // SAFETY: in the segment `home`, which the peer keeps.
        unsafe { self.control.as_ref() }
    }

    #[inline(always)]
    pub(crate) fn doorbell(&self) -> &Doorbell {
        &self.control().doorbell
    }
}
