//! Numbers of instructions of single calls, and of atomic instructions, counted by callgrind (tests/c/instructions.c). A clock would also measure other work of
//! the machine.

use super::tally::Tally;
use crate::root;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

/// Number of messages, and number of rounds, of a run.
const MESSAGES: u64 = 32_000;
const ROUNDS: u64 = 500;

/// For each test: its name, the functions whose instructions are summed over both ranks, the divisor of the sum, and the maximum of
/// the quotient.
const BOUNDS: [(&str, &[&str], u64, u64); 7] = [
    ("window", &["MPI_Isend", "MPI_Irecv", "MPI_Waitall"], MESSAGES, 1000),
    ("window_dup", &["MPI_Isend", "MPI_Irecv", "MPI_Waitall"], MESSAGES, 1050),
    ("both", &["MPI_Isend", "MPI_Irecv", "MPI_Waitall"], 2 * MESSAGES, 1000),
    ("blocking", &["MPI_Send"], ROUNDS, 367 + FIRST),
    ("blocking", &["MPI_Recv"], ROUNDS, 404 + FIRST),
    ("allreduce", &["sum_last"], ROUNDS, 1701 + FIRST),
    ("put", &["MPI_Put"], 2 * ROUNDS, 137 + FIRST),
];

/// Maximum number of additional instructions per call. They are allowed because the first calls also look up symbols, and handle
/// messages from the start of the program.
const FIRST: u64 = 8;

/// Maximum number of additional instructions per call if the thread level allows several threads, but the program has only one
/// thread.
const BY_LEVEL: u64 = 20;

/// Maximum number of additional atomic instructions per 100 messages of a thread that has a communicator or a tag of its own, and per
/// 100 calls of a thread that has a window of its own, under MPI_THREAD_MULTIPLE. A lock takes at least one per call, so 300 per 100
/// messages.
const ATOMICS: u64 = 10;

/// Maximum number of atomic instructions of MPI_Waitany with requests of four lanes, whose locks other threads have used. The locks
/// of lane 0, of the lane for its look, and of the lane for the end of a request take two each.
const WAITANY: u64 = 6;

/// Calls on a window that never wait, and number of these calls in a round.
const ONE_SIDED: ([&str; 13], u64) = (
    [
        "MPI_Put",
        "MPI_Get",
        "MPI_Accumulate",
        "MPI_Fetch_and_op",
        "MPI_Compare_and_swap",
        "MPI_Rput",
        "MPI_Rget",
        "MPI_Wait",
        "MPI_Win_flush",
        "MPI_Win_flush_local",
        "MPI_Win_flush_all",
        "MPI_Win_lock",
        "MPI_Win_unlock",
    ],
    14,
);

/// Number of calls of MPI_Waitany in a round.
const ANY: u64 = 8;

/// Event of callgrind that a run counts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum CountedEvent {
    Instructions,
    /// Instructions with a lock on the bus.
    Atomics,
}

impl CountedEvent {
    /// Returns callgrind's name of the event.
    fn name(self) -> &'static str {
        match self {
            CountedEvent::Instructions => "Ir",
            CountedEvent::Atomics => "Ge",
        }
    }
}

/// Maximum number of runs of a test whose count depends on which rank comes first.
const TRIES: usize = 5;

pub fn run(prefix: &Path, tally: &mut Tally) -> Result<(), String> {
    // The counts hold only for the default profile. The profile of the installed library inherits from the release profile.
    let changed = ["CARGO_PROFILE_DIST_", "CARGO_PROFILE_RELEASE_"];
    if std::env::vars().any(|(name, _)| changed.iter().any(|prefix| name.starts_with(prefix))) {
        tally
            .not_run
            .push("counts of instructions: the profile is changed by variables".to_owned());
        return Ok(());
    }
    let works = |tool: &str| Command::new(tool).arg("--version").output().is_ok();
    if !works("valgrind") || !works("callgrind_annotate") {
        tally.not_run.push("counts of instructions: there is no valgrind".to_owned());
        return Ok(());
    }
    for (way, functions, by, most) in BOUNDS {
        let found = least(prefix, way, "0", functions, by, most)?;
        let names = functions.join(" + ");
        if found > most {
            return Err(format!(
                "{names}, {way}: {found} instructions, at most {most} are allowed"
            ));
        }
        println!("ok   {names}, {way}: {found} instructions of at most {most}");
        tally.passed += 1;
    }
    let atomics = |way, level| {
        let window = ["MPI_Isend", "MPI_Irecv", "MPI_Start", "MPI_Startall", "MPI_Waitall"];
        let found = counted(prefix, way, level, &window, CountedEvent::Atomics)?;
        Ok::<u64, String>(found * 100 / MESSAGES)
    };
    let alone = atomics("window_dup", "0")?;
    for (way, has) in [
        ("window_thread", "a communicator of its own"),
        ("persistent_thread", "persistent requests of a communicator of its own"),
        ("window_tag", "a tag of its own on a communicator with mpi_assert_no_any_tag"),
    ] {
        let found = atomics(way, "3")?;
        let text = format!(
            "{found} atomic instructions in 100 messages of a thread with {has}, {alone} without threads"
        );
        if found > alone + ATOMICS {
            return Err(text);
        }
        println!("ok   {text}");
        tally.passed += 1;
    }
    one_sided(prefix, tally)?;
    let found = counted(prefix, "any_thread", "3", &["MPI_Waitany"], CountedEvent::Atomics)?;
    let found = found / (ANY * ROUNDS);
    let text =
        format!("{found} atomic instructions in MPI_Waitany over the requests of four lanes");
    if found > WAITANY {
        return Err(text);
    }
    println!("ok   {text}");
    tally.passed += 1;
    for level in ["1", "2", "3"] {
        for function in ["MPI_Send", "MPI_Recv"] {
            let alone = least(prefix, "blocking", "0", &[function], ROUNDS, 0)?;
            let most = alone + BY_LEVEL;
            let found = least(prefix, "blocking", level, &[function], ROUNDS, most)?;
            if found > most {
                return Err(format!(
                    "{function}, level {level}: {found} instructions, {alone} alone"
                ));
            }
            println!(
                "ok   {function}, level of threads {level}: {found} instructions, {alone} alone"
            );
            tally.passed += 1;
        }
    }
    Ok(())
}

/// Compares the atomic instructions of a thread that has a window of its own with those of a process without threads.
fn one_sided(prefix: &Path, tally: &mut Tally) -> Result<(), String> {
    let (functions, calls) = ONE_SIDED;
    let atomics = |way, level| {
        let found = counted(prefix, way, level, &functions, CountedEvent::Atomics)?;
        Ok::<u64, String>(found * 100 / (2 * ROUNDS * calls))
    };
    let (alone, found) = (atomics("one_sided", "0")?, atomics("one_sided_thread", "3")?);
    let text = format!(
        "{found} atomic instructions in 100 one-sided calls of a thread with a window of its own, {alone} without threads"
    );
    if found > alone + ATOMICS {
        return Err(text);
    }
    println!("ok   {text}");
    tally.passed += 1;
    Ok(())
}

/// Counts the instructions in up to [`TRIES`] runs, until a count is at most `most`. Returns the smallest count.
fn least(
    prefix: &Path,
    way: &str,
    level: &str,
    functions: &[&str],
    by: u64,
    most: u64,
) -> Result<u64, String> {
    let mut least = u64::MAX;
    // "allreduce" is the only test in which a rank waits for the other rank within the counted call.
    let tries = if way == "allreduce" { TRIES } else { 1 };
    for _ in 0..tries {
        let found = counted(prefix, way, level, functions, CountedEvent::Instructions)?;
        least = least.min(found / by);
        if least <= most {
            break;
        }
    }
    Ok(least)
}

/// Runs the program once. Returns the number of events in all calls of `functions` on both ranks.
fn counted(
    prefix: &Path,
    way: &str,
    level: &str,
    functions: &[&str],
    event: CountedEvent,
) -> Result<u64, String> {
    let folder = root().join("target/test-programs/instruction-counts");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut command = Command::new(prefix.join("bin/mpiexec"));
    command.args(["--timeout", "120", "-n", "2", "valgrind", "-q", "--tool=callgrind"]);
    if event == CountedEvent::Atomics {
        command.arg("--collect-bus=yes");
    }
    command.arg(format!("--callgrind-out-file={}/%p", folder.display()));
    command.arg(super::c_programs::folder()?.join("instructions")).arg(way);
    super::tools::quiet(command.env("LEVEL", level))?;
    let mut all = 0;
    let files = fs::read_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    for file in files.flatten() {
        let mut annotate = Command::new("callgrind_annotate");
        annotate.args(["--inclusive=yes", "--threshold=100"]);
        annotate.arg(format!("--show={}", event.name())).arg(file.path());
        let output = annotate.stdin(Stdio::null()).output();
        let output = output.map_err(|e| format!("callgrind_annotate: {e}"))?;
        let text = String::from_utf8_lossy(&output.stdout);
        all += functions.iter().map(|function| inclusive(&text, function)).sum::<u64>();
    }
    match all {
        0 if event == CountedEvent::Instructions => {
            Err(format!("{functions:?}, {way}: callgrind has counted nothing"))
        }
        all => Ok(all),
    }
}

/// Returns the number of instructions that an annotation gives for a function, under either of its two names. The first line of the
/// function also includes inlined code, which has separate lines.
fn inclusive(text: &str, function: &str) -> u64 {
    let profiled = format!("P{function}");
    let counts = text.lines().filter_map(|line| {
        let mut words = line.split_whitespace();
        let count = words.next()?.replace(',', "").parse().ok()?;
        let named = words.any(|word| {
            let name = word.rsplit(':').next().unwrap_or_default();
            word.contains(':') && (name == function || name == profiled)
        });
        named.then_some(count)
    });
    counts.max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Useful during work on messages: `cargo test -p xtask instructions -- --ignored --nocapture`.
    #[test]
    #[ignore = "a part of cargo xtask test --only limits, which installs the library"]
    fn calls_cost_what_they_may() {
        let mut tally = Tally::default();
        run(&crate::demo::prefix(), &mut tally).unwrap();
        assert!(tally.not_run.is_empty(), "{:?}", tally.not_run);
    }

    #[test]
    fn the_outermost_line_counts() {
        let text = "1,234 ( 9.1%)  src/entry.rs:PMPI_Send [lib.so]\n  900 ( 7%)  out/abi.rs:PMPI_Send\n\
                    9,999 (50.0%)  src/entry.rs:PMPI_Sendrecv [lib.so]\n77 (0.1%)  main.c:main";
        assert_eq!(inclusive(text, "MPI_Send"), 1234);
        assert_eq!(inclusive(text, "MPI_Recv"), 0);
    }
}
