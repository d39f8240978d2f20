//! Waiting and sleeping.

use super::rank::{ConformanceRank, sge};
use std::cell::Cell;
use std::future::Future;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};
use weft_fabric::wait::Sleep;
use weft_fabric::{
    Fabric, FabricExt, FaultCause, FetchAdd, FlagKind, GroupId, Head, RemoteFlag, RemoteRead,
    RemoteWrite, Sge, until,
};

/// Duration after which a sleep was not ended by a ring.
const LIMIT: Duration = Duration::from_secs(30);

/// Checks that a wait whose deadline has passed ends with [`FaultCause::TimedOut`], unless its counter has reached the value. Then
/// the wait ends well, however late.
pub fn a_deadline_ends_a_wait(rank: &ConformanceRank) {
    let counter = rank.fabric.counters().allocate();
    let value = rank.fabric.counters().value(counter);
    let cx = &mut Context::from_waker(Waker::noop());
    let past = rank.fabric.now();
    let mut wait = pin!(until(&rank.fabric, counter, value + 1).before(past));
    assert_eq!(wait.as_mut().poll(cx), Poll::Ready(Err(FaultCause::TimedOut.into())));
    let mut wait = pin!(until(&rank.fabric, counter, value + 1));
    assert_eq!(wait.as_mut().poll(cx), Poll::Pending);
    rank.fabric.counters().add(counter, 1);
    assert_eq!(wait.as_mut().poll(cx), Poll::Ready(Ok(())));
    let mut late = pin!(until(&rank.fabric, counter, value + 1).before(past));
    assert_eq!(late.as_mut().poll(cx), Poll::Ready(Ok(())), "what has been reached is no fault");
}

/// Sleeps whenever there is nothing to do, without spinning. This is the hardest case for wake-ups.
fn sleep_until(rank: &ConformanceRank, ready: impl FnMut() -> bool) {
    sleep_at(&*rank.fabric.sleeper(), rank, ready);
}

fn sleep_at(sleeper: &dyn Sleep, rank: &ConformanceRank, mut ready: impl FnMut() -> bool) {
    let mut ready = || {
        while rank.fabric.progress() {}
        ready()
    };
    while !ready() {
        let token = sleeper.arm();
        let found = ready();
        if !found {
            let start = Instant::now();
            sleeper.sleep(token, LIMIT);
            assert!(start.elapsed() < LIMIT, "a wake-up was lost, or a rank failed");
        }
        sleeper.disarm();
        if found {
            return;
        }
    }
}

/// Passes a token around the ranks as message, flag, immediate, atomic and (if none are lost) datagram. All other ranks sleep, or
/// are about to, at every step.
pub fn sleepers_are_woken_by_everything(rank: &ConformanceRank) {
    const LAPS: u64 = 300;
    let fabric = &rank.fabric;
    let to = (rank.rank() + 1) % rank.size();
    let region = fabric.allocate(64).unwrap();
    let (flag, added) =
        (fabric.flag(&region, 0, FlagKind::Waking), fabric.flag(&region, 8, FlagKind::Waking));
    let flag_at = rank.gather_addresses(flag.remote.at);
    let added_at = rank.gather_addresses(added.remote.at);
    let imm = fabric.immediate(3);
    let counters = fabric.counters();
    let mut scratch = [0; 8];
    let result = sge(&mut scratch);
    let posted = Cell::new(0u64);
    let pass = |what: u64, lap: u64| {
        posted.set(posted.get() + 1);
        match what {
            0 => {
                fabric.send(to, Head([lap, 0, 0]), Sge::EMPTY, None);
            }
            1 => {
                let name = RemoteFlag { at: flag_at[to], waking: true };
                fabric
                    .write_flag(
                        to,
                        &RemoteWrite::new(Sge::EMPTY, flag_at[to], None),
                        &name.with(lap),
                    )
                    .unwrap();
            }
            2 => fabric.write_imm(to, &RemoteWrite::new(Sge::EMPTY, flag_at[to], None), 3).unwrap(),
            _ => rank.complete(|done| {
                fabric.fetch_add(to, &FetchAdd { target: added_at[to], operand: 1, result, done })
            }),
        }
    };
    let wait = |what: u64, lap: u64| match what {
        0 => sleep_until(rank, || match fabric.receive(None) {
            Some(message) => {
                assert_eq!(message.head.0[0], lap);
                fabric.release(message);
                true
            }
            None => false,
        }),
        1 => sleep_until(rank, || counters.value(flag.local) >= lap),
        2 => sleep_until(rank, || counters.value(imm) >= lap),
        _ => sleep_until(rank, || counters.value(added.local) >= lap),
    };
    for lap in 1..=LAPS {
        for what in (0..4).filter(|&what| what != 2 || fabric.facets().immediates.is_some()) {
            if rank.rank() == 0 {
                pass(what, lap);
                wait(what, lap);
            } else {
                wait(what, lap);
                pass(what, lap);
            }
        }
    }
    let kinds = if fabric.facets().immediates.is_some() { 4 } else { 3 };
    assert_eq!(posted.get(), kinds * LAPS);
    rank.barrier();
    a_full_peer_wakes_its_sender(&*fabric.sleeper(), rank);
    datagrams_wake(rank);
    rank.barrier();
    fabric.withdraw(region);
}

/// Checks that a sleep without limit lasts while nothing comes, so that a sleeping rank takes no processor. Naps of a millisecond
/// are allowed.
pub fn a_sleep_without_limit_lasts(rank: &ConformanceRank) {
    const TIME: Duration = Duration::from_millis(100);
    /// Maximum number of sleeps per millisecond that passed, which may be more than `TIME` on a loaded machine.
    const MOST: u128 = 2;
    if rank.fabric.facets().simulated.is_some() {
        // Simulated ranks do not sleep: time goes on.
        return;
    }
    let quiet = || while rank.fabric.progress() {};
    for place in [rank.fabric.sleeper(), rank.fabric.helper()] {
        rank.barrier();
        quiet();
        let over = AtomicBool::new(false);
        let count = || {
            let mut rounds = 0u128;
            while !over.load(Ordering::SeqCst) {
                let token = place.arm();
                if !over.load(Ordering::SeqCst) {
                    place.sleep(token, Duration::MAX);
                    rounds += 1;
                }
                place.disarm();
            }
            rounds
        };
        let start = Instant::now();
        let (rounds, passed) = std::thread::scope(|scope| {
            let thread = scope.spawn(count);
            std::thread::sleep(TIME);
            over.store(true, Ordering::SeqCst);
            let passed = start.elapsed();
            while !thread.is_finished() {
                place.ring();
                std::thread::yield_now();
            }
            (thread.join().expect("it does not panic"), passed)
        });
        let most = MOST * passed.as_millis() + rank.size() as u128;
        assert!(rounds <= most, "{rounds} sleeps in {passed:?}");
    }
    rank.barrier();
}

/// Checks that a helper is woken by solicited messages, by completed reads, and by room for operations that were kept back. (No
/// promise is made that nothing else wakes it.)
pub fn helpers_are_woken_by_what_is_theirs(rank: &ConformanceRank) {
    const LAPS: u64 = 300;
    let fabric = &rank.fabric;
    let place = &*fabric.helper();
    let to = (rank.rank() + 1) % rank.size();
    let region = fabric.allocate(64).unwrap();
    let from = rank.gather_addresses(region.remote);
    let mut scratch = [0; 8];
    let into = sge(&mut scratch);
    for lap in 1..=LAPS {
        let pass = || {
            fabric.send_solicited(to, Head([lap, 0, 0]), Sge::EMPTY, None);
        };
        if rank.rank() == 0 {
            pass();
        }
        sleep_at(place, rank, || match fabric.receive(None) {
            Some(message) => {
                assert_eq!(message.head.0[0], lap);
                fabric.release(message);
                true
            }
            None => false,
        });
        let (done, before) = rank.completion();
        fabric.read(to, &RemoteRead::new(into, from[to], done)).unwrap();
        let counters = fabric.counters();
        sleep_at(place, rank, || counters.value(done.unwrap()) > before);
        if rank.rank() != 0 {
            pass();
        }
    }
    rank.barrier();
    a_full_peer_wakes_its_sender(place, rank);
    fabric.withdraw(region);
}

/// Checks that a sender whose messages found no room sleeps until the receiver has made some.
fn a_full_peer_wakes_its_sender(place: &dyn Sleep, rank: &ConformanceRank) {
    let last = rank.size() - 1;
    let other = if rank.rank() == last { 0 } else { last };
    let len = rank.fabric.capabilities(other).send_max;
    let messages = 500;
    let (done, before) = rank.completion();
    let mut payload = vec![1; len];
    if rank.rank() == 0 && last != 0 {
        let mut later = 0;
        for i in 0..messages {
            let (head, data) = (Head([i, 0, 0]), sge(&mut payload));
            let posted = rank.fabric.send_solicited(last, head, data, done);
            later += u64::from(posted == weft_fabric::PostOutcome::Later);
        }
        let counters = rank.fabric.counters();
        sleep_at(place, rank, || counters.value(done.unwrap()) >= before + later);
    } else if rank.rank() == last {
        for i in 0..if last == 0 { 0 } else { messages } {
            sleep_at(place, rank, || match rank.fabric.receive(Some(0)) {
                Some(message) => {
                    assert_eq!((message.head.0[0], message.payload.len()), (i, len));
                    rank.fabric.release(message);
                    true
                }
                None => false,
            });
        }
    }
    rank.barrier();
}

/// Checks that a datagram wakes its receivers. The sender repeats it until all have answered.
fn datagrams_wake(rank: &ConformanceRank) {
    if rank.fabric.capabilities(0).multicast_max == 0 || rank.size() == 1 {
        return;
    }
    let group = GroupId(3);
    rank.fabric.join(group);
    rank.barrier();
    let mut into = [0; 8];
    let into = sge(&mut into);
    if rank.rank() == 0 {
        let mut answers = 0;
        rank.until(|| {
            rank.fabric.multicast(group, Sge::EMPTY).unwrap();
            std::thread::sleep(Duration::from_millis(1));
            while let Some(message) = rank.fabric.receive(None) {
                rank.fabric.release(message);
                answers += 1;
            }
            answers == rank.size() - 1
        });
    } else {
        sleep_until(rank, || rank.fabric.receive_multicast(into).is_some());
        rank.fabric.send(0, Head::default(), Sge::EMPTY, None);
    }
    rank.barrier();
}
