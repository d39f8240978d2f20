//! Helper thread of a process. While the program computes, the thread sleeps in the kernel until a solicited message arrives
//! ([`weft_fabric::wait::HelperHandle`], [`Engine::help`]).
//!
//! The thread starts when an operation asks for a helper, or if `WEFT_PROGRESS` asks for it ([`crate::progress`]). It ends in
//! MPI_Finalize, and takes no signals. A forked child has no helper and needs no helper, because its calls do nothing.
//!
//! [`Engine::help`]: weft_process::Engine::help

use crate::hand_over::{self, HELPING, Helping, ON_HELPER, wanted, work};
use crate::lock;
use crate::progress::{self, ProgressDesign, ProgressSettings};
use crate::signal::{self, SignalRefusal};
use crate::state::state;
use std::cell::Cell;
use std::io;
use std::mem::MaybeUninit;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::time::{Duration, Instant};
use weft_fabric::FabricExt;
use weft_fabric::wait::{HelperHandle, HelperTurn, Sleep};

/// Starts the helper. The calling thread is inside the library. A second call does nothing.
pub fn start(progress: ProgressSettings) -> io::Result<()> {
    let Some(engine) = state().engine.get() else { return Ok(()) };
    let fabric = engine.endpoint().fabric();
    let mut progress = progress;
    if progress.design == ProgressDesign::Locked {
        lock::share();
    }
    let multiple = lock::shared();
    if progress.design == ProgressDesign::Signal {
        let signal = progress.signal;
        let trouble = if multiple {
            Some("WEFT_PROGRESS=signal: the program may have several threads: a helper thread under the lock \
                  moves messages instead".to_owned())
        } else if !fabric.can_peek() {
            Some("WEFT_PROGRESS=signal: what connects the ranks cannot be used in a signal handler: the helper \
                  thread hands over instead".to_owned())
        } else {
            signal::begin(signal).err().map(|trouble| trouble.text(signal))
        };
        if let Some(trouble) = trouble {
            progress::say(&trouble);
            progress.design = ProgressDesign::Handover;
        }
    }
    if !progress.ends {
        fabric.let_helper_sleep_at_ends();
    }
    let place = fabric.helper();
    let helping =
        Helping { helper: HelperHandle::new(), place, thread: Mutex::new(None), progress };
    if HELPING.set(helping).is_err() {
        return Ok(());
    }
    if !multiple {
        // The present call entered before there was a helper, so its entry was not recorded. The entry is recorded now, because the
        // end of the call will be recorded.
        hand_over::enter();
        lock::with_helper();
    }
    let life = move || {
        ON_HELPER.set(true);
        if catch_unwind(AssertUnwindSafe(if multiple { live_locked } else { live })).is_err() {
            // After the panic, which has been reported, the library's state may be inconsistent.
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

/// Runs the helper of a program with several threads.
fn live_locked() {
    let Some(Helping { helper, place, progress, .. }) = HELPING.get() else { return };
    // In the locked design the helper works at every wake-up, even if no operation needs help (Kumar et al. 2008, section 3).
    let locked = progress.design == ProgressDesign::Locked;
    helper.run_locked(&**place, |f| lock::locked(f), || locked || wanted(), work);
}

/// Runs the helper of a program with one thread.
fn live() {
    let Some(Helping { helper, place, progress, .. }) = HELPING.get() else { return };
    match progress.design {
        ProgressDesign::Signal => live_by_signals(helper, &**place, progress.signal),
        _ => helper.run(&**place, work),
    }
}

/// Signals the program's thread for work that the signal handler can do, and does all other work itself.
fn live_by_signals(helper: &HelperHandle, place: &dyn Sleep, number: i32) {
    let hopeless = Cell::new(false);
    let turn = || {
        let more = state().engine.get().is_some_and(|engine| {
            engine.endpoint().take_behind() || engine.awaits_more_than_a_handler()
        });
        if more || hopeless.get() { HelperTurn::Work } else { HelperTurn::Signal }
    };
    let interrupt = || {
        let before = signal::handled();
        let mut trouble = signal::is_taken(number).then_some(SignalRefusal::Taken);
        if trouble.is_none() {
            signal::send(number);
            // A thread that is not scheduled handles the signal later. A thread that blocks the signal never handles it.
            let since = Instant::now();
            while signal::handled() == before && since.elapsed() < signal::PATIENCE {
                std::thread::sleep(Duration::from_micros(200));
            }
            let blocked = signal::handled() == before && signal::is_blocked_there(number);
            trouble = blocked.then_some(SignalRefusal::Blocked);
        }
        if let Some(trouble) = trouble {
            progress::say(&trouble.text(number));
            hopeless.set(true);
            // The messages that have arrived are not handled yet, so the helper is woken to examine them again.
            place.ring();
        }
    };
    helper.run_by(place, turn, work, interrupt);
    signal::end(number);
}

/// Ends the helper, if there is one. The calling thread is inside the library.
pub fn stop() {
    let Some(helping) = HELPING.get() else { return };
    let thread = helping.thread.lock().unwrap_or_else(|e| e.into_inner()).take();
    let Some(thread) = thread else { return };
    helping.helper.stop(&*helping.place);
    // The helper may be waiting for the lock, so the lock is released meanwhile.
    let joined = lock::let_others(|| thread.join());
    lock::without_helper();
    debug_assert!(joined.is_ok(), "a panic in the helper ends the process");
}

/// Runs `f`. Threads that `f` creates block all signals.
fn without_signals<R>(f: impl FnOnce() -> R) -> R {
    let (mut all, mut before) = (MaybeUninit::uninit(), MaybeUninit::uninit());
    // SAFETY: both sets are written before they are read: `sigfillset` and `pthread_sigmask` cannot
    // fail with valid arguments.
    unsafe {
        libc::sigfillset(all.as_mut_ptr());
        libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr());
    }
    let result = f();
    // SAFETY: `before` holds the mask that the first `pthread_sigmask` has written.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), std::ptr::null_mut()) };
    result
}
