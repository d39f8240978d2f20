//! Catalogue of the algorithms, by name.
//!
//! A map ([`crate::SelectionMap`]) names the algorithm for every operation, number of processes and size. This list defines the
//! names that a map may use, and when an algorithm is eligible.

mod table;

use crate::algorithm::{Algorithm, AlgorithmChoice, AlgorithmParameter, Only};
use crate::operation::CollectiveKind;
pub use table::ALGORITHMS;

impl CollectiveKind {
    /// Returns the algorithms for this operation.
    pub fn algorithms(self) -> impl Iterator<Item = &'static Algorithm> {
        ALGORITHMS.iter().filter(move |a| a.operation == self)
    }
}

impl AlgorithmChoice {
    /// Parses a choice: `RGM`, or `RGM:7`, in upper or lower case. The error lists the known names.
    pub fn parse(operation: CollectiveKind, text: &str) -> Result<AlgorithmChoice, String> {
        let (name, parameter) = match text.trim().split_once(':') {
            Some((name, number)) => (name.trim(), Some(number.trim())),
            None => (text.trim(), None),
        };
        let mut known = operation.algorithms();
        let algorithm = known.find(|a| a.name.eq_ignore_ascii_case(name)).ok_or_else(|| {
            let known: Vec<_> = operation.algorithms().map(|a| a.name).collect();
            format!("no algorithm {name:?} for {operation}; known: {}", known.join(", "))
        })?;
        let Some(number) = parameter else { return Ok(algorithm.usual()) };
        let Some(range) = algorithm.parameter else {
            return Err(format!("{text:?}: {} has no parameter", algorithm.name));
        };
        let AlgorithmParameter { what, least, most, only, .. } = range;
        let fits = |&n: &usize| {
            (least..=most).contains(&n) && (only == Only::All || (n + 1).is_power_of_two())
        };
        let powers = if only == Only::All { "" } else { ", one less than a power of two" };
        let parameter = bytes(number).filter(fits).ok_or_else(|| {
            format!("{text:?}: the {what} of {} is {least} to {most}{powers}", algorithm.name)
        })?;
        Ok(AlgorithmChoice { algorithm, parameter })
    }
}

/// Parses a number, with K or M for powers of 1024.
fn bytes(text: &str) -> Option<usize> {
    let (digits, unit) = match text.as_bytes().last()? {
        b'k' | b'K' => (&text[..text.len() - 1], 1 << 10),
        b'm' | b'M' => (&text[..text.len() - 1], 1 << 20),
        _ => (text, 1),
    };
    digits.parse::<usize>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod times;
