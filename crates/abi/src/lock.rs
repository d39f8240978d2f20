//! The one lock, taken only under `MPI_THREAD_MULTIPLE`.
//!
//! Contract: every entry point holds it from start to end, except while it waits, and while it runs
//! the program's functions (operators, error handlers, attribute callbacks), where [`unlocked`] lets
//! it go: a callback may need a lock of the program's (Python's interpreter lock) whose holder is
//! inside MPI. So no borrow of the library's state lives across [`unlocked`].

use parking_lot::RawMutex;
use parking_lot::lock_api::RawMutex as _;
use std::sync::atomic::{AtomicBool, Ordering};

static LOCK: RawMutex = RawMutex::INIT;
static MULTIPLE: AtomicBool = AtomicBool::new(false);

/// Held while an entry point runs.
pub struct Entered(bool);

/// Enters the library.
#[inline(always)]
pub fn enter() -> Entered {
    let multiple = MULTIPLE.load(Ordering::Relaxed);
    if multiple {
        LOCK.lock();
    }
    Entered(multiple)
}

impl Drop for Entered {
    #[inline(always)]
    fn drop(&mut self) {
        if self.0 {
            // SAFETY: `enter` locked it for this guard.
            unsafe { LOCK.unlock() }
        }
    }
}

/// From here on several threads may call at once. Called by the entry point that initialises,
/// which itself entered without the lock, before any other thread may call.
pub fn share() {
    MULTIPLE.store(true, Ordering::Relaxed);
}

/// The process has one thread again: it is a forked child.
pub fn unshare() {
    MULTIPLE.store(false, Ordering::Relaxed);
}

/// Whether several threads may call at once.
pub fn shared() -> bool {
    MULTIPLE.load(Ordering::Relaxed)
}

/// Runs `f` outside the lock that this thread holds.
pub fn unlocked<R>(f: impl FnOnce() -> R) -> R {
    struct Again(bool);
    impl Drop for Again {
        fn drop(&mut self) {
            if self.0 {
                LOCK.lock();
            }
        }
    }
    // The thread that initialises entered before sharing began, but has no callback to run.
    let again = Again(shared());
    if again.0 {
        // SAFETY: entry points hold the lock while it is shared.
        unsafe { LOCK.unlock() }
    }
    f()
}
