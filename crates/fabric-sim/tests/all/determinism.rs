//! Determinism: the same seed gives the same run, bit for bit, again and in another process. It also gives the hashes below on
//! every machine and with every compiler.

use std::process::Command;
use std::rc::Rc;
use weft_collective::{
    CommView, ElementReduction, Members, Reception, ReductionBuffers, Via, allreduce, alltoall,
    barrier, bcast,
};
use weft_fabric::wait::WaitPolicy;
use weft_fabric::{
    Fabric, FabricExt, FetchAdd, FlagKind, GroupId, RemoteAddr, RemoteFlag, RemoteRead,
    RemoteWrite, Sge, Staging, Work,
};
use weft_fabric_sim::units::Time;
use weft_fabric_sim::{Chaos, RunOutcome, Sim, SimOptions, run};
use weft_fabric_testing::machine::machine;
use weft_p2p::{MatchingContext, ProtocolLimits};
use weft_process::Engine;

const RANKS: usize = 7;

/// Hashes of one run each: results, ends, counts and the whole trace. They change only with the charges and the random numbers of
/// the simulator, and with the traffic of the layers above. After such a change, put the values here that the failing test
/// prints.
const PLAIN: u64 = 0x2da6_2f48_21f5_e44b;
const JITTERED: u64 = 0x41c5_2e85_4fca_11b5;
const ROUGH: u64 = 0xb2b4_6c2f_80a3_185b;

fn plain(seed: u64) -> SimOptions {
    SimOptions::new(RANKS).seed(seed).trace()
}

fn jittered(seed: u64) -> SimOptions {
    SimOptions { jitter: Time::from_us(3.0), ..plain(seed) }
}

fn rough(seed: u64) -> SimOptions {
    plain(seed).chaos(Chaos::rough())
}

/// FNV-1a over words, which is the same everywhere.
struct Hash(u64);

impl Hash {
    fn new() -> Hash {
        Hash(0xcbf2_9ce4_8422_2325)
    }

    fn words(&mut self, words: impl IntoIterator<Item = u64>) {
        let bytes = words.into_iter().flat_map(u64::to_le_bytes);
        self.bytes(bytes);
    }

    fn bytes(&mut self, bytes: impl IntoIterator<Item = u8>) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

fn hash(outcome: &RunOutcome<u64>) -> u64 {
    let mut hash = Hash::new();
    hash.words(outcome.results.iter().map(|r| r.expect("nobody dies")));
    hash.words(outcome.ends.iter().copied());
    let c = outcome.counts;
    hash.words([c.messages, c.writes, c.reads, c.atomics, c.datagrams, c.lost_datagrams]);
    hash.words([c.events, c.polls]);
    let trace = outcome.trace.as_ref().expect("asked for");
    for span in &trace.spans {
        hash.words([span.rank.into(), span.activity as u64, span.start, span.end]);
    }
    for arrow in &trace.arrows {
        hash.words([arrow.from.into(), arrow.to.into(), arrow.what as u64, arrow.bytes as u64]);
        hash.words([arrow.sent, arrow.arrived]);
    }
    hash.0
}

/// Sum of words.
struct Sum;

impl ElementReduction for Sum {
    fn combine(&self, left: Sge, right: Sge) {
        for offset in (0..left.len()).step_by(8) {
            let sum = word(left, offset).wrapping_add(word(right, offset));
            right.part(offset, 8).fill(&sum.to_ne_bytes());
        }
    }

    fn commutes(&self) -> bool {
        true
    }
}

fn word(memory: Sge, offset: usize) -> u64 {
    let mut bytes = [0; 8];
    memory.part(offset, 8).read(&mut bytes);
    u64::from_ne_bytes(bytes)
}

/// Runs some of every kind of operation. Returns a hash of everything that the rank has received.
async fn program(engine: Rc<Engine<Sim>>, members: Rc<Members>) -> u64 {
    let endpoint = engine.endpoint().clone();
    let sim = endpoint.fabric().clone();
    let (me, n) = (sim.rank(), sim.size());
    let link = |tag: i32| {
        let (endpoint, members) = (endpoint.clone(), members.clone());
        CommView {
            endpoint,
            members,
            rank: me,
            context: MatchingContext(3),
            tag,
            via: Via::Messages,
            reception: Reception::Marks,
        }
    };
    let buffer = |len: usize, seed: u64| -> Staging {
        let staging = endpoint.staging().take(len);
        let mut bytes = vec![0; len];
        fastrand::Rng::with_seed(seed << 8 | me as u64).fill(&mut bytes);
        staging.sge().fill(&bytes);
        staging
    };
    let mut seen = Hash::new();
    let mut note = |memory: Sge| {
        let mut bytes = vec![0; memory.len()];
        memory.read(&mut bytes);
        seen.bytes(bytes);
    };

    // Memory that the other ranks address: a flag, a sum, and 3000 bytes.
    let region = sim.allocate(16 + 3000).unwrap();
    let flag = sim.flag(&region, 0, FlagKind::Waking);
    let records: Vec<Staging> = (0..n).map(|_| buffer(16, 0)).collect();
    let mine = [region.remote.key.0[0].to_ne_bytes(), region.remote.addr.to_ne_bytes()].concat();
    let out: Vec<Staging> = (0..n).map(|_| buffer(16, 0)).collect();
    out.iter().for_each(|record| record.sge().fill(&mine));
    let sges = |all: &[Staging]| -> Vec<Sge> { all.iter().map(Staging::sge).collect() };
    alltoall::pairwise(&link(0), &sges(&out), &sges(&records)).await.unwrap();
    let at = |rank: usize| {
        let record = records[rank].sge();
        RemoteAddr::new(word(record, 0), word(record, 8))
    };

    sim.join(GroupId(1));
    barrier::dissemination(&link(1)).await.unwrap();
    sim.charge(Work::Compute(700_000 * me as u64));
    let (to, from) = ((me + 1) % n, (me + n - 1) % n);
    let (data, before) = (buffer(3000, 1), buffer(8, 2));
    let done = sim.counters().allocate();
    let name = RemoteFlag { at: at(to), waking: true };
    sim.write_flag(to, &RemoteWrite::new(data.sge(), at(to).offset(16), Some(done)), &name.with(1))
        .unwrap();
    sim.fetch_add(
        0,
        &FetchAdd {
            target: at(0).offset(8),
            operand: me as u64,
            result: before.sge(),
            done: Some(done),
        },
    )
    .unwrap();
    sim.multicast(GroupId(1), data.sge().part(0, 500)).unwrap();
    endpoint.until(flag.local, 1).await.unwrap();
    note(region.local.part(16, 3000));
    let copy = buffer(3000, 3);
    sim.read(from, &RemoteRead::new(copy.sge(), at(from).offset(16), Some(done))).unwrap();
    endpoint.until(done, 3).await.unwrap();
    note(before.sge());
    barrier::dissemination(&link(2)).await.unwrap();
    while let Some(datagram) = sim.receive_multicast(copy.sge()) {
        note(copy.sge().part(0, datagram.len));
    }

    // Eager and rendezvous, from one sender or from all ranks at once.
    for (round, len) in [8, 2000, 40_000].into_iter().enumerate() {
        let round = 10 * round as i32;
        let (data, result) = (buffer(len, 4), buffer(len, 5));
        let buffers = ReductionBuffers { data: data.sge(), result: result.sge(), element: 1 };
        allreduce::pairwise_exchange(&link(10 + round), buffers, &Sum).await.unwrap();
        note(result.sge());
        bcast::binomial(&link(11 + round), 2, result.sge()).await.unwrap();
        let out: Vec<Staging> = (0..n).map(|to| buffer(len + to, 6)).collect();
        let into: Vec<Staging> = (0..n).map(|_| buffer(len + me, 7)).collect();
        alltoall::pairwise(&link(12 + round), &sges(&out), &sges(&into)).await.unwrap();
        into.iter().for_each(|block| note(block.sge()));
    }
    barrier::dissemination(&link(99)).await.unwrap();
    seen.0
}

fn outcome(options: SimOptions) -> RunOutcome<u64> {
    let members = Members::world(RANKS);
    let outcome = run(&machine(2), options, |sim| {
        let engine = Engine::new(sim, WaitPolicy::new(true), ProtocolLimits::default());
        engine.run(program(engine.clone(), members.clone()))
    });
    outcome.expect("no deadlock")
}

/// Function that makes the options for a seed, and the hash of a run with them.
type Kind = (fn(u64) -> SimOptions, u64);

const KINDS: [Kind; 3] = [(plain, PLAIN), (jittered, JITTERED), (rough, ROUGH)];

#[test]
fn a_run_can_be_repeated() {
    for (options, _) in KINDS {
        for seed in 0..4 {
            let first = outcome(options(seed));
            assert_eq!(first, outcome(options(seed)));
            let untraced = outcome(SimOptions { trace: false, ..options(seed) });
            assert_eq!(untraced, RunOutcome { trace: None, ..first }, "a trace changes nothing");
        }
    }
}

#[test]
fn seeds_differ() {
    for (options, _) in &KINDS[1..] {
        let mut all: Vec<u64> = (0..20).map(|seed| hash(&outcome(options(seed)))).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 20);
    }
}

#[test]
fn runs_are_as_they_were_on_any_machine() {
    let now: Vec<u64> = KINDS.iter().map(|(options, _)| hash(&outcome(options(42)))).collect();
    let then: Vec<u64> = KINDS.iter().map(|&(_, hash)| hash).collect();
    assert!(now == then, "PLAIN, JITTERED, ROUGH were {then:#018x?}, and are {now:#018x?}");
}

/// Prints the hashes, for the test below, which runs this one in a process of its own.
#[test]
#[ignore = "part of another test"]
fn child() {
    for (options, _) in KINDS {
        println!("hash: {:016x}", hash(&outcome(options(43))));
    }
}

#[test]
fn another_process_has_the_same_run() {
    let program = std::env::current_exe().expect("the test's own program");
    let mut command = Command::new(program);
    command.args(["--ignored", "--exact", "determinism::child", "--nocapture"]);
    let output = command.output().expect("the child runs");
    let text = String::from_utf8_lossy(&output.stdout);
    let theirs: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("hash: ")).collect();
    let ours: Vec<String> =
        KINDS.iter().map(|(options, _)| format!("{:016x}", hash(&outcome(options(43))))).collect();
    assert_eq!(theirs, ours, "{text}");
}
