//! Record of the last arrival at each rank.

use crate::trace::Arrow;
use crate::units::Picoseconds;

/// Arrival at a rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// The rank from which the bytes or the acknowledgement came.
    pub from: u32,
    /// The rank that posted the operation: `from`, or the receiving rank for the end of its own operation.
    pub poster: u32,
    /// Time of the post by the clock of `poster`, in picoseconds.
    pub posted: Picoseconds,
    /// Time at which the operation took effect, in picoseconds of global time.
    pub arrived: Picoseconds,
    /// Part of the time between post and arrival that the bytes need on the wire, in picoseconds.
    pub wire: Picoseconds,
    /// Number of bytes on the wire.
    pub bytes: usize,
}

/// Record of arrivals, for ranks that are processes of their own.
#[derive(Debug, Default)]
pub(crate) struct ArrivalRecord {
    pub last: Vec<Option<Arrival>>,
    pub arrows: Vec<Arrow>,
    pub most_arrows: usize,
}

impl ArrivalRecord {
    pub fn new(ranks: usize) -> ArrivalRecord {
        ArrivalRecord { last: vec![None; ranks], ..ArrivalRecord::default() }
    }

    /// Adds an arrow, unless there are enough.
    pub fn arrow(&mut self, arrow: Arrow) {
        if self.arrows.len() < self.most_arrows {
            self.arrows.push(arrow);
        }
    }
}
