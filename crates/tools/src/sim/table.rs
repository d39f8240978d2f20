//! The table on the terminal, and the same figures as CSV.

use super::measure::{Conditions, RunFigure};
use super::study::{REAL_MOST, StudyTable, TableColumn};
use std::fs::File;
use std::io::Write as _;
use weft_fabric_sim::Machine;
use weft_patterns::{LapReduction, PayloadPresence};

/// Formats the table, with a title and the unit at the top. Rows are numbers of ranks; if there is only one number of ranks but
/// several payloads, rows are payloads.
pub fn print(
    study: &StudyTable,
    figures: &[RunFigure],
    machine: &Machine,
    conditions: &Conditions,
) -> String {
    let series = study.series();
    let by_bytes = study.ranks.len() == 1 && study.bytes.len() > 1;
    let (first, rows): (&str, Vec<usize>) =
        if by_bytes { ("bytes", study.bytes.clone()) } else { ("ranks", study.ranks.clone()) };
    let one_payload = study.bytes.len() == 1;
    // With payloads as rows, a column combines the series that differ only in payload.
    let columns: Vec<&TableColumn> =
        series.iter().filter(|s| !by_bytes || s.bytes == study.bytes[0]).collect();
    let cell = |row: usize, column: &TableColumn| {
        let (ranks, series_there) = match by_bytes {
            true => (0, TableColumn { bytes: rows[row], ..*column }),
            false => (row, *column),
        };
        let place = series.iter().position(|s| *s == series_there).expect("one of the series");
        number(figures[ranks * series.len() + place].mean, study.about.measured)
    };
    let mut grid = vec![vec![first.to_owned()], vec![String::new()]];
    for column in &columns {
        grid[0].push(label(study, column, (!by_bytes && !one_payload).then_some(column.bytes)));
        grid[1].push(study.about.measured.unit().to_owned());
    }
    for (row, name) in rows.iter().enumerate() {
        let mut line = vec![name.to_string()];
        line.extend(columns.iter().map(|column| cell(row, column)));
        grid.push(line);
    }
    format!("{}\n{}", title(study, machine, conditions), aligned(&grid))
}

/// Returns the properties that distinguish a column from the other columns. `bytes` is the payload, if all rows of the column have
/// the same payload and other columns have another.
fn label(study: &StudyTable, series: &TableColumn, bytes: Option<usize>) -> String {
    let mut parts = Vec::new();
    let several_fan_ins = study.fan_ins.len() > 1;
    if study.algorithms.len() > 1 || bytes.is_none() && !several_fan_ins {
        parts.push(series.algorithm.label());
    }
    if let Some(bytes) = bytes {
        parts.push(format!("{bytes} B"));
    }
    if let Some(fan_in) = series.fan_in.filter(|_| several_fan_ins) {
        parts.push(format!("fan-in {fan_in}"));
    }
    parts.join(" ")
}

fn title(study: &StudyTable, machine: &Machine, conditions: &Conditions) -> String {
    let mut text = study.about.name.to_owned();
    if let ([bytes], Some(_)) = (study.bytes.as_slice(), study.about.payload) {
        text += &format!(" of {bytes} bytes");
    }
    if let ([algorithm], true) = (study.algorithms.as_slice(), study.about.algorithms().len() > 1) {
        text += &format!(", {}", algorithm.label());
    }
    if let [Some(fan_in)] = study.fan_ins.as_slice() {
        text += &format!(", fan-in {fan_in}");
    }
    text += &format!(" on {}", machine.name);
    if let [ranks] = study.ranks.as_slice() {
        text += &format!(", {ranks} {}", if *ranks == 1 { "rank" } else { "ranks" });
    }
    text += &conditions.changed();
    let (what, repeat) = (study.about.measured.describe(), study.repeat);
    text += &format!("\n{what}; mean of {repeat} after {} to warm up", study.warm_up);
    if study.isolated && study.about.measured == LapReduction::Mean {
        text += ", each begun by all ranks at once";
    }
    text += &conditions.noise();
    text.push('\n');
    if study.plans().iter().any(|plan| plan.payload == PayloadPresence::Phantom && !plan.about.bare)
    {
        let most = REAL_MOST >> 20;
        text += &format!("data are real and compared up to {most} MiB, of more only sizes exist\n");
    }
    text
}

/// Formats times with three digits after the decimal point, and rates with one digit.
fn number(figure: f64, measured: LapReduction) -> String {
    match measured {
        LapReduction::Rate { .. } => format!("{figure:.1}"),
        _ => format!("{figure:.3}"),
    }
}

/// Aligns columns to the right, with two blanks between columns.
fn aligned(grid: &[Vec<String>]) -> String {
    let width = |column: usize| grid.iter().map(|line| line[column].len()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..grid[0].len()).map(width).collect();
    let mut text = String::new();
    for line in grid {
        let cells: Vec<String> =
            line.iter().zip(&widths).map(|(cell, &w)| format!("{cell:>w$}")).collect();
        text += cells.join("  ").trim_end();
        text.push('\n');
    }
    text
}

/// Writes one line for each run, with all its values.
pub fn write_csv(
    study: &StudyTable,
    figures: &[RunFigure],
    machine: &Machine,
    conditions: &Conditions,
    file: File,
) -> Result<(), csv::Error> {
    let mut csv = csv::Writer::from_writer(std::io::BufWriter::new(file));
    csv.write_record([
        "pattern",
        "algorithm",
        "machine",
        "changes",
        "jitter_us",
        "seed",
        "ranks",
        "bytes",
        "fan_in",
        "repetitions",
        "unit",
        "mean",
        "least",
        "most",
    ])?;
    let changes = conditions.changes.iter().map(|(key, value)| format!("{key}={value}"));
    let changes = changes.collect::<Vec<_>>().join("; ");
    let (jitter, seed) = (conditions.jitter.us().to_string(), conditions.seed.to_string());
    for (plan, figure) in study.plans().iter().zip(figures) {
        let fan_in = if plan.about.fans_in { plan.fan_in.to_string() } else { String::new() };
        let bytes = plan.about.payload.map_or(String::new(), |_| plan.bytes.to_string());
        let six = |figure: f64| format!("{figure:.6}");
        csv.write_record([
            plan.about.name,
            &plan.algorithm.label(),
            &machine.name,
            &changes,
            &jitter,
            &seed,
            &plan.ranks.to_string(),
            &bytes,
            &fan_in,
            &plan.repeat.to_string(),
            plan.about.measured.unit(),
            &six(figure.mean),
            &six(figure.least),
            &six(figure.most),
        ])?;
    }
    csv.into_inner().map_err(|e| e.into_error())?.flush()?;
    Ok(())
}
