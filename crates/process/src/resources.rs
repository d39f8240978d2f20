//! Resources of a process for one more communicator.

use crate::{Error, class};
use std::cell::Cell;
use std::rc::Rc;

/// Resources of a process for a new communicator. The largest value among all processes holds for all processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Resources(pub u64);

impl Resources {
    pub const ALL: Resources = Resources(0);
    /// There is no memory that ranks share.
    pub const LEAN: Resources = Resources(1);
    /// There is room, but some processes are not connected to this process yet. The communicator then shares no memory.
    pub const APART: Resources = Resources(2);

    /// Returns the value for a process that has no room. `rank` is the rank of this process in the world.
    pub fn none(rank: usize) -> Resources {
        Resources(rank as u64 + 3)
    }

    /// Returns true if all processes do without shared memory. Returns an error if a process has no room. If `refusal` has this
    /// process's own reason, the error gives this reason.
    pub fn settle(self, refusal: Option<Error>) -> Result<bool, Error> {
        match self.0 {
            0..=2 => Ok(self != Resources::ALL),
            process => Err(refusal.unwrap_or_else(|| {
                let process = process - 3;
                let text = format!(
                    "process {process} of the world has no room for another communicator, so nobody gets it"
                );
                Error::new(class::NO_MEM, text)
            })),
        }
    }
}

/// Facts of a new communicator on which all its members have agreed.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CommResources {
    /// Number of the communicator in the job.
    pub id: u64,
    /// True if the communicator does without memory that its ranks share.
    pub lean: bool,
}

/// A communicator whose ranks may share memory. It is counted until this value is dropped.
pub(crate) struct ShmCommCount(Rc<Cell<usize>>);

impl ShmCommCount {
    /// Increments `count`.
    pub fn new(count: &Rc<Cell<usize>>) -> ShmCommCount {
        count.set(count.get() + 1);
        ShmCommCount(count.clone())
    }
}

impl Drop for ShmCommCount {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}
