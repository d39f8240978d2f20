use super::*;
use crate::measure::messages::interrupts;
use crate::measure::{first, world};
use weft_fabric_sim::{HostCounts, SimOptions};

const BYTES: usize = 1 << 20;

fn machine() -> Rc<Machine> {
    Rc::new(Machine::load("rendezvous").unwrap())
}

/// Receives `bytes` bytes at rank 1 from rank 0, which sends later. Returns the counts of rank 1's threads, and the time in
/// microseconds at which rank 1 ends. `when` selects when rank 1 computes: after or before it posts the receive, or never.
fn receiver(
    machine: &Rc<Machine>,
    design: Progress,
    bytes: usize,
    when: When,
) -> (HostCounts, f64) {
    let outcome = world(machine, SimOptions::new(2), limits(), |rank| {
        let program = DesignProgram::new(rank, design, machine);
        async move {
            program.begin().await?;
            let start = program.sim().clock();
            if program.rank.comm.rank() == 0 {
                program.compute(100 * MICROSECOND).await;
                let sent = program.send(bytes, 1);
                program.finish(sent).await?;
                return Ok(0.0);
            }
            let work = 2000 * MICROSECOND;
            if when == When::Before {
                program.compute(work).await;
            }
            let asked = program.receive(bytes, 0);
            if when == When::After {
                program.compute(work).await;
            }
            program.finish(asked).await?;
            Ok((program.sim().clock() - start) as f64 / MICROSECOND as f64)
        }
    });
    let outcome = outcome.unwrap();
    first(&outcome).unwrap();
    let time = outcome.results[1].clone().unwrap().unwrap();
    (outcome.hosts[1], time)
}

#[derive(Clone, Copy, PartialEq)]
enum When {
    Before,
    After,
    Never,
}

#[test]
fn designs_are_interrupted_as_often_as_they_say() {
    let of = |design| interrupts(&machine(), BYTES, design).unwrap();
    assert_eq!(of(Progress::None), 0.0);
    assert_eq!((of(Progress::Locked), of(Progress::Spinning)), (3.0, 3.0));
    assert_eq!((of(Progress::Signal), of(Progress::SignalTwice)), (1.0, 2.0));
    // The message that ends a rendezvous is not sent solicited.
    assert_eq!(of(Progress::Handover), 2.0);
}

#[test]
fn signals_are_taken_only_while_a_receive_is_posted_and_the_program_computes() {
    let machine = under(&registered(&machine()), SchedulerPolicy::RoundRobin);
    let signals = |bytes, when| receiver(&machine, Progress::Signal, bytes, when).0.signals;
    assert_eq!(signals(BYTES, When::After), 1);
    assert_eq!(signals(BYTES, When::Before), 0);
    assert_eq!(signals(BYTES, When::Never), 0);
    assert_eq!(signals(4096, When::After), 0, "no rendezvous");
}

#[test]
fn what_overlaps_ends_with_the_computation() {
    let machine = under(&registered(&machine()), SchedulerPolicy::RoundRobin);
    let transfer = BYTES as f64 / 1400.0;
    for (design, overlaps) in [
        (Progress::None, false),
        (Progress::Locked, true),
        (Progress::Signal, true),
        (Progress::SignalTwice, true),
        (Progress::Handover, true),
    ] {
        let (_, time) = receiver(&machine, design, BYTES, When::After);
        let alone = if overlaps { 2000.0 } else { 2000.0 + transfer };
        assert!((alone..alone + 50.0).contains(&time), "{design:?}: {time}");
        // If the receive comes last, there is no overlap.
        let (_, time) = receiver(&machine, design, BYTES, When::Before);
        assert!(time > 2000.0 + transfer, "{design:?}: {time}");
    }
}

#[test]
fn a_helper_waits_for_the_lock_of_a_thread_that_polls() {
    let waits = |design, cores| {
        let mut machine =
            Machine::clone(&under(&registered(&machine()), SchedulerPolicy::RoundRobin));
        machine.scheduler.cores = Count(cores);
        receiver(&Rc::new(machine), design, BYTES, When::Never)
    };
    let (none, _) = waits(Progress::None, 1);
    assert_eq!(none, HostCounts::default());
    let (mutex, quick) = waits(Progress::Locked, 1);
    // The start takes two switches. When the sender offers the payload, there are two switches to the helper and back, and two more
    // for the lock. The program ends before the helper notices the end of the read.
    assert_eq!((mutex.interrupts, mutex.switches), (2, 2 + 4));
    assert!(quick < 1000.0, "{quick}");
    // On one core, the spinning helper has the higher priority, so the thread that holds the lock would never run.
    let (_, beside) = waits(Progress::Spinning, 2);
    assert!(beside < 1000.0, "{beside}");
}
