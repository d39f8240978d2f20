//! Entry to the library. Under `MPI_THREAD_SINGLE` there is no lock, only the hand-over between the program's thread and the
//! helper. Under all other levels, and before MPI is initialised, calls use the lock, because any thread may use infos and error
//! texts or begin a session while another thread is in any call (MPI 5.0, sections 11.4.1 and 11.6).
//!
//! Contract: every entry point is inside of the library from start to end, except while it runs the program's functions (operators,
//! error handlers, attribute callbacks). [`unlocked`] leaves the library for such a function. The function may need a lock of the
//! program (Python's interpreter lock) whose holder is inside MPI, and it may call MPI. So no borrow of the library's state lives
//! across [`unlocked`].
//!
//! Usual messages of communicators that have a lane do not enter here at all: see `lanes.rs`.
//!
//! A call that waits releases the lock ([`let_others`]), but stays inside for the helper: the call itself progresses all
//! operations, so the helper has nothing to do.

use crate::hand_over;
use parking_lot::RawMutex;
use parking_lot::lock_api::RawMutex as _;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};
use weft_fabric::wait::BiasedLock;

static LOCK: RawMutex = RawMutex::INIT;
/// Lets the thread that initialised MPI enter without the lock, until another thread calls.
static BIAS: BiasedLock = BiasedLock::new();
/// Number of threads of the program that wait, if several threads may call.
static WAITING: AtomicU32 = AtomicU32::new(0);
static MODE: AtomicU8 = AtomicU8::new(MULTIPLE);

/// Mode in which only one thread calls, as the program promises, and there is no helper.
const ALONE: u8 = 0;
/// Mode in which only one thread calls, and there is a helper. Entry points enter and leave by the hand-over.
const HELPED: u8 = 1;
/// Mode in which every thread takes the lock, including the helper.
const MULTIPLE: u8 = 2;

/// Mode of an entry point that has entered in mode [`MULTIPLE`] by the bias, without the lock.
const BEFORE: u8 = 3;

/// Guard that exists while an entry point runs.
pub struct Entered {
    /// Mode in which the thread entered, or `BEFORE`.
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

/// Returns true if only one thread calls, as the program promises, and there is no helper. Then a call that neither waits nor calls
/// functions of the program need not exclude other threads.
#[inline(always)]
pub fn is_alone() -> bool {
    MODE.load(Ordering::Relaxed) == ALONE
}

/// Enters the library by the bias, without the lock, for a call that neither waits nor calls functions of the program. Returns
/// `None` if another thread has called before, or if there is a helper.
#[inline(always)]
pub fn enter_before() -> Option<Before> {
    let shared = MODE.load(Ordering::Relaxed) == MULTIPLE;
    (shared && BIAS.try_enter(me())).then(|| Before)
}

/// Guard that exists during a call after [`enter_before`].
pub struct Before;

impl Drop for Before {
    #[inline(always)]
    fn drop(&mut self) {
        BIAS.leave_before();
    }
}

impl Entered {
    /// Returns true if the thread entered by the hand-over or by the lock.
    #[inline(always)]
    pub fn otherwise(&self) -> bool {
        matches!(self.how, HELPED | MULTIPLE)
    }
}

impl Drop for Entered {
    #[inline(always)]
    fn drop(&mut self) {
        if self.how == BEFORE {
            // If this call let other threads in, another thread may have called and thereby ended the bias.
            if BIAS.leave() {
                go_out_locked();
            }
            return;
        }
        // The mode is read again, because a helper may have started or ended, or the lock may have come into use, since this call
        // entered.
        let mode = MODE.load(Ordering::Relaxed);
        if self.how | mode != ALONE {
            go_out(self.how, mode);
        }
    }
}

#[cold]
fn go_out_locked() {
    hand_over::leave_locked();
    // SAFETY: this thread has locked `LOCK`: `BIAS.leave` returned true, so the thread is inside by the lock, not by the bias.
    unsafe { LOCK.unlock() }
}

// This function is separate, because most entry points leave without a helper and without the lock.
#[inline(never)]
fn go_out(how: u8, mode: u8) {
    if mode == HELPED {
        hand_over::leave();
    }
    if how == MULTIPLE {
        hand_over::leave_locked();
        // SAFETY: `how` is `MULTIPLE` only if the entry point that leaves has called `take`.
        unsafe { give_up() }
    }
}

/// Enters by the bias, or takes the lock.
#[inline(always)]
fn take() {
    if !BIAS.try_enter(me()) {
        LOCK.lock();
        BIAS.revoke();
    }
}

/// Enters again during a wait. This is not urgent, because the thread that holds the lock also progresses the operations of this
/// thread. So this thread yields its processor before it queues for the lock.
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
/// The thread has entered by `take`, and not left since.
#[inline(always)]
unsafe fn give_up() {
    if BIAS.leave() {
        // SAFETY: `BIAS.leave` returned true, so this thread has locked `LOCK`: the caller promises that it has entered.
        unsafe { LOCK.unlock() }
    }
}

/// Returns a number that no other thread has: the address of its thread-local storage.
#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
#[inline(always)]
pub fn me() -> usize {
    let own: usize;
    // SAFETY: the instruction only reads the word at fs:0, where the ABI of threads stores the thread's own address.
    unsafe {
        std::arch::asm!("mov {}, fs:[0]", out(reg) own, options(nostack, readonly, preserves_flags));
    }
    own
}

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
#[inline(always)]
pub fn me() -> usize {
    // SAFETY: `pthread_self` takes no arguments and cannot fail.
    unsafe { libc::pthread_self() as usize }
}

/// Lets the calling thread, which is inside, enter by the bias from now on. This is used if several threads may call, but probably
/// only this thread does.
pub fn favour() {
    if shared() && BIAS.favour(me()) {
        // SAFETY: the entry point that calls this function has locked `LOCK`, and from now on is inside by the bias.
        unsafe { LOCK.unlock() }
    }
}

/// Returns true if only one thread has called so far. Then a short wait need not let other threads in.
#[inline]
pub fn undisturbed() -> bool {
    !shared() || BIAS.is_alone()
}

// This function is cold, so that the compiler saves the arguments of an entry point only on the way to it.
#[cold]
#[inline(never)]
fn go_in(mode: u8) {
    match mode {
        HELPED => hand_over::enter(),
        MULTIPLE => take(),
        _ => {}
    }
}

/// Lets several threads call at the same time from now on. If a helper uses the hand-over, does nothing and returns false. Then no
/// other thread may call.
pub fn share() -> bool {
    let changed = MODE.compare_exchange(ALONE, MULTIPLE, Ordering::Relaxed, Ordering::Relaxed);
    changed.is_ok() || shared()
}

/// Restricts calls to one thread from now on, as the program promises: MPI was initialised with `MPI_THREAD_SINGLE`.
pub fn alone() {
    MODE.store(ALONE, Ordering::Relaxed);
}

/// Resets the mode in a forked child, which has only one thread.
pub fn unshare() {
    WAITING.store(0, Ordering::Relaxed);
    MODE.store(ALONE, Ordering::Relaxed);
}

/// Returns true if several threads of the program may call at the same time.
pub fn shared() -> bool {
    MODE.load(Ordering::Relaxed) == MULTIPLE
}

/// Notes that there is a helper from now on. The calling thread is inside. Must not be called while the lock is in use.
pub fn with_helper() {
    MODE.store(HELPED, Ordering::Relaxed);
}

/// Notes that there is no helper any more.
pub fn without_helper() {
    let _ = MODE.compare_exchange(HELPED, ALONE, Ordering::Relaxed, Ordering::Relaxed);
}

/// Guard that gives up the lock at the end of a scope.
struct Locked;

impl Drop for Locked {
    fn drop(&mut self) {
        // SAFETY: the thread has entered, as `take` does, before this guard was made.
        unsafe { give_up() }
    }
}

/// Runs `f` with the lock held, for the helper, and for a thread that waits in a lane.
pub fn locked<R>(f: impl FnOnce() -> R) -> R {
    take();
    let _locked = Locked;
    f()
}

/// Runs `f` with the lock held. Does nothing and returns `None` if another thread is inside, or if it would cost another thread its
/// way before the lock.
pub fn try_locked<R>(f: impl FnOnce() -> R) -> Option<R> {
    if !BIAS.try_enter(me()) {
        if BIAS.is_alone() || !LOCK.try_lock() {
            return None;
        }
        BIAS.revoke();
    }
    let _locked = Locked;
    Some(f())
}

/// Guard that enters the library again at the end of a scope.
struct Again(u8);

impl Drop for Again {
    fn drop(&mut self) {
        go_in(self.0);
    }
}

/// Runs `f`, which may call a function of the program, outside of the library. If the calling thread is the helper's, ends the job.
pub fn unlocked<R>(f: impl FnOnce() -> R) -> R {
    let mode = MODE.load(Ordering::Relaxed);
    if mode != ALONE {
        hand_over::must_not_be_here();
    }
    // In the mode `ALONE` or `HELPED` the thread has no lock to release. The thread that initialises MPI may have entered before
    // the lock came into use, but it runs no callback.
    match mode {
        HELPED => hand_over::leave(),
        // SAFETY: the thread has entered by `take`: in mode `MULTIPLE`, every entry point has.
        MULTIPLE => unsafe { give_up() },
        _ => {}
    }
    let _again = Again(mode);
    f()
}

/// Notes that the call is about to wait. Meanwhile the helper need not be woken.
#[inline]
pub fn stand_down() {
    if MODE.load(Ordering::Relaxed) != ALONE {
        hand_over::stand_down();
    }
}

/// Counts the beginning of a wait. If this function returns true, [`end_wait`] must be called.
#[inline]
pub fn begin_wait() -> bool {
    let counted = shared();
    if counted {
        WAITING.fetch_add(1, Ordering::Relaxed);
    }
    counted
}

/// Counts the end of a wait that [`begin_wait`] has counted.
pub fn end_wait() {
    WAITING.fetch_sub(1, Ordering::Relaxed);
}

/// Runs `f`, a part of a wait, while other threads of the program may enter. The helper must not enter.
pub fn let_others<R>(f: impl FnOnce() -> R) -> R {
    if !shared() {
        return f();
    }
    /// Guard that takes the lock again at the end of a scope.
    struct Look;
    impl Drop for Look {
        fn drop(&mut self) {
            take_to_look();
        }
    }
    // SAFETY: the thread has entered by `take`: in mode `MULTIPLE`, every entry point has.
    unsafe { give_up() };
    let _again = Look;
    let result = f();
    // If several threads of this process wait, one polling thread is enough, because it polls for all of them. Further polling
    // threads could occupy the processor that another waiting thread needs.
    if WAITING.load(Ordering::Relaxed) > 1 {
        std::thread::yield_now();
    }
    result
}
