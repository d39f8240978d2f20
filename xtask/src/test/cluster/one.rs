//! Tests inside one virtual machine: ranks on nodes that `WEFT_NODES` simulates, with cables between the nodes.

use super::inside::VmClusterArgs;
use super::job::{self, ClusterJob, RankNodes, word};
use super::parts::TestParts;
use crate::test::{python, tools};
use std::process::Command;
use weft_vm::rails::CableAdapters;

/// Distributions of ranks over nodes, with each rank on its own node.
const APART: [RankNodes; 3] =
    [RankNodes(&[0, 1]), RankNodes(&[0, 1, 2]), RankNodes(&[0, 1, 2, 3, 4])];
/// Distribution of four ranks over two nodes, with two ranks on each node.
const PAIRS: RankNodes = RankNodes(&[0, 0, 1, 1]);
const TWO: RankNodes = APART[0];
const THREE: RankNodes = APART[1];
const FIVE: RankNodes = APART[2];

/// Percentage of packets that netem drops. Soft-RoCE counts each repeated packet of a message against the retries, and acknowledges
/// after 64 packets at the earliest. With 2 % loss, a message reached the seventh retry in a few percent of the runs.
const LOSS: &str = "1%";
/// Settings for tests with loss: a shorter timeout, because each lost packet costs a timeout.
const LOSSY: &[(&str, &str)] = &[("WEFT_ACK_TIMEOUT", "15")];

/// Settings that select, in turn, each design of progress while the program computes.
const PROGRESS: &[&[(&str, &str)]] = &[
    &[("WEFT_PROGRESS", "auto")],
    &[("WEFT_PROGRESS", "signal")],
    &[("WEFT_PROGRESS", "signal"), ("WEFT_RENDEZVOUS", "write")],
    &[("WEFT_PROGRESS", "locked")],
];

/// Maximum number of seconds of a program that takes too long for CI.
const LONG: u64 = 1200;

/// Settings of jobs that connect to each other: the fabric, and a number of ranks per node, because the jobs have different sizes.
const LINKED: &[(&str, &str)] = &[("WEFT_FABRIC", "verbs"), ("WEFT_NODES", "1")];

/// Part of the message about a process of another job that has ended.
const KILLED: &str = "of another job, connected to this one, and has ended without";

/// Settings that select, in turn, each design of fences.
const FENCES: &[&[(&str, &str)]] = &[
    &[],
    &[("WEFT_FENCE", "2S")],
    &[("WEFT_FENCE", "1S")],
    &[("WEFT_FENCE", "1S-BARRIER")],
    &[("WEFT_FENCE", "RI")],
];

/// Settings that select, in turn, each method for accumulates, and the side that executes the operations.
const ATOMICS: &[&[(&str, &str)]] =
    &[&[], &[("WEFT_RMA_ATOMICS", "guarded")], &[("WEFT_FENCE", "2S")]];

/// Checks of the conformance suite that run with loss.
const CONFORMANCE: &[&str] = &["two_ranks::", "five_ranks::datagrams", "five_ranks::messages"];

struct MachineTests<'a> {
    inside: &'a VmClusterArgs,
    rails: CableAdapters,
    environment: &'static [(&'static str, &'static str)],
    /// Minimum number of packets that each cable must carry for the next program.
    each: u64,
    /// Maximum number of seconds of a program.
    limit: u64,
}

pub fn run(inside: &VmClusterArgs) -> Result<(), String> {
    let rails = CableAdapters::find()?;
    let mut machine = MachineTests { inside, rails, environment: &[], each: 0, limit: job::LIMIT };
    let mut parts = TestParts::new(&inside.only);
    parts.part("programs over verbs", |parts| machine.programs(parts))?;
    parts.part("processes that come later, over verbs", |parts| machine.linked(parts))?;
    parts.part("mpi4py over verbs", |parts| machine.mpi4py(parts))?;
    machine.environment = LOSSY;
    machine.rails.lose(Some(LOSS))?;
    parts.part(&format!("programs, {LOSS} of the packets lost"), |parts| machine.lossy(parts))?;
    parts.part(&format!("conformance, {LOSS} of the packets lost"), |parts| {
        machine.conformance(parts)
    })?;
    machine.rails.lose(None)?;
    parts.end()
}

/// Runs the tests of windows on one to five ranks. CI runs these tests only on two ranks.
pub fn long(inside: &VmClusterArgs) -> Result<(), String> {
    let mut machine = MachineTests {
        inside,
        rails: CableAdapters::find()?,
        environment: &[],
        each: 0,
        limit: LONG,
    };
    let mut parts = TestParts::new(&inside.only);
    for nodes in COUNTS {
        let name = format!("windows over verbs, {} ranks", nodes.0.len());
        parts.part(&name, |parts| machine.windows(parts, nodes))?;
    }
    parts.end()
}

/// Distributions of one to five ranks over nodes.
const COUNTS: [RankNodes; 5] = [RankNodes(&[0]), TWO, THREE, RankNodes(&[0, 1, 2, 3]), FIVE];
/// Files of mpi4py's test suite that test windows.
const WINDOWS: &[&str] = &["test_win", "test_rma", "test_rma_nb"];

impl MachineTests<'_> {
    fn windows(&mut self, parts: &mut TestParts, nodes: RankNodes) -> Result<(), String> {
        self.environment = &[];
        let borders = nodes.borders();
        for file in WINDOWS {
            let words = python::suite_words(&self.inside.sdist, &[file]);
            let words: Vec<&str> = words.iter().map(String::as_str).collect();
            self.each = if *file == "test_win" { 0 } else { borders * 1000 };
            self.python(parts, &format!("mpi4py's {file}"), &words, nodes);
        }
        self.each = 0;
        for fence in FENCES {
            self.environment = fence;
            self.program(parts, "windows", &[], nodes, 50 * borders);
        }
        Ok(())
    }

    /// Runs a program of tests/c.
    fn program(
        &self,
        parts: &mut TestParts,
        name: &str,
        args: &[&str],
        nodes: RankNodes,
        packets: u64,
    ) {
        let mut words = vec![word(&self.inside.programs, name)];
        words.extend(args.iter().map(|&arg| arg.to_owned()));
        let says = match name {
            "hello" => "rank 0 of ",
            "ring" => " sum ",
            "latency" => "\"latency\"",
            _ => "correct",
        };
        self.job(parts, &format!("{name} {}", args.join(" ")), words, nodes, says, packets);
    }

    fn job(
        &self,
        parts: &mut TestParts,
        name: &str,
        words: Vec<String>,
        nodes: RankNodes,
        says: &str,
        packets: u64,
    ) {
        let settings = self.environment.iter().map(|(key, value)| format!(", {key}={value}"));
        let settings = settings.collect::<String>();
        let name = format!("{} on nodes {:?}{settings}", name.trim_end(), nodes.0);
        parts.test(&name, || {
            let (each, environment) = (self.each, self.environment);
            let limit = self.limit;
            let job = ClusterJob { nodes, words, says, packets, each, environment, limit };
            let (text, packets) = job.run(&self.inside.prefix, &self.rails)?;
            if says.contains("latency") {
                return job::latencies(&text);
            }
            Ok(format!("{packets} packets"))
        });
    }

    fn programs(&mut self, parts: &mut TestParts) -> Result<(), String> {
        for nodes in APART.into_iter().chain([PAIRS]) {
            let borders = nodes.borders();
            self.program(parts, "hello", &[], nodes, borders);
            self.program(parts, "ring", &[], nodes, RING * (borders - 1));
            self.program(parts, "halo", &["100"], nodes, 2 * borders * halo(100));
        }
        for nodes in [TWO, THREE, FIVE, PAIRS] {
            self.program(parts, "collectives", &["1"], nodes, 100 * nodes.borders());
        }
        self.program(parts, "semantics", &[], TWO, SEMANTICS);
        self.program(parts, "semantics", &[], RankNodes(&[0, 1, 0]), SEMANTICS);
        self.program(parts, "out_of_order", &["3000"], TWO, 2 * 3000 / BATCH);
        self.program(parts, "flood", &["4000"], TWO, 5 * 4000 / BATCH);
        // Each of many partitions is a message of its own.
        self.program(parts, "partitioned", &[], TWO, 3000 / BATCH);
        // Each cable must carry half of the bytes that the program puts and gets in windows of three kinds.
        self.each = 3 * (2 * 40_000 * 8 / MTU) / 2;
        self.program(parts, "windows_asleep", &[], TWO, 2 * self.each);
        self.each = 0;
        self.program(parts, "windows", &[], TWO, 100);
        let former = self.environment;
        for environment in ATOMICS {
            self.environment = environment;
            self.program(parts, "counters", &["10"], PAIRS, 100);
        }
        self.environment = former;
        self.progress(parts);
        self.program(parts, "split_type", &[], RankNodes(&[0, 1, 0, 1]), 10);
        self.program(parts, "interrupted", &[], PAIRS, 1000);
        self.program(parts, "threads", &[], TWO, 2 * 200);
        self.program(parts, "tools_fabric", &[], TWO, 2 * 300_000 / 4096);
        self.program(parts, "latency", &job::LATENCY, TWO, 100);
        Ok(())
    }

    /// Tests processes that start later than the job. The tests on two machines also test such processes.
    fn linked(&mut self, parts: &mut TestParts) -> Result<(), String> {
        self.environment = LINKED;
        self.program(parts, "spawn", &[], TWO, 10_000);
        self.program(parts, "connect", &[], TWO, 100);
        self.program(parts, "connect_threads", &[], RankNodes(&[0]), 100);
        self.killed(parts);
        self.environment = &[];
        Ok(())
    }

    /// Tests that the parents of a spawned process report its loss if it is killed, and that the report names the other job.
    fn killed(&self, parts: &mut TestParts) {
        parts.test("a spawned process that is killed", || {
            let words = vec![word(&self.inside.programs, "spawn_killed")];
            let (environment, limit) = (self.environment, self.limit);
            let job =
                ClusterJob { nodes: TWO, words, says: "", packets: 0, each: 0, environment, limit };
            match job.run(&self.inside.prefix, &self.rails) {
                Ok((text, _)) => Err(format!("it ended as if all were well:\n{text}")),
                Err(text) if text.contains(KILLED) => Ok(String::new()),
                Err(text) => Err(text),
            }
        });
    }

    /// Runs programs that compute while their messages move. The senders in helper.c wait for programs that compute, so helper.c
    /// ends only if the end of a transfer wakes a process.
    fn progress(&mut self, parts: &mut TestParts) {
        let former = self.environment;
        for environment in PROGRESS {
            self.environment = environment;
            self.program(parts, "overlap_stress", &["40"], TWO, 40 * 8 * 30_000 / MTU);
            if !environment.contains(&("WEFT_PROGRESS", "signal")) {
                self.program(parts, "helper", &["1"], TWO, 4 * (1 << 20) / MTU);
            }
        }
        self.environment = former;
    }

    /// Runs mpi4py's tests. One-sided tests take more than a minute here, so only `cargo xtask soak --verbs` runs them, on more
    /// ranks.
    fn mpi4py(&mut self, parts: &mut TestParts) -> Result<(), String> {
        self.python(parts, "helloworld", &["-m", "mpi4py.bench", "helloworld"], TWO);
        for nodes in [TWO, THREE, PAIRS] {
            let words = ["-m", "mpi4py.bench", "ringtest", "-n", "1024", "-l", "20"];
            self.python(parts, "ringtest", &words, nodes);
        }
        // Python is slow in an emulated machine, so four ranks run only a few tests. In these tests only ranks 0 and 1 communicate.
        let part = ["test_p2p_obj_matched"];
        for (nodes, files) in [(TWO, python::POINT_TO_POINT), (RankNodes(&[0, 1, 0, 1]), &part)] {
            let words = python::suite_words(&self.inside.sdist, files);
            let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
            // The machine is emulated and slow. The tests with NumPy's arrays are left out, because they would send the same bytes
            // again.
            words.push("--no-numpy");
            self.python(parts, "mpi4py's point-to-point tests", &words, nodes);
        }
        Ok(())
    }

    fn python(&self, parts: &mut TestParts, name: &str, args: &[&str], nodes: RankNodes) {
        let mut words = vec![self.inside.python.display().to_string()];
        words.extend(args.iter().map(|&arg| arg.to_owned()));
        let says = match name {
            "helloworld" => "Hello, World! I am process 0 of ",
            "ringtest" => "time for 20 loops",
            _ => "OK",
        };
        let packets = if name == "ringtest" { 20 * nodes.borders() } else { nodes.borders() };
        self.job(parts, name, words, nodes, says, packets);
    }

    fn lossy(&self, parts: &mut TestParts) -> Result<(), String> {
        let before = self.rails.dropped()?;
        self.program(parts, "ring", &[], TWO, RING);
        self.program(parts, "halo", &["100"], TWO, 4 * halo(100));
        self.program(parts, "halo", &["50"], FIVE, 10 * halo(50));
        self.program(parts, "semantics", &[], TWO, SEMANTICS);
        self.program(parts, "collectives", &["1"], TWO, 200);
        self.program(parts, "collectives", &["1"], PAIRS, 200);
        let words = ["-m", "mpi4py.bench", "ringtest", "-n", "1024", "-l", "20"];
        self.python(parts, "ringtest", &words, TWO);
        self.lost(parts, before)
    }

    /// Runs the conformance suite, which tests only the fabric, without the library.
    fn conformance(&self, parts: &mut TestParts) -> Result<(), String> {
        let before = self.rails.dropped()?;
        parts.test("conformance suite", || {
            let mut command = Command::new(&self.inside.conformance);
            command.arg("--test-threads=1").args(CONFORMANCE);
            command.envs([("WEFT_TEST_VERBS", "1"), ("WEFT_TEST_LOSSY", "1")]);
            let output = command.output().map_err(|e| format!("conformance: {e}"))?;
            let text = job::both(&output);
            if !output.status.success() {
                return Err(format!("{}\n{text}", output.status));
            }
            Ok(format!("{} checks", tools::count_cargo_tests(&text)?))
        });
        self.lost(parts, before)
    }

    /// Checks that packets were lost during the preceding tests. Without loss these tests would prove nothing.
    fn lost(&self, parts: &mut TestParts, before: u64) -> Result<(), String> {
        let lost = self.rails.dropped()? - before;
        parts.test("packets were lost", || match lost {
            0 => Err("netem has dropped no packet".to_owned()),
            lost => Ok(format!("{lost} of them")),
        });
        Ok(())
    }
}

/// Number of bytes of a packet of the rails.
const MTU: u64 = 4096;
/// A number of eager messages that is larger than any batch.
const BATCH: u64 = 128;

/// Number of packets that tests/c/ring sends to the next rank: for messages of 0, 1, 4, 13, ... bytes, below 5000000.
const RING: u64 = {
    let (mut packets, mut bytes) = (0, 0);
    while bytes < 5_000_000 {
        packets += if bytes == 0 { 1 } else { u64::div_ceil(bytes, MTU) };
        bytes = bytes * 3 + 1;
    }
    packets
};

/// Number of packets that tests/c/semantics needs for its longest message, sent four times.
const SEMANTICS: u64 = 4 * (1 << 20) / MTU;

/// Returns the number of packets that tests/c/halo sends to one neighbour. In every third step it sends 3000 numbers, in all other
/// steps 100.
fn halo(steps: u64) -> u64 {
    let long = steps.div_ceil(3);
    long * (3000 * 8_u64).div_ceil(MTU) + (steps - long)
}
