//! Rules by which pieces of a file are moved.

use crate::file_costs::FileCosts;
use crate::hints::Sieving;
use crate::storage::WriteGuard;

/// Rules by which pieces are moved.
#[derive(Debug, Clone, Copy)]
pub struct AccessPolicy {
    /// Use of data sieving.
    pub sieving: Sieving,
    /// Maximum number of bytes that one call moves when it sieves, gaps included.
    pub buffer: usize,
    /// Costs of the file system.
    pub costs: FileCosts,
    /// Writers to guard against.
    pub guard: WriteGuard,
}

/// Relation of an access to the program (MPI 5.0, section 14.4.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Synchronism {
    /// The program waits for the access.
    Blocking,
    /// The program computes meanwhile, and may start further accesses.
    Nonblocking,
}
