//! What is known of a pattern without running it.

use crate::laps::Measured;

/// One way to do a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Algorithm {
    /// As its source calls it.
    pub name: &'static str,
    pub about: &'static str,
}

/// A pattern's description.
#[derive(Debug, Clone, Copy)]
pub struct About {
    pub name: &'static str,
    /// One line.
    pub what: &'static str,
    /// At least one. The first [`usual`](Self::usual) run if none is named.
    pub algorithms: &'static [Algorithm],
    pub usual: usize,
    /// Fewest ranks.
    pub least_ranks: usize,
    /// Payload in bytes: fewest, and what it must be a multiple of. `None`: it has none.
    pub payload: Option<(usize, usize)>,
    /// It takes a fan-in.
    pub fans_in: bool,
    /// It runs on the bare fabric, without messages and communicators.
    pub bare: bool,
    pub measured: Measured,
    /// Messages, or writes, that a repetition on so many ranks takes, about: how much work it is to
    /// simulate, and how much memory its payload needs.
    pub messages: fn(ranks: usize) -> usize,
}

impl About {
    /// What most have in common: two ranks or more, any payload, one algorithm, messages.
    pub const fn new(name: &'static str, what: &'static str) -> About {
        About {
            name,
            what,
            algorithms: &[],
            usual: 1,
            least_ranks: 1,
            payload: Some((0, 1)),
            fans_in: false,
            bare: false,
            measured: Measured::Mean,
            messages: |ranks| ranks,
        }
    }

    /// The algorithm of this name, in any case of letters.
    pub fn algorithm(&self, name: &str) -> Option<&'static Algorithm> {
        self.algorithms.iter().find(|a| a.name.eq_ignore_ascii_case(name))
    }

    /// The names of its algorithms, for errors and lists.
    pub fn algorithm_names(&self) -> String {
        self.algorithms.iter().map(|a| a.name).collect::<Vec<_>>().join(", ")
    }
}

/// ceil(log2 n): rounds of a tree.
pub(crate) fn rounds(n: usize) -> usize {
    n.next_power_of_two().ilog2() as usize
}
