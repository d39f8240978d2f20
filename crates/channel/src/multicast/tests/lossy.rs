//! Every payload arrives, once and in order, at any rate of loss, on shared memory and in the simulator. If nothing is lost,
//! only datagrams are sent.

use super::Planted;
use super::host::{GROUP, LIMITS, Member, payload};
use crate::multicast::{MulticastCounts, MulticastLimits, ReleaseMode, Repair};
use std::pin::pin;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};
use weft_bootstrap::threads;
use weft_fabric::{Fabric, FabricExt, Sge};
use weft_fabric_fault::{FaultPlan, FaultyFabric};
use weft_fabric_shm::Shm;
use weft_fabric_sim::units::{Chance, Time};
use weft_fabric_sim::{Chaos, SimOptions, run};
use weft_fabric_testing::machine;

const ROUNDS: u64 = 60;

async fn program<F: Fabric>(fabric: F, limits: MulticastLimits) -> MulticastCounts {
    let member = Member::new(fabric, limits, Planted::Nothing);
    let host = member.host.clone();
    member.mixed(ROUNDS).await.expect("all arrives");
    member.close().await.expect("the end");
    assert!(host.multicasts.is_empty() && host.multicasts.deadline().is_none());
    host.multicasts.counts()
}

/// Sums a count over several members.
fn sum(
    all: impl IntoIterator<Item = MulticastCounts>,
    what: impl Fn(&MulticastCounts) -> u64,
) -> u64 {
    all.into_iter().map(|counts| what(&counts)).sum()
}

fn simulated(n: usize, loss: f64, repair: Repair) -> Vec<MulticastCounts> {
    let chaos = Chaos {
        delay: Chance(0.2),
        most: Time::from_us(20.0),
        later: Chance(0.2),
        loss: Some(Chance(loss)),
        duplicate: Chance(if loss > 0.0 { 0.1 } else { 0.0 }),
    };
    let options = SimOptions::new(n).seed(n as u64).chaos(chaos);
    let outcome = run(&machine::machine(2), options, |sim| {
        program(sim, MulticastLimits { repair, ..LIMITS })
    });
    outcome.expect("no deadlock").results.into_iter().flatten().collect()
}

#[test]
fn simulated_losses_are_repaired() {
    for n in [2, 3, 8, 17] {
        for loss in [0.02, 0.3, 0.6] {
            let counts = simulated(n, loss, Repair::Unicast);
            assert_eq!(counts.len(), n);
            let repairs = sum(counts.iter().copied(), |c| c.repairs);
            if loss > 0.1 {
                assert!(repairs > 0, "{n} ranks, loss {loss}: nothing was lost");
            }
            assert_eq!(sum(counts.iter().copied(), |c| c.repairs_sent), repairs);
            assert_eq!(sum(counts, |c| c.recasts_sent + c.naks_joined), 0);
        }
    }
}

/// One answer serves all members that lack a datagram, and the answer may also be lost. No datagram is repaired by a message.
#[test]
fn simulated_losses_are_repaired_by_multicast() {
    for n in [2, 3, 8, 17] {
        for loss in [0.02, 0.3] {
            let counts = simulated(n, loss, Repair::Multicast);
            assert_eq!(counts.len(), n);
            let all = |what: fn(&MulticastCounts) -> u64| sum(counts.iter().copied(), what);
            assert_eq!(all(|c| c.repairs_sent), 0, "{n} ranks, loss {loss}");
            assert!(all(|c| c.naks_joined) <= all(|c| c.naks_heard));
            if loss > 0.1 {
                assert!(all(|c| c.repairs) > 0, "{n} ranks, loss {loss}: nothing was lost");
                assert!(all(|c| c.recasts_sent) > 0);
            }
            if n == 17 && loss > 0.1 {
                // One answer serves several members that lack the same datagram.
                assert!(all(|c| c.repairs) > all(|c| c.recasts_sent), "{counts:?}");
                assert!(all(|c| c.naks_joined) > 0);
            }
        }
    }
}

/// A member that multicast does not reach at all is finally served by messages.
#[test]
fn who_is_not_reached_by_multicast_gets_messages() {
    let counts = simulated(3, 1.0, Repair::Multicast);
    let sent = sum(counts.iter().copied(), |c| c.recasts_sent);
    let repairs = sum(counts, |c| c.repairs_sent);
    assert!(sent > 0 && repairs > 0, "{sent} multicast again, {repairs} messages");
}

#[test]
fn nothing_lost_costs_nothing() {
    // All datagrams arrive soon, so no member asks.
    const PATIENT: MulticastLimits =
        MulticastLimits { least: Duration::from_secs(1), most: Duration::from_secs(1), ..LIMITS };
    let options = SimOptions::new(5).chaos(Chaos { loss: Some(Chance(0.0)), ..Chaos::default() });
    let program = async |sim| {
        let member = Member::new(sim, PATIENT, Planted::Nothing);
        let host = member.host.clone();
        for round in 0..ROUNDS {
            member.gather_multicast(round, 0, 64).await.expect("all arrives");
            member.everyone(round, 64, 2).await.expect("all arrives");
        }
        let before = host.multicasts.counts();
        member.close().await.expect("the end");
        (host.multicasts.counts() == before).then_some(before)
    };
    let outcome = run(&machine::machine(1), options, program).expect("no deadlock");
    let messages = outcome.counts.messages;
    // The only messages are those of the gathers and of three rounds of closing.
    assert_eq!(messages, 4 * ROUNDS + 5 * 3);
    for (rank, counts) in outcome.results.into_iter().enumerate() {
        let sent = ROUNDS * if rank == 0 { 2 } else { 1 };
        let expected = MulticastCounts {
            sent,
            datagrams_sent: sent,
            datagrams: 6 * ROUNDS - sent,
            ..MulticastCounts::default()
        };
        assert_eq!(counts, Some(Some(expected)));
    }
}

#[test]
fn a_window_is_acknowledged_twice() {
    let options = SimOptions::new(3).chaos(Chaos { loss: Some(Chance(0.0)), ..Chaos::default() });
    const LONG: MulticastLimits = MulticastLimits { window: 8, ..LIMITS };
    let program = async |sim| {
        let member = Member::new(sim, LONG, Planted::Nothing);
        let host = member.host.clone();
        for round in 0..32 {
            member.broadcast(round, 0, 8).await.expect("all arrives");
        }
        member.close().await.expect("the end");
        host.multicasts.counts().acks_sent
    };
    let outcome = run(&machine::machine(1), options, program).expect("no deadlock");
    assert_eq!(outcome.results, [Some(0), Some(8), Some(8)]);
}

/// Runs broadcasts of 0 to 3000 bytes from changing roots, each acknowledged by all members, with the given loss.
fn acknowledged(n: usize, loss: f64, limits: MulticastLimits) -> Vec<MulticastCounts> {
    let chaos = Chaos {
        delay: Chance(0.2),
        most: Time::from_us(20.0),
        later: Chance(0.2),
        loss: Some(Chance(loss)),
        duplicate: Chance(if loss > 0.0 { 0.1 } else { 0.0 }),
    };
    let options = SimOptions::new(n).seed(n as u64).chaos(chaos);
    let program = move |sim| async move {
        let member = Member::new(sim, limits, Planted::Nothing);
        let host = member.host.clone();
        for round in 0..ROUNDS {
            let len = [0, 8, 1, 700, 3000, 64][round as usize % 6];
            member.acknowledged(round, round as usize / 3 % n, len).await.expect("all arrives");
        }
        member.close().await.expect("the end");
        assert!(host.multicasts.is_empty() && host.multicasts.deadline().is_none());
        host.multicasts.counts()
    };
    let outcome = run(&machine::machine(2), options, program);
    outcome.expect("no deadlock").results.into_iter().flatten().collect()
}

/// All members acknowledge every multicast, no member asks, and a root repeats multicasts that are not acknowledged.
#[test]
fn a_root_repeats_what_is_not_acknowledged() {
    for (n, loss) in [2, 3, 8, 17].into_iter().flat_map(|n| [0.02, 0.3, 0.6].map(|l| (n, l))) {
        for repair in [Repair::Unicast, Repair::Multicast] {
            let counts = acknowledged(n, loss, MulticastLimits { repair, ..LIMITS });
            let all = |what: fn(&MulticastCounts) -> u64| sum(counts.iter().copied(), what);
            assert_eq!(all(|c| c.acks_sent), ROUNDS * (n as u64 - 1), "{n} ranks, loss {loss}");
            assert_eq!(all(|c| c.naks_sent), 0);
            let repeated = match repair {
                Repair::Unicast => all(|c| c.repairs_sent),
                Repair::Multicast => all(|c| c.recasts_sent),
            };
            assert!(loss < 0.1 || repeated > 0, "{n} ranks, loss {loss}: nothing was lost");
        }
    }
}

/// Without loss, only acknowledgements are sent apart from the datagrams.
#[test]
fn nothing_is_repeated_that_is_acknowledged_in_time() {
    const PATIENT: MulticastLimits =
        MulticastLimits { least: Duration::from_secs(1), most: Duration::from_secs(1), ..LIMITS };
    let counts = acknowledged(5, 0.0, PATIENT);
    let all = |what: fn(&MulticastCounts) -> u64| sum(counts.iter().copied(), what);
    assert_eq!((all(|c| c.sent), all(|c| c.acks_sent)), (ROUNDS, 4 * ROUNDS));
    assert_eq!(all(|c| c.repairs_sent + c.recasts_sent + c.duplicates + c.dropped), 0);
}

fn block_on<F: Fabric, T>(host: &super::host::Bare<F>, future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let began = Instant::now();
    loop {
        if let Poll::Ready(value) = future.as_mut().poll(&mut Context::from_waker(Waker::noop())) {
            return value;
        }
        assert!(began.elapsed() < Duration::from_secs(60), "a hang");
        if !host.progress() {
            std::thread::yield_now();
        }
    }
}

/// Runs `body` on threads over shared memory with faults.
fn shared<T: Send>(n: usize, plan: &str, body: impl Fn(FaultyFabric<Shm>) -> T + Sync) -> Vec<T> {
    std::thread::scope(|scope| {
        let run = |mut world| {
            let (plan, body): (FaultPlan, _) = (plan.parse().expect("a plan"), &body);
            scope.spawn(move || {
                body(FaultyFabric::new(Shm::connect(&mut world).expect("connected"), plan))
            })
        };
        let all: Vec<_> = threads(n).into_iter().map(run).collect();
        all.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    })
}

#[test]
#[cfg_attr(miri, ignore = "shared memory")]
fn losses_on_shared_memory_are_repaired() {
    for repair in [Repair::Unicast, Repair::Multicast] {
        let limits = MulticastLimits { repair, ..MulticastLimits::default() };
        for (n, loss) in [2, 5].into_iter().flat_map(|n| [0.0, 0.02, 0.3, 0.6].map(|l| (n, l))) {
            let plan = format!(
                "seed=5,multicast_loss={loss},multicast_duplicate=0.1,multicast_delay=0.1,\
                 message_delay=0.1"
            );
            let counts = shared(n, &plan, |fabric| {
                let member = Member::new(fabric, limits, Planted::Nothing);
                let host = member.host.clone();
                block_on(&host, member.mixed(ROUNDS)).expect("all arrives");
                block_on(&host, member.close()).expect("the end");
                while !host.fabric.idle() {
                    host.progress();
                }
                host.multicasts.counts()
            });
            let all = |what: fn(&MulticastCounts) -> u64| sum(counts.iter().copied(), what);
            if loss >= 0.3 {
                assert!(all(|c| c.repairs) > 0, "{n} ranks, loss {loss}: nothing was lost");
            }
            let again = all(|c| c.recasts_sent) > 0;
            assert!(!again || repair == Repair::Multicast);
            assert!(again || loss < 0.3 || repair == Repair::Unicast);
        }
    }
}

/// The root's program computes. Only a thread that sleeps at the helper's doorbell gets the question.
#[test]
#[cfg_attr(miri, ignore = "shared memory")]
fn a_question_wakes_the_helper_of_a_root_that_computes() {
    let repairs = shared(3, "multicast_loss=1", |fabric| {
        let member = Member::new(fabric, MulticastLimits::default(), Planted::Nothing);
        let host = member.host.clone();
        if member.me() > 0 {
            block_on(&host, member.broadcast(0, 0, 100)).expect("all arrives");
            host.fabric.send_solicited(0, weft_fabric::Head([1, 0, 0]), Sge::EMPTY, None);
        } else {
            let data = host.buffer(&payload(0, 0, 100));
            let number = member.multicast.numbers(1);
            block_on(&host, member.multicast.send(number, data.sge(), ReleaseMode::Acknowledged))
                .expect("it is sent");
            let place = host.fabric.helper();
            while host.fabric.counters().value(host.told) < 2 {
                let token = place.arm();
                if !host.progress() {
                    place.sleep(token, Duration::from_secs(60));
                }
                place.disarm();
            }
        }
        block_on(&host, member.close()).expect("the end");
        host.multicasts.counts().repairs_sent
    });
    assert!(repairs[0] >= 2 && repairs[1..] == [0, 0], "{repairs:?}");
}

/// Datagrams of an earlier group, datagrams of foreign senders, and impossible datagrams are dropped.
#[test]
fn foreign_datagrams_are_dropped() {
    let options = SimOptions::new(2).chaos(Chaos { loss: Some(Chance(0.0)), ..Chaos::default() });
    let program = async |sim: weft_fabric_sim::Sim| {
        let host = super::host::Bare::new(sim, LIMITS);
        let first = Member::of(&host, 1, Planted::Nothing);
        first.broadcast(0, 0, 8).await.expect("all arrives");
        first.close().await.expect("the end");
        let second = Member::of(&host, 2, Planted::Nothing);
        // All members have joined.
        second.gather_multicast(1, 1, 8).await.expect("all arrives");
        if second.me() == 0 {
            let old = crate::multicast::datagram::Title {
                context: 1,
                number: 1,
                root: 0,
                len: 8,
                unit: 8,
                segment: 0,
                marked: false,
                again: false,
            };
            let liar = crate::multicast::datagram::Title { context: 2, root: 1, ..old };
            let long = crate::multicast::datagram::Title { context: 2, len: 7, ..old };
            for title in [old, liar, long] {
                let bytes = [&title.encode()[..], &[9; 8]].concat();
                host.fabric.multicast(GROUP, host.buffer(&bytes).sge()).expect("multicast");
            }
            host.fabric.multicast(GROUP, host.buffer(&[1, 2, 3]).sge()).expect("multicast");
        }
        second.broadcast(2, 0, 8).await.expect("all arrives");
        second.close().await.expect("the end");
        host.multicasts.counts().foreign
    };
    let outcome = run(&machine::machine(1), options, program).expect("no deadlock");
    assert_eq!(outcome.results, [Some(0), Some(4)]);
}

/// Root and receiver disagree about the length.
#[test]
fn another_length_is_an_error() {
    let options = SimOptions::new(2);
    let program = async |sim| {
        let member = Member::new(sim, LIMITS, Planted::Nothing);
        let number = member.multicast.numbers(1);
        let data = member.host.pool.take(if member.me() == 0 { 16 } else { 8 });
        let outcome = match member.me() {
            0 => member.multicast.send(number, data.sge(), ReleaseMode::Acknowledged).await,
            _ => member.multicast.receive(0, number, data.sge(), ReleaseMode::Acknowledged).await,
        };
        member.close().await.expect("the end");
        outcome.err()
    };
    let outcome = run(&machine::machine(1), options, program).expect("no deadlock");
    let fault = weft_fabric::Fault::truncated(0, 8, 16);
    assert_eq!(outcome.results, [Some(None), Some(Some(fault))]);
}
