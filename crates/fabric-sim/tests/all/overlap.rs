//! The library's own rendezvous on hosts with threads: which thread fetches a message while its receiver computes. The designs
//! are those of the Rendezvous document, over the real point-to-point code.

use std::rc::Rc;
use weft_fabric::Sge;
use weft_fabric::wait::WaitPolicy;
use weft_fabric_sim::machine::SchedulerPolicy;
use weft_fabric_sim::units::{MICROSECOND, Time};
use weft_fabric_sim::{HostCounts, InterruptEvent, Machine, Sim, SimOptions, run};
use weft_p2p::{MessageTarget, ProtocolLimits, ReceiveSource, SendMode, Want};
use weft_process::{Active, Comm, Engine, Group};

const US: u64 = MICROSECOND;
/// Half a millisecond on the wire.
const BYTES: usize = 500_000;

fn machine(policy: SchedulerPolicy) -> Rc<Machine> {
    let mut machine = Machine::load("loggp").unwrap();
    machine.host.interrupt = Time(5 * US);
    machine.host.signal = Time(3 * US);
    machine.scheduler.policy = policy;
    machine.scheduler.switch = Time(2 * US);
    Rc::new(machine)
}

/// Progress of the library while its caller computes.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Design {
    /// No progress: `no-async`.
    None,
    /// A helper thread runs the engine on every event: `existing-async`.
    Helper,
    /// The library's own helper, as on real machines: woken by solicited messages, and given the engine by hand-over.
    Own,
    /// A helper signals the main thread, which runs the engine: `new-async`.
    Signal,
}

/// Starts the helper of `design` with this priority.
fn help(sim: &Sim, engine: &Rc<Engine<Sim>>, design: Design, priority: i32) {
    let (main, helper, engine) = (sim.thread(), sim.clone(), engine.clone());
    let moved = engine.clone();
    let progress = move || {
        moved.progress();
    };
    match design {
        Design::None => {}
        Design::Helper => {
            sim.spawn(priority, async move {
                loop {
                    helper.sleep_for_event(InterruptEvent::Any).await;
                    progress();
                }
            });
        }
        Design::Own => {
            let own = engine.clone();
            engine.helped_by(move || {
                let work = own.clone();
                helper.help(priority, move || work.help());
            });
            engine.want_helper();
        }
        Design::Signal => {
            sim.on_signal(progress);
            sim.spawn(priority, async move {
                loop {
                    helper.sleep_for_event(InterruptEvent::Solicited).await;
                    helper.signal(main);
                }
            });
        }
    }
}

/// Lets rank 0 post a receive, compute 1000 us and wait; rank 1 sends after 100 us.
fn receiver(design: Design) -> (f64, HostCounts) {
    let outcome = run(&machine(SchedulerPolicy::Fifo), SimOptions::new(2), |sim| {
        let engine = Engine::new(sim.clone(), WaitPolicy::new(true), ProtocolLimits::default());
        let comm = Comm::world_of(&engine, Group::new(vec![0, 1]));
        let (context, tag) = (comm.context(), 7);
        engine.clone().run(async move {
            let endpoint = engine.endpoint();
            if engine.rank() == 1 {
                sim.compute(100 * US).await;
                let target = MessageTarget { context, peer: 0, rank: 1, tag };
                let id = endpoint.isend(target, Sge::phantom(BYTES), SendMode::Standard);
                let id = id.expect("a rendezvous");
                comm.finished(Active::Send { id, _piece: None }).await.unwrap();
                return;
            }
            help(&sim, &engine, design, 1);
            let source = ReceiveSource::Rank { rank: 1, peer: 1 };
            let id = endpoint.irecv(&Want { context, source, tag: Some(tag) }, Sge::phantom(BYTES));
            sim.compute(1000 * US).await;
            let status = comm.finished(Active::Receive { id, unpack: None }).await.unwrap();
            assert_eq!(status.bytes, BYTES as u64);
        })
    })
    .unwrap();
    (outcome.ends[0] as f64 / US as f64, outcome.hosts[0])
}

#[test]
fn the_library_overlaps_with_a_helper_and_not_without() {
    let (none, counts) = receiver(Design::None);
    // After computing, a read of 0.5 + 4 + 500, and the costs of matching and of the end of the rendezvous.
    assert!((1504.5..1506.0).contains(&none), "{none}");
    assert_eq!(counts, HostCounts::default());

    let (signal, counts) = receiver(Design::Signal);
    assert!((1008.5..1010.0).contains(&signal), "{signal}");
    assert_eq!(counts, HostCounts { interrupts: 1, signals: 1, switches: 4 });

    // The completion of the read interrupts too.
    let (helper, counts) = receiver(Design::Helper);
    assert!((1012.5..1014.0).contains(&helper), "{helper}");
    assert_eq!(counts, HostCounts { interrupts: 2, signals: 0, switches: 6 });
}

#[test]
fn the_librarys_own_helper_overlaps_and_leaves_a_waiting_main_thread_alone() {
    // The offer and the end of the read interrupt, as in the existing design. The helper also sends the end of the rendezvous.
    let (own, counts) = receiver(Design::Own);
    assert!((1012.5..1014.0).contains(&own), "{own}");
    assert_eq!(counts, HostCounts { interrupts: 2, signals: 0, switches: 6 });

    // Eager messages disturb no computation. A main thread inside the library is interrupted for at most one offer.
    let outcome = run(&machine(SchedulerPolicy::Fifo), SimOptions::new(2), |sim| {
        let engine = Engine::new(sim.clone(), WaitPolicy::new(true), ProtocolLimits::default());
        let comm = Comm::world_of(&engine, Group::new(vec![0, 1]));
        let (context, tag) = (comm.context(), 7);
        engine.clone().run(async move {
            let endpoint = engine.endpoint();
            for bytes in [8, BYTES, BYTES, BYTES] {
                if engine.rank() == 1 {
                    let target = MessageTarget { context, peer: 0, rank: 1, tag };
                    if let Some(id) =
                        endpoint.isend(target, Sge::phantom(bytes), SendMode::Standard)
                    {
                        comm.finished(Active::Send { id, _piece: None }).await.unwrap();
                    } else {
                        sim.compute(200 * US).await;
                    }
                    continue;
                }
                if bytes == 8 {
                    help(&sim, &engine, Design::Own, 1);
                    sim.compute(100 * US).await;
                    assert_eq!(sim.host_counts().interrupts, 0);
                }
                let source = ReceiveSource::Rank { rank: 1, peer: 1 };
                let want = Want { context, source, tag: Some(tag) };
                let id = endpoint.irecv(&want, Sge::phantom(bytes));
                comm.finished(Active::Receive { id, unpack: None }).await.unwrap();
            }
        })
    })
    .unwrap();
    assert_eq!(outcome.hosts[0].interrupts, 1, "{:?}", outcome.hosts[0]);
}

/// Measures the iterations in which rank 0 asks for a message, computes 1000 us and waits for the message, in microseconds.
fn iterations(policy: SchedulerPolicy, priority: i32, count: usize) -> Vec<f64> {
    let outcome = run(&machine(policy), SimOptions::new(2), |sim| {
        let engine = Engine::new(sim.clone(), WaitPolicy::new(true), ProtocolLimits::default());
        let comm = Comm::world_of(&engine, Group::new(vec![0, 1]));
        let (context, me) = (comm.context(), engine.rank() as u32);
        engine.clone().run(async move {
            let endpoint = engine.endpoint();
            let peer = 1 - me as usize;
            let target = MessageTarget { context, peer, rank: me, tag: 0 };
            let source = ReceiveSource::Rank { rank: peer as u32, peer };
            let want = Want { context, source, tag: None };
            let send = |bytes| match endpoint.isend(target, Sge::phantom(bytes), SendMode::Standard)
            {
                Some(id) => Active::Send { id, _piece: None },
                None => Active::Done(Default::default()),
            };
            let receive = |bytes| {
                let id = endpoint.irecv(&want, Sge::phantom(bytes));
                Active::Receive { id, unpack: None }
            };
            if me == 0 {
                help(&sim, &engine, Design::Signal, priority);
            }
            let mut times = Vec::new();
            for _ in 0..count {
                let start = sim.clock();
                if me == 1 {
                    comm.finished(receive(0)).await.unwrap();
                    comm.finished(send(BYTES)).await.unwrap();
                } else {
                    // The document's design: no signals inside the library.
                    sim.block_signals();
                    let data = receive(BYTES);
                    comm.finished(send(0)).await.unwrap();
                    sim.unblock_signals();
                    sim.compute(1000 * US).await;
                    sim.block_signals();
                    comm.finished(data).await.unwrap();
                }
                times.push((sim.clock() - start) as f64 / US as f64);
            }
            times
        })
    })
    .unwrap();
    outcome.results.into_iter().next().flatten().unwrap()
}

#[test]
fn overlap_comes_with_time_under_the_dynamic_scheduler() {
    // The document's figure 8. An iteration that does not overlap takes half a millisecond more.
    let overlaps = |time: &f64| *time < 1020.0;
    let times = iterations(SchedulerPolicy::Dynamic, 0, 1000);
    let first = times.iter().position(overlaps).unwrap();
    let late = times.iter().rposition(|time| !overlaps(time)).unwrap();
    assert!(first > 100, "{first}");
    // Main falls below its helper after five slices of 100 ms (see `host/policy.rs`).
    let from: f64 = times[..=late].iter().sum();
    assert!((499_000.0..502_000.0).contains(&from), "{from} us");
    assert_eq!(times[late + 1..].iter().filter(|time| overlaps(time)).count(), 999 - late);
    for policy in [SchedulerPolicy::Fifo, SchedulerPolicy::RoundRobin] {
        assert!(iterations(policy, 1, 100).iter().all(overlaps), "{policy:?}");
    }
}
