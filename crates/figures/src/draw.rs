//! One figure as SVG: curves with points, published numbers as crosses.

use super::digits::digits;
use super::figure::{Axis, Figure};
use plotters::prelude::*;
use std::ops::Range;

const SIZE: (u32, u32) = (640, 420);
/// Colours that colour-blind readers can distinguish, too (Okabe and Ito).
pub const COLOURS: [RGBColor; 9] = [
    RGBColor(213, 94, 0),
    RGBColor(0, 114, 178),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(128, 128, 128),
    RGBColor(40, 40, 40),
    RGBColor(200, 190, 40),
];
/// Maximum of the axis, divided by the value of the highest point.
const HEADROOM: f64 = 1.15;

/// Minimum value on an axis of powers of two. Smaller values are drawn at this value.
const LEAST: f64 = 1.0 / 1024.0;

/// Points in the order of x.
pub type Points = Vec<(f64, f64)>;

impl Axis {
    /// Returns the coordinate of `x`.
    fn place(&self, x: f64) -> f64 {
        if self.doubling { x.max(LEAST).log2() } else { x }
    }

    /// Returns label and unit.
    pub fn name(&self) -> String {
        if self.unit.is_empty() {
            self.label.to_owned()
        } else {
            format!("{}, {}", self.label, self.unit)
        }
    }

    /// Returns the label at place `at` of the axis.
    pub fn tick(&self, at: f64) -> String {
        if !self.doubling {
            return digits(at);
        }
        if (at - at.round()).abs() > 1e-6 || !(0.0..63.0).contains(&at.round()) {
            return String::new();
        }
        let value = 1u64 << at.round() as u64;
        match value {
            v if v >= 1 << 20 => format!("{}M", v >> 20),
            v if v >= 1 << 10 => format!("{}K", v >> 10),
            v => v.to_string(),
        }
    }
}

/// Returns the corner with the fewest points, for the legend.
fn corner(points: &[(f64, f64)], width: &Range<f64>, height: &Range<f64>) -> SeriesLabelPosition {
    let middle = (width.start + width.end) / 2.0;
    let half = (height.start + height.end) / 2.0;
    let count = |left: bool, up: bool| {
        let inside = |p: &&(f64, f64)| (p.0 < middle) == left && (p.1 > half) == up;
        points.iter().filter(inside).count()
    };
    let corners = [
        (count(true, true), SeriesLabelPosition::UpperLeft),
        (count(false, false), SeriesLabelPosition::LowerRight),
        (count(false, true), SeriesLabelPosition::UpperRight),
        (count(true, false), SeriesLabelPosition::LowerLeft),
    ];
    let fewest = corners.into_iter().min_by_key(|(count, _)| *count);
    fewest.map_or(SeriesLabelPosition::UpperLeft, |(_, corner)| corner)
}

/// Draws `curves`, one for each series of `figure`, and published `marks`.
pub fn svg(figure: &Figure, curves: &[Points], marks: &[(f64, f64)]) -> Result<String, String> {
    let mut text = String::new();
    draw(&mut text, figure, curves, marks).map_err(|e| format!("{}: {e}", figure.id))?;
    Ok(text)
}

fn draw(
    text: &mut String,
    figure: &Figure,
    curves: &[Points],
    marks: &[(f64, f64)],
) -> Result<(), Box<dyn std::error::Error>> {
    let place = |&(x, y): &(f64, f64)| (figure.x.place(x), figure.y.place(y));
    let curves: Vec<Points> = curves.iter().map(|c| c.iter().map(place).collect()).collect();
    let marks: Points = marks.iter().map(place).collect();
    let all: Points = curves.iter().flatten().chain(&marks).copied().collect();
    let first = all.iter().map(|p| p.0).fold(f64::INFINITY, f64::min);
    let last = all.iter().map(|p| p.0).fold(f64::NEG_INFINITY, f64::max);
    let most = all.iter().map(|p| p.1).fold(f64::NEG_INFINITY, f64::max);
    let margin = ((last - first) * 0.04).max(0.2);
    let width = first - margin..last + margin;
    let height = match figure.y.doubling {
        true => {
            let least = all.iter().map(|p| p.1).fold(most, f64::min);
            least.floor()..most + (HEADROOM - 1.0) * (most - least).max(1.0)
        }
        false => 0.0..if most > 0.0 { most * HEADROOM } else { 1.0 },
    };

    let root = SVGBackend::with_string(text, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&root)
        .margin(12)
        .caption(figure.title, ("sans-serif", 17))
        .x_label_area_size(44)
        .y_label_area_size(64)
        .build_cartesian_2d(width.clone(), height.clone())?;
    chart
        .configure_mesh()
        .max_light_lines(1)
        .light_line_style(BLACK.mix(0.04))
        .bold_line_style(BLACK.mix(0.12))
        .x_labels((last - first) as usize + 2)
        .x_label_formatter(&|x| figure.x.tick(*x))
        .y_label_formatter(&|y| figure.y.tick(*y))
        .x_desc(figure.x.name())
        .y_desc(figure.y.name())
        .draw()?;
    for (at, (points, series)) in curves.iter().zip(&figure.series).enumerate() {
        let colour = COLOURS[at % COLOURS.len()];
        let style = colour.stroke_width(2);
        chart
            .draw_series(LineSeries::new(points.iter().copied(), style))?
            .label(series.name)
            .legend(move |(x, y)| PathElement::new(vec![(x, y), (x + 18, y)], style));
        chart.draw_series(points.iter().map(|p| Circle::new(*p, 3, colour.filled())))?;
    }
    if !marks.is_empty() {
        let style = BLACK.stroke_width(2);
        chart
            .draw_series(marks.iter().map(|p| Cross::new(*p, 6, style)))?
            .label("published")
            .legend(move |(x, y)| Cross::new((x + 9, y), 5, style));
    }
    chart
        .configure_series_labels()
        .position(corner(&all, &width, &height))
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK.mix(0.3))
        .label_font(("sans-serif", 13))
        .draw()?;
    root.present()?;
    Ok(())
}
