//! Waits of the ranks of this host: the hang report, and the watch for deadlocks.

use std::time::Instant;

use nix::sys::signal::Signal;
use weft_bootstrap::report::clock_millis;

use super::{Rank, Supervisor};
use crate::deadlock::{self, DeadlockPolicy, RankLook};
use crate::{hang, processes};

impl Supervisor {
    /// Looks for a deadlock, if it is time to do so.
    pub(super) fn check_deadlock(&mut self, now: Instant) {
        let Some(mut watch) = self.deadlock.take() else { return };
        if self.code.is_some() || self.ending.is_some() || self.all_done {
            return;
        }
        let is_deadlocked = watch.next() <= now && {
            let places = 0..self.ranks.len();
            watch.look(now, places.map(|place| self.rank_look(place)))
        };
        if !is_deadlocked {
            self.deadlock = Some(watch);
            return;
        }
        self.report();
        self.say(
            "mpiexec: deadlock: every rank waits, and nothing is under way that could end a wait",
        );
        match self.options.deadlock {
            DeadlockPolicy::End => {
                self.code = Some(deadlock::EXIT_CODE);
                self.say("mpiexec: ending the job; -deadlock report keeps it, for a debugger");
                self.end(Signal::SIGTERM);
            }
            DeadlockPolicy::Report | DeadlockPolicy::Off => {}
        }
    }

    /// Looks at a rank for [`Supervisor::check_deadlock`].
    fn rank_look(&self, place: usize) -> RankLook {
        let rank = &self.ranks[place];
        if rank.ended {
            return RankLook::Ended;
        }
        if rank.suspect.is_some() || !self.service.may_sleep(place) {
            return RankLook::Active;
        }
        let status = self.service.status(place);
        let threads = self.service.member(place).and_then(processes::threads);
        match status.zip(threads) {
            Some((status, threads)) => RankLook::Sleeping { status, threads },
            None => RankLook::Active,
        }
    }

    /// Returns the state of each rank.
    pub(super) fn states(&self) -> Vec<hang::RankReport> {
        let look = |(place, rank): (usize, &Rank)| hang::RankReport {
            program: self.program(place),
            pid: self.service.member(place).unwrap_or(rank.pid),
            status: self.service.status(place),
            state: (!rank.ended)
                .then(|| processes::look(self.service.member(place).unwrap_or(rank.pid)))
                .flatten()
                .map(|(_, state)| state),
        };
        self.ranks.iter().enumerate().map(look).collect()
    }

    /// Prints the hang report.
    pub(super) fn report(&mut self) {
        let text = hang::render(&self.states(), clock_millis());
        self.say(&text);
    }
}
