//! The processor on which a rank stays, if ranks share processors.
//!
//! ```text
//!   8 ranks, 2 processors      as the system puts them        at home
//!   processor 0                0 1 3 4 6                      0 1 2 3
//!   processor 1                2 5 7                          4 5 6 7
//! ```
//! Ranks that only yield never sleep, so the system does not move them for minutes. By the initial placement of the system, five
//! or six of eight ranks may take turns on one of two processors (a gather of 8 bytes from 8 ranks on 2 processors took 3.4 to 10
//! us, and 3.4 us if each rank had its place). So a rank goes to its place when it joins the job. Now and then, after a yield, it
//! checks if it is still there.
//!
//! No rank is bound to its processor: to move, a thread restricts its affinity to the processor, and then restores its former
//! affinity. So the system may move the thread elsewhere if another thread needs the processor, and threads that the rank starts
//! inherit no restriction. The rank waits longer before each further move. A rank that has found its processor taken by a foreign
//! thread does not check.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

/// Minimum and maximum time between two checks of the processor.
const LEAST: Duration = Duration::from_millis(2);
const MOST: Duration = Duration::from_secs(2);

/// Number of successive checks that found the rank on its processor, after which the time between checks is the minimum again.
const SETTLED: u32 = 32;

/// The place of a rank, or of one of its threads, among the ranks of the machine. Only the thread that created the place moves there.
#[derive(Debug)]
pub struct Affinity {
    /// Processors of the rank. Each of them is as good as the others.
    processors: Box<[usize]>,
    thread: ThreadId,
    began: Instant,
    /// Time of the next check in nanoseconds since `began`, and pause from that check to the check after it in nanoseconds.
    until: AtomicU64,
    pause: AtomicU64,
    settled: AtomicU32,
    went: AtomicU64,
}

/// Returns the processors of rank `rank` of `ranks`. If there are more ranks than processors, neighbours share a processor, and the
/// numbers of ranks on two processors differ by at most one. Otherwise each rank has processors of its own.
pub fn place(rank: usize, ranks: usize, processors: &[usize]) -> &[usize] {
    let begin = |rank: usize| rank * processors.len() / ranks;
    &processors[begin(rank)..begin(rank + 1).max(begin(rank) + 1)]
}

impl Affinity {
    /// Creates the place of the calling thread, which is on any of `processors`.
    pub fn new(processors: Box<[usize]>) -> Affinity {
        Affinity {
            processors,
            thread: std::thread::current().id(),
            began: Instant::now(),
            until: AtomicU64::new(0),
            pause: AtomicU64::new(LEAST.as_nanos() as u64),
            settled: AtomicU32::new(0),
            went: AtomicU64::new(0),
        }
    }

    /// Returns the number of times that the thread has moved to its processor so far.
    pub fn went(&self) -> u64 {
        self.went.load(Ordering::Relaxed)
    }

    /// Moves to the place if a check is due and the thread is on another processor.
    #[inline]
    pub fn keep(&self, now: Instant) {
        let now = (now - self.began).as_nanos() as u64;
        if now >= self.until.load(Ordering::Relaxed) {
            self.look(now, is_on, go);
        }
    }

    #[cold]
    fn look(&self, now: u64, is_on: impl Fn(&[usize]) -> bool, go: impl Fn(&[usize]) -> bool) {
        let pause = self.pause.load(Ordering::Relaxed);
        self.until.store(now + pause, Ordering::Relaxed);
        if std::thread::current().id() != self.thread {
            return;
        }
        if is_on(&self.processors) {
            let settled = self.settled.load(Ordering::Relaxed) + 1;
            self.settled.store(settled, Ordering::Relaxed);
            if settled >= SETTLED {
                self.pause.store(LEAST.as_nanos() as u64, Ordering::Relaxed);
            }
            return;
        }
        self.settled.store(0, Ordering::Relaxed);
        let most = MOST.as_nanos() as u64;
        // If the thread may not run on the processors, it does not try again.
        let next = if go(&self.processors) { (2 * pause).min(most) } else { u64::MAX / 4 };
        self.pause.store(next, Ordering::Relaxed);
        self.until.store(now + next, Ordering::Relaxed);
        self.went.store(self.went.load(Ordering::Relaxed) + 1, Ordering::Relaxed);
    }
}

fn is_on(processors: &[usize]) -> bool {
    // SAFETY: the call takes no arguments and touches no memory of the caller.
    let processor = unsafe { libc::sched_getcpu() };
    usize::try_from(processor).is_ok_and(|processor| processors.contains(&processor))
}

/// Moves the calling thread to one of `processors`. The system may move it again afterwards. Returns false if the thread may not run on
/// any of `processors`.
fn go(processors: &[usize]) -> bool {
    // SAFETY: `cpu_set_t` is an array of bits, for which all zeros are valid.
    let mut some: libc::cpu_set_t = unsafe { std::mem::zeroed() };
    let (mut all, size) = (some, size_of_val(&some));
    // SAFETY: only processors below CPU_SETSIZE get to CPU_SET and CPU_ISSET, as both require. Both sets have `size` bytes and
    // outlive the calls.
    unsafe {
        if libc::sched_getaffinity(0, size, &mut all) != 0 {
            return false;
        }
        let exist = |processor: &&usize| **processor < libc::CPU_SETSIZE as usize;
        for &processor in processors.iter().filter(exist) {
            if libc::CPU_ISSET(processor, &all) {
                libc::CPU_SET(processor, &mut some);
            }
        }
        // The system refuses an empty set.
        libc::sched_setaffinity(0, size, &some) == 0 && libc::sched_setaffinity(0, size, &all) == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    #[test]
    fn places_are_even_and_neighbours_share_them() {
        let processors = [3, 5, 8];
        for ranks in 1..100 {
            let places: Vec<_> = (0..ranks).flat_map(|r| place(r, ranks, &processors)).collect();
            assert!(places.is_sorted());
            let each = processors.map(|p| places.iter().filter(|&&&place| place == p).count());
            let (least, most) = (each.iter().min().unwrap(), each.iter().max().unwrap());
            assert!(most - least <= 1, "{ranks} ranks: {each:?}");
        }
        assert_eq!([0, 1, 2].map(|rank| place(rank, 3, &[0, 1])), [[0], [0], [1]]);
    }

    #[test]
    fn ranks_that_fit_have_processors_of_their_own() {
        let processors: Vec<usize> = (10..23).collect();
        for ranks in 1..=processors.len() {
            let places: Vec<_> = (0..ranks).map(|r| place(r, ranks, &processors)).collect();
            assert_eq!(places.concat(), processors);
            let (least, most) = (processors.len() / ranks, processors.len().div_ceil(ranks));
            assert!(places.iter().all(|place| (least..=most).contains(&place.len())));
        }
    }

    /// Returns the times, in ms, at which a rank moves during 100 seconds. `at_home` returns true at the times when the rank is
    /// on its processor.
    fn went(at_home: impl Fn(u64) -> bool) -> Vec<u64> {
        let home = Affinity::new([0].into());
        let went = Cell::new(Vec::new());
        for ms in 0..100_000 {
            let now = ms * 1_000_000;
            if now >= home.until.load(Ordering::Relaxed) {
                let mut times = went.take();
                let before = home.went();
                home.look(now, |_| at_home(ms), |_| true);
                times.extend((home.went() > before).then_some(ms));
                went.set(times);
            }
        }
        went.take()
    }

    #[test]
    #[cfg_attr(miri, ignore = "long, and nothing unsafe")]
    fn who_is_always_taken_away_goes_ever_more_seldom() {
        let times = went(|_| false);
        assert_eq!(times[..5], [0, 4, 12, 28, 60]);
        assert!(times.len() < 70, "{}", times.len());
        assert_eq!(times[times.len() - 1] - times[times.len() - 2], 2000);
    }

    #[test]
    #[cfg_attr(miri, ignore = "long, and nothing unsafe")]
    fn who_stays_may_go_soon_the_next_time() {
        assert_eq!(went(|_| true), []);
        // Away for a moment every 50 seconds.
        assert_eq!(went(|ms| ms % 50_000 > 1), [0, 50_000]);
    }

    #[test]
    fn another_thread_stays_where_it_is() {
        let home = Affinity::new([0].into());
        std::thread::scope(|scope| {
            scope.spawn(|| home.look(1, |_| false, |_| panic!("another thread's place")));
        });
        assert_eq!(home.went(), 0);
    }

    #[test]
    #[cfg_attr(miri, ignore = "no processors")]
    fn a_thread_goes_and_may_be_moved_again() {
        // SAFETY: `sched_getcpu` takes no arguments; `cpu_set_t` is an array of bits, for which all zeros are valid.
        let (processor, mut before, mut after): (_, libc::cpu_set_t, libc::cpu_set_t) =
            unsafe { (libc::sched_getcpu(), std::mem::zeroed(), std::mem::zeroed()) };
        // SAFETY: `before` has the given size and outlives the call, as sched_getaffinity(2) requires.
        unsafe { libc::sched_getaffinity(0, size_of_val(&before), &mut before) };
        assert!(go(&[processor as usize]));
        // SAFETY: `after` has the given size and outlives the call, as sched_getaffinity(2) requires.
        unsafe { libc::sched_getaffinity(0, size_of_val(&after), &mut after) };
        // SAFETY: both sets were filled in above.
        assert!(unsafe { libc::CPU_EQUAL(&before, &after) });
        assert!(!go(&[libc::CPU_SETSIZE as usize]));
        assert!(go(&[libc::CPU_SETSIZE as usize, processor as usize]));
    }
}
