//! Kini: barrier and allreduce by RDMA writes and hardware multicast, and their baselines.

use super::figure::{Axis, Check, Document, Figure, Headline, Mark, Quotient, Series, Simulate};
use super::lab::Lab;
use super::published::Value;
use super::workload::Workload;

/// Kini's clusters: the machine, its nodes, and the integers of the allreduce measured on it.
struct Cluster {
    machine: &'static str,
    nodes: usize,
    integers: usize,
}

const FIRST: Cluster = Cluster { machine: "kini1", nodes: 8, integers: 256 };
const SECOND: Cluster = Cluster { machine: "kini2", nodes: 16, integers: 64 };

const NODES: Axis = Axis { label: "Nodes", unit: "", doubling: false };
const BYTES: Axis = Axis { label: "Message", unit: "bytes", doubling: true };
const LATENCY: Axis = Axis { label: "Latency", unit: "us", doubling: false };

/// The payload of "small" writes: a flag.
const SMALL: usize = 8;
const WRITE: &str = "base RDMA write latency; cluster 1, small";
const TO_ONE: &str = "UD multicast latency to 1 node; cluster 1, 1 byte";
const TO_SEVEN: &str = "UD multicast latency to 7 nodes; cluster 1, 1 byte";
const PE_AGAINST_DS: &str = "MPI-PE barrier against MPI-DS; group sizes that are no power of 2";
const PE_AGAINST_GB: &str = "MPI-PE allreduce against MPI-GB; cluster 1, 256 integers";

impl Cluster {
    fn all_sizes(&self) -> Vec<usize> {
        (2..=self.nodes).collect()
    }

    fn powers(&self) -> Vec<usize> {
        self.all_sizes().into_iter().filter(|n| n.is_power_of_two()).collect()
    }

    /// A barrier by its algorithm's name, over group sizes.
    fn barrier(&self, name: &'static str, x: Vec<usize>) -> Series {
        Series { name, machine: self.machine, workload: Workload::Barrier(name), x }
    }

    /// An allreduce by its algorithm's name, for all group sizes.
    fn allreduce(&self, name: &'static str) -> Series {
        let (machine, workload) = (self.machine, Workload::Allreduce(name, self.integers));
        Series { name, machine, workload, x: self.all_sizes() }
    }
}

/// A figure of latency over nodes.
fn over_nodes(
    id: &'static str,
    title: &'static str,
    place: &'static str,
    series: Vec<Series>,
    rows: &[&'static str],
) -> Figure {
    let (marks, rows) = (Vec::new(), rows.to_vec());
    let note = "";
    Figure { id, title, place, x: NODES, y: LATENCY, series, marks, rows, note }
}

fn barriers() -> Vec<Figure> {
    vec![
        over_nodes(
            "kini-4.5a",
            "Barrier, powers of two, cluster 1",
            "figure 4.5 (a)",
            vec![FIRST.barrier("MPI-PE", FIRST.powers())],
            &[
                "improvement of RPE barrier over MPI-PE; cluster 1, 8 nodes",
                "improvement of RDS barrier over MPI-PE; cluster 1, 8 nodes",
                "RPE and RDS barrier against MPI-PE; powers of 2, both clusters",
                "RGM barrier against RPE and RDS; 2 and 4 nodes, both clusters",
                "steps of pairwise exchange; 5 nodes",
            ],
        ),
        over_nodes(
            "kini-4.5c",
            "Barrier, powers of two, cluster 2",
            "figure 4.5 (c)",
            vec![SECOND.barrier("MPI-PE", SECOND.powers())],
            &[
                "improvement of RGM barrier over MPI-PE; cluster 2, 16 nodes",
                "RPE and RDS barrier against MPI-PE; powers of 2, both clusters",
                "fastest of the RPE, RDS and RGM barriers; cluster 2, 16 nodes",
            ],
        ),
        over_nodes(
            "kini-4.6a",
            "Barrier, all group sizes, cluster 1",
            "figure 4.6 (a)",
            vec![FIRST.barrier("MPI-PE", FIRST.all_sizes())],
            &[
                "largest improvement of RDS barrier over MPI-PE; cluster 1, all group sizes",
                "largest improvement of RGM barrier over MPI-PE; cluster 1, all group sizes",
            ],
        ),
        over_nodes(
            "kini-4.6c",
            "Barrier, all group sizes, cluster 2",
            "figure 4.6 (c)",
            vec![SECOND.barrier("MPI-PE", SECOND.all_sizes())],
            &["largest improvement of RGM barrier over MPI-PE; cluster 2, all group sizes"],
        ),
        over_nodes(
            "kini-4.8a",
            "Barrier, dissemination, cluster 1",
            "figure 4.8 (a), with MPI-PE beside it",
            vec![
                FIRST.barrier("MPI-DS", FIRST.all_sizes()),
                FIRST.barrier("MPI-PE", FIRST.all_sizes()),
            ],
            &[
                PE_AGAINST_DS,
                "largest improvement of RDS barrier over MPI-DS; cluster 1",
                "largest improvement of RGM barrier over MPI-DS; cluster 1",
                "steps of dissemination; 5 nodes",
            ],
        ),
        over_nodes(
            "kini-4.8c",
            "Barrier, dissemination, cluster 2",
            "figure 4.8 (c), with MPI-PE beside it",
            vec![
                SECOND.barrier("MPI-DS", SECOND.all_sizes()),
                SECOND.barrier("MPI-PE", SECOND.all_sizes()),
            ],
            &[
                PE_AGAINST_DS,
                "largest improvement of RDS barrier over MPI-DS; cluster 2",
                "largest improvement of RGM barrier over MPI-DS; cluster 2",
            ],
        ),
    ]
}

fn allreduces() -> Vec<Figure> {
    vec![
        over_nodes(
            "kini-5.12",
            "Allreduce of 256 integers, cluster 1",
            "figure 5.12",
            vec![FIRST.allreduce("MPI-PE")],
            &[
                "largest improvement of RPE allreduce over MPI-PE; cluster 1, 8 nodes, 256 integers",
                "RPE allreduce against MPI-PE; cluster 1, 256 integers, all group sizes",
            ],
        ),
        over_nodes(
            "kini-5.13",
            "Allreduce of 256 integers, cluster 1",
            "figure 5.13",
            vec![FIRST.allreduce("MPI-GB")],
            &["improvement of RGM allreduce over MPI-GB; cluster 1, 8 nodes, 256 integers"],
        ),
        over_nodes(
            "kini-5.14",
            "Allreduce of 64 integers, cluster 2",
            "figure 5.14",
            vec![SECOND.allreduce("MPI-GB")],
            &["largest improvement of RGM allreduce over MPI-GB; cluster 2, 16 nodes, 64 integers"],
        ),
        over_nodes(
            "kini-5.15a",
            "Allreduce of 256 integers, cluster 1",
            "figure 5.15 (a)",
            vec![FIRST.allreduce("MPI-GB"), FIRST.allreduce("MPI-PE")],
            &[
                PE_AGAINST_GB,
                "largest improvement of RPE allreduce over MPI-GB; cluster 1, 256 integers",
                "fastest of MPI-GB, MPI-PE, RPE and RGM allreduce; cluster 1, 256 integers, 8 nodes",
            ],
        ),
        over_nodes(
            "kini-5.15c",
            "Allreduce of 64 integers, cluster 2",
            "figure 5.15 (c)",
            vec![SECOND.allreduce("MPI-GB"), SECOND.allreduce("MPI-PE")],
            &["largest improvement of RPE allreduce over MPI-GB; cluster 2, 64 integers"],
        ),
    ]
}

fn verbs() -> Vec<Figure> {
    let sizes: Vec<usize> = (3..=12).map(|power| 1 << power).collect();
    let machine = FIRST.machine;
    let curve = |name, workload| Series { name, machine, workload, x: sizes.clone() };
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
            rows: vec!["MTU of the links; both clusters"],
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

/// How `name` compares in `pairs` (itself, the other), in the words of the list if it is always so.
fn order(name: &str, pairs: &[(f64, f64)]) -> Value {
    /// Closer than this are alike.
    const ALIKE: f64 = 1.005;
    let count = |holds: &dyn Fn(f64, f64) -> bool| pairs.iter().filter(|p| holds(p.0, p.1)).count();
    let (slower, faster) = (count(&|a, b| a > b * ALIKE), count(&|a, b| b > a * ALIKE));
    let all = pairs.len();
    Value::Word(match (slower, faster) {
        (s, _) if s == all => format!("{name} slower"),
        (_, f) if f == all => format!("{name} faster"),
        (0, 0) => "similar".to_owned(),
        (s, f) => format!("{name} slower at {s} of {all} sizes, faster at {f}"),
    })
}

fn pe_against_ds(lab: &Lab) -> Result<Value, String> {
    let mut pairs = Vec::new();
    for cluster in [FIRST, SECOND] {
        for nodes in cluster.all_sizes().into_iter().filter(|n| !n.is_power_of_two()) {
            let of = |name| lab.measure(cluster.machine, Workload::Barrier(name), nodes);
            pairs.push((of("MPI-PE")?, of("MPI-DS")?));
        }
    }
    Ok(order("MPI-PE", &pairs))
}

fn pe_against_gb(lab: &Lab) -> Result<Value, String> {
    let mut pairs = Vec::new();
    for nodes in FIRST.all_sizes() {
        let of =
            |name| lab.measure(FIRST.machine, Workload::Allreduce(name, FIRST.integers), nodes);
        pairs.push((of("MPI-PE")?, of("MPI-GB")?));
    }
    Ok(order("MPI-PE", &pairs))
}

fn checks() -> Vec<Check> {
    let run = |row, workload, x| Check { row, simulate: Simulate::Run(FIRST.machine, workload, x) };
    vec![
        run(WRITE, Workload::WriteLatency, SMALL),
        run(TO_ONE, Workload::MulticastLatency(1), 1),
        run(TO_SEVEN, Workload::MulticastLatency(1), 7),
        run("steps of pairwise exchange; 5 nodes", Workload::BarrierSteps("MPI-PE"), 5),
        run("steps of dissemination; 5 nodes", Workload::BarrierSteps("MPI-DS"), 5),
        Check { row: PE_AGAINST_DS, simulate: Simulate::Runs(pe_against_ds) },
        Check { row: PE_AGAINST_GB, simulate: Simulate::Runs(pe_against_gb) },
        Check {
            row: "MTU of the links; both clusters",
            simulate: Simulate::Parameter(FIRST.machine, "rail.mtu", |machine| {
                Some(machine.rail[0].mtu.0 as f64 / 1024.0)
            }),
        },
        Check {
            row: "largest UD multicast message; both clusters",
            simulate: Simulate::Parameter(FIRST.machine, "multicast.largest", |machine| {
                machine.multicast.as_ref().map(|m| m.largest.0 as f64 / 1024.0)
            }),
        },
    ]
}

fn headlines() -> Vec<Headline> {
    let of = |cluster: Cluster, names: [&'static str; 6]| {
        let Cluster { machine, nodes, integers } = cluster;
        let (pe, ds) = (Workload::Barrier("MPI-PE"), Workload::Barrier("MPI-DS"));
        let reduce = |name| Workload::Allreduce(name, integers);
        // One less than a power of two: where MPI-PE takes two steps more.
        let odd = nodes - 1;
        let quotients = [
            Quotient::One(pe, nodes),
            Quotient::One(ds, nodes),
            Quotient::Ratio([(pe, odd), (ds, odd)]),
            Quotient::One(reduce("MPI-PE"), nodes),
            Quotient::One(reduce("MPI-GB"), nodes),
            Quotient::Ratio([(reduce("MPI-GB"), nodes), (reduce("MPI-PE"), nodes)]),
        ];
        let results = names.into_iter().zip(quotients);
        results.map(move |(name, of)| Headline { name, machine, of })
    };
    let mut headlines = vec![
        Headline {
            name: "RDMA write",
            machine: FIRST.machine,
            of: Quotient::One(Workload::WriteLatency, SMALL),
        },
        Headline {
            name: "multicast to 7",
            machine: FIRST.machine,
            of: Quotient::One(Workload::MulticastLatency(1), 7),
        },
    ];
    headlines.extend(of(
        FIRST,
        [
            "barrier MPI-PE, 8 nodes",
            "barrier MPI-DS, 8 nodes",
            "barrier MPI-PE / MPI-DS, 7 nodes",
            "allreduce MPI-PE, 8 nodes",
            "allreduce MPI-GB, 8 nodes",
            "allreduce MPI-GB / MPI-PE, 8 nodes",
        ],
    ));
    headlines.extend(of(
        SECOND,
        [
            "barrier MPI-PE, 16 nodes",
            "barrier MPI-DS, 16 nodes",
            "barrier MPI-PE / MPI-DS, 15 nodes",
            "allreduce MPI-PE, 16 nodes",
            "allreduce MPI-GB, 16 nodes",
            "allreduce MPI-GB / MPI-PE, 16 nodes",
        ],
    ));
    headlines
}

pub fn document() -> Document {
    Document {
        id: "kini",
        paper: "Kini",
        title: "Kini 2003, collective communication using RDMA and multicast operations",
        machines: &["kini1", "kini2"],
        about: "The baselines exist: barriers MPI-PE and MPI-DS, allreduces MPI-PE and MPI-GB. RPE, RDS \
                and RGM are not built yet, and the text gives most numbers as improvements of those over \
                these. Measured as there: the mean over all ranks of the mean of 1000 iterations after \
                a few to warm up; allreduce sums real integers, and every sum is checked.",
        figures: [verbs(), barriers(), allreduces()].into_iter().flatten().collect(),
        checks: checks(),
        headlines: headlines(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_hold_only_if_they_hold_always() {
        let word = |pairs: &[(f64, f64)]| order("A", pairs).to_string();
        assert_eq!(word(&[(2.0, 1.0), (3.0, 1.0)]), "A slower");
        assert_eq!(word(&[(0.5, 1.0)]), "A faster");
        assert_eq!(word(&[(1.0, 1.001), (1.001, 1.0)]), "similar");
        assert_eq!(word(&[(2.0, 1.0), (1.0, 1.0)]), "A slower at 1 of 2 sizes, faster at 0");
    }
}
