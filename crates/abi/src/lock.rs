//! Who is in the library: the one lock, and the hand-over between the program's thread and the helper
//! where there is no lock: under `MPI_THREAD_SINGLE`. Under the levels between that and
//! `MPI_THREAD_MULTIPLE`, and before anything is initialised, any thread may still handle infos and error
//! texts or begin a session, while another one is in any call (MPI 5.0, sections 11.4.1 and 11.6).
//!
//! Contract: every entry point is inside from start to end, except while it runs the program's
//! functions (operators, error handlers, attribute callbacks), where [`unlocked`] lets go: a callback
//! may need a lock of the program's (Python's interpreter lock) whose holder is inside MPI, and it may
//! call MPI itself. So no borrow of the library's state lives across [`unlocked`].
//!
//! While a call waits it lets the lock go ([`let_others`]), but stays inside for the helper: it moves
//! everything on itself, and the helper has nothing to do.

use crate::helper;
use parking_lot::RawMutex;
use parking_lot::lock_api::RawMutex as _;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use weft_fabric::wait::BiasedLock;

static LOCK: RawMutex = RawMutex::INIT;
/// The thread that initialised MPI goes without the lock, until another one comes.
static BIAS: BiasedLock = BiasedLock::new();
/// Threads of the program that wait, where there may be several.
static WAITING: AtomicU32 = AtomicU32::new(0);
static MODE: AtomicU8 = AtomicU8::new(MULTIPLE);

/// One thread by the program's promise, and no helper.
const ALONE: u8 = 0;
/// The same with a helper: entry points enter and leave by the hand-over.
const HELPED: u8 = 1;
/// Everybody takes the lock, the helper too.
const MULTIPLE: u8 = 2;

/// In an entry point's note of how it entered: as [`MULTIPLE`], before the lock.
const BEFORE: u8 = 3;

/// Held while an entry point runs.
pub struct Entered {
    /// How it entered.
    how: u8,
}

/// Enters the library.
#[inline(always)]
pub fn enter() -> Entered {
    let mode = MODE.load(Ordering::Relaxed);
    if mode == ALONE {
        return Entered { how: ALONE };
    }
    if mode == MULTIPLE && BIAS.try_enter(me()) {
        return Entered { how: BEFORE };
    }
    go_in(mode);
    Entered { how: mode }
}

/// One thread calls, by the program's promise, and there is no helper: nobody need be kept out of a call
/// that neither waits nor calls back.
#[inline(always)]
pub fn is_alone() -> bool {
    MODE.load(Ordering::Relaxed) == ALONE
}

/// Enters the library before the lock for such a call: where one thread calls as far as is known, and there is no helper.
#[inline(always)]
pub fn enter_before() -> Option<Before> {
    let shared = MODE.load(Ordering::Relaxed) == MULTIPLE;
    (shared && BIAS.try_enter(me())).then_some(Before)
}

/// Held during such a call.
pub struct Before;

impl Drop for Before {
    #[inline(always)]
    fn drop(&mut self) {
        BIAS.leave_before();
    }
}

impl Entered {
    /// Whether neither [`is_alone`] nor [`enter_before`] was so.
    #[inline(always)]
    pub fn otherwise(&self) -> bool {
        matches!(self.how, HELPED | MULTIPLE)
    }
}

impl Drop for Entered {
    #[inline(always)]
    fn drop(&mut self) {
        if self.how == BEFORE {
            // Another thread may have come while this call let others in.
            if BIAS.leave() {
                go_out_locked();
            }
            return;
        }
        // A helper may have begun or ended since this call entered, or the lock come into use.
        let mode = MODE.load(Ordering::Relaxed);
        if self.how | mode != ALONE {
            go_out(self.how == MULTIPLE, mode);
        }
    }
}

#[cold]
fn go_out_locked() {
    helper::leave_locked();
    // SAFETY: whom the bias does not let out has taken the lock.
    unsafe { LOCK.unlock() }
}

// Apart from the entry points, most of which are left with no helper and no lock.
#[inline(never)]
fn go_out(locked: bool, mode: u8) {
    if mode == HELPED {
        helper::leave();
    }
    if locked {
        helper::leave_locked();
        // SAFETY: the entry point that leaves has taken it.
        unsafe { give_up() }
    }
}

/// Takes the lock, or goes in before it.
#[inline(always)]
fn take() {
    if !BIAS.try_enter(me()) {
        LOCK.lock();
        BIAS.revoke();
    }
}

/// Takes it again for a wait, which is in no hurry: who has the lock meanwhile moves on what this thread waits for, too, so it
/// gives its processor up before it stands in the queue.
fn take_to_look() {
    const YIELDS: u32 = 16;
    if BIAS.try_enter(me()) {
        return;
    }
    if !(0..YIELDS).any(|_| LOCK.try_lock() || (std::thread::yield_now(), false).1) {
        LOCK.lock();
    }
    BIAS.revoke();
}

/// # Safety
/// The thread has taken it.
#[inline(always)]
unsafe fn give_up() {
    if BIAS.leave() {
        // SAFETY: by contract.
        unsafe { LOCK.unlock() }
    }
}

/// A name that no other thread has: where what is its own lies.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
#[inline(always)]
fn me() -> usize {
    let own: usize;
    // SAFETY: reads the word that the ABI of threads has there, which is its own address.
    unsafe {
        std::arch::asm!("mov {}, fs:[0]", out(reg) own, options(nostack, readonly, preserves_flags));
    }
    own
}

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
#[inline(always)]
fn me() -> usize {
    // SAFETY: a function without arguments, which cannot fail.
    unsafe { libc::pthread_self() as usize }
}

/// Several threads may call, and the calling one, which is in, is likely to be the only one that does.
pub fn favour() {
    if shared() && BIAS.favour(me()) {
        // SAFETY: the entry point that calls this has locked it, and is in by the bias from here on.
        unsafe { LOCK.unlock() }
    }
}

/// No other thread has called for as long as that matters, so that to be quick one need not let others in.
#[inline]
pub fn undisturbed() -> bool {
    !shared() || BIAS.is_alone()
}

#[inline(never)]
fn go_in(mode: u8) {
    match mode {
        HELPED => helper::enter(),
        MULTIPLE => take(),
        _ => {}
    }
}

/// From here on several threads may call at once, if there is no helper that goes by the hand-over.
/// Where they may not yet, no other thread calls.
pub fn share() -> bool {
    let changed = MODE.compare_exchange(ALONE, MULTIPLE, Ordering::Relaxed, Ordering::Relaxed);
    changed.is_ok() || shared()
}

/// From here on one thread calls, by the program's promise: MPI was initialised with
/// `MPI_THREAD_SINGLE`.
pub fn alone() {
    MODE.store(ALONE, Ordering::Relaxed);
}

/// The process has one thread again: it is a forked child.
pub fn unshare() {
    WAITING.store(0, Ordering::Relaxed);
    MODE.store(ALONE, Ordering::Relaxed);
}

/// Whether several threads of the program may call at once.
pub fn shared() -> bool {
    MODE.load(Ordering::Relaxed) == MULTIPLE
}

/// From here on there is a helper; the calling thread is inside. Not where there is the lock.
pub fn with_helper() {
    MODE.store(HELPED, Ordering::Relaxed);
}

/// There is no helper any more.
pub fn without_helper() {
    let _ = MODE.compare_exchange(HELPED, ALONE, Ordering::Relaxed, Ordering::Relaxed);
}

/// Runs `f` under the lock: for the helper.
pub fn locked<R>(f: impl FnOnce() -> R) -> R {
    /// Gives it up at the end of a scope.
    struct Locked;
    impl Drop for Locked {
        fn drop(&mut self) {
            // SAFETY: taken below.
            unsafe { give_up() }
        }
    }
    take();
    let _locked = Locked;
    f()
}

/// Enters again at the end of a scope.
struct Again(u8);

impl Drop for Again {
    fn drop(&mut self) {
        go_in(self.0);
    }
}

/// Runs `f`, which is or may call a function of the program, outside of the library. Not on the
/// helper's thread: that ends the job.
pub fn unlocked<R>(f: impl FnOnce() -> R) -> R {
    let mode = MODE.load(Ordering::Relaxed);
    if mode != ALONE {
        helper::must_not_be_here();
    }
    // The thread that initialises entered before sharing began, but has no callback to run.
    match mode {
        HELPED => helper::leave(),
        // SAFETY: entry points hold the lock while it is shared.
        MULTIPLE => unsafe { give_up() },
        _ => {}
    }
    let _again = Again(mode);
    f()
}

/// The call is about to wait: the helper need not be rung for meanwhile.
#[inline]
pub fn stand_down() {
    if MODE.load(Ordering::Relaxed) != ALONE {
        helper::stand_down();
    }
}

/// A wait begins; true: it is counted, and [`end_wait`] is to be called.
#[inline]
pub fn begin_wait() -> bool {
    let counted = shared();
    if counted {
        WAITING.fetch_add(1, Ordering::Relaxed);
    }
    counted
}

/// The wait that [`begin_wait`] counted is over.
pub fn end_wait() {
    WAITING.fetch_sub(1, Ordering::Relaxed);
}

/// Runs `f`, a part of a wait, while other threads of the program may enter. The helper may not.
pub fn let_others<R>(f: impl FnOnce() -> R) -> R {
    if !shared() {
        return f();
    }
    /// Enters again at the end of a scope.
    struct Look;
    impl Drop for Look {
        fn drop(&mut self) {
            take_to_look();
        }
    }
    // SAFETY: entry points hold the lock while it is shared.
    unsafe { give_up() };
    let _again = Look;
    let result = f();
    // Who waits beside others of its process looks for all of them, and one at a time is enough: a processor that is looked
    // from without end may be the one that another of them needs.
    if WAITING.load(Ordering::Relaxed) > 1 {
        std::thread::yield_now();
    }
    result
}
