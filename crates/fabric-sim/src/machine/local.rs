//! Time of a transfer between ranks of one node, without levels, and of a copy by a processor.
//!
//! ```text
//!   time             .- bandwidth
//!    |            .-'
//!    |     o----o        o  a measured transfer; between two of them the time is interpolated
//!    |   .'
//!    | .o
//!    |'_____________ bytes
//! ```
//! A rate alone cannot meet all lengths: short transfers are a cache line or two, then a copy in the caches, then a system call that
//! reads another process's pages, and at last memory. SimGrid's models of MPI are linear in pieces for the same reason (Degomme et
//! al., "Simulating MPI Applications: The SMPI Approach", 2017, section 5.1).

use super::{Local, Machine, NodeHost};
use crate::units::{self, Picoseconds, Rate, Time};
use serde::Deserialize;

/// A transfer whose time is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeasuredTransfer {
    /// Length of the payload.
    #[serde(deserialize_with = "units::length")]
    pub bytes: usize,
    /// Time of the payload, which is added to the latency.
    pub time: Time,
}

impl Local {
    /// Returns the time of a payload of `bytes` bytes, which is added to the latency.
    pub fn time(&self, bytes: usize) -> Picoseconds {
        time_of(&self.transfers, self.bandwidth, bytes)
    }

    /// Returns the time of a read of `bytes` bytes of memory that the ranks of a node share.
    pub fn read_time(&self, bytes: usize) -> Picoseconds {
        if self.reads.is_empty() {
            self.time(bytes)
        } else {
            time_of(&self.reads, self.bandwidth, bytes)
        }
    }

    /// Returns the time of a read of `bytes` bytes of another rank's private memory while the other rank does not help.
    pub fn unaided_time(&self, bytes: usize) -> Picoseconds {
        match self.unaided.first() {
            Some(first) if bytes >= first.bytes => time_of(&self.unaided, self.bandwidth, bytes),
            _ => self.time(bytes),
        }
    }
}

impl Machine {
    /// Returns the time of a copy of `bytes` bytes into memory that another rank of the node has read.
    pub fn stage_time(&self, bytes: usize) -> Picoseconds {
        match self.local.writes.is_empty() {
            true => self.host.copy_time(bytes),
            false => time_of(&self.local.writes, self.host.copy, bytes),
        }
    }
}

impl NodeHost {
    /// Returns the time of a copy of `bytes` bytes by a processor.
    pub fn copy_time(&self, bytes: usize) -> Picoseconds {
        time_of(&self.copies, self.copy, bytes)
    }
}

/// Returns the time of `bytes` bytes: by interpolation up to the last known time, then at the rate `beyond`.
fn time_of(known: &[MeasuredTransfer], beyond: Rate, bytes: usize) -> Picoseconds {
    let after = known.partition_point(|transfer| transfer.bytes < bytes);
    let (from, start) = match after.checked_sub(1).map(|at| known[at]) {
        Some(before) => (before.bytes, before.time.0),
        None => (0, 0),
    };
    let rest = bytes - from;
    match known.get(after) {
        None => start + beyond.time(rest),
        Some(next) => {
            let (rise, run) = (next.time.0 - start, next.bytes - from);
            start + (u128::from(rise) * rest as u128 / run as u128) as Picoseconds
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn local(transfers: &[(usize, f64)]) -> Local {
        let measured = |&(bytes, us)| MeasuredTransfer { bytes, time: Time::from_us(us) };
        Local {
            overhead: Time(0),
            latency: Time(0),
            transfers: transfers.iter().map(measured).collect(),
            reads: Vec::new(),
            writes: Vec::new(),
            unaided: Vec::new(),
            bandwidth: Rate::from_mb_per_s(1000.0),
            busy: false,
            shared: true,
            in_place: true,
        }
    }

    #[test]
    fn times_are_linear_between_measured_transfers() {
        let of = local(&[(100, 1.0), (1000, 1.9), (2000, 1.9)]);
        for (bytes, ns) in
            [(0, 0), (50, 500), (100, 1000), (550, 1450), (1000, 1900), (1500, 1900), (3000, 2900)]
        {
            assert_eq!(of.time(bytes), ns * 1000, "{bytes} bytes");
        }
        assert_eq!(local(&[]).time(3000), Rate::from_mb_per_s(1000.0).time(3000));
    }
}
