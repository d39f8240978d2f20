//! Every interleaving of the helper, the program's thread and a sender, within loom's bounds.

use super::super::Doorbell;
use super::*;
use loom::cell::UnsafeCell;
use loom::sync::atomic::AtomicU32;
use loom::sync::{Arc, Condvar, Mutex};

/// The state that the model's threads share: `seen` is the state of the library, and `messages` the state of the network.
struct All {
    helper: HelperHandle,
    place: Doorbell,
    messages: AtomicU32,
    seen: UnsafeCell<u32>,
}

impl All {
    fn new() -> Arc<All> {
        let (helper, place) = (HelperHandle::new(), Doorbell::new());
        let (messages, seen) = (AtomicU32::new(0), UnsafeCell::new(0));
        Arc::new(All { helper, place, messages, seen })
    }

    /// Touches the state that only one side may touch at a time. Returns true once the message has arrived.
    fn look(&self) -> bool {
        let sent = self.messages.load(Ordering::Acquire);
        // SAFETY: the hand-over gives access to only one side at a time, so the pointer is the only access. The model checker
        // verifies this.
        self.seen.with_mut(|seen| unsafe { *seen = sent });
        sent == 1
    }
}

/// Checks a peer that sends while the main thread enters and leaves. The side that sees the message ends the helper. If neither
/// side sees it, the helper sleeps for ever, and the checker reports a deadlock.
#[test]
fn loom_a_message_is_seen_by_the_main_thread_or_the_helper() {
    check(&[true], 3);
}

/// Checks the same if the main thread first leaves without outstanding operations.
#[test]
fn loom_a_helper_that_is_not_wanted_is_announced_when_it_is() {
    check(&[false, true], 2);
}

/// Checks a peer that sends and a helper that signals. The handler runs on the main thread, either while the main thread is
/// outside, or late, when it has entered again. The side that sees the message ends the helper.
#[test]
fn loom_a_message_is_seen_by_the_handler_or_by_who_leaves() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(|| {
        let all = All::new();
        let signalled = Arc::new((Mutex::new(false), Condvar::new()));
        let helper = {
            let (all, signalled) = (all.clone(), signalled.clone());
            let signal = move || {
                *signalled.0.lock().unwrap() = true;
                signalled.1.notify_one();
            };
            loom::thread::spawn(move || {
                all.helper.run_by(&all.place, || HelperTurn::Signal, || false, signal);
            })
        };
        let peer = {
            let all = all.clone();
            loom::thread::spawn(move || {
                all.messages.fetch_add(1, Ordering::Release);
                all.place.wake();
            })
        };
        let saw = std::cell::Cell::new(false);
        let look = || saw.set(saw.get() | all.look());
        let handler = || {
            all.helper.interrupt(&all.place, || {
                look();
                false
            })
        };
        all.helper.enter();
        // A signal that arrives late.
        if std::mem::replace(&mut *signalled.0.lock().unwrap(), false) {
            handler();
        }
        let left = || {
            look();
            false
        };
        all.helper.leave(&all.place, || true, left);
        while !saw.get() {
            let mut signal = signalled.0.lock().unwrap();
            while !*signal {
                signal = signalled.1.wait(signal).unwrap();
            }
            *signal = false;
            drop(signal);
            handler();
        }
        all.helper.stop(&all.place);
        peer.join().unwrap();
        helper.join().unwrap();
    });
}

/// Checks the same for a library that a lock protects: a thread of the program leaves with outstanding operations. The side that
/// sees the message ends the helper, under the lock or outside.
#[test]
fn loom_a_helper_under_a_lock_sees_the_message_and_ends() {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(|| {
        let all = All::new();
        let lock = Arc::new(Mutex::new(()));
        let helper = {
            let (all, lock) = (all.clone(), lock.clone());
            loom::thread::spawn(move || {
                let alone = |work: &mut dyn FnMut()| {
                    let _held = lock.lock().unwrap();
                    work();
                };
                let work = || {
                    if all.look() {
                        all.helper.stop(&all.place);
                    }
                    false
                };
                all.helper.run_locked(&all.place, alone, || true, work);
            })
        };
        let peer = {
            let all = all.clone();
            loom::thread::spawn(move || {
                all.messages.fetch_add(1, Ordering::Release);
                all.place.wake();
            })
        };
        let mut saw = false;
        let held = lock.lock().unwrap();
        all.helper.leave_locked(&all.place, || {
            saw = all.look();
            false
        });
        drop(held);
        if saw {
            all.helper.stop(&all.place);
        }
        peer.join().unwrap();
        helper.join().unwrap();
    });
}

fn check(leaves: &'static [bool], preemptions: usize) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.check(move || {
        let all = All::new();
        let helper = {
            let all = all.clone();
            let work = {
                let all = all.clone();
                move || {
                    if all.look() {
                        all.helper.stop(&all.place);
                    }
                    // True would only add a round.
                    false
                }
            };
            loom::thread::spawn(move || all.helper.run(&all.place, work))
        };
        let peer = {
            let all = all.clone();
            loom::thread::spawn(move || {
                all.messages.fetch_add(1, Ordering::Release);
                all.place.wake();
            })
        };
        let mut saw = false;
        for &wanted in leaves {
            all.helper.enter();
            let look = || {
                saw |= all.look();
                false
            };
            all.helper.leave(&all.place, || wanted, look);
        }
        if saw {
            all.helper.stop(&all.place);
        }
        peer.join().unwrap();
        helper.join().unwrap();
    });
}
