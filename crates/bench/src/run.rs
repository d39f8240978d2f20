//! A run of a benchmark, with the distance of its processors.

use serde::Deserialize;
use serde_json::{Value, json};

/// Ratio above which two times belong to different places.
pub const STEP: f64 = 1.5;

/// Half of the round-trip time of a cache line, in us, before a run and after it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LineDistance {
    pub before: f64,
    pub after: f64,
}

impl LineDistance {
    /// Returns the mean distance, or `None` if the processors were moved in between.
    pub fn steady(self) -> Option<f64> {
        let (less, more) = (self.before.min(self.after), self.before.max(self.after));
        (more <= less * STEP).then_some((less + more) / 2.0)
    }

    pub fn describe(self) -> Value {
        json!([self.before, self.after])
    }
}

/// A line of a benchmark's output.
#[derive(Deserialize, Clone, Debug)]
pub struct BenchLine {
    pub size: u64,
    pub value: f64,
    pub unit: String,
    /// Figure of the fastest batch, if there are several.
    pub best: Option<f64>,
}

/// A run of a benchmark.
#[derive(Clone, Debug)]
pub struct BenchRun {
    /// Index into the list of cases.
    pub case: usize,
    /// Index into the list of libraries.
    pub library: usize,
    /// Distance of the processors, or `None` if it was not measured: there is one processor, or the ranks are elsewhere.
    pub distance: Option<LineDistance>,
    pub lines: Vec<BenchLine>,
}
