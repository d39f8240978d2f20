//! The measurements of two threads: the asker asks, the partner acts and answers.
//!
//! ```text
//!   asker      asked = (number, action) ───────────▶ partner   sees it, carries out the action
//!              sees it ◀───────────────────────────            done = the same word
//! ```
//! Contract: only the asker writes `asked`, and only the partner writes `done`, each with release; the other thread reads the word
//! with acquire. So each thread sees everything that the other thread did before. The partner accesses shared memory only between
//! `asked` and `done`. Neither thread waits beyond the end of the measurement. The asker reports the end of the measurement to the
//! partner.

use super::one_thread::{block, cma_reads};
use super::{Outcome, bind, sampled, timed, within};
use crate::interleaved;
use crate::lines::ask_for_lines;
use std::hint::black_box;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use std::sync::{Mutex, PoisonError};
use std::thread::{self, yield_now};
use std::time::{Duration, Instant};
use weft_fabric::Sge;

/// Name of the second thread.
const NAME: &str = "weft-partner";

/// Number of lines that are written again, and number of bytes that are fetched. Both the lines and the bytes fit in a processor's
/// private caches.
const LINES: usize = 256;
const BYTES: usize = 64 << 10;

/// Number of round trips in a sample.
const ROUNDS: usize = 32;

/// Minimum result of a measurement, in nanoseconds. It replaces results that do not exceed the noise, because no cost is zero.
const LEAST: f64 = 0.01;

/// Number of polls between two readings of the clock.
const LOOKS: u32 = 128;

/// Action that the asker requests of the partner before it answers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ask {
    Nothing = 0,
    ReadLines = 1,
    WriteBytes = 2,
    /// Reads the lines, and then takes them for exclusive use by the partner's processor.
    ReturnLines = 3,
}

const KINDS: u64 = 4;

/// A value with a pair of cache lines to itself.
#[repr(align(128))]
struct Alone<T>(T);

struct Meeting {
    asked: Alone<AtomicU64>,
    done: Alone<AtomicU64>,
    over: AtomicBool,
    /// `ready` is true once the partner is bound to its processor. `refused` is true if the partner cannot be bound.
    ready: AtomicBool,
    refused: AtomicBool,
    /// True if both threads are on the same processor, so that they must yield.
    gently: bool,
    end: Instant,
    lines: Box<[Line]>,
    /// Nanoseconds in which the partner took the lines for its own processor.
    taken: AtomicU64,
    bytes: Mutex<Vec<u8>>,
}

#[repr(align(64))]
struct Line(AtomicU64);

/// Error of a partner that does not come, or does not answer in time.
struct Late;

/// Processors of the two threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PairProcessors {
    Two,
    /// Both threads are on the same processor, so that they must yield.
    Same,
}

impl Meeting {
    fn new(processors: PairProcessors, end: Instant) -> Option<Meeting> {
        let gently = processors == PairProcessors::Same;
        let bytes = block(if gently { 0 } else { BYTES }, 3)?;
        let mut lines = Vec::new();
        let count = if gently { 0 } else { LINES };
        lines.try_reserve_exact(count).ok()?;
        lines.resize_with(count, || Line(AtomicU64::new(0)));
        Some(Meeting {
            asked: Alone(AtomicU64::new(0)),
            done: Alone(AtomicU64::new(0)),
            over: AtomicBool::new(false),
            ready: AtomicBool::new(false),
            refused: AtomicBool::new(false),
            gently,
            end,
            lines: lines.into(),
            taken: AtomicU64::new(0),
            bytes: Mutex::new(bytes),
        })
    }

    /// Polls `seen` until it returns a value. Returns `None` if the measurement has ended, or if the value came too late.
    fn look<T>(&self, mut seen: impl FnMut() -> Option<T>) -> Option<T> {
        let mut looks = 0u32;
        loop {
            if let Some(value) = seen() {
                return Some(value);
            }
            looks = looks.wrapping_add(1);
            let late = || self.over.load(Ordering::Relaxed) || Instant::now() >= self.end;
            if self.gently {
                yield_now();
            }
            if (looks.is_multiple_of(LOOKS) || self.gently) && late() {
                return None;
            }
        }
    }

    /// Runs the partner.
    fn serve(&self) {
        let mut last = 0;
        let next = |last| {
            let asked = self.asked.0.load(Ordering::Acquire);
            (asked != last).then_some(asked)
        };
        while let Some(asked) = self.look(|| next(last)) {
            last = asked;
            let returns = asked % KINDS == Ask::ReturnLines as u64;
            if asked % KINDS == Ask::ReadLines as u64 || returns {
                for line in &self.lines {
                    black_box(line.0.load(Ordering::Relaxed));
                }
            }
            if returns {
                // Takes the lines by writing them, as [`CacheLines::take_lines`](crate::CacheLines::take_lines) does.
                let taken = timed(|| self.write_lines());
                self.taken.store(taken as u64, Ordering::Relaxed);
            }
            if asked % KINDS == Ask::WriteBytes as u64 {
                let mut bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
                black_box(&mut bytes[..]).fill(asked as u8);
            }
            self.done.0.store(asked, Ordering::Release);
        }
    }

    /// Asks the partner, and waits for its answer.
    fn ask(&self, what: Ask) -> Result<(), Late> {
        let number = self.asked.0.load(Ordering::Relaxed) / KINDS + 1;
        let asked = number * KINDS + what as u64;
        self.asked.0.store(asked, Ordering::Release);
        self.look(|| (self.done.0.load(Ordering::Acquire) == asked).then_some(())).ok_or(Late)
    }

    /// Takes samples of work that asks the partner. If the partner does not answer, reports that there was no time.
    fn sampled(
        &self,
        most: usize,
        micros: u64,
        mut sample: impl FnMut() -> Result<f64, Late>,
    ) -> Outcome {
        // An infinite sample never counts as the shortest.
        let mut sample = || Some(sample().unwrap_or(f64::INFINITY));
        match sampled(most, within(self.end, micros), &mut sample) {
            Outcome::Had(value) if !value.is_finite() => Outcome::Late,
            outcome => outcome,
        }
    }

    /// Measures the nanoseconds of a transfer in one direction, from `rounds` round trips.
    fn one_way(&self, rounds: usize) -> Result<f64, Late> {
        let mut late = Ok(());
        let time = timed(|| late = (0..rounds).try_for_each(|_| self.ask(Ask::Nothing)));
        late.map(|()| time / (2 * rounds) as f64)
    }

    fn write_lines(&self) {
        for line in &self.lines {
            line.0.store(1, Ordering::Relaxed);
        }
        // Stores leave the processor one after the other; after the fence, the last store has left it.
        fence(Ordering::SeqCst);
    }

    /// Measures the nanoseconds to write a line that the partner has read, in addition to the time of writing a line in this
    /// processor's own cache. `first` runs before the writes.
    fn rewrite(&self, ask: Ask, first: impl Fn(&Meeting)) -> Result<f64, Late> {
        self.write_lines();
        self.ask(ask)?;
        let shared = timed(|| {
            first(self);
            self.write_lines();
        });
        let own = timed(|| self.write_lines());
        let taken = match ask {
            // The partner's time includes the time of writing its own lines, which is subtracted.
            Ask::ReturnLines => self.taken.load(Ordering::Relaxed) as f64 - own,
            _ => 0.0,
        };
        Ok(((shared - own + taken) / LINES as f64).max(LEAST))
    }

    /// Requests all lines together.
    fn want_lines(&self) {
        let first = self.lines.as_ptr().cast_mut().cast();
        // SAFETY: the lines outlive the `Sge`, and the requests are hints, which change nothing in the lines.
        ask_for_lines(unsafe { Sge::new(first, size_of_val(&*self.lines)) });
    }

    /// Measures the nanoseconds per byte when the system call reads data that the partner has written. The result is the time of
    /// the first read minus the time of a second read from the own caches, plus `cached`. The cost of the pages is in both times
    /// and cancels out.
    fn cma_fetch(&self, to: &mut [u8], cached: f64) -> Outcome {
        if !cma_reads(to, &self.bytes.lock().unwrap_or_else(PoisonError::into_inner)) {
            return Outcome::Absent;
        }
        self.sampled(16, 400, || {
            self.ask(Ask::WriteBytes)?;
            let bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
            let [first, again] = [(); 2].map(|()| timed(|| _ = cma_reads(to, &bytes)));
            Ok(((first - again) / BYTES as f64).max(0.0) + cached)
        })
    }

    /// Measures the nanoseconds per byte when `copy` reads data that the partner has written.
    fn fetch(&self, to: &mut [u8], copy: impl Fn(&mut [u8], &[u8])) -> Result<f64, Late> {
        self.ask(Ask::WriteBytes)?;
        let bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        Ok(timed(|| copy(black_box(to), black_box(&bytes))) / BYTES as f64)
    }
}

/// Copies from many pages in turn.
fn copy_pages(to: &mut [u8], from: &[u8]) {
    for (to, from) in to.chunks_mut(interleaved::MOST).zip(from.chunks(interleaved::MOST)) {
        // SAFETY: both slices outlive the `Sge`s, have the given lengths, and only `to` is written, which is borrowed
        // mutably.
        let (to, from) = unsafe {
            (Sge::new(to.as_mut_ptr(), to.len()), Sge::new(from.as_ptr().cast_mut(), from.len()))
        };
        interleaved::copy_interleaved(to, from);
    }
}

/// Guard that ends a meeting when its scope is left for any reason.
struct Over<'a>(&'a Meeting);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.over.store(true, Ordering::Relaxed);
    }
}

/// Runs `work` while a second thread is the partner on `processor`. Returns `None` if there is no such thread or processor.
fn with_partner<T>(
    meeting: &Meeting,
    processor: usize,
    work: impl FnOnce() -> Option<T>,
) -> Option<T> {
    let had = thread::scope(|scope| {
        let _over = Over(meeting);
        let partner = thread::Builder::new().name(NAME.to_owned()).stack_size(64 << 10);
        let serve = move || {
            if bind(processor) {
                meeting.ready.store(true, Ordering::Relaxed);
                meeting.serve();
            } else {
                meeting.refused.store(true, Ordering::Relaxed);
                meeting.over.store(true, Ordering::Relaxed);
            }
        };
        partner.spawn_scoped(scope, serve).ok()?;
        // The partner begins on this thread's processor, so this thread sleeps until the partner has moved to its own processor.
        let came = || meeting.ready.load(Ordering::Relaxed);
        while !came() && !meeting.over.load(Ordering::Relaxed) && Instant::now() < meeting.end {
            thread::sleep(Duration::from_micros(20));
        }
        work()
    });
    if meeting.refused.load(Ordering::Relaxed) { None } else { had }
}

/// Names of the values that are measured between two processors.
pub const NAMES: [&str; 7] =
    ["line", "rewrite", "rewrite_asked", "rewrite_returned", "fetch", "fetch_pages", "cma_fetch"];

/// Names of the values that are measured at each level.
pub const LEVEL_NAMES: [&str; 2] = ["line", "fetch"];

/// Measures `N` values between processors `one` and `other`, within at most `us` microseconds.
fn between<const N: usize>(
    [one, other]: [usize; 2],
    end: Instant,
    us: u64,
    values: impl FnOnce(&Meeting, &mut [u8]) -> [Outcome; N],
) -> [Outcome; N] {
    let absent = [const { Outcome::Absent }; N];
    let end = within(end, us);
    let Some((meeting, mut to)) = Meeting::new(PairProcessors::Two, end).zip(block(BYTES, 4))
    else {
        return absent;
    };
    if !bind(one) {
        return absent;
    }
    let had = with_partner(&meeting, other, || {
        // After this answer it is certain that the partner is there and that both threads are awake.
        let _ = meeting.ask(Ask::WriteBytes);
        Some(values(&meeting, &mut to))
    });
    had.unwrap_or(absent)
}

/// Measures the values of [`LEVEL_NAMES`] between processors `one` and `other`.
pub fn measure_level(one: usize, other: usize, end: Instant) -> [Outcome; LEVEL_NAMES.len()] {
    between([one, other], end, 950, |meeting, to| {
        [
            meeting.sampled(16, 400, || meeting.one_way(ROUNDS)),
            meeting.sampled(8, 400, || meeting.fetch(to, <[u8]>::copy_from_slice)),
        ]
    })
}

/// Measures the values of [`NAMES`] between processors `one` and `other`. `cached`: nanoseconds per byte of a copy in the own
/// caches.
pub fn measure(one: usize, other: usize, cached: f64, end: Instant) -> [Outcome; NAMES.len()] {
    between([one, other], end, 2900, |meeting, to| {
        [
            meeting.sampled(24, 600, || meeting.one_way(ROUNDS)),
            meeting.sampled(16, 400, || meeting.rewrite(Ask::ReadLines, |_| ())),
            meeting.sampled(16, 400, || meeting.rewrite(Ask::ReadLines, Meeting::want_lines)),
            meeting.sampled(16, 400, || meeting.rewrite(Ask::ReturnLines, |_| ())),
            meeting.sampled(16, 400, || meeting.fetch(to, <[u8]>::copy_from_slice)),
            meeting.sampled(16, 400, || meeting.fetch(to, copy_pages)),
            meeting.cma_fetch(to, cached),
        ]
    })
}

/// Measures the switch from one thread to another on the same processor, where both threads only yield. A switch between processes
/// takes a little longer, because each process has its own page tables.
pub fn switch(processor: usize, end: Instant) -> Outcome {
    let end = end.min(Instant::now() + Duration::from_millis(1));
    let Some(meeting) = Meeting::new(PairProcessors::Same, end) else { return Outcome::Absent };
    if !bind(processor) {
        return Outcome::Absent;
    }
    let had = with_partner(&meeting, processor, || {
        let _ = meeting.ask(Ask::Nothing);
        Some(meeting.sampled(12, 700, || meeting.one_way(8)))
    });
    had.unwrap_or(Outcome::Absent)
}
