//! What is known of a pattern without running it.

use crate::laps::LapReduction;
use weft_collective::{AlgorithmChoice, CollectiveKind};

/// One way to do a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PatternAlgorithm {
    /// As its source calls it.
    pub name: &'static str,
    /// What it does, in a few words for lists and titles.
    pub about: &'static str,
    /// What a collective operation is asked for; `None`: what it would take by itself.
    pub choice: Option<AlgorithmChoice>,
}

impl PatternAlgorithm {
    /// Of a pattern that is no collective operation.
    pub const fn new(name: &'static str, about: &'static str) -> PatternAlgorithm {
        PatternAlgorithm { name, about, choice: None }
    }

    /// Name and parameter, if it is not the usual one.
    pub fn label(&self) -> String {
        self.choice.map_or(self.name.to_owned(), |choice| choice.to_string())
    }
}

/// What a collective operation takes by itself.
const AUTO: PatternAlgorithm = PatternAlgorithm::new("auto", "what the library would choose");

/// A pattern's description.
#[derive(Debug, Clone, Copy)]
pub struct PatternText {
    /// What a [`PatternPlan`](crate::PatternPlan) asks for it by, in lower case with hyphens.
    pub name: &'static str,
    /// One line.
    pub what: &'static str,
    /// Its algorithms, if it is no collective operation: at least one.
    pub own: &'static [PatternAlgorithm],
    /// The collective operation that it is; its algorithms are those of the catalogue.
    pub operation: Option<CollectiveKind>,
    /// Fewest ranks.
    pub least_ranks: usize,
    /// Payload in bytes: fewest, and what it must be a multiple of. `None`: it has none.
    pub payload: Option<(usize, usize)>,
    /// It takes a fan-in.
    pub fans_in: bool,
    /// It runs on the bare fabric, without messages and communicators.
    pub bare: bool,
    /// Which figure, in which unit, its repetitions make.
    pub measured: LapReduction,
    /// Messages, or writes, that a repetition on so many ranks takes, about: how much work it is to
    /// simulate, and how much memory its payload needs.
    pub messages: fn(ranks: usize) -> usize,
}

impl PatternText {
    /// What most have in common: two ranks or more, any payload, one algorithm, messages.
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

    /// A collective operation.
    pub(crate) const fn collective(operation: CollectiveKind, what: &'static str) -> PatternText {
        let name = operation.name();
        PatternText { operation: Some(operation), ..PatternText::new(name, what) }
    }

    /// The algorithms there are, the usual one first.
    pub fn algorithms(&self) -> Vec<PatternAlgorithm> {
        let Some(operation) = self.operation else { return self.own.to_vec() };
        let listed = operation.algorithms().map(|a| PatternAlgorithm {
            name: a.name,
            about: a.about,
            choice: Some(a.usual()),
        });
        [AUTO].into_iter().chain(listed).collect()
    }

    /// The algorithm of this name, with its parameter, in any case of letters. The error lists those
    /// there are.
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

/// ceil(log2 n): rounds of a tree.
pub(crate) fn rounds(n: usize) -> usize {
    n.next_power_of_two().ilog2() as usize
}
