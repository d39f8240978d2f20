//! System calls of a short message over TCP whose receiver polls: one call sends, one call receives, and there must be no other
//! calls. Polls that find nothing are not counted, because their number depends on time. Also counts how often the helper sleeps in
//! a process that puts. The helper must sleep seldom, because the answers are for the program's thread, which waits for them. In the
//! target of the puts the helper must sleep seldom unless the target computes.

use super::hosts::{mpiexec, said};
use super::inside::NetTestsArgs;
use crate::test::cluster::parts::TestParts;
use std::fs;

/// Number of messages between the marks. The receiver answers each message.
const MESSAGES: usize = 50;

/// Call that marks the start and the end of the counted part (`tests/c/moves.c`), as strace prints it.
const MARK: &str = "getpgid(2129624815)";

/// Kinds of calls, each with the maximum number of calls that the receiver makes for a message. The receiver sends an answer for
/// each message. A doorbell wakes a receiver that sleeps. This receiver does not sleep, so there are almost no such calls.
const MOST: [(&str, &[&str], f64); 3] = [
    ("send", &["sendto(", "sendmsg("], 1.1),
    ("receive", &["recvfrom(", "recvmsg(", "readv("], 1.1),
    ("ring", &["write(", "read("], 0.2),
];

/// Number of puts, each with a flush, and the maximum number of sleeps of the helper for a put.
const PUTS: usize = 100;
const SLEEPS: f64 = 0.7;

/// Program of tests/c that sends windows of messages. Its arguments are the number of bytes of a message, the number of messages of
/// a window, and the number of windows.
pub const MANY: &str = "many_messages";
const WINDOW: [usize; 3] = [64 << 10, 64, 6];

/// Maximum number of sends by both ends for a message of a window. A send is for the message, for words of credit, or a retry
/// because an earlier send found no room in the socket.
const SENDS: f64 = 1.5;

/// Program of tests/c that counts how often the target's helper sleeps. Each activity of the target has the maximum number of sleeps
/// for a put. A computing target needs its helper for each put.
pub const WOKEN: &str = "woken";
const WOKEN_MOST: [(&str, f64); 3] = [("compute", 2.0), ("barrier", 0.1), ("recv", 0.1)];
const WOKEN_PUTS: usize = 50;

pub fn run(inside: &NetTestsArgs, parts: &mut TestParts) -> Result<(), String> {
    parts.part("system calls of a message", |parts| {
        parts.test("a receiver of 8 bytes sends once, receives once, rings for nobody", || {
            judge(&traced(inside, "moves", &["send", "8", &MESSAGES.to_string()])?[1])
        });
        parts.test(
            "a window of 64 messages of 64 KiB sends little more than once a message",
            || {
                let words = WINDOW.map(|number| number.to_string());
                let both = traced(inside, MANY, &words.each_ref().map(String::as_str))?;
                judge_windows(&both.concat())
            },
        );
        parts.test("puts and flushes do not wake the helper of their process", || {
            traced(inside, "moves", &["put", "8", &PUTS.to_string()])?;
            judge_helper(&traces(inside, "node0.")?)
        });
        for (activity, most) in WOKEN_MOST {
            parts.test(&format!("puts and the helper of a target: {activity}"), || {
                let mut command = mpiexec(inside, "node0,node1", "2");
                command.arg(inside.programs.join(WOKEN)).args([activity, &WOKEN_PUTS.to_string()]);
                judge_woken(&said(&mut command, "correct")?, most)
            });
        }
        Ok(())
    })
}

/// Checks how often the target's helper slept, from a line like "barrier: the helper slept 0 times in 50 puts".
fn judge_woken(report: &str, most: f64) -> Result<String, String> {
    let count = report.split("the helper slept ").nth(1).and_then(|rest| rest.split(' ').next());
    let count = count.and_then(|count| count.parse::<f64>().ok());
    let each = count.ok_or("no count")? / WOKEN_PUTS as f64;
    let told = format!("{each:.2} sleeps of the target's helper a put, of at most {most}");
    if (0.0..=most).contains(&each) { Ok(told) } else { Err(told) }
}

/// Returns the traces of the program's threads on a host.
fn traces(inside: &NetTestsArgs, host: &str) -> Result<Vec<String>, String> {
    let folder = inside.programs.join("traced");
    let logs = fs::read_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let paths = logs.flatten().map(|entry| entry.path());
    let is_of_host = |path: &std::path::PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(host))
    };
    let read = |path: std::path::PathBuf| {
        fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))
    };
    paths.filter(is_of_host).map(read).collect()
}

/// Checks how often the threads other than the program's thread slept.
fn judge_helper(traces: &[String]) -> Result<String, String> {
    let others = traces.iter().filter(|text| !text.contains(MARK));
    let sleeps = others.flat_map(|text| text.lines()).filter(|line| line.starts_with("ppoll("));
    let each = sleeps.count() as f64 / PUTS as f64;
    let told = format!("{each:.2} sleeps of the helper a put, of at most {SLEEPS}");
    if each <= SLEEPS { Ok(told) } else { Err(told) }
}

/// Runs a program on two hosts. Returns its system calls between the marks: on the first host, and on the second.
fn traced(inside: &NetTestsArgs, program: &str, words: &[&str]) -> Result<[String; 2], String> {
    let folder = inside.programs.join("traced");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut command = mpiexec(inside, "node0,node1", "2");
    let trace = format!("exec strace -ff -o {}/$(hostname) \"$@\"", folder.display());
    command.args(["sh", "-c", &trace, "sh"]).arg(inside.programs.join(program)).args(words);
    said(&mut command, "correct")?;
    let of = |host: &str| -> Result<String, String> {
        let all = traces(inside, host)?;
        let counted = all.iter().find_map(|text| text.split(MARK).nth(1));
        counted
            .map(str::to_owned)
            .ok_or_else(|| format!("{}: no trace of {host} has the marks", folder.display()))
    };
    Ok([of("node0.")?, of("node1.")?])
}

/// Checks how many sends both ends made for each message of a window.
fn judge_windows(counted: &str) -> Result<String, String> {
    let [_, window, rounds] = WINDOW;
    let sends = counted.lines().filter(|line| line.starts_with("send")).count();
    let each = sends as f64 / (window * rounds) as f64;
    let told = format!("{each:.2} sends a message of at most {SENDS}");
    if (1.0..=SENDS).contains(&each) { Ok(told) } else { Err(told) }
}

/// Checks the calls between the marks.
fn judge(counted: &str) -> Result<String, String> {
    let mut told = Vec::new();
    let mut fits = true;
    for (kind, calls, most) in MOST {
        let is_one = |line: &&str| calls.iter().any(|call| line.starts_with(call));
        let each = counted.lines().filter(is_one).count() as f64 / MESSAGES as f64;
        fits &= each <= most;
        told.push(format!("{kind} {each:.2} of at most {most}"));
    }
    let sends = counted.lines().filter(|line| line.starts_with("send")).count();
    let told = told.join(", ");
    if fits && sends >= MESSAGES { Ok(told) } else { Err(format!("{told}\n{counted}")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_for_each_message_is_too_much() {
        let quiet = "readv(35, ...) = 80\nsendmsg(35, ...) = 80\n".repeat(MESSAGES);
        assert!(judge(&quiet).is_ok());
        let loud = quiet.clone() + &"write(17, ...) = 1\n".repeat(MESSAGES);
        assert!(judge(&loud).unwrap_err().contains("ring 1.00"));
        assert!(judge("").is_err(), "nothing was sent");
    }

    #[test]
    fn a_target_without_a_helper_or_with_a_busy_helper_fails() {
        let report = |times| format!("recv: the helper slept {times} times in 50 puts\ncorrect\n");
        assert!(judge_woken(&report(5), 0.1).is_ok());
        assert!(judge_woken(&report(6), 0.1).is_err());
        assert!(judge_woken(&report(-1), 0.1).is_err());
        assert!(judge_woken("correct\n", 0.1).is_err());
    }

    #[test]
    fn only_sleeps_of_other_threads_count() {
        let sleeps = "ppoll([{fd=9}], 1, NULL, NULL, 8) = 1\n".repeat(PUTS);
        let program = format!("{MARK} = -1\n{sleeps}");
        assert!(judge_helper(&[program.clone(), String::new()]).is_ok());
        assert!(judge_helper(&[program, sleeps]).is_err());
    }
}
