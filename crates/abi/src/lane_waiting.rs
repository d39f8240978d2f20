//! The wait of a call that holds a lane's lock alone.

use crate::lanes::{
    LOOK, LaneProgress, MessageLane, crowded, progress, progress_main, take_turns, try_all,
};
use crate::lock;
use crate::waiting::{WaitingCall, publish};
use std::cell::Cell;
use weft_process::{WaitHooks, WaitRecord};

/// The wait of a call that holds a lane's lock alone.
pub struct LaneWaiting {
    lane: &'static MessageLane,
    call: WaitingCall,
    rounds: Cell<u32>,
}

impl LaneWaiting {
    /// Creates a wait that has not begun.
    #[inline(always)]
    pub fn new(lane: &'static MessageLane, name: &'static str) -> LaneWaiting {
        LaneWaiting { lane, call: WaitingCall::new(name), rounds: Cell::new(0) }
    }

    /// Runs `f` with the lane's lock released.
    fn outside<R>(&self, f: impl FnOnce() -> R) -> R {
        /// Guard that takes the lane's lock again at the end of a scope.
        struct Again(&'static MessageLane);
        impl Drop for Again {
            fn drop(&mut self) {
                self.0.lock.take();
            }
        }
        // SAFETY: the call that waits is inside, and uses the lane's state again only when the guard has taken the lock.
        unsafe { self.lane.lock.leave() };
        let _again = Again(self.lane);
        f()
    }
}

impl WaitHooks for LaneWaiting {
    fn unlocked(&self, f: &mut dyn FnMut()) {
        let round = self.rounds.get().wrapping_add(1);
        self.rounds.set(round);
        self.outside(|| {
            f();
            if round.is_multiple_of(LOOK) {
                try_all(self.lane);
            }
            take_turns(round);
        });
    }

    fn undisturbed(&self) -> bool {
        self.lane.lock.is_alone() && !crowded()
    }

    fn before_nap(&self) -> bool {
        self.outside(|| {
            progress(Some(self.lane), LaneProgress::All) | progress_main(LaneProgress::All)
        })
    }

    fn before_sleep(&self, record: WaitRecord) {
        self.outside(|| lock::locked(|| publish(&self.call, record)));
    }

    fn after_wait(&self) {
        if self.call.has_slept() {
            self.outside(|| lock::locked(|| self.call.after_wait()));
        }
    }
}
