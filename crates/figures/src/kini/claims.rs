//! Checks of statements in the text that no figure shows: mechanisms, descriptors and steps.

use super::checks::{PAPER, both, over};
use super::{FIRST, KiniCluster, SECOND, SMALL};
use crate::figure::{Check, Shown, Simulate};
use crate::lab::Lab;
use crate::orders::order;
use crate::published::{CheckResult, FigureValue};
use crate::workload::{RegistrationTime, Workload};
use weft_collective::CollectiveKind;

const GAIN_GROWS: &str =
    "improvement of RGM barrier over MPI-PE as nodes grow; powers of 2, both clusters";
const RELIABILITY: &str =
    "overhead of the reliability of the RGM barrier; cluster 1, no datagram lost";

const FIRST_CALL: &str =
    "first RPE allreduce against the ones that follow; cluster 1, 256 integers, all group sizes";
const EVERY_CALL: &str = "RPE allreduce whose buffers are registered at every call against buffers of the first call; cluster 1, 256 integers, all group sizes";

/// Measures two RPE allreduces at all sizes. The first registers its buffers during the measurement, and the second uses buffers
/// that exist before.
fn registering(lab: &Lab, when: RegistrationTime) -> Result<Vec<(f64, f64)>, String> {
    let integers = FIRST.integers;
    let of = [
        Workload::RegisteringAllreduce("RPE", integers, when),
        Workload::Allreduce("RPE", integers),
    ];
    FIRST.pairs(lab, of, FIRST.all_sizes())
}

/// Checks that an allreduce is very expensive at all sizes if every call registers its buffers.
fn every_call(lab: &Lab) -> CheckResult {
    let pairs = registering(lab, RegistrationTime::EveryCall)?;
    let least = pairs.iter().map(|(every, once)| every / once).fold(f64::INFINITY, f64::min);
    Ok(FigureValue::Word(match least >= lab.threshold(PAPER, EVERY_CALL)? {
        true => "very expensive".to_owned(),
        false => format!("{least:.2} times the time"),
    }))
}

/// Checks, on both clusters, that the gain of RGM is larger at each power of two than at the power before.
fn gain_grows(lab: &Lab) -> CheckResult {
    let alike = lab.threshold(PAPER, GAIN_GROWS)?;
    let mut falls = Vec::new();
    for cluster in [FIRST, SECOND] {
        let mut before = 0.0;
        for nodes in cluster.powers() {
            let time = |name| cluster.time(lab, Workload::Barrier(name), nodes);
            let gain = time("MPI-PE")? / time("RGM")?;
            if gain < before * alike {
                falls.push(format!("{nodes} nodes of {}", cluster.machine));
            }
            before = gain;
        }
    }
    Ok(FigureValue::Word(match falls.is_empty() {
        true => "rises".to_owned(),
        false => format!("not at {}", falls.join(", ")),
    }))
}

/// Compares the time of the RGM barrier of two ranks with the sum of the times of its parts: the call, a write and a multicast.
fn reliability(lab: &Lab) -> CheckResult {
    let entry = lab.machine(FIRST.machine)?.host.entry.us();
    let write = FIRST.time(lab, Workload::WriteLatency, SMALL)?;
    let parts = entry + write + FIRST.time(lab, Workload::MulticastLatency(1), 1)?;
    let factor = FIRST.time(lab, Workload::Barrier("RGM"), 2)? / parts;
    Ok(FigureValue::Word(match factor <= lab.threshold(PAPER, RELIABILITY)? {
        true => "none".to_owned(),
        false => format!("{factor:.3} times its parts"),
    }))
}

pub fn checks() -> Vec<Check> {
    let run = |row, workload, x| Check { row, simulate: Simulate::Run(FIRST.machine, workload, x) };
    let mut checks = vec![
        run(
            "steps of the RPE allreduce; 5 nodes",
            Workload::Steps(CollectiveKind::Allreduce, "RPE"),
            5,
        ),
        run(
            "send descriptors of a broadcast by messages; 4 nodes",
            Workload::SendDescriptors("MPI-BINOMIAL"),
            4,
        ),
        run(
            "send descriptors of a broadcast by multicast; 4 nodes",
            Workload::SendDescriptors("MULTICAST"),
            4,
        ),
        run(
            "acknowledgements to the root after an RGM barrier that all acknowledge; 8 nodes",
            Workload::Acknowledgements("RGM-ACK"),
            8,
        ),
    ];
    let shown: [Shown; 10] = [
        ("RDS barrier against MPI-DS; all group sizes, both clusters", |lab| {
            Ok(order("RDS", &both(lab, &[over("RDS", "MPI-DS")], KiniCluster::all_sizes)?))
        }),
        ("RGM barrier against MPI-DS; all group sizes, both clusters", |lab| {
            Ok(order("RGM", &both(lab, &[over("RGM", "MPI-DS")], KiniCluster::all_sizes)?))
        }),
        ("RPE, RDS and RGM barrier against MPI-PE; all group sizes, both clusters", |lab| {
            let of = ["RPE", "RDS", "RGM"].map(|name| over(name, "MPI-PE"));
            Ok(order("RPE, RDS and RGM", &both(lab, &of, KiniCluster::all_sizes)?))
        }),
        (GAIN_GROWS, gain_grows),
        ("RGM barrier with a fan-in of 15 against 7; cluster 2, 16 nodes", |lab| {
            Ok(order("fan-in 15", &SECOND.pairs(lab, over("RGM:15", "RGM:7"), [16])?))
        }),
        (RELIABILITY, reliability),
        (
            "barrier by writes with immediate against writes that are polled; RPE and RDS, cluster 1, all group sizes",
            |lab| {
                let mut pairs = FIRST.pairs(lab, over("RPE-IMM", "RPE"), FIRST.all_sizes())?;
                pairs.extend(FIRST.pairs(lab, over("RDS-IMM", "RDS"), FIRST.all_sizes())?);
                Ok(order("immediate", &pairs))
            },
        ),
        (
            "RGM barrier with an acknowledgement from each process against one without; cluster 1, all group sizes",
            |lab| {
                let of = over("RGM-ACK", "RGM");
                Ok(order("acknowledged", &FIRST.pairs(lab, of, FIRST.all_sizes())?))
            },
        ),
        (FIRST_CALL, |lab| {
            let pairs = registering(lab, RegistrationTime::FirstCall)?;
            Ok(order("first", &pairs))
        }),
        (EVERY_CALL, every_call),
    ];
    checks.extend(shown.map(|(row, run)| Check { row, simulate: Simulate::Runs(run) }));
    checks
}
