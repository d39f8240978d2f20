//! Measurements between hosts after a rest, in which a token bucket of the network becomes full ([`super::super::bucket`]).
//!
//! ```text
//!   burst      half of a round trip of 16 KiB, and of 64 KiB
//!   stream     a message of n bytes, and one of 2 n bytes, each with an answer of 8 bytes
//!   rest       both ranks compute for the time of the longer stream
//! ```
//! A stream takes as long as the bucket needs to get the stream's bytes back, without those that the bucket had at first. So a bucket of up
//! to n bytes is full after each rest.

use super::{BURSTS, FitProgram, LENGTHS, SHORT, StreamFigures, compute, timed};
use std::time::Duration;

/// Lengths of the shorter stream that are tried, in bytes. The longer stream fits in the buffers.
const LEAST: usize = 512 << 10;
const MOST: usize = LENGTHS[LENGTHS.len() - 1] / 2;

/// Number of bursts of a length in a pass.
const TRIALS: usize = 4;

/// Time of a stream that is long enough, in microseconds.
const LONG_STREAM: f64 = 15_000.0;

/// Lengths of the streams, and the rest before each measurement.
#[derive(Debug, Clone, Copy)]
pub(super) struct StreamPlan {
    bytes: usize,
    rest: Duration,
}

impl FitProgram {
    /// Chooses the streams: the shorter stream is the first, of doubled lengths, that takes long enough.
    pub(super) fn plan_streams(&mut self) -> Result<StreamPlan, String> {
        let mut bytes = LEAST;
        while self.stream(bytes)? < LONG_STREAM && bytes < MOST {
            bytes *= 2;
        }
        let us = self.stream(2 * bytes)?;
        Ok(StreamPlan { bytes, rest: Duration::from_secs_f64(us / 1e6) })
    }

    /// Returns the times after rests.
    pub(super) fn streams(&mut self, plan: StreamPlan) -> Result<StreamFigures, String> {
        let mut figures = StreamFigures { bytes: plan.bytes as f64, ..StreamFigures::default() };
        for (time, bytes) in figures.bursts.iter_mut().zip(BURSTS) {
            *time = f64::INFINITY;
            for _ in 0..TRIALS {
                self.rest(plan)?;
                *time = time.min(timed(|| self.lap(bytes))? / 2.0);
            }
        }
        for (time, factor) in figures.streams.iter_mut().zip([1, 2]) {
            self.rest(plan)?;
            *time = self.stream(factor * plan.bytes)?;
        }
        Ok(figures)
    }

    /// Lets the network rest. No rank sleeps at the end.
    fn rest(&mut self, plan: StreamPlan) -> Result<(), String> {
        compute(plan.rest);
        self.program.barrier()?;
        self.lap(SHORT)
    }

    /// Returns the time of a message of `bytes` bytes from rank 0 and its answer, on all ranks.
    fn stream(&mut self, bytes: usize) -> Result<f64, String> {
        let us = timed(|| match self.is_first() {
            true => {
                self.send(bytes)?;
                self.receive(SHORT)
            }
            false => {
                self.receive(bytes)?;
                self.send(SHORT)
            }
        })?;
        self.program.largest(if self.is_first() { us } else { 0.0 })
    }
}
