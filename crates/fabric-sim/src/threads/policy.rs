//! The three scheduling policies of Linux 2.6 that the Rendezvous document compares (section 5.3).
//!
//! [`SchedulerPolicy::Dynamic`] is the scheduler of `kernel/sched.c` from 2.6.0 to 2.6.22 (constants and formulas of 2.6.18), in
//! exact time instead of ticks. A thread has a sleep average from 0 to `scheduler.history` (1 s in the kernel). Time asleep adds to
//! the average. Time on a processor reduces the average, by less if the average is high. Each tenth of the maximum is a level, and
//! the middle is at five tenths:
//!
//! ```text
//!   sleep average     0   1   2   3   4   5   6   7   8   9   10   tenths of scheduler.history
//!   level            -5  -4  -3  -2  -1   0  +1  +2  +3  +4   +5   added to the priority
//!                     who computes  <──  all begin  ──>  who sleeps
//! ```
//!
//! The level is computed when a thread wakes and when its slice ends. A waking thread preempts a thread of a lower level, but not a
//! thread of the same level. So a helper that has just been started waits for the end of a slice of the computing thread, and after
//! some slices it no longer waits. At the end of its slice a thread has to wait for all threads that have some of their slice left
//! (the expired array), unless its level is at least two above its priority.
//!
//! The model leaves out: time of waiting for a processor that counts as sleep, round robin within a slice, the limit on the
//! starvation of expired threads, and balancing between processors (the cores of a rank have one queue).

use crate::machine::{Scheduler, SchedulerPolicy};
use crate::units::Picoseconds;

/// Number of levels between the lowest and the highest sleep average (MAX_BONUS).
const BONUSES: u64 = 10;
/// Bonus that changes the priority neither up nor down.
const MIDDLE: i32 = BONUSES as i32 / 2;
/// Number of levels above its priority from which a thread of nice value 0 counts as interactive (INTERACTIVE_DELTA).
const INTERACTIVE: i32 = 2;
/// Part of its parent's sleep average that a new thread gets, in percent (CHILD_PENALTY).
const CHILD: u64 = 95;

/// A scheduler's rules.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    policy: SchedulerPolicy,
    /// Time slice of priority 0; zero if the policy has no slices.
    slice: Picoseconds,
    /// Time of sleep for a level, a tenth of the maximum sleep average (MAX_SLEEP_AVG); zero if all threads stay at the middle
    /// level.
    tenth: Picoseconds,
    /// Time to switch from one thread to another.
    pub switch: Picoseconds,
}

impl Rules {
    pub fn new(scheduler: &Scheduler) -> Rules {
        let Scheduler { policy, slice, switch, history, .. } = scheduler;
        let tenth = history.0 / BONUSES;
        Rules { policy: *policy, slice: slice.0, tenth, switch: switch.0 }
    }

    /// Limits a priority to the range of the policy: minus the nice value, or a real-time priority.
    pub fn priority(&self, asked: i32) -> i32 {
        match self.policy {
            SchedulerPolicy::Dynamic => asked.clamp(-19, 20),
            SchedulerPolicy::Fifo | SchedulerPolicy::RoundRobin => asked,
        }
    }

    fn most(&self) -> Picoseconds {
        self.tenth * BONUSES
    }

    fn bonus(&self, average: Picoseconds) -> u64 {
        average.checked_div(self.tenth).unwrap_or(MIDDLE as u64)
    }

    /// Returns the sleep average of a program that begins. The middle is an assumption: in the kernel it depends on the shell or
    /// daemon that started the program.
    pub fn first_average(&self) -> Picoseconds {
        self.most() / 2
    }

    /// Returns the sleep average of a new thread.
    pub fn child_average(&self, parent: Picoseconds) -> Picoseconds {
        self.bonus(parent) * CHILD / 100 * self.tenth
    }

    /// Returns the sleep average after `time` asleep.
    pub fn slept(&self, priority: i32, average: Picoseconds, time: Picoseconds) -> Picoseconds {
        // A single sleep of any length does not reach the highest level (INTERACTIVE_SLEEP).
        let tenths = (MIDDLE + delta(priority) + 1) as u64;
        let ceiling = (self.tenth * tenths).saturating_sub(self.tenth / 100);
        if time > ceiling && average < ceiling {
            return ceiling;
        }
        average.saturating_add(time).min(self.most())
    }

    /// Returns the sleep average after `time` on a processor.
    pub fn ran(&self, average: Picoseconds, time: Picoseconds) -> Picoseconds {
        average.saturating_sub(time.min(self.most()) / self.bonus(average).max(1))
    }

    /// Returns the level by which threads are chosen. The thread with the highest level runs first.
    pub fn level(&self, priority: i32, average: Picoseconds) -> i32 {
        match self.policy {
            SchedulerPolicy::Dynamic => priority + self.bonus(average) as i32 - MIDDLE,
            SchedulerPolicy::Fifo | SchedulerPolicy::RoundRobin => priority,
        }
    }

    /// Returns true if a thread whose slice has ended has to wait for all threads that have some of their slice left.
    pub fn expires(&self, priority: i32, average: Picoseconds) -> bool {
        let raised = self.bonus(average) as i32 - MIDDLE;
        self.policy == SchedulerPolicy::Dynamic && raised < delta(priority)
    }

    /// Returns the time for which a thread runs before other threads of its level run; `None` if it runs until it sleeps.
    pub fn slice(&self, priority: i32) -> Option<Picoseconds> {
        match self.policy {
            _ if self.slice == 0 => None,
            SchedulerPolicy::Fifo => None,
            SchedulerPolicy::RoundRobin => Some(self.slice),
            SchedulerPolicy::Dynamic => {
                let whole = self.slice * if priority > 0 { 4 } else { 1 };
                Some((whole * (20 + priority) as u64 / 20).max(self.slice.div_ceil(20)))
            }
        }
    }
}

/// Returns the number of levels above its priority from which a thread counts as interactive (DELTA).
fn delta(priority: i32) -> i32 {
    -priority * BONUSES as i32 / 40 + INTERACTIVE
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Time;

    const MS: Picoseconds = 1_000_000_000;

    fn rules(policy: SchedulerPolicy) -> Rules {
        let slice = Time::from_us(100_000.0);
        Rules::new(&Scheduler { policy, slice, ..Scheduler::default() })
    }

    #[test]
    fn a_sleeper_rises_and_a_runner_falls() {
        let rules = rules(SchedulerPolicy::Dynamic);
        let first = rules.first_average();
        assert_eq!((first, rules.level(0, first)), (500 * MS, 0));
        let child = rules.child_average(first);
        assert_eq!((child, rules.level(0, child)), (400 * MS, -1));
        assert_eq!(rules.slept(0, child, 250 * MS), 650 * MS);
        assert_eq!(rules.level(0, 650 * MS), 1);
        assert_eq!(rules.slept(0, 900 * MS, 250 * MS), 1000 * MS);
        // With a bonus of five, only a fifth of the time counts.
        assert_eq!(rules.ran(first, 100 * MS), 480 * MS);
        assert_eq!(rules.ran(50 * MS, 100 * MS), 0);
        assert_eq!(rules.level(0, 0), -5);
    }

    #[test]
    fn one_long_sleep_does_not_make_the_highest_level() {
        let rules = rules(SchedulerPolicy::Dynamic);
        assert_eq!(rules.slept(0, 0, 5000 * MS), 799 * MS);
        assert_eq!(rules.slept(0, 799 * MS, 5000 * MS), 1000 * MS);
        assert!(rules.expires(0, 600 * MS) && !rules.expires(0, 700 * MS));
    }

    #[test]
    fn slices_follow_the_priority() {
        let dynamic = rules(SchedulerPolicy::Dynamic);
        assert_eq!(dynamic.slice(0), Some(100 * MS));
        assert_eq!(dynamic.slice(-19), Some(5 * MS));
        assert_eq!(dynamic.slice(20), Some(800 * MS));
        assert_eq!(rules(SchedulerPolicy::RoundRobin).slice(7), Some(100 * MS));
        assert_eq!(rules(SchedulerPolicy::Fifo).slice(7), None);
        assert_eq!((dynamic.priority(99), dynamic.priority(-99)), (20, -19));
    }
}
