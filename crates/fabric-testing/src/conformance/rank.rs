//! A rank of a world under test: its fabric, and a table on which the ranks agree without the fabric.

use super::Maker;
use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use weft_fabric::{
    ArrivedMessage, Completion, Counter, Fabric, Head, PostOutcome, RemoteAddr, Sge, boxed,
};

/// Time after which a wait counts as one that never ends. It is far beyond what a loaded machine needs.
const FOREVER: Duration = Duration::from_secs(120);

/// Table on which the ranks agree without the fabric.
#[derive(Default)]
struct Table {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    arrived: usize,
    rounds: u64,
    gathering: Vec<[u64; 2]>,
    gathered: Arc<Vec<[u64; 2]>>,
    failed: bool,
}

impl Table {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// Runs `check` on every rank of a world. A panic of one rank ends the other ranks.
pub fn run<F: Fabric>(makers: Vec<Maker<F>>, check: impl Fn(&ConformanceRank<F>) + Sync) {
    let table = Table::default();
    let size = makers.len();
    std::thread::scope(|scope| {
        let handles: Vec<_> = makers
            .into_iter()
            .map(|maker| {
                let (table, check) = (&table, &check);
                scope.spawn(move || {
                    let guard = Guard(table);
                    let rank = ConformanceRank { fabric: maker(), table, size };
                    check(&rank);
                    rank.barrier();
                    drop(guard);
                })
            })
            .collect();
        report(handles.into_iter().map(|handle| handle.join()).collect());
    });
}

/// Runs a check on every rank of a world. The check sees a boxed fabric, so it is compiled once for all types of fabrics.
pub fn run_check<F: Fabric>(makers: Vec<Maker<F>>, check: fn(&ConformanceRank)) {
    let hidden = |make: Maker<F>| Box::new(move || boxed(make())) as Maker<Box<dyn Fabric>>;
    run_hidden(makers.into_iter().map(hidden).collect(), check);
}

/// Runs a check as [`run`] does. This function is not generic, so it is compiled with this crate and not in each test program.
fn run_hidden(makers: Vec<Maker<Box<dyn Fabric>>>, check: fn(&ConformanceRank)) {
    run(makers, check);
}

/// Panics if a rank has failed, with the message of that rank. Ranks that gave up because another rank had failed count only if
/// there is no other message.
fn report(results: Vec<std::thread::Result<()>>) {
    let mut payloads: Vec<_> = results.into_iter().filter_map(Result::err).collect();
    // A panic carries its message as a `String` or as a `&str`.
    let gave_up = |payload: &Box<dyn Any + Send>| {
        let text = payload.downcast_ref::<String>().map(String::as_str);
        text.or(payload.downcast_ref().copied()) == Some(GAVE_UP)
    };
    let first = payloads.iter().position(|payload| !gave_up(payload)).unwrap_or(0);
    if !payloads.is_empty() {
        std::panic::resume_unwind(payloads.swap_remove(first));
    }
}

const GAVE_UP: &str = "another rank failed";

struct Guard<'t>(&'t Table);

impl Drop for Guard<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.lock().failed = true;
        }
    }
}

/// A rank of the world, in a thread of its own.
pub struct ConformanceRank<'t, F = Box<dyn Fabric>> {
    /// The fabric under test. It is dropped in the thread that made it, after all ranks have done their checks.
    pub fabric: F,
    table: &'t Table,
    size: usize,
}

impl<F: Fabric> ConformanceRank<'_, F> {
    /// Returns the number of the rank, as the fabric reports it.
    pub fn rank(&self) -> usize {
        self.fabric.rank()
    }

    /// Returns the number of ranks: as many as there were makers, whatever the fabric reports.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Makes progress until `ready` returns true.
    pub fn until(&self, mut ready: impl FnMut() -> bool) {
        let start = Instant::now();
        let mut turns = 0u32;
        while !ready() {
            if let Some(fault) = self.fabric.fault() {
                panic!("the fabric reports: {fault}");
            }
            if !self.fabric.progress() {
                std::thread::yield_now();
            }
            turns += 1;
            if turns.is_multiple_of(1000) {
                assert!(!self.table.lock().failed, "{GAVE_UP}");
                assert!(start.elapsed() < FOREVER, "a wait that does not end");
            }
        }
    }

    /// Waits until `counter >= value`.
    pub fn reach(&self, counter: Counter, value: u64) {
        self.until(|| self.fabric.counters().value(counter) >= value);
    }

    /// Puts two numbers of this rank on the table. Returns the numbers of all ranks.
    pub fn gather(&self, mine: [u64; 2]) -> Arc<Vec<[u64; 2]>> {
        let round = {
            let mut state = self.table.lock();
            state.gathering.resize(self.size, [0; 2]);
            state.gathering[self.rank()] = mine;
            state.arrived += 1;
            let round = state.rounds;
            if state.arrived == self.size {
                state.gathered = Arc::new(std::mem::take(&mut state.gathering));
                state.arrived = 0;
                state.rounds += 1;
            }
            round
        };
        self.until(|| self.table.lock().rounds > round);
        self.table.lock().gathered.clone()
    }

    /// Publishes an address of this rank. Returns the addresses of all ranks.
    pub fn gather_addresses(&self, mine: RemoteAddr) -> Vec<RemoteAddr> {
        let [a, b, c, d] = mine.words();
        let (first, second) = (self.gather([a, b]), self.gather([c, d]));
        let both = first.iter().zip(&*second);
        both.map(|(&[a, b], &[c, d])| RemoteAddr::from_words([a, b, c, d])).collect()
    }

    /// Waits for all ranks, without the fabric, while making progress.
    pub fn barrier(&self) {
        self.gather([0; 2]);
    }

    /// Waits for the next message and returns it.
    pub fn take(&self, from: Option<usize>) -> ArrivedMessage {
        let mut message = None;
        self.until(|| {
            message = self.fabric.receive(from);
            message.is_some()
        });
        message.expect("waited for")
    }

    /// Takes a message from `from`. Returns its sender, head and payload.
    pub fn take_bytes(&self, from: Option<usize>) -> (usize, Head, Vec<u8>) {
        let message = self.take(from);
        let mut bytes = vec![0; message.payload.len()];
        message.payload.read(&mut bytes);
        let (peer, head) = (message.peer, message.head);
        self.fabric.release(message);
        (peer, head, bytes)
    }

    /// Sends and waits until the payload has been taken.
    pub fn give(&self, peer: usize, head: Head, payload: &mut [u8]) {
        let (done, before) = self.completion();
        if self.fabric.send(peer, head, sge(payload), done) == PostOutcome::Later {
            self.finish(done, before + 1);
        }
        self.forget(done);
    }

    /// Returns a counter for one operation, and its present value.
    pub fn completion(&self) -> (Completion, u64) {
        let counter = self.fabric.counters().allocate();
        (Some(counter), self.fabric.counters().value(counter))
    }

    /// Waits until the counter of [`completion`](Self::completion) has come to `value`. The bytes of its operations belong to the
    /// caller again.
    pub fn finish(&self, done: Completion, value: u64) {
        self.reach(done.expect("a counter"), value);
    }

    /// Gives the counter of [`completion`](Self::completion) back. No operation that names it may be under way.
    pub fn forget(&self, done: Completion) {
        self.fabric.counters().free(done.expect("a counter"));
    }

    /// Posts an operation with a counter of its own and waits for it.
    pub fn complete(&self, post: impl FnOnce(Completion) -> Result<(), weft_fabric::Fault>) {
        let (done, before) = self.completion();
        post(done).expect("the operation is posted");
        self.finish(done, before + 1);
        self.forget(done);
    }
}

/// Names `bytes`, which the caller keeps until the operation has completed.
pub fn sge(bytes: &mut [u8]) -> Sge {
    // SAFETY: `Sge::new` needs memory that stays, unused by others, until the operation is complete. Every user in this crate waits
    // for that.
    unsafe { Sge::new(bytes.as_mut_ptr(), bytes.len()) }
}

/// Returns bytes that depend on `number`, on their place and on `len`.
pub fn pattern(number: u64, len: usize) -> Vec<u8> {
    let mut rng = fastrand::Rng::with_seed(number ^ (len as u64) << 40);
    let mut bytes = vec![0; len];
    rng.fill(&mut bytes);
    bytes
}
