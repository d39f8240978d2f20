//! Comparison of the allreduces in an application, which section 6.1 leaves to future work.

use super::allreduces::ALGORITHMS;
use super::{FIRST, NODES, SECOND, improvements};
use crate::figure::{Axis, Figure};
use crate::series::Series;
use crate::workload::Workload;

const TIME: Axis = Axis { label: "Time to solution", unit: "us", doubling: false };
const PLACE: &str = "section 6.1 (future work), no figure there";

pub fn figures() -> Vec<Figure> {
    let solution = |cluster: super::KiniCluster, id, title| {
        let curve = |name| Series {
            name,
            machine: cluster.machine,
            workload: Workload::Equations(name),
            over: None,
            x: cluster.all_sizes(),
        };
        Figure {
            id,
            title,
            place: PLACE,
            x: NODES,
            y: TIME,
            series: ALGORITHMS.map(curve).into(),
            marks: Vec::new(),
            rows: Vec::new(),
            note: "Conjugate gradients on a grid of 64 x 64 unknowns until the residual is a millionth: two \
                   allreduces of a double, an exchange of rows and 16 operations a point in each iteration.",
        }
    };
    let first = solution(FIRST, "kini-6.1a", "Equations by conjugate gradients, cluster 1");
    let second = solution(SECOND, "kini-6.1c", "Equations by conjugate gradients, cluster 2");
    let over = |of: &Figure, id, title| improvements(of, id, title, PLACE, Vec::new(), &[]);
    let factors =
        over(&first, "kini-6.1b", "Improvement over MPI-GB, conjugate gradients, cluster 1");
    let more =
        over(&second, "kini-6.1d", "Improvement over MPI-GB, conjugate gradients, cluster 2");
    vec![first, factors, second, more]
}
