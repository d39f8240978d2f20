//! Tests of the helper on threads: when it works, and when it does not.

use super::super::Doorbell;
use super::*;
use std::sync::Arc;
use std::sync::mpsc;

struct All {
    helper: HelperHandle,
    place: Doorbell,
    messages: AtomicU64,
    seen: AtomicU64,
}

impl All {
    fn new() -> Arc<All> {
        let zero = || AtomicU64::new(0);
        let (helper, place) = (HelperHandle::new(), Doorbell::new());
        Arc::new(All { helper, place, messages: zero(), seen: zero() })
    }

    fn send(&self) {
        self.messages.fetch_add(1, Ordering::Release);
        self.place.wake();
    }

    /// Takes the messages that have arrived. Only one side calls this at a time.
    fn look(&self) -> bool {
        let seen = self.seen.load(Ordering::Relaxed);
        let sent = self.messages.load(Ordering::Acquire);
        self.seen.store(sent, Ordering::Relaxed);
        sent != seen
    }
}

impl All {
    /// Waits until the helper has stood back `times` times and sleeps.
    fn stands_back(&self, times: u64) {
        let back = || self.helper.counts().refusals >= times;
        while !back() || self.helper.announced.load(Ordering::Acquire) {
            std::thread::yield_now();
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn helped(all: &Arc<All>, told: Option<mpsc::Sender<u64>>) -> std::thread::JoinHandle<()> {
    let all = all.clone();
    std::thread::spawn(move || {
        let work = || {
            let moved = all.look();
            if let (true, Some(told)) = (moved, &told) {
                told.send(all.seen.load(Ordering::Relaxed)).unwrap();
            }
            moved
        };
        all.helper.run(&all.place, work);
    })
}

#[test]
fn messages_are_seen_while_the_main_thread_is_outside() {
    let all = All::new();
    let (tell, told) = mpsc::channel();
    let thread = helped(&all, Some(tell));
    all.helper.enter();
    all.helper.leave(&all.place, || true, || all.look());
    for i in 1..=if cfg!(miri) { 5 } else { 1000 } {
        all.send();
        assert_eq!(told.recv().unwrap(), i);
    }
    all.helper.stop(&all.place);
    thread.join().unwrap();
}

#[test]
fn messages_are_seen_by_who_leaves_or_by_the_helper() {
    let all = All::new();
    let thread = helped(&all, None);
    for i in 1..=if cfg!(miri) { 20 } else { 20_000u64 } {
        all.helper.enter();
        if i % 3 != 0 {
            all.send();
        }
        if i % 7 == 0 {
            std::thread::yield_now();
        }
        all.helper.leave(&all.place, || true, || all.look());
        if i % 3 == 0 {
            all.send();
        }
        while all.seen.load(Ordering::Relaxed) < i {
            std::thread::yield_now();
        }
    }
    all.helper.stop(&all.place);
    thread.join().unwrap();
    // The helper is not announced any more.
    let before = all.place.arm();
    all.place.disarm();
    all.place.wake();
    assert_eq!(all.place.arm(), before);
}

#[test]
fn who_is_turned_away_once_is_not_rung_for_again() {
    let all = All::new();
    all.helper.enter();
    let thread = helped(&all, None);
    all.stands_back(1);
    for _ in 0..100 {
        all.send();
    }
    assert_eq!(all.helper.counts(), HelperCounts { rounds: 0, refusals: 1, signals: 0 });
    all.helper.leave(&all.place, || true, || all.look());
    assert_eq!(all.seen.load(Ordering::Relaxed), 100);
    all.helper.stop(&all.place);
    thread.join().unwrap();
}

#[test]
fn nobody_rings_while_nothing_is_outstanding() {
    let all = All::new();
    let thread = helped(&all, None);
    all.stands_back(1);
    let before = all.helper.counts();
    for wanted in [false, true, false] {
        all.helper.enter();
        all.helper.leave(&all.place, || wanted, || all.look());
    }
    for _ in 0..100 {
        all.send();
    }
    std::thread::sleep(Duration::from_millis(20));
    assert_eq!((all.helper.counts(), all.seen.load(Ordering::Relaxed)), (before, 0));
    all.helper.enter();
    all.helper.leave(&all.place, || true, || all.look());
    assert_eq!(all.seen.load(Ordering::Relaxed), 100);
    all.helper.stop(&all.place);
    thread.join().unwrap();
}

#[test]
fn the_main_thread_is_signalled_in_its_turn() {
    let all = All::new();
    let (tell, told) = mpsc::channel();
    let thread = {
        let all = all.clone();
        let signal = move || tell.send(()).unwrap();
        std::thread::spawn(move || {
            let never = || panic!("the helper works");
            all.helper.run_by(&all.place, || HelperTurn::Signal, never, signal);
        })
    };
    all.stands_back(1);
    all.helper.enter();
    all.helper.leave(&all.place, || true, || all.look());
    all.send();
    told.recv().unwrap();
    assert_eq!(all.helper.counts().signals, 1);
    // The signal is late: the library is entered, and left again with the message unseen.
    all.helper.enter();
    all.helper.interrupt(&all.place, || panic!("inside"));
    all.helper.leave(&all.place, || true, || all.look());
    assert_eq!(all.seen.load(Ordering::Relaxed), 1);
    all.helper.stop(&all.place);
    thread.join().unwrap();
}

#[test]
fn a_lock_takes_the_place_of_the_hand_over() {
    let all = All::new();
    let lock = Arc::new(std::sync::Mutex::new(()));
    let thread = {
        let (all, lock) = (all.clone(), lock.clone());
        std::thread::spawn(move || {
            let alone = |work: &mut dyn FnMut()| {
                let _held = lock.lock().unwrap();
                work();
            };
            all.helper.run_locked(&all.place, alone, || true, || all.look());
        })
    };
    for i in 1..=if cfg!(miri) { 5 } else { 1000 } {
        let held = lock.lock().unwrap();
        all.send();
        drop(held);
        while all.seen.load(Ordering::Relaxed) < i {
            std::thread::yield_now();
        }
    }
    all.helper.stop(&all.place);
    thread.join().unwrap();
}
