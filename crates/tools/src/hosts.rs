//! `weft info --hosts a,b`: tests if a job could run on these hosts. It reaches all hosts at the same time, by the same command as
//! `mpiexec`, and starts this program at the same path on each host.
//!
//! ```text
//!   weft info --hosts            weft host-facts, on each host
//!   starts it (ssh) ───────────▶ GREETING, version, path, machine, addresses
//!   a byte ────────────────────▶ the time there         several times: the quickest answer is the most precise
//! ```

use std::io::{BufRead, BufReader, Read, Write};
use std::net::IpAddr;
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use std::{env, fmt, io};

use weft_bootstrap::calls::start_thread;
use weft_bootstrap::host_names::is_local;
use weft_bootstrap::limits::explain;
use weft_bootstrap::nodes::identity;

use crate::library;
use crate::tree::Tree;

/// Words before the facts of a host. Text before these words comes from the login shell and is skipped.
const GREETING: &str = "weft host facts";
/// Maximum time for a host's answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// Number of times that the clock of a host is read.
const LOOKS: usize = 5;
/// Command by which mpiexec reaches hosts, unless `WEFT_RSH` gives another.
const SSH: &str = "ssh -x -o BatchMode=yes";

/// Facts that a host reports.
#[derive(Debug, Clone, PartialEq, Eq)]
struct HostFacts {
    version: String,
    path: String,
    machine: String,
    addresses: String,
}

/// Difference between the clock of a host and the clock of this host, and the maximum error of the difference, in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ClockOffset {
    ahead: i64,
    doubt: i64,
}

type Answer = Result<(HostFacts, ClockOffset, Duration), String>;

fn microseconds() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

/// Lists the addresses of all interfaces that are up and may lead to other hosts.
fn addresses() -> String {
    let mut all: Vec<String> = Vec::new();
    for interface in nix::ifaddrs::getifaddrs().into_iter().flatten() {
        let is_up = interface.flags.contains(nix::net::if_::InterfaceFlags::IFF_UP);
        let address = interface.address.as_ref().and_then(|address| {
            let four = address.as_sockaddr_in().map(|four| IpAddr::from(four.ip()));
            four.or_else(|| address.as_sockaddr_in6().map(|six| six.ip().into()))
        });
        let Some(address) = address.filter(|address| is_up && !address.is_loopback()) else {
            continue;
        };
        // A link-local address is not enough to connect hosts.
        if !matches!(address, IpAddr::V6(six) if six.is_unicast_link_local()) {
            all.push(format!("{} {address}", interface.interface_name));
        }
    }
    all.join(", ")
}

/// Prints the facts of this host, then the time for each byte that it reads (`weft host-facts`).
pub fn say_facts() -> Result<String, String> {
    let failed = |error: io::Error| format!("standard output: {error}");
    let version = Tree::of_this_program().and_then(|tree| library::ask(&tree.library()));
    let version = version.map_or_else(|why| format!("no library: {why}"), |about| about.version);
    let path = env::current_exe().unwrap_or_default();
    let facts = [GREETING, &version, &path.to_string_lossy(), &identity(), &addresses()];
    let line = facts.map(|fact| fact.replace(['\t', '\n'], " ")).join("\t");
    let mut out = io::stdout().lock();
    writeln!(out, "{line}").and_then(|()| out.flush()).map_err(failed)?;
    let mut byte = [0];
    while io::stdin().read(&mut byte).is_ok_and(|count| count > 0) {
        writeln!(out, "{}", microseconds()).and_then(|()| out.flush()).map_err(failed)?;
    }
    Ok(String::new())
}

fn facts(line: &str) -> Option<HostFacts> {
    let at = line.find(GREETING)?;
    let mut fields = line[at..].trim_end().split('\t').skip(1).map(str::to_owned);
    let mut next = || fields.next();
    Some(HostFacts { version: next()?, path: next()?, machine: next()?, addresses: next()? })
}

/// Quotes a word for the shell of a host.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', "'\\''"))
}

/// Returns the command that asks `host` for its facts, through the command `agent` if it is given.
fn command(host: &str, agent: Option<&str>) -> Result<Command, String> {
    let program = env::current_exe().map_err(|error| format!("this program's path: {error}"))?;
    let mut command = if agent.is_none() && is_local(host) {
        Command::new(program)
    } else {
        let mut words = agent.unwrap_or(SSH).split_whitespace();
        let mut command = Command::new(words.next().ok_or("WEFT_RSH names no command")?);
        command.args(words).arg(host).arg(quoted(&program.to_string_lossy()));
        command
    };
    command.arg("host-facts");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    Ok(command)
}

/// Reads the facts and the clock from a process that was started on a host.
fn ask(mut to: ChildStdin, from: ChildStdout, mut errors: ChildStderr, begun: Instant) -> Answer {
    let mut lines = BufReader::new(from);
    let mut line = Vec::new();
    let mut printed = String::new();
    let found = loop {
        line.clear();
        match lines.by_ref().take(1 << 16).read_until(b'\n', &mut line) {
            Ok(1..) => {}
            _ => {
                let _ = errors.by_ref().take(1 << 16).read_to_string(&mut printed);
                let last = printed.trim().lines().last().unwrap_or("the command printed nothing");
                return Err(last.to_owned());
            }
        }
        let text = String::from_utf8_lossy(&line);
        if let Some(found) = facts(&text) {
            break found;
        }
        printed = format!("{}\n", text.trim_end());
    };
    let took = begun.elapsed();
    let mut best: Option<ClockOffset> = None;
    for _ in 0..LOOKS {
        let (before, start) = (microseconds(), Instant::now());
        let mut text = String::new();
        let said = to.write_all(b"?").and_then(|()| lines.read_line(&mut text));
        let round = i64::try_from(start.elapsed().as_micros()).unwrap_or(i64::MAX);
        let there = said.ok().and_then(|_| text.trim().parse::<i64>().ok());
        let there = there.ok_or("the host has said no time")?;
        let offset = ClockOffset { ahead: there - before - round / 2, doubt: round / 2 };
        best =
            Some(best.map_or(offset, |best| if offset.doubt < best.doubt { offset } else { best }));
    }
    best.map(|offset| (found, offset, took)).ok_or_else(|| "the host has said no time".to_owned())
}

/// Returns the names in a list of `mpiexec --hosts`, each once.
fn names(list: &str) -> Result<Vec<String>, String> {
    let mut names: Vec<String> = Vec::new();
    for word in list.split(',') {
        let name = match word.rsplit_once(':') {
            Some((name, _)) if !name.contains(':') || name.ends_with(']') => name,
            _ => word,
        };
        let name = name.trim_start_matches('[').trim_end_matches(']');
        // ssh would take a name that begins with a dash for an option.
        if name.is_empty() || name.starts_with('-') || name.contains(char::is_whitespace) {
            return Err(format!("--hosts {list}: {word:?} is not a host"));
        }
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    }
    Ok(names)
}

impl fmt::Display for ClockOffset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let milliseconds = |us: i64| us as f64 / 1000.0;
        write!(f, "{:+.1} ms (+-{:.1})", milliseconds(self.ahead), milliseconds(self.doubt))
    }
}

/// Returns the table of answers, and true if a job could run on the hosts.
fn table(answers: &[(String, Answer)], own: &str) -> (String, bool) {
    let mut rows =
        vec![["host", "answers in", "clock", "version", "path", "addresses"].map(str::to_owned)];
    let (mut notes, mut well) = (String::new(), true);
    for (at, (host, answer)) in answers.iter().enumerate() {
        let (found, offset, took) = match answer {
            Ok(answer) => answer,
            Err(why) => {
                well = false;
                notes += &format!("{host}: {why}\n");
                rows.push([host, "no answer", "", "", "", ""].map(str::to_owned));
                continue;
            }
        };
        let version = found.version.lines().next().unwrap_or_default().to_owned();
        if found.version != own {
            well = false;
            notes += &format!(
                "{host}: another version; install the same at the same path on all hosts\n"
            );
        }
        let earlier = answers[..at].iter().find(|(_, other)| {
            other.as_ref().is_ok_and(|(other, ..)| other.machine == found.machine)
        });
        if let Some((other, _)) = earlier {
            notes += &format!("{host}: the same machine as {other}\n");
        }
        let answers_in = format!("{:.2} s", took.as_secs_f64());
        let addresses = Some(&found.addresses).filter(|all| !all.is_empty());
        let addresses = addresses.map_or("none but loopback", |all| all);
        rows.push(
            [host, &answers_in, &offset.to_string(), &version, &found.path, addresses]
                .map(str::to_owned),
        );
    }
    let width =
        |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..rows[0].len()).map(width).collect();
    let mut text = String::new();
    for row in &rows {
        let cells = row.iter().zip(&widths).map(|(cell, &width)| format!("{cell:<width$}"));
        text += &format!("{}\n", cells.collect::<Vec<_>>().join("  ").trim_end());
    }
    (text + &notes, well)
}

/// Asks all hosts of `list` at the same time and returns the table. The table is returned as an error if a job could not run on
/// these hosts.
pub fn info(list: &str) -> Result<String, String> {
    let agent = env::var("WEFT_RSH").ok().filter(|agent| !agent.trim().is_empty());
    let way = agent.clone().unwrap_or_else(|| SSH.to_owned());
    let own = library::ask(&Tree::of_this_program()?.library())?.version;
    let names = names(list)?;
    let mut answers: Vec<(String, Answer)> = Vec::new();
    let mut children: Vec<Option<Child>> = Vec::new();
    let (tell, told) = channel();
    for (at, name) in names.iter().enumerate() {
        let mut child = match command(name, agent.as_deref())?.spawn() {
            Ok(child) => child,
            Err(error) => {
                answers.push((name.clone(), Err(format!("{way}: {}", explain(&error)))));
                children.push(None);
                continue;
            }
        };
        let tell = tell.clone();
        if let (Some(to), Some(from), Some(errors)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        {
            let asking = move || {
                let answer = ask(to, from, errors, Instant::now());
                let _ = tell.send((at, answer));
            };
            start_thread("weft-asks", asking).map_err(|error| format!("a thread: {error}"))?;
        }
        children.push(Some(child));
        answers.push((name.clone(), Err(format!("no answer within {} s", PATIENCE.as_secs()))));
    }
    drop(tell);
    let end = Instant::now() + PATIENCE;
    let rest = || end.saturating_duration_since(Instant::now());
    while let Ok((at, answer)) = told.recv_timeout(rest()) {
        answers[at].1 = answer;
    }
    for mut child in children.into_iter().flatten() {
        let _ = child.kill();
        let _ = child.wait();
    }
    let (text, well) = table(&answers, &own);
    if well {
        Ok(text)
    } else {
        Err(format!("not all hosts can run a job (reached with: {way})\n{text}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(version: &str, machine: &str) -> Answer {
        let facts = HostFacts {
            version: version.to_owned(),
            path: "/w/bin/weft".to_owned(),
            machine: machine.to_owned(),
            addresses: "eth0 10.0.0.1".to_owned(),
        };
        Ok((facts, ClockOffset { ahead: -1500, doubt: 200 }, Duration::from_millis(250)))
    }

    #[test]
    fn the_table_names_what_differs() {
        let hosts = [
            ("a".to_owned(), answer("Weft 1", "m1")),
            ("b".to_owned(), answer("Weft 1", "m1")),
            ("c".to_owned(), answer("Weft 2", "m2")),
            ("d".to_owned(), Err("Permission denied (publickey).".to_owned())),
        ];
        let (text, well) = table(&hosts, "Weft 1");
        assert!(!well);
        for words in [
            "a     0.25 s      -1.5 ms (+-0.2)  Weft 1   /w/bin/weft  eth0 10.0.0.1",
            "b: the same machine as a",
            "c: another version",
            "d: Permission denied",
        ] {
            assert!(text.contains(words), "{words}:\n{text}");
        }
        assert!(table(&hosts[..2], "Weft 1").1);
    }

    #[test]
    fn names_are_those_of_mpiexec() {
        assert_eq!(names("a:2,b,[::1]:3,fe80::1,a").unwrap(), ["a", "b", "::1", "fe80::1"]);
        for wrong in ["", "a,,b", "-oProxyCommand=x", "a b"] {
            assert!(names(wrong).unwrap_err().contains("not a host"), "{wrong}");
        }
    }
}
