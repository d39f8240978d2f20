//! `mpiexec` of a job on several hosts. It starts an agent on each host, opens the fences of the key-value space, prints the
//! output, and decides how the job ends.

mod ending;
mod link;
mod report;
mod silence;

use std::collections::HashMap;
use std::env;
use std::ffi::OsString;
use std::io::ErrorKind::{Interrupted, WouldBlock};
use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, poll};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use weft_bootstrap::limits::{explain, words};
use weft_bootstrap::nodes::number;
use weft_bootstrap::wire::PublishedEntry;

use crate::clock::Clock;
use crate::failure::Cause;
use crate::frames::{Down, Share, Up, encode};
use crate::hosts::{place, runs};
use crate::inherited::Inheritance;
use crate::input::Relay;
use crate::options::{LAUNCH_AGENT, Options};
use crate::output::Sink;
use crate::placement::BindPolicy;
use crate::service::{View, stranded};
use crate::signs::Pulse;
use crate::spawn::first_of_each;
use crate::supervisor::{become_supervisor, new_job, raise_files, standard_sinks};
use crate::{complain, last_words};
use link::Link;
use report::HangReport;

/// Exit code if the time limit is reached. timeout(1) uses the same code.
const TIMED_OUT: i32 = 124;
/// Exit code if a host cannot be reached.
const UNREACHED: i32 = 1;
/// Maximum time for which `mpiexec` waits for the end of an agent that should have killed its ranks.
const GIVE_UP_AFTER: Duration = Duration::from_secs(5);
/// Maximum time for which the command that reached a host (ssh) may still run after the agent's last message.
const LEAVE: Duration = Duration::from_secs(3);
/// Maximum number of bytes of input in flight.
const INPUT: usize = 64 * 1024;
/// Environment variables that concern only this machine or this session. They are not sent to other hosts.
const OWN: &[&str] = &[
    "HOSTNAME",
    "HOST",
    "PWD",
    "OLDPWD",
    "SHLVL",
    "_",
    "TMPDIR",
    "DISPLAY",
    "WAYLAND_DISPLAY",
    "XAUTHORITY",
    "DBUS_SESSION_BUS_ADDRESS",
    "WINDOWID",
    "TTY",
    "WEFT_TIMEOUT",
    LAUNCH_AGENT,
];

/// Owner of a ready descriptor.
enum Source {
    Signals,
    Control,
    Read(usize),
    Write(usize),
    Sink(usize),
    Input,
}

struct HeadProcess {
    options: Options,
    inheritance: Inheritance,
    /// Program of each rank.
    programs: Vec<usize>,
    /// Index of each rank's host in `options.hosts`, and in `links` after the launch.
    places: Vec<usize>,
    links: Vec<Link>,
    signals: SignalFd,
    control: Option<UnixStream>,
    sinks: [Sink; 2],
    /// For standard output and standard error: true if the agents know that the stream has no reader.
    unread: [bool; 2],
    /// Clock of all deadlines.
    clock: Clock,
    input: Option<Relay>,
    /// Number of bytes of input that rank 0 has not taken.
    input_under_way: usize,
    seats: Vec<View>,
    ended: Vec<bool>,
    /// Fences that are not open yet, by generation: the number of hosts that have reached the fence, and the values of their ranks.
    fences: HashMap<u32, (usize, Vec<PublishedEntry>)>,
    report: Option<HangReport>,
    /// Time by which all hosts must have answered.
    answer: Option<Instant>,
    timeout: Option<Instant>,
    /// Time by which all agents must have ended.
    ending: Option<Instant>,
    interrupted: bool,
    code: Option<i32>,
    /// True if standard output or error could not be written.
    has_lost_output: bool,
}

/// Runs a job on the hosts of `options`. Returns the exit code.
pub fn run(options: Options, control: UnixStream, inheritance: Inheritance) -> i32 {
    let mut head = match HeadProcess::new(options, control, inheritance) {
        Ok(head) => head,
        Err(error) => {
            let line = format!("cannot start the job: {error}");
            complain(format_args!("mpiexec: {line}"));
            last_words::send(&line, &[]);
            return 1;
        }
    };
    head.launch();
    head.attend();
    last_words::send("", head.sinks[1].last_words(None));
    head.exit_code()
}

impl HeadProcess {
    fn new(
        options: Options,
        control: UnixStream,
        inheritance: Inheritance,
    ) -> Result<HeadProcess, Box<dyn std::error::Error>> {
        become_supervisor()?;
        // Each host has two pipes.
        raise_files(inheritance, 2 * options.hosts.len(), "hosts", options.hosts.len())?;
        control.set_nonblocking(true)?;
        let mut set = SigSet::empty();
        set.add(Signal::SIGCHLD);
        let size = options.size();
        let clock = Clock::new();
        Ok(HeadProcess {
            places: place(&options.hosts, size, options.map)?,
            programs: options.programs().collect(),
            links: Vec::new(),
            signals: SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?,
            control: Some(control),
            sinks: standard_sinks(options.tag_output),
            unread: [false; 2],
            input: None,
            input_under_way: 0,
            seats: vec![View::default(); size],
            ended: vec![false; size],
            fences: HashMap::new(),
            report: None,
            answer: Some(clock.now() + options.launch_timeout),
            timeout: options.timeout.map(|timeout| clock.now() + timeout),
            ending: None,
            interrupted: false,
            code: None,
            has_lost_output: false,
            clock,
            inheritance,
            options,
        })
    }

    /// Starts an agent on each host that has a rank.
    fn launch(&mut self) {
        for host in 0..self.options.hosts.len() {
            let here = |rank: &usize| self.places[*rank] == host;
            let ranks: Vec<usize> = (0..self.places.len()).filter(here).collect();
            if ranks.is_empty() {
                continue;
            }
            let name = self.options.hosts[host].name.clone();
            match Link::start(&self.options, &name, ranks.clone(), self.inheritance) {
                Ok(link) => {
                    for rank in ranks {
                        self.places[rank] = self.links.len();
                    }
                    self.links.push(link);
                }
                Err(error) => {
                    return self.fail(&format!("cannot reach host {name}: {error}"), UNREACHED);
                }
            }
        }
    }

    /// Sends each host its share of the job after all hosts have answered.
    fn start(&mut self) {
        let identities: Vec<&String> =
            self.links.iter().filter_map(|link| link.identity.as_ref()).collect();
        if identities.len() < self.links.len() || self.answer.is_none() || self.code.is_some() {
            return;
        }
        self.answer = None;
        let machines = number(&identities);
        let directory = || {
            env::current_dir().map_err(|error| {
                let text = format!("the working directory: {} (is it removed?)", words(&error));
                std::io::Error::new(error.kind(), text)
            })
        };
        let job = new_job().and_then(|job| Ok((job, directory()?)));
        let ((job, token), directory) = match job {
            Ok(job) => job,
            Err(error) => return self.fail(&format!("cannot start the job: {error}"), 1),
        };
        let nodes: Vec<usize> = self.places.iter().map(|&link| machines[link]).collect();
        let is_own = |name: &OsString| {
            let name = name.to_string_lossy();
            OWN.contains(&name.as_ref()) || name.starts_with("SSH_") || name.starts_with("XDG_")
        };
        let mut environment: Vec<_> =
            first_of_each(env::vars_os()).filter(|(name, _)| !is_own(name)).collect();
        environment.extend(link::for_spawns(&self.options, &self.links));
        for (index, link) in self.links.iter_mut().enumerate() {
            // Agents on the same machine do not know which processors the other agents use.
            let is_shared = machines.iter().filter(|&&m| m == machines[index]).count() > 1;
            let mut placement = self.options.placement.clone();
            if is_shared && placement.is_share() {
                placement.bind = Some(BindPolicy::None);
            }
            let rank = |&rank: &usize| (rank as u32, self.programs[rank] as u32);
            let share = Share {
                apps: self.options.apps.clone(),
                ranks: link.ranks.iter().map(rank).collect(),
                size: self.programs.len() as u32,
                nodes: runs(&nodes),
                job: job.clone(),
                socket: format!("{job}.{index}"),
                token,
                environment: environment.clone(),
                directory: directory.clone().into(),
                placement,
                report_bindings: self.options.report_bindings,
                grace: self.options.grace.as_millis().min(u64::MAX.into()) as u64,
            };
            link.started = true;
            link.send(&Down::Start(Box::new(share)));
        }
        match Relay::start(self.inheritance.group) {
            Ok(relay) => self.input = Some(relay),
            Err(error) => {
                let line = format!("cannot pass standard input on: {}", explain(&error));
                self.fail(&line, 1);
            }
        }
    }

    fn say(&mut self, message: &str) {
        self.sinks[1].say(message);
    }

    /// Handles events until all agents have ended and all output is written.
    fn attend(&mut self) {
        loop {
            let now = self.clock.now();
            self.check(now);
            let is_left = self.interrupted && self.ending.is_some_and(|until| until <= now);
            if self.links.iter_mut().all(Link::is_over) {
                self.sinks[1].sum_up();
                if is_left || self.sinks.iter().all(|sink| !sink.is_waiting()) {
                    return;
                }
            }
            for source in self.wait() {
                self.handle(source);
            }
            self.make_room();
        }
    }

    /// Waits until a descriptor is ready or a deadline has come. Returns the owners of ready descriptors.
    fn wait(&mut self) -> Vec<Source> {
        let mut sources: Vec<(Source, BorrowedFd<'_>, PollFlags)> =
            vec![(Source::Signals, self.signals.as_fd(), PollFlags::POLLIN)];
        if let Some(control) = &self.control {
            sources.push((Source::Control, control.as_fd(), PollFlags::POLLIN));
        }
        for (index, link) in self.links.iter().enumerate() {
            sources.extend(link.reading().map(|fd| (Source::Read(index), fd, PollFlags::POLLIN)));
            sources.extend(link.writing().map(|fd| (Source::Write(index), fd, PollFlags::POLLOUT)));
        }
        for (index, sink) in self.sinks.iter().enumerate().filter(|(_, sink)| sink.is_waiting()) {
            let descriptor = sink.descriptor();
            sources.extend(descriptor.map(|fd| (Source::Sink(index), fd, PollFlags::POLLOUT)));
        }
        if let Some(relay) = self.input.as_ref().filter(|_| self.input_under_way < INPUT) {
            sources.push((Source::Input, relay.pipe.as_fd(), PollFlags::POLLIN));
        }
        let mut descriptors: Vec<PollFd<'_>> =
            sources.iter().map(|(_, fd, flags)| PollFd::new(*fd, *flags)).collect();
        let report = self.report.as_ref().map(|report| report.deadline);
        let own = [self.answer, self.timeout, self.ending, report].into_iter().flatten();
        let next = own.chain(self.links.iter().filter_map(|link| link.leave)).min();
        let pulses = self.links.iter().filter_map(|link| link.pulse.as_ref()?.deadline());
        let sleep = self.clock.until(next, pulses.min());
        let polled = poll(&mut descriptors, sleep);
        self.clock.look();
        if polled.is_err() {
            return Vec::new();
        }
        let ready: Vec<bool> = descriptors.iter().map(|fd| fd.any().unwrap_or(true)).collect();
        sources.into_iter().zip(ready).filter(|(_, r)| *r).map(|((source, ..), _)| source).collect()
    }

    fn handle(&mut self, source: Source) {
        match source {
            // `check` finds the children that have ended.
            Source::Signals => while let Ok(Some(_)) = self.signals.read_signal() {},
            Source::Control => self.obey(),
            Source::Write(index) => self.links[index].write(),
            Source::Sink(index) => self.sinks[index].write(),
            Source::Input => self.pass_input(),
            Source::Read(index) => match self.links[index].read() {
                Ok(messages) => {
                    let now = self.clock.now();
                    self.links[index].pulse.iter_mut().for_each(|pulse| pulse.heard(now));
                    if messages.iter().any(|message| *message != Up::Alive) {
                        self.heard();
                    }
                    messages.into_iter().for_each(|m| self.take(index, m));
                }
                Err(error) => {
                    let Link { host, command, .. } = &self.links[index];
                    let line = format!("host {host}: {error} (reached with: {command})");
                    self.links[index].kill();
                    self.fail(&line, UNREACHED);
                }
            },
        }
    }

    /// Handles a message of an agent.
    fn take(&mut self, index: usize, message: Up) {
        // An agent may send messages only about its own ranks.
        let is_here = |rank: u32| self.links[index].ranks.contains(&(rank as usize));
        match message {
            Up::Host(identity) => {
                let (times, now) = (self.options.alive, self.clock.now());
                let link = &mut self.links[index];
                link.identity.get_or_insert(identity);
                link.pulse.get_or_insert_with(|| Pulse::new(times, now));
                link.send(&Down::Times(times));
                self.start();
            }
            Up::Output { rank, error, text } if is_here(rank) => {
                self.sinks[usize::from(error)].push(Some(rank as usize), &text);
                self.links[index].taken[usize::from(error)] += text.len();
            }
            Up::Say(text) => self.sinks[1].push(None, text.as_bytes()),
            Up::Seat { rank, view } if is_here(rank) => self.seats[rank as usize] = view,
            Up::Fence { generation, entries } => self.fence(generation, entries),
            Up::Ended { rank } if is_here(rank) => self.ended[rank as usize] = true,
            Up::Failed { rank, cause } if is_here(rank) => self.failed(rank as usize, cause),
            Up::States { now, ranks } => {
                if let Some(report) = &mut self.report {
                    report.take(index, now, ranks, &self.links[index].host);
                }
            }
            Up::Taken(bytes) => {
                self.input_under_way = self.input_under_way.saturating_sub(bytes);
            }
            Up::Alive => {}
            Up::Deaf => self.deaf(index),
            Up::Done => self.links[index].done = true,
            // A message about a rank of another agent is ignored.
            _ => {}
        }
    }

    /// Records that all ranks of a host have reached a fence. Opens the fence after the ranks of all hosts have reached it.
    fn fence(&mut self, generation: u32, entries: Vec<PublishedEntry>) {
        let fence = self.fences.entry(generation).or_default();
        fence.0 += 1;
        fence.1.extend(entries);
        if fence.0 < self.links.len() {
            return;
        }
        let (_, entries) = self.fences.remove(&generation).unwrap_or_default();
        for seat in self.seats.iter_mut().filter(|seat| seat.taken == generation) {
            seat.fencing = false;
        }
        let message = encode(&Down::Fenced { generation, entries });
        for link in &mut self.links {
            link.send_bytes(&message);
        }
    }

    /// Handles all deadlines that have passed.
    fn check(&mut self, now: Instant) {
        self.look_for_losses();
        self.check_silence(now);
        if self.sinks.iter().any(Sink::is_full) {
            // While a queue is full, agents must wait with their output, so they do not count as silent.
            self.heard();
        }
        self.report_lost_output();
        if self.answer.is_some_and(|until| until <= now) {
            let line = self.unanswered();
            self.fail(&line, UNREACHED);
        }
        if self.code.is_none()
            && let Some((rank, other)) = stranded(&self.seats, |rank| self.ended[rank])
        {
            self.failed(rank, Cause::Missing { other });
        }
        if self.timeout.is_some_and(|until| until <= now) {
            self.timeout = None;
            if self.code.is_none() {
                self.code = Some(TIMED_OUT);
                self.ask_at_end();
            }
        }
        self.answer_report(now);
        if self.ending.is_some_and(|until| until <= now) {
            let late = self.links.iter_mut().filter(|link| link.reading().is_some());
            let hosts: Vec<String> = late.map(|link| (link.kill(), link.host.clone()).1).collect();
            if !hosts.is_empty() {
                self.say(&format!("mpiexec: no word of the end from: {}", hosts.join(", ")));
            }
            self.links.iter_mut().for_each(Link::kill);
            self.ending = None;
        }
    }

    /// Ends the job if an agent has ended before it has reported the end of all its ranks.
    fn look_for_losses(&mut self) {
        let now = self.clock.now();
        for index in 0..self.links.len() {
            let link = &mut self.links[index];
            if link.done && link.reading().is_some() {
                // The agent is done, so the command must end within a limited time.
                link.hang_up();
                link.leave.get_or_insert(now + LEAVE);
            }
            if link.leave.is_some_and(|until| until <= now) {
                link.leave = None;
                link.kill();
            }
            let left: Vec<usize> =
                link.ranks.iter().copied().filter(|&rank| !self.ended[rank]).collect();
            if !link.is_over() || (link.done && left.is_empty()) || self.code.is_some() {
                continue;
            }
            let how = link::words(link.status());
            let printed = link.said();
            let Link { host, command, .. } = link;
            let line = if link.identity.is_none() {
                format!("cannot reach host {host}: {how}{printed}; tried: {command}")
            } else {
                format!("host {host} is lost, and ranks {left:?} with it: {how}: {command}")
            };
            self.fail(&line, UNREACHED);
        }
    }

    /// Reports to the agents how much output has been read, or that output has no reader any more.
    fn make_room(&mut self) {
        for index in 0..2 {
            let error = index == 1;
            let (full, broken) = (self.sinks[index].is_full(), self.sinks[index].is_broken());
            if broken && !std::mem::replace(&mut self.unread[index], true) {
                let started = self.links.iter_mut().filter(|link| link.started);
                started.for_each(|link| link.send(&Down::Unread { error }));
            }
            for link in self.links.iter_mut().filter(|link| !full && link.taken[index] > 0) {
                let bytes = std::mem::take(&mut link.taken[index]);
                link.send(&Down::Room { error, bytes });
            }
        }
    }

    /// Passes standard input on to rank 0.
    fn pass_input(&mut self) {
        let Some(relay) = &mut self.input else { return };
        let mut piece = vec![0; INPUT - self.input_under_way];
        let count = match relay.pipe.read(&mut piece) {
            Ok(count) => count,
            Err(error) if matches!(error.kind(), WouldBlock | Interrupted) => return,
            Err(_) => 0,
        };
        piece.truncate(count);
        if count == 0 {
            self.input = None;
        }
        self.input_under_way += count;
        let link = self.places[0];
        self.links[link].send(&Down::Input(piece));
    }
}
