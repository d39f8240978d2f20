//! Measurements on this machine: an MPI program, started by this installation's `mpiexec`, for each place of the grid.
//!
//! ```text
//!   Here                     the command: starts mpiexec -n RANKS weft tune-rank ..., and reads its figures
//!   MeasuringRank            one rank: loads the library, and calls its functions by name
//! ```
//! Each algorithm has its own communicator, with the info hint that asks for the algorithm. The algorithms run in turn, several
//! times. In a turn, an algorithm runs a batch of operations without pauses. The root moves by one rank for each operation, and the
//! time of the batch is that of the slowest rank. The figure is the median over the batches, because other work on the machine
//! disturbs only a few batches.
//!
//! Each rank writes its data before each operation, as programs do ([`SentData`]): bytes that another rank has read are slower to
//! write, and bytes that were just written are slower to read. The time of the same writes without operations is subtracted.

pub mod ping;

use super::grid::ELEMENT;
use super::sweep::{MapCell, Measure};
use crate::tree::{SONAME, Tree};
use clap::{Parser, ValueEnum};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};
use weft_client::ClientLibrary;
use weft_collective::level_steps::LevelSteps;
use weft_collective::selection_key::Near;
use weft_collective::{AlgorithmChoice, CollectiveKind, RankPlacement};
use weft_fabric::CacheDistance;

/// Number of batches of each algorithm.
const BATCHES: usize = 5;

/// Returns the placement of ranks on one machine. Only the presence of multicast matters, not its costs. The ranks are assumed to
/// reach each other's memory, to be near each other, and to have all processors that this process may use.
pub fn site(ranks: usize) -> RankPlacement {
    let processors = std::thread::available_parallelism().map_or(1, |n| n.get());
    let each = ranks.div_ceil(processors).max(1) as u32;
    // The jobs inherit the setting. Without such reads, another algorithm would run in place of an algorithm that reads.
    let reads = std::env::var("WEFT_CMA").map_or(true, |value| value.trim() != "0");
    RankPlacement {
        same_node: true,
        nodes: 1,
        ranks_per_node: ranks,
        by_kernel: false,
        multicast: 4096,
        same_arithmetic: true,
        atomics: true,
        levels: LevelSteps::UNKNOWN,
        in_place: None,
        near: Near { direct: Some(reads), distance: CacheDistance::Shared, each },
    }
}

/// The data that ranks send in a measurement.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum SentData {
    /// The ranks write their data before each call, as programs do.
    Written,
    /// The ranks send the same data again and again, as most benchmarks do. Then a receiver that reads the data in place finds them
    /// in its own caches.
    Unchanged,
}

/// Returns the placement of ranks on `hosts` hosts that the kernel's network code connects.
pub fn site_between(ranks: usize, hosts: usize) -> Result<RankPlacement, String> {
    if !ranks.is_multiple_of(hosts) {
        return Err(format!("-n {ranks}: not one number of ranks on each of {hosts} hosts"));
    }
    let (near, ranks_per_node) = (Near::default(), ranks / hosts);
    let kernel =
        RankPlacement { same_node: false, by_kernel: true, multicast: 0, near, ..site(ranks) };
    Ok(RankPlacement { nodes: hosts, ranks_per_node, ..kernel })
}

/// Measurement on this machine or on several hosts, which starts jobs.
pub struct Here {
    mpiexec: PathBuf,
    weft: PathBuf,
    library: PathBuf,
    time: u64,
    data: SentData,
    /// Names of the hosts; empty: this machine.
    hosts: Vec<String>,
}

impl Here {
    /// Creates the measurement. `time`: milliseconds for each algorithm at each place. `hosts`: names of the hosts, each for the
    /// same number of ranks; empty: this machine.
    pub fn new(time: u64, hosts: &[String], data: SentData) -> Result<Here, String> {
        let weft = std::env::current_exe().map_err(|e| format!("where this program lies: {e}"))?;
        let mpiexec = weft.with_file_name("mpiexec");
        if !mpiexec.is_file() {
            return Err(format!(
                "no {}: run `cargo xtask install --prefix DIR` and use DIR/bin/weft, or build the \
                 package weft-launch",
                mpiexec.display()
            ));
        }
        let (library, hosts) = (Tree::of_this_program()?.library(), hosts.to_vec());
        Ok(Here { mpiexec, weft, library, time, data, hosts })
    }

    /// Returns true if the ranks of jobs are on several hosts.
    pub(crate) fn is_between_hosts(&self) -> bool {
        self.hosts.len() > 1
    }

    /// Returns the command of a job in which each rank runs the part `part` of `weft`, with the library as its first argument.
    pub(crate) fn job(&self, ranks: usize, part: &str) -> Command {
        let mut command = Command::new(&self.mpiexec);
        if !self.hosts.is_empty() {
            let slots = (ranks / self.hosts.len()).max(1);
            let hosts: Vec<String> =
                self.hosts.iter().map(|host| format!("{host}:{slots}")).collect();
            command.args(["--hosts", &hosts.join(",")]);
        }
        command.args(["-n", &ranks.to_string()]).arg(&self.weft).arg(part);
        if self.data == SentData::Unchanged {
            command.args(["--data", "unchanged"]);
        }
        command.arg(&self.library);
        command
    }

    /// Returns the command of a job of two ranks in virtual time on the machine of `file`. Each rank runs the part `part` of `weft`, with
    /// the library that measures computing and the library as its arguments.
    pub(crate) fn simulated_job(&self, file: &Path, part: &str) -> Command {
        let mut command = Command::new(&self.weft);
        command.args([
            "sim",
            "run",
            "--quiet",
            "--clocks",
            "--ranks",
            "2",
            "--nodes",
            "1",
            "--machine",
        ]);
        command.arg(file).arg("--").arg(&self.weft).arg(part);
        let calls = self.library.with_file_name("weft").join("libweft_sim_calls.so");
        command.arg("--turns").arg(calls).arg(&self.library);
        command
    }

    /// Runs a job and returns the figures that its rank 0 prints, a line for each. Error: the job's last words.
    pub(crate) fn figures(&self, command: &mut Command) -> Result<Vec<f64>, String> {
        let output = command.output().map_err(|e| format!("{}: {e}", self.mpiexec.display()))?;
        if output.status.success() {
            let said = String::from_utf8_lossy(&output.stdout);
            return Ok(said.lines().filter_map(|line| line.parse().ok()).collect());
        }
        let why = String::from_utf8_lossy(&output.stderr);
        Err(why.lines().last().unwrap_or("it said nothing").to_owned())
    }
}

impl Measure for Here {
    fn site(&mut self, ranks: usize) -> Result<RankPlacement, String> {
        match self.hosts.len() {
            0 | 1 => Ok(site(ranks)),
            hosts => site_between(ranks, hosts),
        }
    }

    fn noise(&self) -> f64 {
        0.05
    }

    fn is_exact(&self) -> bool {
        false
    }

    fn measure(
        &mut self,
        place: MapCell,
        choices: &[AlgorithmChoice],
        done: &dyn Fn(),
    ) -> Result<Vec<Result<f64, String>>, String> {
        let names: Vec<String> = choices.iter().map(written).collect();
        let MapCell { operation, ranks, bytes } = place;
        let mut command = self.job(ranks, "tune-rank");
        // Settings and maps are removed, so that only the hints choose. Otherwise a different algorithm might run in place of an
        // algorithm that is not eligible.
        for operation in CollectiveKind::ALL {
            command.env_remove(format!("WEFT_{}", operation.name().to_ascii_uppercase()));
        }
        command.env("WEFT_MAP", "none");
        command.arg(operation.name()).arg(bytes.to_string());
        command.arg(self.time.to_string()).arg(names.join(","));
        let figures = self.figures(&mut command);
        choices.iter().for_each(|_| done());
        let why = match figures {
            Ok(times) if times.len() == choices.len() => {
                return Ok(times.into_iter().map(Ok).collect());
            }
            Ok(_) => "it printed too few times".to_owned(),
            Err(why) => why,
        };
        // If a choice fails, all choices of the job fail. Then each choice runs in its own job.
        if choices.len() > 1 {
            let alone =
                |&choice: &AlgorithmChoice| match self.measure(place, &[choice], &|| {})?.pop() {
                    Some(result) => Ok(result),
                    None => Err(format!("{choice}: no time")),
                };
            return choices.iter().map(alone).collect();
        }
        let what = format!("mpiexec -n {ranks} weft tune-rank {operation} {bytes}: {why}");
        Ok(choices.iter().map(|_| Err(what.clone())).collect())
    }
}

/// Returns the choice as the value of a hint, always with the parameter.
fn written(choice: &AlgorithmChoice) -> String {
    match choice.algorithm.parameter {
        Some(_) => format!("{}:{}", choice.algorithm.name, choice.parameter),
        None => choice.algorithm.name.to_owned(),
    }
}

/// Arguments of `weft tune-rank`, which `weft tune` starts as an MPI program.
#[derive(Parser, Debug)]
pub struct TuneRank {
    /// The data that ranks send in each operation.
    #[arg(long, value_enum, default_value_t = SentData::Written)]
    data: SentData,
    library: PathBuf,
    #[arg(value_parser = CollectiveKind::named)]
    operation: CollectiveKind,
    bytes: usize,
    /// Milliseconds for each algorithm.
    time: u64,
    #[arg(value_delimiter = ',')]
    choices: Vec<String>,
}

/// Handles and constants of the standard ABI.
pub(crate) const WORLD: usize = 0x101;
pub(crate) const INT: usize = 0x209;
pub(crate) const BYTE: usize = 0x247;
const DOUBLE: usize = 0x214;
pub(crate) const SUM: usize = 0x21;
const MAX: usize = 0x23;
const ERRORS_RETURN: usize = 0x143;

/// One rank of the program.
pub(crate) struct MeasuringRank {
    pub(crate) library: ClientLibrary,
    pub(crate) me: usize,
    pub(crate) size: usize,
}

impl MeasuringRank {
    /// Loads the library and calls `MPI_Init`.
    pub(crate) fn start(library: &Path) -> Result<MeasuringRank, String> {
        let name = library.to_str().unwrap_or(SONAME);
        let mut program = MeasuringRank { library: ClientLibrary::load(name)?, me: 0, size: 0 };
        program.call("MPI_Init", &[0, 0])?;
        program.call("MPI_Comm_set_errhandler", &[WORLD, ERRORS_RETURN])?;
        program.me = program.made("MPI_Comm_rank", &[WORLD])?;
        program.size = program.made("MPI_Comm_size", &[WORLD])?;
        Ok(program)
    }

    /// Calls an MPI function. Errors: the function's name and code.
    pub(crate) fn call(&self, name: &str, a: &[usize]) -> Result<(), String> {
        let address = self.library.address(name)?;
        // SAFETY: `address` is that of the MPI function `name`. Every caller gives as many parameters as the standard lists for
        // `name`, all of class INTEGER, and pointers to memory that outlives the call and has room for all that the function
        // reads and writes.
        let code = unsafe { weft_client::call(address, a) } as i32;
        if code == 0 { Ok(()) } else { Err(format!("{name} returned {code}")) }
    }

    /// Calls a function that writes a handle or an `int` to its last parameter. Returns the value.
    pub(crate) fn made(&self, name: &str, a: &[usize]) -> Result<usize, String> {
        let mut made = 0usize;
        let mut all = a.to_vec();
        all.push(&raw mut made as usize);
        self.call(name, &all)?;
        Ok(std::hint::black_box(made))
    }

    pub(crate) fn free(&self, name: &str, mut handle: usize) -> Result<(), String> {
        self.call(name, &[&raw mut handle as usize])
    }

    /// Returns a communicator of all ranks that uses `choice` for `operation`.
    fn comm(&self, operation: CollectiveKind, choice: &str) -> Result<usize, String> {
        let info = self.made("MPI_Info_create", &[])?;
        let (key, value) = (format!("weft_{operation}\0"), format!("{choice}\0"));
        self.call("MPI_Info_set", &[info, key.as_ptr() as usize, value.as_ptr() as usize])?;
        let comm = self.made("MPI_Comm_dup_with_info", &[WORLD, info])?;
        self.free("MPI_Info_free", info)?;
        Ok(comm)
    }

    pub(crate) fn barrier(&self) -> Result<(), String> {
        self.call("MPI_Barrier", &[WORLD])
    }

    /// Returns the largest of all ranks' numbers.
    pub(crate) fn largest(&self, mine: f64) -> Result<f64, String> {
        let mut all = 0f64;
        let (from, to) = (&raw const mine as usize, &raw mut all as usize);
        self.call("MPI_Allreduce", &[from, to, 1, DOUBLE, MAX, WORLD])?;
        Ok(std::hint::black_box(all))
    }
}

/// A repeated operation with its arguments.
struct RepeatedCall<'p> {
    program: &'p MeasuringRank,
    operation: CollectiveKind,
    address: usize,
    bytes: usize,
    counts: Vec<i32>,
    starts: Vec<i32>,
    send: Vec<u64>,
    receive: Vec<u64>,
}

impl<'p> RepeatedCall<'p> {
    fn new(
        program: &'p MeasuringRank,
        operation: CollectiveKind,
        bytes: usize,
    ) -> Result<RepeatedCall<'p>, String> {
        use CollectiveKind::*;
        let size = program.size;
        let bytes = match operation {
            Gatherv | Scatterv | Alltoallv => super::grid::UNKNOWN,
            _ => bytes,
        };
        let of = |i: usize| match operation {
            ReduceScatter => {
                let all = bytes / ELEMENT;
                all / size + usize::from(i < all % size)
            }
            _ => bytes,
        };
        let counts: Vec<i32> = (0..size).map(|i| of(i) as i32).collect();
        let starts = (0..size).map(|i| (i * bytes) as i32).collect();
        let each = match operation {
            Gather | Gatherv | Scatter | Scatterv | Allgather | Alltoall | Alltoallv => size,
            _ => 1,
        };
        let name = match operation {
            Barrier => "MPI_Barrier",
            Bcast => "MPI_Bcast",
            Gather => "MPI_Gather",
            Gatherv => "MPI_Gatherv",
            Scatter => "MPI_Scatter",
            Scatterv => "MPI_Scatterv",
            Allgather => "MPI_Allgather",
            Alltoall => "MPI_Alltoall",
            Alltoallv => "MPI_Alltoallv",
            Reduce => "MPI_Reduce",
            Allreduce => "MPI_Allreduce",
            ReduceScatter => "MPI_Reduce_scatter",
            Scan => "MPI_Scan",
            Exscan => "MPI_Exscan",
        };
        let memory = || vec![0u64; (bytes * each).div_ceil(8).max(1)];
        Ok(RepeatedCall {
            program,
            operation,
            address: program.library.address(name)?,
            bytes,
            counts,
            starts,
            send: memory(),
            receive: memory(),
        })
    }

    /// Writes the data that this rank sends.
    fn write(&mut self, value: usize) {
        self.send.fill(value as u64);
        std::hint::black_box(&mut self.send);
    }

    fn once(&mut self, comm: usize, root: usize) -> Result<(), String> {
        use CollectiveKind::*;
        let (from, to) = (self.send.as_mut_ptr() as usize, self.receive.as_mut_ptr() as usize);
        let (counts, starts) = (self.counts.as_ptr() as usize, self.starts.as_ptr() as usize);
        let (bytes, numbers) = (self.bytes, self.bytes / ELEMENT);
        let mut a = [0usize; 9];
        let mut set = |list: &[usize]| {
            a[..list.len()].copy_from_slice(list);
            list.len()
        };
        let count = match self.operation {
            Barrier => set(&[comm]),
            Bcast => set(&[from, bytes, BYTE, root, comm]),
            Gather | Scatter => set(&[from, bytes, BYTE, to, bytes, BYTE, root, comm]),
            Gatherv => set(&[from, bytes, BYTE, to, counts, starts, BYTE, root, comm]),
            Scatterv => set(&[from, counts, starts, BYTE, to, bytes, BYTE, root, comm]),
            Allgather | Alltoall => set(&[from, bytes, BYTE, to, bytes, BYTE, comm]),
            Alltoallv => set(&[from, counts, starts, BYTE, to, counts, starts, BYTE, comm]),
            Reduce => set(&[from, to, numbers, INT, SUM, root, comm]),
            ReduceScatter => set(&[from, to, counts, INT, SUM, comm]),
            Allreduce | Scan | Exscan => set(&[from, to, numbers, INT, SUM, comm]),
        };
        // SAFETY: `a` has the parameters of the function at `address`, in the order of the standard. The buffers have room for
        // all blocks, and counts and displacements stay within the buffers.
        let code = unsafe { weft_client::call(self.address, &a[..count]) } as i32;
        if code == 0 { Ok(()) } else { Err(format!("MPI_{} returned {code}", self.operation)) }
    }

    /// Runs a batch of `count` operations. Returns the mean microseconds of an operation on the slowest rank.
    fn batch(&mut self, comm: usize, count: usize, data: SentData) -> Result<f64, String> {
        let writing = match data {
            SentData::Written => {
                let start = Instant::now();
                (0..count).for_each(|i| self.write(i));
                start.elapsed()
            }
            SentData::Unchanged => Duration::ZERO,
        };
        self.program.barrier()?;
        let start = Instant::now();
        for i in 0..count {
            if data == SentData::Written {
                self.write(i);
            }
            self.once(comm, i % self.program.size)?;
        }
        let mine = start.elapsed().saturating_sub(writing).as_secs_f64() * 1e6 / count as f64;
        self.program.largest(mine)
    }
}

/// Runs a rank. Rank 0 prints a line with the microseconds of each choice.
pub fn rank(args: &TuneRank) -> Result<(), String> {
    let program = MeasuringRank::start(&args.library)?;
    let mut work = RepeatedCall::new(&program, args.operation, args.bytes)?;
    let comms = args.choices.iter().map(|choice| program.comm(args.operation, choice));
    let comms: Vec<usize> = comms.collect::<Result<_, _>>()?;
    let data = args.data;
    let mut counts = Vec::new();
    for &comm in &comms {
        // The first batch includes setup, so it does not count. The second batch shows how many operations fit into the given time.
        work.batch(comm, 2, data)?;
        let us = work.batch(comm, 4, data)?.max(0.05);
        let time = Duration::from_millis(args.time).as_secs_f64() * 1e6 / BATCHES as f64;
        counts.push((time / us).clamp(2.0, 1e5) as usize);
    }
    let mut times = vec![Vec::new(); comms.len()];
    for _ in 0..BATCHES {
        for (i, &comm) in comms.iter().enumerate() {
            times[i].push(work.batch(comm, counts[i], data)?);
        }
    }
    for comm in comms {
        program.free("MPI_Comm_free", comm)?;
    }
    if program.me == 0 {
        for mut list in times {
            list.sort_by(f64::total_cmp);
            println!("{:.4}", list[BATCHES / 2]);
        }
    }
    program.call("MPI_Finalize", &[])
}
