//! XHC: hierarchical collectives over shared memory, in Open MPI's component xhc.

use super::figure::{Axis, Check, Document, Figure, Headline, Mark, Simulate};
use super::lab::Lab;
use super::published::{CheckResult, FigureValue};
use super::series::{Quotient, Series};
use super::workload::Workload;
use weft_collective::CollectiveKind::Bcast;

const MACHINE: &str = "xeon24";
const SOCKET: usize = 24;
const NODE: usize = 48;

/// Every reader copies from memory of the root, or from the ring into which the root copied.
const FLAT: Option<&str> = Some("SHM-RING");
/// A leader of each socket, then all others from the leader of their socket.
const BY_SOCKETS: Option<&str> = Some("LEVELS");

/// Message sizes in bytes that are drawn. The published crosses lie at 8 bytes, 16 KiB and 256 KiB.
const BYTES: [usize; 6] = [8, 128, 1 << 10, 16 << 10, 256 << 10, 1 << 20];

const SMALL: &str = "largest improvement of the optimized MPI_Bcast over the flat; small messages, three generations of Xeon";
const LARGE: &str = "largest improvement of the optimized MPI_Bcast over the flat; large messages, three generations of Xeon";

/// A measured broadcast: its row, the curve on which its cross lies, and its number of bytes.
type Crossed = (&'static str, &'static str, usize);

const ONE_SOCKET: &str = "flat, one socket";
const TWO_SOCKETS: &str = "flat, two sockets";
const OPTIMIZED: &str = "by sockets, two sockets";

const CROSSED: [Crossed; 9] = [
    ("latency of the flat MPI_Bcast; 24 ranks on one socket, 8 bytes", ONE_SOCKET, 8),
    ("latency of the flat MPI_Bcast; 24 ranks on one socket, 16 KiB", ONE_SOCKET, 16 << 10),
    ("latency of the flat MPI_Bcast; 24 ranks on one socket, 256 KiB", ONE_SOCKET, 256 << 10),
    ("latency of the flat MPI_Bcast; 48 ranks on two sockets, 8 bytes", TWO_SOCKETS, 8),
    ("latency of the flat MPI_Bcast; 48 ranks on two sockets, 16 KiB", TWO_SOCKETS, 16 << 10),
    ("latency of the flat MPI_Bcast; 48 ranks on two sockets, 256 KiB", TWO_SOCKETS, 256 << 10),
    ("latency of the optimized MPI_Bcast; 48 ranks on two sockets, 8 bytes", OPTIMIZED, 8),
    ("latency of the optimized MPI_Bcast; 48 ranks on two sockets, 16 KiB", OPTIMIZED, 16 << 10),
    ("latency of the optimized MPI_Bcast; 48 ranks on two sockets, 256 KiB", OPTIMIZED, 256 << 10),
];

const CURVES: [(&str, Workload); 3] = [
    (ONE_SOCKET, Workload::Osu(Bcast, FLAT, SOCKET)),
    (TWO_SOCKETS, Workload::Osu(Bcast, FLAT, NODE)),
    (OPTIMIZED, Workload::Osu(Bcast, BY_SOCKETS, NODE)),
];

/// Returns the largest improvement of the broadcast by sockets over the flat broadcast, over the sizes for which `counts` is true.
fn improvement(lab: &Lab, counts: impl Fn(usize) -> bool) -> CheckResult {
    let mut most: f64 = 0.0;
    for bytes in BYTES.into_iter().filter(|bytes| counts(*bytes)) {
        let time = |name| lab.measure(MACHINE, Workload::Osu(Bcast, name, NODE), bytes);
        most = most.max(time(FLAT)? / time(BY_SOCKETS)?);
    }
    Ok(FigureValue::Number(most))
}

/// Returns the threshold of a row: the length of the longest small message, or of the shortest large message.
fn bound(lab: &Lab, row: &str) -> Result<usize, String> {
    Ok(lab.threshold("XHC", row)? as usize)
}

fn checks() -> Vec<Check> {
    let crossed = |(row, curve, bytes): Crossed| {
        let workload = CURVES.into_iter().find(|(name, _)| *name == curve);
        workload.map(|(_, run)| Check { row, simulate: Simulate::Run(MACHINE, run, bytes) })
    };
    let small: fn(&Lab) -> CheckResult = |lab| {
        let most = bound(lab, SMALL)?;
        improvement(lab, |bytes| bytes <= most)
    };
    let large: fn(&Lab) -> CheckResult = |lab| {
        let least = bound(lab, LARGE)?;
        improvement(lab, |bytes| bytes >= least)
    };
    let ratios = [(SMALL, small), (LARGE, large)];
    let ratios = ratios.map(|(row, run)| Check { row, simulate: Simulate::Runs(run) });
    CROSSED.into_iter().filter_map(crossed).chain(ratios).collect()
}

pub fn document() -> Document {
    let curve = |(name, workload)| {
        let x = BYTES.to_vec();
        Series { name, machine: MACHINE, workload, over: None, x }
    };
    Document {
        id: "xhc",
        paper: "XHC",
        title: "Katevenis, Ploumidis and Marazakis 2023, impact of cache coherence on MPI primitives over shared memory",
        machines: &[MACHINE],
        about: "Broadcasts of Open MPI's component xhc on ICX-48, two Xeons of 24 cores, from the measurements that the authors publish \
                (https://github.com/CARV-ICS-FORTH/XHC-OpenMPI, branch icpp-23; the abstract: https://eupex.eu/?p=2966). Rows of \
                remedies/data are medians of 30 runs: `vanilla_flat_16K` and `opt4_[0..23],node_16K_-1`, which the authors draw. Rows of \
                effect/data are the first of 30 runs. Here SHM-RING stands in place of the flat broadcast, and LEVELS in place of the \
                optimized broadcast, which writes to the two sockets apart. The abstract's factors are the largest over three \
                nodes, of which ICX-48 is simulated.",
        figures: vec![Figure {
            id: "xhc-bcast",
            title: "Broadcast, flat and by sockets",
            place: "effect and remedies",
            x: Axis { label: "Message", unit: "bytes", doubling: true },
            y: Axis { label: "Latency", unit: "us", doubling: true },
            series: CURVES.into_iter().map(curve).collect(),
            marks: CROSSED.map(|(row, series, x)| Mark { row, series, x }).into(),
            rows: vec![SMALL, LARGE],
            note: "The mean of the ranks' own times from a common start.",
        }],
        maps: Vec::new(),
        checks: checks(),
        headlines: vec![Headline {
            name: "broadcast of 8 bytes on 48 ranks, by sockets against flat",
            machine: MACHINE,
            of: Quotient::Ratio([
                (Workload::Osu(Bcast, FLAT, NODE), 8),
                (Workload::Osu(Bcast, BY_SOCKETS, NODE), 8),
            ]),
        }],
    }
}
