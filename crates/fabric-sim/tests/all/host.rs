//! Threads, computing, interrupts and signals of a rank, at times computed by hand.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use weft_fabric::{Counter, Fabric, FabricExt, Head, Region, RemoteRead, Sge, Work, until};
use weft_fabric_sim::{HostCounts, InterruptEvent, Machine, RunOutcome, Sim, SimOptions};
use weft_fabric_sim::{Stopped, WaitBehaviour, machine::SchedulerPolicy, run, units::*};

const US: u64 = MICROSECOND;
const MS: u64 = 1000 * US;

/// Returns a LogGP machine (a send: 0.5 us, then 2 us; a read: 0.5 us, then 4 us and 1000 MB/s) with interrupts of 5 us, signals
/// of 3 us and switches of 2 us.
fn machine(policy: SchedulerPolicy, slice_us: f64, cores: usize) -> Rc<Machine> {
    let mut machine = Machine::load("loggp").unwrap();
    machine.host.interrupt = Time(5 * US);
    machine.host.signal = Time(3 * US);
    machine.scheduler.policy = policy;
    machine.scheduler.slice = Time::from_us(slice_us);
    machine.scheduler.switch = Time(2 * US);
    machine.scheduler.cores.0 = cores;
    Rc::new(machine)
}

fn fifo(cores: usize) -> Rc<Machine> {
    machine(SchedulerPolicy::Fifo, 100_000.0, cores)
}

/// Runs one rank. Returns its result and the counts of its threads.
fn alone<T, F: Future<Output = T> + 'static>(
    machine: &Rc<Machine>,
    program: impl Fn(Sim) -> F,
) -> (T, HostCounts) {
    let mut outcome = run(machine, SimOptions::new(1), program).unwrap();
    (outcome.results[0].take().unwrap(), outcome.hosts[0])
}

#[test]
fn computing_ends_later_by_what_takes_the_core() {
    let (end, counts) = alone(&fifo(1), |sim| async move {
        let helper = sim.clone();
        sim.spawn(1, async move {
            for _ in 0..2 {
                helper.sleep(10 * US).await;
                helper.charge(Work::Compute(4 * US));
            }
        });
        sim.compute(100 * US).await;
        sim.clock()
    });
    // The helper starts, works at 12 to 18 and 28 to 34: three visits, each with two switches.
    assert_eq!(end, (100 + 2 * 4 + 6 * 2) * US);
    assert_eq!(counts, HostCounts { interrupts: 0, signals: 0, switches: 6 });
}

#[test]
fn computing_ends_later_by_its_handlers() {
    let (times, counts) = alone(&fifo(2), |sim| async move {
        let handled = Rc::new(RefCell::new(Vec::new()));
        let (main, helper, times) = (sim.thread(), sim.clone(), handled.clone());
        let handler = sim.clone();
        sim.on_signal(move || {
            times.borrow_mut().push(handler.clock());
            handler.charge(Work::Compute(7 * US));
        });
        sim.spawn(0, async move {
            for _ in 0..2 {
                helper.sleep(10 * US).await;
                helper.signal(main);
                // This signal is merged with the pending one.
                helper.signal(main);
            }
        });
        sim.compute(100 * US).await;
        handled.borrow_mut().push(sim.clock());
        handled.take()
    });
    assert_eq!(times, [13 * US, 23 * US, 114 * US]);
    assert_eq!(counts, HostCounts { interrupts: 0, signals: 2, switches: 0 });
}

/// Lets main and another thread of equal priority compute 25 us each. Returns the times at which each ended, and at which main
/// learned of the other's end.
fn two_equals(machine: &Rc<Machine>) -> ([u64; 3], HostCounts) {
    alone(machine, |sim| async move {
        let (done, over) = (sim.notify(), Rc::new(Cell::new(0)));
        let (other, ring, time) = (sim.clone(), done.clone(), over.clone());
        sim.spawn(0, async move {
            other.compute(25 * US).await;
            time.set(other.clock());
            ring.ring();
        });
        sim.compute(25 * US).await;
        let mine = sim.clock();
        done.wait().await;
        [mine, over.get(), sim.clock()]
    })
}

#[test]
fn equal_threads_take_turns_in_slices() {
    // main 0-10, other 12-22, main 24-34, other 36-46, main 48-53, other 55-60, main 62.
    let (times, counts) = two_equals(&machine(SchedulerPolicy::RoundRobin, 10.0, 1));
    assert_eq!(times, [53 * US, 60 * US, 62 * US]);
    assert_eq!(counts.switches, 6);
}

#[test]
fn equal_threads_run_to_their_end_under_fifo_and_beside_each_other_on_two_cores() {
    let (times, counts) = two_equals(&fifo(1));
    assert_eq!(times, [25 * US, 52 * US, 54 * US]);
    assert_eq!(counts.switches, 2);
    let (times, counts) = two_equals(&fifo(2));
    assert_eq!(times, [25 * US, 25 * US, 25 * US]);
    assert_eq!(counts.switches, 0);
}

#[test]
fn a_lower_thread_waits_and_a_higher_one_does_not() {
    let (times, _) = alone(&fifo(1), |sim| async move {
        let times = Rc::new(RefCell::new(Vec::new()));
        for priority in [-1, 0, 1, 2] {
            let (sim, times) = (sim.clone(), times.clone());
            sim.clone().spawn(priority, async move {
                times.borrow_mut().push((priority, sim.clock()));
                sim.charge(Work::Compute(US));
            });
        }
        sim.compute(20 * US).await;
        let end = sim.clock();
        sim.sleep(100 * US).await;
        (end, times.take())
    });
    // 2 at 2-3, 1 at 5-6, main 8-28, then the threads that do not preempt main.
    assert_eq!(times.0, 28 * US);
    assert_eq!(times.1, [(2, 2 * US), (1, 5 * US), (0, 30 * US), (-1, 33 * US)]);
}

/// Measures the lateness of a helper after each of its sleeps of 1 ms, while another thread computes.
fn lateness(policy: SchedulerPolicy, priority: i32) -> Vec<(u64, u64)> {
    let (late, _) = alone(&machine(policy, 100_000.0, 1), |sim| async move {
        let late = Rc::new(RefCell::new(Vec::new()));
        let (helper, times) = (sim.clone(), late.clone());
        sim.spawn(priority, async move {
            loop {
                let due = helper.clock() + MS;
                helper.sleep(MS).await;
                times.borrow_mut().push((due, helper.clock() - due));
            }
        });
        sim.compute(2000 * MS).await;
        late.take()
    });
    late
}

#[test]
fn the_dynamic_scheduler_is_prompt_only_after_a_while() {
    let late = lateness(SchedulerPolicy::Dynamic, 0);
    // Main computes to the end of its first slice, and the helper starts at 100.002 ms. Then the helper is late by the rest of
    // main's slice, which goes from 100.004 to 200.004 ms.
    assert_eq!(late[0], (101 * MS + 2 * US, 99 * MS + 4 * US));
    let prompt = late.iter().position(|&(_, late)| late == 2 * US).unwrap();
    // Main falls below the helper when its sleep average is below 400 ms. The average begins with 500 ms and loses a fifth of the
    // first slice and a quarter of each other slice: after five slices, at 500 ms, main is below.
    assert_eq!(prompt, 4);
    assert!((500 * MS..502 * MS).contains(&late[prompt].0), "{:?}", late[prompt]);
    assert!(late[..prompt].iter().all(|&(_, late)| late > 90 * MS));
    assert!(late[prompt..].iter().all(|&(_, late)| late == 2 * US));
    assert!(late.len() > 1400);
}

#[test]
fn real_time_policies_and_a_high_priority_are_prompt_from_the_beginning() {
    for (policy, priority) in [
        (SchedulerPolicy::Fifo, 1),
        (SchedulerPolicy::RoundRobin, 1),
        (SchedulerPolicy::Dynamic, 19),
    ] {
        let late = lateness(policy, priority);
        assert!(late.iter().all(|&(_, late)| late == 2 * US), "{policy:?}");
    }
    assert!(lateness(SchedulerPolicy::Fifo, 0).is_empty(), "an equal waits for ever");
}

#[test]
fn a_blocked_signal_waits_for_unblocking() {
    let (times, counts) = alone(&fifo(2), |sim| async move {
        let times = Rc::new(RefCell::new(Vec::new()));
        let (main, helper, handled) = (sim.thread(), sim.clone(), times.clone());
        let handler = sim.clone();
        sim.on_signal(move || {
            handled.borrow_mut().push(handler.clock());
            handler.charge(Work::Compute(7 * US));
        });
        sim.block_signals();
        sim.spawn(0, async move {
            helper.sleep(10 * US).await;
            helper.signal(main);
        });
        sim.compute(50 * US).await;
        times.borrow_mut().push(sim.clock());
        sim.unblock_signals();
        times.borrow_mut().push(sim.clock());
        sim.compute(10 * US).await;
        times.borrow_mut().push(sim.clock());
        times.take()
    });
    assert_eq!(times, [50 * US, 50 * US, 57 * US, 67 * US]);
    assert_eq!(counts.signals, 1);
}

#[test]
fn a_signal_wakes_a_sleeper_and_waits_for_a_core() {
    let (times, _) = alone(&fifo(1), |sim| async move {
        let times = Rc::new(RefCell::new(Vec::new()));
        let (main, helper, handled) = (sim.thread(), sim.clone(), times.clone());
        let handler = sim.clone();
        sim.on_signal(move || handled.borrow_mut().push(handler.clock()));
        sim.spawn(1, async move {
            helper.signal(main);
            helper.charge(Work::Compute(40 * US));
        });
        sim.sleep(200 * US).await;
        times.borrow_mut().push(sim.clock());
        times.take()
    });
    // Sent at 2, due at 5; the helper keeps the core until 42. Main is back at 44, and sleeps on.
    assert_eq!(times, [44 * US, 200 * US]);
}

// ---- a rendezvous, as the document has it ------------------------------------------------------

const BYTES: usize = 500_000;

/// Head of the messages that announce data to be read.
const START: Head = Head([1, 0, 0]);

/// Way in which data are fetched while the program computes.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Design {
    /// No fetch: the program reads after it has computed.
    None,
    /// A helper signals the main thread, which reads.
    Signal,
    /// A helper reads.
    Helper,
}

/// Takes the messages that have come, and reads the data that they announce.
fn fetch(sim: &Sim, region: &Region, done: Counter) {
    while let Some(message) = sim.receive(None) {
        if message.head == START {
            sim.read(1, &RemoteRead::new(Sge::phantom(BYTES), region.at(0), Some(done))).unwrap();
        }
        sim.release(message);
    }
}

/// Lets rank 1 announce its data at 100 us; rank 0 computes for `time`, then waits for the data.
fn rendezvous(
    machine: &Rc<Machine>,
    options: SimOptions,
    design: Design,
    time: u64,
) -> Result<RunOutcome<()>, Stopped> {
    let shared: Rc<RefCell<Option<Region>>> = Rc::default();
    run(machine, options, |sim| {
        let shared = shared.clone();
        async move {
            if sim.rank() == 1 {
                *shared.borrow_mut() = Some(sim.allocate(BYTES).unwrap());
                sim.charge(Work::Compute(100 * US));
                sim.send(0, START, Sge::EMPTY, None);
                return;
            }
            let done = sim.counters().allocate();
            let read = {
                let (sim, shared) = (sim.clone(), shared.clone());
                move || fetch(&sim, shared.borrow().as_ref().unwrap(), done)
            };
            if design != Design::None {
                let (main, helper, read) = (sim.thread(), sim.clone(), read.clone());
                sim.on_signal(read.clone());
                // The highest priority, if main computes; the same as main's, if main spins.
                sim.spawn(i32::from(time > 0), async move {
                    loop {
                        helper.sleep_for_event(InterruptEvent::Solicited).await;
                        match design {
                            Design::Signal => helper.signal(main),
                            _ => read(),
                        }
                    }
                });
                if time == 0 {
                    sim.sleep(US).await;
                }
            }
            sim.compute(time).await;
            if design == Design::None {
                read();
            }
            until(&sim, done, 1).await.unwrap();
        }
    })
}

#[test]
fn a_read_that_a_handler_posts_goes_on_beside_the_computation() {
    let ends = |design| {
        let outcome = rendezvous(&fifo(1), SimOptions::new(2), design, 1000 * US).unwrap();
        (outcome.ends[0], outcome.hosts[0])
    };
    // No overlap: 1000, then a read of 0.5 + 4 + 500.
    assert_eq!(ends(Design::None), (1_504_500_000, HostCounts::default()));
    // Four switches and the post; the read is done at 617.
    let counts = HostCounts { interrupts: 1, signals: 1, switches: 4 };
    assert_eq!(ends(Design::Signal), (1_008_500_000, counts));
    let counts = HostCounts { interrupts: 1, signals: 0, switches: 4 };
    assert_eq!(ends(Design::Helper), (1_008_500_000, counts));
}

#[test]
fn a_handler_runs_when_interrupt_switches_and_signal_are_over() {
    let outcome =
        rendezvous(&fifo(1), SimOptions::new(2).trace(), Design::Signal, 1000 * US).unwrap();
    let trace = outcome.trace.unwrap();
    let read = trace.arrows.iter().find(|a| a.bytes == BYTES).unwrap();
    // Arrival 102.5, interrupt 107.5, helper 109.5, main 111.5; the signal is due at 112.5, the
    // read is posted at 113, its reply leaves at 115 and takes 502.
    assert_eq!((read.sent, read.arrived), (115 * US, 617 * US));
    let computed: Vec<_> = trace
        .spans
        .iter()
        .filter(|s| s.rank == 0 && s.activity == weft_fabric_sim::Activity::Compute)
        .map(|s| (s.start as f64 / 1e6, s.end as f64 / 1e6))
        .collect();
    assert_eq!(computed, [(4.0, 107.5), (111.5, 112.5), (113.0, 1008.5)]);
}

#[test]
fn a_thread_that_spins_starves_an_equal_helper_on_one_core_but_not_on_two() {
    let end = |machine| {
        let outcome = rendezvous(&machine, SimOptions::new(2), Design::Helper, 0);
        outcome.map(|outcome| outcome.ends[0])
    };
    // Helper ready at 107.5, but main spins from 4 for its slice of 10 ms; the helper's read is
    // posted at 10006.5, and done 504 later.
    assert_eq!(end(machine(SchedulerPolicy::RoundRobin, 10_000.0, 1)), Ok(10_510_500_000));
    assert_eq!(end(machine(SchedulerPolicy::RoundRobin, 10_000.0, 2)), Ok(612 * US));
    let stopped = end(fifo(1));
    assert!(matches!(&stopped, Err(Stopped::Deadlock { waiting, .. }) if waiting == &[0]));
    assert_eq!(end(fifo(2)), Ok(612 * US));
}

// ---- interrupts --------------------------------------------------------------------------------

/// Returns the interrupts at rank 0 for three messages of rank 1, 100 us apart. Rank 0 first reads memory of its own, and its
/// helper sleeps for `event`.
fn interrupts(event: InterruptEvent, solicit: bool) -> u64 {
    let outcome = run(&fifo(1), SimOptions::new(2), |sim| async move {
        if sim.rank() == 1 {
            for kind in 0..3 {
                sim.charge(Work::Compute(100 * US));
                sim.send(0, Head([kind, 0, 0]), Sge::EMPTY, None);
            }
            return;
        }
        if solicit {
            sim.solicit(|head| *head == START);
        }
        let helper = sim.clone();
        sim.spawn(1, async move {
            loop {
                helper.sleep_for_event(event).await;
            }
        });
        let (own, done) = (sim.allocate(8).unwrap(), sim.counters().allocate());
        // The helper arms and sleeps.
        sim.compute(10 * US).await;
        sim.read(0, &RemoteRead::new(Sge::phantom(8), own.at(0), Some(done))).unwrap();
        sim.compute(990 * US).await;
    });
    outcome.unwrap().hosts[0].interrupts
}

#[test]
fn only_what_is_armed_and_solicited_interrupts() {
    assert_eq!(interrupts(InterruptEvent::Any, false), 4);
    assert_eq!(interrupts(InterruptEvent::Any, true), 4);
    assert_eq!(interrupts(InterruptEvent::Solicited, false), 3);
    assert_eq!(interrupts(InterruptEvent::Solicited, true), 1);
    assert_eq!(interrupts(InterruptEvent::SolicitedOrDone, false), 4);
    assert_eq!(interrupts(InterruptEvent::SolicitedOrDone, true), 2);
}

#[test]
fn a_wait_asleep_ends_an_interrupt_later_and_leaves_the_core() {
    let ends = |waiting| {
        let outcome = run(&fifo(1), SimOptions::new(2), |sim| async move {
            if sim.rank() == 1 {
                sim.charge(Work::Compute(100 * US));
                sim.send(0, START, Sge::EMPTY, None);
                return 0;
            }
            sim.set_waiting(waiting);
            let (other, ran) = (sim.clone(), Rc::new(Cell::new(0)));
            let time = ran.clone();
            sim.spawn(-1, async move {
                other.compute(10 * US).await;
                time.set(other.clock());
            });
            std::future::poll_fn(|_| match sim.receive(None) {
                Some(message) => {
                    sim.release(message);
                    std::task::Poll::Ready(())
                }
                None => std::task::Poll::Pending,
            })
            .await;
            ran.get()
        });
        let outcome = outcome.unwrap();
        (outcome.results[0].unwrap(), outcome.ends[0], outcome.hosts[0].interrupts)
    };
    assert_eq!(ends(WaitBehaviour::Spin), (0, 102_500_000, 0));
    // The other computes from 2 to 12; main is ready at 107.5 and back at 109.5.
    assert_eq!(ends(WaitBehaviour::Sleep), (12 * US, 109_500_000, 1));
}

// ---- the run as a whole ------------------------------------------------------------------------

#[test]
fn threads_that_only_spin_are_a_deadlock_and_long_computing_is_not() {
    let stuck = |limit| {
        let options = SimOptions { limit, ..SimOptions::new(1) };
        run(&machine(SchedulerPolicy::RoundRobin, 10.0, 1), options, |sim| async move {
            let other = sim.clone();
            let never = sim.counters().allocate();
            sim.spawn(0, async move { until(&other, never, 1).await.unwrap() });
            until(&sim, never, 1).await.unwrap();
        })
        .map(|outcome| outcome.ends)
    };
    assert!(matches!(stuck(u64::MAX), Err(Stopped::Deadlock { .. })));
    assert!(matches!(stuck(100 * US), Err(Stopped::Deadlock { .. })));
    let options = SimOptions { limit: 100 * US, ..SimOptions::new(1) };
    let long = run(&fifo(1), options, |sim| async move { sim.compute(200 * US).await });
    assert!(matches!(long, Err(Stopped::Limit { .. })));
}

#[test]
fn a_wait_with_a_deadline_ends_then_beside_other_threads() {
    let (end, _) = alone(&machine(SchedulerPolicy::RoundRobin, 10.0, 1), |sim| async move {
        let other = sim.clone();
        sim.spawn(0, async move { other.compute(1000 * US).await });
        let never = sim.counters().allocate();
        let deadline = sim.after(95 * US);
        until(&sim, never, 1).before(deadline).await.unwrap_err();
        sim.clock()
    });
    // The slices are 10 and 2 to switch: main has the core from 72 to 82 and again from 96.
    assert_eq!(end, 96 * US);
}

#[test]
fn a_rank_dies_with_its_threads() {
    let death = weft_fabric_sim::Death::Rank(0);
    let options = SimOptions { deaths: vec![(50 * US, death)], ..SimOptions::new(2) };
    let ran = Rc::new(Cell::new(0));
    let outcome = run(&fifo(1), options, |sim| {
        let ran = ran.clone();
        async move {
            let other = sim.clone();
            sim.spawn(1, async move {
                loop {
                    other.sleep(8 * US).await;
                    ran.set(ran.get() + [1, 1000][other.rank()]);
                }
            });
            sim.compute(100 * US).await;
        }
    })
    .unwrap();
    assert_eq!(outcome.results, [None, Some(())]);
    // The helper of rank 0 wakes every 10 us, until the rank dies. A wake at rank 1 counts a thousand.
    assert_eq!(ran.get() % 1000, 4);
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let once = |seed| {
        let options = SimOptions { jitter: Time(20 * US), ..SimOptions::new(2).seed(seed).trace() };
        let machine = machine(SchedulerPolicy::Dynamic, 50.0, 1);
        let outcome = rendezvous(&machine, options, Design::Signal, 1000 * US).unwrap();
        (outcome.ends, outcome.hosts, outcome.counts, outcome.trace)
    };
    assert_eq!(once(3), once(3));
    assert_ne!(once(3).3, once(4).3);
}
