//! Entry to the library: by a lock, or under `MPI_THREAD_SINGLE`, where there is no lock, by the hand-over between the program's
//! thread and the helper. Under the levels between `MPI_THREAD_SINGLE` and `MPI_THREAD_MULTIPLE`, and before MPI is initialised,
//! the lock is taken, too, because any thread may use infos and error texts or begin a session while another thread is in any call
//! (MPI 5.0, sections 11.4.1 and 11.6).
//!
//! Contract: every entry point is inside from start to end, except while it runs the program's functions (operators, error
//! handlers, attribute callbacks). [`unlocked`] leaves the library for these: a callback may need a lock of the program (Python's
//! interpreter lock) whose holder is inside MPI, and the callback may call MPI. So no borrow of the library's state lives across
//! [`unlocked`].
//!
//! A call that waits releases the lock ([`let_others`]), but stays inside for the helper: the call itself progresses all
//! operations, so the helper has nothing to do.

use crate::helper_thread;
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
/// `None` unless only one thread has called so far and there is no helper.
#[inline(always)]
pub fn enter_before() -> Option<Before> {
    let shared = MODE.load(Ordering::Relaxed) == MULTIPLE;
    (shared && BIAS.try_enter(me())).then_some(Before)
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
    /// Returns true if the thread entered neither in the mode of [`is_alone`] nor by the bias.
    #[inline(always)]
    pub fn otherwise(&self) -> bool {
        matches!(self.how, HELPED | MULTIPLE)
    }
}

impl Drop for Entered {
    #[inline(always)]
    fn drop(&mut self) {
        if self.how == BEFORE {
            // If this call let other threads in, another thread may have called, so that the bias has ended.
            if BIAS.leave() {
                go_out_locked();
            }
            return;
        }
        // The mode is read again, because a helper may have started or ended, or the lock may have come into use, since this call
        // entered.
        let mode = MODE.load(Ordering::Relaxed);
        if self.how | mode != ALONE {
            go_out(self.how == MULTIPLE, mode);
        }
    }
}

#[cold]
fn go_out_locked() {
    helper_thread::leave_locked();
    // SAFETY: this thread has locked `LOCK`: `BIAS.leave` returned true, so the thread is inside by the lock, not by the bias.
    unsafe { LOCK.unlock() }
}

// Separate function, because most entry points leave without a helper and without the lock.
#[inline(never)]
fn go_out(locked: bool, mode: u8) {
    if mode == HELPED {
        helper_thread::leave();
    }
    if locked {
        helper_thread::leave_locked();
        // SAFETY: `locked` is true only if the entry point that leaves has called `take`.
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
fn me() -> usize {
    let own: usize;
    // SAFETY: the instruction only reads the word at fs:0, where the ABI of threads stores the thread's own address.
    unsafe {
        std::arch::asm!("mov {}, fs:[0]", out(reg) own, options(nostack, readonly, preserves_flags));
    }
    own
}

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
#[inline(always)]
fn me() -> usize {
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

#[inline(never)]
fn go_in(mode: u8) {
    match mode {
        HELPED => helper_thread::enter(),
        MULTIPLE => take(),
        _ => {}
    }
}

/// Lets several threads call at the same time from now on. If a helper uses the hand-over, does nothing and returns false, so that
/// no other thread may call.
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

/// Runs `f` with the lock held, for the helper.
pub fn locked<R>(f: impl FnOnce() -> R) -> R {
    /// Guard that leaves at the end of a scope.
    struct Locked;
    impl Drop for Locked {
        fn drop(&mut self) {
            // SAFETY: the thread has entered: `take` was called before this guard was made.
            unsafe { give_up() }
        }
    }
    take();
    let _locked = Locked;
    f()
}

/// Guard that enters again at the end of a scope.
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
        helper_thread::must_not_be_here();
    }
    // In the mode `ALONE` or `HELPED` the thread has no lock to release. The thread that initialises MPI may have entered before
    // the lock came into use, but it runs no callback.
    match mode {
        HELPED => helper_thread::leave(),
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
        helper_thread::stand_down();
    }
}

/// Counts the beginning of a wait. If it returns true, [`end_wait`] must be called.
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
    /// Guard that enters again at the end of a scope.
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
