//! The exclusion by which a helper thread works in the library while the main thread computes, at no cost to the main thread's
//! calls.
//!
//! Contract: the state of the library is shared by one main thread and one helper. The main thread accesses it only while it
//! holds a [`MainThreadInside`], and the helper only while it holds a [`Help`]. The two guards exclude each other.
//!
//! ```text
//!   main: enter                       helper: help
//!   inside = 1                        helping = 1
//!   light fence                       heavy fence
//!   helping ? wait for the helper     inside ? helping = 0, nothing to do : work, then helping = 0
//! ```
//! Dekker's exclusion. The heavy fence makes every processor that runs a thread of this process pass a fence (membarrier(2)), so
//! the light fence need only stop the compiler. If the system has no membarrier, both are full fences.

#[cfg(loom)]
use loom::{
    sync::atomic::{AtomicBool, Ordering, fence},
    sync::{Mutex, MutexGuard},
};
#[cfg(not(loom))]
use std::sync::{
    Mutex, MutexGuard,
    atomic::{AtomicBool, Ordering, compiler_fence, fence},
};

/// The exclusion of one main thread and one helper.
#[derive(Debug)]
pub struct Handover {
    inside: AtomicBool,
    helping: AtomicBool,
    /// Held by the helper while it helps, so that the main thread can wait for it.
    turn: Mutex<()>,
    /// True if the system has the heavy fence.
    #[cfg_attr(loom, allow(dead_code))]
    heavy: bool,
}

/// A guard: the main thread is in the library.
pub struct MainThreadInside<'h>(&'h Handover);

/// A guard: the helper is in the library.
pub struct Help<'h> {
    handover: &'h Handover,
    _turn: MutexGuard<'h, ()>,
}

impl Default for Handover {
    fn default() -> Handover {
        Handover::new()
    }
}

impl Handover {
    /// Creates an exclusion with no thread inside. Asks the system once if cheap fences are available.
    pub fn new() -> Handover {
        Handover {
            inside: AtomicBool::new(false),
            helping: AtomicBool::new(false),
            turn: Mutex::new(()),
            heavy: register(),
        }
    }

    /// Enters the library as the main thread. Waits while the helper is inside.
    #[inline]
    pub fn enter(&self) -> MainThreadInside<'_> {
        self.go_in();
        MainThreadInside(self)
    }

    #[inline(always)]
    pub(super) fn go_in(&self) {
        self.inside.store(true, Ordering::Relaxed);
        self.light_fence();
        if self.helping.load(Ordering::Acquire) {
            self.wait();
        }
    }

    /// Enters as `go_in` does, but does not wait. Returns false while the helper is inside. Then the main thread must not access
    /// the shared state, but still calls `go_out`.
    pub(super) fn try_to_go_in(&self) -> bool {
        self.inside.store(true, Ordering::Relaxed);
        self.light_fence();
        !self.helping.load(Ordering::Acquire)
    }

    #[inline(always)]
    pub(super) fn go_out(&self) {
        self.inside.store(false, Ordering::Release);
    }

    pub(super) fn is_inside(&self) -> bool {
        self.inside.load(Ordering::Acquire)
    }

    #[cold]
    fn wait(&self) {
        while self.helping.load(Ordering::Acquire) {
            drop(self.lock());
        }
    }

    /// Enters the library as the helper. Returns `None` while the main thread is inside: there is nothing to help with then.
    pub fn help(&self) -> Option<Help<'_>> {
        let turn = self.lock();
        self.helping.store(true, Ordering::Relaxed);
        self.heavy_fence();
        if self.inside.load(Ordering::Acquire) {
            self.helping.store(false, Ordering::Release);
            return None;
        }
        Some(Help { handover: self, _turn: turn })
    }

    fn lock(&self) -> MutexGuard<'_, ()> {
        self.turn.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    #[inline(always)]
    pub(super) fn light_fence(&self) {
        #[cfg(not(loom))]
        if self.heavy {
            return compiler_fence(Ordering::SeqCst);
        }
        fence(Ordering::SeqCst);
    }

    pub(super) fn heavy_fence(&self) {
        #[cfg(not(loom))]
        if self.heavy && membarrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED) {
            return;
        }
        // In the model, the two kinds of fence are ordered like two full fences.
        fence(Ordering::SeqCst);
    }
}

impl Drop for MainThreadInside<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.go_out();
    }
}

impl Drop for Help<'_> {
    fn drop(&mut self) {
        // `helping` is cleared before the guard of `turn` is dropped, which lets a waiting main thread go on.
        self.handover.helping.store(false, Ordering::Release);
    }
}

#[cfg(not(loom))]
fn membarrier(command: libc::c_int) -> bool {
    // SAFETY: membarrier(2) takes no pointers and touches no memory of the caller.
    unsafe { libc::syscall(libc::SYS_membarrier, command, 0, 0) == 0 }
}

/// Passes the light fence. Valid only if the system has the heavy fence.
#[inline(always)]
pub(super) fn light_fence() {
    #[cfg(not(loom))]
    compiler_fence(Ordering::SeqCst);
    #[cfg(loom)]
    fence(Ordering::SeqCst);
}

/// Passes the heavy fence. Valid only if [`register`] has returned true.
pub(super) fn heavy_fence() {
    #[cfg(not(loom))]
    {
        let passed = membarrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED);
        assert!(passed, "membarrier worked before");
    }
    #[cfg(loom)]
    fence(Ordering::SeqCst);
}

/// Registers this process for the heavy fence. Returns false if the system has no heavy fence.
pub(super) fn register() -> bool {
    #[cfg(not(any(loom, miri)))]
    return membarrier(libc::MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED)
        && membarrier(libc::MEMBARRIER_CMD_PRIVATE_EXPEDITED);
    #[cfg(any(loom, miri))]
    cfg!(loom)
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::Arc;

    struct Shared(std::cell::UnsafeCell<u64>);
    // SAFETY: `Handover` gives access to only one thread at a time, as this test checks.
    unsafe impl Sync for Shared {}

    #[test]
    fn main_and_helper_never_meet() {
        let turns = if cfg!(miri) { 50 } else { 200_000 };
        let all = Arc::new((Handover::new(), Shared(0.into()), AtomicBool::new(false)));
        let helper = {
            let all = all.clone();
            std::thread::spawn(move || {
                let (mut helped, mut tried) = (0, 0);
                while !all.2.load(Ordering::Relaxed) || tried == 0 {
                    tried += 1;
                    if let Some(_help) = all.0.help() {
                        // SAFETY: `_help` excludes the main thread, so this is the only access to the word.
                        unsafe { *all.1.0.get() += 1 };
                        helped += 1;
                    }
                }
                helped
            })
        };
        for _ in 0..turns {
            let _inside = all.0.enter();
            // SAFETY: `_inside` excludes the helper, so this is the only access to the word.
            unsafe { *all.1.0.get() += 1 };
        }
        all.2.store(true, Ordering::Relaxed);
        let helped: u64 = helper.join().unwrap();
        let _inside = all.0.enter();
        // SAFETY: `_inside` excludes the helper, which has also been joined.
        assert_eq!(unsafe { *all.1.0.get() }, turns + helped);
    }

    #[test]
    fn nobody_helps_who_is_inside() {
        let handover = Handover::new();
        let inside = handover.enter();
        assert!(handover.help().is_none());
        drop(inside);
        assert!(handover.help().is_some());
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use loom::cell::UnsafeCell;
    use loom::sync::Arc;

    /// Loom's cell reports two writes at the same time, so the test needs no assertion.
    #[test]
    fn loom_main_and_helper_exclude_each_other() {
        loom::model(|| {
            let all = Arc::new((Handover::new(), UnsafeCell::new(0u32)));
            let helper = {
                let all = all.clone();
                loom::thread::spawn(move || {
                    // SAFETY: `Help` excludes the main thread, so the pointer is the only access.
                    let help = |_: Help| all.1.with_mut(|p| unsafe { *p += 1 });
                    all.0.help().map(help).is_some()
                })
            };
            for _ in 0..2 {
                let _inside = all.0.enter();
                // SAFETY: `_inside` excludes the helper, so the pointer is the only access.
                all.1.with_mut(|p| unsafe { *p += 1 });
            }
            let helped = helper.join().unwrap();
            let _inside = all.0.enter();
            // SAFETY: `_inside` excludes the helper, so the pointer is the only access.
            assert_eq!(all.1.with_mut(|p| unsafe { *p }), 2 + u32::from(helped));
        });
    }
}
