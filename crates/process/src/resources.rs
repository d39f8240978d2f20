//! What a process has for one more communicator.

use crate::{Error, class};

/// What a process has for a new communicator; the largest of all counts for all.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Resources(pub u64);

impl Resources {
    pub const ALL: Resources = Resources(0);
    /// No memory that ranks share.
    pub const LEAN: Resources = Resources(1);

    /// Nothing, at this process of the world.
    pub fn none(rank: usize) -> Resources {
        Resources(rank as u64 + 2)
    }

    /// Whether all do without shared memory. Errors: with this process's own reason if it has one.
    pub fn settle(self, refusal: Option<Error>) -> Result<bool, Error> {
        match self.0 {
            0 | 1 => Ok(self == Resources::LEAN),
            process => Err(refusal.unwrap_or_else(|| {
                let process = process - 2;
                let text = format!(
                    "process {process} of the world has no room for another communicator, so nobody gets it"
                );
                Error::new(class::NO_MEM, text)
            })),
        }
    }
}
