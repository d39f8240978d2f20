//! Statements of the text of Multi-rail, checked by runs.

use super::{EM64T, IA32, LARGEST, ending, fragmented, in_turns, on, one_sided, sizes};
use crate::figure::{Check, Shown, Simulate};
use crate::lab::Lab;
use crate::orders::order;
use crate::published::{CheckResult, FigureValue};
use crate::workload::{FragmentLength, OneSidedPattern, RailUse, Workload};
use weft_rma::{EpochEnding, IssueOrder};

/// Uses of the rails: one rail, then two rails.
const RAILS: [RailUse; 2] = [RailUse::First, RailUse::All];

/// Returns the percentage by which two rails shorten the largest operation.
fn reduction(lab: &Lab, machine: &'static str, test: OneSidedPattern) -> CheckResult {
    let [one, two] = RAILS.map(|rails| lab.measure(machine, on(test, rails), LARGEST));
    Ok(FigureValue::Number(100.0 * (1.0 - two? / one?)))
}

/// Compares puts and gets issued in turns on one rail with puts and gets issued in order on two rails.
fn turns_against_rails(lab: &Lab) -> CheckResult {
    let one = lab.measure(EM64T, in_turns(RailUse::First), LARGEST)?;
    let two = lab.measure(EM64T, on(OneSidedPattern::Interleaved, RailUse::All), LARGEST)?;
    let word = if one > two { "one rail faster" } else { "two rails faster" };
    Ok(FigureValue::Word(word.to_owned()))
}

/// Checks that small operations take the same time on one rail and on two, on both machines.
fn small_alike(lab: &Lab) -> CheckResult {
    for machine in [IA32, EM64T] {
        for test in [OneSidedPattern::PutLatency, OneSidedPattern::GetLatency] {
            let [one, two] = RAILS.map(|rails| lab.measure(machine, on(test, rails), 64));
            if (two? / one? - 1.0).abs() > lab.threshold(PAPER, SMALL_ALIKE)? - 1.0 {
                return Ok(FigureValue::Word("different".to_owned()));
            }
        }
    }
    Ok(FigureValue::Word("similar".to_owned()))
}

/// Returns the performance of two rails divided by that of one rail, at each size.
fn gains(
    lab: &Lab,
    machine: &'static str,
    test: OneSidedPattern,
) -> Result<Vec<(usize, f64)>, String> {
    let gain = |size| {
        let [one, two] = RAILS.map(|rails| lab.measure(machine, on(test, rails), size));
        Ok((size, two? / one?))
    };
    sizes().into_iter().map(gain).collect()
}

/// Returns a size in KiB.
fn kib(size: Option<usize>) -> CheckResult {
    let word = || FigureValue::Word("no size of the figure".to_owned());
    Ok(size.map_or_else(word, |size| FigureValue::Number(size as f64 / 1024.0)))
}

/// Returns the largest size up to which puts are as fast on one rail as on two rails.
fn alike_up_to(lab: &Lab) -> CheckResult {
    let gains = gains(lab, IA32, OneSidedPattern::Put)?;
    let alike = lab.threshold(PAPER, ALIKE_UP_TO)?;
    kib(gains.iter().take_while(|(_, gain)| *gain < alike).last().map(|(size, _)| *size))
}

/// Returns the size from which a single put arrives sooner in fragments on both rails than as a whole on one rail. Only one put is
/// under way, because several puts would use both rails even without fragments.
fn gains_from(lab: &Lab) -> CheckResult {
    let gain = |size| {
        let of = |from| {
            let pieces = FragmentLength::From(from);
            let what = one_sided(
                OneSidedPattern::PutLatency,
                RailUse::All,
                IssueOrder::Called,
                EpochEnding::Used,
                pieces,
            );
            lab.measure(IA32, what, size)
        };
        Ok((size, of(usize::MAX)? / of(0)?))
    };
    let gains: Vec<(usize, f64)> = sizes().into_iter().map(gain).collect::<Result<_, String>>()?;
    kib(gains.iter().rev().take_while(|(_, gain)| *gain > 1.0).last().map(|(size, _)| *size))
}

/// Returns the size up to which a single put takes as long on two rails as on one rail. Such a put is sent in one piece.
fn whole_up_to(lab: &Lab) -> CheckResult {
    let gains = gains(lab, EM64T, OneSidedPattern::PutLatency)?;
    let alike = 1.0 / lab.threshold(PAPER, WHOLE_UP_TO)?;
    kib(gains.iter().take_while(|(_, gain)| *gain > alike).last().map(|(size, _)| *size))
}

const PAPER: &str = "Multi-rail";
const DIRECT_LATENCY: &str = "MPI_Put latency of the direct design against the one based on messages; IA32 and EM64T, one rail, all sizes";
const DIRECT_BANDWIDTH: &str = "MPI_Put bandwidth of the direct design against the one based on messages; IA32 and EM64T, one rail, all sizes";
const ALIKE_UP_TO: &str =
    "largest message for which one rail and two perform alike in MPI_Put bandwidth; IA32";
const WHOLE_UP_TO: &str = "largest message that is not fragmented over two rails; EM64T";
const SMALL_ALIKE: &str =
    "latency of small MPI_Put and MPI_Get with two rails against one; IA32 and EM64T";
pub const MEDIUM: &str = "MPI_Put bandwidth of messages in fragments over two rails against whole ones; IA32, 2 to 16 KiB";
pub const IN_ORDER_PEAK: &str =
    "interleaved put+get throughput two rails in order against the peak of MPI_Put one way; IA32";
pub const IN_ORDER_PEAK_ONE: &str =
    "interleaved put+get throughput one rail in order against the peak of MPI_Put one way; EM64T";
pub const TURNS_PEAK: &str = "interleaved put+get throughput two rails reordered against the peak of MPI_Put both ways; IA32 and EM64T";
pub const EVERY_RAIL: &str =
    "overhead of synchronization messages on every rail; IA32 and EM64T, load balanced";

/// Compares the rates with and without fragments, at the sizes at which the text says that fragments are faster.
fn medium(lab: &Lab) -> CheckResult {
    let at = |size: usize| {
        let rate = |from| lab.measure(IA32, fragmented(from), size);
        // `order` expects times, but these values are rates. So the two values are exchanged.
        Ok((rate(usize::MAX)?, rate(size)?))
    };
    let sizes = (11..=14).map(|power| at(1 << power));
    Ok(order("fragments", &sizes.collect::<Result<Vec<_>, String>>()?))
}

/// Checks that the two values of each pair are almost equal. The text says "close" or "almost".
fn close(lab: &Lab, row: &str, of: &[(&'static str, [Workload; 2])]) -> CheckResult {
    let alike = lab.threshold(PAPER, row)?;
    for &(machine, pair) in of {
        let [one, peak] = pair.map(|workload| lab.measure(machine, workload, LARGEST));
        let part = one? / peak?;
        if !(1.0 / alike..=alike).contains(&part) {
            return Ok(FigureValue::Word(format!("{:.0} % of it on {machine}", 100.0 * part)));
        }
    }
    Ok(FigureValue::Word("close".to_owned()))
}

/// Compares two ways to end an epoch of one put that is balanced over the rails: flags on every rail, and one flag after all
/// acknowledgements. Returns how much longer the epoch takes with flags on every rail.
fn every_rail(lab: &Lab) -> CheckResult {
    let mut most = 0.0f64;
    for machine in [IA32, EM64T] {
        for size in sizes().into_iter().filter(|size| *size > 8 << 10) {
            let [every, one] = [EpochEnding::Every, EpochEnding::Acknowledged]
                .map(|how| lab.measure(machine, ending(how), size));
            most = most.max(every? / one? - 1.0);
        }
    }
    Ok(FigureValue::Word(match most <= lab.threshold(PAPER, EVERY_RAIL)? {
        true => "very small".to_owned(),
        false => format!("up to {:.1} %", 100.0 * most),
    }))
}

const EQUAL: &str = "fragments of one kind of operation on all rails; IA32 and EM64T";

/// Checks that all pieces have the same length, in an epoch of puts and in an epoch of gets.
fn equal_pieces(lab: &Lab) -> CheckResult {
    let alike = lab.threshold(PAPER, EQUAL)?;
    for machine in [IA32, EM64T] {
        for test in [OneSidedPattern::Put, OneSidedPattern::Get] {
            let ratio = lab.measure(machine, Workload::PieceRatio(test), LARGEST)?;
            if ratio > alike {
                return Ok(FigureValue::Word(format!(
                    "{ratio:.2} times as long, {test:?} on {machine}"
                )));
            }
        }
    }
    Ok(FigureValue::Word("equal".to_owned()))
}

/// Measures the design on RDMA operations and the design on messages, on one rail of both machines at all sizes.
fn designs(lab: &Lab, test: OneSidedPattern) -> Result<Vec<(f64, f64)>, String> {
    let mut pairs = Vec::new();
    for machine in [IA32, EM64T] {
        for size in sizes() {
            let direct = lab.measure(machine, on(test, RailUse::First), size)?;
            pairs.push((direct, lab.measure(machine, Workload::OfMessages(test), size)?));
        }
    }
    Ok(pairs)
}

/// Rows about the peaks that the text states. Each element has the machine, the row, the test, the rails, and the issue order.
pub const PEAKS: [(&str, &str, OneSidedPattern, RailUse, IssueOrder); 16] = [
    (
        IA32,
        "peak MPI_Put bandwidth two rails; IA32, two HCAs",
        OneSidedPattern::Put,
        RailUse::All,
        IssueOrder::Called,
    ),
    (
        IA32,
        "peak MPI_Put bandwidth one rail; IA32",
        OneSidedPattern::Put,
        RailUse::First,
        IssueOrder::Called,
    ),
    (
        EM64T,
        "peak MPI_Put bandwidth two rails; EM64T, two ports",
        OneSidedPattern::Put,
        RailUse::All,
        IssueOrder::Called,
    ),
    (
        EM64T,
        "peak MPI_Put bandwidth one rail; EM64T",
        OneSidedPattern::Put,
        RailUse::First,
        IssueOrder::Called,
    ),
    (
        IA32,
        "peak MPI_Put bidirectional bandwidth two rails; IA32",
        OneSidedPattern::BothPut,
        RailUse::All,
        IssueOrder::Called,
    ),
    (
        IA32,
        "peak MPI_Put bidirectional bandwidth one rail; IA32",
        OneSidedPattern::BothPut,
        RailUse::First,
        IssueOrder::Called,
    ),
    (
        EM64T,
        "peak MPI_Put bidirectional bandwidth two rails; EM64T",
        OneSidedPattern::BothPut,
        RailUse::All,
        IssueOrder::Called,
    ),
    (
        EM64T,
        "peak MPI_Put bidirectional bandwidth one rail; EM64T",
        OneSidedPattern::BothPut,
        RailUse::First,
        IssueOrder::Called,
    ),
    (
        IA32,
        "peak MPI_Get bandwidth two rails; IA32",
        OneSidedPattern::Get,
        RailUse::All,
        IssueOrder::Called,
    ),
    (
        IA32,
        "peak MPI_Get bandwidth one rail; IA32",
        OneSidedPattern::Get,
        RailUse::First,
        IssueOrder::Called,
    ),
    (
        EM64T,
        "peak MPI_Get bandwidth two rails; EM64T",
        OneSidedPattern::Get,
        RailUse::All,
        IssueOrder::Called,
    ),
    (
        EM64T,
        "peak MPI_Get bandwidth one rail; EM64T",
        OneSidedPattern::Get,
        RailUse::First,
        IssueOrder::Called,
    ),
    (IA32, INTERLEAVED_IA32[2], OneSidedPattern::Interleaved, RailUse::All, IssueOrder::Called),
    (IA32, INTERLEAVED_IA32[3], OneSidedPattern::Interleaved, RailUse::All, IssueOrder::Turns),
    (EM64T, INTERLEAVED_EM64T[2], OneSidedPattern::Interleaved, RailUse::All, IssueOrder::Called),
    (EM64T, INTERLEAVED_EM64T[3], OneSidedPattern::Interleaved, RailUse::All, IssueOrder::Turns),
];

pub const INTERLEAVED_IA32: [&str; 4] = [
    "interleaved put+get throughput one rail in order; IA32",
    "interleaved put+get throughput one rail reordered; IA32",
    "interleaved put+get throughput two rails in order; IA32",
    "interleaved put+get throughput two rails reordered; IA32",
];
pub const INTERLEAVED_EM64T: [&str; 4] = [
    "interleaved put+get throughput one rail in order; EM64T",
    "interleaved put+get throughput one rail reordered; EM64T",
    "interleaved put+get throughput two rails in order; EM64T",
    "interleaved put+get throughput two rails reordered; EM64T",
];

/// Returns puts and gets issued in order, and puts alone.
fn in_order(rails: RailUse) -> [Workload; 2] {
    [on(OneSidedPattern::Interleaved, rails), on(OneSidedPattern::Put, rails)]
}

pub fn checks() -> Vec<Check> {
    let peak = |&(machine, row, test, rails, order): &(_, _, _, _, _)| {
        let workload = one_sided(test, rails, order, EpochEnding::Used, FragmentLength::Usual);
        Check { row, simulate: Simulate::Run(machine, workload, LARGEST) }
    };
    let mut checks: Vec<Check> = PEAKS.iter().map(peak).collect();
    let one_rail = [
        (IA32, INTERLEAVED_IA32[0], IssueOrder::Called),
        (IA32, INTERLEAVED_IA32[1], IssueOrder::Turns),
        (EM64T, INTERLEAVED_EM64T[0], IssueOrder::Called),
        (EM64T, INTERLEAVED_EM64T[1], IssueOrder::Turns),
    ];
    checks.extend(one_rail.map(|(machine, row, order)| {
        let what = one_sided(
            OneSidedPattern::Interleaved,
            RailUse::First,
            order,
            EpochEnding::Used,
            FragmentLength::Usual,
        );
        Check { row, simulate: Simulate::Run(machine, what, LARGEST) }
    }));
    let shown: [Shown; 17] = [
        (EQUAL, equal_pieces),
        (DIRECT_LATENCY, |lab| Ok(order("direct", &designs(lab, OneSidedPattern::PutLatency)?))),
        (DIRECT_BANDWIDTH, |lab| {
            // `order` expects times, but these values are rates. So the two values are exchanged.
            let swapped = designs(lab, OneSidedPattern::Put)?
                .into_iter()
                .map(|(direct, based)| (based, direct));
            Ok(order("direct", &swapped.collect::<Vec<_>>()))
        }),
        (MEDIUM, medium),
        (IN_ORDER_PEAK, |lab| close(lab, IN_ORDER_PEAK, &[(IA32, in_order(RailUse::All))])),
        (IN_ORDER_PEAK_ONE, |lab| {
            close(lab, IN_ORDER_PEAK_ONE, &[(EM64T, in_order(RailUse::First))])
        }),
        (TURNS_PEAK, |lab| {
            let pair = [in_turns(RailUse::All), on(OneSidedPattern::BothPut, RailUse::All)];
            close(lab, TURNS_PEAK, &[(IA32, pair), (EM64T, pair)])
        }),
        (EVERY_RAIL, every_rail),
        (ALIKE_UP_TO, alike_up_to),
        ("smallest message that gains from fragmentation over two rails; IA32", gains_from),
        (WHOLE_UP_TO, whole_up_to),
        ("reduction of large MPI_Put latency; IA32", |lab| {
            reduction(lab, IA32, OneSidedPattern::PutLatency)
        }),
        ("reduction of large MPI_Put latency; EM64T", |lab| {
            reduction(lab, EM64T, OneSidedPattern::PutLatency)
        }),
        ("reduction of large MPI_Get latency; IA32", |lab| {
            reduction(lab, IA32, OneSidedPattern::GetLatency)
        }),
        ("reduction of large MPI_Get latency; EM64T", |lab| {
            reduction(lab, EM64T, OneSidedPattern::GetLatency)
        }),
        (
            "interleaved throughput of one rail reordered against two rails in order; EM64T",
            turns_against_rails,
        ),
        (SMALL_ALIKE, small_alike),
    ];
    checks.extend(shown.map(|(row, run)| Check { row, simulate: Simulate::Runs(run) }));
    checks
}
