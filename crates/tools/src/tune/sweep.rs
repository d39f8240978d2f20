//! Measurement of the whole grid, which makes the map.
//!
//! An algorithm is skipped if it took more than [`HOPELESS`] times the time of the best algorithm at the same size, on both of the
//! two preceding numbers of ranks. Such ratios change slowly with the number of ranks.
//!
//! ```text
//!   bytes   8    32   [64]   128   512        if neighbours have different winners, the size
//!           FLAT FLAT  ?     MULTICAST ...    between them is measured too, if times are exact
//!   ranks   8 ... 9 (as 8) 10 ...             if the lines of fewer ranks serve a number, it has no lines
//! ```

use super::grid;
use indicatif::{ProgressBar, ProgressStyle};
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::time::Duration;
use weft_collective::selection_map::{SelectionCell, Timed};
use weft_collective::{AlgorithmChoice, CollectiveKind, RankPlacement, SelectionMap};

/// Maximum ratio to the best time at which an algorithm is not skipped: see the head of this file.
const HOPELESS: f64 = 2.5;

/// Maximum number of algorithms in a line in addition to the best.
const OTHERS: usize = 5;

/// Operations, ranks and sizes to measure.
pub struct MeasurementGrid {
    pub operations: Vec<CollectiveKind>,
    pub ranks: Vec<usize>,
    pub bytes: Vec<usize>,
}

/// Method of measuring the algorithms for a number of ranks and bytes.
pub trait Measure {
    /// Returns the placement of `ranks` ranks.
    fn site(&mut self, ranks: usize) -> Result<RankPlacement, String>;

    /// Returns the relative difference below which times count as equal. If times are equal, a cell gets the algorithm of the
    /// neighbouring cell, so that noise does not divide regions of the map.
    fn noise(&self) -> f64;

    /// Returns true if times repeat exactly, so that small differences are meaningful.
    fn is_exact(&self) -> bool;

    /// Receives the map found so far, for algorithms that consist of other operations.
    fn learn(&mut self, _map: SelectionMap) {}

    /// Returns the microseconds of each of `choices`, in their order, or an error for a choice that failed.
    fn measure(
        &mut self,
        place: MapCell,
        choices: &[AlgorithmChoice],
        done: &dyn Fn(),
    ) -> Result<Vec<Result<f64, String>>, String>;
}

/// A cell of the map to measure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MapCell {
    pub operation: CollectiveKind,
    pub ranks: usize,
    pub bytes: usize,
}

/// A map, and the measurements that failed.
pub struct Swept {
    pub map: SelectionMap,
    pub failures: Vec<String>,
}

/// All measurements of one number of ranks, the best first at each size.
type Row = BTreeMap<usize, Vec<Timed>>;

/// Measures the whole grid. Errors: a cause that makes all measurements impossible.
pub fn sweep(
    machine: &str,
    grid: &MeasurementGrid,
    measure: &mut dyn Measure,
) -> Result<Swept, String> {
    let mut sites = BTreeMap::new();
    for &ranks in &grid.ranks {
        sites.insert(ranks, measure.site(ranks)?);
    }
    let bar = progress(total(grid, &sites));
    let (mut lines, mut failures) = (Vec::new(), Vec::new());
    for operation in grid::in_order(&grid.operations) {
        // Ratio to the best time, by size and choice, on the two preceding numbers of ranks.
        let mut worse: HashMap<(usize, String), [f64; 2]> = HashMap::new();
        let mut kept: Option<Row> = None;
        for (&ranks, &site) in &sites {
            let mut row = Row::new();
            let mut sizes = VecDeque::from(grid::sizes(operation, ranks, &grid.bytes));
            let planned = sizes.len();
            let mut done = 0;
            while let Some(bytes) = sizes.pop_front() {
                let place = MapCell { operation, ranks, bytes };
                bar.set_message(format!("{operation}, {ranks} ranks, {bytes} bytes"));
                let all = grid::choices(operation, &grid::case(operation, ranks, bytes, site));
                let hopeless = |c: &AlgorithmChoice| {
                    let known = worse.get(&(bytes, c.to_string()));
                    known.is_some_and(|last| last.iter().all(|&w| w > HOPELESS))
                };
                let run: Vec<AlgorithmChoice> =
                    all.iter().copied().filter(|c| !hopeless(c)).collect();
                // Intermediate sizes are not part of the planned total.
                let counted = done < planned;
                bar.inc(if counted { (all.len() - run.len()) as u64 } else { 0 });
                let times = measure.measure(place, &run, &|| bar.inc(u64::from(counted)))?;
                let mut timed = Vec::new();
                for (choice, time) in run.into_iter().zip(times) {
                    match time {
                        Ok(us) => timed.push(Timed { choice, us: Some(us) }),
                        Err(why) => failures.push(format!(
                            "{operation} on {ranks} ranks, {bytes} bytes, {choice}: {why}"
                        )),
                    }
                }
                timed.sort_by(|a, b| us(a).total_cmp(&us(b)));
                if let Some(best) = timed.first().map(us) {
                    for t in &timed {
                        let of = worse.entry((bytes, t.choice.to_string())).or_insert([0.0; 2]);
                        *of = [of[1], us(t) / best];
                    }
                    let before = row.range(..bytes).next_back().map(|(_, timed)| timed[0].choice);
                    keep_neighbour(&mut timed, before, measure.noise());
                    row.insert(bytes, timed);
                }
                done += 1;
                if done == planned && measure.is_exact() {
                    sizes.extend(between(&row));
                }
            }
            if kept.as_ref().is_some_and(|kept| serves(kept, &row)) {
                continue;
            }
            let line = |(&bytes, timed): (&usize, &Vec<Timed>)| SelectionCell {
                operation,
                ranks,
                bytes,
                choices: shortened(timed),
            };
            lines.extend(row.iter().map(line));
            kept = Some(row);
        }
        measure.learn(SelectionMap::new(machine, lines.clone()));
    }
    bar.finish_and_clear();
    lines.sort_by_key(|line: &SelectionCell| line.operation);
    Ok(Swept { map: SelectionMap::new(machine, lines), failures })
}

fn us(timed: &Timed) -> f64 {
    timed.us.unwrap_or(f64::INFINITY)
}

/// Returns a size between each two neighbouring sizes that have different winners and differ by a factor of at least four.
fn between(row: &Row) -> Vec<usize> {
    let pairs = row.iter().zip(row.iter().skip(1));
    let torn = pairs.filter(|((a, x), (b, y))| **b >= 4 * **a && x[0].choice != y[0].choice);
    torn.map(|((&a, _), _)| 2 * a).collect()
}

/// Minimum relative difference of times at which a number of ranks gets its own lines.
const EQUAL: f64 = 0.01;

/// Returns true if the lines of `kept`, which has fewer ranks, are as good for `row` as its own lines: the winner, and the
/// algorithm that replaces a winner that is not eligible.
fn serves(kept: &Row, row: &Row) -> bool {
    row.iter().all(|(bytes, timed)| {
        let Some((_, line)) = kept.range(..=bytes).next_back().or(kept.iter().next()) else {
            return false;
        };
        let free = |t: &&Timed| t.choice.algorithm.needs.is_empty();
        let as_good = |old: Option<&Timed>, best: Option<&Timed>| match (old, best) {
            (Some(old), Some(best)) => {
                timed.iter().any(|t| t.choice == old.choice && us(t) <= us(best) * (1.0 + EQUAL))
            }
            (None, None) => true,
            _ => false,
        };
        as_good(line.first(), timed.first())
            && as_good(line.iter().find(free), timed.iter().find(free))
    })
}

/// Moves the choice of the preceding size to the front if it is as good as the best.
fn keep_neighbour(timed: &mut [Timed], before: Option<AlgorithmChoice>, noise: f64) {
    let Some(kept) = before else { return };
    let best = timed[0].us.unwrap_or(0.0);
    let same = |t: &Timed| t.choice == kept && t.us.is_some_and(|us| us <= best * (1.0 + noise));
    if let Some(at) = timed.iter().position(same) {
        timed[..=at].rotate_right(1);
    }
}

/// Returns the best choices, each algorithm with its best parameter, and the best algorithm that can serve any call.
fn shortened(timed: &[Timed]) -> Vec<Timed> {
    let mut kept: Vec<Timed> = Vec::new();
    for &t in timed {
        let name = t.choice.algorithm.name;
        if kept.iter().any(|k| k.choice.algorithm.name == name) {
            continue;
        }
        let serves_any = |t: &Timed| t.choice.algorithm.needs.is_empty();
        if kept.len() <= OTHERS || (serves_any(&t) && !kept.iter().any(serves_any)) {
            kept.push(t);
        }
    }
    kept
}

fn total(grid: &MeasurementGrid, sites: &BTreeMap<usize, RankPlacement>) -> u64 {
    let mut sum = 0;
    for &operation in &grid.operations {
        for (&ranks, &site) in sites {
            for bytes in grid::sizes(operation, ranks, &grid.bytes) {
                sum += grid::choices(operation, &grid::case(operation, ranks, bytes, site)).len();
            }
        }
    }
    sum as u64
}

/// Returns a progress bar, on standard error if that is a terminal.
pub(crate) fn progress(total: u64) -> ProgressBar {
    let bar = ProgressBar::new(total);
    let style = "{msg:40} {bar:24} {percent:>3} %  {eta_precise} left";
    bar.set_style(ProgressStyle::with_template(style).expect("a right template"));
    bar.enable_steady_tick(Duration::from_millis(250));
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    fn timed(name: &str, us: f64) -> Timed {
        Timed { choice: AlgorithmChoice::parse(CollectiveKind::Bcast, name).unwrap(), us: Some(us) }
    }

    fn names(timed: &[Timed]) -> Vec<String> {
        timed.iter().map(|t| t.choice.to_string()).collect()
    }

    #[test]
    fn a_line_has_each_algorithm_once_and_one_that_always_serves() {
        let kept = shortened(&[
            timed("SCATTER-DOUBLING", 1.0),
            timed("MULTICAST:8192", 1.1),
            timed("MULTICAST", 1.2),
            timed("MPI-SCATTER-DOUBLING", 1.3),
            timed("FLAT", 9.0),
        ]);
        let expected = ["SCATTER-DOUBLING", "MULTICAST:8192", "MPI-SCATTER-DOUBLING", "FLAT"];
        assert_eq!(names(&kept), expected);
    }

    #[test]
    fn sizes_between_different_winners_are_looked_at() {
        let row = Row::from([
            (8, vec![timed("FLAT", 1.0)]),
            (32, vec![timed("FLAT", 1.0)]),
            (128, vec![timed("BINOMIAL", 1.0)]),
            (256, vec![timed("FLAT", 1.0)]),
        ]);
        assert_eq!(between(&row), [64]);
    }

    #[test]
    fn more_ranks_have_lines_only_if_they_make_a_difference() {
        let kept = Row::from([(8, vec![timed("MULTICAST", 1.0), timed("BINOMIAL", 2.0)])]);
        let row = |all: [Timed; 3]| Row::from([(16, all.to_vec())]);
        let as_well = [timed("MULTICAST", 1.1), timed("FLAT", 2.2), timed("BINOMIAL", 2.21)];
        assert!(serves(&kept, &row(as_well)));
        let worse = [timed("FLAT", 1.0), timed("MULTICAST", 1.1), timed("BINOMIAL", 2.0)];
        assert!(!serves(&kept, &row(worse)), "another is best");
        let without = [timed("MULTICAST", 1.1), timed("FLAT", 2.0), timed("BINOMIAL", 2.2)];
        assert!(!serves(&kept, &row(without)), "another is best without multicast");
    }

    #[test]
    fn what_makes_no_difference_changes_nothing() {
        let choice = |name| Some(AlgorithmChoice::parse(CollectiveKind::Bcast, name).unwrap());
        let mut same = [timed("FLAT", 1.0), timed("BINOMIAL", 1.001)];
        keep_neighbour(&mut same, choice("BINOMIAL"), 0.01);
        assert_eq!(names(&same), ["BINOMIAL", "FLAT"]);
        let mut other = [timed("FLAT", 1.0), timed("BINOMIAL", 1.1)];
        keep_neighbour(&mut other, choice("BINOMIAL"), 0.01);
        assert_eq!(names(&other), ["FLAT", "BINOMIAL"]);
    }
}
