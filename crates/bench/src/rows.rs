//! `--rows`: the figures that decide whether Weft is at least as fast as the best of its peers, a line for each figure.

use super::library::BenchLibrary;
use super::library_kind::LibraryKind;
use super::plan::BenchCase;
use super::results::{BenchRow, Results};
use super::table::{align, figure, size};
use std::collections::BTreeSet;

/// Minimum size at which a copy bounds an operation, in bytes. Below it, latency does.
const COPIED: u64 = 4 << 10;

/// Maximum ratio to the best peer's time if a copy bounds the operation: all libraries copy at about the same speed.
const LEVEL: f64 = 1.05;

const WINDOW: (&str, &[&str]) = ("windows of 64", &["--window", "64"]);
const PLAIN: (&str, &[&str]) = ("", &[]);
const FIXED: (&str, &[&str]) = ("one root", &["--fixed"]);

/// Program, ranks, sizes, then description and options.
type Entry = (&'static str, usize, &'static str, (&'static str, &'static [&'static str]));

const ROWS: &[Entry] = &[
    ("latency", 2, "8,128,8K,64K,1M", PLAIN),
    ("latency_multiple", 2, "8", PLAIN),
    ("latency_fresh", 2, "8K,64K,1M", PLAIN),
    ("message_rate", 2, "8,1K", WINDOW),
    ("bidirectional", 2, "64K,1M", WINDOW),
    ("accumulate_char", 2, "8,1K,64K,1M", PLAIN),
    ("accumulate_double", 2, "8,1K,64K,1M", PLAIN),
    ("put_window", 2, "1M", WINDOW),
    ("get_window", 2, "1M", WINDOW),
    ("scatter", 2, "8", PLAIN),
    ("scatter", 2, "8", FIXED),
    ("scatterv", 2, "8", PLAIN),
    ("scatterv", 2, "8", FIXED),
    ("alltoallv", 2, "8,1K,64K", PLAIN),
    ("allreduce", 2, "1K", PLAIN),
    ("scatter", 4, "8", PLAIN),
    ("scatter", 4, "8", FIXED),
    ("bcast", 4, "8", PLAIN),
    ("bcast", 4, "8", FIXED),
    ("gather", 4, "1M", PLAIN),
    ("gather", 4, "1M", FIXED),
    ("reduce", 4, "1M", PLAIN),
    ("reduce", 4, "1M", FIXED),
];

/// Returns the cases of the requested benchmarks (all if `asked` is empty). `seconds` is the time for each size if a rank has a
/// processor of its own.
pub fn cases(asked: &[String], seconds: f64) -> Result<Vec<BenchCase>, String> {
    let names: BTreeSet<&str> = ROWS.iter().map(|(program, ..)| *program).collect();
    if let Some(unknown) = asked.iter().find(|a| !names.contains(a.as_str())) {
        let all: Vec<_> = names.into_iter().collect();
        return Err(format!("no row of '{unknown}'; there are those of {}", all.join(", ")));
    }
    let asked = |entry: &&Entry| asked.is_empty() || asked.iter().any(|a| a == entry.0);
    let crowded = |ranks| if ranks > 2 { 2.5 } else { 1.0 };
    let case = |&(program, ranks, sizes, (about, options)): &Entry| BenchCase {
        about,
        options,
        ..BenchCase::new(program, ranks, sizes.to_owned(), seconds * crowded(ranks))
    };
    Ok(ROWS.iter().filter(asked).map(case).collect())
}

/// Formats the table: medians, the ratio of Weft's time to the best peer's, and whether the ratio meets its aim.
pub fn render(cases: &[BenchCase], libraries: &[BenchLibrary], results: &Results) -> String {
    let ours = |library: usize| libraries[library].kind == LibraryKind::Weft;
    let mut head = ["operation", "size", "unit"].map(str::to_owned).to_vec();
    head.extend(libraries.iter().map(|l| l.name.clone()));
    head.extend(["times best", "aim", "verdict"].map(str::to_owned));
    let mut grid = vec![head];
    let (mut met, mut judged) = (0, 0);
    for (number, case) in cases.iter().enumerate() {
        let mut rows: Vec<_> = results.rows.iter().filter(|r| r.case == number).collect();
        rows.sort_by_key(|r| r.size);
        for row in rows {
            let mut line = vec![case.title(), size(row.size), row.unit.clone()];
            line.extend((0..libraries.len()).map(|l| row.median(l).map_or("-".to_owned(), figure)));
            if let Some(times) = times_best(row, ours) {
                let copied = row.size >= COPIED;
                let good = if copied { times <= LEVEL } else { times < 1.0 };
                judged += 1;
                met += usize::from(good);
                let aim = if copied { format!("<= {LEVEL}") } else { "< 1".to_owned() };
                line.extend([format!("{times:.2}"), aim]);
                line.push(if good { "met" } else { "BEHIND" }.to_owned());
            }
            grid.push(line);
        }
    }
    let mut text = "\n".to_owned();
    align(&grid, &mut text);
    text + &format!(
        "{met} of {judged} rows met\n\nmedians. times best: how many times as long as the best peer Weft takes (of a rate, how many\n\
         times as much that peer moves). aim: from 4 KiB on a copy bounds the operation, below it latency.\n"
    )
}

fn times_best(row: &BenchRow, ours: impl Fn(usize) -> bool) -> Option<f64> {
    let (mine, best) = (row.best_median(&ours)?, row.best_median(|l| !ours(l))?);
    Some(if row.lower_is_better() { mine / best } else { best / mine })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_row_is_a_case_with_a_program_and_a_name_of_its_own() {
        let mut titles: Vec<_> = cases(&[], 0.1).unwrap().iter().map(BenchCase::title).collect();
        titles.sort();
        titles.dedup();
        assert_eq!(titles.len(), ROWS.len());
        assert!(ROWS.iter().all(|(program, ..)| super::super::plan::NAMES.contains(program)));
    }

    #[test]
    fn what_latency_bounds_must_be_ahead_and_what_a_copy_bounds_level() {
        let library = |name: &str, kind| BenchLibrary {
            name: name.to_owned(),
            kind,
            ..BenchLibrary::default()
        };
        let libraries = [library("weft", LibraryKind::Weft), library("other", LibraryKind::Other)];
        let cases = cases(&[], 0.1).unwrap();
        let mut results = Results::default();
        for (library, value) in [(0, 1.04), (1, 1.0)] {
            for size in [8, 65536] {
                let line = format!("{{\"size\":{size},\"value\":{value},\"unit\":\"us\"}}");
                results.add(0, library, None, &line).unwrap();
            }
            let rate = format!("{{\"size\":65536,\"value\":{value},\"unit\":\"GB/s\"}}");
            results.add(3, library, None, &rate).unwrap();
        }
        let text = render(&cases, &libraries, &results);
        let rows = text.lines().filter(|l| l.contains("2 ranks"));
        let verdicts: Vec<_> = rows.filter_map(|l| l.split_whitespace().last()).collect();
        assert_eq!(verdicts, ["BEHIND", "met", "met"], "{text}");
        assert!(text.contains("2 of 3 rows met") && text.contains("0.96"), "{text}");
    }
}
