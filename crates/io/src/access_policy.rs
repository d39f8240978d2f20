//! Rules by which pieces of a file are moved.

use crate::file_costs::FileCosts;
use crate::hints::Sieving;
use crate::storage::WriteGuard;

/// Rules by which pieces are moved.
#[derive(Debug, Clone, Copy)]
pub struct AccessPolicy {
    /// Use of data sieving.
    pub sieving: Sieving,
    /// Maximum number of bytes that one call moves in data sieving, gaps included.
    pub buffer: usize,
    /// Costs of the file system.
    pub costs: FileCosts,
    /// Writers of neighbouring bytes to guard against.
    pub guard: WriteGuard,
}

/// Distinction between an access for which the program waits and an access in the background (MPI 5.0, section 14.4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Synchronism {
    /// The program waits for the access.
    Blocking,
    /// The program computes meanwhile, and may start further accesses.
    Nonblocking,
}
