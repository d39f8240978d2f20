//! The hang report of several hosts. `mpiexec` asks all agents, and prints the report after all agents have answered.

use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use weft_bootstrap::report::clock_millis;

use super::HeadProcess;
use crate::{hang, spawn};

/// Maximum time until the hosts must have answered.
const PATIENCE: Duration = Duration::from_secs(2);

/// A report that is being gathered.
pub struct HangReport {
    pub deadline: Instant,
    ranks: Vec<Option<hang::RankReport>>,
    /// Indices of the hosts that have not answered.
    missing: Vec<usize>,
    /// True if the job ends after the report.
    is_last: bool,
}

impl HangReport {
    /// Takes an agent's answer. `now` is the time on the agent's clock.
    pub fn take(&mut self, link: usize, now: u64, ranks: Vec<(u32, hang::RankReport)>, host: &str) {
        self.missing.retain(|&missing| missing != link);
        let here = clock_millis();
        for (number, mut rank) in ranks {
            rank.program = format!("{} on {host}", rank.program);
            for pending in rank.status.iter_mut().flat_map(|status| &mut status.pending) {
                // Converts the time from the clock of the agent's host to the clock of this host.
                let age = now.saturating_sub(pending.since_millis);
                pending.since_millis = here.saturating_sub(age);
            }
            if let Some(slot) = self.ranks.get_mut(number as usize) {
                *slot = Some(rank);
            }
        }
    }
}

impl HeadProcess {
    /// Asks all hosts for the states of their ranks, before the job ends.
    pub(super) fn ask_at_end(&mut self) {
        self.ask();
        if let Some(report) = &mut self.report {
            report.is_last = true;
        }
    }

    /// Asks all hosts for the states of their ranks.
    pub(super) fn ask(&mut self) {
        if self.report.is_some() {
            return;
        }
        let started: Vec<usize> =
            (0..self.links.len()).filter(|&index| self.links[index].started).collect();
        for &index in &started {
            self.links[index].send(&crate::frames::Down::Report);
        }
        let ranks = vec![None; self.programs.len()];
        let deadline = self.clock.now() + PATIENCE;
        self.report = Some(HangReport { deadline, ranks, missing: started, is_last: false });
    }

    /// Prints the report if all hosts have answered, or if the time for the answers has passed.
    pub(super) fn answer_report(&mut self, now: Instant) {
        let due = |report: &mut HangReport| report.missing.is_empty() || report.deadline <= now;
        let Some(report) = self.report.take_if(due) else { return };
        let name = |rank: usize| spawn::name(&self.options.apps[self.programs[rank]]);
        // State for a rank whose host is silent or has not started its ranks.
        let unknown = |rank| hang::RankReport {
            program: name(rank),
            pid: 0,
            status: None,
            state: (!self.ended[rank]).then_some('?'),
        };
        let ranks: Vec<hang::RankReport> = report
            .ranks
            .into_iter()
            .enumerate()
            .map(|(rank, state)| state.unwrap_or_else(|| unknown(rank)))
            .collect();
        let text = hang::render(&ranks, clock_millis());
        self.say(&text);
        for link in report.missing {
            let line = format!("mpiexec: host {} has not answered", self.links[link].host);
            self.say(&line);
        }
        if report.is_last {
            let seconds = self.options.timeout.unwrap_or_default().as_secs_f64();
            self.say(&format!("mpiexec: the job has not ended within {seconds} s (--timeout)"));
            self.end(Signal::SIGTERM);
        }
    }
}
