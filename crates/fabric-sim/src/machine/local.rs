//! Time of a transfer between ranks of one node, without levels.
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

use super::Local;
use crate::units::{Count, Picoseconds, Time};
use serde::Deserialize;

/// A transfer whose time is known.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MeasuredTransfer {
    /// Length of the payload.
    pub bytes: Count,
    /// Time of the payload, which is added to the latency.
    pub time: Time,
}

impl Local {
    /// Returns the time of a payload of `bytes` bytes, which is added to the latency.
    pub fn time(&self, bytes: usize) -> Picoseconds {
        let after = self.transfers.partition_point(|transfer| transfer.bytes.0 < bytes);
        let (from, start) = match after.checked_sub(1).map(|at| self.transfers[at]) {
            Some(before) => (before.bytes.0, before.time.0),
            None => (0, 0),
        };
        let beyond = bytes - from;
        match self.transfers.get(after) {
            None => start + self.bandwidth.time(beyond),
            Some(next) => {
                let (rise, run) = (next.time.0 - start, next.bytes.0 - from);
                start + (u128::from(rise) * beyond as u128 / run as u128) as Picoseconds
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Rate;

    fn local(transfers: &[(usize, f64)]) -> Local {
        let measured =
            |&(bytes, us)| MeasuredTransfer { bytes: Count(bytes), time: Time::from_us(us) };
        Local {
            overhead: Time(0),
            latency: Time(0),
            transfers: transfers.iter().map(measured).collect(),
            bandwidth: Rate::from_mb_per_s(1000.0),
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
