//! Kini: barrier and allreduce by RDMA writes and hardware multicast, and their baselines.

mod allreduces;
mod application;
mod barriers;
mod checks;
mod claims;
mod verbs;

use super::figure::{Axis, Document, Figure, Headline, Mark};
use super::series::{Quotient, Series};
use super::workload::Workload;

/// A cluster of Kini: the machine file, the number of nodes, and the number of integers of the measured allreduce.
struct KiniCluster {
    machine: &'static str,
    nodes: usize,
    integers: usize,
}

const FIRST: KiniCluster = KiniCluster { machine: "kini1", nodes: 8, integers: 256 };
const SECOND: KiniCluster = KiniCluster { machine: "kini2", nodes: 16, integers: 64 };

const NODES: Axis = Axis { label: "Nodes", unit: "", doubling: false };
const BYTES: Axis = Axis { label: "Message", unit: "bytes", doubling: true };
const LATENCY: Axis = Axis { label: "Latency", unit: "us", doubling: false };
const IMPROVEMENT: Axis = Axis { label: "Factor of improvement", unit: "", doubling: false };

/// Payload of "small" writes in bytes. This is the size of a flag.
const SMALL: usize = 8;
const WRITE: &str = "base RDMA write latency; cluster 1, small";
const TO_ONE: &str = "UD multicast latency to 1 node; cluster 1, 1 byte";
const TO_SEVEN: &str = "UD multicast latency to 7 nodes; cluster 1, 1 byte";
const PE_AGAINST_DS: &str = "MPI-PE barrier against MPI-DS; group sizes that are no power of 2";
const PE_AGAINST_GB: &str = "MPI-PE allreduce against MPI-GB; cluster 1, 256 integers";

const WRITE_AGAINST_SEND: &str = "latency of RDMA write against send/receive; cluster 1, all sizes";
const CONSTANT: &str = "improvement of RPE barrier over MPI-PE; all group sizes, both clusters";
const MOSTLY_RGM: &str =
    "fastest of the MPI-PE, RPE, RDS and RGM barriers; cluster 2, most group sizes";
const PENALIZED: &str = "barriers that take longer on each group size off powers of 2 than on the next power; both clusters";
const RPE_ABOVE_RGM: &str =
    "largest improvement of RPE allreduce over MPI-GB against that of RGM; cluster 2, 64 integers";
const JUMP: &str = "RPE allreduce of 1024 integers against the line through 256 and 512; cluster 1, all group sizes";
const GRADUAL: &str = "rise of the RGM allreduce from 2 to 8 nodes; cluster 1, up to 256 integers";
const SLOWER_RISE: &str =
    "rise of the RGM allreduce from 2 to 8 nodes against that of MPI-GB; cluster 1, 256 integers";
const RGM_AGAINST_GB: [&str; 2] = [
    "RGM allreduce against MPI-GB; cluster 1, 256 integers, all group sizes",
    "RGM allreduce against MPI-GB; cluster 2, 64 integers, all group sizes",
];
const RDMA_ALWAYS: &str =
    "RPE and RGM allreduce against MPI-PE and MPI-GB; cluster 1, 256 integers, all group sizes";
const FAN_IN_EVERYWHERE: &str = "best fan-in of RGM; cluster 2, each group size that allows it";
const DATA_BUFFER: &str = "size of the odd or even data buffer of RPE allreduce, divided by the number of processes; 2K to 4K, both clusters";
const NOTIFY_BUFFER: &str = "size of the odd or even notify buffer of RPE allreduce, divided by the number of processes; 2K to 4K, both clusters";

impl KiniCluster {
    fn all_sizes(&self) -> Vec<usize> {
        (2..=self.nodes).collect()
    }

    fn powers(&self) -> Vec<usize> {
        self.all_sizes().into_iter().filter(|n| n.is_power_of_two()).collect()
    }

    /// Returns the curve of the barrier `name` over group sizes.
    fn barrier(&self, name: &'static str, x: Vec<usize>) -> Series {
        let (machine, workload) = (self.machine, Workload::Barrier(name));
        Series { name, machine, workload, over: None, x }
    }

    /// Returns the curves of several barriers.
    fn barriers(&self, names: &[&'static str], x: &[usize]) -> Vec<Series> {
        names.iter().map(|name| self.barrier(name, x.to_vec())).collect()
    }

    /// Returns the curve of the allreduce `name` for all group sizes.
    fn allreduce(&self, name: &'static str) -> Series {
        let (machine, workload) = (self.machine, Workload::Allreduce(name, self.integers));
        Series { name, machine, workload, over: None, x: self.all_sizes() }
    }

    /// Returns the curves of several allreduces.
    fn allreduces(&self, names: &[&'static str]) -> Vec<Series> {
        names.iter().map(|name| self.allreduce(name)).collect()
    }
}

/// Returns a figure of the latency over the number of nodes.
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

/// Returns a figure of the factors by which the other curves of figure `of` improve on the first curve of that figure.
fn improvements(
    of: &Figure,
    id: &'static str,
    title: &'static str,
    place: &'static str,
    marks: Vec<Mark>,
    rows: &[&'static str],
) -> Figure {
    let (base, better) = of.series.split_first().expect("a baseline");
    let over = |series: &Series| Series { over: Some(base.workload), ..series.clone() };
    let (series, rows) = (better.iter().map(over).collect(), rows.to_vec());
    let note = "The baseline's latency divided by the curve's.";
    Figure { id, title, place, x: NODES, y: IMPROVEMENT, series, marks, rows, note }
}

fn headlines() -> Vec<Headline> {
    let of = |cluster: KiniCluster, names: [&'static str; 9]| {
        let KiniCluster { machine, nodes, integers } = cluster;
        let (pe, ds) = (Workload::Barrier("MPI-PE"), Workload::Barrier("MPI-DS"));
        let reduce = |name| Workload::Allreduce(name, integers);
        // If the number of nodes is a power of two minus one, MPI-PE takes two more steps.
        let odd = nodes - 1;
        let quotients = [
            Quotient::One(pe, nodes),
            Quotient::One(ds, nodes),
            Quotient::Ratio([(pe, odd), (ds, odd)]),
            Quotient::Ratio([(pe, nodes), (Workload::Barrier("RGM"), nodes)]),
            Quotient::One(reduce("MPI-PE"), nodes),
            Quotient::One(reduce("MPI-GB"), nodes),
            Quotient::Ratio([(reduce("MPI-GB"), nodes), (reduce("RPE"), nodes)]),
            Quotient::Ratio([(reduce("MPI-GB"), nodes), (reduce("RGM"), nodes)]),
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
            "barrier MPI-PE / RGM, 8 nodes",
            "allreduce MPI-PE, 8 nodes",
            "allreduce MPI-GB, 8 nodes",
            "allreduce MPI-GB / RPE, 8 nodes",
            "allreduce MPI-GB / RGM, 8 nodes",
            "allreduce MPI-GB / MPI-PE, 8 nodes",
        ],
    ));
    headlines.extend(of(
        SECOND,
        [
            "barrier MPI-PE, 16 nodes",
            "barrier MPI-DS, 16 nodes",
            "barrier MPI-PE / MPI-DS, 15 nodes",
            "barrier MPI-PE / RGM, 16 nodes",
            "allreduce MPI-PE, 16 nodes",
            "allreduce MPI-GB, 16 nodes",
            "allreduce MPI-GB / RPE, 16 nodes",
            "allreduce MPI-GB / RGM, 16 nodes",
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
        about: "Measured as there: the mean over all ranks of the mean of 1000 iterations after a few to \
                warm up; barriers are one behind the other, allreduces begin at a common instant, and each rank's time is \
                its own; allreduce sums real integers, and every sum is checked. Payloads up to the \
                document's own boundary of 2 KiB travel with their flag in one write. MPI-PE, MPI-DS \
                and MPI-GB are the baselines on MPI point-to-point; RPE, RDS and RGM, of fan-in 7, are the \
                document's algorithms.",
        figures: [
            verbs::figures(),
            barriers::figures(),
            allreduces::figures(),
            application::figures(),
        ]
        .into_iter()
        .flatten()
        .collect(),
        maps: Vec::new(),
        checks: checks::checks().into_iter().chain(claims::checks()).collect(),
        headlines: headlines(),
    }
}
