//! Description of a pattern, known without running it.

use crate::laps::LapReduction;
use weft_collective::{AlgorithmChoice, CollectiveKind};

/// An algorithm of a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PatternAlgorithm {
    /// Name in its source.
    pub name: &'static str,
    /// A few words about the algorithm, for lists and titles.
    pub about: &'static str,
    /// Algorithm that is requested for a collective operation; `None` if the library chooses.
    pub choice: Option<AlgorithmChoice>,
}

impl PatternAlgorithm {
    /// Returns an algorithm of a pattern that is not a collective operation.
    pub const fn new(name: &'static str, about: &'static str) -> PatternAlgorithm {
        PatternAlgorithm { name, about, choice: None }
    }

    /// Returns the name, with the parameter if the parameter is not the default.
    pub fn label(&self) -> String {
        self.choice.map_or(self.name.to_owned(), |choice| choice.to_string())
    }
}

/// The algorithm that the library chooses for a collective operation.
const AUTO: PatternAlgorithm = PatternAlgorithm::new("auto", "what the library would choose");

/// A pattern's description.
#[derive(Debug, Clone, Copy)]
pub struct PatternText {
    /// Name by which a [`PatternPlan`](crate::PatternPlan) selects the pattern, in lower case with hyphens.
    pub name: &'static str,
    /// Description in one line.
    pub what: &'static str,
    /// Algorithms of a pattern that is not a collective operation: at least one.
    pub own: &'static [PatternAlgorithm],
    /// Collective operation that the pattern runs. Its algorithms are listed in the catalogue.
    pub operation: Option<CollectiveKind>,
    /// Minimum number of ranks.
    pub least_ranks: usize,
    /// Payload in bytes: its minimum, and a number of which it must be a multiple. `None` if the pattern has no payload.
    pub payload: Option<(usize, usize)>,
    /// True if the pattern has a fan-in (a number of ranks that send to one rank).
    pub fans_in: bool,
    /// True if the pattern runs on the bare fabric, without messages and communicators.
    pub bare: bool,
    /// Figure that is computed from the repetitions, with its unit.
    pub measured: LapReduction,
    /// Returns the approximate number of messages, or writes, of a repetition on `ranks` ranks: a measure of the work to simulate
    /// it, and of the memory that its payload needs.
    pub messages: fn(ranks: usize) -> usize,
}

impl PatternText {
    /// Returns a description with common values: at least one rank, any payload, no own algorithms, and messages instead of the
    /// bare fabric.
    pub const fn new(name: &'static str, what: &'static str) -> PatternText {
        PatternText {
            name,
            what,
            own: &[],
            operation: None,
            least_ranks: 1,
            payload: Some((0, 1)),
            fans_in: false,
            bare: false,
            measured: LapReduction::Mean,
            messages: |ranks| ranks,
        }
    }

    /// Returns the description of a collective operation.
    pub(crate) const fn collective(operation: CollectiveKind, what: &'static str) -> PatternText {
        let name = operation.name();
        PatternText { operation: Some(operation), ..PatternText::new(name, what) }
    }

    /// Returns all algorithms, the default first.
    pub fn algorithms(&self) -> Vec<PatternAlgorithm> {
        let Some(operation) = self.operation else { return self.own.to_vec() };
        let listed = operation.algorithms().map(|a| PatternAlgorithm {
            name: a.name,
            about: a.about,
            choice: Some(a.usual()),
        });
        [AUTO].into_iter().chain(listed).collect()
    }

    /// Returns the algorithm with the name and parameter `text`. Case does not matter. The error lists all algorithms.
    pub fn algorithm(&self, text: &str) -> Result<PatternAlgorithm, String> {
        let all = self.algorithms();
        let same = |a: &PatternAlgorithm| a.name.eq_ignore_ascii_case(text);
        if let Some(&algorithm) = all.iter().find(|a| same(a)) {
            return Ok(algorithm);
        }
        if let (Some(operation), true) = (self.operation, text.contains(':')) {
            let choice = AlgorithmChoice::parse(operation, text)?;
            let (name, about) = (choice.algorithm.name, choice.algorithm.about);
            return Ok(PatternAlgorithm { name, about, choice: Some(choice) });
        }
        let known: Vec<_> = all.iter().map(|a| a.name).collect();
        Err(format!("no algorithm {text:?} for {}; known: {}", self.name, known.join(", ")))
    }
}

/// Returns ceil(log2 n), the number of rounds of a tree.
pub(crate) fn rounds(n: usize) -> usize {
    n.next_power_of_two().ilog2() as usize
}
