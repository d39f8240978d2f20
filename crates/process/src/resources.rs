//! What a process has for one more communicator.

use crate::{Error, class};

/// What a process has for a new communicator; the largest of all counts for all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Resources(pub u64);

impl Resources {
    pub const ALL: Resources = Resources(0);
    /// No memory that ranks share.
    pub const LEAN: Resources = Resources(1);
    /// There is room, but some processes are not connected to this process yet. The communicator then shares no memory.
    pub const APART: Resources = Resources(2);

    /// Nothing, at this process of the world.
    pub fn none(rank: usize) -> Resources {
        Resources(rank as u64 + 3)
    }

    /// Whether all do without shared memory. Errors: with this process's own reason if it has one.
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
