//! Curves and measurements on a machine.

use super::workload::Workload;

/// A curve: one workload on one machine.
#[derive(Clone)]
pub struct Series {
    pub name: &'static str,
    pub machine: &'static str,
    pub workload: Workload,
    /// Baseline of a curve of factors of improvement. The value of the baseline is divided by the value of the curve's own
    /// workload.
    pub over: Option<Workload>,
    pub x: Vec<usize>,
}

/// A measurement, or the ratio of two measurements.
pub enum Quotient {
    One(Workload, usize),
    Ratio([(Workload, usize); 2]),
}
