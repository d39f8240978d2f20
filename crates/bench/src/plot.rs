//! An SVG with a panel for each benchmark: figures by message size, or by number of ranks.

use super::library::BenchLibrary;
use super::library_kind::LibraryKind;
use super::plan::BenchCase;
use super::results::{BenchRow, Results};
use super::table;
use plotters::coord::Shift;
use plotters::prelude::SeriesLabelPosition::{LowerRight, UpperLeft};
use plotters::prelude::*;
use std::path::Path;

const COLUMNS: usize = 2;
const PANEL: (u32, u32) = (560, 380);
/// Colours of the lines, distinct also to the colour-blind (after Okabe and Ito). The first colour is Weft's.
const COLOURS: [RGBColor; 9] = [
    RGBColor(213, 94, 0),
    RGBColor(0, 114, 178),
    RGBColor(0, 158, 115),
    RGBColor(204, 121, 167),
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(0, 0, 0),
    RGBColor(200, 180, 0),
    RGBColor(128, 128, 128),
];

/// A panel with a line for each library through (place on the x axis, median).
pub struct Panel {
    pub title: String,
    pub unit: String,
    /// True if figures grow to the right, as times do. Then there is room for the legend at the left.
    pub rising: bool,
    /// Labels of the places 0, 1, 2 and so on.
    pub places: Vec<String>,
    /// By library: (place, median, best run).
    pub lines: Vec<Vec<(f64, f64, f64)>>,
    /// Marked points: (place, figure).
    pub marks: Vec<(f64, f64)>,
}

/// Writes the plot. Returns `false` if there was nothing to draw.
pub fn write(
    file: &Path,
    cases: &[BenchCase],
    libraries: &[BenchLibrary],
    results: &Results,
) -> Result<bool, String> {
    draw_all(file, &panels(cases, libraries.len(), results), libraries)
}

/// Draws the panels into a file. Returns `false` if there are none.
pub fn draw_all(file: &Path, panels: &[Panel], libraries: &[BenchLibrary]) -> Result<bool, String> {
    if panels.is_empty() {
        return Ok(false);
    }
    let rows = panels.len().div_ceil(COLUMNS);
    let columns = panels.len().min(COLUMNS);
    let size = (PANEL.0 * columns as u32, PANEL.1 * rows as u32);
    let root = SVGBackend::new(file, size).into_drawing_area();
    let failed = |e: &dyn std::fmt::Display| format!("cannot write {}: {e}", file.display());
    root.fill(&WHITE).map_err(|e| failed(&e))?;
    for (area, panel) in root.split_evenly((rows, columns)).iter().zip(panels) {
        draw(area, panel, libraries).map_err(|e| failed(&e))?;
    }
    root.present().map_err(|e| failed(&e))?;
    Ok(true)
}

fn panels(cases: &[BenchCase], libraries: usize, results: &Results) -> Vec<Panel> {
    let mut panels = Vec::new();
    for (number, case) in cases.iter().enumerate() {
        let mut rows: Vec<_> = results.rows.iter().filter(|r| r.case == number).collect();
        rows.sort_by_key(|r| r.size);
        // A panel has one scale: that of the figure that comes first.
        let unit = rows.first().map(|r| &r.unit);
        rows.retain(|r| Some(&r.unit) == unit);
        if rows.len() > 1 && (case.ranks == 2 || case.program.starts_with("file_")) {
            let label = |r: &&BenchRow| table::size(r.size);
            panels.push(panel(case.title(), &rows, rows.iter().map(label).collect(), libraries));
        }
    }
    // These panels show the cost of more ranks: the smallest size by number of ranks.
    for program in ["barrier", "allreduce", "bcast", "alltoall", "file_open"] {
        let of = |r: &&BenchRow| cases[r.case].program == program;
        let least = results.rows.iter().filter(of).map(|r| r.size).min();
        let rows: Vec<_> =
            results.rows.iter().filter(of).filter(|r| Some(r.size) == least).collect();
        if rows.len() > 1 {
            let label = |r: &&BenchRow| {
                let case = &cases[r.case];
                let load = if case.loaded { " + busy loops" } else { "" };
                format!("{}{load} {}", case.ranks, case.about).trim_end().to_owned()
            };
            let size = least.filter(|s| *s > 0).map_or(String::new(), |s| format!(", {s} bytes"));
            let title = format!("{program}{size}, by ranks");
            panels.push(panel(title, &rows, rows.iter().map(label).collect(), libraries));
        }
    }
    panels.retain(|panel| panel.lines.iter().any(|line| !line.is_empty()));
    panels
}

fn panel(title: String, rows: &[&BenchRow], places: Vec<String>, libraries: usize) -> Panel {
    let line = |library| {
        let point = |(place, row): (usize, &&BenchRow)| {
            // A share of 0 has no place on a logarithmic scale.
            let shown = |figure: &f64| *figure > 0.0;
            let median = row.median(library).filter(shown)?;
            Some((place as f64, median, row.best(library).filter(shown)?))
        };
        rows.iter().enumerate().filter_map(point).collect()
    };
    let lines = (0..libraries).map(line).collect();
    let unit = rows[0].unit.clone();
    Panel { title, unit, rising: rows[0].lower_is_better(), places, lines, marks: Vec::new() }
}

type Failure<'a> = DrawingAreaErrorKind<<SVGBackend<'a> as DrawingBackend>::ErrorType>;

fn draw<'a>(
    area: &DrawingArea<SVGBackend<'a>, Shift>,
    panel: &Panel,
    libraries: &[BenchLibrary],
) -> Result<(), Failure<'a>> {
    let values = panel.lines.iter().flatten().flat_map(|(_, median, best)| [*median, *best]);
    let values: Vec<_> = values.filter(|v| *v > 0.0).collect();
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(0.0, f64::max);
    let last = (panel.places.len() - 1) as f64;
    let mut chart = ChartBuilder::on(area)
        .margin(12)
        .caption(&panel.title, ("sans-serif", 17))
        .x_label_area_size(32)
        .y_label_area_size(64)
        .build_cartesian_2d(-0.3..last + 0.3, (least / 1.5..most * 1.5).log_scale())?;
    let name = |x: &f64| {
        let whole = (x - x.round()).abs() < 1e-6 && *x > -0.5;
        let place = whole.then(|| panel.places.get(x.round() as usize)).flatten();
        place.cloned().unwrap_or_default()
    };
    chart
        .configure_mesh()
        .light_line_style(BLACK.mix(0.04))
        .bold_line_style(BLACK.mix(0.12))
        .x_labels(panel.places.len() + 1)
        .x_label_formatter(&name)
        .y_label_formatter(&|y| table::figure(*y))
        .y_desc(&panel.unit)
        .draw()?;
    let mut others = COLOURS[1..].iter().cycle();
    let first = libraries.iter().position(|l| l.kind == LibraryKind::Weft);
    for (number, (line, library)) in panel.lines.iter().zip(libraries).enumerate() {
        let weft = Some(number) == first;
        let colour = if weft { COLOURS[0] } else { *others.next().unwrap_or(&COLOURS[1]) };
        let style = colour.stroke_width(if weft { 3 } else { 2 });
        let points = line.iter().map(|(x, median, _)| (*x, *median));
        chart
            .draw_series(LineSeries::new(points.clone(), style))?
            .label(&library.name)
            .legend(move |(x, y)| PathElement::new(vec![(x, y), (x + 18, y)], style));
        chart.draw_series(points.map(|p| Circle::new(p, 3, colour.filled())))?;
        // A thin line from the median to the best run.
        let whisker = |(x, median, best): &(f64, f64, f64)| {
            PathElement::new(vec![(*x, *median), (*x, *best)], colour.stroke_width(1))
        };
        chart.draw_series(line.iter().map(whisker))?;
    }
    chart.draw_series(panel.marks.iter().map(|mark| Circle::new(*mark, 8, RED.stroke_width(2))))?;
    chart
        .configure_series_labels()
        .position(if panel.rising { UpperLeft } else { LowerRight })
        .background_style(WHITE.mix(0.8))
        .border_style(BLACK.mix(0.3))
        .label_font(("sans-serif", 12))
        .draw()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_nothing_has_no_point_and_no_panel_alone() {
        let cases = super::super::plan::cases(&["overlap_put".to_owned()], 0.1).unwrap();
        let mut results = Results::default();
        for (size, share) in [(8, 0), (64, 0)] {
            let line = format!("{{\"size\":{size},\"value\":{share},\"unit\":\"% hidden\"}}");
            results.add(0, 0, None, &line).unwrap();
        }
        assert!(panels(&cases, 1, &results).is_empty());
        results.add(0, 0, None, "{\"size\":4096,\"value\":30,\"unit\":\"% hidden\"}").unwrap();
        assert_eq!(panels(&cases, 1, &results)[0].lines, [[(2.0, 30.0, 30.0)]]);
    }
}
