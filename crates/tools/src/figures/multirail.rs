//! Multi-rail: one-sided communication over several ports and adapters.

use super::figure::{Axis, Document, Figure, Headline, Mark, Quotient, Series};
use super::workload::Workload;

/// The largest message of the bandwidth tests.
const LARGEST: usize = 1 << 20;
const ONE_WAY: Workload = Workload::WriteBandwidth { both: false };
const BOTH_WAYS: Workload = Workload::WriteBandwidth { both: true };

fn sizes() -> Vec<usize> {
    (2..=20).map(|power| 1 << power).collect()
}

/// Writes of one rail, beside the peak of MPI_Put on one rail.
fn check_of_the_machine(
    id: &'static str,
    title: &'static str,
    machine: &'static str,
    rows: [&'static str; 2],
) -> Figure {
    let curve = |name, workload| Series { name, machine, workload, over: None, x: sizes() };
    Figure {
        id,
        title,
        place: "beside section 4.3",
        x: Axis { label: "Message", unit: "bytes", doubling: true },
        y: Axis { label: "Bandwidth", unit: "MB/s", doubling: false },
        series: vec![curve("one way", ONE_WAY), curve("both ways", BOTH_WAYS)],
        marks: vec![
            Mark { row: rows[0], series: "one way", x: LARGEST },
            Mark { row: rows[1], series: "both ways", x: LARGEST },
        ],
        rows: Vec::new(),
        note: "A check of the machine file, no figure of the document: windows of 64 bare RDMA writes on \
               one rail. The crosses are the document's peaks of MPI_Put on one rail, which a write \
               must reach before MPI_Put can. MPI_Put is not built yet, so its rows count as missing.",
    }
}

pub fn document() -> Document {
    Document {
        id: "multirail",
        paper: "Multi-rail",
        title: "Vishnu et al. 2005, MPI-2 one-sided communication on multi-rail InfiniBand clusters",
        machines: &["ia32", "em64t"],
        about: "MPI_Put, MPI_Get and the use of several rails are not built yet. What can be seen is \
                whether one rail of each machine carries what the document measured.",
        figures: vec![
            check_of_the_machine(
                "multirail-write-ia32",
                "RDMA writes on one rail, IA32",
                "ia32",
                [
                    "peak MPI_Put bandwidth one rail; IA32",
                    "peak MPI_Put bidirectional bandwidth one rail; IA32",
                ],
            ),
            check_of_the_machine(
                "multirail-write-em64t",
                "RDMA writes on one rail, EM64T",
                "em64t",
                [
                    "peak MPI_Put bandwidth one rail; EM64T",
                    "peak MPI_Put bidirectional bandwidth one rail; EM64T",
                ],
            ),
        ],
        maps: Vec::new(),
        checks: Vec::new(),
        headlines: ["ia32", "em64t"]
            .into_iter()
            .flat_map(|machine| {
                let of = |workload| Quotient::One(workload, LARGEST);
                [
                    Headline { name: "write bandwidth, one way", machine, of: of(ONE_WAY) },
                    Headline { name: "write bandwidth, both ways", machine, of: of(BOTH_WAYS) },
                ]
            })
            .collect(),
    }
}
