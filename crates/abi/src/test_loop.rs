//! Long loops of tests and probes without a result, for the hang report and for the watch for deadlocks. A loop publishes what it tests
//! as a wait does before it sleeps, and repeats this from time to time, so that a reader sees that the loop goes on.

use crate::chapter_state::ChapterState;
use crate::constants::MPI_THREAD_MULTIPLE;
use crate::state::state;
use crate::waiting::pending;
use std::cell::Cell;
use weft_bootstrap::report::WaitProgress;

/// Number of consecutive tests without a result after which a loop is reported.
const LONG: u32 = 1 << 12;

/// Number of tests between two looks at the clock.
const EACH: u32 = 16;

/// Time between two reports of a loop, in milliseconds.
const INTERVAL: u64 = 100;

/// Maximum processor time of a test in a loop that is reported, in nanoseconds. A program that takes more computes between its tests.
const MOST_NANOS: u64 = 50_000;

/// The present loop.
static LOOP: ChapterState<Cell<TestLoop>> = ChapterState::new(Cell::new(TestLoop::NONE));

/// A loop that is reported. Times are on the clock of the reports.
#[derive(Clone, Copy)]
struct TestLoop {
    /// Time of the first report.
    since_millis: u64,
    /// Time of the next report.
    next_millis: u64,
    /// Number of reports so far.
    reports: u32,
    /// Number of tests, and processor time of the thread in nanoseconds, at the last report.
    row: u32,
    busy_nanos: u64,
}

impl TestLoop {
    const NONE: TestLoop =
        TestLoop { since_millis: 0, next_millis: 0, reports: 0, row: 0, busy_nanos: 0 };

    /// Notes a look at the loop after `row` tests.
    fn at(self, row: u32) -> TestLoop {
        TestLoop { row, busy_nanos: weft_bootstrap::thread_nanos(), ..self }
    }
}

/// Counts a test without a result. `row` is the number of such tests since the last result. Reports the loop from time to time if it is
/// long, and if its thread does little else.
#[inline]
pub fn count(row: u32) {
    if row >= LONG && row.is_multiple_of(EACH) {
        report(row);
    }
}

/// Ends the report of a loop of `row` tests, if there is one.
#[inline]
pub fn end(row: u32) {
    if row >= LONG
        && let Some(report) = &*state().report.borrow()
    {
        report.clear();
    }
}

#[cold]
fn report(row: u32) {
    let state = state();
    let (Some(report), Some(engine)) = (&*state.report.borrow(), state.engine.get()) else {
        return;
    };
    let now = weft_bootstrap::clock_millis();
    let mut test_loop = LOOP.get();
    if row == LONG {
        test_loop = TestLoop { since_millis: now, next_millis: now + INTERVAL, ..TestLoop::NONE };
        LOOP.set(test_loop.at(row));
    }
    if now < test_loop.next_millis {
        return;
    }
    let last = test_loop;
    test_loop = TestLoop { next_millis: now + INTERVAL, ..last }.at(row);
    let tests = u64::from(row.wrapping_sub(last.row));
    // If the last report was of another thread's test, the times may be in any order.
    let busy = test_loop.busy_nanos.checked_sub(last.busy_nanos);
    if busy.is_none_or(|busy| busy > tests * MOST_NANOS) {
        // The program computes between its tests, or several threads test.
        return LOOP.set(TestLoop { since_millis: now, ..test_loop });
    }
    test_loop.reports += 1;
    LOOP.set(test_loop);
    let progress = WaitProgress {
        moves: engine.moves(),
        has_deadline: engine.endpoint().deadline().is_some(),
        threads: state.thread_level.get() == MPI_THREAD_MULTIPLE,
        loop_reports: test_loop.reports,
    };
    report.publish(&pending("loop of tests or probes", test_loop.since_millis), progress);
}
