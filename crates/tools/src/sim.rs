//! `weft sim`: a communication pattern on a simulated cluster, as a table and as a picture.
//!
//! ```text
//!   Args       the command line                                    here
//!   Numbers    2,4,8 and 2..16 and 2..1024x2                       numbers
//!   Study      which runs make the table                           study
//!   measure    one run in virtual time                             measure
//!   table      rows and columns, and the CSV file                  table
//!   fit        a machine file, fitted to measurements                 fit
//!   run        any MPI program on a simulated machine                 run
//!   timeline   one run as an SVG: lanes, activities, messages         timeline
//! ```

mod arguments;
mod failure;
pub mod fit;
pub mod measure;
mod numbers;
mod output_file;
pub mod run;
mod study;
mod table;
mod timeline;

pub use failure::SimFailure;
pub use numbers::NumberList;

use arguments::{change, microseconds};
use clap::{Parser, Subcommand};
use measure::Conditions;
use output_file::{create, unwritten};
use std::path::PathBuf;
use std::rc::Rc;
use study::StudyTable;
use weft_fabric_sim::{Machine, machine, units};
use weft_patterns::ALL;

/// Arguments of `weft sim`.
#[derive(Parser, Debug)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct SimArgs {
    /// Another kind of simulation.
    #[command(subcommand)]
    pub action: Option<SimAction>,
    /// Pattern to run; `--list` shows them.
    #[arg(required_unless_present = "list")]
    pub pattern: Option<String>,
    /// List patterns and machines.
    #[arg(long)]
    pub list: bool,
    /// Machine by name, or the path of a machine file (with a `/` or a `.` in it).
    #[arg(long, value_name = "NAME|FILE", required_unless_present = "list")]
    pub machine: Option<String>,
    /// Numbers of ranks: 2,4,8 or 2..16 or 2..1024x2. Default: those of the machine, up to 64.
    #[arg(long, value_name = "NUMBERS", allow_negative_numbers = true)]
    pub ranks: Option<NumberList>,
    /// Payload of one message, or of one rank's block: 8,1024 or 8..65536x2. Default: 8.
    #[arg(long, value_name = "NUMBERS", allow_negative_numbers = true)]
    pub bytes: Option<NumberList>,
    /// Algorithms of the pattern. Default: those that suit any machine.
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    pub algorithm: Vec<String>,
    /// Number of ranks that send to one, for patterns that have a hot spot. Default: all other ranks.
    #[arg(long, value_name = "NUMBERS", allow_negative_numbers = true)]
    pub fan_in: Option<NumberList>,
    /// Repetitions that are measured.
    #[arg(long, value_name = "N", default_value_t = 20)]
    pub repeat: usize,
    /// Repetitions before the measured ones.
    #[arg(long, value_name = "N", default_value_t = 3)]
    pub warm_up: usize,
    /// All ranks begin each repetition at once; else one repetition follows the other.
    #[arg(long)]
    pub isolated: bool,
    /// The same seed gives the same figures, bit for bit.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub seed: u64,
    /// Maximum random delay of each operation, in microseconds.
    #[arg(long, value_name = "US", default_value_t = 0.0, value_parser = microseconds, allow_negative_numbers = true)]
    pub jitter: f64,
    /// Changes a parameter of the machine, as in rail.gap_in=1.5; may be given several times.
    #[arg(long, value_name = "KEY=VALUE", value_parser = change)]
    pub set: Vec<(String, String)>,
    /// Writes the figures to a file.
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Draws one repetition of the last run: each rank's activity over time.
    #[arg(long, value_name = "FILE.svg")]
    pub timeline: Option<PathBuf>,
}

/// Simulations of other things than patterns.
#[derive(Subcommand, Debug)]
pub enum SimAction {
    /// Write a machine file of this host, or of two hosts and their network, fitted to measurements.
    Fit(fit::FitArgs),
    /// Run any MPI program on a simulated machine, unmodified.
    Run(Box<run::SimRunArgs>),
}

/// Runs the study and returns the text to print.
pub fn run(args: &SimArgs) -> Result<String, SimFailure> {
    if args.list {
        return Ok(list());
    }
    let name = args.machine.as_deref().unwrap_or_default();
    let machine = Machine::load_with(name, &args.set);
    let machine = Rc::new(machine.map_err(|e| SimFailure::Request(e.to_string()))?);
    let study = StudyTable::new(args, &machine)?;
    let drawn = args.timeline.as_ref().map(|_| timeline::check(&study)).transpose()?;
    // Files are created before the simulation, so that an error in a path is reported at once.
    let csv = args.csv.as_deref().map(create).transpose()?;
    let picture = args.timeline.as_deref().map(create).transpose()?;
    let jitter = units::Time::from_us(args.jitter);
    let conditions = Conditions { changes: args.set.clone(), seed: args.seed, jitter };
    let figures = study.run(&machine, &conditions)?;
    let mut text = table::print(&study, &figures, &machine, &conditions);
    if let (Some(file), Some(path)) = (csv, &args.csv) {
        let written = table::write_csv(&study, &figures, &machine, &conditions, file);
        written.map_err(|e| unwritten(path, &e))?;
    }
    if let (Some(plan), Some(file), Some(path)) = (drawn, picture, &args.timeline) {
        timeline::draw(&machine, &plan, &conditions, file, path)?;
        text += &format!("\ntimeline of one repetition on {} ranks: ", plan.ranks);
        text += &format!("{}\n", path.display());
    }
    Ok(text)
}

/// Lists patterns with their algorithms, and machines.
fn list() -> String {
    let mut text = String::from("patterns\n");
    for about in ALL {
        text += &format!("  {:<17} {}\n", about.name, about.what);
        for algorithm in about.algorithms() {
            text += &format!("  {:<17}   {:<12} {}\n", "", algorithm.name, algorithm.about);
        }
    }
    text += "\nmachines\n";
    for (name, source) in machine::NAMES {
        let machine = Machine::parse(name, source).expect("the library's own files are right");
        let (nodes, each) = (machine.nodes.0, machine.ranks_per_node.0);
        let size = format!("{nodes} x {each}");
        text += &format!("  {name:<17} {size:<12}  {}\n", machine.about);
    }
    text += "\nThe size of a machine is nodes x ranks on each.\n";
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_and_times_are_parsed() {
        let parsed = change("rail.gap_in = 1.5");
        assert_eq!(parsed, Ok(("rail.gap_in".to_owned(), "1.5".to_owned())));
        for wrong in ["rail.gap_in", "=1", "rail.gap_in="] {
            assert_eq!(change(wrong), Err("KEY=VALUE, as in rail.gap_in=1.5".to_owned()));
        }
        assert_eq!(microseconds("0.5"), Ok(0.5));
        for wrong in ["-1", "NaN", "inf", "1e7", "soon"] {
            let allowed = "a number of microseconds from 0 to 1000000";
            assert_eq!(microseconds(wrong), Err(allowed.to_owned()));
        }
    }

    #[test]
    fn all_patterns_and_machines_are_listed() {
        let list = list();
        for name in ALL.iter().map(|a| a.name).chain(machine::NAMES.iter().map(|(name, _)| *name)) {
            assert!(list.lines().any(|line| line.starts_with(&format!("  {name} "))), "{name}");
        }
    }
}
