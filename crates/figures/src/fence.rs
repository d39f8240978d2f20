//! Fence: designs of fence synchronization.

use super::figure::{Axis, Check, Document, Figure, FigureHeading, Headline, Shown, Simulate};
use super::lab::Lab;
use super::orders::{grouped, order};
use super::published::{CheckResult, FigureValue};
use super::series::{Quotient, Series};
use super::workload::{Fence, Workload};
use weft_rma::FenceDesign;

const MACHINE: &str = "fence";
const NODES: usize = 64;
/// Numbers of processes that are drawn.
const SIZES: [usize; 4] = [8, 16, 32, NODES];
const HALO_EVERYWHERE: &str =
    "Halo Communication Pattern; fastest design; each number of processes";
const JOINED: &str = "Fence-2S with its last put joined with the synchronization against an end of its own; 64 nodes, one put each and 8 neighbours";

/// The document's four designs, and ours.
const DESIGNS: [(&str, FenceDesign); 5] = [
    ("Fence-2S", FenceDesign::TwoSided),
    ("Fence-1S", FenceDesign::Pairwise),
    ("Fence-1S-Barrier", FenceDesign::Barrier),
    ("Fence-RI", FenceDesign::Immediate),
    ("ACK (ours)", FenceDesign::Acknowledged),
];

const RANKS: Axis = Axis { label: "Processes", unit: "", doubling: true };
const TIME: Axis = Axis { label: "Latency", unit: "us", doubling: false };

const fn on(fence: Fence, design: FenceDesign) -> Workload {
    Workload::Fence(fence, design)
}

/// Statements of the slides, each with its figure.
const ROWS: [(&str, &str); 10] = [
    ("fence-overlap", "overlap of Fence-2S; any size"),
    (
        "fence-overlap",
        "overlap of the one-sided designs against Fence-2S; Fence-1S, Fence-1S-Barrier and Fence-RI",
    ),
    ("fence-zero", "Latency of Fence (Zero-put); fastest design; 64 nodes"),
    ("fence-zero", "slowest design; 64 nodes"),
    ("fence-put", "Fence-RI against Fence-1S-Barrier; 64 nodes, one put each"),
    ("fence-put", "slowest design; 64 nodes, one put each"),
    ("fence-puts", "fastest design; 8 neighbours, 64 nodes"),
    ("fence-puts", "Fence-RI against Fence-1S-Barrier; 8 neighbours, 64 nodes"),
    ("fence-halo", "Halo Communication Pattern; fastest design; 64 nodes"),
    ("fence-halo", HALO_EVERYWHERE),
];

fn figure(heading: FigureHeading, fence: Fence, x: Axis, y: Axis, note: &'static str) -> Figure {
    let FigureHeading { id, title, place } = heading;
    let sizes = match fence {
        Fence::Overlap => (4..=20).step_by(2).map(|power| 1 << power).collect(),
        _ => SIZES.to_vec(),
    };
    let curve = |(name, design)| Series {
        name,
        machine: MACHINE,
        workload: on(fence, design),
        over: None,
        x: Vec::clone(&sizes),
    };
    let series = DESIGNS.into_iter().map(curve).collect();
    let rows = ROWS.iter().filter(|(of, _)| *of == id).map(|(_, row)| *row).collect();
    Figure { id, title, place, x, y, series, marks: Vec::new(), rows, note }
}

/// Returns the document's four designs, the fastest first.
fn ranking(lab: &Lab, fence: Fence, ranks: usize) -> Result<Vec<&'static str>, String> {
    let mut all = Vec::new();
    for (name, design) in &DESIGNS[..4] {
        all.push((lab.measure(MACHINE, on(fence, *design), ranks)?, *name));
    }
    all.sort_by(|a, b| a.0.total_cmp(&b.0));
    Ok(all.into_iter().map(|(_, name)| name).collect())
}

fn fastest(lab: &Lab, fence: Fence) -> CheckResult {
    Ok(FigureValue::Word(ranking(lab, fence, NODES)?[0].to_owned()))
}

fn slowest(lab: &Lab, fence: Fence) -> CheckResult {
    Ok(FigureValue::Word(ranking(lab, fence, NODES)?[3].to_owned()))
}

/// Compares Fence-RI with Fence-1S-Barrier.
fn immediate_against_barrier(lab: &Lab, fence: Fence) -> CheckResult {
    let order = ranking(lab, fence, NODES)?;
    let place = |name| order.iter().position(|&other| other == name);
    let faster = place("Fence-RI") < place("Fence-1S-Barrier");
    let word = if faster { "Fence-RI faster" } else { "Fence-1S-Barrier faster" };
    Ok(FigureValue::Word(word.to_owned()))
}

/// Returns the largest overlap of a design over all sizes.
fn overlap(lab: &Lab, design: FenceDesign) -> Result<f64, String> {
    let at = |power| lab.measure(MACHINE, on(Fence::Overlap, design), 1usize << power);
    (4..=20).step_by(2).map(at).try_fold(0.0, |most: f64, found| Ok(most.max(found?)))
}

fn one_sided_overlap(lab: &Lab) -> CheckResult {
    let base = overlap(lab, FenceDesign::TwoSided)?;
    for design in [FenceDesign::Pairwise, FenceDesign::Barrier, FenceDesign::Immediate] {
        if overlap(lab, design)? <= base {
            return Ok(FigureValue::Word("less".to_owned()));
        }
    }
    Ok(FigureValue::Word("more".to_owned()))
}

/// Compares Fence-2S with a variant of Fence-2S that ends its epochs by a separate message.
fn joined(lab: &Lab) -> CheckResult {
    let mut pairs = Vec::new();
    for fence in [Fence::Put, Fence::Puts] {
        let time = |design| lab.measure(MACHINE, on(fence, design), NODES);
        pairs.push((time(FenceDesign::TwoSided)?, time(FenceDesign::TwoSidedApart)?));
    }
    Ok(order("joined", &pairs))
}

fn checks() -> Vec<Check> {
    let all: [Shown; 11] = [
        ("Latency of Fence (Zero-put); fastest design; 64 nodes", |lab| fastest(lab, Fence::Alone)),
        ("slowest design; 64 nodes", |lab| slowest(lab, Fence::Alone)),
        ("Fence-RI against Fence-1S-Barrier; 64 nodes, one put each", |lab| {
            immediate_against_barrier(lab, Fence::Put)
        }),
        ("fastest design; 8 neighbours, 64 nodes", |lab| fastest(lab, Fence::Puts)),
        ("Halo Communication Pattern; fastest design; 64 nodes", |lab| fastest(lab, Fence::Halo)),
        (HALO_EVERYWHERE, |lab| {
            let best = |ranks| Ok((ranks, ranking(lab, Fence::Halo, ranks)?[0]));
            let all = SIZES.into_iter().map(best).collect::<Result<Vec<_>, String>>()?;
            Ok(FigureValue::Word(grouped(&all)))
        }),
        ("overlap of Fence-2S; any size", |lab| {
            Ok(FigureValue::Number(overlap(lab, FenceDesign::TwoSided)?))
        }),
        ("slowest design; 64 nodes, one put each", |lab| slowest(lab, Fence::Put)),
        ("Fence-RI against Fence-1S-Barrier; 8 neighbours, 64 nodes", |lab| {
            immediate_against_barrier(lab, Fence::Puts)
        }),
        (
            "overlap of the one-sided designs against Fence-2S; Fence-1S, Fence-1S-Barrier and Fence-RI",
            one_sided_overlap,
        ),
        (JOINED, joined),
    ];
    all.into_iter().map(|(row, run)| Check { row, simulate: Simulate::Runs(run) }).collect()
}

fn figures() -> Vec<Figure> {
    let percent = Axis { label: "Overlap", unit: "%", doubling: false };
    let bytes = Axis { label: "Message", unit: "bytes", doubling: true };
    vec![
        figure(
            FigureHeading::new("fence-overlap", "Overlap", "\"Overlap\""),
            Fence::Overlap,
            bytes,
            percent,
            "A put and its fence between two nodes; computation that takes as long between them.",
        ),
        figure(
            FigureHeading::new("fence-zero", "Latency of fence", "\"Latency of Fence (Zero-put)\""),
            Fence::Alone,
            RANKS,
            TIME,
            "Fences, one after the other.",
        ),
        figure(
            FigureHeading::new(
                "fence-put",
                "Latency of fence with a put",
                "\"Latency of Fence with Put Operations\"",
            ),
            Fence::Put,
            RANKS,
            TIME,
            "Each process puts 64 bytes to the next one between two fences.",
        ),
        figure(
            FigureHeading::new(
                "fence-puts",
                "Latency of fence with puts to 8 neighbours",
                "\"Latency of Fence with Multiple Put Operations\"",
            ),
            Fence::Puts,
            RANKS,
            TIME,
            "Each process puts 64 bytes to each of the next eight between two fences.",
        ),
        figure(
            FigureHeading::new("fence-halo", "Halo exchange", "\"Halo Communication Pattern\""),
            Fence::Halo,
            RANKS,
            TIME,
            "Four faces of 8 KiB on a torus, 60 us of computation before the fence.",
        ),
    ]
}

pub fn document() -> Document {
    Document {
        id: "fence",
        paper: "Fence",
        title: "Santhanaraman et al. 2009, design alternatives for fence synchronization",
        machines: &[MACHINE],
        about: "The four designs and ours, from the shipped windows. The slides give orders and no times; what \
                their bars stand for is not in their text: puts here are of 64 bytes, faces of the halo of 8 KiB.",
        figures: figures(),
        maps: Vec::new(),
        checks: checks(),
        headlines: vec![Headline {
            name: "halo exchange, Fence-RI against Fence-2S",
            machine: MACHINE,
            of: Quotient::Ratio([
                (on(Fence::Halo, FenceDesign::TwoSided), NODES),
                (on(Fence::Halo, FenceDesign::Immediate), NODES),
            ]),
        }],
    }
}
