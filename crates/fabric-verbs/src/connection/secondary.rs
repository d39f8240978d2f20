//! State that a secondary connection has in addition to that of a first connection.

use crate::connection::pending::PostedWork;
use std::collections::VecDeque;

/// Work of a secondary connection, and progress of its shutdown at both ends.
#[derive(Default)]
pub struct Secondary {
    /// Work to repeat for each request in the window; `None` for a probe or a return of credits.
    posted: VecDeque<Option<PostedWork>>,
    /// Work of failed requests, in order, to be repeated.
    repeat: Vec<PostedWork>,
    /// Work that the first connection took in place of this connection and has not finished.
    pub passed: Option<PassedWork>,
    /// True if this process has sent the peer the message that this end is shut.
    pub told: bool,
    /// True if the peer's message that its end is shut has come.
    pub heard: bool,
}

/// Work that the first connection took in place of a secondary connection: still kept, or posted up to a request number.
#[derive(Debug, Clone, Copy)]
pub enum PassedWork {
    Kept,
    Posted(u32),
}

impl Secondary {
    /// Adds the work of the request that was posted last.
    pub fn add(&mut self, work: Option<PostedWork>) {
        self.posted.push_back(work);
    }

    /// Drops the work of the oldest request, which has completed.
    pub fn drop_oldest(&mut self) {
        self.posted.pop_front();
    }

    /// Returns the work of the oldest request.
    pub fn oldest(&self) -> Option<PostedWork> {
        self.posted.front().copied().flatten()
    }

    /// Adds work of a failed request.
    pub fn add_repeat(&mut self, work: PostedWork) {
        self.repeat.push(work);
    }

    /// Takes the work that is to be repeated.
    pub fn take_repeat(&mut self) -> Vec<PostedWork> {
        std::mem::take(&mut self.repeat)
    }

    /// Returns true if work is to be repeated.
    pub fn repeats(&self) -> bool {
        !self.repeat.is_empty()
    }
}
