//! acoll: Open MPI's component for nodes with EPYC processors, against Open MPI's component tuned.

use super::figure::{Axis, Check, Document, Figure, FigureHeading, Headline, Simulate};
use super::lab::Lab;
use super::published::{CheckResult, FigureValue};
use super::series::{Quotient, Series};
use super::workload::Workload;
use weft_collective::CollectiveKind::{self, Allreduce, Bcast, Gather};

const MACHINE: &str = "epyc9654";
const LEVELS: Option<&str> = Some("LEVELS");
/// The library chooses by ranks and bytes, as acoll does.
const CHOICE: Option<&str> = None;
/// Numbers of ranks of the published means.
const RANKS: [usize; 5] = [32, 64, 96, 128, 192];
/// Message sizes in bytes: every sixth power of two of the published means.
const BYTES: [usize; 4] = [8, 512, 32 << 10, 2 << 20];

const ALLREDUCE: &str = "mean reduction of latency by acoll against tuned; MPI_Allreduce, 32 to 192 ranks, 8 bytes to 8 MB";
const BCAST: &str =
    "mean reduction of latency by acoll against tuned; MPI_Bcast, 32 to 192 ranks, 8 bytes to 8 MB";
const GATHER: &str = "mean reduction of latency by acoll against tuned; MPI_Gather, 32 to 192 ranks, 8 bytes to 8 MB";

/// Returns the mean reduction of latency in percent over all numbers of ranks and all sizes.
fn reduction(lab: &Lab, operation: CollectiveKind) -> CheckResult {
    let mut sum = 0.0;
    for ranks in RANKS {
        for bytes in BYTES {
            let time = |workload| lab.measure(MACHINE, workload, bytes);
            let ours = time(Workload::Osu(operation, CHOICE, ranks))?;
            sum += 100.0 * (1.0 - ours / time(Workload::Tuned(operation, ranks))?);
        }
    }
    Ok(FigureValue::Number(sum / (RANKS.len() * BYTES.len()) as f64))
}

fn figure(heading: FigureHeading, operation: CollectiveKind, row: &'static str) -> Figure {
    let FigureHeading { id, title, place } = heading;
    let curve = |(name, workload)| {
        let x = BYTES.to_vec();
        Series { name, machine: MACHINE, workload, over: None, x }
    };
    let series = [
        ("tuned, 192 ranks", Workload::Tuned(operation, 192)),
        ("LEVELS, 192 ranks", Workload::Osu(operation, LEVELS, 192)),
        ("the library's choice, 192 ranks", Workload::Osu(operation, CHOICE, 192)),
        ("tuned, 64 ranks", Workload::Tuned(operation, 64)),
        ("LEVELS, 64 ranks", Workload::Osu(operation, LEVELS, 64)),
        ("the library's choice, 64 ranks", Workload::Osu(operation, CHOICE, 64)),
    ];
    Figure {
        id,
        title,
        place,
        x: Axis { label: "Message", unit: "bytes", doubling: true },
        y: Axis { label: "Latency", unit: "us", doubling: true },
        series: series.into_iter().map(curve).collect(),
        marks: Vec::new(),
        rows: vec![row],
        note: "The mean of the ranks' own times from a common start. tuned: the algorithm that its table names, over our messages.",
    }
}

/// A function that simulates a mean reduction of latency.
type Reduced = fn(&Lab) -> CheckResult;

pub fn document() -> Document {
    let check = |(row, run)| Check { row, simulate: Simulate::Runs(run) };
    let checks: [(&str, Reduced); 3] = [
        (ALLREDUCE, |lab| reduction(lab, Allreduce)),
        (BCAST, |lab| reduction(lab, Bcast)),
        (GATHER, |lab| reduction(lab, Gather)),
    ];
    let place = "open-mpi/ompi#12484";
    Document {
        id: "acoll",
        paper: "acoll",
        title: "open-mpi/ompi#12484, 2024: Add the acoll component",
        machines: &[MACHINE],
        about: "Means of reductions of latency by Open MPI's component acoll against its component tuned, on two EPYC 9654, as the \
                pull request at https://github.com/open-mpi/ompi/pull/12484 states them. Its graphs have no readable numbers. Here the \
                library's choice stands in place of acoll, which chooses by ranks and bytes, too, and the algorithms that tuned's \
                table names, over our messages, in place of tuned. \
                The published means are over all powers of two from 8 bytes to 8 MB, the simulated means over 8 bytes, 512 bytes, \
                32 KiB and 2 MiB, on the same numbers of ranks.",
        figures: vec![
            figure(FigureHeading::new("acoll-allreduce", "Allreduce", place), Allreduce, ALLREDUCE),
            figure(FigureHeading::new("acoll-bcast", "Broadcast", place), Bcast, BCAST),
            figure(FigureHeading::new("acoll-gather", "Gather", place), Gather, GATHER),
        ],
        maps: Vec::new(),
        checks: checks.into_iter().map(check).collect(),
        headlines: vec![Headline {
            name: "broadcast of 8 bytes on 192 ranks, LEVELS against tuned",
            machine: MACHINE,
            of: Quotient::Ratio([
                (Workload::Tuned(Bcast, 192), 8),
                (Workload::Osu(Bcast, LEVELS, 192), 8),
            ]),
        }],
    }
}
