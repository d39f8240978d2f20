//! Counted costs of a payload for each protocol: the number of times that each byte is written, and the number of system calls.
//!
//! Two tools run tests/c/moves. valgrind's cachegrind simulates a small cache, and counts the lines that are written while they are
//! not in the cache. Each copy of a payload counts once, because a buffer is no longer in the cache when the program uses it again.
//! The stack, and memory that a wait polls, stay in the cache and do not count. The count of a run that moves nothing is
//! subtracted, so start and end of the program do not count. strace reports the calls, and the bytes that the kernel copied.

use super::tally::Tally;
use super::tools::{quiet, strace_runs};
use std::fs;
use std::path::Path;
use std::process::Command;

/// Number of bytes of a cache line.
const LINE: f64 = 64.0;

/// A method of moving payloads, with its maximum costs.
struct Way {
    name: &'static str,
    /// Arguments of moves: operation, bytes, repetitions.
    arguments: [&'static str; 3],
    settings: &'static [(&'static str, &'static str)],
    /// Number of copies of each byte.
    copies: u32,
    /// Number of system calls for a payload, except calls that wait.
    calls: f64,
}

/// Maximum numbers of system calls for a payload. `SELDOM` allows an occasional call that makes room. `PARTS` is for a payload of 2
/// MiB, which both ends read in several parts.
const SELDOM: f64 = 0.25;
const PARTS: f64 = 8.0;

const WAYS: [Way; 9] = [
    way("eager", ["send", "4096", "80"], &[("WEFT_PROTOCOL", "eager")], 2, SELDOM),
    way("staged", ["send", "65536", "20"], &[("WEFT_PROTOCOL", "staged")], 2, SELDOM),
    way("read", ["send", "2097152", "4"], &[("WEFT_PROTOCOL", "read")], 1, PARTS),
    way("co-copy", ["send", "2097152", "4"], &[("WEFT_PROTOCOL", "co-copy")], 1, PARTS),
    way("written", ["send", "2097152", "4"], &[("WEFT_RENDEZVOUS", "write")], 1, PARTS),
    way("pieces", ["send", "2097152", "4"], &[("WEFT_CMA", "0")], 2, SELDOM),
    way("copied", ["put", "65536", "20"], &[], 1, 0.0),
    way("copied", ["get", "65536", "20"], &[], 1, 0.0),
    way("copied", ["put", "2097152", "4"], &[], 1, 0.0),
];

const fn way(
    name: &'static str,
    arguments: [&'static str; 3],
    settings: &'static [(&'static str, &'static str)],
    copies: u32,
    calls: f64,
) -> Way {
    Way { name, arguments, settings, copies, calls }
}

/// Calls that wait, or that wake a waiting thread, including the program's own sleep. The number of such calls depends on chance.
pub(super) const WAITING: [&str; 16] = [
    "sched_yield",
    "futex",
    "poll",
    "ppoll",
    "nanosleep",
    "clock_nanosleep",
    "epoll_wait",
    "epoll_pwait",
    "read",
    "write",
    "recvfrom",
    "recvmsg",
    "sendto",
    "sendmsg",
    "restart_syscall",
    "rt_sigreturn",
];

pub fn run(prefix: &Path, tally: &mut Tally) -> Result<(), String> {
    let folder = super::c_programs::folder()?;
    let valgrind = Command::new("valgrind").arg("true").output();
    let valgrind_runs = valgrind.is_ok_and(|output| output.status.success());
    for (tool, runs) in [("strace", strace_runs()), ("valgrind", valgrind_runs)] {
        if !runs {
            tally
                .not_run
                .push(format!("copies and system calls by protocol: {tool} does not run here"));
            return Ok(());
        }
    }
    super::c_programs::compile(
        prefix,
        &crate::root().join("tests/c/moves.c"),
        &folder.join("moves"),
    )?;
    for way in &WAYS {
        let [what, bytes, times] = way.arguments;
        let number = |text: &str| text.parse::<f64>().map_err(|e| format!("{text}: {e}"));
        let payload = number(bytes)? * number(times)?;
        let traced = calls(prefix, &folder, way)?;
        let moved = written(prefix, &folder, way, times)?
            .saturating_sub(written(prefix, &folder, way, "0")?);
        let copies = (moved as f64 * LINE + traced.bytes as f64) / payload;
        let calls = traced.calls as f64 / number(times)?;
        let told = format!(
            "{what} of {bytes} bytes, {}: {copies:.2} copies, {calls:.2} system calls",
            way.name
        );
        // There are also a few writes that do not belong to the payload.
        let most = f64::from(way.copies) + 0.3;
        if !(0.9..=most).contains(&copies) || calls > way.calls {
            return Err(format!(
                "{told}; expected at most {} and {}\n{}",
                way.copies, way.calls, traced.text
            ));
        }
        println!("ok   {told}");
        tally.passed += 1;
    }
    Ok(())
}

/// Results of strace between the marks.
#[derive(Default, Debug, PartialEq)]
struct Traced {
    calls: u64,
    /// Number of bytes copied by the kernel.
    bytes: u64,
    /// Lines of the counted calls.
    text: String,
}

/// Call that marks the start and the end of the counted part, as strace prints it.
const MARK: &str = "getpgid(2129624815)";

impl Traced {
    /// Adds the trace of a process or thread, and returns true, if the trace has both marks. Only the part between the marks
    /// counts.
    fn add(&mut self, trace: &str) -> bool {
        let mut parts = trace.split(MARK);
        let (Some(_), Some(counted), Some(_), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return false;
        };
        for line in counted.lines().skip(1) {
            let Some((name, rest)) = line.split_once('(') else { continue };
            if WAITING.contains(&name) || name.starts_with("---") {
                continue;
            }
            self.calls += 1;
            self.text += &format!("{line}\n");
            let result = rest
                .rsplit_once(" = ")
                .and_then(|(_, value)| value.split(' ').next()?.parse().ok());
            if name.starts_with("process_vm_") {
                self.bytes += result.unwrap_or(0);
            }
        }
        true
    }
}

fn calls(prefix: &Path, folder: &Path, way: &Way) -> Result<Traced, String> {
    let mut traced = Traced::default();
    let mut marked = 0;
    for trace in logs(prefix, folder, way, way.arguments[2], &["strace", "-ff", "-o", "LOG"])? {
        marked += usize::from(traced.add(&trace));
    }
    if marked == 2 {
        Ok(traced)
    } else {
        Err(format!("{}: {marked} ranks traced, not 2", way.name))
    }
}

/// Returns the number of cache lines that all processes have written while the lines were not in the cache.
fn written(prefix: &Path, folder: &Path, way: &Way, times: &str) -> Result<u64, String> {
    let tool = [
        "valgrind",
        "--tool=cachegrind",
        "--cache-sim=yes",
        "--D1=32768,8,64",
        "--LL=65536,16,64",
        "--cachegrind-out-file=/dev/null",
        "--log-file=LOG.%p",
    ];
    let logs = logs(prefix, folder, way, times, &tool)?;
    let misses: Vec<u64> = logs.iter().filter_map(|log| missed_writes(log)).collect();
    if misses.len() == 2 {
        Ok(misses.iter().sum())
    } else {
        Err(format!("{}: {} ranks counted, not 2", way.name, misses.len()))
    }
}

/// Reads the count from "D1  misses:  53,224  (  39,903 rd   +  13,321 wr)".
fn missed_writes(log: &str) -> Option<u64> {
    let line = log.lines().find(|line| line.contains("D1  misses:"))?;
    let number = line.rsplit_once('+')?.1.split("wr").next()?.trim();
    number.replace(',', "").parse().ok()
}

/// Runs a job under a tool and returns the logs of all its processes. The logs' names begin with the word that replaces LOG in the
/// arguments of the tool.
fn logs(
    prefix: &Path,
    folder: &Path,
    way: &Way,
    times: &str,
    tool: &[&str],
) -> Result<Vec<String>, String> {
    let place = folder.join("counts");
    let _ = fs::remove_dir_all(&place); // of an earlier run
    let failed = |e: std::io::Error| format!("{}: {e}", place.display());
    fs::create_dir_all(&place).map_err(failed)?;
    let log = place.join("log").display().to_string();
    let mut job = Command::new(prefix.join("bin/mpiexec"));
    job.args(["--timeout", "120", "-n", "2"])
        .args(tool.iter().map(|word| word.replace("LOG", &log)));
    job.arg(folder.join("moves")).args(&way.arguments[..2]).arg(times);
    // With the generic model, the library makes the same choices on each machine, and measures nothing during the run.
    job.env("WEFT_COPY_MODEL", "generic").envs(way.settings.iter().copied());
    quiet(&mut job)?;
    let mut logs = Vec::new();
    for entry in fs::read_dir(&place).map_err(failed)?.flatten() {
        logs.push(fs::read_to_string(entry.path()).map_err(failed)?);
    }
    Ok(logs)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Useful during work on a protocol: `cargo test -p xtask counts -- --ignored --nocapture`.
    #[test]
    #[ignore = "a part of cargo xtask test --only limits, which installs the library"]
    fn ways_cost_what_they_may() {
        let mut tally = Tally::default();
        run(&crate::demo::prefix(), &mut tally).unwrap();
        assert!(tally.not_run.is_empty(), "{:?}", tally.not_run);
    }

    #[test]
    fn what_lies_between_the_marks_counts() {
        let mut traced = Traced::default();
        let mark = format!("{MARK} = -1 ESRCH (No such process)\n");
        let counted = "sched_yield() = 0\nprocess_vm_readv(1, [{a, b}], 1, [{c}], 1, 0) = 4096\n\
                       --- SIGCHLD {si_signo=SIGCHLD} ---\nmprotect(0x7, 4096, PROT_READ) = 0\n\
                       process_vm_readv(1) = -1 EPERM (no)\n";
        assert!(traced.add(&format!("openat(1) = 3\n{mark}{counted}{mark}close(3) = 0\n")));
        assert_eq!((traced.calls, traced.bytes), (3, 4096));
        // A thread that only helps or measures does not make both marks.
        assert!(!traced.add(&format!("openat(1) = 3\n{counted}")));
        assert_eq!(traced.calls, 3);
    }

    #[test]
    fn lines_written_are_read_from_the_report() {
        let log = "==7== D refs:  9\n==7== D1  misses:        53,224  (   39,903 rd   +    13,321 wr)\n==7== LLd misses: 1 (1 rd + 0 wr)\n";
        assert_eq!(missed_writes(log), Some(13321));
        assert_eq!(missed_writes("nothing"), None);
    }
}
