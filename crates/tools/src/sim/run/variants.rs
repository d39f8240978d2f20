//! `--what-if`: the program once more for each variant, in one table with the base.

use super::launch::{Launching, bar, launch};
use super::report::RunReport;
use super::text::TextTable;
use super::{SimRunArgs, compute};
use crate::sim::arguments::change;
use crate::sim::failure::SimFailure;
use std::str::FromStr;

/// Changes of a variant: keys and values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunVariant {
    text: String,
    changes: Vec<(String, String)>,
}

impl FromStr for RunVariant {
    type Err = String;

    /// Parses changes that are separated by commas. A part without `=` belongs to the value before it.
    fn from_str(text: &str) -> Result<RunVariant, String> {
        let wrong = |_| "KEY=VALUE, as in nodes=8 or env:WEFT_ALGORITHM=allreduce:RPE".to_owned();
        let mut changes: Vec<(String, String)> = Vec::new();
        for part in text.split(',') {
            match changes.last_mut() {
                Some((_, value)) if !part.contains('=') => {
                    value.push(',');
                    value.push_str(part);
                }
                _ => changes.push(change(part).map_err(wrong)?),
            }
        }
        Ok(RunVariant { text: text.to_owned(), changes })
    }
}

impl std::fmt::Display for RunVariant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

impl RunVariant {
    /// Returns the arguments with the changes. Errors: a value that its key does not allow.
    pub fn apply(&self, base: &SimRunArgs) -> Result<SimRunArgs, SimFailure> {
        let mut args = base.clone();
        for (key, value) in &self.changes {
            change_one(&mut args, key, value).map_err(|why| {
                SimFailure::Request(format!("--what-if {}: {key}={value}: {why}", self.text))
            })?;
        }
        Ok(args)
    }
}

/// Changes one argument.
fn change_one(args: &mut SimRunArgs, key: &str, value: &str) -> Result<(), String> {
    let number = || value.parse().map_err(|_| "a whole number is expected".to_owned());
    if let Some(name) = key.strip_prefix("env:") {
        args.environment.push((name.to_owned(), value.to_owned()));
        return Ok(());
    }
    match key {
        "machine" => args.machine = value.to_owned(),
        "nodes" => args.nodes = Some(number()?),
        "ranks" => args.ranks = number()?,
        "seed" => args.seed = number()? as u64,
        "compute" => args.compute = Some(compute(value)?),
        "jitter" => args.jitter = super::microseconds(value)?,
        _ => args.set.push((key.to_owned(), value.to_owned())),
    }
    Ok(())
}

/// Runs the variants, and returns the table.
pub fn compare(
    base: &SimRunArgs,
    base_report: &RunReport,
    variants: &[SimRunArgs],
) -> Result<String, SimFailure> {
    let heads = ["virtual us", "ratio", "in MPI us", "ratio", "waiting us", "ratio", "variant"];
    let mut table = TextTable::new(&heads);
    table.row(cells(base_report, base_report, "base"));
    for (args, variant) in variants.iter().zip(&base.what_if) {
        let bar = bar(base);
        let done = launch(args, Launching { bar: &bar, arrows: 0, output: None })?;
        bar.finish_and_clear();
        let Some(outcome) = &done.outcome else {
            let none = || "-".to_owned();
            let text = format!("{}: {}", variant.text, done.stopped_text().trim_end());
            table.row((0..6).map(|_| none()).chain([text]));
            continue;
        };
        let report = RunReport::new(args, &done.machine, outcome);
        let name = match done.code {
            0 => variant.text.clone(),
            code => format!("{} (exit code {code})", variant.text),
        };
        table.row(cells(&report, base_report, &name));
    }
    Ok(table
        .text("variants: virtual time, time in MPI and waiting of all ranks, ratios to the base"))
}

fn cells(report: &RunReport, base: &RunReport, name: &str) -> Vec<String> {
    let times = |report: &RunReport| [report.end_us, report.mpi_us, report.waiting_us];
    let pairs = times(report).into_iter().zip(times(base));
    let cells = pairs.flat_map(|(time, of)| {
        let none = || "-".to_owned();
        // A run whose processes have never joined the simulation has no times.
        if report.requests == 0 {
            return [none(), none()];
        }
        let ratio = if of > 0.0 { format!("{:.3}", time / of) } else { none() };
        [format!("{time:.3}"), ratio]
    });
    cells.chain([name.to_owned()]).collect()
}

#[cfg(test)]
mod tests {
    use super::super::report::tests::outcome;
    use super::*;
    use clap::Parser;
    use weft_sim_job::ComputeTime;

    fn base() -> SimRunArgs {
        SimRunArgs::parse_from(["run", "--machine", "ndr", "--ranks", "4", "./program"])
    }

    #[test]
    fn variants_change_arguments() {
        let text = "machine=kini2,nodes=2,rail.0.gap_in=1.5,env:A=x:1,y:2,compute=none,seed=7";
        let args = text.parse::<RunVariant>().unwrap().apply(&base()).unwrap();
        assert_eq!((args.machine.as_str(), args.nodes, args.seed), ("kini2", Some(2), 7));
        assert_eq!(args.set, [("rail.0.gap_in".to_owned(), "1.5".to_owned())]);
        assert_eq!(args.environment, [("A".to_owned(), "x:1,y:2".to_owned())]);
        assert_eq!(args.compute, Some(ComputeTime::None));
        assert!("nodes".parse::<RunVariant>().is_err());
        let wrong = "nodes=x".parse::<RunVariant>().unwrap().apply(&base());
        let why = "--what-if nodes=x: nodes=x: a whole number is expected";
        assert_eq!(wrong.unwrap_err(), SimFailure::Request(why.to_owned()));
    }

    #[test]
    fn ratios_compare_with_the_base() {
        let (base, _) = outcome(10);
        let (longer, _) = outcome(20);
        let cells = cells(&longer, &base, "longer");
        assert_eq!(cells[..3], ["40.000", "2.000", "8.000"]);
        assert_eq!(cells[6], "longer");
    }
}
