//! Maps of the fastest algorithm over message size and processes, as CollGM draws them.

use super::draw::COLOURS;
use super::figure::{AlgorithmMap, Axis, Contender};
use super::lab::Lab;
use plotters::prelude::*;
use std::error::Error;

const SIZE: (u32, u32) = (640, 300);
const PROCESSES: Axis = Axis { label: "Processes", unit: "", doubling: true };
const BYTES: Axis = Axis { label: "Message", unit: "bytes", doubling: true };

/// A point of a map.
pub struct Cell {
    pub processes: usize,
    pub bytes: usize,
    /// Index of the fastest algorithm in the map's list of names.
    pub best: usize,
    /// Times in microseconds, one for each algorithm of the map.
    pub times: Vec<f64>,
}

/// Measures all points of a map.
pub fn survey(lab: &Lab, map: &AlgorithmMap) -> Result<Vec<Cell>, String> {
    let mut cells = Vec::new();
    for &processes in &map.processes {
        for &bytes in &map.bytes {
            let time = |(_, workload): &Contender| {
                lab.point(map.machine, workload(map.operation, processes), bytes)
            };
            let times = map.names.iter().map(time).collect::<Result<Vec<_>, _>>()?;
            let best = times.iter().enumerate().min_by(|a, b| a.1.total_cmp(b.1));
            let best = best.map_or(0, |(at, _)| at);
            cells.push(Cell { processes, bytes, best, times });
        }
    }
    Ok(cells)
}

/// Draws the map as SVG.
pub fn svg(map: &AlgorithmMap, cells: &[Cell]) -> Result<String, String> {
    let mut text = String::new();
    draw(&mut text, map, cells).map_err(|e| format!("{}: {e}", map.id))?;
    Ok(text)
}

/// Returns the left and right (or lower and upper) edge of the cell at `all[at]`. Each edge is half-way to a neighbour in the
/// coordinates of the drawing.
fn edges(all: &[usize], at: usize) -> (f64, f64) {
    let place = |i: usize| (all[i] as f64).log2();
    let here = place(at);
    let down = if at > 0 { (here + place(at - 1)) / 2.0 } else { here - 0.5 };
    let up = if at + 1 < all.len() { (here + place(at + 1)) / 2.0 } else { here + 0.5 };
    (down, up)
}

fn draw(text: &mut String, map: &AlgorithmMap, cells: &[Cell]) -> Result<(), Box<dyn Error>> {
    let span = |all: &[usize]| (edges(all, 0).0, edges(all, all.len() - 1).1);
    let (wide, high) = (span(&map.bytes), span(&map.processes));
    let root = SVGBackend::with_string(text, SIZE).into_drawing_area();
    root.fill(&WHITE)?;
    let mut chart = ChartBuilder::on(&root)
        .margin(12)
        .margin_right(150)
        .caption(map.title, ("sans-serif", 17))
        .x_label_area_size(44)
        .y_label_area_size(64)
        .build_cartesian_2d(wide.0..wide.1, high.0..high.1)?;
    chart
        .configure_mesh()
        .disable_mesh()
        .x_labels(12)
        .y_labels(map.processes.len() + 1)
        .x_label_formatter(&|x| BYTES.tick(*x))
        .y_label_formatter(&|y| PROCESSES.tick(*y))
        .x_desc(BYTES.name())
        .y_desc(PROCESSES.name())
        .draw()?;
    let colour = |at: usize| COLOURS[at % COLOURS.len()];
    for cell in cells {
        let place = |all: &[usize], of| all.iter().position(|&v| v == of).expect("of the map");
        let (left, right) = edges(&map.bytes, place(&map.bytes, cell.bytes));
        let (low, up) = edges(&map.processes, place(&map.processes, cell.processes));
        let area = [(left, low), (right, up)];
        chart.draw_series([Rectangle::new(area, colour(cell.best).filled())])?;
        chart.draw_series([Rectangle::new(area, WHITE.stroke_width(1))])?;
    }
    for (at, (name, _)) in map.names.iter().enumerate().filter(|(at, _)| used(cells, *at)) {
        let (x, y) = (SIZE.0 as i32 - 140, 46 + 20 * at as i32);
        root.draw(&Rectangle::new([(x, y), (x + 12, y + 12)], colour(at).filled()))?;
        root.draw(&Text::new(*name, (x + 18, y), ("sans-serif", 13)))?;
    }
    root.present()?;
    Ok(())
}

/// Returns true if the algorithm with the index `name` is the fastest at any point.
pub fn used(cells: &[Cell], name: usize) -> bool {
    cells.iter().any(|cell| cell.best == name)
}

#[cfg(test)]
mod tests {
    use super::edges;

    #[test]
    fn cells_meet_halfway() {
        let all = [1, 4, 16];
        assert_eq!(edges(&all, 0), (-0.5, 1.0));
        assert_eq!(edges(&all, 1), (1.0, 3.0));
        assert_eq!(edges(&all, 2), (3.0, 4.5));
    }
}
