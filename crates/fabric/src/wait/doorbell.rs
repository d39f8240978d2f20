//! The place where an idle process sleeps, and where a peer wakes it without a lost wake-up.

use std::time::Duration;

#[cfg(loom)]
use loom::sync::atomic::{AtomicU32, Ordering, fence};
#[cfg(not(loom))]
use std::sync::atomic::{AtomicU32, Ordering, fence};

/// The state of a place to sleep at [`Sleep::arm`]. If a ring came later, a sleep with this token returns at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Token(pub u32);

/// The place where the threads of a process sleep. May be used without the lock on the fabric.
///
/// Contract: `let t = arm(); poll everything; if nothing { sleep(t, limit) }; disarm()`. Any event that becomes visible to a
/// poll after `arm` makes that `sleep` return.
pub trait Sleep: Send + Sync {
    /// Announces that this thread is about to sleep. From then on peers ring.
    fn arm(&self) -> Token;

    /// Sleeps until a peer rings after `token` was taken, or until `limit` has passed.
    fn sleep(&self, token: Token, limit: Duration);

    /// Withdraws the announcement. Called exactly once for each `arm`.
    fn disarm(&self);

    /// Wakes all threads of this process that sleep here.
    fn ring(&self);

    /// Returns true if a peer may have rung after `token` was taken. If it returns false, the sleep was ended by a ring for
    /// another sleeper.
    fn may_have_rung(&self, token: Token) -> bool {
        let _ = token;
        true
    }
}

/// A [`Sleep`] on a futex that works across processes. It may lie in shared memory (all zero is a good initial state) or on the
/// heap.
///
/// Contract. Sleepers change `sleepers` and clear `rung`; wakers set `rung` and change `bell`. Any thread may be a sleeper or a
/// waker.
///
/// ```text
///   waker                             sleeper
///   publish (any store)               sleepers += 1
///   fence(SeqCst)                     token = bell
///   sleepers != 0 and not rung ?      rung = false
///     rung = true (swap)              fence(SeqCst)
///     bell += 1, FUTEX_WAKE           poll everything
///                                     FUTEX_WAIT while bell == token
/// ```
/// The fences are totally ordered. If the waker's fence comes first, the sleeper's poll sees the published event. If the
/// sleeper's fence comes first, the waker sees the sleeper and rings, unless another waker has set `rung` after the sleeper
/// cleared it. In this case the other waker changes `bell` after `token` was taken, and the kernel compares `bell` and `token`
/// before the thread sleeps. So only one waker rings for all sleepers until the next `arm`. This saves many rings, since a woken
/// thread may get a processor only after hundreds of messages have arrived. All changes of `rung` are swaps, so that a thread
/// that sets it comes after the `token` of every thread that cleared it.
#[derive(Debug, Default)]
#[repr(C, align(128))]
pub struct Doorbell {
    sleepers: AtomicU32,
    bell: AtomicU32,
    /// 1: a waker has rung, or is about to ring, for all threads that have armed since the field was cleared.
    rung: AtomicU32,
    #[cfg(loom)]
    queue: model::Queue,
}

impl Doorbell {
    /// Creates a doorbell at which no thread sleeps.
    pub fn new() -> Doorbell {
        Doorbell::default()
    }

    /// Wakes the sleepers after an event was published. Rings if a thread has armed, unless another waker has already rung for
    /// it. Returns true if a thread has armed.
    #[inline]
    pub fn wake(&self) -> bool {
        fence(Ordering::SeqCst);
        self.wake_fenced()
    }

    /// Does the second half of [`Doorbell::wake`], for callers that wake several doorbells after a single `fence(SeqCst)` of
    /// their own.
    #[inline]
    pub fn wake_fenced(&self) -> bool {
        let asleep = self.sleepers.load(Ordering::Relaxed) != 0;
        if asleep
            && self.rung.load(Ordering::Relaxed) == 0
            && self.rung.swap(1, Ordering::AcqRel) == 0
        {
            self.ring();
        }
        asleep
    }
}

impl Sleep for Doorbell {
    fn arm(&self) -> Token {
        self.sleepers.fetch_add(1, Ordering::Relaxed);
        let token = Token(self.bell.load(Ordering::Acquire));
        self.rung.swap(0, Ordering::AcqRel);
        fence(Ordering::SeqCst);
        token
    }

    fn sleep(&self, token: Token, limit: Duration) {
        if self.bell.load(Ordering::Acquire) == token.0 {
            self.futex_wait(token.0, limit);
        }
    }

    fn disarm(&self) {
        self.sleepers.fetch_sub(1, Ordering::Release);
    }

    #[cold]
    fn ring(&self) {
        self.bell.fetch_add(1, Ordering::Release);
        self.futex_wake();
    }

    fn may_have_rung(&self, token: Token) -> bool {
        self.bell.load(Ordering::Acquire) != token.0
    }
}

#[cfg(not(loom))]
impl Doorbell {
    fn futex_wait(&self, expected: u32, limit: Duration) {
        let time = libc::timespec {
            tv_sec: limit.as_secs().min(i32::MAX as u64) as libc::time_t,
            tv_nsec: limit.subsec_nanos().into(),
        };
        // SAFETY: the futex word is borrowed and outlives the call, and `time` is a valid timespec. Whatever the outcome
        // (woken, value changed, time up, a signal), the caller polls again.
        unsafe {
            libc::syscall(
                libc::SYS_futex,
                self.bell.as_ptr(),
                libc::FUTEX_WAIT,
                expected,
                &raw const time,
            );
        }
    }

    fn futex_wake(&self) {
        // SAFETY: the futex word is borrowed and outlives the call. FUTEX_WAKE does not write to memory.
        unsafe {
            libc::syscall(libc::SYS_futex, self.bell.as_ptr(), libc::FUTEX_WAKE, i32::MAX);
        }
    }
}

/// A model of the kernel's futex for the model checker: the comparison and the start of the sleep are a single step with respect
/// to a wake, and there is no spurious wake.
#[cfg(loom)]
mod model {
    use super::{Doorbell, Ordering};
    use std::time::Duration;

    #[derive(Debug, Default)]
    pub struct Queue {
        lock: loom::sync::Mutex<()>,
        sleepers: loom::sync::Condvar,
    }

    impl Doorbell {
        pub(super) fn futex_wait(&self, expected: u32, _limit: Duration) {
            let guard = self.queue.lock.lock().unwrap();
            if self.bell.load(Ordering::Relaxed) == expected {
                drop(self.queue.sleepers.wait(guard).unwrap());
            }
        }

        pub(super) fn futex_wake(&self) {
            let _guard = self.queue.lock.lock().unwrap();
            self.queue.sleepers.notify_all();
        }
    }
}

#[cfg(all(test, not(loom)))]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::AtomicBool;

    #[test]
    fn a_ring_before_the_sleep_is_not_lost() {
        let bell = Doorbell::new();
        let token = bell.arm();
        bell.wake();
        bell.sleep(token, Duration::MAX);
        bell.disarm();
        assert_eq!(bell.bell.load(Ordering::Relaxed), 1);
    }

    #[test]
    fn whoever_sleeps_is_rung_for_once() {
        let bell = Doorbell::new();
        let rings = || bell.bell.load(Ordering::Relaxed);
        let first = bell.arm();
        assert!(bell.wake() && bell.wake() && bell.wake());
        assert_eq!(rings(), 1);
        // Another thread of the process arms before the first thread has run.
        let second = bell.arm();
        assert!(bell.wake() && bell.wake());
        assert_eq!(rings(), 2);
        for token in [first, second] {
            bell.sleep(token, Duration::MAX);
            bell.disarm();
        }
        assert!(!bell.wake());
        assert_eq!(rings(), 2);
    }

    #[test]
    fn nobody_is_rung_for_when_nobody_sleeps() {
        let bell = Doorbell::new();
        bell.wake();
        assert_eq!(bell.bell.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_sleeper_is_woken_by_what_is_published() {
        let bell = Arc::new(Doorbell::new());
        let ready = Arc::new(AtomicBool::new(false));
        let waker = {
            let (bell, ready) = (bell.clone(), ready.clone());
            std::thread::spawn(move || {
                ready.store(true, Ordering::Release);
                bell.wake();
            })
        };
        while !ready.load(Ordering::Acquire) {
            let token = bell.arm();
            if !ready.load(Ordering::Acquire) {
                bell.sleep(token, Duration::MAX);
            }
            bell.disarm();
        }
        waker.join().unwrap();
    }
}

#[cfg(all(test, loom))]
mod models {
    use super::*;
    use loom::sync::Arc;
    use std::sync::atomic::Ordering::Relaxed;

    fn wait(bell: &Doorbell, ready: impl Fn() -> bool) {
        while !ready() {
            let token = bell.arm();
            if !ready() {
                bell.sleep(token, Duration::MAX);
            }
            bell.disarm();
        }
    }

    /// Checks that `sleepers` threads see the events of two wakers, where each waker may leave the ring to the other waker.
    fn everybody_hears_of_both(sleepers: usize, preemptions: usize) {
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(preemptions);
        model.check(move || {
            let bell = Arc::new(Doorbell::new());
            let flags = Arc::new([AtomicU32::new(0), AtomicU32::new(0)]);
            let mut threads = Vec::new();
            for i in 0..2 {
                let (bell, flags) = (bell.clone(), flags.clone());
                threads.push(loom::thread::spawn(move || {
                    flags[i].store(1, Relaxed);
                    bell.wake();
                }));
            }
            for _ in 1..sleepers {
                let (bell, flags) = (bell.clone(), flags.clone());
                threads.push(loom::thread::spawn(move || {
                    wait(&bell, || flags[1].load(Relaxed) == 1);
                }));
            }
            wait(&bell, || flags.iter().all(|flag| flag.load(Relaxed) == 1));
            threads.into_iter().for_each(|thread| thread.join().unwrap());
        });
    }

    #[test]
    fn loom_a_waker_may_leave_the_ring_to_another() {
        everybody_hears_of_both(1, 2);
    }

    /// Lanes of a process, each behind a lock of its own, with one doorbell. A thread counts itself as a sleeper of the other lane
    /// before it looks there. A sibling that moves this lane rings if it finds a sleeper, and a peer's message needs no lock.
    #[test]
    fn loom_whoever_moves_a_lane_wakes_its_sleepers() {
        use loom::sync::Mutex;
        struct ModelLane {
            sleepers: u32,
            moved: bool,
        }
        let mut model = loom::model::Builder::new();
        model.preemption_bound = Some(3);
        model.check(|| {
            let bell = Arc::new(Doorbell::new());
            let lane = Arc::new(Mutex::new(ModelLane { sleepers: 0, moved: false }));
            let message = Arc::new(AtomicU32::new(0));
            let sibling = {
                let (bell, lane) = (bell.clone(), lane.clone());
                loom::thread::spawn(move || {
                    let mut lane = lane.lock().unwrap();
                    lane.moved = true;
                    if lane.sleepers > 0 {
                        bell.ring();
                    }
                })
            };
            let peer = {
                let (bell, message) = (bell.clone(), message.clone());
                loom::thread::spawn(move || {
                    message.store(1, Relaxed);
                    bell.wake();
                })
            };
            let arrived = || message.load(Relaxed) == 1;
            while !(arrived() && lane.lock().unwrap().moved) {
                let token = bell.arm();
                let moved = {
                    let mut lane = lane.lock().unwrap();
                    lane.sleepers += 1;
                    lane.moved
                };
                if !(arrived() && moved) {
                    bell.sleep(token, Duration::MAX);
                }
                lane.lock().unwrap().sleepers -= 1;
                bell.disarm();
            }
            sibling.join().unwrap();
            peer.join().unwrap();
        });
    }

    #[test]
    fn loom_a_ring_is_for_all_who_sleep() {
        everybody_hears_of_both(2, 2);
    }
}
