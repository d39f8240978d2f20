//! Models for loom: every interleaving (with few preemptions) of the lock-free parts.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p weft-fabric-shm --release loom`

use crate::multicast::{MulticastSlot, MulticastSpeaker, SLOTS, SlotReader};
use crate::ring::{Consumer, Heap, Producer};
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;
use std::sync::Arc;
use std::time::Duration;
use weft_fabric::wait::{Doorbell, Sleep};
use weft_fabric::{Copies, CopyModel, GroupId, Head, Sge};

fn check(preemptions: usize, model: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(model);
}

fn sge(bytes: &mut [u8]) -> Sge {
    // SAFETY: the `Sge` is used only while the caller's statement borrows `bytes`.
    unsafe { Sge::new(bytes.as_mut_ptr(), bytes.len()) }
}

/// Sends and receives messages of the lengths `lens` through `lines` lines and `bytes` bytes. Both sides sleep on doorbells if
/// there is no room or nothing to read. loom reports a lost wake-up as a deadlock. It also reports a read of a cell that races with
/// a write.
fn exchange(lens: &'static [usize], lines: usize, bytes: usize) {
    let heap = Arc::new(Heap::new(lines, bytes));
    let bells = Arc::new([Doorbell::new(), Doorbell::new()]);
    let sender = {
        let (heap, bells) = (heap.clone(), bells.clone());
        thread::spawn(move || {
            // SAFETY: this is the only producer of the ring, and `heap` outlives it.
            let producer = Producer::new(unsafe { heap.ring() });
            let copies = Copies::new(std::sync::Arc::new(CopyModel::GENERIC));
            for (i, &len) in (1..).zip(lens) {
                let mut payload = vec![i as u8; len];
                if !producer.push(&copies, Head([i; 3]), sge(&mut payload)) {
                    wait(&bells[0], || {
                        producer.refresh();
                        producer.push_widening(&copies, Head([i; 3]), sge(&mut payload))
                    });
                }
                bells[1].wake();
            }
        })
    };
    // SAFETY: this is the only consumer of the ring, and `heap` outlives it.
    let ring = unsafe { heap.ring() };
    let consumer = Consumer::new(ring);
    for (i, &len) in (1..).zip(lens) {
        wait(&bells[1], || consumer.peek().unwrap().is_some());
        let arrival = consumer.peek().unwrap().unwrap();
        assert_eq!(arrival.head, Head([i; 3]));
        assert_eq!(arrival.bytes(&ring), vec![i as u8; len]);
        if consumer.pop(len) {
            bells[0].wake();
        }
    }
    sender.join().unwrap();
}

/// Waits as the contract of `Sleep` demands: one look between `arm` and `sleep`, as a helper thread does.
fn wait(bell: &Doorbell, mut ready: impl FnMut() -> bool) {
    loop {
        let token = bell.arm();
        let found = ready();
        if !found {
            bell.sleep(token, Duration::MAX);
        }
        bell.disarm();
        if found {
            return;
        }
    }
}

#[test]
fn loom_small_messages_keep_to_their_lines() {
    check(2, || exchange(&[8; 3], 2, 256));
}

#[test]
fn loom_short_messages_keep_to_their_lines() {
    check(2, || exchange(&[40; 3], 2, 256));
}

#[test]
fn loom_long_messages_keep_to_their_bytes() {
    check(2, || exchange(&[100; 4], 4, 512));
}

#[test]
fn loom_a_long_message_follows_short_messages() {
    check(2, || exchange(&[8, 8, 100, 100], 2, 1024));
}

#[test]
fn loom_no_ring_of_the_doorbell_is_lost() {
    check(3, || {
        let bell = Arc::new(Doorbell::new());
        let word = Arc::new(AtomicU64::new(0));
        let wakers: Vec<_> = (0..2)
            .map(|_| {
                let (bell, word) = (bell.clone(), word.clone());
                thread::spawn(move || {
                    word.fetch_add(1, Ordering::Release);
                    bell.wake();
                })
            })
            .collect();
        wait(&bell, || word.load(Ordering::Acquire) == 2);
        wakers.into_iter().for_each(|waker| waker.join().unwrap());
    });
}

#[test]
fn loom_a_datagram_is_whole_or_lost() {
    check(3, || {
        let slots: Arc<Vec<MulticastSlot>> =
            Arc::new((0..SLOTS).map(|_| MulticastSlot::new()).collect());
        let owner = {
            let slots = slots.clone();
            thread::spawn(move || {
                let speaker = MulticastSpeaker::default();
                for i in 1..=3u8 {
                    speaker.speak(&slots, GroupId(i.into()), sge(&mut [i; 16]));
                }
            })
        };
        let listener = SlotReader::default();
        let mut last = 0;
        let mut listen = || {
            let mut into = [0; 16];
            if let Some((group, len)) = listener.listen(&slots, |_| true, sge(&mut into)) {
                assert_eq!((into, len), ([into[0]; 16], 16));
                assert_eq!(group.0, u32::from(into[0]));
                assert!(into[0] > last, "datagram {} after {last}", into[0]);
                last = into[0];
            }
        };
        listen();
        listen();
        owner.join().unwrap();
        listen();
        listen();
        assert_eq!(last, 3, "the last datagram was overrun by nobody");
    });
}
