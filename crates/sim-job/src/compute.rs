//! The time of a program's computing.

use weft_fabric_sim::Machine;
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

/// The computing of a rank: how long it takes, from turn to turn.
///
/// ```text
///   turn of another rank ──▶ computing, with cold caches ── call ── computing ── call ... rest
///                            measured - turn                        measured
/// ```
#[derive(Debug)]
pub(crate) struct ComputeMeter {
    time: ComputeTime,
    /// Additional processor time of the first computing after another rank's turn, in nanoseconds.
    turn: u64,
    /// True if the rank has not computed since another rank's turn.
    is_cold: bool,
}

impl ComputeMeter {
    pub fn new(time: ComputeTime, machine: &Machine) -> ComputeMeter {
        ComputeMeter { time, turn: machine.host.turn.0 / 1000, is_cold: false }
    }

    /// Notes that another rank has had the processor.
    pub fn cool(&mut self) {
        self.is_cold = true;
    }

    /// Returns the simulated time of processor time of the program, in picoseconds. `nanos` is 0 if the program has not computed.
    pub fn pass(&mut self, nanos: u64) -> Picoseconds {
        if nanos == 0 {
            return 0;
        }
        let cold = if std::mem::take(&mut self.is_cold) { self.turn } else { 0 };
        self.time.of(nanos.saturating_sub(cold))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_fabric_sim::units::Time;

    #[test]
    fn the_first_computing_of_a_turn_loses_the_time_of_cold_caches() {
        let measured = ComputeTime::Measured { factor: 2.0 };
        let mut machine = Machine::load("ndr").unwrap();
        let mut without = ComputeMeter::new(measured, &machine);
        machine.host.turn = Time::from_us(0.06);
        let mut meter = ComputeMeter::new(measured, &machine);
        for meter in [&mut meter, &mut without] {
            meter.cool();
        }
        let passed = [100, 0, 100].map(|nanos| meter.pass(nanos));
        assert_eq!(passed, [80_000, 0, 200_000]);
        assert_eq!(without.pass(100), 200_000);
        meter.cool();
        // Measured times vary, and a simulated time is never below 0.
        assert_eq!([0, 50, 50].map(|nanos| meter.pass(nanos)), [0, 0, 100_000]);
    }
}
