//! Levels of a node's processors: lines and copies cost what the nearest common group of two processors says, and groups limit the
//! transfers that cross them.

use std::cell::RefCell;
use std::rc::Rc;
use weft_fabric::copies::ProcessorGroups;
use weft_fabric::{
    Fabric, FabricExt, FetchAdd, FlagKind, FlagWrite, Head, RemoteFlag, RemoteRead, RemoteWrite,
    Sge, until,
};
use weft_fabric_sim::units::Picoseconds;
use weft_fabric_sim::{Machine, Sim, SimOptions, run};

fn machine() -> Rc<Machine> {
    Rc::new(Machine::load("epyc9654").unwrap())
}

/// Runs `program` as every rank of the node. Each rank gets the address of the memory of `len` bytes of all ranks, and returns a time.
fn times<P: Future<Output = Picoseconds> + 'static>(
    len: usize,
    program: impl Fn(Sim, weft_fabric::Region, Rc<RefCell<Vec<weft_fabric::RemoteAddr>>>) -> P,
) -> Vec<Picoseconds> {
    let all = Rc::new(RefCell::new(Vec::new()));
    let outcome = run(&machine(), SimOptions::new(192), |sim: Sim| {
        let region = sim.allocate(len).unwrap();
        all.borrow_mut().push(region.remote);
        program(sim, region, all.clone())
    });
    outcome.unwrap().results.into_iter().map(Option::unwrap).collect()
}

#[test]
fn a_flag_takes_the_time_of_the_nearest_common_group() {
    let ends = times(8, |sim, region, all| async move {
        let flag = sim.flag(&region, 0, FlagKind::Waking);
        let peers = [1, 8, 24, 96];
        let me = sim.rank();
        if me == 0 {
            for &peer in &peers {
                let at = all.borrow()[peer];
                let then = FlagWrite { flag: RemoteFlag { at, waking: true }, value: 1 };
                sim.write_flag(peer, &RemoteWrite::new(Sge::EMPTY, at, None), &then).unwrap();
            }
        } else if peers.contains(&me) {
            until(&sim, flag.local, 1).await.unwrap();
        }
        sim.clock()
    });
    // Each write takes the writer 20 ns, and 8 ns or 30 ns for the line.
    let expected = [(1, 28 + 22), (8, 78 + 88), (24, 128 + 98), (96, 178 + 194)];
    for (peer, ns) in expected {
        let found = ends[peer] / 1000;
        assert!(found.abs_diff(ns) <= 1, "rank {peer}: {found} ns instead of {ns}");
    }
}

#[test]
fn atomics_on_a_line_come_one_after_the_other() {
    let ends = times(8, |sim, _, all| async move {
        let me = sim.rank();
        if me > 0 && me < 8 {
            let (target, done) = (all.borrow()[0], sim.counters().allocate());
            let mut word = [0u8; 8];
            // SAFETY: the word outlives the operation, which the wait below ends.
            let result = unsafe { Sge::new(word.as_mut_ptr(), 8) };
            let add = FetchAdd { target, operand: 1, result, done: Some(done) };
            sim.fetch_add(0, &add).unwrap();
            until(&sim, done, 1).await.unwrap();
        }
        sim.clock()
    });
    let last = ends[1..8].iter().max().unwrap() / 100;
    assert_eq!(last, 200 + 7 * 225, "seven transfers of 22.5 ns after a post of 20 ns");
}

/// Four readers of one cache's data share its link; readers of four caches do not.
#[test]
fn a_group_s_link_is_shared() {
    const BYTES: usize = 1 << 20;
    let read = |owner: fn(usize) -> usize| {
        let ends = times(BYTES, move |sim, _, all| async move {
            let me = sim.rank();
            if (96..192).contains(&me) && me % 8 == 0 && me < 96 + 8 * 8 {
                let (owner, done) = (owner(me - 96), sim.counters().allocate());
                let from = all.borrow()[owner];
                sim.read(owner, &RemoteRead::new(Sge::phantom(BYTES), from, Some(done))).unwrap();
                until(&sim, done, 1).await.unwrap();
            }
            sim.clock()
        });
        ends.into_iter().max().unwrap() as f64 / 1e6
    };
    let megabytes = BYTES as f64 / 1e6;
    let (one, spread) = (read(|_| 0), read(|reader| reader));
    // One core reads 5000 MB/s from the other socket. Eight of them pass a cache's link of 54000 MB/s, and the socket's of 32000 MB/s.
    let alone = megabytes / 5000.0 * 1e6;
    let link = 7.0 * megabytes / 32000.0 * 1e6;
    for found in [one, spread] {
        assert!(
            (found - alone - link).abs() < 2.0,
            "{found} us, {alone} alone and {link} of others"
        );
    }
}

/// The root of a broadcast copies to one rank after the other, and a rank that gathers reads from one after the other.
#[test]
fn the_processor_that_posts_copies_itself() {
    const BYTES: usize = 1 << 20;
    #[derive(Clone, Copy)]
    enum Copying {
        Writes,
        Reads,
    }
    let busy = |what: Copying, peers: usize| {
        let ends = times(BYTES, move |sim, _, all| async move {
            if sim.rank() == 0 {
                let done = sim.counters().allocate();
                for peer in 1..=peers {
                    let (at, memory) = (all.borrow()[8 * peer], Sge::phantom(BYTES));
                    match what {
                        Copying::Writes => {
                            sim.write(8 * peer, &RemoteWrite::new(memory, at, Some(done)))
                        }
                        Copying::Reads => {
                            sim.read(8 * peer, &RemoteRead::new(memory, at, Some(done)))
                        }
                    }
                    .unwrap();
                }
                let posted = sim.clock();
                until(&sim, done, peers as u64).await.unwrap();
                assert!(sim.clock() - posted < 200_000, "the copies end with their posts");
            }
            sim.clock()
        });
        ends[0] as f64
    };
    for what in [Copying::Writes, Copying::Reads] {
        // All peers are in the root's socket, where one copy takes as long as another.
        let ratio = busy(what, 11) / busy(what, 1);
        assert!((ratio - 11.0).abs() < 0.05, "eleven copies take {ratio} times as long as one");
    }
}

/// A limit of a group delays the processors that copy through it, too.
#[test]
fn limits_delay_the_processors_that_copy() {
    const BYTES: usize = 1 << 20;
    let ends = times(BYTES, |sim, _, all| async move {
        let me = sim.rank();
        if me < 96 {
            let at = all.borrow()[me + 96];
            sim.write(me + 96, &RemoteWrite::new(Sge::phantom(BYTES), at, None)).unwrap();
            sim.catch_up().await;
        }
        sim.clock()
    });
    let megabytes = BYTES as f64 / 1e6;
    let (alone, last) = (megabytes / 5000.0 * 1e6, 95.0 * megabytes / 32000.0 * 1e6);
    let found = *ends[..96].iter().max().unwrap() as f64 / 1e6;
    assert!((found - alone - last).abs() < 2.0, "{found} us, {alone} alone and {last} of others");
}

#[test]
fn ranks_know_their_groups() {
    run(&machine(), SimOptions::new(192), |sim: Sim| async move {
        let rank = sim.rank() as u32;
        let groups =
            ProcessorGroups { core: 0, cache: rank / 8, numa: rank / 24, socket: rank / 96 };
        assert_eq!(sim.copies().groups(), groups);
        let last = ProcessorGroups { core: 0, cache: 23, numa: 7, socket: 1 };
        assert_eq!(sim.groups(191), Some(last));
    })
    .unwrap();
}

/// A message of many lines takes longer than a message of one line that follows it.
#[test]
fn short_messages_do_not_overtake_longer_ones() {
    run(&machine(), SimOptions::new(192), |sim: Sim| async move {
        let peers = [1, 8, 24, 96];
        match sim.rank() {
            0 => {
                for peer in peers {
                    sim.send(peer, Head([0, 0, 0]), Sge::phantom(1000), None);
                    sim.send(peer, Head([1, 0, 0]), Sge::EMPTY, None);
                }
            }
            me if peers.contains(&me) => {
                for number in 0..2 {
                    let message = loop {
                        match sim.receive(None) {
                            Some(message) => break message,
                            None => {
                                let later = Some(sim.after(1_000));
                                let _ =
                                    std::future::poll_fn(|cx| sim.poll_any(&[], later, cx)).await;
                            }
                        }
                    };
                    assert_eq!(message.head.0[0], number, "rank {me}");
                    sim.release(message);
                }
            }
            _ => {}
        }
    })
    .unwrap();
}

#[test]
fn levels_are_nested_and_hold_all_ranks() {
    let error = |path: &str, value: &str| {
        Machine::load_with("epyc9654", &[(path, value)]).unwrap_err().problem
    };
    assert!(error("level.1.processors", "20").contains("whole groups"));
    assert!(error("level.1.name", "core").contains("not farther"));
    assert!(error("ranks_per_node", "193").contains("192 processors for 193 ranks"));
    assert!(error("level.0.name", "tile").contains("unknown variant"));
}
