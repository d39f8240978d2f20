//! Page faults and system calls of the first MPI calls of each kind, counted in tests/c/first_calls. After ten calls of a kind,
//! further calls must cause no faults in buffers, and no system calls. The first ten calls may cause some faults, and may get some
//! pages from the system, but few compared to the data of these calls.
//!
//! The system counts the faults of each rank. strace prints the system calls. Calls that wait, and calls that move a payload from
//! one process to another, do not count. The system may take a page away, so some faults occur by chance. The test runs several
//! times, because such a fault does not occur in every run.

use super::counts::WAITING;
use super::tally::Tally;
use super::tools::{quiet, strace_runs};
use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Operations of the program. Each operation runs alone, so no other operation has touched its memory before.
const OPERATIONS: [&str; 21] = [
    "barrier",
    "allreduce",
    "reduce",
    "bcast",
    "gather",
    "scatter",
    "allgather",
    "alltoall",
    "scan",
    "exscan",
    "reduce_scatter_block",
    "reduce_scatter",
    "pingpong",
    "window",
    "put",
    "get",
    "accumulate",
    "lock",
    "fence",
    "write_all",
    "read_all",
];

/// Models of copies that lead to different choices: the machine's own model, and the generic model.
const MODELS: [&str; 2] = ["auto", "generic"];

/// Maximum number of faults of a rank in the counted calls. A few faults are allowed: code may run for the first time, and the heap
/// may grow if more messages are under way than before. A fault in a buffer would exceed the maximum, because each page of a
/// payload would cause a fault.
const FEW: u64 = 3;

/// Maximum number of faults of a rank in the counted calls, for collective accesses to files. It is larger, because these accesses
/// exchange pieces in memory of the heap.
const FEW_OF_FILES: u64 = 6;

/// Maximum number of faults of a rank in the counted calls, for windows of messages. The number of messages that wait at the same
/// time is a matter of chance, and each takes less than 512 bytes of the heap.
const FEW_OF_WINDOWS: u64 = FEW + WINDOW * 512 / PAGE;

/// Maximum number of faults of a rank in the first ten calls: [`FIRST`] pages for code, small structures and the two boxes of a pair of
/// ranks, and [`FIRST_TIMES`] pages for each page of the payloads of these calls.
const FIRST: u64 = 160;
const FIRST_TIMES: u64 = 2;
const FIRST_CALLS: u64 = 10;

/// Number of payloads of a call of the operation "window".
const WINDOW: u64 = 64;

/// Size of a page in bytes.
const PAGE: u64 = 4096;

/// Number of runs. A fault counts only if it occurs at the same place in all runs.
const RUNS: usize = 3;

/// Calls that are allowed between the marks, in addition to calls that wait: calls that move a payload, or access a file.
const ALLOWED: [&str; 6] =
    ["process_vm_readv", "process_vm_writev", "getrusage", "pread64", "pwrite64", "fcntl"];

pub fn run(prefix: &Path, tally: &mut Tally) -> Result<(), String> {
    let folder = super::c_programs::folder()?;
    let program = folder.join("first_calls");
    super::c_programs::compile(prefix, &crate::root().join("tests/c/first_calls.c"), &program)?;
    for model in MODELS {
        for operation in OPERATIONS {
            let places = always_faulting(|| {
                let mut job = job(prefix, model);
                job.arg(&program).arg(operation);
                Ok(faulting(&quiet(&mut job)?))
            })?;
            if !places.is_empty() {
                return Err(format!("page faults, model {model}: {places:?}"));
            }
        }
        println!("ok   few page faults in ten calls, none in buffers after them, model {model}");
        tally.passed += 1;
    }
    traced(prefix, &program, &folder, tally)
}

fn job(prefix: &Path, model: &str) -> Command {
    let mut job = Command::new(prefix.join("bin/mpiexec"));
    // On a busy machine near caches may seem far, and buffers would change in the middle of the counted calls.
    job.args(["--timeout", "60", "-n", "2"]).env("WEFT_CACHES", "near");
    if model != "auto" {
        job.env("WEFT_COPY_MODEL", model);
    }
    job
}

/// Returns the places at which faults occur in each of [`RUNS`] runs. Ends early if no place is left.
fn always_faulting(
    mut run: impl FnMut() -> Result<BTreeSet<String>, String>,
) -> Result<BTreeSet<String>, String> {
    let mut places = run()?;
    for _ in 1..RUNS {
        if !places.is_empty() {
            let again = run()?;
            places.retain(|place| again.contains(place));
        }
    }
    Ok(places)
}

/// Returns the places with too many faults, from lines like "bcast 4096 rank 1: 20 faults first, 3 faults later".
fn faulting(report: &str) -> BTreeSet<String> {
    let place = |line: &str| {
        let (place, counts) = line.split_once(": ")?;
        let mut words = place.split(' ');
        let (operation, size) = (words.next()?, words.next()?.parse::<u64>().ok()?);
        let mut counts = counts.split(", ").filter_map(|part| part.split_once(" faults"));
        let mut next = || counts.next().and_then(|(count, _)| count.parse::<u64>().ok());
        let (first, later) = (next()?, next()?);
        let payloads = FIRST_CALLS * if operation == "window" { WINDOW } else { 1 };
        let most = FIRST + FIRST_TIMES * payloads * size.div_ceil(PAGE);
        let few = match operation {
            "window" => FEW_OF_WINDOWS,
            _ if operation.ends_with("_all") => FEW_OF_FILES,
            _ => FEW,
        };
        let parts = [("first", first > most), ("later", later > few)];
        let many = parts.into_iter().filter(|(_, many)| *many).map(|(part, _)| part);
        Some(many.map(|part| format!("{place}, {part} calls")).collect::<Vec<_>>())
    };
    report.lines().filter_map(place).flatten().collect()
}

fn traced(prefix: &Path, program: &Path, folder: &Path, tally: &mut Tally) -> Result<(), String> {
    if !strace_runs() {
        tally.not_run.push("system calls after ten calls: strace does not run here".to_owned());
        return Ok(());
    }
    for operation in OPERATIONS {
        // By chance, more messages than before may be under way, and then the heap grows. This must not happen in every run. All
        // other calls are forbidden in every run.
        let grows = |call: &String| call.contains(": brk(");
        for runs_left in (0..RUNS).rev() {
            let calls = traced_calls(prefix, program, operation, folder)?;
            if calls.is_empty() {
                break;
            }
            if runs_left == 0 || !calls.iter().all(grows) {
                return Err(format!("system calls after ten calls:\n{}", calls.join("\n")));
            }
        }
    }
    println!("ok   no system call after ten calls");
    tally.passed += 1;
    Ok(())
}

/// Returns the forbidden system calls that an operation makes after ten calls, as lines of strace.
fn traced_calls(
    prefix: &Path,
    program: &Path,
    operation: &str,
    folder: &Path,
) -> Result<Vec<String>, String> {
    let place = folder.join("first-calls");
    let _ = fs::remove_dir_all(&place); // of an earlier run
    let failed = |e: std::io::Error| format!("{}: {e}", place.display());
    fs::create_dir_all(&place).map_err(failed)?;
    let mut job = job(prefix, "auto");
    job.args(["strace", "-ff", "-o"]).arg(place.join("log")).arg(program).arg(operation);
    quiet(&mut job)?;
    let (mut calls, mut marks) = (Vec::new(), 0);
    for entry in fs::read_dir(&place).map_err(failed)?.flatten() {
        let log = fs::read_to_string(entry.path()).map_err(failed)?;
        marks += counted_calls(&log, &mut calls);
    }
    match marks {
        0 => Err(format!("{operation}: strace has shown no counted part")),
        _ => Ok(calls),
    }
}

/// Adds the forbidden calls in the counted parts of a log to `calls`, and puts the label of the operation before each call. Returns
/// the number of counted parts. A counted part begins at a mark with the same label as the previous mark, and ends at the next
/// mark.
fn counted_calls(log: &str, calls: &mut Vec<String>) -> usize {
    let (mut parts, mut label, mut is_counted) = (0, "", false);
    for line in log.lines() {
        let Some((name, rest)) = line.split_once('(') else { continue };
        if let Some(mark) = rest.strip_prefix("\"first_calls ").filter(|_| name == "access") {
            let next = mark.split('"').next().unwrap_or_default();
            is_counted = next == label;
            parts += usize::from(is_counted);
            label = next;
        } else if is_counted
            && !WAITING.contains(&name)
            && !ALLOWED.contains(&name)
            && !name.starts_with("---")
        {
            calls.push(format!("{label}: {line}"));
        }
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Useful during work on buffers: `cargo test -p xtask first_calls -- --ignored --nocapture`.
    #[test]
    #[ignore = "a part of cargo xtask test --only limits, which installs the library"]
    fn calls_after_ten_take_no_fault() {
        let mut tally = Tally::default();
        run(&crate::demo::prefix(), &mut tally).unwrap();
        assert!(tally.not_run.is_empty(), "{:?}", tally.not_run);
    }

    #[test]
    fn faults_count_if_they_come_in_each_run() {
        let report = "bcast 4096 rank 0: 180 faults first, 3 faults later\nbcast 4096 rank 1: 181 faults first, 4 faults later\n\
                      window 4096 rank 0: 1440 faults first, 0 faults later\ncorrect\n";
        let places = ["bcast 4096 rank 1, first calls", "bcast 4096 rank 1, later calls"];
        assert_eq!(faulting(report), places.map(str::to_owned).into());
        let runs = [vec!["a", "b"], vec!["b", "c"], vec!["b"]];
        let mut next = runs.iter();
        let mut run = || Ok(next.next().unwrap().iter().map(|&place| place.to_owned()).collect());
        assert_eq!(always_faulting(&mut run).unwrap(), BTreeSet::from(["b".to_owned()]));
    }

    #[test]
    fn calls_between_the_second_mark_and_the_end_count() {
        let mark =
            |label: &str| format!("access(\"first_calls {label}\", F_OK) = -1 ENOENT (none)\n");
        let (label, end) = (mark("put 4096"), mark("end"));
        let log =
            format!("{label}mmap(1) = 2\n{label}futex(3) = 0\nmunmap(1) = 0\n{end}brk(0) = 1\n");
        let mut calls = Vec::new();
        assert_eq!(counted_calls(&log, &mut calls), 1);
        assert_eq!(calls, ["put 4096: munmap(1) = 0"]);
    }
}
