//! The figures of chapter 5.

use super::{FIRST, KiniCluster, PE_AGAINST_GB, SECOND, improvements, over_nodes};
use crate::figure::{Figure, Mark};
use crate::series::Series;
use crate::workload::Workload;

/// Numbers of integers to sum, each with the name of its curve.
pub const SIZES: [(usize, &str); 6] = [
    (1, "1 integer"),
    (16, "16 integers"),
    (64, "64 integers"),
    (256, "256 integers"),
    (512, "512 integers"),
    (1024, "1024 integers"),
];
/// Algorithms, the baseline first.
pub(super) const ALGORITHMS: [&str; 4] = ["MPI-GB", "MPI-PE", "RPE", "RGM"];

const ONE_INTEGER: &str = "Allreduce of 1 integer on 2 nodes with RPE; cluster 1";
const RPE_OVER_PE: &str =
    "largest improvement of RPE allreduce over MPI-PE; cluster 1, 8 nodes, 256 integers";
const RGM_OVER_GB: &str =
    "improvement of RGM allreduce over MPI-GB; cluster 1, 8 nodes, 256 integers";
const RGM_OVER_GB_16: &str =
    "largest improvement of RGM allreduce over MPI-GB; cluster 2, 16 nodes, 64 integers";

/// Returns curves of one algorithm over the number of nodes, one curve for each of several sizes.
fn by_size(cluster: &KiniCluster, name: &'static str, most: usize) -> Vec<Series> {
    let sizes = SIZES.iter().filter(|(integers, _)| *integers <= most);
    let curve = |&(integers, label): &(usize, &'static str)| {
        let (machine, workload) = (cluster.machine, Workload::Allreduce(name, integers));
        Series { name: label, machine, workload, over: None, x: cluster.all_sizes() }
    };
    sizes.map(curve).collect()
}

pub fn figures() -> Vec<Figure> {
    let mut figures = vec![
        Figure {
            marks: vec![Mark { row: ONE_INTEGER, series: "1 integer", x: 2 }],
            ..over_nodes(
                "kini-5.9",
                "RPE allreduce by size, cluster 1",
                "figure 5.9",
                by_size(&FIRST, "RPE", 1024),
                &[
                    "overhead of a 2-node Allreduce of 1 integer with RPE beyond the base RDMA write; \
                     cluster 1",
                    "largest RPE allreduce in one write; both clusters",
                    "size of the odd or even buffer of RPE allreduce, divided by the number of \
                     processes; up to 2K, both clusters",
                    super::DATA_BUFFER,
                    super::NOTIFY_BUFFER,
                    super::JUMP,
                ],
            )
        },
        over_nodes(
            "kini-5.10",
            "RPE allreduce by size, cluster 2",
            "figure 5.10",
            by_size(&SECOND, "RPE", 1024),
            &["largest RPE allreduce in one write; both clusters"],
        ),
        over_nodes(
            "kini-5.11",
            "RGM allreduce by size, cluster 1",
            "figure 5.11",
            by_size(&FIRST, "RGM", 256),
            &[super::GRADUAL, "largest UD multicast message; both clusters"],
        ),
    ];
    figures.extend(pairs());
    figures.extend(together());
    figures
}

/// Returns the figures that compare two algorithms each.
fn pairs() -> Vec<Figure> {
    vec![
        over_nodes(
            "kini-5.12",
            "Allreduce of 256 integers, cluster 1",
            "figure 5.12",
            FIRST.allreduces(&["MPI-PE", "RPE"]),
            &[
                RPE_OVER_PE,
                "RPE allreduce against MPI-PE; cluster 1, 256 integers, all group sizes",
            ],
        ),
        over_nodes(
            "kini-5.13",
            "Allreduce of 256 integers, cluster 1",
            "figure 5.13",
            FIRST.allreduces(&["MPI-GB", "RGM"]),
            &[RGM_OVER_GB, super::SLOWER_RISE, super::RGM_AGAINST_GB[0]],
        ),
        over_nodes(
            "kini-5.14",
            "Allreduce of 64 integers, cluster 2",
            "figure 5.14",
            SECOND.allreduces(&["MPI-GB", "RGM"]),
            &[RGM_OVER_GB_16, super::RGM_AGAINST_GB[1]],
        ),
    ]
}

fn together() -> Vec<Figure> {
    let first = over_nodes(
        "kini-5.15a",
        "Allreduce of 256 integers, cluster 1",
        "figure 5.15 (a)",
        FIRST.allreduces(&ALGORITHMS),
        &[
            PE_AGAINST_GB,
            super::RDMA_ALWAYS,
            "RGM allreduce against RPE; cluster 1, 256 integers, few nodes",
            "fastest of MPI-GB, MPI-PE, RPE and RGM allreduce; cluster 1, 256 integers, 8 nodes",
        ],
    );
    let factors = improvements(
        &first,
        "kini-5.15b",
        "Improvement over MPI-GB, 256 integers, cluster 1",
        "figure 5.15 (b)",
        vec![Mark { row: RGM_OVER_GB, series: "RGM", x: 8 }],
        &["largest improvement of RPE allreduce over MPI-GB; cluster 1, 256 integers"],
    );
    let second = over_nodes(
        "kini-5.15c",
        "Allreduce of 64 integers, cluster 2",
        "figure 5.15 (c)",
        SECOND.allreduces(&ALGORITHMS),
        &[],
    );
    let more = improvements(
        &second,
        "kini-5.15d",
        "Improvement over MPI-GB, 64 integers, cluster 2",
        "figure 5.15 (d)",
        vec![Mark { row: RGM_OVER_GB_16, series: "RGM", x: 16 }],
        &[
            "largest improvement of RPE allreduce over MPI-GB; cluster 2, 64 integers",
            super::RPE_ABOVE_RGM,
        ],
    );
    vec![first, factors, second, more]
}
