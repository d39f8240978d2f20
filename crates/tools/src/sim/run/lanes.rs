//! A run as a picture: a lane for each rank with its computing, calls and waits, transfers, and the critical path.
//!
//! ```text
//!   title, legend
//!   rank 0 |▇▇ computing ░░░░ waits ░░░░ ▇ call      a script in the picture zooms (wheel), moves (drag),
//!   rank 1 |   ╲___ message ___╱                     and shows all again (double click)
//!          +----+----+----+----+  us
//! ```

use super::report::{RunReport, function_name, us};
use super::spans::{CLASSES, DrawnSpan, class, merged};
use std::fmt::Write as _;
use svg::node::element::{
    ClipPath, Definitions, Group, Line, Rectangle, Script, Style, Text, Title,
};
use svg::{Document, Node};
use weft_fabric_sim::units::Picoseconds;
use weft_fabric_sim::{Arrow, Travel};
use weft_sim_job::{PathStep, SegmentKind, SimJobOutcome};

/// Maximum number of lanes. Of more ranks, every second or third has a lane, and so on.
const MOST_LANES: usize = 256;

/// Maximum number of spans, for files of up to about 4 MB.
const MOST_SPANS: usize = 18_000;

/// Maximum number of arrows, and of steps of the critical path.
const MOST_ARROWS: usize = super::MOST_ARROWS;

/// Maximum zoom.
const ZOOM: u64 = 64;

/// Width of the picture, margins, height of all lanes, and minimum and maximum height of a lane, in pixels.
const WIDTH: f64 = 1280.0;
const LEFT: f64 = 66.0;
const RIGHT: f64 = 22.0;
const TOP: f64 = 100.0;
const BOTTOM: f64 = 54.0;
const LANES: f64 = 900.0;
const LANE: (f64, f64) = (5.0, 32.0);

/// Colour of the critical path.
const PATH: &str = "#cc0000";

/// Script that zooms and moves.
const SCRIPT: &str = include_str!("lanes.js");

/// A picture to draw.
struct LaneScene<'a> {
    report: &'a RunReport,
    outcome: &'a SimJobOutcome,
    /// Distance of the ranks that have lanes.
    every: usize,
    end: Picoseconds,
}

/// Draws the run.
pub fn picture(report: &RunReport, outcome: &SimJobOutcome) -> String {
    let ranks = outcome.account.ranks.len();
    let end = outcome.account.ranks.iter().map(|rank| rank.end).max().unwrap_or(0).max(1);
    let every = ranks.div_ceil(MOST_LANES);
    LaneScene { report, outcome, every, end }.picture().to_string()
}

/// Returns the spans of all lanes, and the minimum length of a span. Spans are merged until there are few enough.
fn spans(scene: &LaneScene<'_>) -> (Vec<Vec<DrawnSpan>>, Picoseconds) {
    let pixels = (WIDTH - LEFT - RIGHT) as u64;
    let mut least = (scene.end / (pixels * ZOOM)).max(1);
    loop {
        let lanes = scene.outcome.account.record.ranks.iter().step_by(scene.every);
        let lanes: Vec<Vec<DrawnSpan>> = lanes.map(|record| merged(record, least)).collect();
        if lanes.iter().map(Vec::len).sum::<usize>() <= MOST_SPANS || least >= scene.end {
            return (lanes, least);
        }
        least *= 2;
    }
}

/// Joins steps of the path that follow each other on one rank.
fn joined(steps: &[PathStep]) -> Vec<PathStep> {
    let mut joined: Vec<PathStep> = Vec::new();
    for &step in steps {
        match joined.last_mut() {
            Some(last) if last.from == last.to && step.from == step.to && last.to == step.from => {
                last.end = step.end;
            }
            _ => joined.push(step),
        }
    }
    joined
}

impl LaneScene<'_> {
    fn lane(&self) -> f64 {
        (LANES / self.lanes() as f64).clamp(LANE.0, LANE.1)
    }

    fn lanes(&self) -> usize {
        self.outcome.account.ranks.len().div_ceil(self.every)
    }

    fn bottom(&self) -> f64 {
        TOP + self.lane() * self.lanes() as f64
    }

    /// Returns the coordinate of a time within the lanes, in pixels.
    fn x(&self, at: Picoseconds) -> f64 {
        let x = (WIDTH - LEFT - RIGHT) * at as f64 / self.end as f64;
        (x * 1000.0).round() / 1000.0
    }

    /// Returns the middle of a rank's lane; `None` for a rank without a lane.
    fn y(&self, rank: u32) -> Option<f64> {
        let rank = rank as usize;
        let y = TOP + self.lane() * ((rank / self.every) as f64 + 0.5);
        rank.is_multiple_of(self.every).then_some((y * 100.0).round() / 100.0)
    }

    fn picture(&self) -> Document {
        let (lanes, least) = spans(self);
        let path = self.path();
        let arrows = self.arrows();
        let mut notes = vec!["wheel: zoom, drag: move, double click: all".to_owned()];
        notes.push(format!("spans below {:.3} us are merged", us(least)));
        if self.every > 1 {
            notes.push(format!("a lane for each {} ranks", self.every));
        }
        if arrows.is_none() {
            notes.push(format!("more than {MOST_ARROWS} transfers: no arrows"));
        }
        if path.is_none() {
            notes.push("critical path too long to draw".to_owned());
        }
        if self.outcome.account.record.is_cut {
            notes.push("the run was too long for a complete record".to_owned());
        }
        let mut zoomed = Group::new().set("id", "zoomed");
        for (lane, spans) in lanes.iter().enumerate() {
            zoomed.append(self.spans(lane * self.every, spans));
        }
        zoomed.append(self.arrow_group(arrows.unwrap_or_default()));
        zoomed.append(self.path_group(&path.unwrap_or_default()));
        let width = WIDTH - LEFT - RIGHT;
        let frame = Rectangle::new().set("x", 0).set("y", TOP).set("width", width);
        let frame = frame.set("height", self.bottom() - TOP);
        let clip = ClipPath::new().set("id", "lanes").add(frame);
        let moved = Group::new().set("transform", format!("translate({LEFT} 0)"));
        let moved = moved.set("clip-path", "url(#lanes)").add(zoomed);
        let height = self.bottom() + BOTTOM;
        let paper = Rectangle::new().set("width", WIDTH).set("height", height).set("fill", "white");
        Document::new()
            .set("id", "weft-timeline")
            .set("viewBox", (0, 0, WIDTH, height))
            .set("width", WIDTH)
            .set("height", height)
            .set("font-family", "sans-serif")
            .set("font-size", 12)
            .set("data-left", LEFT)
            .set("data-width", width)
            .set("data-top", TOP)
            .set("data-bottom", self.bottom())
            .set("data-us", us(self.end))
            .set("data-zoom", ZOOM)
            .add(Title::new("timeline"))
            .add(Style::new(style()))
            .add(Definitions::new().add(clip))
            .add(paper)
            .add(Group::new().set("id", "ticks"))
            .add(self.heading(&notes.join("; ")))
            .add(self.names())
            .add(moved)
            .add(Script::new(SCRIPT))
    }

    fn heading(&self, notes: &str) -> Group {
        let RunReport { program, machine, end_us, ranks, .. } = self.report;
        let title = format!(
            "{}, {} ranks on {machine}, {end_us:.3} us of virtual time",
            program.join(" "),
            ranks.len()
        );
        let words = |text: &str, x: f64, y: f64| Text::new(text).set("x", x).set("y", y);
        let mut heading = Group::new()
            .add(words(&title, LEFT, 26.0).set("font-size", 16).set("font-weight", "bold"))
            .add(words(notes, LEFT, 48.0).set("fill", "#444444"));
        let mut x = LEFT;
        let classes = CLASSES.iter().map(|class| (class.name, class.colour));
        for (name, colour) in classes.chain([("critical path", PATH)]) {
            let sample = Rectangle::new().set("x", x).set("y", 64).set("width", 14);
            heading.append(sample.set("height", 12).set("fill", colour));
            heading.append(words(name, x + 19.0, 74.0));
            x += 40.0 + 7.0 * name.len() as f64;
        }
        let middle = (LEFT + WIDTH - RIGHT) / 2.0;
        let axis = words("virtual time in us", middle, self.bottom() + 42.0);
        heading.add(axis.set("text-anchor", "middle"))
    }

    /// Writes as many ranks as are legible.
    fn names(&self) -> Group {
        let mut names = Group::new().set("text-anchor", "end");
        let distance = (13.0 / self.lane()).ceil() as usize * self.every;
        for rank in (0..self.outcome.account.ranks.len()).step_by(distance) {
            let Some(y) = self.y(rank as u32) else { continue };
            names.append(Text::new(rank.to_string()).set("x", LEFT - 8.0).set("y", y + 4.0));
        }
        names
    }

    fn spans(&self, rank: usize, spans: &[DrawnSpan]) -> Group {
        let mut group = Group::new();
        let Some(y) = self.y(rank as u32) else { return group };
        let causes = &self.outcome.account.record.ranks[rank].causes;
        for span in spans {
            let segment = span.longest;
            let function = function_name(&self.report.names, u64::from(segment.call));
            let mut text = match segment.kind {
                SegmentKind::Computing => "computing".to_owned(),
                SegmentKind::Library => function.clone(),
                SegmentKind::Waiting => match causes.get(segment.cause as usize) {
                    Some(cause) => format!("{function} waits for {}", cause.from),
                    None => format!("{function} waits"),
                },
            };
            if span.merged > 1 {
                let _ = write!(text, " and {} more", span.merged - 1);
            }
            let (start, end) = (us(span.start), us(span.end));
            let _ = write!(text, ", {:.3} us\nrank {rank}, {start:.3} to {end:.3}", end - start);
            let share = if segment.kind == SegmentKind::Waiting { 0.4 } else { 0.75 };
            let height = (self.lane() * share * 10.0).round() / 10.0;
            let width = ((self.x(span.end) - self.x(span.start)) * 1000.0).round() / 1000.0;
            let shape = Rectangle::new()
                .set("class", class(segment.kind, &function).id)
                .set("x", self.x(span.start))
                .set("y", y - height / 2.0)
                .set("width", width)
                .set("height", height);
            group.append(shape.add(Title::new(text)));
        }
        group
    }

    /// Returns the transfers between lanes; `None` if there are too many.
    fn arrows(&self) -> Option<Vec<&Arrow>> {
        let arrows = &self.outcome.arrows;
        let drawn = |arrow: &&Arrow| self.y(arrow.from).is_some() && self.y(arrow.to).is_some();
        (arrows.len() <= MOST_ARROWS).then(|| arrows.iter().filter(drawn).collect())
    }

    fn arrow_group(&self, arrows: Vec<&Arrow>) -> Group {
        let mut group = Group::new().set("class", "a");
        for arrow in arrows {
            let kind = match arrow.what {
                Travel::Message => "message",
                Travel::Write => "write",
                Travel::Read => "read",
                Travel::Atomic => "atomic",
                Travel::Datagram => "datagram",
            };
            let Arrow { from, to, bytes, sent, arrived, .. } = *arrow;
            let text = format!(
                "{kind} of {bytes} bytes, {from} to {to}, {:.3} us\n{:.3} to {:.3}",
                us(arrived) - us(sent),
                us(sent),
                us(arrived)
            );
            let step = PathStep { from, to, start: sent, end: arrived };
            group.append(self.line(&step).add(Title::new(text)));
        }
        group
    }

    fn line(&self, step: &PathStep) -> Line {
        let y = |rank: u32| self.y(rank).unwrap_or_default();
        Line::new()
            .set("x1", self.x(step.start))
            .set("y1", y(step.from))
            .set("x2", self.x(step.end))
            .set("y2", y(step.to))
    }

    /// Returns the steps of the critical path; `None` if there are too many.
    fn path(&self) -> Option<Vec<PathStep>> {
        let steps = joined(&self.report.path.as_ref()?.steps);
        (steps.len() <= MOST_ARROWS).then_some(steps)
    }

    fn path_group(&self, steps: &[PathStep]) -> Group {
        let mut group = Group::new().set("class", "path");
        let drawn = |step: &&PathStep| self.y(step.from).is_some() && self.y(step.to).is_some();
        for step in steps.iter().filter(drawn) {
            group.append(self.line(step));
        }
        group
    }
}

/// Returns the style sheet.
fn style() -> String {
    let mut text = String::new();
    for class in &CLASSES {
        let _ = writeln!(text, ".{} {{ fill: {} }}", class.id, class.colour);
    }
    text += "line { vector-effect: non-scaling-stroke }\n";
    text += ".a { stroke: #333333; stroke-opacity: 0.6 }\n.a line:hover { stroke-width: 4 }\n";
    let _ = writeln!(text, ".path {{ stroke: {PATH}; stroke-width: 2; pointer-events: none }}");
    text
}

#[cfg(test)]
mod tests {
    use super::super::report::tests::outcome;
    use super::*;

    #[test]
    fn the_picture_has_a_span_for_each_segment_and_stays_small() {
        let (report, outcome) = outcome(50);
        let text = picture(&report, &outcome);
        let xml = roxmltree::Document::parse(&text).unwrap();
        let titles: Vec<_> = xml
            .descendants()
            .filter(|node| node.has_tag_name("title"))
            .map(|node| node.text().unwrap().trim().to_owned())
            .collect();
        assert!(
            titles.iter().any(|title| title.starts_with("MPI_Recv waits for 0, ")),
            "{titles:?}"
        );
        assert!(titles.iter().any(|title| title.starts_with("message of 8 bytes, 0 to 1")));
        assert!(titles.iter().filter(|title| title.starts_with("computing")).count() >= 50);
        assert!(text.contains("getElementById"));
        let (report, outcome) = self::outcome(200_000);
        let text = picture(&report, &outcome);
        assert!(text.len() < 5 << 20, "{} bytes", text.len());
        assert!(text.contains("no arrows"));
    }

    #[test]
    fn steps_of_a_rank_are_joined() {
        let step = |from, to, start, end| PathStep { from, to, start, end };
        let steps = [step(0, 0, 0, 5), step(0, 0, 5, 7), step(0, 1, 7, 9), step(1, 1, 9, 10)];
        let expected = [step(0, 0, 0, 7), step(0, 1, 7, 9), step(1, 1, 9, 10)];
        assert_eq!(joined(&steps), expected);
    }
}
