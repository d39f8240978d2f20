//! Deadlocks: jobs that `mpiexec` must end at once, and jobs that it must not take for deadlocks.

use super::c_programs::{compile, folder};
use super::lanes::two_at_a_time;
use super::tally::Tally;
use crate::root;
use std::path::Path;
use std::process::Command;

/// Exit code of `mpiexec` at a deadlock.
const DEADLOCK: i32 = 35;
/// Argument of a program that asks for MPI_THREAD_MULTIPLE.
const THREADS: &str = "threads";

/// A run of `tests/deadlocks/kinds.c`.
struct Kind {
    name: &'static str,
    /// Further arguments.
    arguments: &'static [&'static str],
    /// Settings.
    settings: &'static [(&'static str, &'static str)],
    /// Parts of the report of a deadlock; empty if the program must end by itself.
    report: &'static [&'static str],
}

const PLAIN: Kind = Kind { name: "", arguments: &[], settings: &[], report: &[] };

/// Settings of the checking mode, in which a long loop of tests is a wait.
const CHECKED: &[(&str, &str)] = &[("WEFT_CHECK", "1")];

/// Report of three ranks, each of which waits for the next rank.
const CYCLE: &str = "these wait for each other: 0 -> 1 -> 2 -> 0";

const KINDS: [Kind; 26] = [
    Kind { name: "all_receive_first", report: &["MPI_Recv", "tag 3", CYCLE], ..PLAIN },
    Kind {
        name: "all_receive_first",
        arguments: &[THREADS],
        report: &["MPI_Recv", CYCLE],
        ..PLAIN
    },
    Kind {
        name: "all_receive_first",
        settings: &[("WEFT_PROGRESS", "handover")],
        report: &["MPI_Recv", CYCLE],
        ..PLAIN
    },
    Kind { name: "all_send_long_first", report: &["MPI_Send", CYCLE], ..PLAIN },
    Kind { name: "another_tag", report: &["MPI_Recv: receive from rank 0, tag 4"], ..PLAIN },
    Kind { name: "synchronous_to_nobody", report: &["MPI_Wait: send", CYCLE], ..PLAIN },
    Kind { name: "collective_against_receive", report: &["MPI_Barrier", "MPI_Recv"], ..PLAIN },
    Kind {
        name: "finalize_against_receive",
        report: &["MPI_Recv", "rank 2 waits for rank 0, which has called MPI_Finalize"],
        ..PLAIN
    },
    Kind { name: "probe", report: &["MPI_Probe from any rank"], ..PLAIN },
    Kind { name: "waitany", report: &["MPI_Waitany", CYCLE], ..PLAIN },
    Kind { name: "window_lock", report: &["MPI_Win_lock", "MPI_Recv"], ..PLAIN },
    Kind { name: "window_start", report: &["MPI_Win_start"], ..PLAIN },
    Kind { name: "nonblocking_collective", report: &["MPI_Wait", "MPI_Finalize"], ..PLAIN },
    Kind { name: "partitioned", report: &["MPI_Wait", CYCLE], ..PLAIN },
    Kind { name: "slow_rank", ..PLAIN },
    Kind { name: "slow_rank", arguments: &[THREADS], ..PLAIN },
    Kind { name: "slow_rank", settings: &[("WEFT_PROGRESS", "handover")], ..PLAIN },
    Kind { name: "thread_that_sends_late", arguments: &[THREADS], ..PLAIN },
    Kind { name: "generalized_request", arguments: &[THREADS], ..PLAIN },
    Kind { name: "stopped_rank", ..PLAIN },
    Kind { name: "slow_child", ..PLAIN },
    Kind { name: "signals", ..PLAIN },
    Kind {
        name: "loops",
        settings: CHECKED,
        report: &[
            "has tested or probed in a loop",
            "loop of tests or probes: receive from rank 1, tag 3",
        ],
        ..PLAIN
    },
    Kind { name: "loops_until_a_time", ..PLAIN },
    Kind { name: "tests_between_computing", settings: CHECKED, ..PLAIN },
    Kind { name: "loops_for_a_slow_rank", settings: CHECKED, ..PLAIN },
];

pub fn run(prefix: &Path, tally: &mut Tally) -> Result<(), String> {
    let program = folder()?.join("deadlock-kinds");
    compile(prefix, &root().join("tests/deadlocks/kinds.c"), &program)?;
    let results = two_at_a_time(&KINDS, |kind| {
        let mut mpiexec = Command::new(prefix.join("bin/mpiexec"));
        mpiexec.args(["--timeout", "60", "-n", "3"]).arg(&program).arg(kind.name);
        mpiexec.args(kind.arguments).envs(kind.settings.iter().copied());
        judge(kind, mpiexec).map_err(|why| format!("deadlocks, {}: {why}", kind.name))
    });
    results.into_iter().collect::<Result<(), String>>()?;
    println!("ok   {} deadlocks and jobs that look like deadlocks", KINDS.len());
    tally.passed += KINDS.len();
    Ok(())
}

/// Compares the end of a job with the end that is expected.
fn judge(kind: &Kind, mut mpiexec: Command) -> Result<(), String> {
    let output = mpiexec.output().map_err(|e| e.to_string())?;
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    let expected = if kind.report.is_empty() { &["no deadlock"] } else { kind.report };
    let code = if kind.report.is_empty() { 0 } else { DEADLOCK };
    let missing = expected.iter().find(|part| !text.contains(**part));
    match (output.status.code(), missing) {
        (Some(ended), None) if ended == code => Ok(()),
        (ended, _) => {
            Err(format!("exit code {ended:?}, expected {code} with {expected:?}:\n{text}"))
        }
    }
}
