//! Opening of a further lane, which [`crate::lanes`] has reserved.

use crate::backlogs::BackloggedPeers;
use crate::datagrams::ShmDatagrams;
use crate::first_fault::FirstFault;
use crate::lanes::{ReservedLane, ReservedLanes};
use crate::own_arena::OwnArena;
use crate::peers::ShmPeers;
use crate::poll_bell::PollBells;
use crate::poll_turn::PollTurn;
use crate::shm::Shm;
use std::cell::{Cell, OnceCell};
use std::rc::Rc;
use std::sync::Arc;
use weft_fabric::Copies;

impl Shm {
    /// Returns the number of lanes that all ranks can use, including this lane, which has number 0.
    pub fn lanes(&self) -> usize {
        self.lanes.count()
    }

    /// Opens a further lane. Returns `None` if all ranks cannot use the lane, or if it was opened before.
    pub fn open_lane(&self, lane: usize) -> Option<Shm> {
        let ReservedLane { segment, own, probe } = self.lanes.take(lane)?;
        let arena = OwnArena::new(segment.clone(), self.rank, &own);
        // SAFETY: each rank takes each lane once, so each end of each box has only one user. The peers keep `segment`.
        let peers = unsafe { ShmPeers::of_job(&segment, self.rank, own) };
        Some(Shm {
            rank: self.rank,
            counters: Rc::default(),
            copies: Copies::new(Arc::new(self.copies.model().clone())),
            same_arithmetic: self.same_arithmetic,
            groups: self.groups.clone(),
            peers,
            turn: PollTurn::default(),
            backlogs: BackloggedPeers::default(),
            immediates_seen: Cell::new(0),
            datagrams: ShmDatagrams::default(),
            arena,
            options: self.options.clone(),
            fault: FirstFault::default(),
            bells: PollBells::default(),
            watch: OnceCell::new(),
            lanes: ReservedLanes::none(),
            _probe: probe,
            segment,
        })
    }
}
