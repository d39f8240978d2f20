//! The documents' applications as the C programs of bench/ in virtual time. Their times must be those of the same programs in the
//! simulator itself: `cargo figures` and `weft sim halo`.

use super::c_programs::folder;
use super::sim_programs::{SimRun, mean_of};
use super::tally::{Tally, cargo};
use super::tools::quiet;
use crate::root;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Greatest difference, as a part of the figure.
const DIFFERENCE: f64 = 0.02;

/// Figures of a program of bench/ that weft-figures simulates, too.
struct BenchFigure {
    /// Points of curves, as `weft-figures --point` takes them, each with the name of the value in the program's output.
    points: &'static [(&'static str, BenchValue)],
    program: &'static str,
    machine: &'static str,
    ranks: usize,
    args: &'static [&'static str],
    /// Changes of the machine.
    changes: &'static [&'static str],
    settings: &'static [(&'static str, &'static str)],
}

/// Value in the output of a program of bench/.
#[derive(Clone, Copy)]
enum BenchValue {
    /// Time of an operation, as the mean over ranks.
    Time,
    /// Time in waits.
    Waiting,
}

/// Changes for the figures of Rendezvous, in which all memory is registered before.
const REGISTERED: &[&str] = &["host.registration=0", "host.registration_page=0"];

/// Arguments of programs that run an operation once before it is timed.
const ONCE: [&str; 5] = ["--document", "--warm", "1", "--iterations", "1"];

/// Returns the figures of Cannon's multiplication.
const fn cannon(
    program: &'static str,
    points: &'static [(&'static str, BenchValue)],
) -> BenchFigure {
    BenchFigure {
        points,
        program,
        machine: "rendezvous",
        ranks: 4,
        args: &["--flops", "2150", "--sizes", "512"],
        changes: REGISTERED,
        settings: &[("WEFT_EAGER", "8191"), ("OMP_NUM_THREADS", "4")],
    }
}

/// Returns the figure of a step of the halo exchange by this design of fences.
const fn halo(
    points: &'static [(&'static str, BenchValue)],
    settings: &'static [(&'static str, &'static str)],
) -> BenchFigure {
    let args = &["--sizes", "8K", "--warm", "4", "--iterations", "20"];
    BenchFigure {
        points,
        program: "halo_onesided",
        machine: "fence",
        ranks: 8,
        args,
        changes: &[],
        settings,
    }
}

/// Returns the figure of a solution by conjugate gradients.
const fn solution(
    points: &'static [(&'static str, BenchValue)],
    settings: &'static [(&'static str, &'static str)],
    changes: &'static [&'static str],
) -> BenchFigure {
    // The machine file has no rate of arithmetic, which then is 1000.
    let args = &["--flops", "1000", "--sizes", "64"];
    BenchFigure { points, program: "cg", machine: "kini1", ranks: 8, args, changes, settings }
}

/// Change of the machine for algorithms by RDMA writes: the document takes the order within a packet for granted.
const IN_ORDER: &[&str] = &["rail.in_order=true"];

const FIGURES: [BenchFigure; 9] = [
    cannon(
        "cannon",
        &[
            ("rendezvous-11a;no-async;512", BenchValue::Time),
            ("rendezvous-11a;MPI_Wait, no-async;512", BenchValue::Waiting),
        ],
    ),
    cannon(
        "cannon_threads",
        &[
            ("rendezvous-10;no-async;512", BenchValue::Time),
            ("rendezvous-10;MPI_Wait, no-async;512", BenchValue::Waiting),
        ],
    ),
    halo(&[("fence-halo;Fence-2S;8", BenchValue::Time)], &[("WEFT_FENCE", "2S")]),
    halo(&[("fence-halo;Fence-1S;8", BenchValue::Time)], &[("WEFT_FENCE", "1S")]),
    halo(&[("fence-halo;Fence-RI;8", BenchValue::Time)], &[("WEFT_FENCE", "RI")]),
    halo(&[("fence-halo;ACK (ours);8", BenchValue::Time)], &[("WEFT_FENCE", "ACK")]),
    solution(&[("kini-6.1a;MPI-GB;8", BenchValue::Time)], &[("WEFT_ALLREDUCE", "MPI-GB")], &[]),
    solution(&[("kini-6.1a;RPE;8", BenchValue::Time)], &[("WEFT_ALLREDUCE", "RPE")], IN_ORDER),
    solution(&[("kini-6.1a;RGM;8", BenchValue::Time)], &[("WEFT_ALLREDUCE", "RGM")], IN_ORDER),
];

/// Compares all figures.
pub fn run(tally: &mut Tally) -> Result<(), String> {
    compare_all(&crate::demo::install()?, tally)
}

fn compare_all(prefix: &Path, tally: &mut Tally) -> Result<(), String> {
    let simulated = simulated()?;
    for figure in &FIGURES {
        let program = built(prefix, figure.program)?;
        let output = figure.output(prefix, &program)?;
        for &(point, value) in figure.points {
            let rust = simulated.get(point).copied();
            let rust = rust.ok_or_else(|| format!("weft-figures: no value of {point}"))?;
            let c = value.of(&output);
            let c = c.ok_or_else(|| format!("{}: no value in\n{output}", figure.program))?;
            compare(&format!("{point}, by {}", figure.program), c, rust)?;
        }
        tally.passed += 1;
    }
    halo_of_messages(prefix)?;
    tally.passed += 1;
    Ok(())
}

fn compare(what: &str, c: f64, rust: f64) -> Result<(), String> {
    let line = format!("{what}: {c:.3} us in C, {rust:.3} us in Rust");
    if (c / rust - 1.0).abs() > DIFFERENCE {
        return Err(line);
    }
    println!("ok   {line}");
    Ok(())
}

impl BenchValue {
    /// Returns the value in a program's output.
    fn of(self, output: &str) -> Option<f64> {
        let (unit, key) = match self {
            BenchValue::Time => ("us", "rank_mean_us"),
            BenchValue::Waiting => ("us waiting", "value"),
        };
        let rows = output.lines().filter_map(|line| serde_json::from_str(line).ok());
        let mut rows = rows.filter(|row: &serde_json::Value| row["unit"] == unit);
        rows.next()?[key].as_f64()
    }
}

impl BenchFigure {
    fn output(&self, prefix: &Path, program: &Path) -> Result<String, String> {
        let args: Vec<String> = ONCE.iter().chain(self.args).map(|&arg| arg.to_owned()).collect();
        let changes = self.changes.iter().flat_map(|&change| ["--set", change]);
        let options: Vec<&str> = ["--clocks"].into_iter().chain(changes).collect();
        let own = |&(name, value): &(&str, &str)| (name.to_owned(), value.to_owned());
        let settings: Vec<(String, String)> = self.settings.iter().map(own).collect();
        let run = SimRun {
            ranks: self.ranks,
            nodes: self.ranks,
            options: &options,
            settings: &settings,
            ..SimRun::on(self.machine, program, &args)
        };
        run.expect(prefix, 0, &[])
    }
}

/// Simulates all points by `cargo figures`. Returns their values.
fn simulated() -> Result<BTreeMap<String, f64>, String> {
    let mut command = cargo();
    command.args(["run", "--quiet", "--package", "weft-figures", "--"]);
    let points = FIGURES.iter().flat_map(|figure| figure.points);
    command.args(points.flat_map(|&(point, _)| ["--point", point]));
    let output = quiet(&mut command)?;
    let row = |line: &str| {
        let (point, value) = line.rsplit_once(';')?;
        Some((point.to_owned(), value.parse().ok()?))
    };
    Ok(output.lines().filter_map(row).collect())
}

/// Builds a program of bench/.
fn built(prefix: &Path, name: &str) -> Result<PathBuf, String> {
    let program = folder()?.join(format!("figure-{name}"));
    let mut command = Command::new(prefix.join("bin/mpicc"));
    command.args(["-O2", "-Wall", "-Werror"]);
    if name.ends_with("_threads") {
        command.arg("-fopenmp");
    }
    command.arg(root().join("bench").join(name).with_extension("c"));
    quiet(command.arg("-o").arg(&program).arg("-lm"))?;
    Ok(program)
}

/// Compares the halo exchange by messages with the pattern. At some sizes between these, such as 4096 bytes on rendezvous, the time of a
/// step depends on whether all ranks begin at the same picosecond.
fn halo_of_messages(prefix: &Path) -> Result<(), String> {
    let program = built(prefix, "halo_twosided")?;
    let sizes = ["64", "512", "8192"].map(str::to_owned);
    let args = ["--document", "--warm", "4", "--iterations", "20", "--sizes"].map(str::to_owned);
    let args: Vec<String> = args.into_iter().chain([sizes.join(",")]).collect();
    for machine in ["ndr", "rendezvous"] {
        let run = SimRun { ranks: 4, nodes: 4, ..SimRun::on(machine, &program, &args) };
        let output = SimRun { options: &["--clocks"], ..run }.expect(prefix, 0, &[])?;
        let csv = folder()?.join("figure-halo.csv");
        let mut pattern = Command::new(prefix.join("bin/weft"));
        pattern.args(["sim", "halo", "--algorithm", "2D", "--ranks", "4", "--machine", machine]);
        pattern.args(["--set", "ranks_per_node=1", "--bytes", &sizes.join(","), "--csv"]).arg(&csv);
        quiet(&mut pattern)?;
        let table = std::fs::read_to_string(&csv).map_err(|e| e.to_string())?;
        for size in &sizes {
            let row = output.lines().find(|line| line.contains(&format!("\"size\":{size},")));
            let c = row.and_then(|row| BenchValue::Time.of(row));
            let rust = table.lines().find_map(|line| mean_of(line, size));
            let (Some(c), Some(rust)) = (c, rust) else {
                return Err(format!("{machine}, {size} bytes: no figure in\n{table}\n{output}"));
            };
            compare(&format!("halo exchange of {size} bytes on {machine}"), c, rust)?;
        }
    }
    Ok(())
}
