//! Deadlocks: jobs in which every rank waits in MPI, and nothing is under way that could end a wait.
//!
//! The ranks publish their waits before they sleep (`weft_bootstrap::report`), so detection costs no message. A job is deadlocked if
//! three looks, half a second apart, show the same:
//!
//! - Each rank has ended, or sleeps in MPI, with the same wait and without progress since the first look. At least one rank waits in a
//!   call other than MPI_Finalize. In the checking mode, a rank also counts as waiting while it tests or probes in a loop, after 4,096
//!   looks without a result. Otherwise it does not, because the loop may wait for something outside of MPI, too.
//! - No thread of the process can end the wait. The library's threads for files and for other jobs may do so, and so may
//!   threads of a program that asked for MPI_THREAD_MULTIPLE. So a process with such threads counts as one that goes on.
//! - No rank has a deadline at which the library acts, such as a request for a packet that was lost.

use std::time::{Duration, Instant};

use weft_bootstrap::report::{Phase, RankStatus, WaitProgress};

use crate::processes::ProcessThread;

/// Exit code of a job that is ended because of a deadlock: EDEADLK.
pub const EXIT_CODE: i32 = nix::errno::Errno::EDEADLK as i32;

/// Time between two looks.
const INTERVAL: Duration = Duration::from_millis(500);
/// Number of equal looks that show a deadlock.
const LOOKS: usize = 3;

/// Name of the thread that progresses messages while the program computes. It sleeps until a peer rings.
const HELPER: &str = "weft-helper";
/// Begins the names of the library's threads, and of the kernel's threads that read and write files for a process.
const OWN_THREADS: [&str; 2] = ["weft-", "iou-"];

/// Treatment of a deadlock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DeadlockPolicy {
    /// Print the hang report, and end the job.
    #[default]
    End,
    /// Print the hang report once.
    Report,
    /// Do not look.
    Off,
}

impl DeadlockPolicy {
    /// Names of the policies.
    pub const NAMES: [(&str, DeadlockPolicy); 3] = [
        ("end", DeadlockPolicy::End),
        ("report", DeadlockPolicy::Report),
        ("off", DeadlockPolicy::Off),
    ];
}

/// Meaning of a rank that tests or probes in a long loop without a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TestLoops {
    /// The rank waits for its peers.
    Wait,
    /// The rank may go on.
    GoOn,
}

/// State of a rank at a look.
pub enum RankLook {
    /// The process has ended.
    Ended,
    /// The process sleeps in MPI, or tests in a loop, with these threads.
    Sleeping { status: RankStatus, threads: Vec<ProcessThread> },
    /// Any other state. The rank may go on.
    Active,
}

/// Looks for deadlocks of a job.
pub struct DeadlockWatch {
    next: Instant,
    loops: TestLoops,
    /// Waits at the last looks; `None` if a rank was active at the last look.
    waits: Option<Vec<Option<RankStatus>>>,
    /// Number of equal looks so far.
    looks: usize,
}

impl DeadlockWatch {
    /// Creates a watch that looks first after an interval.
    pub fn new(now: Instant, loops: TestLoops) -> DeadlockWatch {
        DeadlockWatch { next: now + INTERVAL, loops, waits: None, looks: 0 }
    }

    /// Returns the time of the next look.
    pub fn next(&self) -> Instant {
        self.next
    }

    /// Looks at the ranks. Returns true if they are deadlocked. A rank that is active ends the look.
    pub fn look(&mut self, now: Instant, ranks: impl Iterator<Item = RankLook>) -> bool {
        self.next = now + INTERVAL;
        let waits: Option<Vec<_>> = ranks.map(|rank| wait(rank, self.loops)).collect();
        let is_stuck = |wait: &Option<RankStatus>| {
            wait.as_ref().is_some_and(|status| status.phase == Phase::Running)
        };
        let waits = waits.filter(|waits| waits.iter().any(is_stuck));
        self.looks = match &waits {
            None => 0,
            Some(now) if self.waits.as_ref().is_some_and(|before| is_same(before, now)) => {
                self.looks + 1
            }
            Some(_) => 1,
        };
        self.waits = waits;
        self.looks == LOOKS
    }
}

/// Returns true if all ranks wait as they did before. A loop must have gone on since then.
fn is_same(before: &[Option<RankStatus>], now: &[Option<RankStatus>]) -> bool {
    let same = |(before, now): (&Option<RankStatus>, &Option<RankStatus>)| match (before, now) {
        (Some(before), Some(now)) => {
            let (earlier, later) = (before.progress.loop_reports, now.progress.loop_reports);
            let progress = WaitProgress { loop_reports: earlier, ..now.progress };
            let rest = RankStatus { progress, ..now.clone() };
            (earlier == 0) == (later == 0) && (later == 0 || earlier != later) && *before == rest
        }
        (before, now) => before == now,
    };
    before.len() == now.len() && before.iter().zip(now).all(same)
}

/// Returns the wait of a rank that only a peer can end, `Some(None)` for a rank that has ended, and `None` for all other ranks.
fn wait(rank: RankLook, loops: TestLoops) -> Option<Option<RankStatus>> {
    match rank {
        RankLook::Ended => Some(None),
        RankLook::Active => None,
        RankLook::Sleeping { status, threads } => {
            let is_in_mpi = matches!(status.phase, Phase::Running | Phase::Finalizing);
            let only_peers =
                is_in_mpi && !status.pending.is_empty() && !status.progress.has_deadline;
            let is_loop = status.progress.loop_reports != 0;
            let waits = !is_loop || loops == TestLoops::Wait;
            let sleep = threads.iter().all(|thread| {
                (is_loop && thread.is_main && matches!(thread.state, 'R' | 'S'))
                    || sleeps(thread, status.progress)
            });
            (only_peers && waits && sleep && has_one_thread_for_mpi(&threads, &status))
                .then_some(Some(status))
        }
    }
}

/// Returns true if a thread of the program cannot end a wait of another thread.
fn has_one_thread_for_mpi(threads: &[ProcessThread], status: &RankStatus) -> bool {
    let count = threads.iter().filter(|thread| thread.name != HELPER).count();
    count == 1 || (count > 1 && !status.progress.threads)
}

/// Returns true if a thread does nothing that ends a wait. Threads of a program may compute if they may not call MPI meanwhile.
fn sleeps(thread: &ProcessThread, progress: WaitProgress) -> bool {
    let is_own = OWN_THREADS.iter().any(|name| thread.name.starts_with(name));
    match is_own {
        true => thread.name == HELPER && thread.state == 'S',
        false => thread.state == 'S' || (!progress.threads && !thread.is_main),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_bootstrap::report::Pending;

    fn status(phase: Phase, since_millis: u64) -> RankStatus {
        let pending = vec![Pending {
            operation: "MPI_Recv".into(),
            peer: Some(0),
            tag: None,
            bytes: 4,
            communicator: "MPI_COMM_WORLD".into(),
            since_millis,
        }];
        RankStatus { phase, pending, more: 0, progress: WaitProgress::default() }
    }

    fn thread(name: &str, state: char) -> ProcessThread {
        ProcessThread { name: name.into(), state, is_main: name == "a.out" }
    }

    fn sleeping(status: RankStatus, threads: &[(&str, char)]) -> RankLook {
        let threads = threads.iter().map(|&(name, state)| thread(name, state)).collect();
        RankLook::Sleeping { status, threads }
    }

    /// Returns true if ranks that look the same all the time are deadlocked.
    fn deadlocked(ranks: impl Fn() -> Vec<RankLook>) -> bool {
        let start = Instant::now();
        let mut watch = DeadlockWatch::new(start, TestLoops::GoOn);
        (0..10).any(|_| watch.look(watch.next(), ranks().into_iter()))
    }

    const ALONE: &[(&str, char)] = &[("a.out", 'S')];

    #[test]
    fn ranks_that_all_wait_are_deadlocked_at_the_third_look() {
        let ranks = || vec![sleeping(status(Phase::Running, 5), ALONE), RankLook::Ended];
        let mut watch = DeadlockWatch::new(Instant::now(), TestLoops::GoOn);
        let looks: Vec<bool> =
            (0..5).map(|_| watch.look(watch.next(), ranks().into_iter())).collect();
        assert_eq!(looks, [false, false, true, false, false], "reported once");
    }

    #[test]
    fn a_rank_that_may_go_on_prevents_a_deadlock() {
        let waiting = || sleeping(status(Phase::Running, 5), ALONE);
        assert!(deadlocked(|| vec![waiting(), waiting()]));
        assert!(!deadlocked(|| vec![waiting(), RankLook::Active]));
        assert!(!deadlocked(|| vec![waiting(), sleeping(status(Phase::Finalized, 5), ALONE)]));
        assert!(!deadlocked(|| vec![
            waiting(),
            sleeping(status(Phase::Running, 5), &[("a.out", 'R')])
        ]));
        assert!(!deadlocked(|| vec![
            waiting(),
            sleeping(status(Phase::Running, 5), &[("a.out", 'T')])
        ]));
    }

    #[test]
    fn ranks_in_finalize_are_deadlocked_only_if_others_wait_elsewhere() {
        let finalizing = || sleeping(status(Phase::Finalizing, 5), ALONE);
        assert!(!deadlocked(|| vec![finalizing(), finalizing()]));
        assert!(deadlocked(|| vec![finalizing(), sleeping(status(Phase::Running, 1), ALONE)]));
    }

    #[test]
    fn threads_that_may_end_a_wait_prevent_a_deadlock() {
        let with = |threads: &[(&str, char)], multiple: bool| {
            let mut status = status(Phase::Running, 5);
            status.progress.threads = multiple;
            vec![sleeping(status, threads)]
        };
        for multiple in [false, true] {
            assert!(deadlocked(|| with(&[("a.out", 'S'), (HELPER, 'S')], multiple)));
            assert!(!deadlocked(|| with(&[("a.out", 'S'), (HELPER, 'R')], multiple)));
            assert!(!deadlocked(|| with(&[("a.out", 'S'), ("weft-io", 'S')], multiple)));
            assert!(!deadlocked(|| with(&[("a.out", 'S'), ("weft-link", 'S')], multiple)));
            assert!(!deadlocked(|| with(&[("a.out", 'S'), ("iou-wrk-7", 'S')], multiple)));
        }
        assert!(deadlocked(|| with(&[("a.out", 'S'), ("openblas", 'R')], false)));
        assert!(!deadlocked(|| with(&[("a.out", 'S'), ("openblas", 'S')], true)));
    }

    #[test]
    fn progress_and_deadlines_prevent_a_deadlock() {
        let mut watch = DeadlockWatch::new(Instant::now(), TestLoops::GoOn);
        for moves in 0..20 {
            let mut status = status(Phase::Running, 5);
            status.progress.moves = moves / 2;
            assert!(!watch.look(watch.next(), [sleeping(status, ALONE)].into_iter()));
        }
        let mut overdue = status(Phase::Running, 5);
        overdue.progress.has_deadline = true;
        assert!(!deadlocked(|| vec![sleeping(overdue.clone(), ALONE)]));
    }

    #[test]
    fn loops_of_tests_are_waits_in_the_checking_mode_as_long_as_they_go_on() {
        let looks = |loops, reports: [u32; 6], moves: [u32; 6]| {
            let mut watch = DeadlockWatch::new(Instant::now(), loops);
            reports.into_iter().zip(moves).any(|(loop_reports, moves)| {
                let mut tests = status(Phase::Running, 5);
                tests.progress = WaitProgress { loop_reports, moves, ..WaitProgress::default() };
                let ranks = [
                    sleeping(tests, &[("a.out", 'R')]),
                    sleeping(status(Phase::Running, 5), ALONE),
                ];
                watch.look(watch.next(), ranks.into_iter())
            })
        };
        let goes_on = [64, 70, 75, 90, 91, 92];
        assert!(looks(TestLoops::Wait, goes_on, [7; 6]));
        assert!(!looks(TestLoops::GoOn, goes_on, [7; 6]));
        assert!(!looks(TestLoops::Wait, goes_on, [1, 2, 3, 4, 5, 6]), "something moves");
        assert!(!looks(TestLoops::Wait, [64; 6], [7; 6]), "the loop has ended");
        assert!(!looks(TestLoops::Wait, [64, 65, 65, 66, 66, 67], [7; 6]), "loops that end");
    }
}
