//! Transfers between memory and the pieces of one rank's access, which any thread can do.

use crate::access_direction::AccessDirection;
use crate::access_memory::AccessMemory;
use crate::access_policy::AccessPolicy;
use crate::data_sieving;
use crate::failure::FileFailure;
use crate::hints::Sieving;
use crate::storage::{LockMode, Storage, WriteGuard, with_lock};
use crate::strided_runs::{StridedRun, StridedRuns};
use crate::uring::FilePiece;
use std::sync::Arc;

/// A transfer of one rank's data.
pub struct FileTransfer {
    /// System interface to the file.
    pub storage: Arc<dyn Storage>,
    /// Direction of the data.
    pub direction: AccessDirection,
    /// Places in the file.
    pub runs: StridedRuns,
    /// Memory of the data.
    pub data: AccessMemory,
    /// Rules for the pieces.
    pub policy: AccessPolicy,
    /// True if the bytes are locked for atomic mode.
    pub locks_bytes: bool,
}

impl FileTransfer {
    /// Estimates the time of the transfer in nanoseconds.
    pub fn cost(&self) -> f64 {
        let (pieces, bytes, costs) = (self.runs.pieces(), self.runs.bytes(), &self.policy.costs);
        let span = self.runs.bounds().map_or(0, |range| range.len());
        let separate = costs.separate_cost(self.direction, pieces, bytes);
        let combined = costs.sieved_cost(self.direction, span) + pieces as f64 * costs.piece;
        match self.policy.sieving {
            Sieving::Off => separate,
            _ => separate.min(combined),
        }
    }

    /// Returns the transfer as a piece for the kernel's ring, if the transfer is a single piece that needs no lock.
    pub fn as_single_piece(&self) -> Option<FilePiece> {
        let unguarded =
            self.direction == AccessDirection::Read || self.policy.guard == WriteGuard::None;
        match *self.runs.list() {
            [StridedRun { offset, count: 1, .. }] if unguarded && !self.locks_bytes => {
                let (storage, direction) = (self.storage.clone(), self.direction);
                Some(FilePiece { storage, direction, offset, data: self.data })
            }
            _ => None,
        }
    }

    /// Moves the data. Returns the number of bytes moved. A read stops at the end of the file.
    pub fn run(&self) -> Result<u64, FileFailure> {
        let FileTransfer { direction, runs, data, policy, locks_bytes, .. } = self;
        let storage = &*self.storage;
        let run_by = |policy: &AccessPolicy| match direction {
            AccessDirection::Read => data_sieving::read(storage, runs, *data, policy),
            AccessDirection::Write => {
                data_sieving::write(storage, runs, *data, policy).map(|()| runs.bytes())
            }
        };
        match runs.bounds() {
            Some(range) if *locks_bytes => {
                let mode = match direction {
                    AccessDirection::Read => LockMode::Shared,
                    AccessDirection::Write => LockMode::Exclusive,
                };
                let under_lock = AccessPolicy { guard: WriteGuard::None, ..*policy };
                with_lock(storage, range, mode, || run_by(&under_lock))
            }
            _ => run_by(policy),
        }
    }
}
