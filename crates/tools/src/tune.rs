//! `weft tune`: the best algorithm for each number of ranks and bytes, found by running all algorithms.
//!
//! ```text
//!   grid        the operations, numbers of ranks, sizes, algorithms, parameters      tune/grid
//!   sweep       measures all, makes the map                                          tune/sweep
//!   simulated   a machine file in virtual time                                       tune/simulated
//!   real        this machine, by mpiexec                                             tune/real
//!   ping        messages on this machine, for `weft explain --check`                 tune/real/ping
//!   table, draw a map as text and as pictures                                        tune/table, draw
//! ```

mod draw;
pub mod grid;
pub mod real;
mod simulated;
pub(crate) mod sweep;
mod table;
pub mod workload;

use crate::sim::{NumberList, SimFailure};
use clap::Parser;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use sweep::{MeasurementGrid, sweep};
use weft_collective::{CollectiveKind, SelectionMap};
use weft_fabric_sim::Machine;

/// Arguments of `weft tune`.
#[derive(Parser, Debug)]
pub struct TuneArgs {
    /// A simulated machine by name, or the path of a machine file. Without it: this machine.
    #[arg(long, value_name = "NAME|FILE")]
    pub machine: Option<String>,
    /// Operations, as in barrier,allreduce. Default: all.
    #[arg(value_name = "OPERATION", value_delimiter = ',', value_parser = CollectiveKind::named)]
    pub operations: Vec<CollectiveKind>,
    /// Numbers of ranks: 2,4,8 or 2..16. Default: simulated, some up to 64; here, 2, 4 and 8.
    #[arg(long, value_name = "NUMBERS")]
    pub ranks: Option<NumberList>,
    /// Bytes, as `weft info --algorithms` explains them: 8,1024 or 8..65536x2. Default: 8..2097152x4.
    #[arg(long, value_name = "NUMBERS")]
    pub bytes: Option<NumberList>,
    /// File for the map.
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Directory for a picture of each operation, OPERATION.svg: ranks across, bytes up.
    #[arg(long, value_name = "DIR")]
    pub draw: Option<PathBuf>,
    /// Measures nothing: prints and draws this map.
    #[arg(long, value_name = "NAME|FILE", conflicts_with_all = ["machine", "ranks", "bytes", "out"])]
    pub map: Option<String>,
    /// On this machine: milliseconds for each algorithm at each place.
    #[arg(long, value_name = "MS", default_value_t = 20, conflicts_with = "machine")]
    pub time: u64,
}

/// Tunes and returns the text to print.
pub fn run(args: &TuneArgs) -> Result<String, SimFailure> {
    if let Some(name) = &args.map {
        let map = crate::explain::map(name).map_err(SimFailure::Request)?;
        return shown(args, &map, &[]);
    }
    let operations = if args.operations.is_empty() {
        CollectiveKind::ALL.to_vec()
    } else {
        args.operations.clone()
    };
    // The file is tested before the measurements, so that an error in its path is reported at once.
    if let Some(path) = &args.out {
        std::fs::OpenOptions::new()
            .append(true)
            .create(true)
            .open(path)
            .map_err(|e| unwritten(path, &e))?;
    }
    let bytes = args.bytes.as_ref().map_or(grid::BYTES.to_vec(), |b| b.0.clone());
    let swept = match &args.machine {
        Some(name) => {
            let machine = Machine::load(name).map_err(|e| SimFailure::Request(e.to_string()))?;
            let ranks = simulated_ranks(args, &machine)?;
            let name = machine.name.clone();
            let mut measure =
                simulated::SimulatedTuning { machine: Rc::new(machine), found: Rc::default() };
            sweep(&name, &MeasurementGrid { operations, ranks, bytes }, &mut measure)
        }
        None => {
            let ranks = args.ranks.as_ref().map_or(vec![2, 4, 8], |r| r.0.clone());
            if let Some(wrong) = ranks.iter().find(|&&n| n < 2) {
                return Err(SimFailure::Request(format!("--ranks {wrong}: at least 2")));
            }
            let mut measure = real::Here::new(args.time, &[], real::SentData::Written)
                .map_err(SimFailure::Run)?;
            sweep("shm", &MeasurementGrid { operations, ranks, bytes }, &mut measure)
        }
    };
    let swept = swept.map_err(SimFailure::Run)?;
    if let Some(path) = &args.out {
        std::fs::write(path, written(args, &swept.map)).map_err(|e| unwritten(path, &e))?;
    }
    shown(args, &swept.map, &swept.failures)
}

/// Returns the text of the map, with a comment that describes how it was measured.
fn written(args: &TuneArgs, map: &SelectionMap) -> String {
    let machine = args.machine.as_ref().map_or(String::new(), |name| format!(" --machine {name}"));
    let how = if args.machine.is_some() { "simulated" } else { "measured" };
    format!("# {how} by `weft tune{machine}`; see maps/README.md\n{map}")
}

/// Returns the table, and lists the pictures and the failed measurements.
fn shown(args: &TuneArgs, map: &SelectionMap, failures: &[String]) -> Result<String, SimFailure> {
    let asked = |o: &CollectiveKind| args.operations.is_empty() || args.operations.contains(o);
    let mut text = table::print(map, asked);
    if let Some(path) = &args.out {
        text += &format!("\nmap: {}\n", path.display());
    }
    if let Some(dir) = &args.draw {
        std::fs::create_dir_all(dir).map_err(|e| unwritten(dir, &e))?;
        for operation in CollectiveKind::ALL.into_iter().filter(asked) {
            let Some(svg) = draw::svg(map, operation).map_err(SimFailure::Run)? else { continue };
            let path = dir.join(format!("{operation}.svg"));
            std::fs::write(&path, svg).map_err(|e| unwritten(&path, &e))?;
            text += &format!("picture: {}\n", path.display());
        }
    }
    for failure in failures {
        text += &format!("not measured: {failure}\n");
    }
    Ok(text)
}

fn unwritten(path: &Path, error: &dyn std::fmt::Display) -> SimFailure {
    SimFailure::Run(format!("cannot write {}: {error}", path.display()))
}

fn simulated_ranks(args: &TuneArgs, machine: &Machine) -> Result<Vec<usize>, SimFailure> {
    let most = machine.nodes.0.saturating_mul(machine.ranks_per_node.0);
    let Some(given) = &args.ranks else {
        let mut ranks: Vec<usize> = grid::RANKS.iter().copied().filter(|&n| n <= most).collect();
        if !ranks.contains(&most) && most < 2 * grid::RANKS[grid::RANKS.len() - 1] {
            ranks.push(most);
        }
        return Ok(ranks);
    };
    match given.0.iter().find(|&&n| n < 2 || n > most) {
        Some(n) => Err(SimFailure::Request(format!(
            "--ranks {n}: {} has room for 2 to {most}",
            machine.name
        ))),
        None => Ok(given.0.clone()),
    }
}
