//! State that this rank keeps for each other rank: its ends of the two boxes, messages that are kept back, and the mapped arena.

use crate::cma::{self, CopyDirection};
use crate::control::RankControl;
use crate::multicast::SlotReader;
use crate::ring::{Consumer, Producer};
use crate::segment::Segment;
use crate::sync::Ordering;
use crate::view::MappedArena;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::ptr::NonNull;
use std::sync::Arc;
use weft_fabric::wait::Doorbell;
use weft_fabric::{Completion, Head, Sge};

/// The facts that this rank knows of another rank (or of itself).
pub struct ShmPeer {
    /// The box from this rank to the peer, and the box back.
    pub(crate) output: Producer,
    pub(crate) input: Consumer,
    pub(crate) control: NonNull<RankControl>,
    /// The control block with the doorbell where the peer sleeps, which is the same for all lanes.
    bell: NonNull<RankControl>,
    /// The segment of the peer's own job.
    pub(crate) home: Arc<Segment>,
    /// The peer's rank in its own job.
    pub(crate) home_rank: usize,
    /// Number of the bit in the peer's `active` words by which this rank says that it has sent.
    pub(crate) bit: usize,
    /// True if the peer belongs to another job.
    pub(crate) is_foreign: bool,
    /// Keeps the boxes mapped.
    _boxes: Arc<Segment>,
    /// True if the peer sleeps in poll(2).
    pub(crate) polls: bool,
    /// True if this rank has set bit number `bit` in the peer's `active` words, so that the peer looks into this rank's box.
    pub(crate) announced: Cell<bool>,
    pub(crate) backlog: RefCell<VecDeque<QueuedSend>>,
    pub(crate) immediates_out: Producer,
    pub(crate) immediates_in: Consumer,
    /// Immediates for which there was no room.
    pub(crate) immediates_kept: RefCell<VecDeque<u32>>,
    pub(crate) listener: SlotReader,
    /// True if cross-memory attach works; `None` before the first try.
    pub(crate) direct: Cell<Option<bool>>,
    /// The address at which the peer has mapped its arena.
    pub(crate) base: u64,
    /// The peer's arena as this process has mapped it.
    pub(crate) view: MappedArena,
}

/// A message for which there was no room.
pub(crate) struct QueuedSend {
    pub(crate) head: Head,
    pub(crate) payload: QueuedPayload,
}

/// The payload of a message that is kept back. Most such messages are acknowledgements without a payload, and there may be very
/// many for a slow peer. So an entry has no space for the bytes of a payload.
pub(crate) enum QueuedPayload {
    Held(Sge, Completion),
    Copied(Box<[u8]>),
}

/// Segments and numbers of a peer: for its boxes, and for its own control block and arena.
pub(crate) struct Situation<'s> {
    /// The segment with the boxes of both ranks.
    pub boxes: &'s Arc<Segment>,
    /// The numbers of this rank and of the peer in the segment `boxes`.
    pub rank: usize,
    pub peer: usize,
    /// The peer's own segment, and the peer's rank in it.
    pub home: &'s Arc<Segment>,
    pub home_rank: usize,
    /// The number under which the peer knows this rank.
    pub bit: usize,
    pub is_foreign: bool,
}

impl ShmPeer {
    /// # Safety
    /// Called at most once for each pair in a segment.
    pub unsafe fn new(at: Situation<'_>) -> ShmPeer {
        let Situation { boxes, rank, peer, home, home_rank, bit, is_foreign } = at;
        let (messages, immediates) = (boxes.shape().messages(), boxes.shape().immediates());
        // SAFETY: the caller promised that this is the only call for the pair, so each end of each ring has one user. `_boxes`
        // keeps the segment.
        let ring = |to, from, ring| unsafe { boxes.ring(to, from, ring) };
        let control = home.control(home_rank);
        ShmPeer {
            output: Producer::new(ring(peer, rank, messages)),
            input: Consumer::new(ring(rank, peer, messages)),
            immediates_out: Producer::new(ring(peer, rank, immediates)),
            immediates_in: Consumer::new(ring(rank, peer, immediates)),
            immediates_kept: RefCell::default(),
            control: NonNull::from(control),
            bell: NonNull::from(home.of_process().control(home_rank)),
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

    /// Returns the peer's process number in the name space of this process.
    pub(crate) fn pid(&self) -> i32 {
        self.control().facts.0.pid.load(Ordering::Relaxed) as i32
    }

    /// Reads the word at the peer's `probe_at`. `peer` is the number of the peer. Returns true if the system permits the read and
    /// the word has the content that the peer has announced. Then the peer's process number also names the peer in the name space
    /// of this process.
    pub(crate) fn probe(&self, peer: usize) -> bool {
        let facts = &self.control().facts.0;
        let mut found = 0u64;
        // SAFETY: `found` has 8 bytes and lives until the call returns.
        let local = unsafe { Sge::new((&raw mut found).cast(), 8) };
        let at = facts.probe_at.load(Ordering::Relaxed);
        cma::transfer(CopyDirection::Read, self.pid(), peer, local, at).is_ok()
            && found == facts.probe.load(Ordering::Relaxed)
    }

    #[inline(always)]
    pub(crate) fn control(&self) -> &RankControl {
        // SAFETY: the control block lies in the segment `home`, which this value keeps mapped. It consists of atomics.
        unsafe { self.control.as_ref() }
    }

    #[inline(always)]
    pub(crate) fn doorbell(&self) -> &Doorbell {
        // SAFETY: the control block lies in the segment of the first lane, which `home` keeps mapped. It consists of atomics.
        unsafe { &self.bell.as_ref().doorbell }
    }
}
