//! Ratios of many cases in little space: a line for each case, a column for each size.

use super::library::BenchLibrary;
use super::library_kind::LibraryKind;
use super::plan::BenchCase;
use super::results::{BenchRow, Results};
use super::table::{align, figure, size};
use std::fmt::Write;

/// Formats Weft's median over the best peer's median, then Weft's time at each size. Returns an empty text if Weft was not run. `!`
/// marks a time that is more than 3 per cent above the best peer's. `apart` is the distance of the processors in the compared runs
/// (us), by case, and is `None` if no run was left out. The number of compared runs stands next to it.
pub fn render(
    cases: &[BenchCase],
    apart: &[Option<f64>],
    libraries: &[BenchLibrary],
    results: &Results,
) -> String {
    let ours = |library: usize| libraries[library].kind == LibraryKind::Weft;
    if !(0..libraries.len()).any(ours) {
        return String::new();
    }
    let mut sizes: Vec<u64> = results.rows.iter().map(|r| r.size).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let mut head = vec!["weft/best".to_owned()];
    head.extend(sizes.iter().map(|&bytes| size(bytes)));
    head.extend(["us", "apart", "runs"].map(str::to_owned));
    let mut grid = vec![head];
    let mut all = Vec::new();
    for (number, case) in cases.iter().enumerate() {
        let rows: Vec<_> = results.rows.iter().filter(|r| r.case == number).collect();
        let mut line = vec![case.title()];
        for bytes in &sizes {
            let found = rows.iter().find(|r| r.size == *bytes).and_then(|r| ratio(r, ours));
            line.push(found.map_or(String::new(), mark));
            all.extend(found);
        }
        let times = rows.iter().filter_map(|r| r.best_median(ours)).map(figure);
        line.push(times.collect::<Vec<_>>().join(" "));
        if let Some(us) = apart.get(number).copied().flatten() {
            let runs = rows.iter().flat_map(|r| r.samples.values()).map(Vec::len).min();
            line.extend([figure(us), runs.unwrap_or(0).to_string()]);
        }
        grid.push(line);
    }
    let mut text = "\n".to_owned();
    align(&grid, &mut text);
    let short: Vec<_> = all.iter().copied().filter(|&r| is_short(r)).collect();
    let worst = all.iter().copied().fold(0.0, f64::max);
    let _ = writeln!(text, "{} of {} short, the worst {worst:.2}", short.len(), all.len());
    text
}

/// Returns Weft's median over the best peer's median. For a rate it is the inverse, so that more is always worse.
pub fn ratio(row: &BenchRow, ours: impl Fn(usize) -> bool) -> Option<f64> {
    let (mine, best) = (row.best_median(&ours)?, row.best_median(|l| !ours(l))?);
    Some(if row.lower_is_better() { mine / best } else { best / mine })
}

fn is_short(ratio: f64) -> bool {
    ratio > 1.03
}

fn mark(ratio: f64) -> String {
    format!("{ratio:.2}{}", if is_short(ratio) { "!" } else { " " })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_takes_longer_than_the_best_peer_is_marked() {
        assert_eq!([0.5, 1.02, 1.04].map(mark), ["0.50 ", "1.02 ", "1.04!"]);
        let mut results = Results::default();
        for (library, value) in [(0, 3.0), (1, 2.0), (2, 5.0)] {
            let text = format!("{{\"size\":8,\"value\":{value},\"unit\":\"us\"}}");
            results.add(0, library, None, &text).unwrap();
        }
        assert_eq!(ratio(&results.rows[0], |l| l == 0), Some(1.5));
    }
}
