//! The same patterns on shared memory and in virtual time, with real data.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::{AtomicUsize, Ordering};
use weft_bootstrap::threads;
use weft_collective::algorithm::Carrier;
use weft_collective::{RankPlacement, SelectionKey};
use weft_fabric::wait::WaitPolicy;
use weft_fabric::{Fabric, boxed};
use weft_fabric_shm::Shm;
use weft_fabric_sim::{Machine, Sim, SimOptions, run};
use weft_p2p::ProtocolLimits;
use weft_patterns::{
    ALL, Laps, PatternError, PatternPlan, PatternRank, PatternWorld, PayloadPresence,
};

/// Runs a plan on ranks that are threads.
fn on_shared_memory(plan: &PatternPlan) -> Result<Vec<Laps>, PatternError> {
    let through = AtomicUsize::new(0);
    let rank = |mut bootstrap| {
        let shm = Shm::connect(&mut bootstrap).expect("connected");
        // There are more threads than processors: yield at once.
        let mut policy = WaitPolicy::new(false);
        policy.nap = std::time::Duration::from_millis(2);
        let world = PatternWorld::new(plan.clone()).expect("a plan that fits");
        let rank = PatternRank::new(boxed(shm), policy, ProtocolLimits::default(), &world);
        let laps = rank.block_on();
        through.fetch_add(1, Ordering::SeqCst);
        while through.load(Ordering::SeqCst) < plan.ranks {
            rank.progress();
            std::thread::yield_now();
        }
        laps
    };
    std::thread::scope(|scope| {
        let ranks: Vec<_> =
            threads(plan.ranks).into_iter().map(|b| scope.spawn(|| rank(b))).collect();
        ranks.into_iter().map(|rank| rank.join().expect("no panic")).collect()
    })
}

/// Runs a plan in virtual time. Returns the laps, and the time at which the last rank ended.
fn simulated(machine: &Rc<Machine>, plan: &PatternPlan) -> Result<(Vec<Laps>, u64), PatternError> {
    simulated_on(machine, plan, |sim| sim)
}

fn simulated_on<F: Fabric>(
    machine: &Rc<Machine>,
    plan: &PatternPlan,
    fabric: impl Fn(Sim) -> F,
) -> Result<(Vec<Laps>, u64), PatternError> {
    let world = PatternWorld::new(plan.clone()).expect("a plan that fits");
    let first = Rc::new(RefCell::new(None));
    let outcome = run(machine, SimOptions::new(plan.ranks), |sim| {
        let program = PatternRank::new(
            boxed(fabric(sim)),
            WaitPolicy::new(true),
            ProtocolLimits::default(),
            &world,
        )
        .program();
        let first = first.clone();
        async move { program.await.map_err(|error| *first.borrow_mut() = Some(error)).ok() }
    });
    // A rank's error comes first: the run may have failed only because other ranks wait for the stopped rank.
    if let Some(error) = first.take() {
        return Err(error);
    }
    let outcome = outcome.unwrap_or_else(|e| panic!("{plan:?}: {e}"));
    let end = outcome.end();
    Ok((outcome.results.into_iter().flatten().flatten().collect(), end))
}

/// Returns every algorithm of every pattern, with a small payload, and with one above the eager limit if it may be so long.
fn plans(ranks: usize) -> Vec<PatternPlan> {
    let mut plans = Vec::new();
    for about in ALL.iter().filter(|about| about.least_ranks <= ranks) {
        for algorithm in about.algorithms() {
            let plan =
                PatternPlan::new(about.name, ranks).and_then(|p| p.algorithm(algorithm.name));
            let plan = PatternPlan { repeat: 3, ..plan.expect("both are known") };
            let long = about.payload.is_some() && !about.bare;
            plans.extend(about.payload.map(|_| PatternPlan { bytes: 12, ..plan.clone() }));
            plans.extend(long.then(|| PatternPlan { bytes: 20_000, ..plan.clone() }));
            plans.push(PatternPlan { isolated: true, ..plan.clone() });
            plans.push(plan);
        }
    }
    plans
}

/// Returns true if this is the error of an algorithm that has conditions, and the error names the condition that fails.
fn ineligible(plan: &PatternPlan, error: &PatternError) -> bool {
    let (Some(choice), PatternError::Refused(why)) = (plan.algorithm.choice, error) else {
        return false;
    };
    let Some(why) = why.strip_prefix(&format!("{}: ", choice.algorithm.name)) else { return false };
    let site = RankPlacement { same_arithmetic: false, ..RankPlacement::apart(1) };
    let (ranks, bytes) = (plan.ranks, plan.bytes);
    let case = SelectionKey { ranks, bytes, element: 1, commutes: true, equal: true, site };
    choice.algorithm.needs.iter().any(|need| need.check(&case).is_err_and(|text| why == text))
}

fn complete(plan: &PatternPlan, laps: &[Laps]) {
    let figures = plan.about.measured.figures(laps, plan.bytes);
    assert_eq!(figures.len(), plan.repeat, "{plan:?}");
    // A single rank does not wait, and zero bytes may take no time.
    let nothing = plan.ranks == 1 || plan.about.payload.is_some() && plan.bytes == 0;
    let positive = figures.iter().all(|&f| f > 0.0 || nothing && f == 0.0);
    assert!(positive, "{plan:?}: {figures:?}");
}

#[test]
fn all_run_in_virtual_time() {
    let machine = Rc::new(Machine::load("loggp").unwrap());
    for ranks in [1, 2, 3, 8, 13] {
        for plan in plans(ranks) {
            if plan.about.name == "fabric-multicast" {
                // This machine has no multicast.
                let refused = simulated(&machine, &plan).unwrap_err();
                assert_eq!(
                    refused,
                    PatternError::Refused("this fabric has no multicast".to_owned())
                );
                continue;
            }
            match simulated(&machine, &plan) {
                Ok((laps, _)) => complete(&plan, &laps),
                Err(error) => assert!(ineligible(&plan, &error), "{plan:?}: {error}"),
            }
        }
    }
}

#[test]
fn all_run_with_contention_and_multicast() {
    let machine = Rc::new(Machine::load("kini1").unwrap());
    for ranks in [2, 8] {
        for plan in plans(ranks) {
            match simulated(&machine, &plan) {
                Ok((laps, _)) => complete(&plan, &laps),
                Err(PatternError::Refused(why)) if plan.algorithm.name == "BOTTOM-FILL" => {
                    assert_eq!(why, "BOTTOM-FILL: this fabric places bytes in any order; use FLAG");
                }
                Err(error) => assert!(ineligible(&plan, &error), "{plan:?}: {error}"),
            }
        }
    }
}

#[test]
fn two_levels_run_on_nodes_of_several_ranks() {
    for each in ["2", "3", "5"] {
        let machine = Rc::new(Machine::load_with("kini2", &[("ranks_per_node", each)]).unwrap());
        let mut done = 0;
        for ranks in [6, 8, 13] {
            let levels = |plan: &PatternPlan| {
                plan.algorithm.choice.is_some_and(|c| {
                    c.algorithm.carrier == Carrier::Hierarchy
                        && !c.algorithm.method.is_composition_of_node()
                })
            };
            for plan in plans(ranks).into_iter().filter(levels) {
                let (laps, _) =
                    simulated(&machine, &plan).unwrap_or_else(|e| panic!("{plan:?}: {e}"));
                complete(&plan, &laps);
                done += 1;
            }
        }
        assert!(done >= 3 * 8, "{done} runs");
    }
}

/// Lost datagrams are sent again.
#[test]
fn a_lossy_multicast_arrives() {
    let machine = Machine::load_with("kini1", &[("multicast.loss", "0.1")]).unwrap();
    let plan =
        PatternPlan { bytes: 100, repeat: 20, ..PatternPlan::new("fabric-multicast", 4).unwrap() };
    let (laps, _) = simulated(&Rc::new(machine), &plan).unwrap();
    let figures = plan.about.measured.figures(&laps, plan.bytes);
    let (quick, slow): (Vec<f64>, Vec<f64>) = figures.iter().partition(|&&us| us < 10_000.0);
    assert!(!quick.is_empty() && !slow.is_empty(), "{figures:?}");
}

/// All ranks begin at one instant, also if some ranks come late, and also the first time.
#[test]
fn repetitions_begin_together() {
    let machine = Rc::new(Machine::load("kini2").unwrap());
    for name in ["gather", "barrier", "fabric-fan-in"] {
        let plan =
            PatternPlan { warm_up: 0, isolated: true, ..PatternPlan::new(name, 13).unwrap() };
        let (laps, _) = simulated(&machine, &plan).unwrap();
        for lap in 0..plan.repeat {
            let mut starts: Vec<_> = laps.iter().filter_map(|l| l.starts.get(lap)).collect();
            assert!(starts.len() >= 12, "{name}");
            starts.dedup();
            assert_eq!(starts.len(), 1, "{name}, repetition {lap}");
        }
    }
}

#[test]
fn sizes_alone_take_the_same_time() {
    let machine = Rc::new(Machine::load("loggp").unwrap());
    for plan in plans(6).into_iter().filter(|plan| !plan.about.bare) {
        let phantom = PatternPlan { payload: PayloadPresence::Phantom, ..plan.clone() };
        let (real, phantom) = (simulated(&machine, &plan), simulated(&machine, &phantom));
        match (real, phantom) {
            // A last copy within one buffer costs nothing, but phantom buffers do not show that it is one buffer.
            (Ok((real, end)), Ok((phantom, later))) => {
                assert_eq!(real, phantom, "{plan:?}");
                assert!(later - end < 10_000_000, "{plan:?}: {end} and {later} ps");
            }
            (Err(one), Err(other)) => {
                assert!(one == other && ineligible(&plan, &one), "{plan:?}: {one}");
            }
            (real, phantom) => panic!("{plan:?}: {real:?} and {phantom:?}"),
        }
    }
}

#[test]
fn all_run_on_shared_memory() {
    for ranks in [2, 5] {
        for plan in plans(ranks) {
            match on_shared_memory(&plan) {
                Ok(laps) => complete(&plan, &laps),
                Err(PatternError::Refused(why)) if plan.algorithm.name == "BOTTOM-FILL" => {
                    assert_eq!(why, "BOTTOM-FILL: this fabric places bytes in any order; use FLAG");
                }
                Err(error) => assert!(ineligible(&plan, &error), "{plan:?}: {error}"),
            }
        }
    }
}

#[test]
fn a_payload_that_is_too_long_is_refused_with_the_limit() {
    let machine = Rc::new(Machine::load("loggp").unwrap());
    let long = |name: &str, algorithm: &str, bytes| {
        let plan = PatternPlan::new(name, 2).unwrap();
        let plan =
            PatternPlan { algorithm: plan.about.algorithm(algorithm).unwrap(), bytes, ..plan };
        simulated(&machine, &plan).unwrap_err().to_string()
    };
    assert_eq!(long("allreduce", "RPE", 65540), "RPE: 65540 bytes: at most 65536");
    assert_eq!(
        long("fabric-send", "send", 65537),
        "65537 bytes: one send carries at most 65536 here"
    );
    let bottom = "1000008 bytes: BOTTOM-FILL carries at most 1000000";
    assert_eq!(long("fabric-write", "BOTTOM-FILL", 1_000_008), bottom);
}

/// A fabric that changes the last byte of every message.
mod careless {
    use super::*;
    use std::sync::Arc;
    use std::time::Instant;
    use weft_fabric::{
        ArrivedMessage, Capabilities, CompareSwap, Completion, Copies, Counter, Counters, Datagram,
        FabricExt, Facets, Fault, FetchAdd, Flag, FlagKind, FlagWrite, GroupId, Head, PostOutcome,
        Region, RemoteRead, RemoteWrite, Sge, StagingPool, Work, wait::Sleep,
    };

    pub struct Careless(pub Sim, pub StagingPool);

    impl Fabric for Careless {
        fn facets(&self) -> Facets<'_> {
            Facets {
                mapped_memory: None,
                registration: None,
                rails: None,
                immediates: Some(self),
                signal_safe: None,
                helper: None,
                multicast: Some(self),
                nodes: None,
                simulated: Some(self),
            }
        }

        fn send(&self, peer: usize, head: Head, payload: Sge, done: Completion) -> PostOutcome {
            let copy = self.1.take(payload.len());
            copy.sge().copy_from(payload);
            if let Some(last) = payload.len().checked_sub(1) {
                let mut byte = [0];
                copy.sge().part(last, 1).read(&mut byte);
                copy.sge().part(last, 1).fill(&[!byte[0]]);
            }
            self.0.send(peer, head, copy.sge(), done)
        }

        fn rank(&self) -> usize {
            self.0.rank()
        }
        fn size(&self) -> usize {
            self.0.size()
        }
        fn capabilities(&self, peer: usize) -> Capabilities {
            self.0.capabilities(peer)
        }
        fn copies(&self) -> &Copies {
            self.0.copies()
        }
        fn counters(&self) -> &Counters {
            self.0.counters()
        }
        fn allocate(&self, len: usize) -> Result<Region, Fault> {
            self.0.allocate(len)
        }
        fn expose(&self, memory: Sge) -> Result<Region, Fault> {
            self.0.expose(memory)
        }
        fn withdraw(&self, region: Region) {
            self.0.withdraw(region)
        }
        fn flag(&self, region: &Region, offset: usize, kind: FlagKind) -> Flag {
            self.0.flag(region, offset, kind)
        }
        fn write(&self, peer: usize, write: &RemoteWrite) -> Result<(), Fault> {
            self.0.write(peer, write)
        }
        fn write_flag(
            &self,
            peer: usize,
            write: &RemoteWrite,
            then: &FlagWrite,
        ) -> Result<(), Fault> {
            self.0.write_flag(peer, write, then)
        }
        fn read(&self, peer: usize, read: &RemoteRead) -> Result<(), Fault> {
            self.0.read(peer, read)
        }
        fn fetch_add(&self, peer: usize, add: &FetchAdd) -> Result<(), Fault> {
            self.0.fetch_add(peer, add)
        }
        fn compare_swap(&self, peer: usize, swap: &CompareSwap) -> Result<(), Fault> {
            self.0.compare_swap(peer, swap)
        }
        fn receive(&self, from: Option<usize>) -> Option<ArrivedMessage> {
            self.0.receive(from)
        }
        fn release(&self, message: ArrivedMessage) {
            self.0.release(message)
        }
        fn progress(&self) -> bool {
            self.0.progress()
        }
        fn sleeper(&self) -> Arc<dyn Sleep> {
            self.0.sleeper()
        }
        fn fault(&self) -> Option<Fault> {
            None
        }
        fn keeps_back(&self) -> bool {
            !self.idle()
        }
        fn idle(&self) -> bool {
            true
        }
    }

    impl weft_fabric::Immediates for Careless {
        fn write_imm(&self, peer: usize, write: &RemoteWrite, immediate: u32) -> Result<(), Fault> {
            FabricExt::write_imm(&self.0, peer, write, immediate)
        }

        fn immediate(&self, immediate: u32) -> Counter {
            FabricExt::immediate(&self.0, immediate)
        }
    }

    impl weft_fabric::Multicast for Careless {
        fn join(&self, group: GroupId) {
            FabricExt::join(&self.0, group)
        }

        fn leave(&self, group: GroupId) {
            FabricExt::leave(&self.0, group)
        }

        fn multicast(&self, group: GroupId, src: Sge) -> Result<(), Fault> {
            FabricExt::multicast(&self.0, group, src)
        }

        fn receive_multicast(&self, into: Sge) -> Option<Datagram> {
            FabricExt::receive_multicast(&self.0, into)
        }
    }

    impl weft_fabric::Simulated for Careless {
        fn poll_any(
            &self,
            waits: &[(Counter, u64)],
            deadline: Option<Instant>,
            cx: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Result<usize, Fault>> {
            FabricExt::poll_any(&self.0, waits, deadline, cx)
        }

        fn now(&self) -> Instant {
            FabricExt::now(&self.0)
        }

        fn poll_clock(&self, cx: &mut std::task::Context<'_>) -> std::task::Poll<()> {
            FabricExt::poll_clock(&self.0, cx)
        }

        fn charge(&self, work: Work) {
            FabricExt::charge(&self.0, work)
        }

        fn look(&self) {
            FabricExt::look(&self.0)
        }
    }
}

/// Data sent by messages is compared: each such pattern notices one wrong byte.
#[test]
fn a_wrong_byte_is_noticed() {
    let machine = Rc::new(Machine::load("loggp").unwrap());
    let by_messages = |plan: &PatternPlan| {
        let writes = ["fabric-write", "fabric-fan-in", "fabric-multicast"];
        let carrier = plan.algorithm.choice.map(|choice| choice.algorithm.carrier);
        let messages = carrier.is_none_or(|carrier| carrier == Carrier::Messages);
        plan.bytes == 12 && !writes.contains(&plan.about.name) && messages
    };
    for plan in plans(4).into_iter().filter(by_messages) {
        let changed = |sim| careless::Careless(sim, Default::default());
        let noticed = simulated_on(&machine, &plan, changed).unwrap_err();
        if ineligible(&plan, &noticed) {
            continue;
        }
        assert!(matches!(noticed, PatternError::Wrong { lap: 0, .. }), "{plan:?}: {noticed}");
    }
}
