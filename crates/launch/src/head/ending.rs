//! End of a job on several hosts, after its first failure or at the request of the user.

use std::io::ErrorKind::{Interrupted, WouldBlock};
use std::io::Read;

use nix::sys::signal::Signal;

use super::{GIVE_UP_AFTER, HeadProcess};
use crate::failure::Cause;
use crate::frames::Down;
use crate::output::{Sink, unwritten};
use crate::{last_words, spawn};

impl HeadProcess {
    /// Extends the time limit for the end of the job, because an agent has sent a message. Does not extend the limit if the user
    /// has interrupted the job.
    pub(super) fn heard(&mut self) {
        if !self.interrupted {
            let later = self.clock.now() + GIVE_UP_AFTER;
            self.ending = self.ending.map(|ending| ending.max(later));
        }
    }

    /// Ends the job after the failure of a rank.
    pub(super) fn failed(&mut self, rank: usize, cause: Cause) {
        self.ended[rank] = true;
        let unread = self.sinks.iter().any(Sink::is_broken);
        if unread && self.code.is_none() && cause == Cause::Signal(Signal::SIGPIPE) {
            // The rank wrote to a pipe without a reader (`mpiexec ... | head`). In this case, shells print no message either.
            self.code = Some(cause.code());
            return self.end(Signal::SIGTERM);
        }
        let program = spawn::name(&self.options.apps[self.programs[rank]]);
        let line = cause.line(rank, &program, Some(&self.links[self.places[rank]].host));
        if self.code.is_none() {
            last_words::send(&line, self.sinks[1].last_words(Some(rank)));
        }
        self.fail(&line, cause.code());
    }

    /// Ends the job after its first failure, which determines the exit code. Later failures have no effect.
    pub(super) fn fail(&mut self, line: &str, code: i32) {
        if self.code.is_none() {
            self.code = Some(code);
            last_words::send(line, &[]);
            self.say(&format!("mpiexec: {line}"));
            self.end(Signal::SIGTERM);
        }
    }

    /// Requests all hosts to end their ranks. A second call requests them to kill the ranks at once.
    pub(super) fn end(&mut self, signal: Signal) {
        self.answer = None;
        self.input = None;
        for link in &mut self.links {
            match link.started {
                true => link.send(&Down::End(signal as i32)),
                false => link.kill(),
            }
        }
        self.ending.get_or_insert(self.clock.now() + self.options.grace + GIVE_UP_AFTER);
    }

    /// Handles a signal that the foreground process relays.
    pub(super) fn obey(&mut self) {
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
        match signal {
            Signal::SIGQUIT => self.ask(),
            Signal::SIGUSR1 | Signal::SIGUSR2 | Signal::SIGTSTP | Signal::SIGCONT => {
                let started = self.links.iter_mut().filter(|link| link.started);
                started.for_each(|link| link.send(&Down::Signal(signal as i32)));
            }
            Signal::SIGINT | Signal::SIGTERM | Signal::SIGHUP => {
                if !self.interrupted {
                    self.code = Some(128 + signal as i32);
                    self.interrupted = true;
                    self.say(&format!("mpiexec: {}: ending the job", signal.as_str()));
                }
                self.end(signal);
            }
            _ => {}
        }
    }

    /// Reports once that standard output or error cannot be written.
    pub(super) fn report_lost_output(&mut self) {
        for index in 0..2 {
            if let Some(line) = unwritten(&mut self.sinks[index], index) {
                self.has_lost_output = true;
                self.say(&line);
            }
        }
    }

    /// Returns the exit code of the job. Lost output does not end a job, but is no success.
    pub(super) fn exit_code(&self) -> i32 {
        self.code.unwrap_or(i32::from(self.has_lost_output))
    }
}
