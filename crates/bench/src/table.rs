//! The table of medians, best runs and ratios, as text.

use super::library::BenchLibrary;
use super::library_kind::LibraryKind;
use super::plan::BenchCase;
use super::results::{BenchRow, Results};
use std::fmt::Write;

/// Formats a cell for each library: the median and, in brackets, the best run. `apart` is the distance of the processors by case,
/// if runs at other distances were left out.
pub fn render(
    cases: &[BenchCase],
    apart: &[Option<f64>],
    libraries: &[BenchLibrary],
    results: &Results,
) -> String {
    let weft = libraries.iter().any(|l| l.kind == LibraryKind::Weft);
    let mut head = vec!["size".to_owned(), "unit".to_owned()];
    head.extend(libraries.iter().map(|l| l.name.clone()));
    if weft {
        head.extend(["weft/best", "verdict"].map(str::to_owned));
    }
    head.push("limit".to_owned());
    if weft {
        head.push("weft/limit".to_owned());
    }

    let mut text = String::new();
    for (number, case) in cases.iter().enumerate() {
        let mut rows: Vec<_> = results.rows.iter().filter(|r| r.case == number).collect();
        rows.sort_by_key(|r| r.size);
        let mut grid = vec![head.clone()];
        for row in &rows {
            grid.push(cells(row, case, number, libraries, results));
        }
        if rows.is_empty() {
            let mut cells = vec!["-".to_owned(), "-".to_owned()];
            cells.extend((0..libraries.len()).map(|l| absent(number, l, results)));
            grid.push(cells);
        }
        let far = apart.get(number).copied().flatten().map(|us| {
            let runs = rows.iter().flat_map(|r| r.samples.values()).map(Vec::len).min();
            format!("; {} runs and more, processors {} us apart", runs.unwrap_or(0), figure(us))
        });
        let _ = writeln!(text, "\n{}{}", case.title(), far.unwrap_or_default());
        align(&grid, &mut text);
    }
    text
}

fn cells(
    row: &BenchRow,
    case: &BenchCase,
    number: usize,
    libraries: &[BenchLibrary],
    results: &Results,
) -> Vec<String> {
    let mut cells = vec![size(row.size), row.unit.clone()];
    for library in 0..libraries.len() {
        cells.push(match (row.median(library), row.best(library)) {
            (Some(median), Some(best)) => format!("{} ({})", figure(median), figure(best)),
            _ => absent(number, library, results),
        });
    }
    let ours = |library: usize| libraries[library].kind == LibraryKind::Weft;
    let weft = (0..libraries.len()).any(ours);
    let mine = row.best_median(ours);
    if weft {
        let best = row.best_median(|library| !ours(library));
        let ratio = mine.zip(best).map(|(mine, best)| mine / best);
        // If the best peer's share is 0 (no time hidden), there is no ratio.
        let ratio = ratio.filter(|r| r.is_finite());
        cells.push(ratio.map_or("-".to_owned(), |r| format!("{r:.2}")));
        cells.push(
            ratio
                .map_or("-", |r| verdict(if row.lower_is_better() { 1.0 / r } else { r }))
                .to_owned(),
        );
    }
    let limit = results.limit(case.program, row.size);
    cells.push(limit.map_or(String::new(), figure));
    if weft {
        let ratio = mine.zip(limit).map(|(mine, limit)| format!("{:.2}", mine / limit));
        cells.push(ratio.unwrap_or_default());
    }
    cells
}

/// Returns the verdict on a gain, which is above 1 if ours is better. Up to 3 per cent is level, because runs differ by that much.
fn verdict(gain: f64) -> &'static str {
    match gain {
        g if g > 1.03 => "ahead",
        g if g < 0.97 => "behind",
        _ => "level",
    }
}

fn absent(case: usize, library: usize, results: &Results) -> String {
    if results.failed(case, library) > 0 { "failed".to_owned() } else { "-".to_owned() }
}

/// Formats a figure with three significant digits.
pub fn figure(value: f64) -> String {
    match value.abs() {
        v if v >= 100.0 => format!("{value:.0}"),
        v if v >= 10.0 => format!("{value:.1}"),
        v if v >= 1.0 => format!("{value:.2}"),
        _ => format!("{value:.3}"),
    }
}

/// Formats bytes with the suffixes that the benchmarks accept.
pub fn size(bytes: u64) -> String {
    match bytes {
        b if b >= 1 << 20 && b % (1 << 20) == 0 => format!("{}M", b >> 20),
        b if b >= 1 << 10 && b % (1 << 10) == 0 => format!("{}K", b >> 10),
        b => b.to_string(),
    }
}

pub fn align(grid: &[Vec<String>], text: &mut String) {
    let columns = grid.iter().map(Vec::len).max().unwrap_or(0);
    let width = |c: usize| grid.iter().filter_map(|r| r.get(c)).map(|s| s.len()).max().unwrap_or(0);
    let widths: Vec<_> = (0..columns).map(width).collect();
    for row in grid {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:>width$}"));
        let line = cells.collect::<Vec<_>>().join("  ");
        let _ = writeln!(text, "  {}", line.trim_end());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn less_time_and_more_bandwidth_are_ahead() {
        assert_eq!(verdict(2.0), "ahead");
        assert_eq!(verdict(0.5), "behind");
        assert_eq!(verdict(1.0 / 1.5), "behind");
        assert_eq!(verdict(1.01), "level");
    }

    #[test]
    fn sizes_read_like_options() {
        assert_eq!([8, 1024, 4 << 20, 1536].map(size), ["8", "1K", "4M", "1536"]);
    }

    #[test]
    fn to_no_share_at_all_there_is_no_ratio() {
        let library = |name: &str, kind| BenchLibrary {
            name: name.to_owned(),
            kind,
            ..BenchLibrary::default()
        };
        let libraries = [library("weft", LibraryKind::Weft), library("other", LibraryKind::Other)];
        let cases = super::super::plan::cases(&["overlap_put".to_owned()], 0.1).unwrap();
        let mut results = Results::default();
        for (library, shares) in [(0, [40, 40]), (1, [0, 80])] {
            for (size, share) in [8, 64].into_iter().zip(shares) {
                let unit = "% hidden";
                let line = format!("{{\"size\":{size},\"value\":{share},\"unit\":\"{unit}\"}}");
                results.add(0, library, None, &line).unwrap();
            }
        }
        let text = render(&cases, &[], &libraries, &results);
        let row = |size: &str| text.lines().find(|l| l.trim().starts_with(size)).unwrap();
        assert!(!row("8 ").contains("inf") && !row("8 ").contains("ahead"), "{text}");
        assert!(row("64 ").contains("0.50") && row("64 ").contains("behind"), "{text}");
    }
}
