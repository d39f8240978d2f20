//! Prediction of the time of a call from the times in a map.
//!
//! Between lines of the map, the logarithm of the time is interpolated linearly over the logarithms of ranks and bytes, because
//! costs are nearly powers of ranks and bytes. Beyond the last line the nearest line is used.
//!
//! ```text
//!   bytes |   t ──────── t        four places around the call, those at which
//!         |       call            the algorithm has a time
//!         |   t ──────── t  ranks
//! ```

use crate::tune::workload;
use std::rc::Rc;
use weft_collective::algorithm::Algorithm;
use weft_collective::selection_map::SelectionCell;
use weft_collective::{AlgorithmChoice, CollectiveKind, Selection, SelectionKey, SelectionMap};
use weft_fabric::CopyModel;
use weft_fabric_sim::Machine;

/// A predicted time, by the method of its prediction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Prediction {
    /// Time in microseconds from the map, which has a line for these ranks and bytes.
    Measured(f64),
    /// Time in microseconds, interpolated between lines of the map.
    Between(f64),
    /// Time in microseconds, and ranks and bytes, of the nearest line, for a call outside of the map.
    Nearest(f64, (usize, usize)),
    /// Time in microseconds by the model of copies between ranks of a machine.
    Modelled(f64),
    /// Time in microseconds of the call itself on a simulated machine.
    Simulated(f64),
    /// No prediction: the map has no time near these ranks and bytes.
    Unknown,
}

impl Prediction {
    /// Returns a key to sort predictions by time, unknown predictions last.
    pub fn order(self) -> f64 {
        match self {
            Prediction::Measured(us)
            | Prediction::Between(us)
            | Prediction::Nearest(us, _)
            | Prediction::Modelled(us)
            | Prediction::Simulated(us) => us,
            Prediction::Unknown => f64::INFINITY,
        }
    }

    /// Returns the time in microseconds, if it is predicted.
    pub fn microseconds(self) -> Option<f64> {
        Some(self.order()).filter(|us| us.is_finite())
    }

    pub fn describe(self) -> String {
        match self {
            Prediction::Measured(us) => format!("{us:.2} us (measured)"),
            Prediction::Between(us) => {
                format!("{us:.2} us (interpolated between lines of the map)")
            }
            Prediction::Nearest(us, (ranks, bytes)) => format!(
                "{us:.2} us at {ranks} ranks and {bytes} bytes, the nearest line of the map"
            ),
            Prediction::Modelled(us) => format!("{us:.2} us (by the model of copies)"),
            Prediction::Simulated(us) => format!("{us:.2} us (simulated)"),
            Prediction::Unknown => "no time in this part of the map".to_owned(),
        }
    }
}

/// Maximum number of ranks of a call that is simulated. More ranks would take seconds.
const SIMULATED_MOST: usize = 128;

/// Sources of predictions of collective calls.
pub struct PredictionSources {
    pub map: Rc<SelectionMap>,
    /// Selection by the map, as the library makes it.
    pub selection: Selection,
    pub model: CopyModel,
    /// Machine of the calls; `None` if the calls run on this machine.
    pub machine: Option<Rc<Machine>>,
}

impl PredictionSources {
    /// Returns the machine on which calls of `ranks` ranks are simulated. If the kernel carries messages, nodes often have several
    /// ranks, while the map of a network has a single rank on each node.
    fn simulator(&self, ranks: usize) -> Option<&Rc<Machine>> {
        let machine = self.machine.as_ref()?;
        (machine.rail[0].round_trip.0 > 0 && ranks <= SIMULATED_MOST).then_some(machine)
    }

    /// Predicts the time of `choice`: by simulation, else from the map's times, else by the model of copies, if the model covers
    /// the algorithm.
    pub fn predict(&self, case: &SelectionKey, choice: AlgorithmChoice) -> Prediction {
        if let Some(machine) = self.simulator(case.ranks) {
            let (operation, mut selection) = (choice.algorithm.operation, self.selection.clone());
            selection.ask(operation, Some(choice));
            let selection = Rc::new(selection);
            let us = workload::measure(machine, case.ranks, operation, case.bytes, &selection);
            return us.map_or(Prediction::Unknown, Prediction::Simulated);
        }
        match predict(&self.map, choice.algorithm.operation, case.ranks, case.bytes, choice) {
            Prediction::Unknown => match self.selection.predicted(choice, case, &self.model) {
                Some(ns) => Prediction::Modelled(ns / 1e3),
                None => Prediction::Unknown,
            },
            known => known,
        }
    }
}

/// Returns the algorithm with the parameter that it has in the line of the map, or with the default parameter.
pub fn parameter(
    map: &SelectionMap,
    operation: CollectiveKind,
    ranks: usize,
    bytes: usize,
    algorithm: &'static Algorithm,
) -> AlgorithmChoice {
    let line = map.find(operation, ranks, bytes);
    let known = line.and_then(|line| {
        line.choices.iter().map(|t| t.choice).find(|c| std::ptr::eq(c.algorithm, algorithm))
    });
    known.unwrap_or(algorithm.usual())
}

/// Returns the time for `choice` in the line: with the same parameter, or else with another parameter.
fn time(line: &SelectionCell, choice: AlgorithmChoice) -> Option<f64> {
    let exact = line.choices.iter().find(|t| t.choice == choice);
    let like = || line.choices.iter().find(|t| std::ptr::eq(t.choice.algorithm, choice.algorithm));
    exact.or_else(like).and_then(|t| t.us)
}

/// Returns the logarithm of `n`, which is also defined for 0.
fn log(n: usize) -> f64 {
    (n as f64).max(0.5).log2()
}

/// Returns the position of `at` between `low` and `high`, from 0 to 1, on a logarithmic scale.
fn share(low: usize, at: usize, high: usize) -> f64 {
    if high == low { 0.0 } else { (log(at) - log(low)) / (log(high) - log(low)) }
}

/// Returns the time between two lines of one row of the map.
fn in_row(
    lines: &[&SelectionCell],
    bytes: usize,
    choice: AlgorithmChoice,
) -> Option<(f64, Prediction)> {
    let below = lines.iter().rev().find(|l| l.bytes <= bytes).or(lines.first())?;
    let above = lines.iter().find(|l| l.bytes >= bytes).or(lines.last())?;
    match (time(below, choice), time(above, choice)) {
        (Some(a), Some(b)) => {
            let at = bytes.clamp(below.bytes, above.bytes);
            let us = mix(a, b, share(below.bytes, at, above.bytes));
            let place = (below.ranks, below.bytes);
            let kind = match (below.bytes..=above.bytes).contains(&bytes) {
                _ if below.bytes == bytes => Prediction::Measured(us),
                true => Prediction::Between(us),
                false => Prediction::Nearest(us, place),
            };
            Some((us, kind))
        }
        (Some(us), None) => Some((us, Prediction::Nearest(us, (below.ranks, below.bytes)))),
        (None, Some(us)) => Some((us, Prediction::Nearest(us, (above.ranks, above.bytes)))),
        (None, None) => None,
    }
}

/// Interpolates two times, by their logarithms.
fn mix(a: f64, b: f64, share: f64) -> f64 {
    if a <= 0.0 || b <= 0.0 { a + (b - a) * share } else { a.powf(1.0 - share) * b.powf(share) }
}

/// Predicts the time of `choice` on `ranks` ranks with `bytes` bytes.
pub fn predict(
    map: &SelectionMap,
    operation: CollectiveKind,
    ranks: usize,
    bytes: usize,
    choice: AlgorithmChoice,
) -> Prediction {
    let all: Vec<&SelectionCell> = map.lines(operation).collect();
    let row = |n: usize| all.iter().copied().filter(|l| l.ranks == n).collect::<Vec<_>>();
    let below = all.iter().rev().find(|l| l.ranks <= ranks).or(all.first()).map(|l| l.ranks);
    let above = all.iter().find(|l| l.ranks >= ranks).or(all.last()).map(|l| l.ranks);
    let (Some(below), Some(above)) = (below, above) else { return Prediction::Unknown };
    // If the operation has no size, its rows have only one line, which every call uses.
    let bytes = if operation.measure().starts_with("nothing") { 0 } else { bytes };
    let low = in_row(&row(below), bytes, choice);
    let high = in_row(&row(above), bytes, choice);
    match (low, high) {
        (Some((_, kind)), _) if below == ranks => kind,
        (Some((a, one)), Some((b, two))) if (below..=above).contains(&ranks) => {
            let us = mix(a, b, share(below, ranks, above));
            match (one, two) {
                (Prediction::Nearest(_, place), _) | (_, Prediction::Nearest(_, place)) => {
                    Prediction::Nearest(us, place)
                }
                _ => Prediction::Between(us),
            }
        }
        (Some((us, Prediction::Nearest(_, place))), _) => Prediction::Nearest(us, place),
        (Some((us, _)), _) => Prediction::Nearest(us, (below, bytes)),
        (None, Some((us, _))) => Prediction::Nearest(us, (above, bytes)),
        (None, None) => Prediction::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# machine: m\n\
        allreduce 4 64   RPE 10  MPI-PE 20\n\
        allreduce 4 1024 RPE 40\n\
        allreduce 16 64   RPE 20\n\
        allreduce 16 1024 RPE 80\n\
        barrier 4 0 RGM:3 5\n";

    fn at(ranks: usize, bytes: usize, name: &str) -> Prediction {
        let map = SelectionMap::parse(TEXT).unwrap();
        let choice = AlgorithmChoice::parse(CollectiveKind::Allreduce, name).unwrap();
        match predict(&map, CollectiveKind::Allreduce, ranks, bytes, choice) {
            // Removes rounding errors.
            Prediction::Between(us) => Prediction::Between((us * 1e6).round() / 1e6),
            other => other,
        }
    }

    #[test]
    fn places_of_the_map_are_its_own_and_others_lie_between() {
        assert_eq!(at(4, 64, "RPE"), Prediction::Measured(10.0));
        assert_eq!(at(16, 1024, "RPE"), Prediction::Measured(80.0));
        // Halfway between the logarithms lies the geometric mean.
        assert_eq!(at(4, 256, "RPE"), Prediction::Between(20.0));
        assert_eq!(at(8, 64, "RPE"), Prediction::Between((200f64.sqrt() * 1e6).round() / 1e6));
        assert_eq!(at(8, 256, "RPE"), Prediction::Between((800f64.sqrt() * 1e6).round() / 1e6));
    }

    #[test]
    fn outside_of_the_map_the_nearest_line_is_named() {
        assert_eq!(at(4, 1 << 20, "RPE"), Prediction::Nearest(40.0, (4, 1024)));
        assert_eq!(at(2, 64, "RPE"), Prediction::Nearest(10.0, (4, 64)));
        assert_eq!(at(64, 64, "RPE"), Prediction::Nearest(20.0, (16, 64)));
        assert_eq!(at(4, 256, "MPI-PE"), Prediction::Nearest(20.0, (4, 64)));
        assert_eq!(at(4, 64, "RING"), Prediction::Unknown);
    }

    #[test]
    fn what_has_no_size_is_at_its_only_line() {
        let map = SelectionMap::parse(TEXT).unwrap();
        let choice = AlgorithmChoice::parse(CollectiveKind::Barrier, "RGM:3").unwrap();
        let barrier = predict(&map, CollectiveKind::Barrier, 4, 999, choice);
        assert_eq!(barrier, Prediction::Measured(5.0));
    }
}
