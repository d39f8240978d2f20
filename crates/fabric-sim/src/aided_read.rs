//! A read within a node with which the owner of the memory helps.

use crate::units::Picoseconds;

/// The last read of a rank with which the owner of the memory has helped.
#[derive(Debug, Clone, Copy)]
pub struct AidedRead {
    pub owner: usize,
    /// Time at which the read began.
    pub start: Picoseconds,
    /// Time at which the read ends if the owner helps until then.
    pub end: Picoseconds,
    /// Time of the whole read if the owner helps.
    pub aided: Picoseconds,
    /// Time of the whole read if the owner does not help.
    pub unaided: Picoseconds,
}
