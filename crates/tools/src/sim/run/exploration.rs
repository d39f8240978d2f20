//! `--explore`: the program with many seeds and random delays, until a run differs from the first.

use super::launch::{Launching, launch};
use super::report::us;
use super::{SimRunArgs, SimRunReport};
use crate::sim::failure::SimFailure;
use indicatif::{ProgressBar, ProgressStyle};
use std::fs::File;
use std::io::{Read as _, Seek as _};
use weft_fabric_sim::Death;
use weft_sim_job::ComputeTime;

/// Maximum random delay in microseconds, if the command line has none.
const DELAYS: f64 = 100.0;

/// Exit code if a run differs and the exit codes of both runs are 0.
const DIFFERS: u8 = 1;

/// Maximum number of lines of an output that are printed.
const MOST_LINES: usize = 20;

/// Result of one run.
#[derive(Debug, Clone, PartialEq, Eq)]
struct RunResult {
    code: u8,
    /// Lines of standard output, sorted: the order of lines of different ranks is an accident.
    lines: Vec<String>,
    /// Standard error, which is not compared.
    errors: String,
}

impl RunResult {
    fn is_same(&self, other: &RunResult) -> bool {
        self.code == other.code && self.lines == other.lines
    }
}

/// Runs the program up to `runs` times.
pub fn explore(args: &SimRunArgs, runs: u64) -> Result<SimRunReport, SimFailure> {
    let request = |why: &str| Err(SimFailure::Request(why.to_owned()));
    if let Some(ComputeTime::Measured { .. }) = args.compute {
        return request("--explore needs --compute none: with measured times no run repeats");
    }
    if runs < 2 {
        return request("--explore: at least 2 runs, since each is compared with the first");
    }
    let mut args = args.clone();
    args.delays.get_or_insert(DELAYS);
    let bar = match args.quiet {
        true => ProgressBar::hidden(),
        false => ProgressBar::new(runs),
    };
    let style = ProgressStyle::with_template("{bar:30} {pos}/{len} runs, {eta} left; {msg}");
    let bar = bar.with_style(style.expect("the template is right"));
    let first_seed = args.seed;
    let first = run_one(&args, &bar)?;
    bar.inc(1);
    if first.code != 0 {
        bar.finish_and_clear();
        return Ok(SimRunReport { text: failure(&args, &first), code: first.code });
    }
    for seed in (1..runs).map(|run| first_seed.wrapping_add(run)) {
        args.seed = seed;
        let result = run_one(&args, &bar)?;
        bar.inc(1);
        if !result.is_same(&first) {
            bar.finish_and_clear();
            let code = if result.code != 0 { result.code } else { DIFFERS };
            args.seed = first_seed;
            return Ok(SimRunReport { text: difference(&args, seed, &first, &result), code });
        }
    }
    bar.finish_and_clear();
    let delays = args.delays.unwrap_or(DELAYS);
    let last = first_seed.wrapping_add(runs - 1);
    let lines = first.lines.len();
    let text = format!(
        "{runs} runs with delays of up to {delays} us, seeds {first_seed} to {last}: all succeeded with the \
         same output of {lines} lines\n"
    );
    Ok(SimRunReport { text, code: first.code })
}

/// Runs the program with one seed.
fn run_one(args: &SimRunArgs, bar: &ProgressBar) -> Result<RunResult, SimFailure> {
    let system = |error: std::io::Error| SimFailure::Run(format!("a file for output: {error}"));
    let file = || tempfile::tempfile().map_err(system);
    let mut files = [file()?, file()?];
    let [stdout, stderr] = &files;
    let output = [stdout.try_clone().map_err(system)?, stderr.try_clone().map_err(system)?];
    let done = launch(args, Launching { bar, arrows: 0, output: Some(output) })?;
    let [stdout, stderr] = files.each_mut().map(text_of);
    let mut lines: Vec<String> = stdout.map_err(system)?.lines().map(str::to_owned).collect();
    lines.sort();
    let errors = stderr.map_err(system)? + &done.stopped_text();
    Ok(RunResult { code: done.code, lines, errors })
}

fn text_of(file: &mut File) -> std::io::Result<String> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns the lines of `a` that `b` does not have. Both are sorted.
fn only(a: &[String], b: &[String]) -> Vec<String> {
    let mut rest: Vec<&String> = b.iter().collect();
    let mut own = Vec::new();
    for line in a {
        match rest.binary_search(&line) {
            Ok(place) => drop(rest.remove(place)),
            Err(_) => own.push(line.clone()),
        }
    }
    own
}

/// Describes a first run that failed.
fn failure(args: &SimRunArgs, first: &RunResult) -> String {
    let RunResult { code, errors, .. } = first;
    let replay = replay(args, args.seed);
    format!(
        "{errors}the first run failed with exit code {code}: seed {}\nreplay: {replay}\n",
        args.seed
    )
}

/// Describes a run that differs from the first.
fn difference(args: &SimRunArgs, seed: u64, first: &RunResult, other: &RunResult) -> String {
    let mut text = format!("seed {seed} differs from seed {}\n", args.seed);
    if first.code != other.code {
        text += &format!("exit code {} instead of {}\n", other.code, first.code);
    }
    let mut show = |title: String, lines: &[String]| {
        if lines.is_empty() {
            return;
        }
        text += &format!("{title}\n");
        lines.iter().take(MOST_LINES).for_each(|line| text += &format!("  {line}\n"));
        if lines.len() > MOST_LINES {
            text += &format!("  and {} more\n", lines.len() - MOST_LINES);
        }
    };
    show(format!("lines of seed {seed} only:"), &only(&other.lines, &first.lines));
    show(format!("lines of seed {} only:", args.seed), &only(&first.lines, &other.lines));
    let errors: Vec<String> = other.errors.lines().map(str::to_owned).collect();
    show(format!("standard error of seed {seed}:"), &errors);
    text += &format!("replay: {}\n", replay(args, seed));
    text
}

/// Returns the command line that runs the program with one seed.
fn replay(args: &SimRunArgs, seed: u64) -> String {
    let mut words = vec!["weft sim run --machine".to_owned(), quoted(&args.machine)];
    let mut add = |name: &str, value: String| words.extend([name.to_owned(), quoted(&value)]);
    add("--ranks", args.ranks.to_string());
    if let Some(nodes) = args.nodes {
        add("--nodes", nodes.to_string());
    }
    for (key, value) in &args.set {
        add("--set", format!("{key}={value}"));
    }
    if args.jitter > 0.0 {
        add("--jitter", args.jitter.to_string());
    }
    for &(at, death) in args.kill_rank.iter().chain(&args.kill_rail) {
        let us = us(at);
        match death {
            Death::Rank(rank) => add("--kill-rank", format!("{rank}@{us}")),
            Death::Rail { node, rail } => add("--kill-rail", format!("{node}.{rail}@{us}")),
        }
    }
    add("--delays", args.delays.unwrap_or(DELAYS).to_string());
    add("--seed", seed.to_string());
    words.extend(args.phantom.map(|limit| format!("--phantom={limit}")));
    words.push("--".to_owned());
    words.extend(args.program.iter().map(|word| quoted(word)));
    words.join(" ")
}

/// Quotes a word for a shell, if it has to be quoted.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./=:,@+".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    fn result(code: u8, lines: &[&str]) -> RunResult {
        let lines = lines.iter().map(|&line| line.to_owned()).collect();
        RunResult { code, lines, errors: "warning\n".to_owned() }
    }

    fn args(more: &[&str]) -> SimRunArgs {
        let words = ["run", "--machine", "ndr", "--ranks", "3"].iter().chain(more);
        SimRunArgs::parse_from(words.chain(&["--", "./a b", "x'y"]))
    }

    #[test]
    fn the_replay_has_all_that_a_run_depends_on() {
        let more = ["--nodes", "2", "--kill-rank", "1@5", "--kill-rail", "0.1@2.5"];
        let args = args(
            &[&more[..], &["--set", "rail.gap_in=1.5", "--delays", "7", "--phantom"]].concat(),
        );
        let text = replay(&args, 9);
        let expected = "weft sim run --machine ndr --ranks 3 --nodes 2 --set rail.gap_in=1.5 \
                        --kill-rank 1@5 --kill-rail 0.1@2.5 --delays 7 --seed 9 --phantom=usual -- './a b' 'x'\\''y'";
        assert_eq!(text, expected);
    }

    #[test]
    fn a_difference_names_lines_and_codes() {
        let (first, other) = (result(0, &["a", "a", "b"]), result(3, &["a", "b", "c"]));
        let failed = failure(&args(&[]), &other);
        assert!(
            failed.starts_with("warning\nthe first run failed with exit code 3: seed 1\nreplay: ")
        );
        assert!(!first.is_same(&other) && first.is_same(&result(0, &["a", "a", "b"])));
        let text = difference(&args(&[]), 4, &first, &other);
        for part in [
            "seed 4 differs from seed 1\n",
            "exit code 3 instead of 0\n",
            "lines of seed 4 only:\n  c\n",
            "lines of seed 1 only:\n  a\nstandard",
            "standard error of seed 4:\n  warning\n",
            "--delays 100 --seed 4 --",
        ] {
            assert!(text.contains(part), "{part:?} in {text}");
        }
    }

    #[test]
    fn measured_times_are_refused() {
        let refused = explore(&args(&["--compute", "1"]), 5).err().unwrap().to_string();
        assert!(refused.starts_with("--explore needs --compute none"), "{refused}");
        assert!(explore(&args(&[]), 1).err().unwrap().to_string().contains("at least 2"));
    }
}
