//! The lock of a lane or of a window: a mutex behind a [`BiasedLock`], by which the first thread enters without an atomic operation.

use super::threads::count_thread;
use crate::lock::me;
use parking_lot::RawMutex;
use parking_lot::lock_api::RawMutex as _;
use weft_fabric::wait::BiasedLock;

/// A lock that favours the first thread that takes it to stay, until another thread comes.
pub struct ThreadLock {
    mutex: RawMutex,
    bias: BiasedLock,
}

impl ThreadLock {
    /// Creates a lock that no thread holds, and that favours no thread.
    pub const fn new() -> ThreadLock {
        ThreadLock { mutex: RawMutex::INIT, bias: BiasedLock::new() }
    }

    /// Takes the lock, for a thread that may be favoured from now on.
    #[inline(always)]
    pub fn take_to_stay(&self) {
        if !self.bias.try_enter(me()) {
            self.lock_to_stay();
        }
    }

    #[cold]
    fn lock_to_stay(&self) {
        count_thread();
        self.mutex.lock();
        if self.bias.favour(me()) {
            // SAFETY: this thread has locked the mutex above, and from now on is inside by the bias.
            unsafe { self.mutex.unlock() }
        } else {
            self.bias.revoke();
        }
    }

    /// Takes the lock.
    #[inline]
    pub fn take(&self) {
        if !self.bias.try_enter(me()) {
            self.mutex.lock();
            self.bias.revoke();
        }
    }

    /// Takes the lock and returns true, unless another thread is inside, or would lose its way before the lock.
    pub fn try_take(&self) -> bool {
        if !self.bias.try_enter(me()) {
            if self.bias.is_alone() || !self.mutex.try_lock() {
                return false;
            }
            self.bias.revoke();
        }
        true
    }

    /// # Safety
    /// The calling thread is inside, and does not use any more what the lock guards.
    #[inline(always)]
    pub unsafe fn leave(&self) {
        if self.bias.leave() {
            // SAFETY: `leave` returned true, so this thread has locked the mutex: the caller promises that it is inside.
            unsafe { self.mutex.unlock() }
        }
    }

    /// Returns true if a thread is favoured and no other thread has ever come.
    #[inline]
    pub fn is_alone(&self) -> bool {
        self.bias.is_alone()
    }

    /// Ends the favour of the calling thread. If another thread holds the lock, that thread ends the favour.
    pub fn give_up(&self) {
        if self.bias.is_alone() && self.mutex.try_lock() {
            self.bias.give_up(me());
            // SAFETY: this thread has locked the mutex above.
            unsafe { self.mutex.unlock() }
        }
    }
}
