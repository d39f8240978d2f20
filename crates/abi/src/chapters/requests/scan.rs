//! Scans of arrays of requests. In a long array, one scan serves several completions.
//!
//! ```text
//!   MPI_Waitany   examines all requests, and remembers further complete requests for its next calls on the same array, also in a
//!                 short array with requests of lanes, so that not each call enters each lane
//!   MPI_Testall   remembers a request that was not complete, and examines this request first in the next call
//! ```
//! Remembered requests are checked again before they are used, so it does no harm if the array has changed meanwhile. What is
//! remembered of a short array is used only if the array has the same handles.

use super::{Arrays, Ended};
use crate::constants::*;
use crate::engine::Engine;
use crate::error::Error;
use crate::lanes::{self, LaneRequestState, LaneSet};
use crate::state::state;
use crate::table::lane_of;
use crate::types::Request;
use std::cell::{Cell, RefCell};
use std::ops::Range;

/// Maximum number of requests in an array for which nothing is remembered.
const SHORT: usize = 64;

/// Results that a thread remembers of the array that it scanned last.
#[derive(Default)]
struct Memory {
    /// Address of the array.
    array: usize,
    /// Indices and handles of requests that were complete, in reverse order. The first of these requests is at the end.
    over: Vec<(usize, Request)>,
    /// Handles of a short array after the last call. Empty if the array was long.
    handles: Vec<Request>,
    /// Index of a request that was not complete.
    open: usize,
}

thread_local! {
    static MEMORY: RefCell<Memory> = RefCell::default();
    /// Memory that scans use again for [`LanesSeen::states`].
    static STATES: Cell<Vec<Option<Seen>>> = const { Cell::new(Vec::new()) };
}

/// States of the requests of lanes that a scan has looked at. The requests of a lane are looked at together, so that a scan enters each
/// lane at most once.
#[derive(Default)]
struct LanesSeen {
    /// Index of the first state.
    first: usize,
    /// States by index, or `None` for a request whose lane the scan has not entered.
    states: Vec<Option<Seen>>,
}

impl LanesSeen {
    /// Returns the state of request `i`, which belongs to a lane, in a scan that goes up to `end`.
    fn state(&mut self, arrays: &Arrays, i: usize, end: usize) -> Seen {
        if self.states.is_empty() {
            (self.first, self.states) = (i, STATES.take());
            self.states.resize(end - i, None);
        }
        if let Some(seen) = self.states[i - self.first] {
            return seen;
        }
        let lane = lane_of(arrays.request(i).0);
        let of_lane = || (i..end).filter(|&k| lane_of(arrays.request(k).0) == lane);
        let mut places = of_lane();
        lanes::look_at_all(of_lane().map(|k| arrays.request(k).0), |state| {
            let place = places.next().expect("a place for each handle");
            self.states[place - self.first] = Some(match state {
                LaneRequestState::Unknown => Seen::Unknown,
                LaneRequestState::Inactive => Seen::Nothing,
                LaneRequestState::Over => Seen::Over,
                LaneRequestState::Open => Seen::Open,
            });
        });
        self.states[i - self.first].unwrap_or(Seen::Unknown)
    }
}

impl Drop for LanesSeen {
    fn drop(&mut self) {
        if !self.states.is_empty() {
            self.states.clear();
            STATES.set(std::mem::take(&mut self.states));
        }
    }
}

/// State of a request at the moment of the scan.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Seen {
    /// Handle that names no request.
    Unknown,
    /// Null request, or inactive request.
    Nothing,
    Open,
    Over,
}

impl Arrays {
    /// Calls `seen` with the index and the state of each request from `first` on, until `seen` returns true.
    fn look_from(&self, first: usize, seen: impl FnMut(usize, Seen) -> bool) {
        self.look_at(first..self.len, seen);
    }

    /// Calls `seen` with the index and the state of each request in `range`, until `seen` returns true.
    fn look_at(&self, range: Range<usize>, mut seen: impl FnMut(usize, Seen) -> bool) {
        let state = state();
        let Some(engine) = state.engine.get() else { return };
        let (endpoint, requests) = (engine.endpoint(), state.requests.borrow());
        let mut looked = 0;
        let faulted = endpoint.fault().is_some();
        let mut in_lanes = LanesSeen::default();
        for i in range.clone() {
            looked += 1;
            let handle = self.request(i);
            let is = match handle {
                MPI_REQUEST_NULL => Seen::Nothing,
                handle if lane_of(handle.0) != 0 => in_lanes.state(self, i, range.end),
                handle => match requests.get(handle.0).map(|object| object.active.as_ref()) {
                    None => Seen::Unknown,
                    Some(None) => Seen::Nothing,
                    Some(Some(active)) if active.looks_over(endpoint, faulted) => Seen::Over,
                    Some(Some(_)) => Seen::Open,
                },
            };
            if seen(i, is) {
                break;
            }
        }
        state.looked.set(state.looked.get() + looked);
    }

    /// Progresses the engine until nothing more happens, so that one scan of a long array finds all requests that have become
    /// complete. The number of rounds is limited, because other ranks may send without end.
    pub(super) fn gather(&self, engine: &Engine) {
        if self.len <= SHORT {
            return;
        }
        // A round of progress handles about `SHORT` messages.
        for _ in 0..self.len.div_ceil(SHORT) {
            if !engine.progress() {
                return;
            }
        }
    }

    /// Ends the next of the complete requests that [`Arrays::any`] has remembered.
    pub(super) fn remembered(&self) -> Option<(usize, Ended)> {
        let mut handles = self.handles();
        if self.len <= SHORT && !handles.any(|handle| lane_of(handle.0) != 0) {
            return None;
        }
        loop {
            let (i, handle) = MEMORY.with_borrow_mut(|memory| {
                let same = memory.array == self.address()
                    && (self.len > SHORT || self.handles().eq(memory.handles.iter().copied()));
                if same { memory.over.pop() } else { None }
            })?;
            // Polling a request of a lane finds out if it is complete, so its lane is entered once.
            let still = i < self.len
                && self.request(i) == handle
                && (lane_of(handle.0) != 0 || self.is_over(i));
            if still && let Some(ended) = self.poll(i) {
                MEMORY.with_borrow_mut(|memory| {
                    if let Some(handle) = memory.handles.get_mut(i) {
                        *handle = self.request(i);
                    }
                });
                return Some((i, ended));
            }
        }
    }

    fn handles(&self) -> impl Iterator<Item = Request> {
        (0..self.len).map(|i| self.request(i))
    }

    fn address(&self) -> usize {
        self.requests.addr()
    }

    fn is_over(&self, i: usize) -> bool {
        let mut over = false;
        self.look_at(i..i + 1, |_, is| {
            over = is == Seen::Over;
            true
        });
        over
    }

    /// Ends the first complete request. Returns `Some(None)` if no request is active, and `None` if no active request is complete.
    /// `in_lanes` are the lanes of the requests. Errors: REQUEST if there are lanes, and a handle names no request.
    pub(super) fn any(&self, in_lanes: LaneSet) -> Result<Option<Option<(usize, Ended)>>, Error> {
        if self.len > SHORT || !in_lanes.is_empty() {
            return self.any_of_many();
        }
        let (mut none, mut first) = (true, 0);
        loop {
            let mut over = None;
            self.look_from(first, |i, is| {
                none &= matches!(is, Seen::Nothing | Seen::Unknown);
                over = (is == Seen::Over).then_some(i);
                over.is_some()
            });
            let Some(i) = over else { return Ok(none.then_some(None)) };
            if let Some(ended) = self.poll(i) {
                return Ok(Some(Some((i, ended))));
            }
            first = i + 1;
        }
    }

    /// Ends the first complete request of an array, like [`Arrays::any`], and remembers the other complete requests.
    fn any_of_many(&self) -> Result<Option<Option<(usize, Ended)>>, Error> {
        // The lists of the last scan are used again, so that no scan has to allocate memory.
        let Memory { mut over, mut handles, .. } = MEMORY.take();
        over.clear();
        handles.clear();
        let (mut none, mut unknown) = (true, None);
        self.look_from(0, |i, is| {
            match is {
                Seen::Over => over.push((i, self.request(i))),
                Seen::Unknown => unknown = Some(i),
                Seen::Nothing | Seen::Open => {}
            }
            none &= is == Seen::Nothing;
            unknown.is_some()
        });
        self.refuse(unknown)?;
        over.reverse();
        let mut ended = None;
        while ended.is_none()
            && let Some((i, _)) = over.pop()
        {
            ended = self.poll(i).map(|ended| (i, ended));
        }
        if self.len <= SHORT {
            handles.extend(self.handles());
        }
        MEMORY.set(Memory { array: self.address(), over, handles, open: 0 });
        Ok(match ended {
            Some(ended) => Some(Some(ended)),
            None => none.then_some(None),
        })
    }

    /// Ends all requests that are complete now. Returns the index and the outcome of each.
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

    /// Returns true if all active requests are complete. Errors: REQUEST if a handle that was examined names no request.
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
            // The scan starts again at 0, because the program may have started earlier requests again, or the array may hold other
            // requests.
            self.check()?;
            open = is_open_from(0);
        }
        if many && let Some(open) = open {
            MEMORY.set(Memory { array: self.address(), open, ..Memory::default() });
        }
        Ok(open.is_none())
    }
}
