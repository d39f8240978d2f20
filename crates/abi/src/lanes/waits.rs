//! Waits beside lanes: whoever waits progresses everything, and whoever sleeps is woken by every lane.
//!
//! ```text
//!   tests                each LOOK tests without a result: tries the lanes      each 16 * LOOK: all of them
//!   waits in a lane      each LOOK rounds: tries lane 0 and the other lanes     before a sleep: all of them, one after the other
//!   waits in lane 0      each LOOK rounds: tries the lanes                      before a sleep: all of them, and counts as a
//!                                                                               sleeper of each, because it may wait for an
//!                                                                               operation of a lane
//! ```

use super::{MessageLane, exist};
use crate::engine::Engine;
use crate::lock;
use crate::state::state;
use std::cell::Cell;
use weft_fabric::Fabric;
use weft_p2p::PendingOperation;

/// Number of rounds of a wait between two looks at the other lanes.
pub const LOOK: u32 = 64;

/// Number of consecutive tests without a result after which a thread progresses all lanes and yields its processor. This number of
/// tests takes about 30 us.
pub const PATIENCE: u32 = 1024;

/// The manner in which a thread that waits looks at the other lanes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LaneProgress {
    /// Passes over lanes in which another thread is.
    Try,
    /// Waits for the lock of each lane.
    All,
}

/// Progresses the open lanes, except the lane that the caller progresses itself. The caller holds no lane's lock. Returns true if
/// anything moved.
pub fn progress(except: Option<&MessageLane>, how: LaneProgress) -> bool {
    let mut moved = false;
    for lane in
        MessageLane::open().filter(|lane| !except.is_some_and(|own| std::ptr::eq(*lane, own)))
    {
        let entered = match how {
            LaneProgress::Try => lane.try_enter(),
            LaneProgress::All => Some(lane.enter()),
        };
        moved |=
            entered.is_some_and(|lane| lane.state().is_some_and(|lane| lane.engine.progress()));
    }
    moved
}

/// Tries to progress everything but the caller's own lane. The caller holds no lock.
pub fn try_all(own: &MessageLane) {
    progress(Some(own), LaneProgress::Try);
    progress_main(LaneProgress::Try);
}

/// Progresses the lanes except the caller's own after test number `row` of consecutive tests without a result: tries them every
/// [`LOOK`]th time, and progresses all of them every [`PATIENCE`]th time, because a lane that a thread of its own uses without a lock is
/// only progressed so. The caller holds no lane's lock. Returns true if the call was due to progress all of them.
pub fn progress_in_row(own: Option<&MessageLane>, row: u32) -> bool {
    let due = row.is_multiple_of(PATIENCE);
    if row.is_multiple_of(LOOK) && exist() {
        progress(own, if due { LaneProgress::All } else { LaneProgress::Try });
    }
    due
}

/// Progresses lane 0, for a thread that holds no lock. Returns true if anything moved.
pub fn progress_main(how: LaneProgress) -> bool {
    let progress = || state().engine.get().is_some_and(|engine| engine.progress());
    match how {
        LaneProgress::Try => lock::try_locked(progress).unwrap_or(false),
        LaneProgress::All => lock::locked(progress),
    }
}

/// Returns true if no lane keeps messages back. Progresses all lanes.
pub fn idle() -> bool {
    MessageLane::open().all(|lane| {
        lane.hold(|state| {
            state.engine.progress();
            state.engine.endpoint().fabric().idle()
        })
    })
}

/// Returns the sum of a value over all open lanes, without lane 0.
pub fn sum(read: fn(&Engine) -> u64) -> u64 {
    MessageLane::open().map(|lane| lane.hold(|state| read(&state.engine))).sum()
}

/// Lists the operations under way in all lanes, at most `limit` of each.
pub fn pending(limit: usize) -> Vec<PendingOperation> {
    let of = |lane: &'static MessageLane| lane.hold(|state| state.engine.endpoint().pending(limit));
    MessageLane::open().flat_map(of).collect()
}

/// A thread that sleeps, and is counted as a sleeper of these lanes.
#[derive(Default)]
pub struct LaneNap(Cell<u32>);

impl LaneNap {
    /// Counts the calling thread, which holds the main lock, as a sleeper of all open lanes, and progresses them. Returns true if
    /// anything moved.
    pub fn begin(&self) -> bool {
        let lanes = MessageLane::open_set();
        self.0.set(lanes);
        let mut moved = false;
        MessageLane::in_set(lanes).for_each(|lane| {
            lane.hold(|state| {
                state.engine.begin_nap();
                moved |= state.engine.progress();
            });
        });
        moved
    }

    /// Ends what [`LaneNap::begin`] has begun, if it was called.
    pub fn end(&self) {
        let end = |lane: &'static MessageLane| lane.hold(|state| state.engine.end_nap());
        MessageLane::in_set(self.0.take()).for_each(end);
    }
}

/// Runs a part of a wait in lane 0 while other threads may enter, and every [`LOOK`] rounds tries the lanes. The caller holds no lock.
pub fn try_sometimes(rounds: &Cell<u32>) {
    let round = rounds.get().wrapping_add(1);
    rounds.set(round);
    if round.is_multiple_of(LOOK) {
        progress(None, LaneProgress::Try);
    }
}
