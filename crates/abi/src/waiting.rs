//! Waits of a call: a wait releases the lock, and before it sleeps it reports the operations for which it waits.

use crate::arguments::comm_label;
use crate::lock;
use crate::state::state;
use std::cell::Cell;
use weft_bootstrap::Pending;
use weft_process::WaitHooks;

/// The wait of a call.
pub struct WaitingCall {
    /// MPI's name of the call.
    pub name: &'static str,
    /// Time at which the wait first went to sleep, if it has slept.
    since: Cell<Option<u64>>,
    /// True if the wait is counted among the waits of several threads.
    counted: Cell<bool>,
}

impl WaitingCall {
    /// Creates a wait that has not begun.
    pub fn new(name: &'static str) -> WaitingCall {
        WaitingCall { name, since: Cell::new(None), counted: Cell::new(false) }
    }
}

impl WaitHooks for WaitingCall {
    fn unlocked(&self, f: &mut dyn FnMut()) {
        lock::let_others(f)
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

    fn before_sleep(&self) {
        if let Some(report) = &*state().report.borrow() {
            let since = self.since.get().unwrap_or_else(weft_bootstrap::clock_millis);
            self.since.set(Some(since));
            report.publish(&pending(self.name, since));
        }
    }

    fn after_wait(&self) {
        if self.counted.get() {
            lock::end_wait();
        }
        if self.since.get().is_some()
            && let Some(report) = &*state().report.borrow()
        {
            report.clear();
        }
    }
}

/// Lists descriptions of all operations under way, for the hang report.
fn pending(call: &str, since_millis: u64) -> Vec<Pending> {
    let state = state();
    let Some(engine) = state.engine.get() else { return Vec::new() };
    let comms = state.comms.borrow();
    let others = comms.handles();
    let label = |context| {
        let fixed = [state.world.get(), state.comm_self.get()];
        let mut all =
            fixed.into_iter().flatten().chain(others.iter().filter_map(|&h| comms.get(h)));
        all.find(|c| c.owns(context)).map_or_else(|| "?".to_owned(), |c| comm_label(c))
    };
    let mut entries: Vec<Pending> = engine
        .endpoint()
        .pending(100)
        .into_iter()
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
