//! The time of a program's computing.

use weft_fabric_sim::units::Picoseconds;

/// Time that a program's computing takes on the simulated machine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ComputeTime {
    /// No time: only communication takes time, and the same program gives the same times.
    None,
    /// The measured processor time, times a factor.
    Measured {
        /// Simulated time over measured time.
        factor: f64,
    },
}

impl ComputeTime {
    /// Returns simulated time over measured time.
    pub(crate) fn factor(self) -> f64 {
        match self {
            ComputeTime::None => 0.0,
            ComputeTime::Measured { factor } => factor,
        }
    }

    /// Returns the simulated time of measured processor time, in picoseconds.
    pub(crate) fn of(self, nanos: u64) -> Picoseconds {
        (nanos as f64 * 1000.0 * self.factor()) as Picoseconds
    }
}
