//! Consequences of the end of a process for the job.

use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};

use super::{Ending, GIVE_UP_AFTER, REPEAT, Supervisor};
use crate::failure::Cause;
use crate::output::{Sink, Stream};
use crate::service::Event;
use crate::{last_words, processes};

/// Time after the end of the last rank for which processes that ranks have started may end by themselves, as Python's helper
/// processes do.
const LEFTOVER: Duration = Duration::from_millis(500);
/// Time in which a better reason for a failure may become known. For example, a script ends with the exit code of its MPI program,
/// or the foreground process reports that a signal which killed a rank was sent to the complete job.
const SUSPENSE: Duration = Duration::from_millis(200);

impl Supervisor {
    /// Handles events of the service.
    pub(super) fn take(&mut self, events: Vec<Event>) {
        for event in events {
            match event {
                Event::Abort { rank, code, message } => {
                    self.fail(rank, Cause::Abort { code, message });
                }
                Event::Broken { rank, error } => self.fail(rank, Cause::Protocol(error)),
                Event::Fence { generation, entries } => self.fence(generation, entries),
                Event::Left { rank, pid } => {
                    // If the process is the rank's own process, its exit status is reported next.
                    let called = self.service.has_called_finalize(rank);
                    let rank = &mut self.ranks[rank];
                    rank.suspect = (pid != rank.pid)
                        .then(|| (self.clock.now() + SUSPENSE, Cause::Left { pid, called }));
                }
            }
        }
    }

    /// Takes the exit status of all children that have ended.
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
        // Processes that a signal killed are handled first, because the other processes often failed as a consequence.
        ended.sort_by_key(|(_, how)| how.is_err());
        for (pid, how) in ended {
            let found = self.ranks.iter().position(|rank| rank.pid == pid.as_raw() && !rank.ended);
            if let Some(rank) = found {
                self.rank_ended(rank, how);
            }
        }
        if self.childless {
            // The writers are gone, so the pipes hold the rest of the output. The end of a stream may allow another stream to write
            // to the sink.
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
            self.all_done = left(&self.streams) == 0;
        }
    }

    /// Decides whether a rank that has ended has failed, and handles the failure.
    pub(super) fn rank_ended(&mut self, number: usize, how: Result<Signal, i32>) {
        // Handles first what the rank has sent before its end.
        let events = self.service.drain(number);
        self.take(events);
        let rank = &mut self.ranks[number];
        rank.ended = true;
        rank.suspect = None;
        match how {
            // The rank wrote to a pipe without a reader (`mpiexec ... | head`). Nothing is printed, as in a shell.
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
            Err(0) => self.report_end(number),
            Err(code) => self.fail(number, Cause::Code(code)),
        }
        if self.ranks.iter().all(|rank| rank.ended) && self.ending.is_none() {
            self.ending = Some(Ending::Waiting(self.clock.now() + LEFTOVER));
        }
    }

    /// Returns the rank whose failure began first, and forgets all other failures.
    pub(super) fn first_suspect(&mut self) -> Option<(usize, Cause)> {
        let all = self.ranks.iter_mut().enumerate();
        let (_, rank, cause) = all
            .filter_map(|(number, rank)| rank.suspect.take().map(|(at, cause)| (at, number, cause)))
            .min_by_key(|&(at, ..)| at)?;
        Some((rank, cause))
    }

    /// Returns true if a rank may have failed because its output has no reader.
    fn is_unread(&self) -> bool {
        !self.is_piped() || self.sinks.iter().any(Sink::is_broken)
    }

    /// Returns true if output goes through this process. A single rank writes to the terminal itself, because its lines cannot mix
    /// with lines of other ranks.
    pub(super) fn is_piped(&self) -> bool {
        self.options.size() > 1 || self.options.tag_output || self.upstream.is_some()
    }

    /// Ends the job after its first failure, which determines the exit code. Later failures have no effect.
    pub(super) fn fail(&mut self, rank: usize, cause: Cause) {
        // The reason for the failure of this rank is now known. But the failure of another rank may have begun earlier.
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
        if !self.report_failure(rank, &cause) {
            let line = cause.line(self.ranks[rank].number, &self.program(rank), None);
            last_words::send(&line, self.sinks[1].last_words(Some(rank)));
            self.say(&format!("mpiexec: {line}"));
        }
        self.end(Signal::SIGTERM, false);
    }

    /// Sends the signal to all processes, unless it was `delivered` before. SIGKILL follows after the grace time.
    pub(super) fn end(&mut self, signal: Signal, delivered: bool) {
        if !delivered {
            processes::send_all(signal);
        }
        // Stopped processes must continue to handle the signal.
        processes::send_all(Signal::SIGCONT);
        self.ending = Some(Ending::Asked(self.clock.now() + self.options.grace));
    }

    /// Takes the next step to the end of the job, if its time has come.
    pub(super) fn go_on_ending(&mut self, now: Instant) {
        self.ending = match self.ending {
            // Spawned processes are a job of their own, which may last longer than the job of their parents.
            Some(Ending::Waiting(until)) if until <= now && processes::is_job_below() => {
                Some(Ending::Waiting(now + LEFTOVER))
            }
            Some(Ending::Waiting(until)) if until <= now => {
                self.end(Signal::SIGTERM, false);
                self.ending
            }
            Some(Ending::Asked(until)) if until <= now => {
                processes::send_all(Signal::SIGKILL);
                Some(Ending::Killed { next: now + REPEAT, give_up_at: now + GIVE_UP_AFTER })
            }
            Some(Ending::Killed { next, give_up_at }) if next <= now => {
                processes::send_all(Signal::SIGKILL);
                if give_up_at <= now {
                    self.give_up();
                }
                Some(Ending::Killed { next: now + REPEAT, give_up_at })
            }
            other => other,
        };
    }
}
