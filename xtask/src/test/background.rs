//! Stages in the background. Stages that only compute run in a second process at idle priority, while the other stages wait for
//! networks, time limits and virtual machines. The kernel gives the process only time that no other program uses, so the other
//! stages take about as long as without it.

use super::results::{StageFailure, StageResults};
use super::stage::Stage;
use super::tools::text;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// The process that runs stages in the background.
pub struct BackgroundStages {
    stages: Vec<Stage>,
    process: Child,
    /// File of the output of the process.
    output: PathBuf,
    /// File of its results.
    results: PathBuf,
}

impl BackgroundStages {
    /// Starts a process for the stages. Its output goes to a file of the folder `target`.
    pub fn start(stages: Vec<Stage>, target: &Path) -> Result<Self, String> {
        let output = target.join("background.log");
        let results = target.join("background.json");
        let _ = fs::remove_file(&results);
        let file = File::create(&output).map_err(|e| format!("{}: {e}", output.display()))?;
        let copy = file.try_clone().map_err(|e| format!("{}: {e}", output.display()))?;
        let program = std::env::current_exe().map_err(|e| format!("this program: {e}"))?;
        let mut command = Command::new("chrt");
        command.args(["--idle", "0"]).arg(program).args(["test", "--results"]).arg(&results);
        command.arg("--only").arg(names(&stages)).stdin(Stdio::null()).stdout(file).stderr(copy);
        println!("\n==== in the background: {}; output in {}", names(&stages), output.display());
        let process =
            command.spawn().map_err(|e| format!("cannot start '{}': {e}", text(&command)))?;
        Ok(BackgroundStages { stages, process, output, results })
    }

    /// Waits for the end of the process, prints its output and returns the results. A stage without results counts as failed.
    pub fn wait(mut self) -> StageResults {
        println!("\n==== in the background: {}", names(&self.stages));
        let status =
            self.process.wait().map_or_else(|e| e.to_string(), |status| status.to_string());
        match fs::read(&self.output) {
            Ok(output) => println!("{}", String::from_utf8_lossy(&output)),
            Err(e) => println!("{}: {e}", self.output.display()),
        }
        let (mut results, why) = match StageResults::read(&self.results) {
            Ok(results) => (results, String::new()),
            Err(e) => (StageResults::default(), format!(": {e}")),
        };
        for &stage in &self.stages {
            if results.times.iter().all(|time| time.stage != stage) {
                let error =
                    format!("no results from the background, which ended with {status}{why}");
                results.failures.push(StageFailure { stage, error });
            }
        }
        results
    }
}

impl Drop for BackgroundStages {
    /// Ends the process if nobody has waited for it.
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Returns the names of stages as the option `--only` takes them.
fn names(stages: &[Stage]) -> String {
    let names: Vec<_> = stages.iter().map(|stage| format!("{stage:?}").to_lowercase()).collect();
    names.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_without_results_fails() {
        let folder = tempfile::tempdir().unwrap();
        let ended = |script: &str| {
            let (output, results) = (folder.path().join("log"), folder.path().join("json"));
            fs::write(&output, "").unwrap();
            let process = Command::new("sh").args(["-c", script]).current_dir(&folder).spawn();
            let stages = vec![Stage::Lint, Stage::Loom];
            BackgroundStages { stages, process: process.unwrap(), output, results }.wait()
        };
        let missing = ended("exit 3");
        assert_eq!(missing.failures.len(), 2);
        assert!(
            missing.failures[0].error.contains("256") || missing.failures[0].error.contains('3')
        );
        let lint = r#"{"times":[{"stage":"Lint","elapsed":1.5,"computed":2.0}],"failures":[],"tally":{"passed":4,"not_run":[]}}"#;
        let part = ended(&format!("echo '{lint}' > json"));
        assert_eq!(part.tally.passed, 4);
        assert_eq!(part.failures.iter().map(|f| f.stage).collect::<Vec<_>>(), [Stage::Loom]);
    }
}
