//! Waits of a call. A wait releases the lock. Before it sleeps, it reports the operations for which it waits.

use crate::arguments::comm_label;
use crate::constants::MPI_THREAD_MULTIPLE;
use crate::lanes::{self, LaneNap};
use crate::lock;
use crate::state::state;
use std::cell::Cell;
use weft_bootstrap::Pending;
use weft_bootstrap::report::WaitProgress;
use weft_process::{WaitHooks, WaitRecord};

/// Maximum number of operations of an engine in the hang report.
const PENDING: usize = 100;

/// The wait of a call.
pub struct WaitingCall {
    /// MPI's name of the call.
    pub name: &'static str,
    /// Time at which the wait first went to sleep, if it has slept.
    since: Cell<Option<u64>>,
    /// True if the wait is counted among the waits of several threads.
    counted: Cell<bool>,
    /// Number of rounds of the wait, while several threads may call.
    rounds: Cell<u32>,
    /// Lanes of which the thread counts as a sleeper.
    nap: LaneNap,
}

impl WaitingCall {
    /// Creates a wait that has not begun.
    pub fn new(name: &'static str) -> WaitingCall {
        WaitingCall {
            name,
            since: Cell::new(None),
            counted: Cell::new(false),
            rounds: Cell::new(0),
            nap: LaneNap::default(),
        }
    }

    /// Returns true if the wait has gone to sleep.
    pub fn has_slept(&self) -> bool {
        self.since.get().is_some()
    }
}

impl WaitHooks for WaitingCall {
    fn unlocked(&self, f: &mut dyn FnMut()) {
        lock::let_others(|| {
            f();
            lanes::try_sometimes(&self.rounds);
        })
    }

    #[inline]
    fn undisturbed(&self) -> bool {
        lock::undisturbed()
    }

    #[inline]
    fn before_wait(&self) {
        lock::stand_down();
        self.counted.set(lock::begin_wait());
    }

    fn before_nap(&self) -> bool {
        self.nap.begin()
    }

    fn after_nap(&self) {
        self.nap.end();
    }

    fn before_sleep(&self, record: WaitRecord) {
        publish(self, record);
    }

    fn after_wait(&self) {
        if self.counted.get() {
            lock::end_wait();
        }
        if self.has_slept()
            && let Some(report) = &*state().report.borrow()
        {
            report.clear();
        }
    }
}

/// Publishes the operations under way, for the hang report, because `call` is about to sleep. The caller holds the main lock.
pub fn publish(call: &WaitingCall, record: WaitRecord) {
    let WaitRecord { moves, has_deadline } = record;
    if let Some(report) = &*state().report.borrow() {
        let since = call.since.get().unwrap_or_else(weft_bootstrap::clock_millis);
        call.since.set(Some(since));
        let threads = state().thread_level.get() == MPI_THREAD_MULTIPLE;
        let progress = WaitProgress { moves, has_deadline, threads, loop_reports: 0 };
        report.publish(&pending(call.name, since), progress);
    }
}

/// Lists descriptions of all operations under way, for the hang report.
pub fn pending(call: &str, since_millis: u64) -> Vec<Pending> {
    let state = state();
    let Some(engine) = state.engine.get() else { return Vec::new() };
    let comms = state.all_comms();
    let label = |context| {
        let owner = comms.iter().find(|comm| comm.owns(context));
        owner.map_or_else(|| "?".to_owned(), |comm| comm_label(comm))
    };
    let mut entries: Vec<Pending> = engine
        .endpoint()
        .pending(PENDING)
        .into_iter()
        .chain(lanes::pending(PENDING))
        .map(|p| Pending {
            operation: format!("{call}: {}", if p.receive { "receive" } else { "send" }),
            peer: p.peer,
            tag: p.tag,
            bytes: p.bytes,
            communicator: label(p.context),
            since_millis,
        })
        .collect();
    if entries.is_empty() {
        entries.push(Pending {
            operation: call.to_owned(),
            peer: None,
            tag: None,
            bytes: 0,
            communicator: String::new(),
            since_millis,
        });
    }
    entries
}
