//! Ranks that are processes of their own. Their memory and their counters lie in other address spaces, where only a
//! [`RankProcesses`] reaches them.
//!
//! ```text
//!   event.rs ── address_spaces.rs: copy_between, read_word, write_word, count
//!                          ├─ no processes: the memory is the simulator's own
//!                          └─ RankProcesses: the operating system copies between the processes
//! ```

use std::ops::Range;
use weft_fabric::{Counter, Fault, Sge};

/// Memory of a rank.
#[derive(Debug, Clone, Copy)]
pub struct RankMemory {
    /// The rank whose address space has the memory.
    pub rank: usize,
    /// The bytes, by their address in the rank's address space. The simulator never accesses them itself if the rank is a process
    /// of its own.
    pub memory: Sge,
}

/// A counter of a rank, by the rank's own number for it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RankCounter {
    /// The counter of a completed operation.
    Completion(Counter),
    /// The counter of arrivals of this immediate.
    Immediate(u32),
}

/// Access to ranks that are processes of their own.
pub trait RankProcesses {
    /// Copies `from` to `to`, which has the same length. Errors: [`weft_fabric::FaultCause::PeerLost`] if a process is gone,
    /// [`weft_fabric::FaultCause::System`] if the operating system refuses the access.
    fn copy(&self, to: RankMemory, from: RankMemory) -> Result<(), Fault>;

    /// Returns true if a part of a write of `len` bytes need not be copied. Counts the part as spared if so.
    fn spares(&self, len: usize, part: Range<usize>) -> bool {
        let _ = (len, part);
        false
    }

    /// Copies the start of `from` into `out`. Errors as of [`RankProcesses::copy`].
    fn read(&self, from: RankMemory, out: &mut [u8]) -> Result<(), Fault>;

    /// Copies `bytes` to the start of `to`. Errors as of [`RankProcesses::copy`].
    fn write(&self, to: RankMemory, bytes: &[u8]) -> Result<(), Fault>;

    /// Advances a counter of `rank` by one. The rank sees the new value at its next turn at the latest.
    fn advance(&self, rank: usize, counter: RankCounter);
}
