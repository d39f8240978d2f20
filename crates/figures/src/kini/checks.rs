//! Checks of statements in the text, by the same runs as the figures.

use super::{
    FIRST, KiniCluster, PE_AGAINST_DS, PE_AGAINST_GB, SECOND, SMALL, TO_ONE, TO_SEVEN, WRITE,
};
use crate::figure::{Check, Simulate};
use crate::lab::Lab;
use crate::measure::collectives::SINGLE;
use crate::orders::{ALIKE, fastest, grouped, order, order_beyond};
use crate::published::{CheckResult, FigureValue};
use crate::workload::Workload;
use weft_collective::{CollectiveKind, notified_write, rdma_pattern};

/// The fan-ins of figure 4.7.
pub const FAN_INS: [(&str, usize); 4] = [("RGM:1", 1), ("RGM:3", 3), ("RGM:7", 7), ("RGM:15", 15)];

pub(super) const PAPER: &str = "Kini";
const SIMILAR: &str = "RPE barrier against RDS barrier; powers of 2, both clusters";

impl KiniCluster {
    pub(super) fn time(&self, lab: &Lab, workload: Workload, nodes: usize) -> Result<f64, String> {
        lab.measure(self.machine, workload, nodes)
    }

    fn sum(&self, name: &'static str) -> Workload {
        Workload::Allreduce(name, self.integers)
    }

    /// Returns the time of the first workload divided by the time of the second workload, at one size.
    fn factor(&self, lab: &Lab, of: [Workload; 2], nodes: usize) -> Result<f64, String> {
        Ok(self.time(lab, of[0], nodes)? / self.time(lab, of[1], nodes)?)
    }

    /// Returns the largest factor over all sizes. The factor is the time of the first workload divided by the time of the second.
    fn largest(&self, lab: &Lab, of: [Workload; 2]) -> CheckResult {
        let factors = self.all_sizes().into_iter().map(|nodes| self.factor(lab, of, nodes));
        let factors = factors.collect::<Result<Vec<_>, _>>()?;
        Ok(FigureValue::Number(factors.into_iter().fold(0.0, f64::max)))
    }

    /// Returns the times of both workloads at these sizes.
    pub(super) fn pairs(
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

/// Returns the barriers `baseline` and `name`, from which the improvement of `name` is computed.
pub(super) const fn over(baseline: &'static str, name: &'static str) -> [Workload; 2] {
    [Barrier(baseline), Barrier(name)]
}

/// Returns the allreduces `baseline` and `name` for the cluster's number of integers.
fn sums(cluster: &KiniCluster, baseline: &'static str, name: &'static str) -> [Workload; 2] {
    [cluster.sum(baseline), cluster.sum(name)]
}

/// Returns the times of both workloads at all sizes on both clusters.
pub(super) fn both(
    lab: &Lab,
    of: &[[Workload; 2]],
    sizes: fn(&KiniCluster) -> Vec<usize>,
) -> Result<Vec<(f64, f64)>, String> {
    let mut pairs = Vec::new();
    for cluster in [FIRST, SECOND] {
        for &of in of {
            pairs.extend(cluster.pairs(lab, of, sizes(&cluster))?);
        }
    }
    Ok(pairs)
}

/// Returns the sizes at which the text says that RGM is the slowest.
fn few(_: &KiniCluster) -> Vec<usize> {
    vec![2, 4]
}

fn orders() -> Vec<Check> {
    let runs = |row, runs| Check { row, simulate: Simulate::Runs(runs) };
    vec![
        runs(PE_AGAINST_DS, |lab| {
            let odd = |c: &KiniCluster| {
                c.all_sizes().into_iter().filter(|n| !n.is_power_of_two()).collect()
            };
            Ok(order("MPI-PE", &both(lab, &[over("MPI-PE", "MPI-DS")], odd)?))
        }),
        runs("RPE and RDS barrier against MPI-PE; powers of 2, both clusters", |lab| {
            let of = [over("RPE", "MPI-PE"), over("RDS", "MPI-PE")];
            Ok(order("RPE and RDS", &both(lab, &of, KiniCluster::powers)?))
        }),
        runs(SIMILAR, |lab| {
            let alike = lab.threshold(PAPER, SIMILAR)?;
            let pairs = both(lab, &[over("RPE", "RDS")], KiniCluster::powers)?;
            Ok(order_beyond(alike, "RPE", &pairs))
        }),
        runs("RGM barrier against RPE and RDS; 2 and 4 nodes, both clusters", |lab| {
            Ok(order("RGM", &both(lab, &[over("RGM", "RPE"), over("RGM", "RDS")], few)?))
        }),
        runs("fastest of the RPE, RDS and RGM barriers; cluster 2, 16 nodes", |lab| {
            let time = |name| Ok((name, SECOND.time(lab, Barrier(name), 16)?));
            let times =
                ["RPE", "RDS", "RGM"].map(time).into_iter().collect::<Result<Vec<_>, String>>()?;
            Ok(FigureValue::Word(fastest(&times).to_owned()))
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
                let times = times.into_iter().collect::<Result<Vec<_>, String>>()?;
                Ok(FigureValue::Word(fastest(&times).to_owned()))
            },
        ),
    ]
}

/// Barriers of the document and its baseline.
const BARRIERS: [&str; 4] = ["MPI-PE", "RPE", "RDS", "RGM"];

/// Compares two allreduces of a cluster at all group sizes.
fn both_sums(
    lab: &Lab,
    cluster: &KiniCluster,
    name: &'static str,
    other: &'static str,
) -> CheckResult {
    Ok(order(name, &cluster.pairs(lab, sums(cluster, name, other), cluster.all_sizes())?))
}

fn more_orders() -> Vec<Check> {
    let runs = |row, runs| Check { row, simulate: Simulate::Runs(runs) };
    vec![
        runs(super::WRITE_AGAINST_SEND, |lab| {
            let at = |size| {
                let time = |workload| lab.measure(FIRST.machine, workload, size);
                Ok((time(Workload::WriteLatency)?, time(Workload::SendLatency)?))
            };
            let pairs =
                super::verbs::sizes().into_iter().map(at).collect::<Result<Vec<_>, String>>()?;
            Ok(order("RDMA write", &pairs))
        }),
        runs(super::CONSTANT, constant_factor),
        runs(super::MOSTLY_RGM, mostly),
        runs(super::PENALIZED, penalized),
        runs(super::RPE_ABOVE_RGM, |lab| {
            let of = |name| SECOND.largest(lab, sums(&SECOND, "MPI-GB", name));
            let (rpe, rgm) = (of("RPE")?.number(), of("RGM")?.number());
            let word = if rpe > rgm { "RPE larger" } else { "RGM larger" };
            Ok(FigureValue::Word(word.to_owned()))
        }),
        runs(super::JUMP, jump),
        runs(super::GRADUAL, |lab| {
            for (integers, _) in super::allreduces::SIZES.into_iter().filter(|(n, _)| *n <= 256) {
                let time = |nodes| FIRST.time(lab, Workload::Allreduce("RGM", integers), nodes);
                let factor = time(8)? / time(2)?;
                if factor > lab.threshold(PAPER, super::GRADUAL)? {
                    return Ok(FigureValue::Word(format!(
                        "{factor:.2} times, {integers} integers"
                    )));
                }
            }
            Ok(FigureValue::Word("gradual".to_owned()))
        }),
        runs(super::SLOWER_RISE, |lab| {
            let rise = |name| {
                let time = |nodes| FIRST.time(lab, FIRST.sum(name), nodes);
                Ok::<_, String>(time(8)? - time(2)?)
            };
            let (ours, theirs) = (rise("RGM")?, rise("MPI-GB")?);
            Ok(FigureValue::Word(match ours / theirs {
                part if part < lab.threshold(PAPER, super::SLOWER_RISE)? => {
                    "RGM much slower".to_owned()
                }
                part => format!("RGM by {:.0} % of it", 100.0 * part),
            }))
        }),
        runs(super::RGM_AGAINST_GB[0], |lab| both_sums(lab, &FIRST, "RGM", "MPI-GB")),
        runs(super::RGM_AGAINST_GB[1], |lab| both_sums(lab, &SECOND, "RGM", "MPI-GB")),
        runs(super::RDMA_ALWAYS, |lab| {
            let mut pairs = Vec::new();
            for (name, other) in
                [("RPE", "MPI-GB"), ("RPE", "MPI-PE"), ("RGM", "MPI-GB"), ("RGM", "MPI-PE")]
            {
                pairs.extend(FIRST.pairs(lab, sums(&FIRST, name, other), FIRST.all_sizes())?);
            }
            Ok(order("RPE and RGM", &pairs))
        }),
        runs(super::FAN_IN_EVERYWHERE, best_everywhere),
    ]
}

/// Checks how often RGM is the fastest barrier of the second cluster.
fn mostly(lab: &Lab) -> CheckResult {
    let sizes = SECOND.all_sizes();
    let mut best = 0;
    for &nodes in &sizes {
        let time = |name| Ok((name, SECOND.time(lab, Barrier(name), nodes)?));
        let times = BARRIERS.map(time).into_iter().collect::<Result<Vec<_>, String>>()?;
        best += usize::from(fastest(&times) == "RGM");
    }
    let most = lab.threshold(PAPER, super::MOSTLY_RGM)?;
    Ok(FigureValue::Word(match best as f64 > most * sizes.len() as f64 {
        true => "RGM".to_owned(),
        false => format!("RGM at {best} of {} sizes", sizes.len()),
    }))
}

/// Returns the best fan-in at each group size of the second cluster.
fn best_everywhere(lab: &Lab) -> CheckResult {
    let mut best = Vec::new();
    for nodes in SECOND.all_sizes() {
        let mut times = Vec::new();
        for (name, _) in FAN_INS.into_iter().filter(|(_, fan_in)| *fan_in < nodes) {
            times.push((name, SECOND.time(lab, Barrier(name), nodes)?));
        }
        // A group size does not count against a fan-in of 7 if this fan-in is not possible, or if it is as fast as the best fan-in.
        let seven = times.iter().find(|(name, _)| *name == "RGM:7").map(|(_, time)| *time);
        let least = fastest(&times);
        let ahead = times.iter().find(|(name, _)| *name == least).map(|(_, time)| *time);
        if let (Some(seven), Some(least_time)) = (seven, ahead) {
            best.push((nodes, if seven <= least_time { "7" } else { &least[4..] }));
        }
    }
    Ok(FigureValue::Word(grouped(&best)))
}

/// Checks that RPE is faster than MPI-PE by the same factor at all group sizes of both clusters. The document says "almost a
/// constant" about a figure.
fn constant_factor(lab: &Lab) -> CheckResult {
    // Compares the largest factor with the smallest.
    let almost = lab.threshold(PAPER, super::CONSTANT)?;
    let pairs = both(lab, &[over("MPI-PE", "RPE")], KiniCluster::all_sizes)?;
    let factors = pairs.into_iter().map(|(pe, rpe)| pe / rpe);
    let (least, most) = factors.fold((f64::INFINITY, 0f64), |(l, m), f| (l.min(f), m.max(f)));
    Ok(FigureValue::Word(match most / least <= almost {
        true => "almost constant".to_owned(),
        false => format!("from {least:.2} to {most:.2}"),
    }))
}

/// Returns the barriers that take longer at each group size that is not a power of two than at the next power of two.
fn penalized(lab: &Lab) -> CheckResult {
    let (mut always, mut sometimes) = (Vec::new(), Vec::new());
    for name in BARRIERS {
        let (mut count, mut all) = (0, 0);
        for cluster in [FIRST, SECOND] {
            for nodes in cluster.all_sizes().into_iter().filter(|n| !n.is_power_of_two()) {
                let time = |n| cluster.time(lab, Barrier(name), n);
                count += usize::from(time(nodes)? > time(nodes.next_power_of_two())? * ALIKE);
                all += 1;
            }
        }
        match count {
            count if count == all => always.push(name.to_owned()),
            0 => {}
            count => sometimes.push(format!("{name} in {count} of {all}")),
        }
    }
    if always.is_empty() {
        always.push("none always".to_owned());
    }
    let always = always.join(" and ");
    Ok(FigureValue::Word(match sometimes.is_empty() {
        true => always,
        false => format!("{always}; {}", sometimes.join(", ")),
    }))
}

/// Compares the time of 1,024 integers with the time that a line through the times of 256 and 512 integers predicts, at each group
/// size. With 1,024 integers each step needs a second write.
fn jump(lab: &Lab) -> CheckResult {
    let mut least = f64::INFINITY;
    for nodes in FIRST.all_sizes() {
        let time = |integers| FIRST.time(lab, Workload::Allreduce("RPE", integers), nodes);
        let line = time(512)? + 2.0 * (time(512)? - time(256)?);
        least = least.min(time(1024)? / line);
    }
    Ok(FigureValue::Word(match least {
        least if least > lab.threshold(PAPER, super::JUMP)? => "more".to_owned(),
        least => format!("{least:.3} times the line"),
    }))
}

/// Returns the fan-in with the smallest sum of times over all group sizes. A fan-in must be smaller than the group (section 4.1.3).
/// For smaller groups, the largest possible fan-in is used instead.
fn best_fan_in(lab: &Lab) -> CheckResult {
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
    Ok(FigureValue::Number(best.1 as f64))
}

/// Returns the payload in KiB above which an exchange of two ranks needs a second write. It is the first payload at which a further
/// integer lengthens the exchange by at least the time to post a write.
fn one_write(lab: &Lab) -> CheckResult {
    let second = lab.machine(FIRST.machine)?.rail[0].second.overhead.us();
    for integers in [64, 128, 256, 512, 1024, 2048] {
        let time = |n| FIRST.time(lab, Workload::Allreduce("RPE", n), 2);
        if time(integers + 1)? - time(integers)? >= second {
            return Ok(FigureValue::Number(integers as f64 * 4.0 / 1024.0));
        }
    }
    Ok(FigureValue::Word("always one".to_owned()))
}

fn factors() -> Vec<Check> {
    let runs = |row, runs| Check { row, simulate: Simulate::Runs(runs) };
    vec![
        runs("improvement of RPE barrier over MPI-PE; cluster 1, 8 nodes", |lab| {
            FIRST.factor(lab, over("MPI-PE", "RPE"), 8).map(FigureValue::Number)
        }),
        runs("improvement of RDS barrier over MPI-PE; cluster 1, 8 nodes", |lab| {
            FIRST.factor(lab, over("MPI-PE", "RDS"), 8).map(FigureValue::Number)
        }),
        runs("improvement of RGM barrier over MPI-PE; cluster 2, 16 nodes", |lab| {
            SECOND.factor(lab, over("MPI-PE", "RGM"), 16).map(FigureValue::Number)
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
            |lab| FIRST.factor(lab, sums(&FIRST, "MPI-PE", "RPE"), 8).map(FigureValue::Number),
        ),
        runs("improvement of RGM allreduce over MPI-GB; cluster 1, 8 nodes, 256 integers", |lab| {
            FIRST.factor(lab, sums(&FIRST, "MPI-GB", "RGM"), 8).map(FigureValue::Number)
        }),
        runs("largest improvement of RPE allreduce over MPI-GB; cluster 1, 256 integers", |lab| {
            FIRST.largest(lab, sums(&FIRST, "MPI-GB", "RPE"))
        }),
        runs(
            "largest improvement of RGM allreduce over MPI-GB; cluster 2, 16 nodes, 64 integers",
            |lab| SECOND.factor(lab, sums(&SECOND, "MPI-GB", "RGM"), 16).map(FigureValue::Number),
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
        run(
            "steps of pairwise exchange; 5 nodes",
            Workload::Steps(CollectiveKind::Barrier, "RPE"),
            5,
        ),
        run(
            "steps of dissemination; 5 nodes",
            Workload::Steps(CollectiveKind::Barrier, "MPI-DS"),
            5,
        ),
        run(
            "Allreduce of 1 integer on 2 nodes with RPE; cluster 1",
            Workload::Allreduce("RPE", 1),
            2,
        ),
        runs("overhead of the MPI layer on a 2-node barrier; cluster 1", |lab| {
            let barrier = FIRST.time(lab, Barrier("RPE"), 2)?;
            Ok(FigureValue::Number(barrier - FIRST.time(lab, Workload::WriteLatency, SMALL)?))
        }),
        runs(
            "overhead of a 2-node Allreduce of 1 integer with RPE beyond the base RDMA write; cluster 1",
            |lab| {
                let sum = FIRST.time(lab, Workload::Allreduce("RPE", 1), 2)?;
                Ok(FigureValue::Number(sum - FIRST.time(lab, Workload::WriteLatency, SMALL)?))
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
            // The value is the size of a slot. There are log2 N slots here, and N slots in the document.
            |_| Ok(FigureValue::Number(notified_write::size(SINGLE) as f64)),
        ),
        runs(super::DATA_BUFFER, |_| {
            // The mark follows the payload, as in a slot for a smaller payload. It is not included in the value.
            Ok(FigureValue::Number(
                (notified_write::size(2 * SINGLE) - notified_write::MARK) as f64,
            ))
        }),
        runs(super::NOTIFY_BUFFER, |_| Ok(FigureValue::Number(notified_write::MARK as f64))),
        runs("barriers after which the barrier number returns to 1; both clusters", |_| {
            // The document's mark is one byte, and 0 means "empty".
            Ok(FigureValue::Word(format!("never: {} bytes", notified_write::MARK)))
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
    checks.extend(more_orders());
    checks
}

/// Returns the height of the tree on 8 nodes.
fn height(fan_in: usize) -> CheckResult {
    Ok(FigureValue::Number(f64::from(rdma_pattern::height(8, fan_in))))
}
