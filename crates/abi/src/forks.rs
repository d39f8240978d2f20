//! Children that a program forks after MPI_Init.

use crate::state::{ProcessPhase, state};
use crate::{lanes, lock};

/// Prevents calls of a forked child from using objects that the child shares with its parent.
pub fn mind_forks() {
    unsafe extern "C" fn in_child() {
        let state = state();
        for phase in [&state.phase, &state.world_phase] {
            // A child of a resting process is also marked, because the child would leave the job in its parent's name when it ends.
            if matches!(phase.get(), ProcessPhase::Running | ProcessPhase::Resting) {
                phase.set(ProcessPhase::Forked);
            }
        }
        // Another thread of the parent may have held the lock, but the child has only one thread.
        lock::unshare();
        lanes::end();
    }
    // SAFETY: `in_child` has the type that `pthread_atfork` takes. It only stores words, which is allowed in a child even if other
    // threads of the parent held locks during the fork.
    unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
}
