//! The parent of the ranks of this host. It runs one loop over all events. In a job on one host it decides how the job ends
//! ([`exit_policy`]). In a job on several hosts it reports to `mpiexec`, which decides ([`upstream`]).

mod exit_policy;
mod upstream;
mod waits;

use std::io::ErrorKind::{Interrupted, WouldBlock};
use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::process::Stdio;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, poll};
use nix::sys::prctl;
use nix::sys::resource::{Resource, setrlimit};
use nix::sys::signal::{SigHandler, SigSet, Signal, signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::unistd::{Pid, setpgid};
use weft_bootstrap::limits::explain;
use weft_bootstrap::{Ticket, VARIABLE};

use crate::clock::Clock;
use crate::deadlock::{DeadlockPolicy, DeadlockWatch, TestLoops};
use crate::failure::Cause;
use crate::host_binding::HostBinding;
use crate::inherited::Inheritance;
use crate::options::Options;
use crate::output::{RankStream, Sink, unwritten};
use crate::service::{Door, Seating, Service};
use crate::spawn;
use crate::standard_streams::{StandardStream, standard};
use crate::{complain, last_words, library, processes};

pub use upstream::{HostPart, Upstream, new_job};

/// Exit code if the time limit is reached. timeout(1) uses the same code.
const TIMED_OUT: i32 = 124;
/// Interval between two SIGKILLs. SIGKILL is repeated, because a process may have forked at the moment of the first signal.
const REPEAT: Duration = Duration::from_millis(10);
/// Maximum time after SIGKILL for which the supervisor waits for processes that do not end, such as processes of another user.
const GIVE_UP_AFTER: Duration = Duration::from_secs(3);

struct Rank {
    /// Number of the rank in the job. Its index in `Supervisor::ranks` counts only the ranks of this host.
    number: usize,
    app: usize,
    pid: i32,
    ended: bool,
    /// Failure of the rank. It is reported at the given time, unless a better reason is known before.
    suspect: Option<(Instant, Cause)>,
}

/// Steps of ending the job.
#[derive(Clone, Copy)]
enum Ending {
    /// Before this time, remaining processes may end by themselves. Jobs that ranks have spawned have no time limit.
    Waiting(Instant),
    /// SIGTERM was sent. SIGKILL is sent at this time.
    Asked(Instant),
    /// SIGKILL was sent, and is sent again at `next`. The supervisor gives up at `give_up_at`.
    Killed { next: Instant, give_up_at: Instant },
}

/// Owner of a ready descriptor.
enum Source {
    Signals,
    Control,
    Upstream,
    Uplink,
    Input,
    Service(Door),
    Stream(usize),
    Sink(usize),
}

struct Supervisor {
    options: Options,
    part: HostPart,
    upstream: Option<Upstream>,
    service: Service,
    signals: SignalFd,
    control: Option<UnixStream>,
    ranks: Vec<Rank>,
    streams: Vec<RankStream>,
    sinks: [Sink; 2],
    timeout: Option<Instant>,
    /// Watch for deadlocks, in a job on this host only.
    deadlock: Option<DeadlockWatch>,
    ending: Option<Ending>,
    /// The exit code of the job; `None` until there is a failure.
    code: Option<i32>,
    /// True if standard output or error could not be written.
    has_lost_output: bool,
    /// True if the user has asked for the end of the job.
    interrupted: bool,
    /// True if no process is left.
    childless: bool,
    /// True if no process is left, and all output was read.
    all_done: bool,
    /// Clock of all deadlines.
    clock: Clock,
}

/// Runs a job on this host only. Returns the exit code.
pub fn run(options: Options, control: UnixStream, inheritance: Inheritance) -> i32 {
    let part = HostPart::whole(&options);
    supervise(options, part, None, control, inheritance)
}

/// Runs the ranks of this host. Returns the exit code.
pub fn supervise(
    options: Options,
    part: std::io::Result<HostPart>,
    upstream: Option<Upstream>,
    control: UnixStream,
    inheritance: Inheritance,
) -> i32 {
    let new = part.and_then(|part| Supervisor::new(options, part, upstream, control, inheritance));
    match new {
        Ok(mut supervisor) => {
            supervisor.start(inheritance);
            supervisor.attend();
            last_words::send("", supervisor.sinks[1].last_words(None));
            supervisor.exit_code()
        }
        Err(error) => {
            let line = format!("cannot start the job: {}", explain(&error));
            complain(format_args!("mpiexec: {line}"));
            last_words::send(&line, &[]);
            1
        }
    }
}

/// Makes this process the ancestor of all processes of the job.
pub fn become_supervisor() -> std::io::Result<()> {
    // In a separate process group, this process survives a kill of the foreground's process group. Then it cleans up.
    setpgid(Pid::from_raw(0), Pid::from_raw(0))?;
    prctl::set_child_subreaper(true)?;
    // The name distinguishes this process from the foreground process in ps(1) and killall(1).
    let _ = prctl::set_name(c"weft-supervisor");
    // The signal would stop this process, whose group is in the background, when it writes to a terminal with `stty tostop`.
    // SAFETY: `signal` is unsafe only for handlers, and SIG_IGN is none.
    unsafe { signal(Signal::SIGTTOU, SigHandler::SigIgn) }?;
    Ok(())
}

/// Number of files that a supervisor or the foreground process needs in any job.
const OWN_FILES: u64 = 32;

/// Raises this process's limit on open files to the hard limit. `needed` files are needed for `count` objects of the kind `what`.
/// Returns the number of files beyond `needed`, or an error if the limit is too low.
pub fn raise_files(
    inheritance: Inheritance,
    needed: usize,
    what: &str,
    count: usize,
) -> std::io::Result<usize> {
    let (hard, needed) = (inheritance.files.1, needed as u64 + OWN_FILES);
    let _ = setrlimit(Resource::RLIMIT_NOFILE, hard, hard);
    let left = hard.checked_sub(needed).ok_or_else(|| {
        std::io::Error::other(format!(
            "{count} {what} need {needed} open files, and the limit is {hard}; raise it (ulimit -Hn), or start fewer"
        ))
    })?;
    Ok(usize::try_from(left).unwrap_or(usize::MAX))
}

/// Returns the sinks for standard output and standard error of `mpiexec`.
pub fn standard_sinks(tag: bool) -> [Sink; 2] {
    let output = Sink::new(standard(StandardStream::Output), tag);
    let error = Sink::new(standard(StandardStream::Error), tag).once_a_cause();
    [output, if last_words::is_wanted() { error.with_last_words() } else { error }]
}

impl Supervisor {
    fn new(
        options: Options,
        part: HostPart,
        upstream: Option<Upstream>,
        control: UnixStream,
        inheritance: Inheritance,
    ) -> std::io::Result<Self> {
        become_supervisor()?;
        // Each rank has two pipes and a connection.
        let ranks = part.ranks.len();
        let left = raise_files(inheritance, 4 * ranks, "ranks on this host", ranks)?;
        control.set_nonblocking(true)?;
        let mut set = SigSet::empty();
        set.add(Signal::SIGCHLD);
        let Ticket { socket, token, size, .. } = &part.ticket;
        let numbers: Vec<u32> = part.ranks.iter().map(|&(number, _)| number as u32).collect();
        let seating = Seating { numbers: numbers.clone(), size: *size, nodes: part.nodes.clone() };
        let sinks = match &upstream {
            None => standard_sinks(options.tag_output),
            Some(upstream) => [StandardStream::Output, StandardStream::Error].map(|stream| {
                Sink::remote(upstream.uplink.clone(), stream, numbers.clone().into())
            }),
        };
        let clock = Clock::new();
        let service = Service::new(socket, *token, seating, left).map_err(|error| {
            let text = format!("the service of {} ranks: {}", numbers.len(), explain(&error));
            std::io::Error::new(error.kind(), text)
        })?;
        Ok(Supervisor {
            service,
            signals: SignalFd::with_flags(&set, SfdFlags::SFD_CLOEXEC | SfdFlags::SFD_NONBLOCK)?,
            control: Some(control),
            ranks: Vec::new(),
            streams: Vec::new(),
            sinks,
            timeout: options.timeout.map(|timeout| clock.now() + timeout),
            deadlock: (upstream.is_none() && options.deadlock != DeadlockPolicy::Off).then(|| {
                let loops = if options.checking { TestLoops::Wait } else { TestLoops::GoOn };
                DeadlockWatch::new(clock.now(), loops)
            }),
            ending: None,
            code: None,
            has_lost_output: false,
            interrupted: false,
            childless: false,
            all_done: false,
            clock,
            options,
            part,
            upstream,
        })
    }

    fn say(&mut self, message: &str) {
        self.sinks[1].say(message);
    }

    fn program(&self, rank: usize) -> String {
        spawn::name(&self.options.apps[self.ranks[rank].app])
    }

    /// Starts all ranks. Ends the job if a rank cannot be started.
    fn start(&mut self, inheritance: Inheritance) {
        let binding = match HostBinding::new(&self.options.placement, self.part.ranks.len()) {
            Ok(binding) => binding,
            Err(error) => return self.refuse(error),
        };
        binding.warning().iter().for_each(|warning| self.say(warning));
        // If parents want a report, even a single rank has a pipe for standard error. Its standard output is not changed.
        let piped = [self.is_piped(), self.is_piped() || last_words::is_wanted()];
        let libraries: Vec<_> = self.options.apps.iter().map(library::variables).collect();
        for (place, (number, app)) in self.part.ranks.clone().into_iter().enumerate() {
            if self.options.report_bindings {
                self.say(&format!("mpiexec: rank {number} may use {}", binding.describe(place)));
            }
            let ticket = Ticket { rank: number, app, ..self.part.ticket.clone() }.encode();
            let variables = libraries[app].clone().into_iter().chain([(VARIABLE, ticket.into())]);
            let variables: Vec<_> = variables.chain(binding.variable(place)).collect();
            let input = match &mut self.upstream {
                None if number == 0 => None,
                Some(upstream) if number == 0 => Some(upstream.open_input()),
                _ => Some(Stdio::null()),
            };
            let started = spawn::start(
                &self.options.apps[app],
                input,
                &variables,
                binding.set(place),
                piped,
                inheritance,
            );
            let rank = |pid| Rank { number, app, pid, ended: pid == 0, suspect: None };
            self.clock.look();
            self.upstream
                .iter_mut()
                .for_each(|upstream| upstream.send_signs_while_starting(self.clock.now()));
            match started {
                Ok(started) => {
                    self.ranks.push(rank(started.pid));
                    for (sink, pipe) in started.pipes.into_iter().enumerate() {
                        self.streams.extend(pipe.map(|pipe| RankStream::new(pipe, place, sink)));
                    }
                }
                Err(mut cause) => {
                    if let Cause::Start { error, limited: true, .. } = &mut cause {
                        let all = self.part.ranks.len();
                        *error = format!("{error}; {place} of {all} ranks have been started here");
                    }
                    self.ranks.push(rank(0));
                    return self.fail(place, cause);
                }
            }
        }
    }

    /// Handles events until no process and no output is left.
    fn attend(&mut self) {
        loop {
            self.reap();
            self.check(self.clock.now());
            let is_clear = self.ranks.iter().all(|rank| rank.suspect.is_none());
            if self.all_done && is_clear {
                self.sinks[1].sum_up();
            }
            if self.all_done && is_clear && self.sinks.iter().all(|sink| !sink.is_waiting()) {
                let Some(upstream) = &mut self.upstream else { return };
                if upstream.is_done() {
                    return;
                }
            }
            let mut doors = Vec::new();
            for source in self.wait() {
                self.handle(source, &mut doors);
            }
            let events = self.service.serve(&doors);
            self.take(events);
            self.report_seats();
            // Closes the pipes of streams that have ended. If a rank still writes to such a pipe, the rank gets an error, because
            // nobody reads the pipe.
            self.streams.retain(|stream| !stream.ended);
        }
    }

    /// Waits until a descriptor is ready or a deadline has come. Returns the owners of ready descriptors.
    fn wait(&mut self) -> Vec<Source> {
        let mut sources = vec![(Source::Signals, self.signals.as_fd(), PollFlags::POLLIN)];
        if let Some(control) = &self.control {
            sources.push((Source::Control, control.as_fd(), PollFlags::POLLIN));
        }
        for (source, fd, flags) in self.upstream.iter().flat_map(Upstream::sources) {
            sources.push((source, fd, flags));
        }
        for (door, fd, writing) in self.service.doors() {
            let also = if writing { PollFlags::POLLOUT } else { PollFlags::empty() };
            sources.push((Source::Service(door), fd, PollFlags::POLLIN | also));
        }
        for (index, stream) in self.streams.iter().enumerate() {
            if stream.is_wanted(&self.sinks[stream.sink]) {
                sources.push((Source::Stream(index), stream.descriptor(), PollFlags::POLLIN));
            }
        }
        for (index, sink) in self.sinks.iter().enumerate().filter(|(_, sink)| sink.is_waiting()) {
            let descriptor = sink.descriptor();
            sources.extend(descriptor.map(|fd| (Source::Sink(index), fd, PollFlags::POLLOUT)));
        }
        let mut descriptors: Vec<PollFd<'_>> =
            sources.iter().map(|(_, fd, flags)| PollFd::new(*fd, *flags)).collect();
        let signs = self.upstream.as_ref().and_then(Upstream::deadline);
        let sleep = self.clock.until(self.deadline(), signs);
        let polled = poll(&mut descriptors, sleep);
        self.clock.look();
        if polled.is_err() {
            return Vec::new();
        }
        let ready: Vec<bool> = descriptors.iter().map(|fd| fd.any().unwrap_or(true)).collect();
        sources.into_iter().zip(ready).filter(|(_, r)| *r).map(|((source, ..), _)| source).collect()
    }

    /// Returns the next deadline.
    fn deadline(&self) -> Option<Instant> {
        let ending = self.ending.map(|ending| match ending {
            Ending::Waiting(until) | Ending::Asked(until) => until,
            Ending::Killed { next, .. } => next,
        });
        let ranks = self.ranks.iter().filter_map(|rank| Some(rank.suspect.as_ref()?.0));
        let lines = self.streams.iter().filter_map(RankStream::deadline);
        let lines = lines.chain(self.deadlock.as_ref().map(DeadlockWatch::next));
        ending.into_iter().chain(self.timeout).chain(ranks).chain(lines).min()
    }

    fn handle(&mut self, source: Source, doors: &mut Vec<Door>) {
        match source {
            // `reap` finds the children that have ended.
            Source::Signals => while let Ok(Some(_)) = self.signals.read_signal() {},
            Source::Control => self.obey(),
            Source::Upstream => self.hear(),
            Source::Uplink => self.upstream.iter().for_each(|upstream| upstream.uplink.write()),
            Source::Input => self.upstream.iter_mut().for_each(Upstream::feed),
            // Doors are served together, because serving a single door may change the indices of the other doors.
            Source::Service(door) => doors.push(door),
            Source::Stream(index) => {
                let stream = &mut self.streams[index];
                stream.read(&mut self.sinks[stream.sink], self.clock.now());
            }
            Source::Sink(index) => self.sinks[index].write(),
        }
    }

    /// Handles a signal that the foreground process relays.
    fn obey(&mut self) {
        let mut message = [0; 2];
        let Some(control) = &mut self.control else { return };
        match control.read(&mut message) {
            Ok(2) => {}
            Err(error) if matches!(error.kind(), WouldBlock | Interrupted) => return,
            _ => {
                self.control = None;
                self.code.get_or_insert(1);
                return self.end(Signal::SIGTERM);
            }
        }
        let Ok(signal) = Signal::try_from(i32::from(message[0])) else { return };
        let delivered = message[1] != 0;
        match signal {
            Signal::SIGQUIT => self.report(),
            Signal::SIGUSR1 | Signal::SIGUSR2 => self.pass_on(signal),
            Signal::SIGTSTP | Signal::SIGCONT if delivered => {}
            Signal::SIGTSTP | Signal::SIGCONT => processes::send_all(signal),
            Signal::SIGINT | Signal::SIGTERM | Signal::SIGHUP if self.ending.is_some() => {
                self.ending = Some(Ending::Asked(self.clock.now()));
            }
            Signal::SIGINT | Signal::SIGTERM | Signal::SIGHUP => {
                self.code = Some(128 + signal as i32);
                self.interrupted = true;
                self.first_suspect();
                let simulated = std::env::var_os(crate::checks::SIMULATION).is_some();
                let sender = match signal {
                    Signal::SIGTERM if simulated => {
                        ", as weft sim sends at a deadlock or at its end"
                    }
                    _ => "",
                };
                self.say(&format!("mpiexec: {}{sender}: ending the job", signal.as_str()));
                match delivered {
                    true => self.await_end(),
                    false => self.end(signal),
                }
            }
            _ => {}
        }
    }

    /// Sends a signal directly to the MPI programs, even if scripts have started them.
    fn pass_on(&self, signal: Signal) {
        for (place, rank) in self.ranks.iter().enumerate().filter(|(_, rank)| !rank.ended) {
            processes::send(self.service.member(place).unwrap_or(rank.pid), signal);
        }
    }

    /// Handles all deadlines that have passed.
    fn check(&mut self, now: Instant) {
        self.check_silence(now);
        for stream in &mut self.streams {
            let state = |place: usize| {
                let rank = &self.ranks[place];
                let pid = self.service.member(place).unwrap_or(rank.pid);
                let states =
                    [rank.pid, pid].map(|pid| processes::look(pid).map(|(_, state)| state));
                // The MPI program and the script that started it may be different processes, and either process may be stopped.
                let stopped = states.contains(&Some('T'));
                if stopped { 'T' } else { states[1].filter(|_| !rank.ended).unwrap_or('X') }
            };
            stream.check_pause(&mut self.sinks[stream.sink], now, state);
        }
        for index in 0..2 {
            if let Some(line) = unwritten(&mut self.sinks[index], index) {
                self.has_lost_output = true;
                self.say(&line);
            }
        }
        let is_due = |rank: &Rank| rank.suspect.as_ref().is_some_and(|(until, _)| *until <= now);
        if self.ranks.iter().any(is_due)
            && let Some((rank, cause)) = self.first_suspect()
        {
            self.fail(rank, cause);
        }
        self.fail_if_stranded();
        if self.timeout.is_some_and(|timeout| timeout <= now) {
            self.timeout = None;
            if self.code.is_none() && !self.all_done {
                self.code = Some(TIMED_OUT);
                self.report();
                let seconds = self.options.timeout.unwrap_or_default().as_secs_f64();
                self.say(&format!("mpiexec: the job has not ended within {seconds} s (--timeout)"));
                self.end(Signal::SIGTERM);
            }
        }
        self.check_deadlock(now);
        if self.childless && self.is_wanted() {
            // Only output is left. Its reader may still read it.
            self.ending = None;
        }
        self.go_on_ending(now);
    }

    /// Returns true if the user still waits for the job's output, and has not requested the end of the job.
    fn is_wanted(&self) -> bool {
        self.control.is_some() && !self.interrupted
    }
}
