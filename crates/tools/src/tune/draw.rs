//! The map of an operation as SVG, like figures 7, 9 and 11 of Hoefler et al. 2007. The axes are processes and bytes. Each
//! algorithm has a colour, and its parameter is written in the cell.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use weft_collective::selection_map::SelectionCell;
use weft_collective::{CollectiveKind, SelectionMap};

/// Sizes of a cell, of the legend and of the margins, in pixels.
const CELL: (u32, u32) = (54, 30);
const LEGEND: u32 = 230;
const AROUND: (u32, u32) = (110, 110);

/// Colours that colour-blind readers can distinguish, too: the colours of Okabe and Ito, then lighter versions.
const COLOURS: [RGBColor; 7] = [
    RGBColor(230, 159, 0),
    RGBColor(86, 180, 233),
    RGBColor(0, 158, 115),
    RGBColor(240, 228, 66),
    RGBColor(213, 94, 0),
    RGBColor(204, 121, 167),
    RGBColor(0, 114, 178),
];

fn colour(at: usize) -> RGBAColor {
    let fade = match at / COLOURS.len() {
        0 => 0.9,
        1 => 0.5,
        _ => 0.25,
    };
    COLOURS[at % COLOURS.len()].mix(fade)
}

/// Draws the picture. Returns `None` if the map has no line for this operation.
pub fn svg(map: &SelectionMap, operation: CollectiveKind) -> Result<Option<String>, String> {
    let lines: Vec<&SelectionCell> = map.lines(operation).collect();
    if lines.is_empty() {
        return Ok(None);
    }
    let mut text = String::new();
    draw(&mut text, map, operation, &lines).map_err(|e| format!("{operation}.svg: {e}"))?;
    Ok(Some(text))
}

fn size(bytes: usize) -> String {
    match bytes {
        b if b >= 1 << 20 && b % (1 << 20) == 0 => format!("{}M", b >> 20),
        b if b >= 1 << 10 && b % (1 << 10) == 0 => format!("{}K", b >> 10),
        b => b.to_string(),
    }
}

/// Returns the algorithms, each with the number of cells in which it is the best, in descending order of this number.
fn shares<'m>(lines: &[&'m SelectionCell]) -> Vec<(&'m str, usize)> {
    let mut names: Vec<(&str, usize)> = Vec::new();
    for line in lines {
        let name = line.choices[0].choice.algorithm.name;
        match names.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count += 1,
            None => names.push((name, 1)),
        }
    }
    names.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
    names
}

/// Returns the label of a row or a column of cells.
fn name_of(all: &[usize], at: &SegmentValue<u32>, show: fn(usize) -> String) -> String {
    match at {
        SegmentValue::CenterOf(i) | SegmentValue::Exact(i) => {
            all.get(*i as usize).map_or(String::new(), |&n| show(n))
        }
        SegmentValue::Last => String::new(),
    }
}

fn draw(
    text: &mut String,
    map: &SelectionMap,
    operation: CollectiveKind,
    lines: &[&SelectionCell],
) -> Result<(), Box<dyn std::error::Error>> {
    let mut ranks: Vec<usize> = lines.iter().map(|l| l.ranks).collect();
    ranks.dedup();
    let mut bytes: Vec<usize> = lines.iter().map(|l| l.bytes).collect();
    bytes.sort_unstable();
    bytes.dedup();
    let names = shares(lines);
    let (across, up) = (ranks.len() as u32, bytes.len() as u32);
    let cells = (CELL.0 * across.max(5), CELL.1 * up.max(names.len() as u32 * 3 / 4).max(6));
    let whole = (cells.0 + AROUND.0 + LEGEND, cells.1 + AROUND.1);
    let root = SVGBackend::with_string(text, whole).into_drawing_area();
    root.fill(&WHITE)?;
    let (left, legend) = root.split_horizontally(whole.0 - LEGEND);
    let title = format!("{operation} on {}: the best algorithm", map.machine);
    let mut chart = ChartBuilder::on(&left)
        .margin(12)
        .caption(title, ("sans-serif", 17))
        .x_label_area_size(40)
        .y_label_area_size(70)
        .build_cartesian_2d((0..across).into_segmented(), (0..up).into_segmented())?;
    chart
        .configure_mesh()
        .disable_mesh()
        .x_labels(ranks.len() + 1)
        .y_labels(bytes.len() + 1)
        .x_label_formatter(&|i| name_of(&ranks, i, |n| n.to_string()))
        .y_label_formatter(&|i| name_of(&bytes, i, size))
        .x_desc("processes")
        .y_desc(format!("bytes ({})", operation.measure()))
        .draw()?;
    let corner = |i: usize, all: u32| match i as u32 {
        i if i == all => SegmentValue::Last,
        i => SegmentValue::Exact(i),
    };
    let small = ("sans-serif", 10).into_font().color(&BLACK);
    let small = small.pos(Pos::new(HPos::Center, VPos::Center));
    for line in lines {
        let choice = line.choices[0].choice;
        let x = ranks.iter().position(|&n| n == line.ranks).unwrap_or(0);
        let y = bytes.iter().position(|&b| b == line.bytes).unwrap_or(0);
        let which = names.iter().position(|(name, _)| *name == choice.algorithm.name).unwrap_or(0);
        let from = (corner(x, across), corner(y, up));
        let to = (corner(x + 1, across), corner(y + 1, up));
        let cell = [from, to];
        chart.draw_series([
            Rectangle::new(cell.clone(), colour(which).filled()),
            Rectangle::new(cell, WHITE.stroke_width(1)),
        ])?;
        if choice.algorithm.parameter.is_some() {
            let middle = (SegmentValue::CenterOf(x as u32), SegmentValue::CenterOf(y as u32));
            chart.draw_series([Text::new(size(choice.parameter), middle, small.clone())])?;
        }
    }
    for (i, (name, count)) in names.iter().enumerate() {
        let y = 50 + 22 * i as i32;
        legend.draw(&Rectangle::new([(4, y), (20, y + 14)], colour(i).filled()))?;
        legend.draw(&Rectangle::new([(4, y), (20, y + 14)], BLACK.mix(0.4)))?;
        let label = format!("{name} ({count})");
        legend.draw(&Text::new(label, (26, y + 2), ("sans-serif", 12)))?;
    }
    root.present()?;
    Ok(())
}
