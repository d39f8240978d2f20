//! The threads that use lanes, and their turns on processors.
//!
//! If more threads communicate than there are processors, a thread that waits yields its processor at random
//! ([`RandomYields`]), and stays on the processors of its process. So threads of two processes that exchange messages run at the same time
//! on different processors, where a message needs no change of threads.

use crate::lock::me;
use parking_lot::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use weft_fabric::wait::{Affinity, ProcessorTurns, RandomYields};

/// Count of the threads that have used lanes and have not ended. It also decides the protocols of long messages.
pub static TURNS: ProcessorTurns = ProcessorTurns::new();

/// Processors of this process, if its threads should stay there. Each thread reads them once.
static PLACE: Mutex<Option<Box<[usize]>>> = Mutex::new(None);

/// Number of this process in the job, from which its threads make the seeds of their random numbers.
static PROCESS: AtomicU64 = AtomicU64::new(0);

/// Maximum length of a yield that is not ascribed to a foreign thread: less than the shortest time slices.
const FOREIGN_MOST: Duration = Duration::from_millis(1);

/// A thread that counts in [`TURNS`] as long as this value.
struct CountedThread {
    home: Option<Affinity>,
}

impl CountedThread {
    fn new() -> CountedThread {
        TURNS.begin_thread();
        CountedThread { home: PLACE.lock().clone().map(Affinity::new) }
    }
}

impl Drop for CountedThread {
    fn drop(&mut self) {
        TURNS.end_thread();
        // A later thread may have this thread's name. Without this, such a thread would enter lanes by the favour of this thread, and
        // would not be counted.
        super::give_up_favours();
    }
}

thread_local! {
    static COUNTED: CountedThread = CountedThread::new();
    static YIELDS: RandomYields = const { RandomYields::new() };
}

/// Counts the calling thread, if it is not counted. A thread that is about to end is not counted any more.
pub fn count_thread() {
    let _ = COUNTED.try_with(|_| ());
}

/// Sets the processors and the rank of this process, for threads that are not counted yet.
pub fn set_place(processors: Option<Box<[usize]>>, rank: usize) {
    *PLACE.lock() = processors;
    PROCESS.store(rank as u64, Ordering::Relaxed);
}

/// Returns true if more threads communicate than there are processors.
pub fn crowded() -> bool {
    TURNS.is_crowded()
}

/// Yields the processor in some of the rounds of a wait, if more threads communicate than there are processors. The peer's thread may
/// run at the same time on another processor, so its answer may come without a yield. If no answer comes, another thread of this process
/// needs the processor.
#[inline]
pub fn take_turns(round: u32) {
    if round.is_multiple_of(RandomYields::ROUNDS) && crowded() {
        yield_if_due();
    }
}

#[cold]
fn yield_if_due() {
    // Threads of two processes may have the same address, and in containers the same process number, but not the same rank.
    let seed = || {
        me() as u64
            ^ (PROCESS.load(Ordering::Relaxed) + 1) << 48
            ^ u64::from(std::process::id()) << 32
    };
    if !YIELDS.with(|yields| yields.is_due(seed)) {
        return;
    }
    let before = Instant::now();
    std::thread::yield_now();
    let after = Instant::now();
    // After a longer yield, the thread of another program probably had the processor, and the system has moved this thread for it. Then
    // this thread stays where the system has put it.
    if after - before <= FOREIGN_MOST {
        let _ = COUNTED.try_with(|thread| thread.home.as_ref().map(|home| home.keep(after)));
    }
}
