//! Tests inside the virtual machine: Kini's collectives, and collectives over streams, on real datagrams and RDMA writes, with and
//! without packet loss. The library's counters show that datagrams and writes were used.

use crate::test::cluster::job::{ClusterJob, LIMIT, RankNodes, word};
use crate::test::cluster::parts::TestParts;
use clap::Args;
use std::path::PathBuf;
use weft_vm::rails::CableAdapters;

/// Arguments of `vm-kini`.
#[derive(Args)]
pub struct VmKiniArgs {
    /// An installation of Weft.
    #[arg(long)]
    prefix: PathBuf,
    /// The folder of the compiled programs.
    #[arg(long)]
    programs: PathBuf,
    /// Run only the parts whose names contain this text, for example to examine one part.
    #[arg(long, default_value = "")]
    only: String,
}

/// Percentage of packets that netem drops.
const LOSS: &str = "1%";
/// Percentage of packets that netem drops for tests in which most broadcasts to several ranks must lose a packet. With a higher
/// percentage, connections would end: with 20 % loss, one message in 1,300 would fail in all seven tries, because acknowledgements
/// are also lost.
const HEAVY: &str = "10%";

const TWO: RankNodes = RankNodes(&[0, 1]);
const THREE: RankNodes = RankNodes(&[0, 1, 2]);
const FIVE: RankNodes = RankNodes(&[0, 1, 2, 3, 4]);
const EIGHT: RankNodes = RankNodes(&[0, 1, 2, 3, 4, 5, 6, 7]);
const PAIRS: RankNodes = RankNodes(&[0, 0, 1, 1]);

/// An algorithm for each operation.
type Selected = &'static [(&'static str, &'static str)];

const RPE: Selected = &[("WEFT_BARRIER", "RPE"), ("WEFT_ALLREDUCE", "RPE")];
const RDS: Selected = &[("WEFT_BARRIER", "RDS"), ("WEFT_ALLREDUCE", "RPE")];
const RGM1: Selected = &[
    ("WEFT_BARRIER", "RGM:1"),
    ("WEFT_ALLREDUCE", "RGM:1"),
    ("WEFT_BCAST", "MULTICAST"),
    ("WEFT_ALLGATHER", "MULTICAST"),
];
const RGM3: Selected = &[
    ("WEFT_BARRIER", "RGM:3"),
    ("WEFT_ALLREDUCE", "RGM:3"),
    ("WEFT_BCAST", "MULTICAST:1024"),
    ("WEFT_ALLGATHER", "MULTICAST"),
];
const RGM7: Selected = &[
    ("WEFT_BARRIER", "RGM:7"),
    ("WEFT_ALLREDUCE", "RGM:7"),
    ("WEFT_BCAST", "MULTICAST"),
    ("WEFT_ALLGATHER", "MULTICAST"),
];
/// Algorithms that use writes with immediate.
const IMMEDIATES: Selected =
    &[("WEFT_BARRIER", "RPE-IMM"), ("WEFT_ALLREDUCE", "RPE-IMM"), ("WEFT_ALLGATHER", "RDS-IMM")];
/// Algorithms that use the adapters' atomics, and algorithms that use reads.
const ATOMICS: Selected =
    &[("WEFT_BARRIER", "FETCH-ADD:3"), ("WEFT_ALLREDUCE", "RPE"), ("WEFT_ALLGATHER", "READ:4")];
/// Algorithms that send lost data again by multicast.
const AGAIN: Selected = &[
    ("WEFT_BARRIER", "RGM-IMM:3"),
    ("WEFT_ALLREDUCE", "RGM-IMM:3"),
    ("WEFT_BCAST", "MULTICAST"),
    ("WEFT_ALLGATHER", "MULTICAST"),
    ("WEFT_MULTICAST_REPAIR", "multicast"),
];
const EXCHANGE: Selected = &[("WEFT_BARRIER", "MPI-PE"), ("WEFT_ALLREDUCE", "MPI-PE")];
const GATHER: Selected = &[("WEFT_BARRIER", "MPI-DS"), ("WEFT_ALLREDUCE", "MPI-GB")];
const STREAMS: Selected = &[
    ("WEFT_BARRIER", "BRUCK"),
    ("WEFT_ALLREDUCE", "RING"),
    ("WEFT_BCAST", "BINOMIAL"),
    ("WEFT_ALLGATHER", "NEIGHBORS"),
];
const SEGMENTS: Selected = &[
    ("WEFT_BARRIER", "RECURSIVE-DOUBLING"),
    ("WEFT_ALLREDUCE", "RABENSEIFNER"),
    ("WEFT_BCAST", "PIPELINE:8192"),
    ("WEFT_ALLGATHER", "RING"),
];

/// Counters that must be larger than 0 if multicast is used.
const CAST: &[&str] = &["multicasts+", "multicast_datagrams+"];
/// Counters that must be larger than 0 if multicast is used and packets are lost.
const REPAIRED: &[&str] = &["multicasts+", "multicast_naks+", "multicast_repairs+"];
const RECAST: &[&str] =
    &["multicasts+", "multicast_naks+", "multicast_recasts_sent+", "multicast_repairs+"];
const STREAMED: &[&str] = &["stream_small+", "stream_segmented+", "stream_received+"];

pub fn inside(inside: &VmKiniArgs) -> Result<(), String> {
    let rails = CableAdapters::find()?;
    let mut parts = TestParts::new(&inside.only);
    let run = |parts: &mut TestParts, selected, nodes, rounds: u32, counters: &[&str]| {
        let mut words = vec![word(&inside.programs, "kini"), rounds.to_string()];
        words.extend(counters.iter().map(|&c| c.to_owned()));
        job(inside, &rails, parts, words, nodes, selected);
    };
    parts.part("collectives", |parts| {
        run(parts, RPE, THREE, 4, &[]);
        run(parts, RDS, FIVE, 2, &[]);
        run(parts, IMMEDIATES, FIVE, 3, &[]);
        run(parts, ATOMICS, PAIRS, 3, &[]);
        run(parts, ATOMICS, FIVE, 2, &[]);
        run(parts, RGM1, PAIRS, 4, CAST);
        run(parts, RGM7, EIGHT, 2, CAST);
        run(parts, STREAMS, TWO, 8, STREAMED);
        Ok(())
    })?;
    rails.lose(Some(LOSS))?;
    parts.part(&format!("collectives, {LOSS} of the packets lost"), |parts| {
        let before = rails.dropped()?;
        run(parts, RPE, EIGHT, 2, &[]);
        run(parts, RDS, THREE, 4, &[]);
        run(parts, RGM1, FIVE, 4, REPAIRED);
        run(parts, RGM3, TWO, 16, REPAIRED);
        run(parts, RGM7, EIGHT, 3, REPAIRED);
        run(parts, AGAIN, FIVE, 4, RECAST);
        run(parts, EXCHANGE, FIVE, 2, &[]);
        run(parts, GATHER, PAIRS, 2, &[]);
        run(parts, SEGMENTS, FIVE, 4, STREAMED);
        match rails.dropped()? - before {
            0 => Err("netem has dropped no packet".to_owned()),
            _ => Ok(()),
        }
    })?;
    rails.lose(Some(HEAVY))?;
    parts.part(&format!("roots that compute, and ends, {HEAVY} of the packets lost"), |parts| {
        root_computes(inside, &rails, parts, FIVE, 24);
        run(parts, AGAIN, THREE, 2, RECAST);
        for _ in 0..2 {
            run(parts, RGM7, THREE, 1, &[]);
        }
        Ok(())
    })?;
    rails.lose(None)?;
    parts.end()
}

/// Runs a program of tests/c.
fn job(
    inside: &VmKiniArgs,
    rails: &CableAdapters,
    parts: &mut TestParts,
    words: Vec<String>,
    nodes: RankNodes,
    selected: Selected,
) {
    let algorithms: Vec<&str> = selected.iter().map(|(_, name)| *name).collect();
    let name = words[0].rsplit('/').next().unwrap_or_default();
    let name = format!("{name} {} on nodes {:?}", algorithms.join(" "), nodes.0);
    // A lost packet costs a timeout, so the tests set a shorter timeout.
    let environment: Vec<_> =
        selected.iter().copied().chain([("WEFT_ACK_TIMEOUT", "14")]).collect();
    parts.test(&name, || {
        let job = ClusterJob {
            nodes,
            words,
            says: "correct",
            packets: 100,
            each: 0,
            environment: &environment,
            limit: LIMIT,
        };
        let (text, packets) = job.run(&inside.prefix, rails)?;
        let counted = |line: &str| line.strip_prefix("counted ").map(str::to_owned);
        let mut all: Vec<String> = text.lines().filter_map(counted).collect();
        all.extend(text.lines().filter(|l| l.starts_with("repaired ")).map(str::to_owned));
        all.push(format!("{packets} packets"));
        Ok(all.join(", "))
    });
}

fn root_computes(
    inside: &VmKiniArgs,
    rails: &CableAdapters,
    parts: &mut TestParts,
    nodes: RankNodes,
    rounds: u32,
) {
    let words = vec![word(&inside.programs, "kini_root"), rounds.to_string(), "+".to_owned()];
    job(inside, rails, parts, words, nodes, RGM7);
}
