//! Cost of a message on the bare fabric.

use super::{BYTES, FIRST, LATENCY, SMALL, TO_ONE, TO_SEVEN, WRITE};
use crate::figure::{Axis, Figure, Mark};
use crate::series::Series;
use crate::workload::Workload;

/// Returns the sizes of messages, in bytes.
pub fn sizes() -> Vec<usize> {
    (3..=12).map(|power| 1 << power).collect()
}

pub fn figures() -> Vec<Figure> {
    let sizes = sizes();
    let machine = FIRST.machine;
    let curve = |name, workload| Series { name, machine, workload, over: None, x: sizes.clone() };
    vec![
        Figure {
            id: "kini-2.3",
            title: "Send/receive and RDMA write, cluster 1",
            place: "figure 2.3",
            x: BYTES,
            y: LATENCY,
            series: vec![
                curve("send/receive", Workload::SendLatency),
                curve("RDMA write", Workload::WriteLatency),
            ],
            marks: vec![Mark { row: WRITE, series: "RDMA write", x: SMALL }],
            rows: vec![super::WRITE_AGAINST_SEND, "MTU of the links; both clusters"],
            note: "Half of a ping-pong on the bare fabric. The receiver of a write polls the end of the \
                   payload; beyond the MTU, a flag written after it (section 5.3.2).",
        },
        Figure {
            id: "kini-2.1-multicast",
            title: "UD multicast of 1 byte, cluster 1",
            place: "section 2.1, no figure there",
            x: Axis { label: "Receivers", unit: "", doubling: false },
            y: LATENCY,
            series: vec![Series {
                name: "UD multicast",
                machine,
                workload: Workload::MulticastLatency(1),
                over: None,
                x: (1..FIRST.nodes).collect(),
            }],
            marks: [(TO_ONE, 1), (TO_SEVEN, 7)]
                .map(|(row, x)| Mark { row, series: "UD multicast", x })
                .into(),
            rows: vec!["largest UD multicast message; both clusters"],
            note: "From the call to the last receiver that holds the datagram.",
        },
    ]
}
