//! This machine: an MPI program of our own, started by our `mpiexec`, for each place of the grid.
//!
//! ```text
//!   Here                     the command: mpiexec -n RANKS weft tune-rank ... and its figures
//!   Program                  one rank: the library loaded, its functions called by name
//! ```
//! Each algorithm has a communicator, with the info hint that asks for it. They run in turn, several
//! times: a batch of operations back to back, the root moving on by one rank each time, by the last
//! rank's clock. The figure is the median over the batches, of which a stranger's work spoils few.

use super::sweep::{Measure, Place};
use super::workload::ELEMENT;
use crate::tree::{SONAME, Tree};
use clap::Parser;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};
use weft_client::Library;
use weft_collective::{Choice, Operation, Site};

/// Batches of each algorithm.
const BATCHES: usize = 5;

/// Where ranks of one machine are; of multicast only whether there is any matters.
pub fn site(ranks: usize) -> Site {
    Site { together: true, nodes: 1, crowd: ranks, multicast: 4096, same_arithmetic: true }
}

/// Measures by starting jobs.
pub struct Here {
    mpiexec: PathBuf,
    weft: PathBuf,
    library: PathBuf,
    time: u64,
}

impl Here {
    /// `time`: milliseconds for each algorithm at each place.
    pub fn new(time: u64) -> Result<Here, String> {
        let weft = std::env::current_exe().map_err(|e| format!("where this program lies: {e}"))?;
        let mpiexec = weft.with_file_name("mpiexec");
        if !mpiexec.is_file() {
            return Err(format!(
                "no {}: run `cargo xtask install --prefix DIR` and use DIR/bin/weft, or build the \
                 package weft-launch",
                mpiexec.display()
            ));
        }
        Ok(Here { mpiexec, weft, library: Tree::of_this_program()?.library(), time })
    }
}

impl Measure for Here {
    fn site(&mut self, ranks: usize) -> Result<Site, String> {
        Ok(site(ranks))
    }

    fn measure(
        &mut self,
        place: Place,
        choices: &[Choice],
        done: &dyn Fn(),
    ) -> Result<Vec<Result<f64, String>>, String> {
        let names: Vec<String> = choices.iter().map(written).collect();
        let mut command = Command::new(&self.mpiexec);
        // Nothing but the hints chooses: what is not eligible would run as something else.
        for operation in Operation::ALL {
            command.env_remove(format!("WEFT_{}", operation.name().to_ascii_uppercase()));
        }
        command.env("WEFT_MAP", "none");
        command.args(["-n", &place.ranks.to_string()]).arg(&self.weft).arg("tune-rank");
        command.arg(&self.library).arg(place.operation.name()).arg(place.bytes.to_string());
        command.arg(self.time.to_string()).arg(names.join(","));
        let output = command.output().map_err(|e| format!("{}: {e}", self.mpiexec.display()))?;
        choices.iter().for_each(|_| done());
        let Place { operation, ranks, bytes } = place;
        let said = String::from_utf8_lossy(&output.stdout);
        let times: Vec<f64> = said.lines().filter_map(|line| line.parse().ok()).collect();
        if output.status.success() && times.len() == choices.len() {
            return Ok(times.into_iter().map(Ok).collect());
        }
        // One of several spoils all: each alone tells which.
        if choices.len() > 1 {
            let alone = |&choice: &Choice| match self.measure(place, &[choice], &|| {})?.pop() {
                Some(result) => Ok(result),
                None => Err(format!("{choice}: no time")),
            };
            return choices.iter().map(alone).collect();
        }
        let why = String::from_utf8_lossy(&output.stderr);
        let line = why.lines().last().unwrap_or("it said nothing");
        let what = format!("mpiexec -n {ranks} weft tune-rank {operation} {bytes}: {line}");
        Ok(choices.iter().map(|_| Err(what.clone())).collect())
    }
}

/// As a hint: always with the parameter.
fn written(choice: &Choice) -> String {
    match choice.algorithm.parameter {
        Some(_) => format!("{}:{}", choice.algorithm.name, choice.parameter),
        None => choice.algorithm.name.to_owned(),
    }
}

/// `weft tune-rank`: what `weft tune` starts as an MPI program.
#[derive(Parser, Debug)]
pub struct Rank {
    library: PathBuf,
    #[arg(value_parser = Operation::named)]
    operation: Operation,
    bytes: usize,
    /// Milliseconds for each algorithm.
    time: u64,
    #[arg(value_delimiter = ',')]
    choices: Vec<String>,
}

/// Handles and constants of the standard ABI.
const WORLD: usize = 0x101;
const INT: usize = 0x2c1;
const BYTE: usize = 0x207;
const DOUBLE: usize = 0x2d5;
const SUM: usize = 0x21;
const MAX: usize = 0x23;
