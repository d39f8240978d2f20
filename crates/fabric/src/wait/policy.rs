//! The adaptive ladder: spin while nobody else needs the core, then yield, then sleep.
//!
//! ```text
//!   poll fails ──> spin ──────────> yield ─────────> sleep
//!                  20 us if the     up to 50, each   until a peer rings,
//!                  local ranks fit  of them timed    or the limit passes
//!                  the processors,
//!                  else a few turns
//! ```
//! A yield that takes longer than [`WaitPolicy::foreign`] means that somebody who does not yield
//! owns the core (another program, or a rank that computes); for [`WaitPolicy::distrust`] yields are
//! then skipped, because giving way to such a neighbour costs a whole time slice, while a sleeper
//! that is woken preempts it.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// The numbers of the ladder, and what has been learnt about the neighbours.
#[derive(Debug)]
pub struct WaitPolicy {
    /// How long to spin when the local ranks fit the processors.
    pub spin: Duration,
    /// Turns to spin when they do not.
    pub turns: u32,
    /// Yields before sleeping.
    pub yields: u32,
    /// A yield longer than this was taken by somebody foreign.
    pub foreign: Duration,
    /// How long no yield is tried after that.
    pub distrust: Duration,
    /// Longest sleep without a look around.
    pub nap: Duration,
    /// The local ranks fit the processors that they may use.
    pub fits: bool,
    no_yield_until: Cell<Option<Instant>>,
    slept: Cell<u64>,
    yielded: Cell<u64>,
}

impl WaitPolicy {
    /// The measured defaults, for ranks that fit their processors or do not.
    pub fn new(fits: bool) -> WaitPolicy {
        WaitPolicy {
            spin: Duration::from_micros(20),
            turns: 4,
            yields: 50,
            foreign: Duration::from_micros(100),
            distrust: Duration::from_millis(50),
            nap: Duration::from_millis(500),
            fits,
            no_yield_until: Cell::new(None),
            slept: Cell::new(0),
            yielded: Cell::new(0),
        }
    }

    /// Waits that went to sleep so far.
    pub fn slept(&self) -> u64 {
        self.slept.get()
    }

    /// Yields so far.
    pub fn yielded(&self) -> u64 {
        self.yielded.get()
    }
}

/// What to do after a fruitless poll.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Poll again (the step has already spun or yielded).
    Again,
    /// Arm the sleeper, poll once more, and sleep for at most this long.
    Sleep(Duration),
}

/// The state of one wait on the ladder.
pub struct Waiter<'p> {
    policy: &'p WaitPolicy,
    turns: u32,
    yields: u32,
    since: Option<Instant>,
}

/// Spinning turns between two looks at the clock.
const TURNS_PER_LOOK: u32 = 64;

impl<'p> Waiter<'p> {
    pub fn new(policy: &'p WaitPolicy) -> Waiter<'p> {
        Waiter { policy, turns: 0, yields: 0, since: None }
    }

    /// Something moved: start again at the foot of the ladder.
    pub fn progressed(&mut self) {
        self.turns = 0;
        self.yields = 0;
        self.since = None;
    }

    /// Takes the next step: spins, yields, or asks the caller to sleep.
    pub fn step(&mut self) -> Step {
        if self.spins() {
            std::hint::spin_loop();
            return Step::Again;
        }
        if self.yields < self.policy.yields && !self.distrusts() {
            self.yields += 1;
            self.timed_yield();
            return Step::Again;
        }
        self.policy.slept.set(self.policy.slept.get() + 1);
        Step::Sleep(self.policy.nap)
    }

    fn spins(&mut self) -> bool {
        self.turns = self.turns.saturating_add(1);
        if !self.policy.fits {
            return self.turns <= self.policy.turns;
        }
        if !self.turns.is_multiple_of(TURNS_PER_LOOK) {
            return self.yields == 0;
        }
        let since = *self.since.get_or_insert_with(Instant::now);
        self.yields == 0 && since.elapsed() < self.policy.spin
    }

    fn distrusts(&self) -> bool {
        match self.policy.no_yield_until.get() {
            Some(until) if Instant::now() < until => true,
            Some(_) => {
                self.policy.no_yield_until.set(None);
                false
            }
            None => false,
        }
    }

    fn timed_yield(&mut self) {
        let before = Instant::now();
        std::thread::yield_now();
        let after = Instant::now();
        self.policy.yielded.set(self.policy.yielded.get() + 1);
        if after - before > self.policy.foreign {
            self.policy.no_yield_until.set(Some(after + self.policy.distrust));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crowded_ranks_spin_a_few_turns_then_yield_then_sleep() {
        let mut policy = WaitPolicy::new(false);
        policy.foreign = Duration::from_secs(3600);
        let mut waiter = Waiter::new(&policy);
        for _ in 0..policy.turns {
            assert_eq!(waiter.step(), Step::Again);
        }
        assert_eq!(policy.yielded(), 0);
        for _ in 0..policy.yields {
            assert_eq!(waiter.step(), Step::Again);
        }
        assert_eq!(policy.yielded(), u64::from(policy.yields));
        assert_eq!(waiter.step(), Step::Sleep(policy.nap));
        assert_eq!(policy.slept(), 1);
        waiter.progressed();
        assert_eq!(waiter.step(), Step::Again);
    }

    #[test]
    fn a_long_yield_is_not_repeated() {
        let mut policy = WaitPolicy::new(false);
        policy.turns = 0;
        policy.foreign = Duration::ZERO;
        policy.distrust = Duration::from_secs(3600);
        let mut waiter = Waiter::new(&policy);
        assert_eq!(waiter.step(), Step::Again);
        assert_eq!(waiter.step(), Step::Sleep(policy.nap));
        assert_eq!(policy.yielded(), 1);
    }
}
