//! `--cliffs`: sizes that take longer than the next larger size. A cliff is never right, because a program could send more bytes in
//! less time.

use super::library::BenchLibrary;
use super::limits::{self, OneWayLimits};
use super::output::save;
use super::plan::BenchCase;
use super::plot::{self, Panel};
use super::results::{BenchRow, Results};
use super::table::{align, figure};
use super::{BenchArgs, PATIENCE, Session, machine};
use serde_json::json;
use std::collections::BTreeSet;
use std::path::PathBuf;

/// Maximum ratio of a size's time to that of the next larger size.
const STEEP: f64 = 1.15;

/// Numbers of calls of each size with `--few-calls`.
const FEW_CALLS: &[&str] = &["--warm", "10", "--iterations", "100"];

/// A benchmark: name, description, bytes of its elements, options, and true if it needs two ranks.
type Entry = (&'static str, &'static str, u64, &'static [&'static str], bool);

const OPERATIONS: [Entry; 9] = [
    ("latency", "ping-pong", 1, &[], true),
    ("message_rate", "windows of 64", 1, &["--window", "64"], true),
    // The number of puts is the same for all sizes, and 64 of the largest size would take half of a small machine's memory.
    ("put_window", "windows of 16", 1, &["--window", "16"], true),
    ("get_window", "windows of 16", 1, &["--window", "16"], true),
    ("accumulate_char", "", 1, &[], true),
    ("accumulate_double", "", 8, &[], true),
    ("bcast", "", 1, &[], false),
    ("allreduce", "", 8, &[], false),
    ("alltoall", "", 1, &[], false),
];

/// A size that took longer than the next larger size, in bytes, with both times in microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Cliff {
    size: u64,
    next: u64,
    times: (f64, f64),
}

impl Cliff {
    fn ratio(&self) -> f64 {
        self.times.0 / self.times.1
    }
}

/// Returns the cliffs of one operation, from its times (bytes, microseconds) in the order of sizes.
fn find(times: &[(u64, f64)]) -> Vec<Cliff> {
    let pairs = times.windows(2).map(|pair| Cliff {
        size: pair[0].0,
        next: pair[1].0,
        times: (pair[0].1, pair[1].1),
    });
    pairs.filter(|cliff| cliff.ratio() > STEEP).collect()
}

/// Returns the time of one operation of a figure, in microseconds.
fn time(size: u64, value: f64, unit: &str) -> Option<f64> {
    match unit {
        "us" => Some(value),
        "M/s" => Some(1.0 / value),
        "GB/s" => Some(size as f64 / value / 1e3),
        _ => None,
    }
    .filter(|time| time.is_finite())
}

/// Returns the medians of a case, by size. Leaves out rows whose figure is neither a time nor a rate.
fn medians(results: &Results, case: usize) -> Vec<(u64, f64)> {
    let of = |row: &BenchRow| Some((row.size, time(row.size, row.median(0)?, &row.unit)?));
    let mut times: Vec<_> = results.rows.iter().filter(|r| r.case == case).filter_map(of).collect();
    times.sort_by_key(|(size, _)| *size);
    times
}

fn case(entry: &Entry, ranks: usize, sizes: &[u64], seconds: f64) -> BenchCase {
    let sizes = sizes.iter().map(u64::to_string).collect::<Vec<_>>().join(",");
    let (program, about, _, options, _) = *entry;
    BenchCase { about, options, ..BenchCase::new(program, ranks, sizes, seconds) }
}

/// A suspected cliff, and the result of its second measurement.
struct Verdict {
    case: usize,
    cliff: Cliff,
    /// Ratio in the second measurement, or `None` if it could not be measured again.
    again: Option<f64>,
}

impl Verdict {
    fn stands(&self) -> bool {
        self.again.is_none_or(|ratio| ratio > STEEP)
    }
}

pub fn run(args: BenchArgs, out: PathBuf, weft: BenchLibrary) -> Result<(), String> {
    let ranks = if args.ranks.is_empty() { vec![2] } else { args.ranks.clone() };
    let asked =
        |entry: &&Entry| args.benchmarks.is_empty() || args.benchmarks.iter().any(|a| a == entry.0);
    if let Some(unknown) = args.benchmarks.iter().find(|a| OPERATIONS.iter().all(|o| o.0 != **a)) {
        let all = OPERATIONS.map(|(program, ..)| program).join(", ");
        return Err(format!("no cliffs are looked for in '{unknown}', but in {all}"));
    }
    let probe = out.join("protocols");
    weft.compile(&crate::root().join("bench/protocols.c"), &probe)?;
    let (mut entries, mut cases, mut told) = (Vec::new(), Vec::new(), Vec::new());
    for &n in &ranks {
        let limits: OneWayLimits = limits::ask(&weft, &probe, n)?;
        told.extend(limits.told.iter().map(|line| format!("limits, {n} ranks: {line}\n")));
        for entry in OPERATIONS.iter().filter(asked).filter(|entry| n == 2 || !entry.4) {
            entries.push(*entry);
            let mut sizes = limits.sizes(entry.0, entry.2);
            if args.few_calls {
                sizes.retain(|size| size.is_power_of_two());
            }
            let calls = if args.few_calls { FEW_CALLS } else { &[] };
            cases.push(BenchCase { calls, ..case(entry, n, &sizes, args.seconds) });
        }
    }
    if cases.is_empty() {
        return Err("nothing is left: what was asked for needs 2 ranks".to_owned());
    }
    eprint!("{}", told.concat());
    let mut first = Session::new(cases, vec![weft], out, args);
    first.build()?;
    first.measure()?;
    failed(&first)?;
    let heading = first.heading();
    first.results.like_with_like(first.cases.len());
    let times: Vec<_> = (0..first.cases.len()).map(|c| medians(&first.results, c)).collect();
    let suspects: Vec<_> = times.iter().map(|times| find(times)).collect();

    let Session { cases, libraries, out, args, mut raw, .. } = first;
    let doubtful: Vec<_> = (0..cases.len()).filter(|&c| !suspects[c].is_empty()).collect();
    let (args, again) = if doubtful.is_empty() {
        (args, Results::default())
    } else {
        eprintln!("{} suspects: measured again", suspects.iter().map(Vec::len).sum::<usize>());
        let few = |&c: &usize| {
            if !cases[c].calls.is_empty() {
                // A call finds the memory that calls of smaller sizes have left.
                return cases[c].clone();
            }
            let sizes: BTreeSet<u64> = suspects[c].iter().flat_map(|s| [s.size, s.next]).collect();
            let sizes: Vec<_> = sizes.into_iter().collect();
            case(&entries[c], cases[c].ranks, &sizes, cases[c].seconds)
        };
        let cases = doubtful.iter().map(few).collect();
        let mut second = Session::new(cases, libraries.clone(), out.clone(), args);
        second.measure()?;
        failed(&second)?;
        second.results.like_with_like(second.cases.len());
        raw.append(&mut second.raw);
        (second.args, second.results)
    };
    let verdicts = judge(&suspects, &doubtful, &again);

    let head = heading.clone() + &told.concat();
    let table = render(&cases, &times, &verdicts, args.rounds());
    println!("{heading}{table}");
    save(&out.join("cliffs.txt"), &format!("{head}{}{table}", all_times(&cases, &times)))?;
    let record = json!({ "machine": machine::describe(), "rounds": args.rounds(), "seconds": args.seconds,
                         "limits": told, "runs": raw });
    save(&out.join("cliffs.json"), &format!("{record:#}\n"))?;
    plot::draw_all(&out.join("cliffs.svg"), &panels(&cases, &times, &verdicts), &libraries)?;
    println!("written to {}: cliffs.txt, cliffs.json, cliffs.svg", out.display());
    match verdicts.iter().filter(|v| v.stands()).count() {
        0 => Ok(()),
        n => Err(format!(
            "{n} cliffs: sizes that take more than {STEEP} of the time of the next larger one"
        )),
    }
}

/// Fails if a benchmark was given up: it shows no cliffs, which proves nothing.
fn failed(session: &Session) -> Result<(), String> {
    let given_up =
        |(case, ..): &&(usize, usize, String)| session.results.failed(*case, 0) >= PATIENCE;
    match session.results.failures.iter().find(given_up) {
        Some((case, _, why)) => Err(format!("{}: {why}", session.cases[*case].title())),
        None => Ok(()),
    }
}

fn judge(suspects: &[Vec<Cliff>], doubtful: &[usize], again: &Results) -> Vec<Verdict> {
    let mut verdicts = Vec::new();
    for (place, &case) in doubtful.iter().enumerate() {
        let times = medians(again, place);
        let time = |size: u64| times.iter().find(|(s, _)| *s == size).map(|(_, time)| *time);
        for &cliff in &suspects[case] {
            let again = time(cliff.size).zip(time(cliff.next)).map(|(less, more)| less / more);
            verdicts.push(Verdict { case, cliff, again });
        }
    }
    verdicts
}

/// Formats the cliffs, the suspects that were none, and each operation's steepest ratio.
fn render(
    cases: &[BenchCase],
    times: &[Vec<(u64, f64)>],
    verdicts: &[Verdict],
    rounds: usize,
) -> String {
    let mut grid = vec![["operation", "sizes", "steepest"].map(str::to_owned).to_vec()];
    for (case, times) in cases.iter().zip(times) {
        let ratios = times.windows(2).map(|pair| pair[0].1 / pair[1].1);
        let steepest = ratios.fold(0.0, f64::max);
        grid.push(vec![case.title(), times.len().to_string(), format!("{steepest:.2}")]);
    }
    let mut text = "\n".to_owned();
    align(&grid, &mut text);
    text += "\n";
    if verdicts.is_empty() {
        return text + "no cliffs\n";
    }
    let head = ["operation", "size", "next", "us", "next us", "ratio", "again", "verdict"];
    let mut grid = vec![head.map(str::to_owned).to_vec()];
    for verdict in verdicts {
        let Cliff { size, next, times } = verdict.cliff;
        grid.push(vec![
            cases[verdict.case].title(),
            size.to_string(),
            next.to_string(),
            figure(times.0),
            figure(times.1),
            format!("{:.2}", verdict.cliff.ratio()),
            verdict.again.map_or("-".to_owned(), |ratio| format!("{ratio:.2}")),
            if verdict.stands() { "CLIFF" } else { "noise" }.to_owned(),
        ]);
    }
    align(&grid, &mut text);
    let stand = verdicts.iter().filter(|v| v.stands()).count();
    text + &format!(
        "{stand} cliffs, {} not found again (noise)\n\nmedians of {rounds} rounds in turn, us an operation. a cliff: a size that takes \
         more than {STEEP} of the\ntime of the next larger one, in {rounds} rounds and in {rounds} more.\n",
        verdicts.len() - stand
    )
}

/// Formats all times, with a table for each operation.
fn all_times(cases: &[BenchCase], times: &[Vec<(u64, f64)>]) -> String {
    let mut text = String::new();
    for (case, times) in cases.iter().zip(times) {
        text += &format!("\n{}\n", case.title());
        let mut grid = vec![["size", "us", "of the next"].map(str::to_owned).to_vec()];
        for (at, (size, time)) in times.iter().enumerate() {
            let next = times.get(at + 1).map(|(_, next)| format!("{:.2}", time / next));
            grid.push(vec![size.to_string(), figure(*time), next.unwrap_or_default()]);
        }
        align(&grid, &mut text);
    }
    text
}

/// Returns a panel for each operation, with a ring around each cliff.
fn panels(cases: &[BenchCase], times: &[Vec<(u64, f64)>], verdicts: &[Verdict]) -> Vec<Panel> {
    let panel = |(number, times): (usize, &Vec<(u64, f64)>)| {
        // The names of all sizes would overlap.
        let name = |size: u64| {
            let shown = size.is_power_of_two() && size.ilog2().is_multiple_of(4);
            if shown { super::table::size(size) } else { String::new() }
        };
        let point = |(place, (_, time)): (usize, &(u64, f64))| (place as f64, *time, *time);
        let stands = verdicts.iter().filter(|v| v.case == number && v.stands());
        let place = |size: u64| times.iter().position(|(s, _)| *s == size).unwrap_or(0) as f64;
        Panel {
            title: cases[number].title(),
            unit: "us".to_owned(),
            rising: true,
            places: times.iter().map(|(size, _)| name(*size)).collect(),
            lines: vec![times.iter().enumerate().map(point).collect()],
            marks: stands.map(|v| (place(v.cliff.size), v.cliff.times.0)).collect(),
        }
    };
    times.iter().enumerate().filter(|(_, times)| times.len() > 1).map(panel).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_size_that_takes_longer_than_the_next_is_a_cliff() {
        let times = [(1, 1.0), (2, 1.1), (4, 1.0), (8, 1.16), (9, 1.0), (16, 5.0)];
        let found = find(&times);
        assert_eq!(found, [Cliff { size: 8, next: 9, times: (1.16, 1.0) }]);
        assert!(find(&times[..3]).is_empty(), "a tenth is none");
        assert!(find(&[]).is_empty() && find(&times[..1]).is_empty());
    }

    #[test]
    fn rates_are_turned_into_times() {
        assert_eq!(time(1000, 2.0, "GB/s"), Some(0.5));
        assert_eq!(time(8, 4.0, "M/s"), Some(0.25));
        assert_eq!(time(8, 3.0, "us"), Some(3.0));
        assert_eq!(time(8, 3.0, "%"), None);
        assert_eq!(time(8, 0.0, "GB/s"), None);
    }

    fn results(times: &[(usize, u64, f64)]) -> Results {
        let mut results = Results::default();
        for (case, size, value) in times {
            let line = format!("{{\"size\":{size},\"value\":{value},\"unit\":\"us\"}}");
            results.add(*case, 0, None, &line).unwrap();
        }
        results
    }

    #[test]
    fn what_is_not_found_again_is_noise() {
        let cliff = |size| Cliff { size, next: 2 * size, times: (3.0, 1.0) };
        let suspects = [vec![], vec![cliff(8), cliff(64)]];
        let again = results(&[(0, 8, 3.0), (0, 16, 2.0), (0, 64, 2.0), (0, 128, 2.0)]);
        let verdicts = judge(&suspects, &[1], &again);
        let told: Vec<_> = verdicts.iter().map(|v| (v.case, v.cliff.size, v.stands())).collect();
        assert_eq!(told, [(1, 8, true), (1, 64, false)]);
        let cases = [0, 1].map(|at| case(&OPERATIONS[at], 2, &[8, 16], 0.1));
        let times = [vec![(8, 1.0), (16, 2.0)], vec![(8, 3.0), (16, 1.0)]];
        let text = render(&cases, &times, &verdicts, 9);
        assert!(text.contains("1 cliffs, 1 not found again"), "{text}");
        assert!(text.lines().any(|l| l.contains("message_rate") && l.ends_with("CLIFF")), "{text}");
        let panels = panels(&cases, &times, &verdicts);
        assert_eq!((panels[0].marks.len(), panels[1].marks.len()), (0, 1));
        // A suspect that could not be measured again counts as a cliff.
        assert!(judge(&suspects, &[1], &results(&[])).iter().all(Verdict::stands));
    }

    #[test]
    fn medians_are_by_size_in_order() {
        let all = results(&[(0, 16, 4.0), (0, 8, 1.0), (0, 8, 9.0), (0, 8, 2.0), (1, 8, 7.0)]);
        assert_eq!(medians(&all, 0), [(8, 2.0), (16, 4.0)]);
    }
}
