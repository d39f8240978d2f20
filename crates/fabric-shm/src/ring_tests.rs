//! Tests of a box on the heap, with one thread and with two.

use super::*;
use weft_fabric::CopyModel;

fn copies() -> Copies {
    Copies::new(std::sync::Arc::new(CopyModel::GENERIC))
}

fn sge(bytes: &mut [u8]) -> Sge {
    // SAFETY: the `Sge` is used only while the caller's statement borrows `bytes`.
    unsafe { Sge::new(bytes.as_mut_ptr(), bytes.len()) }
}

fn ends(heap: &Heap) -> (Producer, Consumer, MessageRing) {
    // SAFETY: there is one pair of ends for each heap, and it is dropped before the heap.
    let ring = unsafe { heap.ring() };
    let producer = Producer::new(ring);
    producer.refresh();
    (producer, Consumer::new(ring), ring)
}

fn pattern(i: usize, len: usize) -> Vec<u8> {
    (0..len).map(|k| (i * 31 + k) as u8).collect()
}

#[test]
fn every_length_arrives_unharmed_around_the_ring() {
    let heap = Heap::new(8, 1024);
    let (producer, consumer, ring) = ends(&heap);
    for i in 0..if cfg!(miri) { 100 } else { 2000 } {
        let len = i * 7 % (producer.send_max() + 1);
        let mut sent = pattern(i, len);
        if !producer.push(&copies(), Head([i as u64, 0, 0]), sge(&mut sent)) {
            producer.refresh();
            assert!(producer.push(&copies(), Head([i as u64, 0, 0]), sge(&mut sent)));
        }
        let arrival = consumer.peek().unwrap().unwrap();
        assert_eq!(arrival.head.0[0], i as u64);
        assert_eq!(arrival.bytes(&ring), sent);
        let _ = consumer.pop(len);
        assert!(consumer.peek().unwrap().is_none());
    }
}

#[test]
fn a_full_box_refuses_and_takes_again_when_told() {
    for len in [8, 200] {
        let heap = Heap::new(8, 1024);
        let (producer, consumer, _) = ends(&heap);
        let mut sent = 0;
        while producer.push(&copies(), Head::default(), sge(&mut pattern(0, len))) {
            sent += 1;
        }
        assert_eq!(sent, if len == 8 { 8 } else { 4 });
        producer.refresh();
        assert!(!producer.push(&copies(), Head::default(), sge(&mut pattern(0, len))));
        let told = (0..sent).filter(|_| consumer.pop(len)).count();
        assert!(told >= 1, "the producer would wait for ever");
        producer.refresh();
        assert!(producer.push(&copies(), Head::default(), sge(&mut pattern(0, len))));
    }
}

#[test]
fn a_length_that_cannot_be_is_found() {
    let heap = Heap::new(8, 1024);
    let (producer, consumer, _) = ends(&heap);
    assert!(producer.push(&copies(), Head::default(), Sge::EMPTY));
    heap.lines[0].stamp.store(1 << 32 | 257, Ordering::Release);
    assert_eq!(consumer.peek().unwrap_err(), Corrupt);
}

#[test]
fn a_lying_consumer_cannot_make_the_producer_overrun_its_ring() {
    let heap = Heap::new(8, 1024);
    let (producer, _, _) = ends(&heap);
    heap.taken.lines.store(u64::MAX, Ordering::Release);
    heap.taken.bytes.store(u64::MAX, Ordering::Release);
    producer.refresh();
    for _ in 0..8 {
        assert!(producer.push(&copies(), Head::default(), Sge::EMPTY));
    }
    assert!(!producer.push(&copies(), Head::default(), Sge::EMPTY));
}

#[test]
fn two_threads_exchange_everything() {
    let messages = if cfg!(miri) { 60 } else { 100_000 };
    let heap = Heap::new(16, 2048);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            // SAFETY: this is the only producer of the ring, and `heap` outlives it.
            let producer = Producer::new(unsafe { heap.ring() });
            for i in 0..messages {
                let mut sent = pattern(i, i * 13 % 513);
                while !producer.push(&copies(), Head([i as u64; 3]), sge(&mut sent)) {
                    producer.refresh();
                    std::thread::yield_now();
                }
            }
        });
        scope.spawn(|| {
            // SAFETY: this is the only consumer of the ring, and `heap` outlives it.
            let ring = unsafe { heap.ring() };
            let consumer = Consumer::new(ring);
            for i in 0..messages {
                let arrival = loop {
                    match consumer.peek().unwrap() {
                        Some(arrival) => break arrival,
                        None => std::thread::yield_now(),
                    }
                };
                assert_eq!(arrival.head, Head([i as u64; 3]));
                assert_eq!(arrival.bytes(&ring), pattern(i, i * 13 % 513));
                let _ = consumer.pop(arrival.payload.len());
            }
        });
    });
}
