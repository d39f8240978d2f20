//! Results of stages: their times, their counts of tests, and their failures.

use super::stage::Stage;
use super::tally::Tally;
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;

/// The elapsed time of a stage, and the processor time of its programs, in seconds.
#[derive(Serialize, Deserialize)]
pub struct StageTime {
    pub stage: Stage,
    pub elapsed: f64,
    pub computed: f64,
}

/// A stage that failed.
#[derive(Serialize, Deserialize)]
pub struct StageFailure {
    pub stage: Stage,
    pub error: String,
}

/// The results of all stages of a run.
#[derive(Default, Serialize, Deserialize)]
pub struct StageResults {
    pub times: Vec<StageTime>,
    pub failures: Vec<StageFailure>,
    pub tally: Tally,
}

impl StageResults {
    /// Adds the results of other stages.
    pub fn add(&mut self, other: StageResults) {
        self.times.extend(other.times);
        self.failures.extend(other.failures);
        self.tally.add(other.tally);
    }

    /// Writes the results to a file, for [`StageResults::read`] in another process.
    pub fn write(&self, path: &Path) -> Result<(), String> {
        let text = serde_json::to_string(self).map_err(|e| e.to_string())?;
        fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()))
    }

    /// Reads the results that another process has written.
    pub fn read(path: &Path) -> Result<StageResults, String> {
        let text = fs::read_to_string(path).map_err(|e| e.to_string())?;
        serde_json::from_str(&text).map_err(|e| e.to_string())
    }

    /// Prints the time of each stage, tests that were not run, and the counts.
    pub fn print(&self) {
        println!();
        for StageTime { stage, elapsed, computed } in &self.times {
            let (name, budget) = (format!("{stage:?}"), stage.budget());
            // A stage that takes too long is reported, but does not fail, because the machine may be busy.
            let over = if *elapsed as u64 > budget { "   OVER ITS BUDGET" } else { "" };
            println!(
                "{name:<10} {elapsed:>5.0} s of {budget}, {computed:.0} s of processors{over}"
            );
        }
        for reason in &self.tally.not_run {
            println!("NOT RUN: {reason}");
        }
        let (passed, skipped) = (self.tally.passed, self.tally.not_run.len());
        println!("{passed} passed, {} stages failed, {skipped} skipped", self.failures.len());
    }

    /// Returns an error with the texts of all failures.
    pub fn into_result(self) -> Result<(), String> {
        let text = |failure: &StageFailure| format!("{:?}: {}", failure.stage, failure.error);
        let texts: Vec<_> = self.failures.iter().map(text).collect();
        if texts.is_empty() { Ok(()) } else { Err(texts.join("\n")) }
    }
}
