//! The figures of chapter 4.

use super::checks::FAN_INS;
use super::{FIRST, PE_AGAINST_DS, SECOND, improvements, over_nodes};
use crate::figure::{Figure, Mark};
use crate::series::Series;

const ALGORITHMS: [&str; 4] = ["MPI-PE", "RPE", "RDS", "RGM"];
/// Algorithms that are compared with MPI-DS. MPI-PE is among them because the text compares the two baselines.
const AGAINST_DS: [&str; 4] = ["MPI-DS", "RDS", "RGM", "MPI-PE"];

const RPE_AT_8: &str = "improvement of RPE barrier over MPI-PE; cluster 1, 8 nodes";
const RDS_AT_8: &str = "improvement of RDS barrier over MPI-PE; cluster 1, 8 nodes";
const RGM_AT_16: &str = "improvement of RGM barrier over MPI-PE; cluster 2, 16 nodes";
const AGAINST_PE: &str = "RPE and RDS barrier against MPI-PE; powers of 2, both clusters";
const RGM_FEW: &str = "RGM barrier against RPE and RDS; 2 and 4 nodes, both clusters";
const ALIKE: &str = "RPE barrier against RDS barrier; powers of 2, both clusters";

pub fn figures() -> Vec<Figure> {
    let mut figures = powers();
    figures.extend(all_sizes());
    figures.push(Figure {
        note: "A fan-in is below the number of nodes (section 4.1.3).",
        ..over_nodes(
            "kini-4.7",
            "RGM barrier by fan-in, cluster 2",
            "figure 4.7",
            by_fan_in(),
            &[
                "best fan-in of RGM; cluster 2",
                super::FAN_IN_EVERYWHERE,
                "height of the RGM tree; 8 nodes, fan-in 1",
                "height of the RGM tree; 8 nodes, fan-in 3",
                "height of the RGM tree; 8 nodes, fan-in 7",
            ],
        )
    });
    figures.extend(dissemination());
    figures
}

/// Returns a curve for each fan-in, at the sizes at which the fan-in is possible.
fn by_fan_in() -> Vec<Series> {
    let sizes = |fan_in| SECOND.all_sizes().into_iter().filter(|&n| fan_in < n).collect();
    FAN_INS.map(|(name, fan_in)| SECOND.barrier(name, sizes(fan_in))).into()
}

fn powers() -> Vec<Figure> {
    let first = over_nodes(
        "kini-4.5a",
        "Barrier, powers of two, cluster 1",
        "figure 4.5 (a)",
        FIRST.barriers(&ALGORITHMS, &FIRST.powers()),
        &[
            AGAINST_PE,
            ALIKE,
            RGM_FEW,
            "overhead of the MPI layer on a 2-node barrier; cluster 1",
            "steps of pairwise exchange; 5 nodes",
            "barriers after which the barrier number returns to 1; both clusters",
        ],
    );
    let factors = improvements(
        &first,
        "kini-4.5b",
        "Improvement over MPI-PE, powers of two, cluster 1",
        "figure 4.5 (b)",
        vec![
            Mark { row: RPE_AT_8, series: "RPE", x: 8 },
            Mark { row: RDS_AT_8, series: "RDS", x: 8 },
        ],
        &[],
    );
    let second = over_nodes(
        "kini-4.5c",
        "Barrier, powers of two, cluster 2",
        "figure 4.5 (c)",
        SECOND.barriers(&ALGORITHMS, &SECOND.powers()),
        &[
            AGAINST_PE,
            ALIKE,
            RGM_FEW,
            "fastest of the RPE, RDS and RGM barriers; cluster 2, 16 nodes",
        ],
    );
    let more = improvements(
        &second,
        "kini-4.5d",
        "Improvement over MPI-PE, powers of two, cluster 2",
        "figure 4.5 (d)",
        vec![Mark { row: RGM_AT_16, series: "RGM", x: 16 }],
        &[],
    );
    vec![first, factors, second, more]
}

fn all_sizes() -> Vec<Figure> {
    let first = over_nodes(
        "kini-4.6a",
        "Barrier, all group sizes, cluster 1",
        "figure 4.6 (a)",
        FIRST.barriers(&ALGORITHMS, &FIRST.all_sizes()),
        &[],
    );
    let factors = improvements(
        &first,
        "kini-4.6b",
        "Improvement over MPI-PE, all group sizes, cluster 1",
        "figure 4.6 (b)",
        Vec::new(),
        &[
            super::CONSTANT,
            "largest improvement of RDS barrier over MPI-PE; cluster 1, all group sizes",
            "largest improvement of RGM barrier over MPI-PE; cluster 1, all group sizes",
        ],
    );
    let second = over_nodes(
        "kini-4.6c",
        "Barrier, all group sizes, cluster 2",
        "figure 4.6 (c)",
        SECOND.barriers(&ALGORITHMS, &SECOND.all_sizes()),
        &[super::MOSTLY_RGM, super::PENALIZED],
    );
    let more = improvements(
        &second,
        "kini-4.6d",
        "Improvement over MPI-PE, all group sizes, cluster 2",
        "figure 4.6 (d)",
        Vec::new(),
        &[
            "largest improvement of RGM barrier over MPI-PE; cluster 2, all group sizes",
            super::CONSTANT,
        ],
    );
    vec![first, factors, second, more]
}

fn dissemination() -> Vec<Figure> {
    let first = over_nodes(
        "kini-4.8a",
        "Barrier, dissemination, cluster 1",
        "figure 4.8 (a), with MPI-PE beside it",
        FIRST.barriers(&AGAINST_DS, &FIRST.all_sizes()),
        &[PE_AGAINST_DS, "steps of dissemination; 5 nodes"],
    );
    let factors = improvements(
        &first,
        "kini-4.8b",
        "Improvement over MPI-DS, cluster 1",
        "figure 4.8 (b)",
        Vec::new(),
        &[
            "largest improvement of RDS barrier over MPI-DS; cluster 1",
            "largest improvement of RGM barrier over MPI-DS; cluster 1",
        ],
    );
    let second = over_nodes(
        "kini-4.8c",
        "Barrier, dissemination, cluster 2",
        "figure 4.8 (c), with MPI-PE beside it",
        SECOND.barriers(&AGAINST_DS, &SECOND.all_sizes()),
        &[PE_AGAINST_DS],
    );
    let more = improvements(
        &second,
        "kini-4.8d",
        "Improvement over MPI-DS, cluster 2",
        "figure 4.8 (d)",
        Vec::new(),
        &[
            "largest improvement of RDS barrier over MPI-DS; cluster 2",
            "largest improvement of RGM barrier over MPI-DS; cluster 2",
        ],
    );
    vec![first, factors, second, more]
}
