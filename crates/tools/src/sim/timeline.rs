//! One repetition as a picture: a lane for each rank, its activities, and the messages.
//!
//! ```text
//!   title, parameters, legend
//!   rank 0 |▇▇ post  ░░░░░░░░ wait ░░░░ ▇ receive
//!   rank 1 |   ╲___ message ___╱
//!          +----+----+----+----+  us since the repetition began
//! ```
//! Activities and messages that begin before the repetition, or end after it, are cut at its edges.

use super::measure::{Conditions, Recording, ran};
use super::study::StudyTable;
use super::{SimFailure, unwritten};
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;
use std::rc::Rc;
use svg::node::element::{
    ClipPath, Definitions, Element, Group, Line, Marker, Path as Shape, Rectangle, Text, Title,
};
use svg::{Document, Node};
use weft_fabric_sim::units::{MICROSECOND, Picoseconds};
use weft_fabric_sim::{Activity, Arrow, BusySpan, Machine, Trace, Travel};
use weft_patterns::{PatternPlan, PayloadPresence};

/// Maximum number of lanes and maximum number of arrows of a legible picture.
const MOST_RANKS: usize = 256;
const MOST_ARROWS: usize = 20_000;

/// Maximum number of arrows that are drawn at full strength.
const ARROWS_FULL: f64 = 300.0;

/// Width of the picture, and margins around the lanes, in pixels.
const WIDTH: f64 = 1280.0;
const LEFT: f64 = 66.0;
const RIGHT: f64 = 22.0;
const TOP: f64 = 84.0;
const BOTTOM: f64 = 54.0;
/// Height of all lanes together, and minimum and maximum height of a lane, in pixels.
const PERSISTENT: f64 = 900.0;
const LANE: (f64, f64) = (6.0, 36.0);

/// Returns the name and the colour of an activity. The colours are those of Okabe and Ito, which colour-blind readers can
/// distinguish, too.
fn busy(activity: Activity) -> (&'static str, &'static str) {
    match activity {
        Activity::Post => ("post", "#e69f00"),
        Activity::Receive => ("receive", "#56b4e9"),
        Activity::Copy => ("copy", "#009e73"),
        Activity::Reduce => ("reduce", "#d55e00"),
        Activity::Compute => ("compute", "#cc79a7"),
        Activity::Wait => ("wait", "#e4e4e4"),
    }
}

fn travels(what: Travel) -> (&'static str, &'static str) {
    match what {
        Travel::Message => ("message", "#333333"),
        Travel::Write => ("write", "#0072b2"),
        Travel::Read => ("read", "#882255"),
        Travel::Atomic => ("atomic", "#999933"),
        Travel::Datagram => ("datagram", "#117733"),
    }
}

/// Returns the run to draw: the last run of the study, with one repetition that all ranks begin at the same time. Errors: the run
/// has too many ranks or messages for a picture.
pub fn check(study: &StudyTable) -> Result<PatternPlan, SimFailure> {
    let plan = study.plans().pop().expect("a study has a run");
    let plan = PatternPlan { repeat: 1, isolated: true, ..plan };
    let ranks = plan.ranks;
    if ranks > MOST_RANKS {
        return Err(SimFailure::Request(format!(
            "--timeline draws the last run, of {ranks} ranks, and has room for {MOST_RANKS}: end \
             --ranks with fewer"
        )));
    }
    let arrows = (plan.about.messages)(ranks);
    if arrows > MOST_ARROWS {
        return Err(SimFailure::Request(format!(
            "--timeline draws the last run, of about {arrows} messages, and has room for \
             {MOST_ARROWS}: end --ranks with fewer"
        )));
    }
    Ok(plan)
}

/// Runs the plan with a trace, and writes the picture of its measured repetition.
pub fn draw(
    machine: &Rc<Machine>,
    plan: &PatternPlan,
    conditions: &Conditions,
    file: File,
    path: &Path,
) -> Result<(), SimFailure> {
    let ran = ran(machine, plan, conditions, Recording::Trace, || {})?;
    let starts = ran.laps.iter().flat_map(|l| l.starts.first()).map(|&at| ran.time(at));
    let ends = ran.laps.iter().flat_map(|l| l.ends.first()).map(|&at| ran.time(at));
    let from = starts.min().unwrap_or(0);
    let to = ends.max().unwrap_or(0).max(from + 1);
    let trace = ran.trace.as_ref().expect("the run was recorded");
    let scene = Scene { plan, machine, conditions, trace, from, to };
    let mut file = BufWriter::new(file);
    let written = write!(file, "{}", scene.picture()).and_then(|()| file.flush());
    written.map_err(|e| unwritten(path, &e))
}

/// Content of the picture: `trace` between two times.
struct Scene<'a> {
    plan: &'a PatternPlan,
    machine: &'a Machine,
    conditions: &'a Conditions,
    trace: &'a Trace,
    from: Picoseconds,
    to: Picoseconds,
}

impl Scene<'_> {
    fn persistent_context(&self) -> f64 {
        (PERSISTENT / self.plan.ranks as f64).clamp(LANE.0, LANE.1)
    }

    fn height(&self) -> f64 {
        self.persistent_context() * self.plan.ranks as f64
    }

    /// Returns the coordinate of a time, in pixels. A time before the beginning has a coordinate to the left of the lanes.
    fn x(&self, at: Picoseconds) -> f64 {
        let width = WIDTH - LEFT - RIGHT;
        let since = at as f64 - self.from as f64;
        LEFT + width * since / (self.to - self.from) as f64
    }

    /// Returns the middle of a rank's lane.
    fn y(&self, rank: u32) -> f64 {
        TOP + self.persistent_context() * (f64::from(rank) + 0.5)
    }

    /// Returns the microseconds since the beginning.
    fn us(&self, at: Picoseconds) -> f64 {
        (at as f64 - self.from as f64) / MICROSECOND as f64
    }

    fn picture(&self) -> Document {
        let height = TOP + self.height() + BOTTOM;
        let paper = rectangle(0.0, 0.0, WIDTH, height).set("fill", "white");
        let contexts = rectangle(LEFT, TOP, WIDTH - LEFT - RIGHT, self.height());
        let clip = ClipPath::new().set("id", "contexts").add(contexts);
        let mut marks = Definitions::new().add(clip);
        for what in self.kinds_of_travel() {
            marks.append(head(what));
        }
        let mut drawn = Group::new().set("clip-path", "url(#contexts)");
        for span in self.spans() {
            drawn.append(self.span(span));
        }
        // If there are many arrows, they are drawn thin, so that the lanes behind them stay visible.
        let thin = (ARROWS_FULL / self.arrows().count().max(1) as f64).sqrt().min(1.0);
        let mut arrows = Group::new()
            .set("stroke-width", pixels(thin.max(0.4)))
            .set("stroke-opacity", pixels(thin));
        for arrow in self.arrows() {
            arrows.append(self.arrow(arrow));
        }
        let document = Document::new()
            .set("viewBox", (0, 0, pixels(WIDTH), pixels(height)))
            .set("width", pixels(WIDTH))
            .set("height", pixels(height))
            .set("font-family", "sans-serif")
            .set("font-size", 12)
            .add(Title::new(self.title()))
            .add(marks)
            .add(paper)
            .add(self.heading())
            .add(self.axis())
            .add(self.names());
        document.add(drawn.add(arrows))
    }

    fn spans(&self) -> impl Iterator<Item = &BusySpan> {
        self.trace.spans.iter().filter(|s| s.start < self.to && s.end > self.from)
    }

    fn arrows(&self) -> impl Iterator<Item = &Arrow> {
        self.trace.arrows.iter().filter(|a| a.sent < self.to && a.arrived > self.from)
    }

    fn kinds_of_travel(&self) -> Vec<Travel> {
        let mut kinds: Vec<Travel> = self.arrows().map(|a| a.what).collect();
        kinds.sort_unstable();
        kinds.dedup();
        kinds
    }

    fn title(&self) -> String {
        let PatternPlan { about, algorithm, ranks, .. } = self.plan;
        let machine = &self.machine.name;
        format!("{}, {}, on {machine}, {ranks} ranks", about.name, algorithm.name)
    }

    /// Draws title, parameters and legend.
    fn heading(&self) -> Group {
        let begun = if self.plan.is_isolated() { ", begun by all ranks at once" } else { "" };
        let mut text = format!("one repetition{begun}, {:.3} us", self.us(self.to));
        if self.plan.about.payload.is_some() {
            text += &format!("; {} bytes", self.plan.bytes);
            let bare = self.plan.about.bare;
            text += if self.plan.payload == PayloadPresence::Phantom && !bare {
                " (sizes only)"
            } else {
                ""
            };
        }
        if self.plan.about.fans_in {
            text += &format!("; fan-in {}", self.plan.fan_in);
        }
        text += &format!("; {}{}", self.machine.about, self.conditions.changed());
        text += &self.conditions.noise();
        let mut heading = Group::new()
            .add(words(self.title(), LEFT, 26.0).set("font-size", 18).set("font-weight", "bold"))
            .add(words(text, LEFT, 46.0).set("fill", "#444444"));
        let mut x = LEFT;
        let mut activities: Vec<Activity> = self.spans().map(|s| s.activity).collect();
        activities.sort_unstable();
        activities.dedup();
        for (name, colour) in activities.into_iter().map(busy) {
            let sample = rectangle(x, 58.0, 14.0, 12.0).set("fill", colour);
            heading.append(sample);
            heading.append(words(name, x + 19.0, 68.0));
            x += 34.0 + 7.0 * name.len() as f64;
        }
        for what in self.kinds_of_travel() {
            let (name, colour) = travels(what);
            let sample = line(at(x, 64.0), at(x + 24.0, 64.0)).set("stroke", colour);
            heading.append(sample.set("marker-end", format!("url(#{name})")));
            heading.append(words(name, x + 30.0, 68.0));
            x += 45.0 + 7.0 * name.len() as f64;
        }
        heading
    }

    /// Draws ticks with their times, and lines through all lanes.
    fn axis(&self) -> Group {
        let bottom = TOP + self.height();
        let step = tick(self.to - self.from);
        let digits = if step < MICROSECOND { 6 - step.ilog10() as usize } else { 0 };
        let mut axis = Group::new();
        for i in 0..=(self.to - self.from) / step {
            let time = self.from + i * step;
            let x = self.x(time);
            axis.append(line(at(x, TOP), at(x, bottom + 5.0)).set("stroke", "#dddddd"));
            let label = format!("{:.digits$}", self.us(time));
            axis.append(words(label, x, bottom + 20.0).set("text-anchor", "middle"));
        }
        let edge = line(at(LEFT, bottom), at(WIDTH - RIGHT, bottom)).set("stroke", "#666666");
        let middle = (LEFT + WIDTH - RIGHT) / 2.0;
        let name = words("time since the repetition began, in us", middle, bottom + 42.0);
        axis.add(edge).add(name.set("text-anchor", "middle"))
    }

    /// Draws as many names of lanes as are legible.
    fn names(&self) -> Group {
        let every = (13.0 / self.persistent_context()).ceil() as usize;
        let mut names = Group::new().set("text-anchor", "end");
        for rank in (0..self.plan.ranks).step_by(every) {
            let name = if every == 1 && self.plan.ranks <= 32 {
                format!("rank {rank}")
            } else {
                rank.to_string()
            };
            names.append(words(name, LEFT - 8.0, self.y(rank as u32) + 4.0));
        }
        let middle = TOP + self.height() / 2.0;
        let turned = format!("rotate(-90 12 {})", pixels(middle));
        let name = words("rank", 12.0, middle).set("text-anchor", "middle");
        if self.plan.ranks > 32 { names.add(name.set("transform", turned)) } else { names }
    }

    fn span(&self, span: &BusySpan) -> Element {
        let (name, colour) = busy(span.activity);
        // Waits are drawn as background. A short activity is drawn with a minimum width.
        let share = if span.activity == Activity::Wait { 0.35 } else { 0.7 };
        let height = self.persistent_context() * share;
        let (x, end) = (self.x(span.start), self.x(span.end));
        let (start, stop) = (self.us(span.start), self.us(span.end));
        let length = stop - start;
        let text =
            format!("rank {}: {name}, {length:.3} us\n{start:.3} to {stop:.3} us", span.rank);
        let shape = rectangle(x, self.y(span.rank) - height / 2.0, (end - x).max(0.7), height);
        shape.set("fill", colour).add(Title::new(text)).into()
    }

    fn arrow(&self, arrow: &Arrow) -> Element {
        let (name, colour) = travels(arrow.what);
        let from = at(self.x(arrow.sent), self.y(arrow.from));
        let to = at(self.x(arrow.arrived), self.y(arrow.to));
        let Arrow { from: sender, to: receiver, bytes, .. } = arrow;
        let (sent, arrived) = (self.us(arrow.sent), self.us(arrow.arrived));
        let text = format!(
            "{name} of {bytes} bytes, rank {sender} to rank {receiver}, {:.3} us\nsent {sent:.3} us, \
             arrived {arrived:.3} us",
            arrived - sent
        );
        let seen = line(from, to).set("stroke", colour).set("marker-end", format!("url(#{name})"));
        // An invisible line that is wide enough to point at with a mouse.
        let aim = line(from, to).set("stroke", "white").set("stroke-opacity", 0);
        let aim = aim.set("stroke-width", 7);
        Group::new().add(Title::new(text)).add(aim).add(seen).into()
    }
}

/// Returns the head of an arrow.
fn head(what: Travel) -> Marker {
    let (name, colour) = travels(what);
    Marker::new()
        .set("id", name)
        .set("viewBox", "0 0 8 8")
        .set("refX", 8)
        .set("refY", 4)
        .set("markerUnits", "userSpaceOnUse")
        .set("markerWidth", 7)
        .set("markerHeight", 7)
        .set("orient", "auto")
        .add(Shape::new().set("d", "M0,1 L8,4 L0,7 z").set("fill", colour))
}

/// Returns a round step that divides a span into about 5 to 12 parts.
fn tick(span: Picoseconds) -> Picoseconds {
    let mut unit = 1;
    loop {
        for step in [unit, 2 * unit, 5 * unit] {
            if span / step <= 12 {
                return step;
            }
        }
        unit *= 10;
    }
}

/// Rounds to hundredths of a pixel.
fn pixels(x: f64) -> f64 {
    (x * 100.0).round() / 100.0
}

fn rectangle(x: f64, y: f64, width: f64, height: f64) -> Rectangle {
    Rectangle::new()
        .set("x", pixels(x))
        .set("y", pixels(y))
        .set("width", pixels(width))
        .set("height", pixels(height))
}

/// A place in the drawing, in pixels.
#[derive(Clone, Copy)]
struct DrawnPoint {
    x: f64,
    y: f64,
}

/// Makes a point.
fn at(x: f64, y: f64) -> DrawnPoint {
    DrawnPoint { x, y }
}

fn line(from: DrawnPoint, to: DrawnPoint) -> Line {
    Line::new()
        .set("x1", pixels(from.x))
        .set("y1", pixels(from.y))
        .set("x2", pixels(to.x))
        .set("y2", pixels(to.y))
}

fn words(text: impl Into<String>, x: f64, y: f64) -> Text {
    Text::new(text).set("x", pixels(x)).set("y", pixels(y))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_few() {
        for span in 1..100_000u64 {
            let step = tick(span);
            assert!(span / step <= 12, "{span} by {step}");
            assert!(span < 3 || span / step >= 5 || step == 1, "{span} by {step}");
            let digits = step / 10u64.pow(step.ilog10());
            assert!(
                [1, 2, 5].contains(&digits)
                    && step.to_string().ends_with(&"0".repeat(step.ilog10() as usize))
            );
        }
    }
}
