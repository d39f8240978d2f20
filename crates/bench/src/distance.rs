//! Distance between the two processors of a run, and the choice of the runs that may be compared.
//!
//! The host of a virtual machine moves its processors. At one time they are two threads of one core, at another they are on
//! different chips, and a cache line takes six times as long between them. Runs in turn are then not under the same conditions, and
//! the median is a matter of luck. So the distance is measured before and after each run, and a case compares runs at one distance
//! only.

use super::run::{BenchRun, STEP};
use std::collections::{BTreeMap, BTreeSet};

/// Returns the distances that occurred, nearest first. Each is the median of a group of similar distances.
pub fn places(runs: &[BenchRun]) -> Vec<f64> {
    let mut all: Vec<f64> = runs.iter().filter_map(|r| r.distance?.steady()).collect();
    all.sort_by(f64::total_cmp);
    let groups = all.chunk_by(|near, far| *far <= near * STEP);
    groups.map(|group| group[group.len() / 2]).collect()
}

/// Returns the place in `places` to which a run belongs, or `None` if its distance was not measured or changed.
fn place(run: &BenchRun, places: &[f64]) -> Option<usize> {
    let distance = run.distance?.steady()?;
    let off = |place: &f64| (place / distance).max(distance / place);
    (0..places.len()).min_by(|a, b| off(&places[*a]).total_cmp(&off(&places[*b])))
}

/// Returns the place with the most runs of a case, counted for the library with the fewest runs there. Of equal places it takes the
/// farthest, where two ranks most often are. Returns `None` if there is no place where each library ran.
pub fn choose(runs: &[BenchRun], case: usize, places: &[f64]) -> Option<usize> {
    let of_case = || runs.iter().filter(|r| r.case == case);
    let libraries: BTreeSet<usize> = of_case().map(|r| r.library).collect();
    let mut counts: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    for run in of_case() {
        if let Some(at) = place(run, places) {
            *counts.entry((at, run.library)).or_default() += 1;
        }
    }
    let least = |at: usize| {
        libraries.iter().map(|&l| counts.get(&(at, l)).copied().unwrap_or(0)).min().unwrap_or(0)
    };
    (0..places.len()).max_by_key(|&at| least(at)).filter(|&at| least(at) > 0)
}

/// Returns true if `run` is among the runs that its case compares.
pub fn counts(run: &BenchRun, chosen: Option<usize>, places: &[f64]) -> bool {
    chosen.is_none_or(|at| place(run, places) == Some(at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::LineDistance;

    fn run(library: usize, before: f64, after: f64) -> BenchRun {
        BenchRun { case: 0, library, distance: Some(LineDistance { before, after }), lines: vec![] }
    }

    #[test]
    fn a_case_compares_runs_at_one_distance() {
        let mut runs = vec![
            run(0, 0.025, 0.027),
            run(0, 0.160, 0.165),
            run(0, 0.162, 0.160),
            run(1, 0.026, 0.026),
            run(1, 0.025, 0.160), // moved meanwhile
            run(1, 0.161, 0.163),
        ];
        let places = places(&runs);
        assert_eq!(places.len(), 2, "{places:?}");
        assert_eq!(choose(&runs, 0, &places), Some(1), "one run of the second at either");
        runs.push(run(1, 0.024, 0.026));
        runs.push(run(0, 0.024, 0.026));
        let chosen = choose(&runs, 0, &places);
        assert_eq!(chosen, Some(0), "two of each");
        let of = |library| {
            runs.iter().filter(|r| r.library == library && counts(r, chosen, &places)).count()
        };
        assert_eq!((of(0), of(1)), (2, 2));
    }

    #[test]
    fn without_a_common_distance_all_runs_count() {
        let runs = vec![run(0, 0.02, 0.02), run(1, 0.2, 0.2)];
        let places = places(&runs);
        let chosen = choose(&runs, 0, &places);
        assert_eq!(chosen, None);
        assert!(runs.iter().all(|r| counts(r, chosen, &places)));
    }
}
