//! `weft sim run`: any MPI program on a simulated machine.

//!
//! ```text
//!   SimRunArgs   the command line                                          here
//!   launch       one run: machine, launcher, progress bar                  launch
//!   RunReport    figures of a run, for the text and for --report           report, text
//!   matrix       --matrix: traffic of each pair as CSV and as a heat map   matrix
//!   lanes        --timeline: a lane for each rank                          lanes, spans
//!   variants     --what-if: one run for each variant                       variants
//!   exploration  --explore: one run for each seed                          exploration
//! ```

mod exploration;
mod lanes;
mod launch;
mod matrix;
mod report;
mod spans;
mod text;
mod variants;

use super::arguments::{change, microseconds};
use super::failure::SimFailure;
use super::output_file::{create, unwritten};
use clap::Parser;
use report::RunReport;
use std::fmt;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use variants::RunVariant;
use weft_fabric_sim::{Death, units};
use weft_sim_job::ComputeTime;

/// Arguments of `weft sim run`.
#[derive(Parser, Debug, Clone)]
pub struct SimRunArgs {
    /// Machine by name, or the path of a machine file (with a `/` or a `.` in it).
    #[arg(long, value_name = "NAME|FILE")]
    pub machine: String,
    /// Number of ranks.
    #[arg(long, short = 'n', value_name = "N")]
    pub ranks: usize,
    /// Number of simulated nodes, which must have room for the ranks. Ranks fill them evenly. Default: as the machine file says.
    #[arg(long, value_name = "N")]
    pub nodes: Option<usize>,
    /// Time of the program's computing: none, or a factor on its measured processor time, from 1e-6 to 1e6. Default: 1, or none with
    /// --explore and --delays, so that runs repeat.
    #[arg(long, value_name = "none|FACTOR", value_parser = compute)]
    pub compute: Option<ComputeTime>,
    /// Seed of random choices.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Maximum random delay of each operation, in microseconds.
    #[arg(long, value_name = "US", default_value_t = 0.0, value_parser = microseconds, allow_negative_numbers = true)]
    pub jitter: f64,
    /// Changes a parameter of the machine, as in rail.gap_in=1.5; may be given several times.
    #[arg(long, value_name = "KEY=VALUE", value_parser = change)]
    pub set: Vec<(String, String)>,
    /// Rank that dies, and its time in microseconds; may be given several times.
    #[arg(long, value_name = "RANK@US", value_parser = rank_death)]
    pub kill_rank: Vec<(u64, Death)>,
    /// Rail of a node that dies, and its time in microseconds; may be given several times.
    #[arg(long, value_name = "NODE.RAIL@US", value_parser = rail_death)]
    pub kill_rail: Vec<(u64, Death)>,
    /// Lets the system's clocks and sleeps follow virtual time.
    #[arg(long)]
    pub clocks: bool,
    /// Does not copy the payloads of writes and reads of more than so many bytes: less work and the same times, but wrong results of the
    /// program. Without a number: 32768, or 128 for each rank if that is more.
    #[arg(long, value_name = "BYTES", num_args = 0..=1, require_equals = true, default_missing_value = "usual")]
    pub phantom: Option<PhantomLimit>,
    /// Delays a third of all operations at random, by up to so many microseconds, and loses and repeats datagrams. Replays a run of
    /// --explore, whose default is 100.
    #[arg(long, value_name = "US", value_parser = microseconds, allow_negative_numbers = true)]
    pub delays: Option<f64>,
    /// Writes the report to a file, by its ending as JSON or TOML.
    #[arg(long, value_name = "FILE.json|FILE.toml", value_parser = ending(&["json", "toml"]))]
    pub report: Option<PathBuf>,
    /// Writes operations and bytes of each pair of ranks, by the file's ending as CSV or as a heat map; may be given twice.
    #[arg(long, value_name = "FILE.csv|FILE.svg", value_parser = ending(&["csv", "svg"]))]
    pub matrix: Vec<PathBuf>,
    /// Draws each rank's computing, calls and waits over time.
    #[arg(long, value_name = "FILE.svg", value_parser = ending(&["svg"]))]
    pub timeline: Option<PathBuf>,
    /// Runs the program once more with changes, separated by commas: machine=, nodes=, ranks=, compute=, seed=, jitter=,
    /// env:NAME=VALUE, or a parameter of the machine. May be given several times; prints a table of all runs.
    #[arg(long, value_name = "KEY=VALUE,...", conflicts_with = "explore")]
    pub what_if: Vec<RunVariant>,
    /// Runs the program up to so many times with random delays, from --seed on, and stops at the first run whose exit code or output
    /// differs from that of the first run. The order of lines of output does not count.
    #[arg(long, value_name = "N", conflicts_with_all = ["report", "matrix", "timeline"])]
    pub explore: Option<u64>,
    /// Environment variables of the program, besides those of this process.
    #[arg(skip)]
    pub environment: Vec<(String, String)>,
    /// Shows no progress bar.
    #[arg(long)]
    pub quiet: bool,
    /// Program with its arguments.
    #[arg(required = true, trailing_var_arg = true, allow_hyphen_values = true)]
    pub program: Vec<String>,
}

/// Factors on the processor time. With others, times vanish or leave the range of the simulated clock.
const FACTORS: std::ops::RangeInclusive<f64> = 1e-6..=1e6;

fn compute(text: &str) -> Result<ComputeTime, String> {
    if text == "none" {
        return Ok(ComputeTime::None);
    }
    let factor = text.parse().ok().filter(|factor| FACTORS.contains(factor));
    let factor = factor.ok_or("none, or a factor from 1e-6 to 1e6")?;
    Ok(ComputeTime::Measured { factor })
}

/// Length above which payloads are not copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PhantomLimit {
    /// A length that the library's own data do not reach, which all ranks exchange when a window is created.
    Usual,
    /// This number of bytes.
    Bytes(usize),
}

impl PhantomLimit {
    /// Minimum number of bytes. Shorter payloads may be the library's own.
    const LEAST: usize = 4096;

    /// Returns the number of bytes in a job of `ranks` ranks.
    pub fn bytes(self, ranks: usize) -> usize {
        match self {
            PhantomLimit::Usual => (128 * ranks).max(32 << 10),
            PhantomLimit::Bytes(bytes) => bytes,
        }
    }
}

impl FromStr for PhantomLimit {
    type Err = String;

    fn from_str(text: &str) -> Result<PhantomLimit, String> {
        if text == "usual" {
            return Ok(PhantomLimit::Usual);
        }
        let bytes = text.parse().ok().filter(|&bytes| bytes >= PhantomLimit::LEAST);
        bytes
            .map(PhantomLimit::Bytes)
            .ok_or_else(|| format!("a number of bytes, {} or more", PhantomLimit::LEAST))
    }
}

impl fmt::Display for PhantomLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PhantomLimit::Usual => f.write_str("usual"),
            PhantomLimit::Bytes(bytes) => write!(f, "{bytes}"),
        }
    }
}

/// Parses the time after `@`, in microseconds. Returns picoseconds.
fn at(text: &str) -> Result<u64, String> {
    microseconds(text).map(|us| units::Time::from_us(us).0)
}

fn rank_death(text: &str) -> Result<(u64, Death), String> {
    let wrong = || "RANK@US, as in 3@150".to_owned();
    let (rank, time) = text.split_once('@').ok_or_else(wrong)?;
    Ok((at(time)?, Death::Rank(rank.parse().map_err(|_| wrong())?)))
}

fn rail_death(text: &str) -> Result<(u64, Death), String> {
    let wrong = || "NODE.RAIL@US, as in 0.1@150".to_owned();
    let (place, time) = text.split_once('@').ok_or_else(wrong)?;
    let (node, rail) = place.split_once('.').ok_or_else(wrong)?;
    let number = |text: &str| text.parse().map_err(|_| wrong());
    Ok((at(time)?, Death::Rail { node: number(node)?, rail: number(rail)? }))
}

/// Returns a parser of paths that end with one of `allowed`.
fn ending(
    allowed: &'static [&'static str],
) -> impl Fn(&str) -> Result<PathBuf, String> + Clone + Send + Sync + 'static {
    move |text| {
        let path = PathBuf::from(text);
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        match allowed.contains(&ending) {
            true => Ok(path),
            false => Err(format!("a file that ends with .{}", allowed.join(" or ."))),
        }
    }
}

/// Outcome of `weft sim run`.
pub struct SimRunReport {
    /// Text to print.
    pub text: String,
    /// Exit code of the program.
    pub code: u8,
}

/// Maximum number of arrows of a timeline.
const MOST_ARROWS: usize = 3000;

/// Files of the report. They are created before the run, so that an error in a path is reported at once.
struct ReportFiles<'a> {
    report: Option<(&'a Path, File)>,
    matrices: Vec<(&'a Path, File)>,
    timeline: Option<(&'a Path, File)>,
}

impl ReportFiles<'_> {
    fn create(args: &SimRunArgs) -> Result<ReportFiles<'_>, SimFailure> {
        let open = |path: &'_ PathBuf| create(path);
        let report = args.report.as_ref().map(|path| Ok((path.as_path(), open(path)?)));
        let timeline = args.timeline.as_ref().map(|path| Ok((path.as_path(), open(path)?)));
        let matrices = args.matrix.iter().map(|path| Ok((path.as_path(), open(path)?)));
        Ok(ReportFiles {
            report: report.transpose()?,
            matrices: matrices.collect::<Result<_, SimFailure>>()?,
            timeline: timeline.transpose()?,
        })
    }

    fn is_empty(&self) -> bool {
        self.report.is_none() && self.matrices.is_empty() && self.timeline.is_none()
    }
}

/// Runs the program, and returns the report.
pub fn run(args: &SimRunArgs) -> Result<SimRunReport, SimFailure> {
    if let Some(runs) = args.explore {
        return exploration::explore(args, runs);
    }
    let mut files = ReportFiles::create(args)?;
    let variants = args.what_if.iter().map(|variant| variant.apply(args));
    let variants: Vec<SimRunArgs> = variants.collect::<Result<_, _>>()?;
    // An impossible variant is reported before the first run.
    for (variant, given) in variants.iter().zip(&args.what_if) {
        let why = |why| SimFailure::Request(format!("--what-if {given}: {why}"));
        launch::load(variant).map_err(why)?;
    }
    let arrows = files.timeline.as_ref().map_or(0, |_| MOST_ARROWS + 1);
    let bar = launch::bar(args);
    let done = launch::launch(args, launch::Launching { bar: &bar, arrows, output: None })?;
    bar.finish_and_clear();
    let Some(outcome) = &done.outcome else {
        let mut text = done.stopped_text();
        if !files.is_empty() || !variants.is_empty() {
            text += "weft sim: no report files and no variants, because the run did not come to its end\n";
        }
        return Ok(SimRunReport { text, code: done.code });
    };
    let report = RunReport::new(args, &done.machine, outcome);
    let mut text = text::text(&report);
    if let Some((path, file)) = &mut files.report {
        let written = file.write_all(report.file_text(path).as_bytes());
        written.map_err(|error| unwritten(path, &error))?;
    }
    for (path, file) in &mut files.matrices {
        matrix::write(path, file, &outcome.account).map_err(|error| unwritten(path, &error))?;
    }
    if let Some((path, file)) = &mut files.timeline {
        let picture = lanes::picture(&report, outcome);
        file.write_all(picture.as_bytes()).map_err(|error| unwritten(path, &error))?;
    }
    if !variants.is_empty() {
        text += "\n";
        text += &variants::compare(args, &report, &variants)?;
    }
    Ok(SimRunReport { text, code: done.code })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deaths_and_factors_are_parsed() {
        assert_eq!(rank_death("3@1.5"), Ok((1_500_000, Death::Rank(3))));
        assert_eq!(rail_death("1.0@2"), Ok((2_000_000, Death::Rail { node: 1, rail: 0 })));
        assert!(rank_death("3").is_err() && rail_death("3@1").is_err());
        assert_eq!(compute("none"), Ok(ComputeTime::None));
        assert_eq!(compute("2"), Ok(ComputeTime::Measured { factor: 2.0 }));
        assert_eq!(ending(&["csv", "svg"])("a/b.svg"), Ok(PathBuf::from("a/b.svg")));
        assert_eq!(
            ending(&["csv", "svg"])("svg"),
            Err("a file that ends with .csv or .svg".to_owned())
        );
        assert_eq!("4096".parse(), Ok(PhantomLimit::Bytes(4096)));
        assert!("4095".parse::<PhantomLimit>().is_err());
        assert_eq!(PhantomLimit::Usual.bytes(1024), 131_072);
        for wrong in ["1e20", "1e7", "1e-7", "inf", "-1"] {
            assert_eq!(compute(wrong), Err("none, or a factor from 1e-6 to 1e6".to_owned()));
        }
        assert!(compute("1e6").is_ok() && compute("1e-6").is_ok());
        assert!(compute("0").is_err() && compute("NaN").is_err() && compute("x").is_err());
    }
}
