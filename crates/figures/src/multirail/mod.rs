//! Multi-rail: one-sided communication over several ports and adapters.

mod checks;

use super::figure::{Axis, Document, Figure, FigureHeading, Headline, Mark};
use super::series::{Quotient, Series};
use super::workload::{FragmentLength, OneSidedPattern, OneSidedTest, RailUse, Workload};
use checks::{
    EVERY_RAIL, IN_ORDER_PEAK, IN_ORDER_PEAK_ONE, INTERLEAVED_EM64T, INTERLEAVED_IA32, MEDIUM,
    PEAKS, TURNS_PEAK,
};
use weft_rma::{EpochEnding, IssueOrder};

/// Maximum message size of the tests, in bytes.
const LARGEST: usize = 1 << 20;
const IA32: &str = "ia32";
const EM64T: &str = "em64t";

const BYTES: Axis = Axis { label: "Message", unit: "bytes", doubling: true };
const RATE: Axis = Axis { label: "Bandwidth", unit: "MB/s", doubling: false };
const TIME: Axis = Axis { label: "Latency", unit: "us", doubling: true };

const fn on(test: OneSidedPattern, rails: RailUse) -> Workload {
    one_sided(test, rails, IssueOrder::Called, EpochEnding::Used, FragmentLength::Usual)
}

const fn one_sided(
    test: OneSidedPattern,
    rails: RailUse,
    order: IssueOrder,
    ending: EpochEnding,
    pieces: FragmentLength,
) -> Workload {
    Workload::OneSided(OneSidedTest { test, rails, order, ending, pieces })
}

/// Returns a workload: epochs of one put on all rails. `ending` is the way in which targets learn that the epoch is complete.
const fn ending(ending: EpochEnding) -> Workload {
    one_sided(
        OneSidedPattern::PutLatency,
        RailUse::All,
        IssueOrder::Called,
        ending,
        FragmentLength::Usual,
    )
}

/// Returns a workload: puts on all rails. Puts of at least `from` bytes are divided into fragments.
const fn fragmented(from: usize) -> Workload {
    one_sided(
        OneSidedPattern::Put,
        RailUse::All,
        IssueOrder::Called,
        EpochEnding::Used,
        FragmentLength::From(from),
    )
}

const fn in_turns(rails: RailUse) -> Workload {
    one_sided(
        OneSidedPattern::Interleaved,
        rails,
        IssueOrder::Turns,
        EpochEnding::Used,
        FragmentLength::Usual,
    )
}

fn sizes() -> Vec<usize> {
    (2..=20).map(|power| 1 << power).collect()
}

/// Returns a figure with one curve for one rail and one curve for all rails.
fn pair(
    heading: FigureHeading,
    machine: &'static str,
    test: OneSidedPattern,
    rows: [Option<&'static str>; 2],
) -> Figure {
    let FigureHeading { id, title, place } = heading;
    let curve =
        |name, rails| Series { name, machine, workload: on(test, rails), over: None, x: sizes() };
    let of_messages =
        matches!(test, OneSidedPattern::Put | OneSidedPattern::PutLatency).then(|| Series {
            name: "one rail, made of messages",
            workload: Workload::OfMessages(test),
            ..curve(ONE, RailUse::First)
        });
    let mark = |row: Option<&'static str>, series| row.map(|row| Mark { row, series, x: LARGEST });
    let latency = matches!(test, OneSidedPattern::PutLatency | OneSidedPattern::GetLatency);
    Figure {
        id,
        title,
        place,
        x: BYTES,
        y: if latency { TIME } else { RATE },
        series: [curve(ONE, RailUse::First), curve(TWO, RailUse::All)]
            .into_iter()
            .chain(of_messages)
            .collect(),
        marks: [mark(rows[0], ONE), mark(rows[1], TWO)].into_iter().flatten().collect(),
        rows: Vec::new(),
        note: match latency {
            true => "One operation an epoch of start and complete, there and back: half of it.",
            false => {
                "Epochs of start and complete with 16 operations; fragments from the machine file's size on."
            }
        },
    }
}

const ONE: &str = "one rail";
const TWO: &str = "two rails";

/// Returns a figure of puts and gets in one epoch, issued in order (puts, then gets) and in turns.
fn interleaved(
    id: &'static str,
    title: &'static str,
    place: &'static str,
    machine: &'static str,
    rows: [&'static str; 4],
    more: &[&'static str],
) -> Figure {
    let names =
        ["one rail, in order", "one rail, in turns", "two rails, in order", "two rails, in turns"];
    let works = [
        on(OneSidedPattern::Interleaved, RailUse::First),
        in_turns(RailUse::First),
        on(OneSidedPattern::Interleaved, RailUse::All),
        in_turns(RailUse::All),
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
        rows: more.to_vec(),
        note: "Epochs of 16 puts, then 16 gets, of the same size; all data over the time.",
    }
}

/// Adds two curves: messages without fragments, and messages that are divided into fragments from 2 KiB on.
fn medium_sizes(mut figure: Figure) -> Figure {
    for (name, from) in [
        ("two rails, never in fragments", usize::MAX),
        ("two rails, fragments from 2 KiB", 2 << 10),
    ] {
        let (machine, workload) = (IA32, fragmented(from));
        figure.series.push(Series { name, machine, workload, over: None, x: sizes() });
    }
    figure.rows = vec![
        "largest message for which one rail and two perform alike in MPI_Put bandwidth; IA32",
        "smallest message that gains from fragmentation over two rails; IA32",
        MEDIUM,
    ];
    figure
}

/// Returns a figure that compares the ways to end an epoch, over message size.
fn endings(id: &'static str, title: &'static str, machine: &'static str) -> Figure {
    let curve =
        |(name, how)| Series { name, machine, workload: ending(how), over: None, x: sizes() };
    Figure {
        id,
        title,
        place: "section 3.2, no figure there",
        x: BYTES,
        y: TIME,
        series: [
            ("flags on rails that were used (ours)", EpochEnding::Used),
            ("flags on every rail", EpochEnding::Every),
            ("one flag after all acknowledgements", EpochEnding::Acknowledged),
        ]
        .map(curve)
        .into(),
        marks: Vec::new(),
        rows: vec![EVERY_RAIL],
        note: "One put an epoch of start and complete on two rails, there and back: half of it.",
    }
}

/// Returns the rows of the peaks on one rail and on two.
fn peaks(one: usize, two: usize) -> [Option<&'static str>; 2] {
    [Some(PEAKS[one].1), Some(PEAKS[two].1)]
}

/// Returns figures 6 to 11.
fn puts() -> Vec<Figure> {
    vec![
        medium_sizes(pair(
            FigureHeading::new("multirail-6", "MPI_Put bandwidth, IA32", "figure 6"),
            IA32,
            OneSidedPattern::Put,
            peaks(1, 0),
        )),
        pair(
            FigureHeading::new("multirail-7", "MPI_Put bandwidth, EM64T", "figure 7"),
            EM64T,
            OneSidedPattern::Put,
            peaks(3, 2),
        ),
        pair(
            FigureHeading::new("multirail-8", "MPI_Put bidirectional bandwidth, IA32", "figure 8"),
            IA32,
            OneSidedPattern::BothPut,
            peaks(5, 4),
        ),
        pair(
            FigureHeading::new("multirail-9", "MPI_Put bidirectional bandwidth, EM64T", "figure 9"),
            EM64T,
            OneSidedPattern::BothPut,
            peaks(7, 6),
        ),
        pair(
            FigureHeading::new("multirail-10", "MPI_Put latency, IA32", "figure 10"),
            IA32,
            OneSidedPattern::PutLatency,
            [None, None],
        ),
        pair(
            FigureHeading::new("multirail-11", "MPI_Put latency, EM64T", "figure 11"),
            EM64T,
            OneSidedPattern::PutLatency,
            [None, None],
        ),
    ]
}

/// Returns figures 12 to 15.
fn gets() -> Vec<Figure> {
    vec![
        pair(
            FigureHeading::new("multirail-12", "MPI_Get bandwidth, IA32", "figure 12"),
            IA32,
            OneSidedPattern::Get,
            peaks(9, 8),
        ),
        pair(
            FigureHeading::new("multirail-13", "MPI_Get bandwidth, EM64T", "figure 13"),
            EM64T,
            OneSidedPattern::Get,
            peaks(11, 10),
        ),
        pair(
            FigureHeading::new("multirail-14", "MPI_Get latency, IA32", "figure 14"),
            IA32,
            OneSidedPattern::GetLatency,
            [None, None],
        ),
        pair(
            FigureHeading::new("multirail-15", "MPI_Get latency, EM64T", "figure 15"),
            EM64T,
            OneSidedPattern::GetLatency,
            [None, None],
        ),
    ]
}

/// Returns figures 18 and 19, and our additional figures of the ways to end an epoch.
fn others() -> Vec<Figure> {
    vec![
        interleaved(
            "multirail-18",
            "Interleaved puts and gets, IA32",
            "figure 18",
            IA32,
            INTERLEAVED_IA32,
            &[IN_ORDER_PEAK, TURNS_PEAK],
        ),
        interleaved(
            "multirail-19",
            "Interleaved puts and gets, EM64T",
            "figure 19",
            EM64T,
            INTERLEAVED_EM64T,
            &[
                IN_ORDER_PEAK_ONE,
                TURNS_PEAK,
                "interleaved throughput of one rail reordered against two rails in order; EM64T",
            ],
        ),
        endings("multirail-flags-ia32", "Ends of epochs, IA32", IA32),
        endings("multirail-flags-em64t", "Ends of epochs, EM64T", EM64T),
    ]
}

pub fn document() -> Document {
    Document {
        id: "multirail",
        paper: "Multi-rail",
        title: "Vishnu et al. 2005, MPI-2 one-sided communication on multi-rail InfiniBand clusters",
        machines: &[IA32, EM64T],
        about: "MPI_Put and MPI_Get on one rail and on two: the shipped windows, epochs and rails. One rail is \
                the machine with its first one alone. An epoch ends at its target by flags behind the data, on the rails \
                that were used; the document sends one on every rail, and both are drawn, with one flag after all \
                acknowledgements.",
        figures: [puts(), gets(), others()].into_iter().flatten().collect(),
        maps: Vec::new(),
        checks: checks::checks(),
        headlines: [IA32, EM64T]
            .into_iter()
            .flat_map(|machine| {
                let of = |test| Quotient::One(on(test, RailUse::All), LARGEST);
                [
                    Headline {
                        name: "MPI_Put on two rails",
                        machine,
                        of: of(OneSidedPattern::Put),
                    },
                    Headline {
                        name: "MPI_Put both ways on two rails",
                        machine,
                        of: of(OneSidedPattern::BothPut),
                    },
                ]
            })
            .collect(),
    }
}
