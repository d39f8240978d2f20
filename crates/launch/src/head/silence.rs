//! Silent hosts: hosts that have not answered yet, and hosts from which no more messages come.

use std::time::Instant;

use nix::sys::signal::Signal;

use super::link::Link;
use super::{HeadProcess, UNREACHED};
use crate::signs;

/// Returns `host a`, or `hosts a, b`.
fn named(hosts: &[&str]) -> String {
    let noun = if hosts.len() == 1 { "host" } else { "hosts" };
    format!("{noun} {}", hosts.join(", "))
}

impl HeadProcess {
    /// Describes the hosts that have not answered in time.
    pub(super) fn unanswered(&self) -> String {
        let late: Vec<&Link> = self.links.iter().filter(|link| link.identity.is_none()).collect();
        let hosts: Vec<&str> = late.iter().map(|link| &*link.host).collect();
        let Some(first) = late.first() else { return String::new() };
        let verb = if hosts.len() == 1 { "has" } else { "have" };
        let seconds = self.options.launch_timeout.as_secs_f64();
        let printed = first.said();
        format!(
            "{} {verb} not answered within {seconds} s{printed}; tried: {}",
            named(&hosts),
            first.command
        )
    }

    /// Sends signs of life. Ends the job if a host has sent no sign of life for too long.
    pub(super) fn check_silence(&mut self, now: Instant) {
        self.links.iter_mut().for_each(|link| link.give_sign(now));
        let is_silent = |link: &Link, spare: u32| {
            let pulse = link.pulse.as_ref().filter(|_| !link.done && link.reading().is_some());
            pulse.is_some_and(|pulse| pulse.is_silent(now, spare))
        };
        // A job that is ending has a separate deadline, so silence has no effect.
        if self.ending.is_some() || !self.links.iter().any(|link| is_silent(link, 0)) {
            return;
        }
        // If several hosts are lost at the same time, the times of their last signs differ by up to one interval. So the message
        // also names hosts that will have been silent too long one interval later.
        let (mut hosts, mut ranks, mut command) = (Vec::new(), Vec::new(), String::new());
        for link in self.links.iter_mut().filter(|link| is_silent(link, 1)) {
            link.kill();
            ranks.extend(link.ranks.iter().copied().filter(|&rank| !self.ended[rank]));
            hosts.push(&*link.host);
            command.clone_from(&link.command);
        }
        let seconds = self.options.alive.timeout.as_secs_f64();
        let (verb, whom) = if hosts.len() == 1 { ("has", "it") } else { ("have", "them") };
        let line = format!(
            "{} {verb} been silent for {seconds} s, and ranks {ranks:?} with {whom}: no power, no network, or the agent \
             there is stopped ({}); reached with: {command}",
            named(&hosts),
            signs::TIMEOUT
        );
        self.lose(&line);
    }

    /// Handles the report of an agent that has received nothing for too long, although its own messages still arrive here.
    pub(super) fn deaf(&mut self, index: usize) {
        let Link { host, command, .. } = &self.links[index];
        let line = format!(
            "host {host} has heard nothing of mpiexec for {} s, and ended its ranks ({}); reached with: {command}",
            self.options.alive.timeout.as_secs_f64(),
            signs::TIMEOUT
        );
        self.lose(&line);
    }

    /// Ends the job because a host is lost, even if the job continued after an earlier error.
    fn lose(&mut self, line: &str) {
        if self.code.is_some() && self.ending.is_none() {
            self.say(&format!("mpiexec: {line}"));
            self.end(Signal::SIGTERM);
        }
        self.fail(line, UNREACHED);
    }
}
