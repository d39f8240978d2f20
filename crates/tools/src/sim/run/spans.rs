//! The spans of a timeline: a rank's segments, of which short ones are merged, and the colours of calls.

use weft_fabric_sim::units::Picoseconds;
use weft_sim_job::{RankRecord, RankSegment, SegmentKind};

/// Span to draw.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DrawnSpan {
    /// Start, in picoseconds.
    pub start: Picoseconds,
    /// End, in picoseconds.
    pub end: Picoseconds,
    /// The longest segment of the span.
    pub longest: RankSegment,
    /// Number of segments in the span.
    pub merged: usize,
}

/// Returns the spans of a rank. Neighbours that are shorter than `least` picoseconds are merged until their span is as long.
pub fn merged(record: &RankRecord, least: Picoseconds) -> Vec<DrawnSpan> {
    let mut spans: Vec<DrawnSpan> = Vec::new();
    let mut open: Option<(DrawnSpan, Picoseconds)> = None;
    let mut start = 0;
    for &segment in &record.segments {
        let (length, begun) = (segment.end - start, start);
        start = segment.end;
        let own = DrawnSpan { start: begun, end: segment.end, longest: segment, merged: 1 };
        if length >= least {
            spans.extend(open.take().map(|(span, _)| span));
            spans.push(own);
            continue;
        }
        let (mut span, mut longest) = open.take().unwrap_or((DrawnSpan { merged: 0, ..own }, 0));
        if length > longest {
            (span.longest, longest) = (segment, length);
        }
        (span.end, span.merged) = (segment.end, span.merged + 1);
        match span.end - span.start >= least {
            true => spans.push(span),
            false => open = Some((span, longest)),
        }
    }
    spans.extend(open.map(|(span, _)| span));
    spans
}

/// Class of a span: its name and its colour. The colours are those of Okabe and Ito, which colour-blind readers can distinguish, too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpanClass {
    /// Name of the class, which is a class of the style sheet, too.
    pub id: &'static str,
    /// Name in the legend.
    pub name: &'static str,
    /// Colour.
    pub colour: &'static str,
    /// Beginnings of the functions' names, without `MPI_` and in lower case.
    functions: &'static [&'static str],
}

/// Classes in the order of the legend. The class of a function is the first with a beginning of its name.
pub const CLASSES: [SpanClass; 8] = [
    SpanClass { id: "c", name: "computing", colour: "#f0e442", functions: &[] },
    SpanClass { id: "w", name: "waiting", colour: "#dddddd", functions: &[] },
    SpanClass { id: "f", name: "files", colour: "#000000", functions: &["file_"] },
    SpanClass {
        id: "o",
        name: "windows",
        colour: "#cc79a7",
        functions: &[
            "win_",
            "put",
            "rput",
            "get_acc",
            "rget",
            "accumulate",
            "raccumulate",
            "fetch_and_op",
            "compare_and_swap",
        ],
    },
    SpanClass {
        id: "d",
        name: "wait and test",
        colour: "#56b4e9",
        functions: &["wait", "test", "start", "parrived", "pready"],
    },
    SpanClass {
        id: "l",
        name: "collective",
        colour: "#d55e00",
        functions: &[
            "barrier",
            "bcast",
            "gather",
            "scatter",
            "allgather",
            "alltoall",
            "reduce",
            "allreduce",
            "scan",
            "exscan",
            "neighbor",
        ],
    },
    SpanClass {
        id: "p",
        name: "messages",
        colour: "#0072b2",
        functions: &[
            "send", "recv", "bsend", "ssend", "rsend", "psend", "precv", "probe", "mprobe",
            "improbe", "mrecv", "imrecv",
        ],
    },
    SpanClass { id: "m", name: "other calls", colour: "#009e73", functions: &[] },
];

/// Returns the class of a function.
fn class_of(function: &str) -> &'static SpanClass {
    let name = function.trim_start_matches("MPI_").to_ascii_lowercase();
    // MPI_Get, but not MPI_Get_count.
    let name = if name == "get" { "rget" } else { &name };
    let nonblocking = name.strip_prefix('i');
    let begins = |class: &&SpanClass| {
        let with = |name: &str| class.functions.iter().any(|begin| name.starts_with(begin));
        with(name) || nonblocking.is_some_and(with)
    };
    CLASSES.iter().find(begins).unwrap_or(&CLASSES[7])
}

/// Returns the class of a segment in a call.
pub fn class(kind: SegmentKind, function: &str) -> &'static SpanClass {
    match kind {
        SegmentKind::Computing => &CLASSES[0],
        SegmentKind::Waiting => &CLASSES[1],
        SegmentKind::Library => class_of(function),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(ends: &[Picoseconds]) -> RankRecord {
        let segment = |(i, &end): (usize, &Picoseconds)| RankSegment {
            end,
            call: i as u16,
            kind: SegmentKind::Library,
            cause: RankSegment::NO_CAUSE,
        };
        RankRecord { segments: ends.iter().enumerate().map(segment).collect(), causes: Vec::new() }
    }

    #[test]
    fn short_segments_are_merged_and_long_ones_stay() {
        let spans = merged(&record(&[100, 103, 108, 109, 300, 302]), 8);
        let seen: Vec<_> =
            spans.iter().map(|s| (s.start, s.end, s.longest.call, s.merged)).collect();
        let expected = [
            (0, 100, 0, 1),
            (100, 108, 2, 2),
            (108, 109, 3, 1),
            (109, 300, 4, 1),
            (300, 302, 5, 1),
        ];
        assert_eq!(seen, expected);
        assert_eq!(merged(&record(&[100, 103, 108]), 0).len(), 3);
    }

    #[test]
    fn functions_have_classes() {
        for (name, class) in [
            ("MPI_Allreduce", "l"),
            ("MPI_Ibcast", "l"),
            ("MPI_Isend", "p"),
            ("MPI_Send_init", "p"),
            ("MPI_Waitall", "d"),
            ("MPI_Get", "o"),
            ("MPI_Get_count", "m"),
            ("MPI_File_write", "f"),
            ("MPI_Init", "m"),
            ("outside of calls", "m"),
        ] {
            assert_eq!(class_of(name).id, class, "{name}");
        }
    }
}
