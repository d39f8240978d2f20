//! The library's own rendezvous on hosts with threads: who fetches a message while its receiver
//! computes. The designs are those of the Rendezvous document, over the real point-to-point code.

use std::rc::Rc;
use weft_fabric::Sge;
use weft_fabric::wait::WaitPolicy;
use weft_fabric_sim::machine::Policy;
use weft_fabric_sim::units::{MICROSECOND, Time};
use weft_fabric_sim::{Event, HostCounts, Machine, Options, Sim, run};
use weft_p2p::{Limits, Mode, Source, Target, Want};
use weft_process::{Active, Comm, Engine, Group};

const US: u64 = MICROSECOND;
/// Half a millisecond on the wire.
const BYTES: usize = 500_000;

fn machine() -> Rc<Machine> {
    let mut machine = Machine::load("loggp").unwrap();
    machine.host.interrupt = Time(5 * US);
    machine.host.signal = Time(3 * US);
    machine.scheduler.policy = Policy::Fifo;
    machine.scheduler.switch = Time(2 * US);
    Rc::new(machine)
}

/// How the library gets on while its caller computes.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Design {
    /// Not at all: `no-async`.
    None,
    /// A helper thread runs the engine on every event: `existing-async`.
    Helper,
    /// A helper signals the main thread, which runs the engine: `new-async`.
    Signal,
}

/// Starts the helper of `design`.
fn help(sim: &Sim, engine: &Rc<Engine<Sim>>, design: Design) {
    let (main, helper, engine) = (sim.thread(), sim.clone(), engine.clone());
    let progress = move || {
        engine.progress();
    };
    match design {
        Design::None => {}
        Design::Helper => {
            sim.spawn(1, async move {
                loop {
                    helper.sleep_for_event(Event::Any).await;
                    progress();
                }
            });
        }
        Design::Signal => {
            sim.on_signal(progress);
            sim.spawn(1, async move {
                loop {
                    helper.sleep_for_event(Event::Solicited).await;
                    helper.signal(main);
                }
            });
        }
    }
}

/// Rank 0 posts a receive, computes 1000 us and waits; rank 1 sends after 100 us.
fn receiver(design: Design) -> (f64, HostCounts) {
    let outcome = run(&machine(), Options::new(2), |sim| {
        let engine = Engine::new(sim.clone(), WaitPolicy::new(true), Limits::default());
        let comm = Comm::world_of(&engine, Group::new(vec![0, 1]));
        let (context, tag) = (comm.context(), 7);
        engine.clone().run(async move {
            let endpoint = engine.endpoint();
            if engine.rank() == 1 {
                sim.compute(100 * US).await;
                let target = Target { context, peer: 0, rank: 1, tag };
                let id = endpoint.isend(target, Sge::phantom(BYTES), Mode::Standard);
                let id = id.expect("a rendezvous");
                comm.finished(Active::Send { id, _piece: None }).await.unwrap();
                return;
            }
            help(&sim, &engine, design);
            let source = Source::Rank { rank: 1, peer: 1 };
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
    // Then a read of 0.5 + 4 + 500, and what matching and the end of the rendezvous cost.
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
