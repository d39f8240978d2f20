//! CollGM: a collective component over Myrinet.

mod checks;

use super::figure::{AlgorithmMap, Axis, Contender, Document, Figure, FigureHeading, Headline};
use super::series::{Quotient, Series};
use super::workload::{Contenders, Workload};
use weft_collective::CollectiveKind;

const MACHINE: &str = "collgm";
/// Node counts that section 4 calls "small" and "large".
const SMALL: usize = 16;
const LARGE: usize = 64;

const BYTES: Axis = Axis { label: "Message", unit: "bytes", doubling: true };
const LATENCY: Axis = Axis { label: "Latency", unit: "us", doubling: false };

/// Names of two curves: the best variant of the baseline, and the component with shorter segments.
const TUNED: &str = "tuned, best";
const CUT: &str = "cut, best";

/// Broadcast algorithms of section 3.4, over streams. The baselines are the same algorithms over MPI's messages.
const BCAST: [&str; 5] = ["FLAT", "BINOMIAL", "BINARY", "SPLIT-BINARY", "PIPELINE"];

/// Returns the powers of `factor` from `from` to `to`.
fn powers(from: usize, to: usize, factor: usize) -> Vec<usize> {
    std::iter::successors(Some(from), |n| Some(n * factor)).take_while(|&n| n <= to).collect()
}

/// Returns the segment sizes of figure 3: from 4 KiB, which is one packet, to 1 MiB.
fn segments() -> Vec<usize> {
    powers(4 << 10, 1 << 20, 2)
}

/// Returns a figure over message size: curves of `operation` on `nodes` nodes.
fn over_bytes(
    heading: FigureHeading,
    operation: CollectiveKind,
    nodes: usize,
    names: &[&'static str],
    most: usize,
    rows: &[&'static str],
) -> Figure {
    let FigureHeading { id, title, place } = heading;
    let curve = |&name: &&'static str| Series {
        name,
        machine: MACHINE,
        workload: Workload::Collective(operation, name, nodes),
        over: None,
        x: powers(1, most, 4),
    };
    let mut series: Vec<_> = names.iter().map(curve).collect();
    let mut best = |name, who| {
        let workload = Workload::Fastest(who, operation, nodes);
        series.push(Series { name, machine: MACHINE, workload, over: None, x: powers(1, most, 4) });
    };
    if operation == CollectiveKind::Bcast {
        best(CUT, Contenders::ComponentCut);
    }
    best(TUNED, Contenders::Tuned);
    let note = "From a common start to the last rank's end. MPI-X is X over MPI point-to-point, in segments of 64 KiB.";
    Figure {
        id,
        title,
        place,
        x: BYTES,
        // Values range from 20 us to many milliseconds. Only a logarithmic scale shows which curve is lower at small values.
        y: Axis { doubling: true, ..LATENCY },
        series,
        marks: Vec::new(),
        rows: rows.to_vec(),
        note,
    }
}

/// Returns a figure of the bandwidth of a transfer of 32 MiB over the segment size.
fn transfer(heading: FigureHeading, workload: Workload, row: &'static str) -> Figure {
    let FigureHeading { id, title, place } = heading;
    Figure {
        id,
        title,
        place,
        x: Axis { label: "Segment", ..BYTES },
        y: LATENCY,
        series: vec![Series {
            name: "32 MiB",
            machine: MACHINE,
            workload,
            over: None,
            x: segments(),
        }],
        marks: Vec::new(),
        rows: vec![row],
        note: "",
    }
}

fn barriers() -> Figure {
    let curve = |name| Series {
        name,
        machine: MACHINE,
        workload: Workload::Barrier(name),
        over: None,
        x: barrier_nodes(),
    };
    Figure {
        id: "collgm-barrier",
        title: "Barrier",
        place: "section 3.4, no figure there",
        x: Axis { label: "Nodes", unit: "", doubling: true },
        y: LATENCY,
        series: ["RECURSIVE-DOUBLING", "BRUCK", "MPI-PE", "MPI-DS"].map(curve).into(),
        marks: Vec::new(),
        rows: vec![checks::BARRIER],
        note: "MPI-PE and MPI-DS are what Open MPI's tuned module does.",
    }
}

fn figures() -> Vec<Figure> {
    use CollectiveKind::{Alltoall, Bcast, Gather, Scatter};
    let broadcasts = [
        "BINOMIAL",
        "SPLIT-BINARY",
        "PIPELINE",
        "MPI-BINOMIAL",
        "MPI-SPLIT-BINARY",
        "MPI-PIPELINE",
    ];
    let trees = ["FLAT", "BINOMIAL", "MPI-FLAT", "MPI-BINOMIAL"];
    let alltoalls = ["LINEAR", "PAIRWISE", "BRUCK", "MPI-LINEAR", "MPI-PAIRWISE", "MPI-BRUCK"];
    vec![
        transfer(
            FigureHeading::new("collgm-3", "32 MiB by segment size", "figure 3"),
            Workload::Segments,
            checks::BEST_SEGMENT,
        ),
        transfer(
            FigureHeading::new(
                "collgm-3-blocks",
                "32 MiB by rendezvous, by block of registration",
                "section 3.3, no figure there",
            ),
            Workload::Blocks,
            checks::BLOCK,
        ),
        over_bytes(
            FigureHeading::new("collgm-6", "Alltoall, 16 nodes", "figure 6"),
            Alltoall,
            SMALL,
            &alltoalls,
            64 << 10,
            &[checks::ALLTOALL_16],
        ),
        over_bytes(
            FigureHeading::new("collgm-8", "Broadcast, 16 nodes", "figure 8"),
            Bcast,
            SMALL,
            &broadcasts,
            1 << 20,
            &[checks::BCAST_16, checks::VERY_SMALL, checks::STANDARD, checks::BIG],
        ),
        over_bytes(
            FigureHeading::new("collgm-10", "Scatter, 16 nodes", "figure 10"),
            Scatter,
            SMALL,
            &trees,
            64 << 10,
            &[checks::SCATTER_16, checks::SWITCH],
        ),
        over_bytes(
            FigureHeading::new("collgm-gather", "Gather, 16 nodes", "section 4.1, no figure there"),
            Gather,
            SMALL,
            &trees,
            64 << 10,
            &[checks::GATHER, checks::SWITCH],
        ),
        over_bytes(
            FigureHeading::new("collgm-12", "Broadcast, 64 nodes", "figure 12"),
            Bcast,
            LARGE,
            &broadcasts,
            1 << 20,
            &[checks::BCAST_64],
        ),
        over_bytes(
            FigureHeading::new("collgm-13", "Scatter, 64 nodes", "figure 13"),
            Scatter,
            LARGE,
            &trees,
            64 << 10,
            &[checks::SCATTER_64],
        ),
        barriers(),
    ]
}

fn barrier_nodes() -> Vec<usize> {
    vec![2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64]
}

/// Returns the algorithms of section 3.4 over streams, and the baseline.
fn contenders(operation: CollectiveKind) -> Vec<Contender> {
    let mut all: Vec<Contender> = match operation {
        CollectiveKind::Bcast => vec![
            ("FLAT", |of, n| Workload::Collective(of, "FLAT", n)),
            ("BINOMIAL", |of, n| Workload::Collective(of, "BINOMIAL", n)),
            ("BINARY", |of, n| Workload::Collective(of, "BINARY", n)),
            ("SPLIT-BINARY", |of, n| Workload::Collective(of, "SPLIT-BINARY", n)),
            ("PIPELINE", |of, n| Workload::Collective(of, "PIPELINE", n)),
        ],
        CollectiveKind::Alltoall => vec![
            ("LINEAR", |of, n| Workload::Collective(of, "LINEAR", n)),
            ("PAIRWISE", |of, n| Workload::Collective(of, "PAIRWISE", n)),
            ("BRUCK", |of, n| Workload::Collective(of, "BRUCK", n)),
        ],
        _ => vec![
            ("FLAT", |of, n| Workload::Collective(of, "FLAT", n)),
            ("BINOMIAL", |of, n| Workload::Collective(of, "BINOMIAL", n)),
        ],
    };
    all.push((TUNED, |of, n| Workload::Fastest(Contenders::Tuned, of, n)));
    all
}

/// Largest values on the axes of a map.
struct MapRange {
    processes: usize,
    bytes: usize,
}

/// Returns a map of the document.
fn map(
    heading: FigureHeading,
    operation: CollectiveKind,
    range: MapRange,
    rows: &[&'static str],
) -> AlgorithmMap {
    let FigureHeading { id, title, place } = heading;
    AlgorithmMap {
        id,
        title,
        place,
        machine: MACHINE,
        operation,
        names: contenders(operation),
        processes: powers(2, range.processes, 2),
        bytes: powers(1, range.bytes, 4),
        rows: rows.to_vec(),
        note: "The fastest at each place: an algorithm over streams, or the baseline at its best.",
    }
}

fn maps() -> Vec<AlgorithmMap> {
    use CollectiveKind::{Alltoall, Bcast, Scatter};
    vec![
        // On 64 nodes the document's alltoall aborted (section 4.2).
        map(
            FigureHeading::new("collgm-7", "Alltoall: the fastest", "figure 7"),
            Alltoall,
            MapRange { processes: 32, bytes: 64 << 10 },
            &[checks::MAP_7],
        ),
        map(
            FigureHeading::new("collgm-9", "Broadcast: the fastest", "figure 9"),
            Bcast,
            MapRange { processes: LARGE, bytes: 4 << 20 },
            &[checks::MAP_9, checks::REGIONS_9],
        ),
        map(
            FigureHeading::new("collgm-11", "Scatter: the fastest", "figure 11"),
            Scatter,
            MapRange { processes: LARGE, bytes: 64 << 10 },
            &[checks::MAP_11, checks::REGIONS_11],
        ),
    ]
}

fn headlines() -> Vec<Headline> {
    let collective = |operation, name| Workload::Collective(operation, name, SMALL);
    let ratio = |name, operation, [a, b]: [&'static str; 2], bytes| Headline {
        name,
        machine: MACHINE,
        of: Quotient::Ratio([(collective(operation, a), bytes), (collective(operation, b), bytes)]),
    };
    vec![
        ratio(
            "bcast BINOMIAL / SPLIT-BINARY, 16 KiB",
            CollectiveKind::Bcast,
            ["BINOMIAL", "SPLIT-BINARY"],
            16 << 10,
        ),
        ratio(
            "bcast SPLIT-BINARY / PIPELINE, 1 MiB",
            CollectiveKind::Bcast,
            ["SPLIT-BINARY", "PIPELINE"],
            1 << 20,
        ),
        ratio(
            "scatter BINOMIAL / FLAT, 1 KiB",
            CollectiveKind::Scatter,
            ["BINOMIAL", "FLAT"],
            1 << 10,
        ),
    ]
}

pub fn document() -> Document {
    Document {
        id: "collgm",
        paper: "CollGM",
        title: "Hoefler et al. 2007, a collective component for Open MPI over Myrinet GM",
        machines: &[MACHINE],
        about: "Its text gives no times, so orders and switch points are what is compared; what of the machine is \
                fitted and what assumed stands below its name. X runs over streams of segments of 64 KiB, as the \
                document's component does; MPI-X is the same algorithm over MPI point-to-point, in segments of 64 KiB, \
                each of which is a rendezvous that registers memory at both ends. \"tuned\" is the baseline at its best, \
                at each place the least time of all MPI-X, with segments of 4, 8, 16 or 64 KiB, and with messages of \
                up to 64 KiB sent at once through memory that is registered for good; it stands for Open MPI's tuned \
                module and for MPICH-GM. \"cut\" is the component with the same choice of segments, which the document's \
                does not have.",
        figures: figures(),
        maps: maps(),
        checks: checks::checks(),
        headlines: headlines(),
    }
}
