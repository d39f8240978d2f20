//! Times of transfers within a host, chosen by simulation: with them, a simulated message takes as long as a measured message.
//!
//! ```text
//!   measured message of n bytes  = protocol of n bytes in virtual time + transfers[n]
//!   transfers[n]                += measured - simulated, until both are equal
//! ```
//! A message is simulated with the library's own protocols, so the rest of its time (posts, copies at both ends, answers) is not counted
//! twice, whatever protocol the library chooses for its length.

use super::rank::LENGTHS;
use crate::sim::failure::SimFailure;
use crate::sim::measure::{Conditions, measure};
use std::rc::Rc;
use weft_fabric_sim::Machine;
use weft_fabric_sim::units::Time;
use weft_patterns::{PatternPlan, PayloadPresence};

/// Number of corrections. The first meets a message with a single transfer of its length; further ones are for protocols that move a
/// message in several transfers.
const CORRECTIONS: usize = 4;

/// Times of transfers of [`LENGTHS`] bytes, in microseconds.
pub type TransferTimes = [f64; LENGTHS.len()];

/// Returns the times by which simulated messages take as long as `measured`. `text` returns the machine file with given times.
/// Error: the simulation failed.
pub fn fitted(
    measured: &TransferTimes,
    text: impl Fn(&TransferTimes) -> String,
) -> Result<TransferTimes, SimFailure> {
    let mut times = TransferTimes::default();
    for _ in 0..CORRECTIONS {
        let machine = Machine::parse("fitted", &text(&times));
        let machine = Rc::new(machine.map_err(|e| SimFailure::Run(e.to_string()))?);
        let mut least: f64 = 0.0;
        for ((time, measured), bytes) in times.iter_mut().zip(measured).zip(LENGTHS) {
            // A longer transfer takes at least as long: what is above the measurement by noise stays above.
            least = least.max(*time + measured - simulated(&machine, bytes)?);
            *time = least;
        }
    }
    Ok(times)
}

/// Returns the time of a message between two ranks, in microseconds of virtual time.
fn simulated(machine: &Rc<Machine>, bytes: usize) -> Result<f64, SimFailure> {
    let plan = PatternPlan::new("ping-pong", 2).map_err(|e| SimFailure::Run(e.to_string()))?;
    let conditions = Conditions { changes: Vec::new(), seed: 1, jitter: Time(0) };
    // All rounds take the same time, and the bytes do not matter.
    let plan = PatternPlan { bytes, repeat: 2, payload: PayloadPresence::Phantom, ..plan };
    Ok(measure(machine, &plan, &conditions, || ())?.mean)
}

#[cfg(test)]
mod tests {
    use super::super::{FittedFigures, rank::NetworkFigures};
    use super::*;
    use weft_fabric::CopyModel;

    #[test]
    fn simulated_messages_take_as_long_as_measured() {
        let figures = NetworkFigures {
            short: 0.18,
            send: 0.03,
            receive: 0.03,
            copy: 40_000.0,
            reduce: 30_000.0,
            messages: [0.3, 0.4, 1.2, 3.5, 6.0, 9.0, 20.0, 61.0, 85.0, 190.0, 400.0],
            copies: [1.6, 6.5, 40.0, 120.0, 280.0],
            ..NetworkFigures::default()
        };
        let file =
            FittedFigures { near: &figures, far: None, model: &CopyModel::GENERIC, processors: 2 };
        let measured = figures.messages;
        let times = fitted(&measured, |times| file.file("host", times, None)).unwrap();
        let machine = Rc::new(Machine::parse("host", &file.file("host", &times, None)).unwrap());
        for (measured, bytes) in measured.iter().zip(LENGTHS) {
            let simulated = simulated(&machine, bytes).unwrap();
            assert!((simulated / measured - 1.0).abs() < 0.01, "{bytes}: {simulated}, {measured}");
        }
    }
}
