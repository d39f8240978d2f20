//! Multi-rail: one-sided communication over several ports and adapters.

use super::figure::{
    Axis, Check, Document, Figure, Headline, Mark, Quotient, Series, Shown, Simulate,
};
use super::lab::Lab;
use super::published::Value;
use super::workload::{OneSided, Test, Workload};
use weft_rma::Order;

/// The largest message of the tests.
const LARGEST: usize = 1 << 20;
const IA32: &str = "ia32";
const EM64T: &str = "em64t";

const BYTES: Axis = Axis { label: "Message", unit: "bytes", doubling: true };
const RATE: Axis = Axis { label: "Bandwidth", unit: "MB/s", doubling: false };
const TIME: Axis = Axis { label: "Latency", unit: "us", doubling: true };

const fn on(test: Test, all_rails: bool) -> Workload {
    Workload::OneSided(OneSided { test, all_rails, order: Order::Called })
}

const fn in_turns(all_rails: bool) -> Workload {
    let order = Order::Turns;
    Workload::OneSided(OneSided { test: Test::Interleaved, all_rails, order })
}

fn sizes() -> Vec<usize> {
    (2..=20).map(|power| 1 << power).collect()
}

/// A figure with a curve for one rail and one for all.
fn pair(
    id: &'static str,
    title: &'static str,
    place: &'static str,
    (machine, test): (&'static str, Test),
    rows: [Option<&'static str>; 2],
) -> Figure {
    let curve =
        |name, all| Series { name, machine, workload: on(test, all), over: None, x: sizes() };
    let mark = |row: Option<&'static str>, series| row.map(|row| Mark { row, series, x: LARGEST });
    let latency = matches!(test, Test::PutLatency | Test::GetLatency);
    Figure {
        id,
        title,
        place,
        x: BYTES,
        y: if latency { TIME } else { RATE },
        series: vec![curve(ONE, false), curve(TWO, true)],
        marks: [mark(rows[0], ONE), mark(rows[1], TWO)].into_iter().flatten().collect(),
        rows: Vec::new(),
        note: match latency {
            true => "One operation an epoch of start and complete, there and back: half of it.",
            false => "Epochs of start and complete with 16 operations; fragments beyond 8 KiB.",
        },
    }
}

const ONE: &str = "one rail";
const TWO: &str = "two rails";

/// Puts and gets in one epoch, in order and in turns.
fn interleaved(
    id: &'static str,
    title: &'static str,
    place: &'static str,
    machine: &'static str,
    rows: [&'static str; 4],
) -> Figure {
    let names =
        ["one rail, in order", "one rail, in turns", "two rails, in order", "two rails, in turns"];
    let works = [
        on(Test::Interleaved, false),
        in_turns(false),
        on(Test::Interleaved, true),
        in_turns(true),
    ];
    let curve = |(name, workload)| Series { name, machine, workload, over: None, x: sizes() };
    let mark = |(row, series)| Mark { row, series, x: LARGEST };
    Figure {
        id,
        title,
        place,
        x: BYTES,
        y: RATE,
        series: names.into_iter().zip(works).map(curve).collect(),
        marks: rows.into_iter().zip(names).map(mark).collect(),
        rows: Vec::new(),
        note: "Epochs of 16 puts, then 16 gets, of the same size; all data over the time.",
    }
}

/// By how many percent two rails shorten the largest operation.
fn reduction(lab: &Lab, machine: &'static str, test: Test) -> Result<Value, String> {
    let [one, two] = [false, true].map(|all| lab.measure(machine, on(test, all), LARGEST));
    Ok(Value::Number(100.0 * (1.0 - two? / one?)))
}

/// Whether one rail in turns is faster than two in order.
fn turns_against_rails(lab: &Lab) -> Result<Value, String> {
    let one = lab.measure(EM64T, in_turns(false), LARGEST)?;
    let two = lab.measure(EM64T, on(Test::Interleaved, true), LARGEST)?;
    let word = if one > two { "one rail faster" } else { "two rails faster" };
    Ok(Value::Word(word.to_owned()))
}

/// Whether small operations take the same time on one rail and on two, on both machines.
fn small_alike(lab: &Lab) -> Result<Value, String> {
    for machine in [IA32, EM64T] {
        for test in [Test::PutLatency, Test::GetLatency] {
            let [one, two] = [false, true].map(|all| lab.measure(machine, on(test, all), 64));
            if (two? / one? - 1.0).abs() > 0.1 {
                return Ok(Value::Word("different".to_owned()));
            }
        }
    }
    Ok(Value::Word("similar".to_owned()))
}

/// What makes a difference in a figure.
const ALIKE: f64 = 1.1;

/// How many times the one-rail figure two rails reach.
fn gains(lab: &Lab, machine: &'static str, test: Test) -> Result<Vec<(usize, f64)>, String> {
    let gain = |size| {
        let [one, two] = [false, true].map(|all| lab.measure(machine, on(test, all), size));
        Ok((size, two? / one?))
    };
    sizes().into_iter().map(gain).collect()
}

/// A size in KiB.
fn kib(size: Option<usize>) -> Result<Value, String> {
    let size = size.ok_or("no size of the figure is such")?;
    Ok(Value::Number(size as f64 / 1024.0))
}

/// Up to where puts are as fast on one rail as on two.
fn alike_up_to(lab: &Lab) -> Result<Value, String> {
    let gains = gains(lab, IA32, Test::Put)?;
    kib(gains.iter().take_while(|(_, gain)| *gain < ALIKE).last().map(|(size, _)| *size))
}

/// From where on puts are faster on two rails.
fn gains_from(lab: &Lab) -> Result<Value, String> {
    let gains = gains(lab, IA32, Test::Put)?;
    kib(gains.iter().rev().take_while(|(_, gain)| *gain >= ALIKE).last().map(|(size, _)| *size))
}

/// Up to where a put by itself takes as long on two rails as on one: it is in one piece.
fn whole_up_to(lab: &Lab) -> Result<Value, String> {
    let gains = gains(lab, EM64T, Test::PutLatency)?;
    kib(gains.iter().take_while(|(_, gain)| *gain > 0.999).last().map(|(size, _)| *size))
}

/// Rows of the text's peaks: machine, row, test, rails, order.
const PEAKS: [(&str, &str, Test, bool, Order); 16] = [
    (IA32, "peak MPI_Put bandwidth two rails; IA32, two HCAs", Test::Put, true, Order::Called),
    (IA32, "peak MPI_Put bandwidth one rail; IA32", Test::Put, false, Order::Called),
    (EM64T, "peak MPI_Put bandwidth two rails; EM64T, two ports", Test::Put, true, Order::Called),
    (EM64T, "peak MPI_Put bandwidth one rail; EM64T", Test::Put, false, Order::Called),
    (
        IA32,
        "peak MPI_Put bidirectional bandwidth two rails; IA32",
        Test::BothPut,
        true,
        Order::Called,
    ),
    (
        IA32,
        "peak MPI_Put bidirectional bandwidth one rail; IA32",
        Test::BothPut,
        false,
        Order::Called,
    ),
    (
        EM64T,
        "peak MPI_Put bidirectional bandwidth two rails; EM64T",
        Test::BothPut,
        true,
        Order::Called,
    ),
    (
        EM64T,
        "peak MPI_Put bidirectional bandwidth one rail; EM64T",
        Test::BothPut,
        false,
        Order::Called,
    ),
    (IA32, "peak MPI_Get bandwidth two rails; IA32", Test::Get, true, Order::Called),
    (IA32, "peak MPI_Get bandwidth one rail; IA32", Test::Get, false, Order::Called),
    (EM64T, "peak MPI_Get bandwidth two rails; EM64T", Test::Get, true, Order::Called),
    (EM64T, "peak MPI_Get bandwidth one rail; EM64T", Test::Get, false, Order::Called),
    (IA32, INTERLEAVED_IA32[2], Test::Interleaved, true, Order::Called),
    (IA32, INTERLEAVED_IA32[3], Test::Interleaved, true, Order::Turns),
    (EM64T, INTERLEAVED_EM64T[2], Test::Interleaved, true, Order::Called),
    (EM64T, INTERLEAVED_EM64T[3], Test::Interleaved, true, Order::Turns),
];

const INTERLEAVED_IA32: [&str; 4] = [
    "interleaved put+get throughput one rail in order; IA32",
    "interleaved put+get throughput one rail reordered; IA32",
    "interleaved put+get throughput two rails in order; IA32",
    "interleaved put+get throughput two rails reordered; IA32",
];
const INTERLEAVED_EM64T: [&str; 4] = [
    "interleaved put+get throughput one rail in order; EM64T",
    "interleaved put+get throughput one rail reordered; EM64T",
    "interleaved put+get throughput two rails in order; EM64T",
    "interleaved put+get throughput two rails reordered; EM64T",
];

fn checks() -> Vec<Check> {
    let peak = |&(machine, row, test, all_rails, order): &(_, _, _, _, _)| {
        let workload = Workload::OneSided(OneSided { test, all_rails, order });
        Check { row, simulate: Simulate::Run(machine, workload, LARGEST) }
    };
    let mut checks: Vec<Check> = PEAKS.iter().map(peak).collect();
    let one_rail = [
        (IA32, INTERLEAVED_IA32[0], Order::Called),
        (IA32, INTERLEAVED_IA32[1], Order::Turns),
        (EM64T, INTERLEAVED_EM64T[0], Order::Called),
        (EM64T, INTERLEAVED_EM64T[1], Order::Turns),
    ];
    checks.extend(one_rail.map(|(machine, row, order)| {
        let what = OneSided { test: Test::Interleaved, all_rails: false, order };
        Check { row, simulate: Simulate::Run(machine, Workload::OneSided(what), LARGEST) }
    }));
    let shown: [Shown; 9] = [
        (
            "largest message for which one rail and two perform alike in MPI_Put bandwidth; IA32",
            alike_up_to,
        ),
        ("smallest message that gains from fragmentation over two rails; IA32", gains_from),
        ("largest message that is not fragmented over two rails; EM64T", whole_up_to),
        ("reduction of large MPI_Put latency; IA32", |lab| reduction(lab, IA32, Test::PutLatency)),
        ("reduction of large MPI_Put latency; EM64T", |lab| {
            reduction(lab, EM64T, Test::PutLatency)
        }),
        ("reduction of large MPI_Get latency; IA32", |lab| reduction(lab, IA32, Test::GetLatency)),
        ("reduction of large MPI_Get latency; EM64T", |lab| {
            reduction(lab, EM64T, Test::GetLatency)
        }),
        (
            "interleaved throughput of one rail reordered against two rails in order; EM64T",
            turns_against_rails,
        ),
        (
            "latency of small MPI_Put and MPI_Get with two rails against one; IA32 and EM64T",
            small_alike,
        ),
    ];
    checks.extend(shown.map(|(row, run)| Check { row, simulate: Simulate::Runs(run) }));
    checks
}

pub fn document() -> Document {
    let peaks = |one, two| [Some(one), Some(two)];
    Document {
        id: "multirail",
        paper: "Multi-rail",
        title: "Vishnu et al. 2005, MPI-2 one-sided communication on multi-rail InfiniBand clusters",
        machines: &[IA32, EM64T],
        about: "MPI_Put and MPI_Get on one rail and on two: the shipped windows, epochs and rails. One rail is \
                the machine with its first one alone. Operations are over when they are acknowledged, and one \
                flag synchronizes; the document sends one on each rail.",
        figures: vec![
            pair(
                "multirail-6",
                "MPI_Put bandwidth, IA32",
                "figure 6",
                (IA32, Test::Put),
                peaks(PEAKS[1].1, PEAKS[0].1),
            ),
            pair(
                "multirail-7",
                "MPI_Put bandwidth, EM64T",
                "figure 7",
                (EM64T, Test::Put),
                peaks(PEAKS[3].1, PEAKS[2].1),
            ),
            pair(
                "multirail-8",
                "MPI_Put bidirectional bandwidth, IA32",
                "figure 8",
                (IA32, Test::BothPut),
                peaks(PEAKS[5].1, PEAKS[4].1),
            ),
            pair(
                "multirail-9",
                "MPI_Put bidirectional bandwidth, EM64T",
                "figure 9",
                (EM64T, Test::BothPut),
                peaks(PEAKS[7].1, PEAKS[6].1),
            ),
            pair(
                "multirail-10",
                "MPI_Put latency, IA32",
                "figure 10",
                (IA32, Test::PutLatency),
                [None, None],
            ),
            pair(
                "multirail-11",
                "MPI_Put latency, EM64T",
                "figure 11",
                (EM64T, Test::PutLatency),
                [None, None],
            ),
            pair(
                "multirail-12",
                "MPI_Get bandwidth, IA32",
                "figure 12",
                (IA32, Test::Get),
                peaks(PEAKS[9].1, PEAKS[8].1),
            ),
            pair(
                "multirail-13",
                "MPI_Get bandwidth, EM64T",
                "figure 13",
                (EM64T, Test::Get),
                peaks(PEAKS[11].1, PEAKS[10].1),
            ),
            pair(
                "multirail-14",
                "MPI_Get latency, IA32",
                "figure 14",
                (IA32, Test::GetLatency),
                [None, None],
            ),
            pair(
                "multirail-15",
                "MPI_Get latency, EM64T",
                "figure 15",
                (EM64T, Test::GetLatency),
                [None, None],
            ),
            interleaved(
                "multirail-18",
                "Interleaved puts and gets, IA32",
                "figure 18",
                IA32,
                INTERLEAVED_IA32,
            ),
            interleaved(
                "multirail-19",
                "Interleaved puts and gets, EM64T",
                "figure 19",
                EM64T,
                INTERLEAVED_EM64T,
            ),
        ],
        maps: Vec::new(),
        checks: checks(),
        headlines: [IA32, EM64T]
            .into_iter()
            .flat_map(|machine| {
                let of = |test| Quotient::One(on(test, true), LARGEST);
                [
                    Headline { name: "MPI_Put on two rails", machine, of: of(Test::Put) },
                    Headline {
                        name: "MPI_Put both ways on two rails",
                        machine,
                        of: of(Test::BothPut),
                    },
                ]
            })
            .collect(),
    }
}
