//! What the end of a process means for the job.

use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};

use super::{Ending, HOPELESS, REPEAT, Supervisor};
use crate::failure::Cause;
use crate::output::{Sink, Stream};
use crate::processes;
use crate::service::Event;

/// How long processes that outlive their rank may go on after the last rank (Python's helpers leave
/// by themselves).
const LEFTOVER: Duration = Duration::from_millis(500);
/// How long a script has to say with what code its MPI program died, and the foreground process that the signal
/// which killed a rank was for the whole job (the terminal's, say).
const SUSPENSE: Duration = Duration::from_millis(200);
impl Supervisor {
    pub(super) fn take(&mut self, events: Vec<Event>) {
        for event in events {
            match event {
                Event::Abort { rank, code, message } => {
                    self.fail(rank, Cause::Abort { code, message });
                }
                Event::Broken { rank, error } => self.fail(rank, Cause::Protocol(error)),
                Event::Fence { generation, entries } => self.fence(generation, entries),
                Event::Left { rank, pid } => {
                    // If it is the rank's own process, its exit status is about to come.
                    let called = self.service.has_called_finalize(rank);
                    let rank = &mut self.ranks[rank];
                    rank.suspect = (pid != rank.pid)
                        .then(|| (self.clock.now() + SUSPENSE, Cause::Left { pid, called }));
                }
            }
        }
    }

    /// Takes the exit status of all that have ended.
    pub(super) fn reap(&mut self) {
        let mut ended = Vec::new();
        loop {
            match waitpid(None, Some(WaitPidFlag::WNOHANG)) {
                Ok(WaitStatus::Exited(pid, code)) => ended.push((pid, Err(code))),
                Ok(WaitStatus::Signaled(pid, signal, _)) => ended.push((pid, Ok(signal))),
                Err(Errno::EINTR) => {}
                Err(Errno::ECHILD) => {
                    self.childless = true;
                    break;
                }
                _ => break,
            }
        }
        // Of several, those killed by a signal come first: the others often died of it.
        ended.sort_by_key(|(_, how)| how.is_err());
        for (pid, how) in ended {
            let found = self.ranks.iter().position(|rank| rank.pid == pid.as_raw() && !rank.ended);
            if let Some(rank) = found {
                self.judge(rank, how);
            }
        }
        if self.childless {
            // The writers are gone: what is in the pipes is all. Who ends may free another's way.
            let now = self.clock.now();
            let left = |streams: &[Stream]| streams.iter().filter(|stream| !stream.ended).count();
            loop {
                let before = left(&self.streams);
                for stream in &mut self.streams {
                    let sink = &mut self.sinks[stream.sink];
                    stream.read(sink, now);
                    if stream.is_wanted(sink) {
                        stream.end(sink);
                    }
                }
                if left(&self.streams) == before {
                    break;
                }
            }
            self.alone = left(&self.streams) == 0;
        }
    }

    /// A rank has ended: in good order?
    pub(super) fn judge(&mut self, number: usize, how: Result<Signal, i32>) {
        // What it said before comes first.
        let events = self.service.drain(number);
        self.take(events);
        let rank = &mut self.ranks[number];
        rank.ended = true;
        rank.suspect = None;
        match how {
            // It wrote where nobody reads any more (`mpiexec ... | head`): silent as in a shell.
            Ok(Signal::SIGPIPE)
                if self.upstream.is_none() && self.code.is_none() && self.is_unread() =>
            {
                self.code = Some(128 + Signal::SIGPIPE as i32);
                self.end(Signal::SIGTERM, false);
            }
            Ok(signal @ (Signal::SIGINT | Signal::SIGTERM | Signal::SIGHUP)) => {
                let due = self.clock.now() + SUSPENSE;
                self.ranks[number].suspect =
                    self.code.is_none().then_some((due, Cause::Signal(signal)));
            }
            Ok(signal) => self.fail(number, Cause::Signal(signal)),
            Err(0) if self.service.is_unfinished(number) => {
                let called = self.service.has_called_finalize(number);
                self.fail(number, Cause::NoFinalize { called });
            }
            Err(0) => self.tell_end(number),
            Err(code) => self.fail(number, Cause::Code(code)),
        }
        if self.ranks.iter().all(|rank| rank.ended) && self.ending.is_none() {
            self.ending = Some(Ending::Waiting(self.clock.now() + LEFTOVER));
        }
    }

    /// The rank whose trouble began first; all others are forgotten.
    pub(super) fn first_suspect(&mut self) -> Option<(usize, Cause)> {
        let all = self.ranks.iter_mut().enumerate();
        let (_, rank, cause) = all
            .filter_map(|(number, rank)| rank.suspect.take().map(|(at, cause)| (at, number, cause)))
            .min_by_key(|&(at, ..)| at)?;
        Some((rank, cause))
    }

    /// Whether a rank may have found that nobody reads its output.
    fn is_unread(&self) -> bool {
        !self.is_piped() || self.sinks.iter().any(Sink::is_broken)
    }

    /// Whether output goes through us. One rank has nobody to share lines with: it keeps the terminal.
    pub(super) fn is_piped(&self) -> bool {
        self.options.size() > 1 || self.options.tag_output || self.upstream.is_some()
    }

    /// The first failure decides the job's code, and ends it.
    pub(super) fn fail(&mut self, rank: usize, cause: Cause) {
        // Of this rank the better reason is known; another one's trouble began earlier.
        self.ranks[rank].suspect = None;
        let (rank, cause) = self.first_suspect().unwrap_or((rank, cause));
        if self.code.is_some() {
            return;
        }
        let now = self.clock.now();
        for stream in self.streams.iter_mut().filter(|stream| stream.rank == rank) {
            let sink = &mut self.sinks[stream.sink];
            stream.read_last(sink, now);
            stream.flush(sink);
        }
        self.code = Some(cause.code());
        if !self.tell_failure(rank, &cause) {
            let line = cause.line(self.ranks[rank].number, &self.program(rank), None);
            self.say(&format!("mpiexec: {line}"));
        }
        self.end(Signal::SIGTERM, false);
    }

    /// Asks all processes to end, unless they have been; SIGKILL follows.
    pub(super) fn end(&mut self, signal: Signal, delivered: bool) {
        if !delivered {
            processes::send_all(signal);
        }
        // Stopped processes would not see it.
        processes::send_all(Signal::SIGCONT);
        self.ending = Some(Ending::Asked(self.clock.now() + self.options.grace));
    }

    /// The next step to the end, if it is due.
    pub(super) fn go_on_ending(&mut self, now: Instant) {
        self.ending = match self.ending {
            // Spawned processes are a job of their own, which may last longer than that of their parents.
            Some(Ending::Waiting(until)) if until <= now && processes::is_job_below() => {
                Some(Ending::Waiting(now + LEFTOVER))
            }
            Some(Ending::Waiting(until)) if until <= now => {
                self.end(Signal::SIGTERM, false);
                self.ending
            }
            Some(Ending::Asked(until)) if until <= now => {
                processes::send_all(Signal::SIGKILL);
                Some(Ending::Killed { next: now + REPEAT, hopeless: now + HOPELESS })
            }
            Some(Ending::Killed { next, hopeless }) if next <= now => {
                processes::send_all(Signal::SIGKILL);
                if hopeless <= now {
                    self.give_up();
                }
                Some(Ending::Killed { next: now + REPEAT, hopeless })
            }
            other => other,
        };
    }
}
