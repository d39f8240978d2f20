//! One host of a job, as `mpiexec` sees it: the command that reaches the host, and the agent there.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Instant;

use nix::fcntl::{FcntlArg, OFlag, fcntl};
use nix::sys::prctl;
use nix::sys::signal::Signal;
use weft_bootstrap::limits::explain;
use weft_bootstrap::slot_table;

use crate::agent_command::AgentLine;
use crate::agent_line::agent_line;
use crate::frames::{Down, GREETING, MAGIC, Up, encode, take};
use crate::hosts::Host;
use crate::inherited::Inheritance;
use crate::options::{LAUNCH_AGENT, Options};
use crate::signs::{self, Pulse};

/// Maximum number of bytes of a login shell's output that are skipped before the agent's first line.
const MAX_GREETING: usize = 64 * 1024;

/// Connection with an agent.
pub struct Link {
    /// Name of the host.
    pub host: String,
    /// Command line that reaches the host.
    pub command: String,
    child: Child,
    to: Option<File>,
    from: Option<File>,
    outbox: Vec<u8>,
    inbox: Vec<u8>,
    greeted: bool,
    /// Identity of the machine; `None` until the agent has sent it.
    pub identity: Option<String>,
    /// Signs of life of both ends; `None` until the agent has sent its identity.
    pub pulse: Option<Pulse>,
    /// Numbers of the ranks on the host.
    pub ranks: Vec<usize>,
    /// True after the agent has got its share of the job.
    pub started: bool,
    /// True after the agent has reported the end of all its ranks.
    pub done: bool,
    /// Time by which the command must have ended.
    pub leave: Option<Instant>,
    /// Numbers of bytes of standard output and standard error that were read, but have not been reported to the agent yet.
    pub taken: [usize; 2],
    status: Option<ExitStatus>,
}

/// Returns the environment variables that ranks need to spawn processes: the list of hosts, and the command that reaches hosts.
pub fn for_spawns(options: &Options, links: &[Link]) -> Vec<(OsString, OsString)> {
    let host = |host: &Host| {
        let on_it = |link: &&Link| link.host == host.name;
        let taken = links.iter().filter(on_it).map(|link| link.ranks.len()).sum();
        // An address with colons needs brackets in a list with slots.
        let is_address = host.name.contains(':');
        let name = if is_address { format!("[{}]", host.name) } else { host.name.clone() };
        slot_table::HostSlots { name, slots: host.slots, taken }
    };
    let hosts: Vec<_> = options.hosts.iter().map(host).collect();
    let mut all = vec![(slot_table::VARIABLE.into(), slot_table::encode(&hosts).into())];
    if let Some(agent) = &options.launch_agent {
        all.push((LAUNCH_AGENT.into(), agent.join(" ").into()));
    }
    let alive =
        [(signs::INTERVAL, options.alive.interval), (signs::TIMEOUT, options.alive.timeout)];
    all.extend(alive.map(|(name, time)| (name.into(), time.as_secs_f64().to_string().into())));
    all
}

impl Link {
    /// Starts the command that reaches the host. Returns before the host is reached.
    pub fn start(
        options: &Options,
        host: &str,
        ranks: Vec<usize>,
        inheritance: Inheritance,
    ) -> io::Result<Link> {
        let AgentLine { words: line, hidden } = agent_line(options, host)?;
        let mut command = Command::new(&line[0]);
        for name in hidden {
            command.env_remove(name);
        }
        command.args(&line[1..]).stdin(Stdio::piped()).stdout(Stdio::piped());
        let prepare = move || {
            // If `mpiexec` dies, the kernel kills the command. The connection to the agent then ends, and the agent ends, too.
            prctl::set_pdeathsig(Signal::SIGKILL)?;
            inheritance.restore()
        };
        // SAFETY: `pre_exec` allows only async-signal-safe functions between fork and exec. `prepare` makes system calls only.
        unsafe { command.pre_exec(prepare) };
        let words: Vec<_> = line.iter().map(|word| word.to_string_lossy()).collect();
        let text = words.join(" ");
        let failed =
            |error: io::Error| io::Error::new(error.kind(), format!("{text}: {}", explain(&error)));
        let mut child = command.spawn().map_err(failed)?;
        let open = |pipe: Option<OwnedFd>| -> io::Result<Option<File>> {
            let Some(pipe) = pipe else { return Ok(None) };
            fcntl(&pipe, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
            Ok(Some(pipe.into()))
        };
        let to = open(child.stdin.take().map(OwnedFd::from))?;
        let from = open(child.stdout.take().map(OwnedFd::from))?;
        Ok(Link {
            host: host.to_owned(),
            command: text,
            child,
            to,
            from,
            outbox: Vec::new(),
            inbox: Vec::new(),
            greeted: false,
            identity: None,
            pulse: None,
            ranks,
            started: false,
            done: false,
            leave: None,
            taken: [0; 2],
            status: None,
        })
    }

    /// Queues a message.
    pub fn send(&mut self, message: &Down) {
        self.send_bytes(&encode(message));
    }

    /// Queues an encoded message.
    pub fn send_bytes(&mut self, message: &[u8]) {
        if self.to.is_some() {
            self.outbox.extend(message);
            self.write();
        }
    }

    /// Returns the descriptor to poll for writing, if messages wait.
    pub fn writing(&self) -> Option<BorrowedFd<'_>> {
        self.to.as_ref().filter(|_| !self.outbox.is_empty()).map(File::as_fd)
    }

    /// Returns the descriptor to poll for reading.
    pub fn reading(&self) -> Option<BorrowedFd<'_>> {
        self.from.as_ref().map(File::as_fd)
    }

    /// Writes as many bytes as the pipe accepts without waiting.
    pub fn write(&mut self) {
        let mut written = 0;
        while written < self.outbox.len() {
            let Some(to) = &mut self.to else { break };
            match to.write(&self.outbox[written..]) {
                Ok(count) => written += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                // A later read reports the end of the connection.
                Err(_) => {
                    self.to = None;
                    written = self.outbox.len();
                }
            }
        }
        self.outbox.drain(..written);
    }

    /// Reads the available messages.
    pub fn read(&mut self) -> Result<Vec<Up>, String> {
        let mut piece = [0; 64 * 1024];
        while let Some(from) = &mut self.from {
            match from.read(&mut piece) {
                Ok(0) => self.from = None,
                Ok(count) => self.inbox.extend(&piece[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(_) => self.from = None,
            }
            if self.inbox.len() > 1 << 20 {
                // The remaining bytes are read later, so that other hosts are served first.
                break;
            }
        }
        if !self.greeted && !self.greet()? {
            return Ok(Vec::new());
        }
        let mut messages = Vec::new();
        while let Some(message) = take(&mut self.inbox)? {
            messages.push(message);
        }
        Ok(messages)
    }

    /// Sends a sign of life if it is due. Bytes that wait to be written count as a sign.
    pub fn give_sign(&mut self, now: Instant) {
        let is_due = self.pulse.as_mut().is_some_and(|pulse| pulse.is_due(now));
        if is_due && self.outbox.is_empty() {
            self.send(&Down::Alive);
        }
    }

    /// Skips text before the agent's greeting. Returns true if the greeting has arrived.
    fn greet(&mut self) -> Result<bool, String> {
        let at = self.inbox.windows(MAGIC.len()).position(|window| window == MAGIC.as_bytes());
        if let Some(at) = at {
            self.inbox.drain(..at + MAGIC.len());
            self.greeted = true;
        } else if let Some(other) = other_version(&self.inbox) {
            return Err(format!(
                "another version of Weft answers there: it printed {other:?}, and this one prints {:?}; install \
                 the same version at the same path on all hosts",
                MAGIC.trim_end()
            ));
        } else if self.inbox.len() > MAX_GREETING {
            let text = String::from_utf8_lossy(&self.inbox[..200]).into_owned();
            return Err(format!("the command printed no answer of this mpiexec, but {text:?}"));
        }
        Ok(self.greeted)
    }

    /// Returns the text that the command printed instead of the agent's greeting.
    pub fn printed(&self) -> String {
        let text = String::from_utf8_lossy(&self.inbox[..self.inbox.len().min(200)]);
        if self.greeted { String::new() } else { text.trim().to_owned() }
    }

    /// Returns the printed text as the end of a clause. Returns an empty text if nothing was printed.
    pub fn said(&self) -> String {
        match self.printed() {
            text if text.is_empty() => text,
            text => format!(", and printed {text:?}"),
        }
    }

    /// Returns the exit status of the command, if the command has ended.
    pub fn status(&mut self) -> Option<ExitStatus> {
        if self.status.is_none() {
            self.status = self.child.try_wait().ok().flatten();
        }
        self.status
    }

    /// Returns true if the connection has ended.
    pub fn is_over(&mut self) -> bool {
        self.from.is_none() && self.status().is_some()
    }

    /// Closes the pipe to the agent. This ends the job for the agent.
    pub fn hang_up(&mut self) {
        self.to = None;
        self.outbox.clear();
    }

    /// Kills the command and closes the connection.
    pub fn kill(&mut self) {
        self.hang_up();
        self.from = None;
        let _ = self.child.kill();
        self.status = self.child.wait().ok();
    }
}

/// Returns the greeting of an agent of another version, if `text` contains such a greeting as a separate line.
fn other_version(text: &[u8]) -> Option<String> {
    // Only complete lines are examined. An incomplete line may still become the greeting of this version.
    let whole = text.split_inclusive(|&byte| byte == b'\n').filter(|line| line.ends_with(b"\n"));
    let mut lines = whole.map(|line| String::from_utf8_lossy(line).trim_end().to_owned());
    lines.find(|line| {
        let rest = line.strip_prefix(GREETING);
        rest.is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_digit()))
    })
}

/// Describes how a command ended.
pub fn words(status: Option<ExitStatus>) -> String {
    match status.map(|status| (status.code(), status.signal())) {
        Some((Some(code), _)) => format!("the command ended with exit code {code}"),
        Some((_, Some(signal))) => format!("the command was killed by signal {signal}"),
        _ => "the command has closed its output".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spawned_jobs_get_addresses_in_brackets() {
        let mut options = Options::default();
        crate::hosts::list("[2001:db8::2]:3,b", &mut options.hosts).unwrap();
        let (name, text) = for_spawns(&options, &[]).swap_remove(0);
        assert_eq!(
            (name.to_str(), text.to_str()),
            (Some(slot_table::VARIABLE), Some("[2001:db8::2]:3:0,b:1:0"))
        );
        let list = slot_table::free_first(&slot_table::decode(text.to_str().unwrap()));
        let mut hosts = Vec::new();
        crate::hosts::list(&list, &mut hosts).unwrap();
        assert_eq!(hosts, options.hosts);
    }

    #[test]
    fn agents_of_other_versions_are_told_by_their_greeting() {
        let found = |text: &str| other_version(text.as_bytes());
        assert_eq!(found("hello\nweft agent 1\n"), Some("weft agent 1".into()));
        assert_eq!(found("weft agent 99 9.9.9\r\nx"), Some("weft agent 99 9.9.9".into()));
        for other in ["weft agent 1", "weft agent\n", "weft agents\n", "a weft agent 1\n", ""] {
            assert_eq!(found(other), None, "{other:?}");
        }
    }
}
