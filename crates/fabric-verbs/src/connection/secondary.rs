//! State that a secondary connection has in addition to the state of a first connection.

use crate::connection::pending::PostedWork;
use std::collections::VecDeque;

/// Work of a secondary connection, and progress of its shutdown at both ends.
#[derive(Default)]
pub struct Secondary {
    /// For each request in the window, the work to repeat if the request fails. `None` for a probe or a return of credits.
    pub posted: VecDeque<Option<PostedWork>>,
    /// Work of failed requests, which must be repeated in this order.
    pub repeat: Vec<PostedWork>,
    /// Progress of work that the first connection took over from this connection and has not finished.
    pub passed: Option<PassedWork>,
    /// True if this process has reported to the peer that this end is shut.
    pub told: bool,
    /// True if the peer has reported that the peer's end is shut.
    pub heard: bool,
}

/// Progress of work that the first connection took over from a secondary connection. The work is still kept, or it has been posted.
/// In the second case, the value is the number of the last request.
#[derive(Debug, Clone, Copy)]
pub enum PassedWork {
    Kept,
    Posted(u32),
}

impl Secondary {
    /// Returns the work of the oldest request.
    pub fn oldest(&self) -> Option<PostedWork> {
        self.posted.front().copied().flatten()
    }
}
