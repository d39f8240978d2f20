//! Scans of arrays of requests. In a long array, one scan serves several completions.
//!
//! ```text
//!   MPI_Waitany   looks through all, and remembers what else is over for its next calls on that array
//!   MPI_Testall   remembers one that was not over, and looks at that one first
//! ```
//! Remembered requests are checked again before they are used, so the memory may be out of date.

use super::{Arrays, Ended};
use crate::constants::*;
use crate::engine::Engine;
use crate::error::Error;
use crate::state::state;
use crate::types::Request;
use std::cell::RefCell;

/// Maximum number of requests in an array for which nothing is remembered.
const SHORT: usize = 64;

/// Results that a thread remembers of the array that it scanned last.
#[derive(Default)]
struct Memory {
    /// Address of the array.
    array: usize,
    /// Places and handles of requests that were over, in reverse order: the first one is at the end.
    over: Vec<(usize, Request)>,
    /// Place of a request that was not over.
    open: usize,
}

thread_local! {
    static MEMORY: RefCell<Memory> = RefCell::default();
}

/// State of a request at the moment of the scan.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Seen {
    /// Null, inactive, or a handle that names no request.
    Nothing,
    Open,
    Over,
}

impl Arrays {
    /// Calls `seen` with place and state of each request from `first` on, until `seen` returns true.
    fn look_from(&self, first: usize, mut seen: impl FnMut(usize, Seen) -> bool) {
        let state = state();
        let Some(engine) = state.engine.get() else { return };
        let (endpoint, requests) = (engine.endpoint(), state.requests.borrow());
        let mut looked = 0;
        let faulted = endpoint.fault().is_some();
        for i in first..self.len {
            looked += 1;
            let handle = self.request(i);
            let active = match handle {
                MPI_REQUEST_NULL => None,
                handle => requests.get(handle.0).and_then(|object| object.active.as_ref()),
            };
            let is = match active {
                None => Seen::Nothing,
                Some(active) if active.looks_over(endpoint, faulted) => Seen::Over,
                Some(_) => Seen::Open,
            };
            if seen(i, is) {
                break;
            }
        }
        state.looked.set(state.looked.get() + looked);
    }

    /// Progresses the engine until nothing moves, so that one scan of a long array finds all requests that have become
    /// complete. The number of rounds has a maximum, because other ranks may send without end.
    pub(super) fn gather(&self, engine: &Engine) {
        if self.len <= SHORT {
            return;
        }
        // One round of progress takes about this number of messages.
        for _ in 0..self.len.div_ceil(SHORT) {
            if !engine.progress() {
                return;
            }
        }
    }

    /// Ends the next of the requests that [`Arrays::any`] found over and remembered.
    pub(super) fn remembered(&self) -> Option<(usize, Ended)> {
        if self.len <= SHORT {
            return None;
        }
        loop {
            let (i, handle) = MEMORY.with_borrow_mut(|memory| match memory.array {
                array if array == self.address() => memory.over.pop(),
                _ => None,
            })?;
            let still = i < self.len && self.request(i) == handle && self.is_over(i);
            if still && let Some(ended) = self.poll(i) {
                return Some((i, ended));
            }
        }
    }

    fn address(&self) -> usize {
        self.requests.addr()
    }

    fn is_over(&self, i: usize) -> bool {
        let mut over = false;
        self.look_from(i, |_, is| {
            over = is == Seen::Over;
            true
        });
        over
    }

    /// Ends the first request that is over. Returns `Some(None)` if no request is active, `None` if none is over.
    pub(super) fn any(&self) -> Option<Option<(usize, Ended)>> {
        if self.len > SHORT {
            return self.any_of_many();
        }
        let (mut none, mut first) = (true, 0);
        loop {
            let mut over = None;
            self.look_from(first, |i, is| {
                none &= is == Seen::Nothing;
                over = (is == Seen::Over).then_some(i);
                over.is_some()
            });
            let Some(i) = over else { return none.then_some(None) };
            if let Some(ended) = self.poll(i) {
                return Some(Some((i, ended)));
            }
            first = i + 1;
        }
    }

    /// Does the same as [`Arrays::any`] in a long array, and remembers the other requests that are over.
    fn any_of_many(&self) -> Option<Option<(usize, Ended)>> {
        let (mut none, mut over) = (true, Vec::new());
        self.look_from(0, |i, is| {
            none &= is == Seen::Nothing;
            if is == Seen::Over {
                over.push((i, self.request(i)));
            }
            false
        });
        over.reverse();
        while let Some((i, _)) = over.pop() {
            if let Some(ended) = self.poll(i) {
                MEMORY.set(Memory { array: self.address(), over, open: 0 });
                return Some(Some((i, ended)));
            }
        }
        none.then_some(None)
    }

    /// Ends all requests that are over now. Returns place and outcome of each.
    pub(super) fn sweep(&self) -> Vec<(usize, Ended)> {
        let mut over = Vec::new();
        self.look_from(0, |i, is| {
            if is == Seen::Over {
                over.push(i);
            }
            false
        });
        over.into_iter().filter_map(|i| Some((i, self.poll(i)?))).collect()
    }

    /// Returns true if no request is active and incomplete. Errors: REQUEST if a handle that was looked at names no request.
    pub fn all_over(&self) -> Result<bool, Error> {
        let many = self.len > SHORT;
        let first = match many {
            true => MEMORY.with_borrow(|memory| match memory.array == self.address() {
                true => memory.open.min(self.len),
                false => 0,
            }),
            false => 0,
        };
        let is_open_from = |first: usize| {
            let mut open = None;
            self.look_from(first, |i, is| {
                open = (is == Seen::Open).then_some(i);
                open.is_some()
            });
            open
        };
        let mut open = if first > 0 { is_open_from(first) } else { None };
        if open.is_none() {
            // The scan starts again at 0: earlier requests may have been started again, or the array may hold other requests
            // now.
            self.check()?;
            open = is_open_from(0);
        }
        if many && let Some(open) = open {
            MEMORY.set(Memory { array: self.address(), over: Vec::new(), open });
        }
        Ok(open.is_none())
    }
}
