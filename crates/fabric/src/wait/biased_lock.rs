//! A biased lock in front of a usual lock. As long as only one thread uses the lock, this thread enters by a store and a load,
//! without an atomic operation. Once another thread comes, all threads use the usual lock.
//!
//! Contract: a thread that enters by [`BiasedLock::try_enter`], or takes the lock and then calls [`BiasedLock::revoke`], is the
//! only thread inside. The thread stays inside until it calls [`BiasedLock::leave`] and, if this call returns true, gives up the
//! lock. A thread that is inside by the lock may call [`BiasedLock::favour`], and then gives up the lock.
//!
//! ```text
//!   favoured thread: try_enter        another thread, with the lock: revoke
//!   inside = 1                        revoked = 1
//!   light fence                       heavy fence
//!   revoked ? inside = 0, no : in     wait until inside = 0, over = 1, for good
//! ```
//! Dekker's exclusion with an asymmetric fence, as in [`super::Handover`]; D. Dice, M. Moir, W. Scherer, "Quickly Reacquirable
//! Locks", 2003. Cost: two stores and three loads for the favoured thread, and a system call once for the first other thread. If
//! the system has no heavy fence, no thread is favoured.

use super::handover::{heavy_fence, light_fence, register};

#[cfg(loom)]
use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The favoured thread, and the state of the exclusion.
#[derive(Debug)]
pub struct BiasedLock {
    /// Name of the favoured thread; 0: no thread.
    favoured: AtomicUsize,
    inside: AtomicBool,
    revoked: AtomicBool,
    /// True if all threads use the lock. Only the thread inside changes this.
    over: AtomicBool,
}

impl Default for BiasedLock {
    fn default() -> BiasedLock {
        BiasedLock::new()
    }
}

macro_rules! new {
    ($($const:tt)?) => {
        /// Creates a lock without a favoured thread.
        pub $($const)? fn new() -> BiasedLock {
            BiasedLock {
                favoured: AtomicUsize::new(0),
                inside: AtomicBool::new(false),
                revoked: AtomicBool::new(true),
                over: AtomicBool::new(true),
            }
        }
    };
}

impl BiasedLock {
    #[cfg(not(loom))]
    new!(const);
    #[cfg(loom)]
    new!();

    /// Favours the calling thread, which is inside by the lock. `me` is a name that no other thread has. From then on the thread
    /// is inside by its name, and the caller gives up the lock. Returns false and does nothing if there is no heavy fence, or if
    /// a thread was favoured before and has not called [`BiasedLock::give_up`].
    pub fn favour(&self, me: usize) -> bool {
        if me == 0 || self.favoured.load(Ordering::Relaxed) != 0 || !register() {
            return false;
        }
        self.inside.store(true, Ordering::Relaxed);
        self.revoked.store(false, Ordering::Relaxed);
        self.over.store(false, Ordering::Relaxed);
        self.favoured.store(me, Ordering::Release);
        true
    }

    /// Enters, if `me` is favoured. If this returns false, the caller takes the lock and then calls [`BiasedLock::revoke`].
    #[inline(always)]
    pub fn try_enter(&self, me: usize) -> bool {
        if self.favoured.load(Ordering::Relaxed) != me || self.revoked.load(Ordering::Relaxed) {
            return false;
        }
        self.inside.store(true, Ordering::Relaxed);
        light_fence();
        if !self.revoked.load(Ordering::Acquire) {
            return true;
        }
        self.inside.store(false, Ordering::Release);
        false
    }

    /// Ends the favour, for a caller that holds the lock. Returns when the thread that was favoured is not inside.
    #[inline(always)]
    pub fn revoke(&self) {
        if !self.over.load(Ordering::Relaxed) {
            self.end();
        }
    }

    #[cold]
    fn end(&self) {
        self.revoked.store(true, Ordering::Relaxed);
        heavy_fence();
        let mut looks = 0u32;
        while self.inside.load(Ordering::Acquire) {
            looks += 1;
            pause(looks);
        }
        self.over.store(true, Ordering::Relaxed);
    }

    /// Ends the favour of the calling thread, which holds the lock and is not inside by its name. From then on another thread may
    /// be favoured. Does nothing if the thread is not favoured, or if another thread has come.
    ///
    /// A thread calls this function before it ends, because a later thread may have its name.
    pub fn give_up(&self, me: usize) {
        if self.favoured.load(Ordering::Relaxed) == me && !self.over.load(Ordering::Relaxed) {
            self.revoked.store(true, Ordering::Relaxed);
            self.over.store(true, Ordering::Relaxed);
            self.favoured.store(0, Ordering::Relaxed);
        }
    }

    /// Leaves directly after [`BiasedLock::try_enter`].
    #[inline(always)]
    pub fn leave_before(&self) {
        self.inside.store(false, Ordering::Release);
    }

    /// Leaves. Returns true if the caller must give up the lock.
    #[inline(always)]
    #[must_use]
    pub fn leave(&self) -> bool {
        let locked = self.over.load(Ordering::Relaxed);
        if !locked {
            self.inside.store(false, Ordering::Release);
        }
        locked
    }

    /// Returns true if a thread is favoured and no other thread has ever come.
    #[inline]
    pub fn is_alone(&self) -> bool {
        !self.revoked.load(Ordering::Relaxed)
    }
}

#[cfg(not(loom))]
fn pause(looks: u32) {
    match looks {
        0..100 => std::hint::spin_loop(),
        100..200 => std::thread::yield_now(),
        _ => std::thread::sleep(std::time::Duration::from_micros(50)),
    }
}

#[cfg(loom)]
fn pause(_looks: u32) {
    loom::thread::yield_now();
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::{Arc, Mutex};

    struct Shared(std::cell::UnsafeCell<u64>);
    // SAFETY: `BiasedLock` gives access to only one thread at a time, as this test checks.
    unsafe impl Sync for Shared {}

    /// Adds 1 to the word, inside by the name or by the lock.
    fn add(all: &(BiasedLock, Mutex<()>, Shared), me: usize) {
        let add = || {
            // SAFETY: this thread is inside the exclusion, so no other thread accesses the word.
            unsafe { *all.2.0.get() += 1 };
        };
        if all.0.try_enter(me) {
            add();
            assert!(!all.0.leave());
        } else {
            let _held = all.1.lock().unwrap();
            all.0.revoke();
            add();
            assert!(all.0.leave());
        }
    }

    #[test]
    fn nobody_meets_who_is_favoured() {
        let turns = if cfg!(miri) { 50 } else { 100_000 };
        let all = Arc::new((BiasedLock::new(), Mutex::new(()), Shared(0.into())));
        let held = all.1.lock().unwrap();
        let favoured = all.0.favour(1);
        drop(held);
        if favoured {
            assert!(!all.0.leave());
        }
        let others: Vec<_> = (2..4)
            .map(|me| {
                let all = all.clone();
                std::thread::spawn(move || (0..turns).for_each(|_| add(&all, me)))
            })
            .collect();
        (0..turns).for_each(|_| add(&all, 1));
        others.into_iter().for_each(|other| other.join().unwrap());
        assert!(!all.0.is_alone() && !all.0.favour(1));
        // Another thread has come, so there is no favour to give up.
        all.0.give_up(1);
        assert!(!all.0.favour(4));
        // SAFETY: all other threads were joined, so no thread accesses the word.
        assert_eq!(unsafe { *all.2.0.get() }, 3 * turns);
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use loom::cell::UnsafeCell;
    use loom::sync::{Arc, Mutex};

    type All = (BiasedLock, Mutex<()>, UnsafeCell<u32>);

    fn add(all: &All, me: usize) {
        // SAFETY: the caller is inside the exclusion, so the pointer is the only access. The model checker verifies this.
        let add = || all.2.with_mut(|p| unsafe { *p += 1 });
        if all.0.try_enter(me) {
            add();
            assert!(!all.0.leave());
        } else {
            let _held = all.1.lock().unwrap();
            all.0.revoke();
            add();
            assert!(all.0.leave());
        }
    }

    /// Checks all interleavings of `first`, run by thread 1, which is favoured and adds 2, and of thread 2, which adds 1. Loom's cell
    /// reports two writes at the same time.
    fn check(first: fn(&All)) {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(move || {
            let all = Arc::new((BiasedLock::new(), Mutex::new(()), UnsafeCell::new(0u32)));
            assert!(all.0.favour(1) && !all.0.leave());
            let other = {
                let all = all.clone();
                loom::thread::spawn(move || add(&all, 2))
            };
            first(&all);
            other.join().unwrap();
            all.2.with_mut(|p| {
                // SAFETY: the other thread was joined, so the pointer is the only access.
                assert_eq!(unsafe { *p }, 3);
            });
        });
    }

    /// Thread 1 gives up its favour. Thread 3, which comes later, is favoured then.
    #[test]
    fn loom_a_favour_that_was_given_up_goes_to_another_thread() {
        check(|all| {
            add(all, 1);
            {
                let _held = all.1.lock().unwrap();
                all.0.give_up(1);
                if all.0.favour(3) {
                    assert!(!all.0.leave());
                }
            }
            add(all, 3);
        });
    }

    #[test]
    fn loom_who_is_favoured_and_others_exclude_each_other() {
        check(|all| {
            add(all, 1);
            add(all, 1);
        });
    }
}
