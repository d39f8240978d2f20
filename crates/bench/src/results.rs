//! Measured samples by case, size and library, and their medians.

use super::distance;
use super::run::{BenchLine, BenchRun, LineDistance};
use serde::Deserialize;
use std::collections::BTreeMap;

/// A line of the output of `limit`.
#[derive(Deserialize, Clone, Debug)]
pub struct LimitLine {
    pub limit: String,
    pub size: u64,
    pub value: f64,
    pub best: f64,
}

/// A row of the table: one figure, with one sample per run for each library.
#[derive(Clone, Debug)]
pub struct BenchRow {
    /// Index into the list of cases.
    pub case: usize,
    /// Message size in bytes.
    pub size: u64,
    pub unit: String,
    /// Samples, by index into the list of libraries.
    pub samples: BTreeMap<usize, Vec<f64>>,
}

impl BenchRow {
    /// Returns true if less is better: times and shares of a processor. For rates, and for shares of time that is hidden or
    /// available, more is better.
    pub fn lower_is_better(&self) -> bool {
        self.unit == "%" || self.unit.split(' ').next() == Some("us")
    }

    pub fn median(&self, library: usize) -> Option<f64> {
        median(self.samples.get(&library)?)
    }

    /// Returns the best of all runs: the shortest time or the highest rate.
    pub fn best(&self, library: usize) -> Option<f64> {
        let samples = self.samples.get(&library)?.iter().copied();
        if self.lower_is_better() {
            samples.min_by(f64::total_cmp)
        } else {
            samples.max_by(f64::total_cmp)
        }
    }

    /// Returns the best median of the libraries for which `wanted` returns true.
    pub fn best_median(&self, wanted: impl Fn(usize) -> bool) -> Option<f64> {
        let wanted = self.samples.keys().filter(|l| wanted(**l)).filter_map(|l| self.median(*l));
        if self.lower_is_better() {
            wanted.min_by(f64::total_cmp)
        } else {
            wanted.max_by(f64::total_cmp)
        }
    }
}

#[derive(Default)]
pub struct Results {
    /// True if a library has one sample only, from the fastest batch of all its runs.
    quickest: bool,
    pub rows: Vec<BenchRow>,
    runs: Vec<BenchRun>,
    /// Samples of the machine's limits, by name and size.
    pub limits: BTreeMap<(String, u64), Vec<f64>>,
    /// Failed runs: case, library and reason.
    pub failures: Vec<(usize, usize, String)>,
}

impl Results {
    pub fn new(quickest: bool) -> Results {
        Results { quickest, ..Results::default() }
    }

    /// Takes the output of one run. Fails if it is not the output of a benchmark.
    pub fn add(
        &mut self,
        case: usize,
        library: usize,
        distance: Option<LineDistance>,
        output: &str,
    ) -> Result<(), String> {
        let mut lines = Vec::new();
        for text in output.lines().filter(|l| l.starts_with("{\"size\"")) {
            let mut line: BenchLine =
                serde_json::from_str(text).map_err(|e| format!("'{text}': {e}"))?;
            line.value = line.best.filter(|_| self.quickest).unwrap_or(line.value);
            if !line.value.is_finite() {
                return Err(format!("'{text}': not a finite figure"));
            }
            lines.push(line);
        }
        if lines.is_empty() {
            return Err("it printed no figures".to_owned());
        }
        let run = BenchRun { case, library, distance, lines };
        self.count(&run);
        self.runs.push(run);
        Ok(())
    }

    fn count(&mut self, run: &BenchRun) {
        for line in &run.lines {
            let quickest = self.quickest;
            let row = self.row(run.case, line);
            row.samples.entry(run.library).or_default().push(line.value);
            if let Some(best) = row.best(run.library).filter(|_| quickest) {
                row.samples.insert(run.library, vec![best]);
            }
        }
    }

    /// Reduces the rows of each case to the runs at one distance of the processors, if there is a distance at which each library
    /// ran. Returns that distance (us) for each of the `cases`, if there were several distances.
    pub fn like_with_like(&mut self, cases: usize) -> Vec<Option<f64>> {
        let runs = std::mem::take(&mut self.runs);
        let places = distance::places(&runs);
        let chosen: Vec<_> = (0..cases).map(|c| distance::choose(&runs, c, &places)).collect();
        for row in &mut self.rows {
            row.samples.clear();
        }
        for run in runs.iter().filter(|r| distance::counts(r, chosen[r.case], &places)) {
            self.count(run);
        }
        self.runs = runs;
        let told = |at: Option<usize>| at.filter(|_| places.len() > 1).map(|at| places[at]);
        chosen.into_iter().map(told).collect()
    }

    fn row(&mut self, case: usize, line: &BenchLine) -> &mut BenchRow {
        let same = |r: &BenchRow| r.case == case && r.size == line.size && r.unit == line.unit;
        let known = self.rows.iter().position(same);
        let at = known.unwrap_or_else(|| {
            let (size, unit) = (line.size, line.unit.clone());
            self.rows.push(BenchRow { case, size, unit, samples: BTreeMap::new() });
            self.rows.len() - 1
        });
        &mut self.rows[at]
    }

    /// Takes the output of `limit`.
    pub fn add_limits(&mut self, output: &str) -> Result<(), String> {
        for text in output.lines() {
            let line: LimitLine =
                serde_json::from_str(text).map_err(|e| format!("'{text}': {e}"))?;
            self.limits.entry((line.limit, line.size)).or_default().push(line.value);
        }
        Ok(())
    }

    /// Returns the limit with which a figure of `program` is compared.
    pub fn limit(&self, program: &str, size: u64) -> Option<f64> {
        let name = match program {
            "latency" if size <= 8 => "ping_pong",
            "bandwidth" => "copy",
            "bidirectional" => "copy_both",
            _ => return None,
        };
        median(self.limits.get(&(name.to_owned(), size))?)
    }

    pub fn failed(&self, case: usize, library: usize) -> usize {
        self.failures.iter().filter(|(c, l, _)| (*c, *l) == (case, library)).count()
    }
}

/// Returns the median, or `None` if there are no samples.
pub fn median(samples: &[f64]) -> Option<f64> {
    let mut sorted = samples.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => None,
        n if n % 2 == 1 => Some(sorted[middle]),
        _ => Some((sorted[middle - 1] + sorted[middle]) / 2.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(&[4.0, 1.0, 2.0, 3.0]), Some(2.5));
    }

    fn results() -> Results {
        let mut results = Results::default();
        for (library, value) in [(0, 3.0), (1, 2.0), (2, 5.0)] {
            let text = format!("noise\n{{\"size\":8,\"value\":{value},\"unit\":\"us\",\"x\":1}}\n");
            results.add(0, library, None, &text).unwrap();
            let text = format!("{{\"size\":8,\"value\":{value},\"unit\":\"GB/s\"}}");
            results.add(1, library, None, &text).unwrap();
        }
        results
    }

    #[test]
    fn the_quickest_batch_counts_if_asked_for() {
        for (quickest, value) in [(false, 3.0), (true, 2.0)] {
            let mut results = Results::new(quickest);
            let line = "{\"size\":8,\"value\":3,\"unit\":\"us\",\"best\":2}";
            results.add(0, 0, None, line).unwrap();
            results
                .add(0, 0, None, &line.replace('3', "9").replace("\"best\":2", "\"best\":8"))
                .unwrap();
            results.add(0, 0, None, line).unwrap();
            assert_eq!(results.rows[0].median(0), Some(value));
        }
    }

    #[test]
    fn the_best_peer_is_the_quickest_or_the_widest() {
        let results = results();
        assert_eq!(results.rows[0].best_median(|l| l != 0), Some(2.0));
        assert_eq!(results.rows[1].best_median(|l| l != 0), Some(5.0));
    }

    #[test]
    fn a_processor_used_is_a_price_and_time_hidden_a_gain() {
        let mut results = Results::default();
        let units =
            [("%", true), ("% hidden", false), ("us waiting", true), ("% available", false)];
        for (unit, _) in units {
            let line = format!("{{\"size\":8,\"value\":4,\"unit\":\"{unit}\"}}");
            results.add(0, 0, None, &line).unwrap();
        }
        // A size may have several figures, which differ in their units.
        let told = results.rows.iter().map(|r| (r.unit.as_str(), r.lower_is_better()));
        assert_eq!(told.collect::<Vec<_>>(), units);
    }

    #[test]
    fn output_without_figures_is_an_error() {
        assert!(Results::default().add(0, 0, None, "hello").is_err());
        assert!(Results::default().add(0, 0, None, "{\"size\":8,\"value\":nan}").is_err());
    }
}
