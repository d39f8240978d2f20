//! The helper thread of a process: asleep in the kernel until a solicited message arrives while the
//! program computes ([`weft_fabric::wait::Helper`], [`Engine::help`]).
//!
//! It starts when something asks for it (`WEFT_HELPER`), ends in MPI_Finalize, and takes no signals. A
//! forked child has none and needs none: its calls do nothing.
//!
//! [`Engine::help`]: weft_process::Engine::help

use crate::lock;
use crate::state::state;
use std::cell::Cell;
use std::io;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread::JoinHandle;
use weft_fabric::Fabric;
use weft_fabric::wait::{Helper, HelperCounts, Sleep};

struct Helping {
    helper: Helper,
    place: Arc<dyn Sleep>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

static HELPING: OnceLock<Helping> = OnceLock::new();

thread_local! {
    static ON_HELPER: Cell<bool> = const { Cell::new(false) };
}

/// What the helper has done so far; nothing if there is none.
pub fn counts() -> HelperCounts {
    HELPING.get().map(|helping| helping.helper.counts()).unwrap_or_default()
}

/// The program's thread enters the library.
#[inline]
pub fn enter() {
    if let Some(helping) = HELPING.get() {
        helping.helper.enter();
    }
}

/// The program's thread leaves the library.
#[inline]
pub fn leave() {
    if let Some(helping) = HELPING.get() {
        helping.helper.leave(&*helping.place, work);
    }
}

/// One round. True if anything moved.
fn work() -> bool {
    state().engine.get().is_some_and(|engine| engine.help())
}

/// Starts the helper; the calling thread is inside the library. A second call does nothing.
pub fn start() -> io::Result<()> {
    let Some(engine) = state().engine.get() else { return Ok(()) };
    let place = engine.endpoint().fabric().helper();
    let helping = Helping { helper: Helper::new(), place, thread: Mutex::new(None) };
    if HELPING.set(helping).is_err() {
        return Ok(());
    }
    let multiple = lock::shared();
    if !multiple {
        // The call under way entered when there was no helper, and will leave it.
        enter();
        lock::with_helper();
    }
    let life = move || {
        ON_HELPER.set(true);
        if catch_unwind(AssertUnwindSafe(|| live(multiple))).is_err() {
            // What went wrong has been said; the library's state is not to be trusted.
            std::process::abort();
        }
    };
    let builder = std::thread::Builder::new().name("weft-helper".to_owned());
    let thread = without_signals(|| builder.spawn(life));
    if thread.is_err() {
        lock::without_helper();
    }
    if let Some(helping) = HELPING.get() {
        *helping.thread.lock().unwrap_or_else(|e| e.into_inner()) = Some(thread?);
    }
    Ok(())
}

fn live(multiple: bool) {
    let Some(Helping { helper, place, .. }) = HELPING.get() else { return };
    if multiple {
        helper.run_locked(&**place, |work| lock::locked(work), work);
    } else {
        helper.run(&**place, work);
    }
}

/// Ends the helper, if there is one; the calling thread is inside the library.
pub fn stop() {
    let Some(helping) = HELPING.get() else { return };
    let thread = helping.thread.lock().unwrap_or_else(|e| e.into_inner()).take();
    let Some(thread) = thread else { return };
    helping.helper.stop(&*helping.place);
    // It may be waiting for the lock.
    let joined = lock::let_others(|| thread.join());
    lock::without_helper();
    debug_assert!(joined.is_ok(), "a panic in the helper ends the process");
}

/// Ends the job if this is the helper's thread, where no function of the program may run.
pub fn must_not_be_here() {
    if ON_HELPER.get() {
        let what = "a function of the program was about to run on the helper thread, which is an \
                    error in Weft: please report it, and set WEFT_HELPER=0 meanwhile";
        crate::chapters::init::die(1, what);
    }
}

/// Threads that `f` makes take no signals.
fn without_signals<R>(f: impl FnOnce() -> R) -> R {
    let (mut all, mut before) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    // SAFETY: both sets are written before they are read: `sigfillset` and `pthread_sigmask` cannot
    // fail with valid arguments.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
    }
    let result = f();
    // SAFETY: `before` was filled in above.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), std::ptr::null_mut()) };
    result
}
