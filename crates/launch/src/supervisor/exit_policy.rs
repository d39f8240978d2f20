//! Decides what the end of a process means for the job.

use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::Signal;
use nix::sys::wait::{WaitPidFlag, WaitStatus, waitpid};

use super::{Ending, GIVE_UP_AFTER, REPEAT, Rank, Supervisor};
use crate::failure::Cause;
use crate::output::{RankStream, Sink};
use crate::service::{SupervisorEvent, stranded};
use crate::{complain, last_words, processes, spawn};

/// Time after the end of the last rank for which other processes of the job may end by themselves. Python's helper processes need
/// this time, for example.
const LEFTOVER: Duration = Duration::from_millis(500);
/// Time for which a failure is kept, because a better reason may become known. There are three cases. If a program that a script
/// started ends without completing MPI_Finalize, the script may end with the program's exit code. If a signal kills a rank, the
/// foreground process may report that the signal was sent to the complete job. If a rank fails because it has lost a peer, the
/// failure of the peer may become known.
const SUSPENSE: Duration = Duration::from_millis(200);

impl Supervisor {
    /// Ends the job before its first rank is started, because ranks cannot be placed as the user wishes.
    pub(super) fn refuse(&mut self, error: String) {
        let Some(&(number, app)) = self.part.ranks.first() else { return };
        self.ranks.push(Rank { number, app, pid: 0, ended: true, suspect: None });
        let program = spawn::given(&self.options.apps[app]);
        self.fail(0, Cause::Start { program, error, code: 2, limited: false });
    }

    /// Handles events of the service.
    pub(super) fn take(&mut self, events: Vec<SupervisorEvent>) {
        for event in events {
            match event {
                SupervisorEvent::Abort { rank, code, message } => {
                    let cause = Cause::Abort { code, message };
                    match cause.is_consequence() && self.code.is_none() {
                        true => self.suspect(rank, cause),
                        false => self.fail(rank, cause),
                    }
                }
                SupervisorEvent::Broken { rank, error } => self.fail(rank, Cause::Protocol(error)),
                SupervisorEvent::Fence { generation, entries } => self.fence(generation, entries),
                SupervisorEvent::Left { rank, pid } => {
                    // If this process is the rank's own process, its exit status is handled next.
                    let called = self.service.has_called_finalize(rank);
                    if pid != self.ranks[rank].pid {
                        self.suspect(rank, Cause::Left { pid, called });
                    }
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
        // Handles processes that a signal killed first, because the failure of other processes is often a consequence.
        ended.sort_by_key(|(_, how)| how.is_err());
        for (pid, how) in ended {
            let found = self.ranks.iter().position(|rank| rank.pid == pid.as_raw() && !rank.ended);
            if let Some(rank) = found {
                self.rank_ended(rank, how);
            }
        }
        if self.childless {
            // No process is left that writes, so the pipes contain the rest of the output. When one stream ends, another stream may
            // be able to write to the sink.
            let now = self.clock.now();
            let left =
                |streams: &[RankStream]| streams.iter().filter(|stream| !stream.ended).count();
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
        // First handles the messages that the rank has sent before its end.
        let events = self.service.drain(number);
        self.take(events);
        let rank = &mut self.ranks[number];
        rank.ended = true;
        let lost_peer = rank.suspect.as_ref().is_some_and(|(_, cause)| cause.is_consequence());
        if !lost_peer {
            rank.suspect = None;
        }
        match how {
            // The rank has given the loss of a peer as the reason. This reason is reported unless the failure of the peer becomes
            // known.
            Err(_) if lost_peer => {}
            // The rank wrote to a pipe without a reader (`mpiexec ... | head`). In this case, shells print no message either.
            Ok(Signal::SIGPIPE)
                if self.upstream.is_none() && self.code.is_none() && self.is_unread() =>
            {
                self.code = Some(128 + Signal::SIGPIPE as i32);
                self.end(Signal::SIGTERM);
            }
            Ok(signal @ (Signal::SIGINT | Signal::SIGTERM | Signal::SIGHUP)) => {
                if self.code.is_none() {
                    self.suspect(number, Cause::Signal(signal));
                }
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

    /// Keeps a failure for the time [`SUSPENSE`], because a better reason may become known.
    fn suspect(&mut self, rank: usize, cause: Cause) {
        self.ranks[rank].suspect = Some((self.clock.now() + SUSPENSE, cause));
    }

    /// Returns the rank whose failure began first, and forgets all other failures. A failure that another failure probably caused
    /// is returned only if there is no other failure.
    pub(super) fn first_suspect(&mut self) -> Option<(usize, Cause)> {
        let all = self.ranks.iter_mut().enumerate();
        let (_, rank, cause) = all
            .filter_map(|(number, rank)| rank.suspect.take().map(|(at, cause)| (at, number, cause)))
            .min_by_key(|(at, _, cause)| (cause.is_consequence(), *at))?;
        Some((rank, cause))
    }

    /// Returns true if a rank may have failed because its output has no reader.
    fn is_unread(&self) -> bool {
        !self.is_piped() || self.sinks.iter().any(Sink::is_broken)
    }

    /// Returns true if output goes through this process. If there is only one rank, it writes to the terminal itself, because its
    /// lines cannot mix with lines of other ranks.
    pub(super) fn is_piped(&self) -> bool {
        self.options.size() > 1 || self.options.tag_output || self.upstream.is_some()
    }

    /// Ends the job after its first failure, which determines the exit code. Later failures have no effect.
    pub(super) fn fail(&mut self, rank: usize, cause: Cause) {
        // The reason for the failure of this rank is now known, but the failure of another rank may have begun earlier.
        self.ranks[rank].suspect = None;
        let earlier = self.first_suspect().filter(|(_, cause)| !cause.is_consequence());
        let (rank, cause) = earlier.unwrap_or((rank, cause));
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
        self.end(Signal::SIGTERM);
    }

    /// Sends the signal to all processes. SIGKILL follows after the grace time.
    pub(super) fn end(&mut self, signal: Signal) {
        processes::send_all(signal);
        self.await_end();
    }

    /// Waits for the end of all processes after a signal was sent to them. SIGKILL follows after the grace time.
    pub(super) fn await_end(&mut self) {
        // Continues stopped processes, because a stopped process cannot handle the signal.
        processes::send_all(Signal::SIGCONT);
        self.ending = Some(Ending::Asked(self.clock.now() + self.options.grace));
    }

    /// Takes the next step to the end of the job, if its time has come.
    pub(super) fn go_on_ending(&mut self, now: Instant) {
        self.ending = match self.ending {
            // Spawned processes are a separate job, which may last longer than the job of their parents.
            Some(Ending::Waiting(until)) if until <= now && processes::is_job_below() => {
                Some(Ending::Waiting(now + LEFTOVER))
            }
            Some(Ending::Waiting(until)) if until <= now => {
                self.end(Signal::SIGTERM);
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

    /// Ends the job if a rank waits for a rank that has ended.
    pub(super) fn fail_if_stranded(&mut self) {
        if self.code.is_some() || self.upstream.is_some() {
            return;
        }
        // A rank with a suspect has ended for another reason, which is reported soon.
        let ended = |rank: usize| {
            self.ranks.get(rank).is_some_and(|rank| rank.ended && rank.suspect.is_none())
        };
        if let Some((rank, other)) = stranded(&self.service.views(), ended) {
            self.fail(rank, Cause::Missing { other });
        }
    }

    /// Ends this process although a process of another user does not end, or nobody reads the output of an interrupted job.
    pub(super) fn give_up(&mut self) {
        let left = processes::descendants(std::process::id() as i32);
        if !left.is_empty() {
            complain(format_args!("mpiexec: these processes do not end: {left:?}"));
        }
        std::process::exit(self.exit_code());
    }

    /// Returns the exit code of the job. Lost output does not end a job, but is no success.
    pub(super) fn exit_code(&self) -> i32 {
        self.code.unwrap_or(i32::from(self.has_lost_output))
    }
}
