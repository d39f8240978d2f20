//! Transfers within a node that processors carry: who is busy, for how long, and who helps whom.

use std::cell::RefCell;
use std::rc::Rc;
use weft_fabric::{Fabric, FabricExt, Head, RemoteRead, Sge, Work, until};
use weft_fabric_sim::machine::MeasuredTransfer;
use weft_fabric_sim::units::{Picoseconds, Rate, Time};
use weft_fabric_sim::{Machine, Sim, SimOptions, run};

const LEN: usize = 100_000;
const US: Picoseconds = 1_000_000;

/// A node of two ranks. A transfer of [`LEN`] bytes takes 10 us, 20 us without help, and a read of shared memory 4 us.
fn machine(is_busy: bool) -> Rc<Machine> {
    let mut machine =
        Machine::load_with("ndr", &[("ranks_per_node", "2"), ("nodes", "1")]).unwrap();
    let transfer = |us| vec![MeasuredTransfer { bytes: LEN, time: Time::from_us(us) }];
    let local = &mut machine.local;
    (local.overhead, local.latency) = (Time(0), Time::from_us(1.0));
    local.bandwidth = Rate::from_mb_per_s(10_000.0);
    (local.transfers, local.unaided, local.reads) = (transfer(10.0), transfer(20.0), transfer(4.0));
    local.busy = is_busy;
    Rc::new(machine)
}

/// Lets time pass for a rank. A rank with threads would not be delayed by others.
async fn pass_until(sim: &Sim, time: Picoseconds) {
    sim.charge(Work::Compute(time - sim.clock()));
    sim.catch_up().await;
}

/// Start of a read, by the local time of the reader.
#[derive(Clone, Copy)]
enum ReadStart {
    Never,
    At(Picoseconds),
    /// As `At`, while other ranks may be at an earlier time.
    Ahead(Picoseconds),
}

/// Lets both ranks read [`LEN`] bytes from each other: of private memory, each at its own time. Returns the times of the ends.
fn reads(machine: &Rc<Machine>, starts: [ReadStart; 2]) -> [Picoseconds; 2] {
    let all = Rc::new(RefCell::new(Vec::new()));
    let outcome = run(machine, SimOptions::new(2), |sim: Sim| {
        let all = all.clone();
        all.borrow_mut().push(sim.expose(Sge::phantom(LEN)).unwrap().remote);
        let start = starts[sim.rank()];
        async move {
            match start {
                ReadStart::Never => return sim.clock(),
                ReadStart::At(start) => pass_until(&sim, start).await,
                ReadStart::Ahead(start) => sim.charge(Work::Compute(start - sim.clock())),
            }
            let (peer, done) = (1 - sim.rank(), sim.counters().allocate());
            let from = all.borrow()[peer];
            sim.read(peer, &RemoteRead::new(Sge::phantom(LEN), from, Some(done))).unwrap();
            until(&sim, done, 1).await.unwrap();
            sim.clock()
        }
    });
    let ends: Vec<_> = outcome.unwrap().results.into_iter().map(Option::unwrap).collect();
    [ends[0], ends[1]]
}

#[test]
fn an_owner_that_waits_helps_with_a_read() {
    let machine = machine(true);
    let poll = machine.host.poll.0;
    let [end, _] = reads(&machine, [ReadStart::At(100 * US), ReadStart::Never]);
    assert_eq!(end, 100 * US + 11 * US + poll);
    // Rank 1 computes until 104 us, so that the first 4 us have a fifth of the read of rank 0, and it would end at 112 us. Then rank 1 reads,
    // and the last 8 us become 16 us. At 120 us rank 1 has 4 us of 20 us left, which are 2 us with help.
    let [first, second] = reads(&machine, [100, 104].map(|us| ReadStart::At(us * US)));
    assert_eq!(first, 120 * US, "the end of the delayed read");
    assert_eq!(second, 104 * US + (16 + 2 + 1) * US + poll);
}

#[test]
fn a_read_is_not_delayed_by_a_read_before_it() {
    let machine = machine(true);
    let poll = machine.host.poll.0;
    // Rank 0 is ahead: its read begins later in virtual time than the read of rank 1, for which rank 0 is busy.
    let ends = reads(&machine, [150, 104].map(|us| ReadStart::Ahead(us * US)));
    assert_eq!(ends, [150 + 10 + 1, 104 + 20 + 1].map(|us| us * US + poll));
}

#[test]
fn transfers_do_not_delay_each_other_if_processors_do_not_carry_them() {
    let machine = machine(false);
    let poll = machine.host.poll.0;
    // A latency there, and another back with the bytes.
    let ends = reads(&machine, [100, 104].map(|us| ReadStart::At(us * US)));
    assert_eq!(ends, [100 * US, 104 * US].map(|start| start + 12 * US + poll));
}

#[test]
fn a_receiver_carries_messages_one_after_the_other() {
    let ends = [true, false].map(|is_busy| {
        let machine = machine(is_busy);
        let outcome = run(&machine, SimOptions::new(2), |sim: Sim| async move {
            for _ in 0..3 {
                if sim.rank() == 0 {
                    let _ = sim.send(1, Head::default(), Sge::phantom(LEN / 2), None);
                }
            }
            pass_until(&sim, 1000 * US).await;
            let before = sim.clock();
            while let Some(message) = sim.receive(None) {
                sim.release(message);
            }
            sim.clock() - before
        });
        outcome.unwrap().results[1].unwrap()
    });
    assert_eq!(ends, [3 * 5 * US, 0]);
}

#[test]
fn reads_of_shared_memory_need_no_help() {
    let machine = machine(true);
    let all = Rc::new(RefCell::new(Vec::new()));
    let outcome = run(&machine, SimOptions::new(2), |sim: Sim| {
        let all = all.clone();
        all.borrow_mut().push(sim.allocate(LEN).unwrap().remote);
        async move {
            pass_until(&sim, 100 * US).await;
            let done = sim.counters().allocate();
            let from = all.borrow()[1 - sim.rank()];
            let read = RemoteRead::new(Sge::phantom(LEN), from, Some(done));
            sim.read(1 - sim.rank(), &read).unwrap();
            until(&sim, done, 1).await.unwrap();
            sim.clock()
        }
    });
    let end = 100 * US + 5 * US + machine.host.poll.0;
    assert!(outcome.unwrap().results.into_iter().all(|found| found == Some(end)));
}

/// Staging costs the time of its own list, if the machine has the list, and the time of a copy otherwise.
#[test]
fn staging_takes_the_time_of_lines_that_another_rank_has_read() {
    let charged = |machine: &Rc<Machine>, work| {
        let outcome = run(machine, SimOptions::new(2), |sim: Sim| async move {
            sim.charge(work);
            sim.clock()
        });
        outcome.unwrap().results[0].unwrap()
    };
    let plain = machine(true);
    assert_eq!(charged(&plain, Work::Stage(LEN)), charged(&plain, Work::Copy(LEN)));
    let mut rewriting = Machine::clone(&plain);
    rewriting.local.writes = vec![MeasuredTransfer { bytes: LEN, time: Time::from_us(7.0) }];
    let rewriting = Rc::new(rewriting);
    let call = plain.host.call.0;
    assert_eq!(charged(&rewriting, Work::Stage(LEN)), call + 7 * US);
    assert_eq!(charged(&rewriting, Work::Stage(LEN / 2)), call + 7 * US / 2);
    assert_eq!(charged(&rewriting, Work::Copy(LEN)), charged(&plain, Work::Copy(LEN)));
    assert_eq!(charged(&rewriting, Work::Stage(0)), 0);
}
