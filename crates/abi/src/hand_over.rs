//! Hand-over of the library between the program's thread and the helper ([`weft_fabric::wait::HelperHandle`]). The life of the
//! helper's thread: `helper_thread.rs`.

use crate::progress::{ProgressDesign, ProgressSettings};
use crate::state::state;
use std::cell::Cell;
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;
use weft_fabric::wait::{HelperCounts, HelperHandle, Sleep};

/// The helper of the process, and the place where it sleeps.
pub struct Helping {
    pub helper: HelperHandle,
    pub place: Arc<dyn Sleep>,
    pub thread: Mutex<Option<JoinHandle<()>>>,
    pub progress: ProgressSettings,
}

/// Empty if there is no helper.
pub static HELPING: OnceLock<Helping> = OnceLock::new();

thread_local! {
    /// True on the helper's thread.
    pub static ON_HELPER: Cell<bool> = const { Cell::new(false) };
}

/// Returns the counts of the helper's work so far, or zeros if there is no helper.
pub fn counts() -> HelperCounts {
    HELPING.get().map(|helping| helping.helper.counts()).unwrap_or_default()
}

/// Notes that the program's thread enters the library.
#[inline]
pub fn enter() {
    if let Some(helping) = HELPING.get() {
        helping.helper.enter();
    }
}

/// Notes that the program's thread leaves the library.
#[inline]
pub fn leave() {
    if let Some(helping) = HELPING.get() {
        helping.helper.leave(&*helping.place, wanted, work);
    }
}

/// Notes that a thread leaves the library and will release the lock.
#[inline]
pub fn leave_locked() {
    if let Some(helping) = HELPING.get()
        && wanted()
    {
        helping.helper.leave_locked(&*helping.place, work);
    }
}

/// Notes that the program's thread is about to wait, inside of the library.
#[inline]
pub fn stand_down() {
    if let Some(helping) = HELPING.get()
        && helping.progress.design != ProgressDesign::Locked
    {
        helping.helper.stand_down(&*helping.place);
    }
}

/// Handles a signal on the program's thread. Runs `look` if the thread is outside of the library. `look` returns true if there is
/// more work for the helper.
pub fn interrupted(look: impl FnOnce() -> bool) {
    if let Some(helping) = HELPING.get() {
        helping.helper.interrupt(&*helping.place, look);
    }
}

/// Progresses messages for one round. Returns true if any operation made progress.
pub fn work() -> bool {
    state().engine.get().is_some_and(|engine| engine.help())
}

/// Returns true if anything is outstanding that a helper could progress.
#[inline]
pub fn wanted() -> bool {
    state().engine.get().is_some_and(|engine| engine.awaits_help())
}

/// Ends the job if the calling thread is the helper's thread. Functions of the program must not run on this thread.
pub fn must_not_be_here() {
    if ON_HELPER.get() {
        let what = "a function of the program was about to run on the helper thread, which is an \
                    error in Weft: please report it, and set WEFT_PROGRESS=none meanwhile";
        crate::job_end::die(1, what);
    }
}
