//! Tests of lanes: connections of the same ranks beside each other.

use std::time::{Duration, Instant};
use weft_bootstrap::{Bootstrap, threads};
use weft_fabric::{Fabric, Head, PostOutcome, RemoteAddr, RemoteRead, Sge};
use weft_fabric_shm::{Shm, ShmOptions};

fn sge(bytes: &mut [u8]) -> Sge {
    // SAFETY: the element is used only in calls that take the bytes at once, while they are borrowed.
    unsafe { Sge::new(bytes.as_mut_ptr(), bytes.len()) }
}

/// Runs `body` with the shared memory of each of the ranks, which can use these numbers of lanes.
fn run(lanes: &[usize], body: impl Fn(&Shm, &mut dyn Bootstrap) + Sync) {
    std::thread::scope(|scope| {
        for (mut world, &lanes) in threads(lanes.len()).into_iter().zip(lanes) {
            let body = &body;
            scope.spawn(move || {
                let options = ShmOptions { lanes, ..ShmOptions::default() };
                let shm = Shm::connect_with(&mut world, options).unwrap();
                body(&shm, &mut world);
                world.fence().unwrap();
            });
        }
    });
}

/// Sends `word` to the peer, and returns the word that the peer sends.
fn exchange(lane: &Shm, word: u64) -> u64 {
    let peer = 1 - lane.rank();
    let sent = lane.send(peer, Head([word; 3]), sge(&mut [word as u8; 40]), None);
    assert_eq!(sent, PostOutcome::Done);
    loop {
        if let Some(message) = lane.receive(None) {
            let mut got = [0; 40];
            message.payload.read(&mut got);
            assert_eq!((message.peer, got), (peer, [message.head.0[0] as u8; 40]));
            let word = message.head.0[2];
            lane.release(message);
            return word;
        }
        std::thread::yield_now();
    }
}

#[test]
fn ranks_use_as_many_lanes_as_all_of_them_can() {
    run(&[3, 2], |shm, _| {
        assert_eq!(shm.lanes(), 2);
        assert!(shm.open_lane(2).is_none() && shm.open_lane(0).is_none());
        let lane = shm.open_lane(1).unwrap();
        assert!(shm.open_lane(1).is_none() && lane.open_lane(1).is_none());
    });
    run(&[1, 4], |shm, _| assert_eq!((shm.lanes(), shm.open_lane(1).is_none()), (1, true)));
    run(&[1000], |shm, _| assert!(shm.lanes() > 1));
}

#[test]
fn a_message_stays_on_its_lane_and_waits_for_its_opening() {
    run(&[3, 3], |shm, world| {
        let peer = 1 - shm.rank();
        let first = shm.open_lane(1).unwrap();
        first.send(peer, Head([7; 3]), Sge::EMPTY, None);
        if shm.rank() == 0 {
            let second = shm.open_lane(2).unwrap();
            second.send(peer, Head([8; 3]), Sge::EMPTY, None);
        }
        world.fence().unwrap();
        assert!(shm.receive(None).is_none());
        let message = first.receive(Some(peer)).unwrap();
        assert_eq!(message.head, Head([7; 3]));
        first.release(message);
        if shm.rank() == 1 {
            let second = shm.open_lane(2).unwrap();
            let message = second.receive(None).unwrap();
            assert_eq!(message.head, Head([8; 3]));
            second.release(message);
        }
    });
}

#[test]
fn threads_use_lanes_at_the_same_time() {
    run(&[4, 4], |shm, _| {
        let lanes = [1, 2, 3].map(|lane| shm.open_lane(lane).unwrap());
        std::thread::scope(|scope| {
            for lane in lanes {
                scope.spawn(move || (1..500).for_each(|i| assert_eq!(exchange(&lane, i), i)));
            }
            (1..500).for_each(|i| assert_eq!(exchange(shm, i), i));
        });
    });
}

#[test]
fn a_lane_has_an_arena_of_its_own_that_peers_reach() {
    run(&[2, 2], |shm, world| {
        let lane = shm.open_lane(1).unwrap();
        let before = shm.allocated();
        let memory = lane.allocate(100_000).unwrap();
        assert_eq!(shm.allocated(), before);
        memory.local.fill(&[shm.rank() as u8 + 1; 100_000]);
        world.put("at", &memory.remote.words().map(u64::to_ne_bytes).concat()).unwrap();
        world.fence().unwrap();
        let peer = 1 - shm.rank();
        let bytes = world.get(peer, "at").unwrap();
        let word = |i: usize| u64::from_ne_bytes(bytes[8 * i..][..8].try_into().unwrap());
        let at = RemoteAddr::from_words(std::array::from_fn(word));
        let mut got = vec![0; 100_000];
        lane.read(peer, &RemoteRead::new(sge(&mut got), at, None)).unwrap();
        assert!(got.iter().all(|&byte| byte == peer as u8 + 1));
        world.fence().unwrap();
        lane.withdraw(memory);
    });
}

#[test]
fn a_message_on_any_lane_ends_the_sleep_of_the_rank() {
    const LONG: Duration = Duration::from_secs(30);
    run(&[2, 2], |shm, world| {
        let lane = shm.open_lane(1).unwrap();
        // The rank sleeps once as a user of lane 0, and once as a user of the other lane.
        for (sleeps, sends) in [(shm, &lane), (&lane, shm)] {
            if shm.rank() == 0 {
                let sleeper = sleeps.sleeper();
                let token = sleeper.arm();
                world.fence().unwrap();
                let began = Instant::now();
                sleeper.sleep(token, LONG);
                sleeper.disarm();
                assert!(began.elapsed() < LONG);
                let message = sends.receive(None).unwrap();
                sends.release(message);
            } else {
                world.fence().unwrap();
                std::thread::sleep(Duration::from_millis(20));
                sends.send(0, Head([1; 3]), Sge::EMPTY, None);
            }
            world.fence().unwrap();
        }
    });
}
