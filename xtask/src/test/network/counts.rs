//! System calls of a short message over TCP, if its receiver polls: one call that sends, one call that receives, and no other
//! calls. Polls that find nothing are not counted, because their number depends on time.

use super::hosts::{mpiexec, said};
use super::inside::Inside;
use crate::test::cluster::parts::Parts;
use std::fs;

/// Number of messages between the marks. Each of them is answered.
const MESSAGES: usize = 50;

/// Call that marks the start and the end of the counted part (`tests/c/moves.c`), as strace prints it.
const MARK: &str = "getpgid(2129624815)";

/// Kinds of calls, each with its maximum number for a message at the receiver, which sends an answer for each message. A bell is
/// rung once for a sleep. The receiver does not sleep, so it rings almost no bell.
const MOST: [(&str, &[&str], f64); 3] = [
    ("send", &["sendto(", "sendmsg("], 1.1),
    ("receive", &["recvfrom(", "recvmsg(", "readv("], 1.1),
    ("ring", &["write(", "read("], 0.2),
];

/// Program of tests/c that sends windows of messages, and its arguments: bytes of each message, messages of a window, windows.
pub const MANY: &str = "many_messages";
const WINDOW: [usize; 3] = [64 << 10, 64, 6];

/// Maximum number of sends by both ends for a message of a window: the message, words of credit, and retries of sends that found
/// no room.
const SENDS: f64 = 1.5;

pub fn run(inside: &Inside, parts: &mut Parts) -> Result<(), String> {
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
        Ok(())
    })
}

/// Returns the system calls of a program on two hosts between its marks: on the first host, and on the second.
fn traced(inside: &Inside, program: &str, words: &[&str]) -> Result<[String; 2], String> {
    let folder = inside.programs.join("traced");
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
    let mut command = mpiexec(inside, "node0,node1", "2");
    let trace = format!("exec strace -ff -o {}/$(hostname) \"$@\"", folder.display());
    command.args(["sh", "-c", &trace, "sh"]).arg(inside.programs.join(program)).args(words);
    said(&mut command, "correct")?;
    let of = |host: &str| -> Result<String, String> {
        let logs = fs::read_dir(&folder).map_err(|e| format!("{}: {e}", folder.display()))?;
        let paths = logs.flatten().map(|entry| entry.path());
        let is_of_host = |path: &std::path::PathBuf| {
            path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(host))
        };
        for path in paths.filter(is_of_host) {
            let text = fs::read_to_string(&path).map_err(|e| format!("{}: {e}", path.display()))?;
            if let Some(counted) = text.split(MARK).nth(1) {
                return Ok(counted.to_owned());
            }
        }
        Err(format!("{}: no trace of {host} has the marks", folder.display()))
    };
    Ok([of("node0.")?, of("node1.")?])
}

/// Counts the sends of both ends for each message of a window.
fn judge_windows(counted: &str) -> Result<String, String> {
    let [_, window, rounds] = WINDOW;
    let sends = counted.lines().filter(|line| line.starts_with("send")).count();
    let each = sends as f64 / (window * rounds) as f64;
    let told = format!("{each:.2} sends a message of at most {SENDS}");
    if (1.0..=SENDS).contains(&each) { Ok(told) } else { Err(told) }
}

/// Judges the calls between the marks.
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
}
