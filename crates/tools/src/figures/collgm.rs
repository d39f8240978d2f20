//! CollGM: a collective component over Myrinet.

use super::figure::{Axis, Check, Document, Figure, Headline, Map, Quotient, Series, Simulate};
use super::lab::Lab;
use super::published::Value;
use super::workload::Workload;
use weft_collective::Operation;

const MACHINE: &str = "collgm";
/// The "small" and the "large" node count of section 4.
const SMALL: usize = 16;
const LARGE: usize = 64;

const BYTES: Axis = Axis { label: "Message", unit: "bytes", doubling: true };
const LATENCY: Axis = Axis { label: "Latency", unit: "us", doubling: false };

/// Those of section 3.4, over streams; the baselines are the same over MPI's messages.
const BCAST: [&str; 5] = ["FLAT", "BINOMIAL", "BINARY", "SPLIT-BINARY", "PIPELINE"];
const SCATTER: [&str; 2] = ["FLAT", "BINOMIAL"];
const ALLTOALL: [&str; 3] = ["LINEAR", "PAIRWISE", "BRUCK"];

const BEST_SEGMENT: &str = "best eager segment size; 32 MByte transfer";
const BLOCK: &str = "registration pipeline block; rendezvous";
const SWITCH: &str =
    "switch from binomial tree to flat tree in scatter and gather; message size at or above";
const VERY_SMALL: &str = "best broadcast algorithm; very small messages";
const STANDARD: &str = "best broadcast algorithm; small to standard messages";
const BIG: &str = "best broadcast algorithm; large messages";
const BARRIER: &str = "barrier against the tuned module of Open MPI; all node counts";

/// Powers of `factor` from `from` to `to`.
fn powers(from: usize, to: usize, factor: usize) -> Vec<usize> {
    std::iter::successors(Some(from), |n| Some(n * factor)).take_while(|&n| n <= to).collect()
}

/// Segments of figure 3: 4 KiB, a packet, to 1 MiB.
fn segments() -> Vec<usize> {
    powers(4 << 10, 1 << 20, 2)
}

/// A figure over message size: curves of `operation` on so many nodes.
fn over_bytes(
    id: &'static str,
    title: &'static str,
    place: &'static str,
    (operation, nodes): (Operation, usize),
    names: &[&'static str],
    most: usize,
) -> Figure {
    let curve = |&name: &&'static str| Series {
        name,
        machine: MACHINE,
        workload: Workload::Collective(operation, name, nodes),
        over: None,
        x: powers(1, most, 4),
    };
    let series = names.iter().map(curve).collect();
    let note = "From a common start to the last rank's end. MPI-X is X over MPI point-to-point.";
    Figure {
        id,
        title,
        place,
        x: BYTES,
        y: LATENCY,
        series,
        marks: Vec::new(),
        rows: Vec::new(),
        note,
    }
}

fn figures() -> Vec<Figure> {
    use Operation::{Alltoall, Bcast, Scatter};
    let transfer = |id, title, place, workload, rows| Figure {
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
        rows,
        note: "",
    };
    let broadcasts = [
        "BINOMIAL",
        "SPLIT-BINARY",
        "PIPELINE",
        "MPI-BINOMIAL",
        "MPI-SPLIT-BINARY",
        "MPI-PIPELINE",
    ];
    let scatters = ["FLAT", "BINOMIAL", "MPI-FLAT", "MPI-BINOMIAL"];
    let alltoalls = ["LINEAR", "PAIRWISE", "BRUCK", "MPI-LINEAR", "MPI-PAIRWISE", "MPI-BRUCK"];
    vec![
        transfer(
            "collgm-3",
            "32 MiB by segment size",
            "figure 3",
            Workload::Segments,
            vec![BEST_SEGMENT],
        ),
        transfer(
            "collgm-3-blocks",
            "32 MiB by rendezvous, by block of registration",
            "section 3.3, no figure there",
            Workload::Blocks,
            vec![BLOCK],
        ),
        over_bytes(
            "collgm-6",
            "Alltoall, 16 nodes",
            "figure 6",
            (Alltoall, SMALL),
            &alltoalls,
            64 << 10,
        ),
        Figure {
            rows: vec![VERY_SMALL, STANDARD, BIG],
            ..over_bytes(
                "collgm-8",
                "Broadcast, 16 nodes",
                "figure 8",
                (Bcast, SMALL),
                &broadcasts,
                1 << 20,
            )
        },
        Figure {
            rows: vec![SWITCH],
            ..over_bytes(
                "collgm-10",
                "Scatter, 16 nodes",
                "figure 10",
                (Scatter, SMALL),
                &scatters,
                64 << 10,
            )
        },
        over_bytes(
            "collgm-12",
            "Broadcast, 64 nodes",
            "figure 12",
            (Bcast, LARGE),
            &broadcasts,
            1 << 20,
        ),
        over_bytes(
            "collgm-13",
            "Scatter, 64 nodes",
            "figure 13",
            (Scatter, LARGE),
            &scatters,
            64 << 10,
        ),
        Figure {
            id: "collgm-barrier",
            title: "Barrier",
            place: "section 3.4, no figure there",
            x: Axis { label: "Nodes", unit: "", doubling: true },
            y: LATENCY,
            series: ["RECURSIVE-DOUBLING", "BRUCK", "MPI-PE", "MPI-DS"]
                .map(|name| Series {
                    name,
                    machine: MACHINE,
                    workload: Workload::Barrier(name),
                    over: None,
                    x: barrier_nodes(),
                })
                .into(),
            marks: Vec::new(),
            rows: vec![BARRIER],
            note: "MPI-PE and MPI-DS are what Open MPI's tuned module does.",
        },
    ]
}

fn barrier_nodes() -> Vec<usize> {
    vec![2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64]
}

fn maps() -> Vec<Map> {
    let map = |id, title, place, operation, names: &[&'static str], most: usize, largest| Map {
        id,
        title,
        place,
        machine: MACHINE,
        operation,
        names: names.to_vec(),
        processes: powers(2, most, 2),
        bytes: powers(1, largest, 4),
        note: "The fastest at each place, over streams.",
    };
    use Operation::{Alltoall, Bcast, Scatter};
    vec![
        // On 64 nodes the document's alltoall aborted (section 4.2).
        map("collgm-7", "Alltoall: the fastest", "figure 7", Alltoall, &ALLTOALL, 32, 64 << 10),
        map("collgm-9", "Broadcast: the fastest", "figure 9", Bcast, &BCAST, LARGE, 4 << 20),
        map("collgm-11", "Scatter: the fastest", "figure 11", Scatter, &SCATTER, LARGE, 64 << 10),
    ]
}

type Answer = Result<Value, String>;

/// The size at which `workload` is fastest, in KiB; of those that no measurement could tell from the
/// fastest, the largest: the model hides what a segment costs behind its bytes.
fn best_size(lab: &Lab, workload: Workload) -> Answer {
    /// A twentieth of a percent.
    const LEVEL: f64 = 1.0005;
    let time = |size| Ok((lab.measure(MACHINE, workload, size)?, size));
    let times = segments().into_iter().map(time).collect::<Result<Vec<_>, String>>()?;
    let least = times.iter().map(|t| t.0).fold(f64::INFINITY, f64::min);
    let largest = times.iter().filter(|t| t.0 <= least * LEVEL).map(|t| t.1).max();
    Ok(Value::Number(largest.unwrap_or(0) as f64 / 1024.0))
}

/// The broadcast that is the fastest of a class of sizes on both node counts, as the list calls it: that
/// with the least product of times.
fn best_bcast(lab: &Lab, sizes: &[usize]) -> Answer {
    let mut best = (f64::INFINITY, "");
    for name in BCAST {
        let mut product = 0.0;
        for nodes in [SMALL, LARGE] {
            for &bytes in sizes {
                let workload = Workload::Collective(Operation::Bcast, name, nodes);
                product += lab.measure(MACHINE, workload, bytes)?.ln();
            }
        }
        if product < best.0 {
            best = (product, name);
        }
    }
    let name = match best.1 {
        "BINOMIAL" => "binomial tree",
        "SPLIT-BINARY" => "split binary tree",
        "PIPELINE" => "pipeline",
        "FLAT" => "flat tree",
        "BINARY" => "binary tree",
        other => other,
    };
    Ok(Value::Word(name.to_owned()))
}

/// From this power of two on, in KiB, the flat tree is at least as fast as the binomial one, in both
/// operations on the small node count.
fn switch(lab: &Lab) -> Answer {
    let mut from = None;
    for bytes in powers(1, 64 << 10, 2) {
        let mut flat = true;
        for operation in [Operation::Scatter, Operation::Gather] {
            let time =
                |name| lab.measure(MACHINE, Workload::Collective(operation, name, SMALL), bytes);
            flat &= time("FLAT")? <= time("BINOMIAL")?;
        }
        from = if flat { from.or(Some(bytes)) } else { None };
    }
    Ok(from.map_or(Value::Word("never".to_owned()), |b| Value::Number(b as f64 / 1024.0)))
}

/// Barriers over streams beside those over messages, the better of both at each node count.
fn barriers(lab: &Lab) -> Answer {
    /// The document sees "very close" in a picture.
    const ALIKE: f64 = 1.1;
    let mut most = (1.0, 0);
    for nodes in barrier_nodes() {
        let of = |a, b| {
            let time = |name| lab.measure(MACHINE, Workload::Barrier(name), nodes);
            Ok::<_, String>(time(a)?.min(time(b)?))
        };
        let factor = of("MPI-PE", "MPI-DS")? / of("RECURSIVE-DOUBLING", "BRUCK")?;
        let apart = factor.max(1.0 / factor);
        if apart > most.0 {
            most = (apart, nodes);
        }
    }
    let (apart, nodes) = most;
    Ok(Value::Word(if apart <= ALIKE {
        "similar".to_owned()
    } else {
        format!("{apart:.2} apart on {nodes} nodes")
    }))
}

fn checks() -> Vec<Check> {
    let runs = |row, runs| Check { row, simulate: Simulate::Runs(runs) };
    vec![
        runs(BEST_SEGMENT, |lab| best_size(lab, Workload::Segments)),
        runs(BLOCK, |lab| best_size(lab, Workload::Blocks)),
        runs(SWITCH, switch),
        runs(VERY_SMALL, |lab| best_bcast(lab, &[1, 4, 16, 64])),
        runs(STANDARD, |lab| best_bcast(lab, &powers(1 << 10, 64 << 10, 4))),
        runs(BIG, |lab| best_bcast(lab, &[1 << 20, 4 << 20, 16 << 20])),
        runs(BARRIER, barriers),
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
            Operation::Bcast,
            ["BINOMIAL", "SPLIT-BINARY"],
            16 << 10,
        ),
        ratio(
            "bcast SPLIT-BINARY / PIPELINE, 1 MiB",
            Operation::Bcast,
            ["SPLIT-BINARY", "PIPELINE"],
            1 << 20,
        ),
        ratio("scatter BINOMIAL / FLAT, 1 KiB", Operation::Scatter, ["BINOMIAL", "FLAT"], 1 << 10),
    ]
}

pub fn document() -> Document {
    Document {
        id: "collgm",
        paper: "CollGM",
        title: "Hoefler et al. 2007, a collective component for Open MPI over Myrinet GM",
        machines: &[MACHINE],
        about: "Its text gives no times, so orders and switch points are what is compared. Every parameter \
                of the machine but one is assumed. X runs over streams of segments, as the document's component \
                does; MPI-X is the same algorithm over MPI point-to-point, as Open MPI's tuned module.",
        figures: figures(),
        maps: maps(),
        checks: checks(),
        headlines: headlines(),
    }
}
