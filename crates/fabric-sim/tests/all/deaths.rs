//! Ranks and rails die: waits end, traffic takes another way, and nothing is lost or comes twice.

use std::future::poll_fn;
use std::task::Poll;
use weft_fabric::wait::WaitPolicy;
use weft_fabric::{
    Fabric, FabricExt, Fault, FetchAdd, FlagKind, GroupId, Head, RemoteAddr, RemoteFlag,
    RemoteRead, RemoteWrite, Sge, Work, until,
};
use weft_fabric_sim::units::{MICROSECOND, Picoseconds};
use weft_fabric_sim::{Chaos, Death, Sim, SimOptions, Stopped, explore, run};
use weft_fabric_testing::machine::machine;
use weft_p2p::ProtocolLimits;
use weft_process::{Comm, Engine, Group};

const US: Picoseconds = MICROSECOND;
/// [`SimOptions::detection`], unless set otherwise.
const DETECTION: Picoseconds = 1000 * US;

fn dying(ranks: usize, deaths: &[(Picoseconds, Death)]) -> SimOptions {
    SimOptions { deaths: deaths.to_vec(), ..SimOptions::new(ranks) }
}

fn rails(node: usize) -> [Death; 2] {
    [0, 1].map(|rail| Death::Rail { node, rail })
}

/// Waits for a counter that no rank advances.
async fn wait_in_vain(sim: &Sim) -> Result<(), Fault> {
    let counter = sim.counters().allocate();
    until(sim, counter, sim.counters().value(counter) + 1).await
}

/// Returns the next message's sender and head, or the fault.
async fn message(sim: &Sim) -> Result<(usize, Head), Fault> {
    poll_fn(|_| match (sim.receive(None), sim.fault()) {
        (Some(message), _) => {
            let seen = (message.peer, message.head);
            sim.release(message);
            Poll::Ready(Ok(seen))
        }
        (None, Some(fault)) => Poll::Ready(Err(fault)),
        (None, None) => Poll::Pending,
    })
    .await
}

fn tell(sim: &Sim, to: usize, word: u64) {
    sim.send(to, Head([word, 0, 0]), Sge::EMPTY, None);
}

// ---- ranks --------------------------------------------------------------------------------------

#[test]
fn waits_end_after_the_detection_of_a_death() {
    let died = 30 * US;
    let options = dying(4, &[(died, Death::Rank(2))]);
    let outcome = run(&machine(2), options, |sim| async move { wait_in_vain(&sim).await }).unwrap();
    let lost = Some(Err(Fault::lost(2)));
    assert_eq!(outcome.results, [lost.clone(), lost.clone(), None, lost]);
    // The waits end when the program sees the fault: `host.poll` later.
    let poll = US / 10;
    let end = died + DETECTION + poll;
    assert_eq!(outcome.ends, [end, end, 0, end]);
}

#[test]
fn what_is_posted_after_a_death_is_never_seen() {
    // The rank runs ahead of global time, and posts all messages in one poll.
    let died = 3 * US;
    let options = dying(2, &[(died, Death::Rank(0))]);
    let program = |sim: Sim| async move {
        if sim.rank() == 0 {
            for word in 0..100 {
                tell(&sim, 1, word);
            }
            return 100;
        }
        let mut seen = 0;
        while message(&sim).await.is_ok() {
            seen += 1;
        }
        seen
    };
    let outcome = run(&machine(1), options, program).unwrap();
    // One message takes 0.5 us of the sender's time.
    assert_eq!(outcome.results, [None, Some(6)]);
    assert_eq!(outcome.ends[0], 0);
}

#[test]
fn collectives_end_with_the_loss() {
    let options = dying(6, &[(200 * US, Death::Rank(3))]);
    let group = Group::new((0..6).collect::<Vec<_>>());
    let outcome = run(&machine(2), options, |sim: Sim| {
        let engine = Engine::new(sim.clone(), WaitPolicy::new(true), ProtocolLimits::default());
        let comm = Comm::world_of(&engine, group.clone());
        engine.run(async move {
            let mut barriers = 0;
            while comm.barrier().await.is_ok() {
                barriers += 1;
            }
            (barriers > 3, sim.fault())
        })
    })
    .unwrap();
    for (rank, result) in outcome.results.into_iter().enumerate() {
        let lost = Some((true, Some(Fault::lost(3))));
        assert_eq!(result, if rank == 3 { None } else { lost }, "rank {rank}");
    }
}

// ---- rails --------------------------------------------------------------------------------------

const MESSAGES: u64 = 60;

/// Sends messages of many lengths, writes, adds and reads from rank 0. Rank 1 checks that each came exactly once.
async fn traffic(sim: Sim) -> Result<u64, String> {
    let fault = |fault: Fault| fault.to_string();
    let region = sim.allocate(16 + 8 * MESSAGES as usize + 4096).unwrap();
    let flag = sim.flag(&region, 0, FlagKind::Waking);
    let other = 1 - sim.rank();
    sim.send(other, Head([0, region.remote.key.0[0], region.remote.addr]), Sge::EMPTY, None);
    let (_, Head([_, key, addr])) = message(&sim).await.map_err(fault)?;
    let at = RemoteAddr::new(key, addr);
    let word = |offset: usize| {
        let mut bytes = [0; 8];
        region.local.part(offset, 8).read(&mut bytes);
        u64::from_ne_bytes(bytes)
    };
    let landing = 16 + 8 * MESSAGES as usize;
    let done = sim.counters().allocate();
    let mut operations = 0;
    if sim.rank() == 0 {
        let source = region.local.part(landing, 4096);
        for i in 0..MESSAGES {
            // Long messages are slower: messages behind them must not overtake them, on either rail.
            let payload = source.part(0, [0, 4096, 64, 2000][i as usize % 4]);
            let kept = sim.send(1, Head([i, 0, 0]), payload, Some(done));
            operations += u64::from(kept == weft_fabric::PostOutcome::Later);
            let mine = region.local.part(16 + 8 * i as usize, 8);
            mine.fill(&(100 + i).to_ne_bytes());
            let to = at.offset(16 + 8 * i);
            sim.write(1, &RemoteWrite::new(mine, to, Some(done))).unwrap();
            sim.fetch_add(
                1,
                &FetchAdd {
                    target: at.offset(8),
                    operand: 1,
                    result: source.part(8 * i as usize, 8),
                    done: Some(done),
                },
            )
            .unwrap();
            operations += 2;
            sim.charge(Work::Compute(US));
            sim.catch_up().await;
        }
        until(&sim, done, operations).await.map_err(fault)?;
        // Each addition was done exactly once, and its result came back exactly once.
        let mut seen: Vec<u64> = (0..MESSAGES as usize).map(|i| word(landing + 8 * i)).collect();
        seen.sort_unstable();
        if !seen.iter().copied().eq(0..MESSAGES) {
            return Err(format!("results of additions: {seen:?}"));
        }
        let name = RemoteFlag { at, waking: true };
        sim.write_flag(
            1,
            &RemoteWrite::new(source, at.offset(landing as u64), Some(done)),
            &name.with(1),
        )
        .unwrap();
        until(&sim, done, operations + 1).await.map_err(fault)?;
        let copy = sim.allocate(4096).unwrap().local;
        sim.read(1, &RemoteRead::new(copy, at.offset(landing as u64), Some(done))).unwrap();
        until(&sim, done, operations + 2).await.map_err(fault)?;
        let (mut a, mut b) = ([0; 4096], [0; 4096]);
        copy.read(&mut a);
        source.read(&mut b);
        return if a == b { Ok(0) } else { Err("read something else".to_owned()) };
    }
    for i in 0..MESSAGES {
        let (_, Head([got, ..])) = message(&sim).await.map_err(fault)?;
        if got != i {
            return Err(format!("message {got} instead of {i}"));
        }
    }
    until(&sim, flag.local, 1).await.map_err(fault)?;
    if word(8) != MESSAGES {
        return Err(format!("{} additions of {MESSAGES}", word(8)));
    }
    match (0..MESSAGES).find(|&i| word(16 + 8 * i as usize) != 100 + i) {
        Some(i) => Err(format!("write {i} is lost")),
        None if sim.receive(None).is_some() => Err("a message came twice".to_owned()),
        None => Ok(0),
    }
}

#[test]
fn traffic_goes_on_over_the_second_rail() {
    let quiet = run(&machine(1), SimOptions::new(2), traffic).unwrap().end();
    for node in [0, 1] {
        for died in (5..200).step_by(7) {
            let deaths = [(died * US, Death::Rail { node, rail: 0 })];
            let outcome = run(&machine(1), dying(2, &deaths), traffic).unwrap();
            assert_eq!(outcome.results, [Some(Ok(0)), Some(Ok(0))], "died at {died} us");
            if died * US < quiet / 2 {
                let end = outcome.end();
                assert!(end > quiet + DETECTION / 2, "{end}: something had to be sent again");
            }
        }
    }
}

#[test]
fn traffic_goes_on_in_chaos() {
    // The death is noticed in the middle of the traffic, so that old and new messages meet.
    for died in [10, 60, 150] {
        let deaths = [(died * US, Death::Rail { node: 1, rail: 0 })];
        let mut options = dying(2, &deaths);
        options.detection = weft_fabric_sim::units::Time(20 * US);
        if let Err(found) = explore(&machine(1), options, 0..100, traffic) {
            panic!("died at {died} us: {found}");
        }
    }
}

#[test]
fn the_death_of_a_rail_of_others_changes_nothing() {
    let ends = |deaths: &[(Picoseconds, Death)]| {
        let program =
            |sim: Sim| async move { if sim.rank() < 2 { traffic(sim).await } else { Ok(0) } };
        let outcome = run(&machine(1), dying(3, deaths), program).unwrap();
        assert_eq!(outcome.results[..2], [Some(Ok(0)), Some(Ok(0))]);
        outcome.ends
    };
    assert_eq!(ends(&[(50 * US, Death::Rail { node: 2, rail: 0 })]), ends(&[]));
    // The second rail is the spare one.
    assert_eq!(ends(&[(50 * US, Death::Rail { node: 1, rail: 1 })]), ends(&[]));
}

#[test]
fn a_node_without_rails_is_lost_and_loses_the_others() {
    let [first, second] = rails(1);
    let options = dying(6, &[(10 * US, first), (40 * US, second)]);
    let program = |sim: Sim| async move { wait_in_vain(&sim).await };
    let outcome = run(&machine(2), options, program).unwrap();
    let inside = Some(Err(Fault::lost(0)));
    let outside = Some(Err(Fault::lost(2)));
    let of = |rank| if rank / 2 == 1 { inside.clone() } else { outside.clone() };
    assert_eq!(outcome.results, (0..6).map(of).collect::<Vec<_>>());
    assert!(outcome.ends.iter().all(|&end| end == 40 * US + DETECTION + US / 10));
}

#[test]
fn nodes_without_a_rail_in_common_are_lost_to_each_other() {
    // Rank 0 has the second rail, rank 1 the first, rank 2 both.
    let deaths = [(US, Death::Rail { node: 0, rail: 0 }), (US, Death::Rail { node: 1, rail: 1 })];
    let program = |sim: Sim| async move {
        sim.charge(Work::Compute(10 * US));
        sim.catch_up().await;
        match sim.rank() {
            0 => tell(&sim, 1, 7),
            1 => {}
            _ => {
                tell(&sim, 0, 8);
                tell(&sim, 1, 9);
                return Ok((2, Head::default()));
            }
        }
        assert_eq!(message(&sim).await.map(|(from, _)| from), Ok(2));
        message(&sim).await
    };
    let outcome = run(&machine(1), dying(3, &deaths), program).unwrap();
    let lost = |rank| Some(Err(Fault::lost(rank)));
    assert_eq!(outcome.results, [lost(1), lost(0), Some(Ok((2, Head::default())))]);
}

#[test]
fn datagrams_do_not_reach_a_node_without_rails() {
    let [first, second] = rails(1);
    let program = |sim: Sim| async move {
        sim.join(GroupId(1));
        sim.charge(Work::Compute(10 * US));
        sim.catch_up().await;
        let bytes = sim.allocate(8).unwrap().local;
        if sim.rank() == 0 {
            sim.multicast(GroupId(1), bytes).unwrap();
        }
        sim.charge(Work::Compute(100 * US));
        sim.catch_up().await;
        sim.receive_multicast(bytes).is_some()
    };
    let options = dying(3, &[(US, first), (US, second)]);
    let outcome = run(&machine(1), options, program).unwrap();
    assert_eq!(outcome.results, [Some(false), Some(false), Some(true)]);
    assert_eq!(outcome.counts.lost_datagrams, 1);
}

// ---- the rest -----------------------------------------------------------------------------------

#[test]
fn only_what_there_is_can_die() {
    let program = |sim: Sim| async move { sim.rank() };
    let bad = [Death::Rank(5), Death::Rail { node: 3, rail: 0 }, Death::Rail { node: 0, rail: 2 }];
    for death in bad {
        let stopped = run(&machine(2), dying(5, &[(0, death)]), program).unwrap_err();
        assert_eq!(stopped, Stopped::Death { death, ranks: 5, nodes: 3, rails: 2 });
    }
    for (death, name) in bad.into_iter().zip(["rank 5", "rail 0 of node 3", "rail 2 of node 0"]) {
        let text = run(&machine(2), dying(5, &[(0, death)]), program).unwrap_err().to_string();
        let range = "there are ranks 0 to 4, nodes 0 to 2, rails 0 to 1";
        assert_eq!(text, format!("{name} cannot die: {range}"));
    }
}

#[test]
fn deaths_repeat_like_everything() {
    let [first, second] = rails(0);
    let options = || {
        let mut options = dying(2, &[(30 * US, first), (90 * US, second)]).trace();
        options.chaos = Some(Chaos::rough());
        options
    };
    let outcome = || run(&machine(1), options(), traffic).unwrap();
    assert_eq!(outcome(), outcome());
}
