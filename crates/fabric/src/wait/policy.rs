//! Adaptive backoff: spin while no other thread needs the core, then yield, then sleep.
//!
//! ```text
//!   poll fails ──> spin ──────────> yield ─────────> sleep
//!                  500 us if the    up to 50, each   until a peer rings,
//!                  local ranks fit  of them timed    or the limit passes
//!                  the processors,
//!                  else a few turns
//! ```
//! The spin is long because waking a sleeper takes up to 100 us in a virtual machine. If ranks of a collective operation spin for
//! less than this time and one rank has slept once, all ranks sleep at every step: 4 MiB in 128 steps took six times as long with
//! a spin of 20 us. Beside a neighbour that is known not to yield, the spin is only [`BRIEF`].
//!
//! If a yield takes longer than [`WaitPolicy::preempted`], the core was taken by a thread that does not yield (another program, a
//! rank that computes, the host of a virtual machine). Yielding to such a neighbour costs a whole time slice, while a woken
//! sleeper preempts the neighbour. So yields are skipped for a time. This time doubles from [`WaitPolicy::penalty`] up to
//! [`WaitPolicy::penalty_most`] while long yields continue, and starts anew after [`TRUST`] short yields. So a single disturbance
//! costs little, and a busy neighbour soon gets no more yields.

use super::affinity::Affinity;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Maximum time to spin beside a neighbour that does not yield. It is short, because spinning uses up the time slice that a
/// sleeper needs in order to be woken at once.
pub const BRIEF: Duration = Duration::from_micros(20);

/// Maximum length of a yield that is not ascribed to a foreign thread: less than the shortest time slices.
const FOREIGN_MOST: Duration = Duration::from_millis(1);

/// Number of successive short yields that cancel the effect of long yields.
pub const TRUST: u32 = 16;

/// The numbers of the backoff, and the knowledge about the neighbours. Several threads may wait by the same policy. Their
/// knowledge is then only approximate, which does no harm.
#[derive(Debug)]
pub struct WaitPolicy {
    /// Maximum time to spin, in nanoseconds, if the local ranks fit the processors.
    spin: AtomicU64,
    /// Number of turns to spin if the local ranks do not fit the processors.
    pub turns: u32,
    /// Maximum number of yields before sleeping.
    pub yields: u32,
    /// Maximum length of a yield that is not ascribed to a foreign thread: 250 us for each local rank of a processor (measured
    /// with 8 ranks on 2 processors: with a total of 100 us, every rank of a broadcast of 16 KiB slept, and the broadcast took 33
    /// us instead of 13 us; with 100 us for each rank, scans of 512 bytes, where ranks receive many messages at once, took 3.3 us
    /// instead of 0.8 us).
    pub preempted: Duration,
    /// Time without yields after the first yield that was too long.
    pub penalty: Duration,
    /// Maximum time without yields. `penalty` doubles up to it while long yields go on.
    pub penalty_most: Duration,
    /// Maximum length of a sleep without a poll.
    pub nap: Duration,
    /// Maximum length of the first sleep of a wait, after which the wait counts as stuck.
    pub first_nap: Duration,
    /// Maximum number of local ranks that take turns on a processor; 1: the ranks fit the processors that they may use.
    ranks_each: AtomicU32,
    /// The processor on which the rank stays, if it shares a processor with other ranks.
    pub home: Option<Affinity>,
    began: Instant,
    /// Nanoseconds since `began` until which no yield is tried.
    no_yield_until: AtomicU64,
    /// Nanoseconds of the next penalty; 0: the next penalty is the first.
    next_penalty: AtomicU64,
    short_yields: AtomicU32,
    slept: AtomicU64,
    yielded: AtomicU64,
}

impl WaitPolicy {
    /// Creates a policy with the measured defaults. `fits` is true if the ranks fit their processors.
    pub fn new(fits: bool) -> WaitPolicy {
        WaitPolicy {
            spin: AtomicU64::new(500_000),
            turns: 4,
            yields: 50,
            preempted: Duration::from_micros(250),
            penalty: Duration::from_millis(1),
            penalty_most: Duration::from_millis(64),
            nap: Duration::from_millis(500),
            first_nap: Duration::from_millis(100),
            ranks_each: AtomicU32::new(if fits { 1 } else { 2 }),
            home: None,
            began: Instant::now(),
            no_yield_until: AtomicU64::new(0),
            next_penalty: AtomicU64::new(0),
            short_yields: AtomicU32::new(0),
            slept: AtomicU64::new(0),
            yielded: AtomicU64::new(0),
        }
    }

    /// Creates the policy of a rank in virtual time: each wait sleeps at once, for as long as nothing concerns it.
    pub fn virtual_time() -> WaitPolicy {
        let mut policy = WaitPolicy::new(false);
        policy.set_spin(Duration::ZERO);
        (policy.turns, policy.yields) = (0, 0);
        (policy.nap, policy.first_nap) = (Self::UNTIL_RUNG, Self::UNTIL_RUNG);
        policy
    }

    /// Length of a sleep in virtual time that only an event may end.
    pub const UNTIL_RUNG: Duration = Duration::from_secs(3600);

    /// Creates the policy for `ranks` local ranks on `processors` processors. The maximum length of a usual yield depends on the
    /// number of ranks, because all other ranks of a processor have their turns during a yield.
    pub fn for_ranks(ranks: usize, processors: usize) -> WaitPolicy {
        let mut policy = WaitPolicy::new(ranks <= processors);
        policy.crowd(ranks, processors);
        policy.preempted = (policy.preempted * policy.ranks_each()).min(FOREIGN_MOST);
        policy
    }

    /// Sets the number of processes of this job and of connected jobs that share the processors, from now on.
    pub fn crowd(&self, processes: usize, processors: usize) {
        let each = processes.div_ceil(processors.max(1)).max(1);
        self.ranks_each.store(each as u32, Ordering::Relaxed);
    }

    /// Returns the maximum number of local ranks that take turns on a processor.
    pub fn ranks_each(&self) -> u32 {
        self.ranks_each.load(Ordering::Relaxed)
    }

    /// Returns the maximum time to spin when the local ranks fit the processors: 500 us unless [`WaitPolicy::set_spin`] changes
    /// it, at any time.
    pub fn spin(&self) -> Duration {
        Duration::from_nanos(self.spin.load(Ordering::Relaxed))
    }

    /// Sets the maximum time to spin, for present and future waits in all threads.
    pub fn set_spin(&self, spin: Duration) {
        self.spin.store(spin.as_nanos() as u64, Ordering::Relaxed);
    }

    /// Returns true if a rank that tests in a loop takes a processor that another rank needs.
    #[inline]
    pub fn takes_turns(&self) -> bool {
        !self.fits() && self.yields > 0
    }

    /// Returns true if the local ranks fit the processors that they may use.
    #[inline]
    pub fn fits(&self) -> bool {
        self.ranks_each() == 1
    }

    /// Returns the number of waits that went to sleep so far.
    pub fn slept(&self) -> u64 {
        self.slept.load(Ordering::Relaxed)
    }

    /// Returns the number of times that the rank has moved to its own processor so far.
    pub fn went_home(&self) -> u64 {
        self.home.as_ref().map_or(0, Affinity::went)
    }

    /// Returns the number of yields so far.
    pub fn yielded(&self) -> u64 {
        self.yielded.load(Ordering::Relaxed)
    }

    fn count(of: &AtomicU64) {
        of.store(of.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }

    fn is_penalized(&self) -> bool {
        let until = self.no_yield_until.load(Ordering::Relaxed);
        until != 0 && (self.began.elapsed().as_nanos() as u64) < until
    }

    /// Learns from a yield that took `took` and ended now.
    fn learn(&self, took: Duration, now: Instant) {
        if took <= self.preempted {
            let short = self.short_yields.load(Ordering::Relaxed) + 1;
            self.short_yields.store(short, Ordering::Relaxed);
            if short >= TRUST {
                self.short_yields.store(0, Ordering::Relaxed);
                self.next_penalty.store(0, Ordering::Relaxed);
            }
            return;
        }
        let first = self.penalty.as_nanos() as u64;
        let most = self.penalty_most.as_nanos() as u64;
        let span = self.next_penalty.load(Ordering::Relaxed).max(first).min(most);
        let until = (now - self.began).as_nanos() as u64 + span;
        self.short_yields.store(0, Ordering::Relaxed);
        self.next_penalty.store(span * 2, Ordering::Relaxed);
        self.no_yield_until.store(until, Ordering::Relaxed);
    }
}

/// The action after a fruitless poll.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitStep {
    /// Poll again. The step has already spun or yielded.
    Again,
    /// Arm the sleeper, poll once more, and sleep for at most this long.
    Sleep(Duration),
}

/// The state of one wait.
pub struct Waiter<'p> {
    policy: &'p WaitPolicy,
    turns: u32,
    yields: u32,
    since: Option<Instant>,
}

/// Maximum number of turns without a pause: one or two microseconds, in which a neighbour on the same core may be slowed down.
const LOOKS: u32 = 64;

/// Number of spinning turns between two readings of the clock.
const TURNS_PER_LOOK: u32 = 64;

impl<'p> Waiter<'p> {
    /// Creates a wait that has just begun, and will spin first.
    pub fn new(policy: &'p WaitPolicy) -> Waiter<'p> {
        Waiter { policy, turns: 0, yields: 0, since: None }
    }

    /// Starts the backoff again at the beginning, because something moved.
    pub fn progressed(&mut self) {
        self.turns = 0;
        self.yields = 0;
        self.since = None;
    }

    /// Takes the next step: spins, yields, or asks the caller to sleep.
    pub fn step(&mut self) -> WaitStep {
        if self.spins() {
            // A pause takes as long as a poll. The first turns have no pause, because the answer may be about to arrive.
            if self.turns > LOOKS {
                std::hint::spin_loop();
            }
            return WaitStep::Again;
        }
        if self.yields < self.policy.yields && !self.policy.is_penalized() {
            self.yields += 1;
            self.timed_yield();
            return WaitStep::Again;
        }
        WaitPolicy::count(&self.policy.slept);
        WaitStep::Sleep(self.policy.nap)
    }

    fn spins(&mut self) -> bool {
        self.turns = self.turns.saturating_add(1);
        if !self.policy.fits() {
            return self.turns <= self.policy.turns;
        }
        if !self.turns.is_multiple_of(TURNS_PER_LOOK) {
            return self.yields == 0;
        }
        let since = *self.since.get_or_insert_with(Instant::now);
        let most = match self.policy.is_penalized() {
            true => self.policy.spin().min(BRIEF),
            false => self.policy.spin(),
        };
        self.yields == 0 && since.elapsed() < most
    }

    fn timed_yield(&mut self) {
        let before = Instant::now();
        std::thread::yield_now();
        let after = Instant::now();
        WaitPolicy::count(&self.policy.yielded);
        self.policy.learn(after - before, after);
        if let Some(home) = &self.policy.home
            && after - before <= self.policy.preempted
        {
            home.keep(after);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crowded_ranks_spin_a_few_turns_then_yield_then_sleep() {
        let mut policy = WaitPolicy::new(false);
        policy.preempted = Duration::from_secs(3600);
        let mut waiter = Waiter::new(&policy);
        for _ in 0..policy.turns {
            assert_eq!(waiter.step(), WaitStep::Again);
        }
        assert_eq!(policy.yielded(), 0);
        for _ in 0..policy.yields {
            assert_eq!(waiter.step(), WaitStep::Again);
        }
        assert_eq!(policy.yielded(), u64::from(policy.yields));
        assert_eq!(waiter.step(), WaitStep::Sleep(policy.nap));
        assert_eq!(policy.slept(), 1);
        waiter.progressed();
        assert_eq!(waiter.step(), WaitStep::Again);
    }

    #[test]
    fn ranks_of_one_processor_are_no_foreigners() {
        let foreign = |ranks, processors| WaitPolicy::for_ranks(ranks, processors).preempted;
        assert_eq!(foreign(2, 2), Duration::from_micros(250));
        assert_eq!(foreign(3, 2), Duration::from_micros(500));
        assert_eq!(foreign(8, 2), FOREIGN_MOST);
        assert_eq!(foreign(1000, 2), FOREIGN_MOST);
        assert!(WaitPolicy::for_ranks(2, 2).fits() && !WaitPolicy::for_ranks(3, 2).fits());
        let policy = WaitPolicy::for_ranks(2, 2);
        policy.crowd(3, 2);
        assert!(!policy.fits(), "a process of another job has come");
        policy.crowd(2, 2);
        assert!(policy.fits());
    }

    #[test]
    fn a_long_yield_is_not_repeated() {
        let mut policy = WaitPolicy::new(false);
        policy.turns = 0;
        policy.preempted = Duration::ZERO;
        policy.penalty = Duration::from_secs(3600);
        policy.penalty_most = policy.penalty;
        let mut waiter = Waiter::new(&policy);
        assert_eq!(waiter.step(), WaitStep::Again);
        assert_eq!(waiter.step(), WaitStep::Sleep(policy.nap));
        assert_eq!(policy.yielded(), 1);
    }

    #[test]
    fn distrust_doubles_while_long_yields_go_on_and_short_ones_end_it() {
        let policy = WaitPolicy::new(false);
        let (long, short) = (policy.preempted * 2, policy.preempted / 2);
        let now = policy.began + Duration::from_secs(1);
        let span = || {
            let until = policy.no_yield_until.load(Ordering::Relaxed);
            Duration::from_nanos(until) - Duration::from_secs(1)
        };
        for expected in [1, 2, 4, 8, 16, 32, 64, 64] {
            policy.learn(long, now);
            assert_eq!(span(), Duration::from_millis(expected));
        }
        for _ in 0..TRUST {
            policy.learn(short, now);
        }
        policy.learn(long, now);
        assert_eq!(span(), policy.penalty);
    }
}
