//! Lanes: connections of the ranks of a job beside each other, for threads that share nothing.
//!
//! ```text
//!   the segment:  lane 0: header │ control │ slots │ boxes ║ lane 1: header │ control │ slots │ boxes ║ ...
//!   the arenas:   lane 0: arena[rank]                      ║ lane 1: arena[rank]                      ║ ...
//! ```
//! A `Shm` is one lane. Another lane is a further `Shm` of the same ranks, with counters, boxes and an arena of its own. So two
//! threads that use different lanes share no lock and write no common cache line. In common are only the doorbell of the rank, which
//! peers ring for a message on any lane, and the account of committed memory.
//!
//! Contract. Before the closing fence of the connection, each rank maps its part of each lane, introduces itself there and publishes
//! the number of lanes that it can use. After the fence all ranks know the same minimum. A rank opens a lane when it likes: until
//! then, messages wait in the boxes. Each lane is opened once. Processes of other jobs, datagrams and the helper use lane 0 alone.

use crate::connect;
use crate::control::RankControl;
use crate::segment::{Segment, random};
use crate::sync::{AtomicU64, Ordering};
use crate::view::MappedArena;
use std::cell::{Cell, RefCell};
use std::sync::Arc;

/// The further lanes of a rank, which are not open yet.
#[derive(Debug)]
pub(crate) struct ReservedLanes {
    /// By number minus 1; `None` if the lane has been opened.
    lanes: RefCell<Vec<Option<ReservedLane>>>,
    /// Number of lanes that all ranks can use, including lane 0.
    agreed: Cell<usize>,
}

/// A lane in which the rank is introduced, but has no boxes.
#[derive(Debug)]
pub(crate) struct ReservedLane {
    pub segment: Arc<Segment>,
    pub own: MappedArena,
    pub probe: Box<u64>,
}

impl ReservedLane {
    /// Maps a lane, and introduces the rank there. Returns `None` if the system refuses the addresses.
    fn reserve(first: &Arc<Segment>, lane: usize, rank: usize) -> Option<ReservedLane> {
        let segment = Arc::new(first.lane(lane).ok()?);
        let own = MappedArena::of_own(&segment, rank).ok()?;
        let probe = Box::new(random());
        connect::introduce(segment.control(rank), &probe, own.base().as_ptr());
        Some(ReservedLane { segment, own, probe })
    }
}

impl ReservedLanes {
    /// Maps up to `wanted` lanes, including lane 0, and publishes the number. Called before the closing fence.
    pub fn reserve(first: &Arc<Segment>, rank: usize, wanted: usize) -> ReservedLanes {
        let end = wanted.clamp(1, first.shape().lanes);
        let lanes: Vec<_> =
            (1..end).map_while(|lane| ReservedLane::reserve(first, lane, rank)).map(Some).collect();
        let agreed = Cell::new(1 + lanes.len());
        lanes_of(first.control(rank)).store(agreed.get() as u64, Ordering::Release);
        ReservedLanes { lanes: RefCell::new(lanes), agreed }
    }

    /// Returns the further lanes of a lane that is not lane 0.
    pub fn none() -> ReservedLanes {
        ReservedLanes { lanes: RefCell::default(), agreed: Cell::new(1) }
    }

    /// Returns the number of lanes that all ranks can use, including lane 0.
    pub fn count(&self) -> usize {
        self.agreed.get()
    }

    /// Reads the numbers of all ranks. Called after the closing fence.
    pub fn agree(&self, first: &Segment) {
        let of = |rank| lanes_of(first.control(rank)).load(Ordering::Acquire) as usize;
        let least = (0..first.shape().ranks).map(of).min().unwrap_or(1).max(1);
        self.agreed.set(least);
        self.lanes.borrow_mut().truncate(least - 1);
    }

    /// Returns a lane that was reserved. Each lane is returned once.
    pub fn take(&self, lane: usize) -> Option<ReservedLane> {
        self.lanes.borrow_mut().get_mut(lane.checked_sub(1)?)?.take()
    }
}

/// Returns the number of lanes that a rank has published.
fn lanes_of(control: &RankControl) -> &AtomicU64 {
    &control.facts.0.lanes
}
