//! What this rank keeps for each other one: both ends of their boxes, what is kept back, and where the arena is mapped.

use crate::control::Control;
use crate::multicast::Listener;
use crate::ring::{Consumer, INLINE, Producer};
use crate::segment::Segment;
use crate::sync::Ordering;
use crate::view::View;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::ptr::NonNull;
use weft_fabric::wait::Doorbell;
use weft_fabric::{Completion, Head, Sge};

/// Where the next look into all boxes begins; and the box that had the last message, and how many more it may have before.
#[derive(Default)]
pub struct Turn {
    pub(crate) next: Cell<usize>,
    pub(crate) last: Cell<usize>,
    pub(crate) left: Cell<u32>,
}

/// What this rank knows of another one (or of itself).
pub struct Peer {
    /// The box from here to there, and back.
    pub(crate) output: Producer,
    pub(crate) input: Consumer,
    pub(crate) control: NonNull<Control>,
    /// The peer sleeps in poll(2).
    pub(crate) polls: bool,
    /// The peer knows that it must look into our box.
    pub(crate) announced: Cell<bool>,
    pub(crate) backlog: RefCell<VecDeque<Kept>>,
    pub(crate) immediates_out: Producer,
    pub(crate) immediates_in: Consumer,
    /// Immediates for which there was no room.
    pub(crate) immediates_kept: RefCell<VecDeque<u32>>,
    pub(crate) listener: Listener,
    /// Whether cross-memory attach works; unknown before the first try.
    pub(crate) direct: Cell<Option<bool>>,
    /// Where the peer has mapped its arena.
    pub(crate) base: u64,
    /// Where that is here.
    pub(crate) view: View,
}

/// A message for which there was no room.
pub(crate) struct Kept {
    pub(crate) head: Head,
    pub(crate) payload: Payload,
}

pub(crate) enum Payload {
    Held(Sge, Completion),
    Copied([u8; INLINE], usize),
}

impl Peer {
    /// # Safety
    /// Once for each `(rank, peer)`, and dropped before the segment is.
    pub unsafe fn new(segment: &Segment, rank: usize, peer: usize) -> Peer {
        let (messages, immediates) = (segment.shape().messages(), segment.shape().immediates());
        // SAFETY: promised by the caller: one user for each end of each ring.
        let ring = |to, from, ring| unsafe { segment.ring(to, from, ring) };
        Peer {
            output: Producer::new(ring(peer, rank, messages)),
            input: Consumer::new(ring(rank, peer, messages)),
            immediates_out: Producer::new(ring(peer, rank, immediates)),
            immediates_in: Consumer::new(ring(rank, peer, immediates)),
            immediates_kept: RefCell::default(),
            control: NonNull::from(segment.control(peer)),
            polls: segment.control(peer).facts.0.polls.load(Ordering::Relaxed) != 0,
            announced: Cell::new(false),
            backlog: RefCell::default(),
            listener: Listener::default(),
            direct: Cell::new(None),
            base: segment.control(peer).facts.0.base.load(Ordering::Relaxed),
            view: View::default(),
        }
    }

    pub(crate) fn send_max(&self) -> usize {
        self.output.send_max()
    }

    #[inline(always)]
    pub(crate) fn control(&self) -> &Control {
        // SAFETY: in the segment, which outlives the peer.
        unsafe { self.control.as_ref() }
    }

    #[inline(always)]
    pub(crate) fn doorbell(&self) -> &Doorbell {
        &self.control().doorbell
    }
}
