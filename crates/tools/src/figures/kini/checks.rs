//! What the text states, from the same runs.

use super::{Cluster, FIRST, PE_AGAINST_DS, PE_AGAINST_GB, SECOND, SMALL, TO_ONE, TO_SEVEN, WRITE};
use crate::figures::figure::{Check, Simulate};
use crate::figures::lab::Lab;
use crate::figures::measure::collectives::SINGLE;
use crate::figures::published::Value;
use crate::figures::workload::Workload;
use weft_collective::{edges, landing};

/// Closer than this are alike.
const ALIKE: f64 = 1.005;

/// The fan-ins of figure 4.7.
pub const FAN_INS: [(&str, usize); 4] = [("RGM:1", 1), ("RGM:3", 3), ("RGM:7", 7), ("RGM:15", 15)];

type Answer = Result<Value, String>;

/// How `name` compares in `pairs` (itself, the other), in the words of the list if it is always so.
fn order(name: &str, pairs: &[(f64, f64)]) -> Value {
    let count = |holds: &dyn Fn(f64, f64) -> bool| pairs.iter().filter(|p| holds(p.0, p.1)).count();
    let (slower, faster) = (count(&|a, b| a > b * ALIKE), count(&|a, b| b > a * ALIKE));
    let all = pairs.len();
    Value::Word(match (slower, faster) {
        (s, _) if s == all => format!("{name} slower"),
        (_, f) if f == all => format!("{name} faster"),
        (0, 0) => "similar".to_owned(),
        (s, f) => format!("{name} slower in {s} of {all}, faster in {f}"),
    })
}

/// The fastest by name.
fn fastest(times: &[(&str, f64)]) -> Value {
    let least = times.iter().min_by(|a, b| a.1.total_cmp(&b.1)).expect("some");
    Value::Word(least.0.to_owned())
}

impl Cluster {
    fn time(&self, lab: &Lab, workload: Workload, nodes: usize) -> Result<f64, String> {
        lab.measure(self.machine, workload, nodes)
    }

    fn sum(&self, name: &'static str) -> Workload {
        Workload::Allreduce(name, self.integers)
    }

    /// How many times as long the first takes, at one size.
    fn factor(&self, lab: &Lab, of: [Workload; 2], nodes: usize) -> Result<f64, String> {
        Ok(self.time(lab, of[0], nodes)? / self.time(lab, of[1], nodes)?)
    }

    /// The largest over all sizes.
    fn largest(&self, lab: &Lab, of: [Workload; 2]) -> Answer {
        let factors = self.all_sizes().into_iter().map(|nodes| self.factor(lab, of, nodes));
        let factors = factors.collect::<Result<Vec<_>, _>>()?;
        Ok(Value::Number(factors.into_iter().fold(0.0, f64::max)))
    }

    /// Times of both at these sizes.
    fn pairs(
        &self,
        lab: &Lab,
        of: [Workload; 2],
        sizes: impl IntoIterator<Item = usize>,
    ) -> Result<Vec<(f64, f64)>, String> {
        let pair = |n| Ok((self.time(lab, of[0], n)?, self.time(lab, of[1], n)?));
        sizes.into_iter().map(pair).collect()
    }
}

use Workload::Barrier;

/// Improvement of the second barrier over the first.
const fn over(baseline: &'static str, name: &'static str) -> [Workload; 2] {
    [Barrier(baseline), Barrier(name)]
}

/// Of two allreduces of a cluster's integers.
fn sums(cluster: &Cluster, baseline: &'static str, name: &'static str) -> [Workload; 2] {
    [cluster.sum(baseline), cluster.sum(name)]
}

/// On both clusters.
fn both(
    lab: &Lab,
    of: &[[Workload; 2]],
    sizes: fn(&Cluster) -> Vec<usize>,
) -> Result<Vec<(f64, f64)>, String> {
    let mut pairs = Vec::new();
    for cluster in [FIRST, SECOND] {
        for &of in of {
            pairs.extend(cluster.pairs(lab, of, sizes(&cluster))?);
        }
    }
    Ok(pairs)
}

/// Sizes at which the text names RGM the slowest.
fn few(_: &Cluster) -> Vec<usize> {
    vec![2, 4]
}

fn orders() -> Vec<Check> {
    let runs = |row, runs| Check { row, simulate: Simulate::Runs(runs) };
    vec![
        runs(PE_AGAINST_DS, |lab| {
            let odd =
                |c: &Cluster| c.all_sizes().into_iter().filter(|n| !n.is_power_of_two()).collect();
            Ok(order("MPI-PE", &both(lab, &[over("MPI-PE", "MPI-DS")], odd)?))
        }),
        runs("RPE and RDS barrier against MPI-PE; powers of 2, both clusters", |lab| {
            let of = [over("RPE", "MPI-PE"), over("RDS", "MPI-PE")];
            Ok(order("RPE and RDS", &both(lab, &of, Cluster::powers)?))
        }),
        runs("RPE barrier against RDS barrier; powers of 2, both clusters", |lab| {
            Ok(order("RPE", &both(lab, &[over("RPE", "RDS")], Cluster::powers)?))
        }),
        runs("RGM barrier against RPE and RDS; 2 and 4 nodes, both clusters", |lab| {
            Ok(order("RGM", &both(lab, &[over("RGM", "RPE"), over("RGM", "RDS")], few)?))
        }),
        runs("fastest of the RPE, RDS and RGM barriers; cluster 2, 16 nodes", |lab| {
            let time = |name| Ok((name, SECOND.time(lab, Barrier(name), 16)?));
            Ok(fastest(
                &["RPE", "RDS", "RGM"].map(time).into_iter().collect::<Result<Vec<_>, String>>()?,
            ))
        }),
        runs("RPE allreduce against MPI-PE; cluster 1, 256 integers, all group sizes", |lab| {
            let of = sums(&FIRST, "RPE", "MPI-PE");
            Ok(order("RPE", &FIRST.pairs(lab, of, FIRST.all_sizes())?))
        }),
        runs(PE_AGAINST_GB, |lab| {
            let of = sums(&FIRST, "MPI-PE", "MPI-GB");
            Ok(order("MPI-PE", &FIRST.pairs(lab, of, FIRST.all_sizes())?))
        }),
        runs("RGM allreduce against RPE; cluster 1, 256 integers, few nodes", |lab| {
            Ok(order("RGM", &FIRST.pairs(lab, sums(&FIRST, "RGM", "RPE"), few(&FIRST))?))
        }),
        runs(
            "fastest of MPI-GB, MPI-PE, RPE and RGM allreduce; cluster 1, 256 integers, 8 nodes",
            |lab| {
                let time = |name| Ok((name, FIRST.time(lab, FIRST.sum(name), 8)?));
                let times = ["MPI-GB", "MPI-PE", "RPE", "RGM"].map(time);
                Ok(fastest(&times.into_iter().collect::<Result<Vec<_>, String>>()?))
            },
        ),
    ]
}

/// The fan-in with the least time, summed over all group sizes. One that is not below a size is not
/// possible there (section 4.1.3): the largest possible one stands for it.
fn best_fan_in(lab: &Lab) -> Answer {
    let mut best = (f64::INFINITY, 0);
    for most in 1..=FAN_INS.len() {
        let mut total = 0.0;
        for nodes in SECOND.all_sizes() {
            let possible = FAN_INS[..most].iter().rev().find(|(_, fan_in)| *fan_in < nodes);
            let (name, _) = possible.expect("1 is below all sizes");
            total += SECOND.time(lab, Barrier(name), nodes)?;
        }
        if total < best.0 {
            best = (total, FAN_INS[most - 1].1);
        }
    }
    Ok(Value::Number(best.1 as f64))
}

/// The payload from which on an exchange of two costs a second write, in KiB: one integer more there
/// costs at least the posting of one.
fn one_write(lab: &Lab) -> Answer {
    let second = lab.machine(FIRST.machine)?.rail[0].second.overhead.us();
    for integers in [64, 128, 256, 512, 1024, 2048] {
        let time = |n| FIRST.time(lab, Workload::Allreduce("RPE", n), 2);
        if time(integers + 1)? - time(integers)? >= second {
            return Ok(Value::Number(integers as f64 * 4.0 / 1024.0));
        }
    }
    Ok(Value::Word("always one".to_owned()))
}

fn factors() -> Vec<Check> {
    let runs = |row, runs| Check { row, simulate: Simulate::Runs(runs) };
    vec![
        runs("improvement of RPE barrier over MPI-PE; cluster 1, 8 nodes", |lab| {
            FIRST.factor(lab, over("MPI-PE", "RPE"), 8).map(Value::Number)
        }),
        runs("improvement of RDS barrier over MPI-PE; cluster 1, 8 nodes", |lab| {
            FIRST.factor(lab, over("MPI-PE", "RDS"), 8).map(Value::Number)
        }),
        runs("improvement of RGM barrier over MPI-PE; cluster 2, 16 nodes", |lab| {
            SECOND.factor(lab, over("MPI-PE", "RGM"), 16).map(Value::Number)
        }),
        runs("largest improvement of RDS barrier over MPI-PE; cluster 1, all group sizes", |lab| {
            FIRST.largest(lab, over("MPI-PE", "RDS"))
        }),
        runs("largest improvement of RGM barrier over MPI-PE; cluster 1, all group sizes", |lab| {
            FIRST.largest(lab, over("MPI-PE", "RGM"))
        }),
        runs("largest improvement of RGM barrier over MPI-PE; cluster 2, all group sizes", |lab| {
            SECOND.largest(lab, over("MPI-PE", "RGM"))
        }),
        runs("largest improvement of RDS barrier over MPI-DS; cluster 1", |lab| {
            FIRST.largest(lab, over("MPI-DS", "RDS"))
        }),
        runs("largest improvement of RGM barrier over MPI-DS; cluster 1", |lab| {
            FIRST.largest(lab, over("MPI-DS", "RGM"))
        }),
        runs("largest improvement of RDS barrier over MPI-DS; cluster 2", |lab| {
            SECOND.largest(lab, over("MPI-DS", "RDS"))
        }),
        runs("largest improvement of RGM barrier over MPI-DS; cluster 2", |lab| {
            SECOND.largest(lab, over("MPI-DS", "RGM"))
        }),
        runs(
            "largest improvement of RPE allreduce over MPI-PE; cluster 1, 8 nodes, 256 integers",
            |lab| FIRST.factor(lab, sums(&FIRST, "MPI-PE", "RPE"), 8).map(Value::Number),
        ),
        runs("improvement of RGM allreduce over MPI-GB; cluster 1, 8 nodes, 256 integers", |lab| {
            FIRST.factor(lab, sums(&FIRST, "MPI-GB", "RGM"), 8).map(Value::Number)
        }),
        runs("largest improvement of RPE allreduce over MPI-GB; cluster 1, 256 integers", |lab| {
            FIRST.largest(lab, sums(&FIRST, "MPI-GB", "RPE"))
        }),
        runs(
            "largest improvement of RGM allreduce over MPI-GB; cluster 2, 16 nodes, 64 integers",
            |lab| SECOND.factor(lab, sums(&SECOND, "MPI-GB", "RGM"), 16).map(Value::Number),
        ),
        runs("largest improvement of RPE allreduce over MPI-GB; cluster 2, 64 integers", |lab| {
            SECOND.largest(lab, sums(&SECOND, "MPI-GB", "RPE"))
        }),
    ]
}

pub fn checks() -> Vec<Check> {
    let run = |row, workload, x| Check { row, simulate: Simulate::Run(FIRST.machine, workload, x) };
    let runs = |row, runs| Check { row, simulate: Simulate::Runs(runs) };
    let mut checks = vec![
        run(WRITE, Workload::WriteLatency, SMALL),
        run(TO_ONE, Workload::MulticastLatency(1), 1),
        run(TO_SEVEN, Workload::MulticastLatency(1), 7),
        run("steps of pairwise exchange; 5 nodes", Workload::BarrierSteps("RPE"), 5),
        run("steps of dissemination; 5 nodes", Workload::BarrierSteps("MPI-DS"), 5),
        run(
            "Allreduce of 1 integer on 2 nodes with RPE; cluster 1",
            Workload::Allreduce("RPE", 1),
            2,
        ),
        runs("overhead of the MPI layer on a 2-node barrier; cluster 1", |lab| {
            let barrier = FIRST.time(lab, Barrier("RPE"), 2)?;
            Ok(Value::Number(barrier - FIRST.time(lab, Workload::WriteLatency, SMALL)?))
        }),
        runs(
            "overhead of a 2-node Allreduce of 1 integer with RPE beyond the base RDMA write; cluster 1",
            |lab| {
                let sum = FIRST.time(lab, Workload::Allreduce("RPE", 1), 2)?;
                Ok(Value::Number(sum - FIRST.time(lab, Workload::WriteLatency, SMALL)?))
            },
        ),
        runs("best fan-in of RGM; cluster 2", best_fan_in),
        runs("height of the RGM tree; 8 nodes, fan-in 1", |_| height(1)),
        runs("height of the RGM tree; 8 nodes, fan-in 3", |_| height(3)),
        runs("height of the RGM tree; 8 nodes, fan-in 7", |_| height(7)),
        runs("largest RPE allreduce in one write; both clusters", one_write),
        runs(
            "size of the odd or even buffer of RPE allreduce, divided by the number of processes; up \
             to 2K, both clusters",
            // A slot; there are log2 N of them where the document has N.
            |_| Ok(Value::Number(landing::size(SINGLE) as f64)),
        ),
        runs("barriers after which the barrier number returns to 1; both clusters", |_| {
            // The document has one byte, and 0 means "empty".
            Ok(Value::Word(format!("never: {} bytes", landing::MARK)))
        }),
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
    ];
    checks.extend(factors());
    checks.extend(orders());
    checks
}

/// Of the tree on 8 nodes.
fn height(fan_in: usize) -> Answer {
    Ok(Value::Number(f64::from(edges::height(8, fan_in))))
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
        assert_eq!(word(&[(2.0, 1.0), (1.0, 1.0)]), "A slower in 1 of 2, faster in 0");
        assert_eq!(fastest(&[("A", 2.0), ("B", 1.0)]).to_string(), "B");
    }
}
