//! Reliable multicast under an endpoint, on every fabric and at any rate of loss.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use weft_channel::multicast::{MulticastLimits, MulticastMember, ReleaseMode};
use weft_fabric::wait::WaitPolicy;
use weft_fabric::{Fabric, FabricExt, GroupId, Sge, boxed};
use weft_fabric_sim::units::Chance;
use weft_fabric_sim::{Chaos, SimOptions, run};
use weft_fabric_testing::world::{FabricSetup, RankBody, SETUPS, TestRank, bytes, pattern, world};
use weft_process::{Engine, Executor};

/// Broadcasts and allgathers in two groups at once, the second without rank 0. Both groups
/// share one group of the fabric.
#[derive(Default)]
struct Traffic {
    repairs: AtomicU64,
}

impl RankBody for Traffic {
    fn run<F: Fabric>(&self, rank: &TestRank<F>) {
        let (me, n) = (rank.me(), rank.size());
        let endpoint = rank.endpoint();
        let group = |id: u64, first: usize| {
            let members = (first as u32..n as u32).collect();
            let me = me.checked_sub(first)?;
            Some(MulticastMember::open(endpoint, GroupId(1), id, members, me).unwrap())
        };
        let groups: Vec<_> = [group(1, 0), group(2, 1)].into_iter().flatten().collect();
        for round in 0..12u64 {
            for (g, group) in groups.iter().enumerate() {
                let key = |root: usize| round << 32 | (g as u64) << 16 | root as u64;
                let len = [0, 1, 900, 5000, 20_000][round as usize % 5];
                let root = round as usize % group.size();
                let data = pattern(key(root), len);
                let number = group.numbers(1);
                if group.place() == root {
                    let data = rank.buffer(&data);
                    rank.block_on(group.send(number, data.sge(), ReleaseMode::Acknowledged))
                        .unwrap();
                } else {
                    let into = rank.empty(len);
                    rank.block_on(group.receive(
                        root,
                        number,
                        into.sge(),
                        ReleaseMode::Acknowledged,
                    ))
                    .unwrap();
                    assert!(bytes(&into) == data, "round {round}, {len} bytes");
                }
                let block = |r: usize| match r == group.place() {
                    true => rank.buffer(&pattern(key(r), 100)),
                    false => rank.empty(100),
                };
                let blocks: Vec<_> = (0..group.size()).map(block).collect();
                let sges: Vec<Sge> = blocks.iter().map(|block| block.sge()).collect();
                rank.block_on(group.everyone(&sges, 2)).unwrap();
                for (r, block) in blocks.iter().enumerate() {
                    assert!(bytes(block) == pattern(key(r), 100), "round {round} of {r}");
                }
            }
        }
        for group in groups {
            rank.block_on(group.close()).unwrap();
        }
        let counts = endpoint.multicasts().counts();
        self.repairs.fetch_add(counts.repairs, Ordering::Relaxed);
        assert!(endpoint.multicasts().is_empty() && endpoint.deadline().is_none());
    }
}

fn with(faults: &'static str, setup: usize) -> FabricSetup {
    FabricSetup { faults, ..SETUPS[setup] }
}

#[test]
fn multicasts_arrive_on_every_fabric() {
    for n in [2, 3, 5] {
        for setup in [0, 3, 5, 6] {
            world(n, SETUPS[setup], &Traffic::default());
        }
    }
}

#[test]
fn multicasts_arrive_at_any_rate_of_loss() {
    for n in [2, 4] {
        for setup in [0, 5] {
            let traffic = Traffic::default();
            world(n, with("seed=2,multicast_loss=0.02,multicast_duplicate=0.1", setup), &traffic);
            world(n, with("seed=3,multicast_loss=0.3,multicast_delay=0.2", setup), &traffic);
            world(n, with("seed=4,multicast_loss=0.6,message_delay=0.2", setup), &traffic);
            assert!(traffic.repairs.load(Ordering::Relaxed) > 0, "nothing was lost");
        }
    }
}

/// All datagrams are lost, and the root's program computes: only its helper hears the question.
struct Computing;

impl RankBody for Computing {
    fn run<F: Fabric>(&self, rank: &TestRank<F>) {
        let endpoint = rank.endpoint();
        let members = (0..rank.size() as u32).collect();
        let group = MulticastMember::open(endpoint, GroupId(1), 1, members, rank.me()).unwrap();
        let number = group.numbers(1);
        if rank.me() > 0 {
            let into = rank.empty(3000);
            rank.block_on(group.receive(0, number, into.sge(), ReleaseMode::Acknowledged)).unwrap();
            assert!(bytes(&into) == pattern(1, 3000));
        } else {
            let data = rank.buffer(&pattern(1, 3000));
            rank.block_on(group.send(number, data.sge(), ReleaseMode::Acknowledged)).unwrap();
            let place = endpoint.fabric().helper();
            while endpoint.multicasts().counts().repairs_sent < 2 {
                let token = place.arm();
                if !rank.engine().help() {
                    place.sleep(token, Duration::from_secs(60));
                }
                place.disarm();
            }
        }
        rank.block_on(group.close()).unwrap();
    }
}

#[test]
fn the_helper_answers_while_the_root_computes() {
    world(2, with("multicast_loss=1", 0), &Computing);
}

/// A lost datagram rings no bell: a sleeper must wake at the deadline, however long its nap may be.
struct Asleep;

impl RankBody for Asleep {
    fn nap(&self) -> Duration {
        // Longer than the limit of the hang detection.
        Duration::from_secs(70)
    }

    fn run<F: Fabric>(&self, rank: &TestRank<F>) {
        let endpoint = rank.endpoint();
        let least = Duration::from_millis(60);
        assert!(endpoint.set_multicast_limits(MulticastLimits {
            least,
            most: 8 * least,
            ..MulticastLimits::default()
        }));
        let members = (0..rank.size() as u32).collect();
        let group = MulticastMember::open(endpoint, GroupId(1), 1, members, rank.me()).unwrap();
        let number = group.numbers(1);
        if rank.me() > 0 {
            let into = rank.empty(8);
            rank.block_on(group.receive(0, number, into.sge(), ReleaseMode::Acknowledged)).unwrap();
            assert!(bytes(&into) == pattern(2, 8));
        } else {
            let data = rank.buffer(&pattern(2, 8));
            rank.block_on(group.send(number, data.sge(), ReleaseMode::Acknowledged)).unwrap();
        }
        rank.block_on(group.close()).unwrap();
    }
}

#[test]
fn a_sleeper_wakes_for_what_is_overdue() {
    world(2, with("multicast_loss=1", 0), &Asleep);
}

/// Futures as programs, with all datagrams lost: virtual time reaches the deadlines,
/// for a call that waits and for a nonblocking operation.
#[test]
fn virtual_time_reaches_what_is_overdue() {
    let chaos = Chaos { loss: Some(Chance(1.0)), ..Chaos::default() };
    let program = |sim: weft_fabric_sim::Sim| {
        let engine =
            Engine::new(boxed(sim), WaitPolicy::new(true), weft_p2p::ProtocolLimits::default());
        let inside = engine.clone();
        engine.run(async move {
            let endpoint = inside.endpoint().clone();
            let (me, n) = (inside.rank(), endpoint.fabric().size());
            let members = (0..n as u32).collect();
            let group = MulticastMember::open(&endpoint, GroupId(1), 1, members, me).unwrap();
            let beside = std::rc::Rc::new(group);
            let (first, second) = (beside.numbers(1), beside.numbers(1));
            let other = endpoint.staging().take(8);
            let data = other.sge();
            let group = beside.clone();
            let task = inside.spawn_by(Executor::Anybody, async move {
                match me {
                    1 => Ok(group.send(first, data, ReleaseMode::Acknowledged).await?),
                    _ => Ok(group.receive(1, first, data, ReleaseMode::Acknowledged).await?),
                }
            });
            let mine = endpoint.staging().take(8);
            match me {
                0 => beside.send(second, mine.sge(), ReleaseMode::Acknowledged).await.unwrap(),
                _ => {
                    beside.receive(0, second, mine.sge(), ReleaseMode::Acknowledged).await.unwrap()
                }
            }
            let counter = endpoint.arrivals();
            while !task.is_over() {
                let value = endpoint.fabric().counters().value(counter);
                let soon = endpoint.fabric().now() + Duration::from_micros(10);
                let cx = &mut std::task::Context::from_waker(std::task::Waker::noop());
                let _ = endpoint.fabric().poll_any(&[(counter, value + 1)], Some(soon), cx);
                let mut turns = 0;
                std::future::poll_fn(|_| {
                    turns += 1;
                    if turns == 1 { std::task::Poll::Pending } else { std::task::Poll::Ready(()) }
                })
                .await;
            }
            let Ok(group) = std::rc::Rc::try_unwrap(beside) else { panic!("the task is over") };
            group.close().await.unwrap();
            endpoint.multicasts().counts().repairs
        })
    };
    let machine = weft_fabric_testing::machine::machine(1);
    let outcome = run(&machine, SimOptions::new(4).chaos(chaos), program).expect("no deadlock");
    // Each member lacked the datagrams of the others.
    assert_eq!(outcome.results, [Some(1), Some(1), Some(2), Some(2)]);
}
