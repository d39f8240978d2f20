//! Tables of choices by size for each kind of peer. The tables are made once, and are consulted for every message that is not
//! short.
//!
//! For each message, its size is compared with the few limits of a [`Ranges`]. No cost is computed per message. There is a table
//! for each distance of the caches. A message uses the table of the distance that is observed now.

use super::{
    Locality, MessageCase, MessageProtocol, PeerPath, TransferPattern, choose, choose_to_fetch,
};
use std::cell::OnceCell;
use weft_fabric::{CacheDistance, CopyModel};

/// Maximum size for which choices are computed, in bytes. The choice for this size also holds for larger payloads, because no cache
/// is large enough for such payloads.
const LARGEST: usize = 1 << 28;

/// Minimum duration of a copy for which a helper is woken, as a multiple of the duration of a context switch.
const SWITCHES: f64 = 10.0;

/// Protocols by size, ascending: each holds for sizes up to and including its limit in bytes, the last for all larger sizes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ranges(Box<[(usize, MessageProtocol)]>);

impl Ranges {
    /// Computes the ranges of `best`, the choice for each size.
    pub fn of(
        model: &CopyModel,
        path: PeerPath,
        pattern: TransferPattern,
        best: fn(&CopyModel, &MessageCase) -> MessageProtocol,
    ) -> Ranges {
        let steps = [path.eager_max(), path.staging];
        Ranges::new(&steps, |bytes| best(model, &MessageCase { bytes, pattern, path }))
    }

    /// Computes the ranges of `best`. The choice may change at `steps`, and at most once between two neighbouring powers of two.
    fn new(steps: &[usize], best: impl Fn(usize) -> MessageProtocol) -> Ranges {
        let powers = (0..=LARGEST.ilog2()).map(|power| 1 << power);
        let mut sizes: Vec<usize> = powers.collect();
        let around = steps.iter().flat_map(|&step| [step, step + 1]);
        sizes.extend(around.filter(|size| (1..LARGEST).contains(size)));
        sizes.sort_unstable();
        let mut range: Vec<(usize, MessageProtocol)> = Vec::new();
        let mut below = (1, best(1));
        for size in sizes {
            let next = best(size);
            while next != below.1 {
                // Bisection between two sizes: finds the largest size for which the choice of the lower size is still the best.
                let (mut low, mut high) = (below.0, size);
                while high - low > 1 {
                    let middle = low + (high - low) / 2;
                    match best(middle) == below.1 {
                        true => low = middle,
                        false => high = middle,
                    }
                }
                range.push((low, below.1));
                below = (high, best(high));
            }
            below = (size, next);
        }
        range.push((usize::MAX, below.1));
        Ranges(range.into())
    }

    pub fn at(&self, bytes: usize) -> MessageProtocol {
        let step = self.0.iter().find(|&&(most, _)| bytes <= most);
        step.expect("the last holds for all").1
    }

    pub fn steps(&self) -> &[(usize, MessageProtocol)] {
        &self.0
    }
}

/// Choices at one distance of the caches. Each [`Ranges`] is made at its first use: most programs use few of the patterns, and a
/// simulation has tens of thousands of ranks.
#[derive(Debug)]
pub(crate) struct ProtocolTable {
    /// Maximum payload, in bytes, that goes eagerly whatever the pattern.
    pub eager: u32,
    ranges: OnceCell<Box<AllRanges>>,
}

/// Ranges of all patterns.
#[derive(Debug)]
struct AllRanges {
    /// Maximum staged payload that does not wake the receiver's helper, in bytes.
    quiet: usize,
    staged: RangesByPattern,
    unstaged: RangesByPattern,
    fetched: RangesByPattern,
}

/// Ranges for each pattern, made when first used.
type RangesByPattern = [OnceCell<Ranges>; TransferPattern::ALL.len()];

/// Choices for messages to and from a peer, at one distance of the caches.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PeerChoices<'a> {
    ranges: &'a AllRanges,
    model: &'a CopyModel,
    path: PeerPath,
}

impl ProtocolTable {
    pub fn new(model: &CopyModel, path: PeerPath) -> ProtocolTable {
        ProtocolTable { eager: sent_at_once(model, path) as u32, ranges: OnceCell::new() }
    }

    /// Returns the choices. `model` and `path` must be the arguments of `new`.
    pub fn choices<'a>(&'a self, model: &'a CopyModel, path: PeerPath) -> PeerChoices<'a> {
        let ranges = self.ranges.get_or_init(|| {
            let quiet = worth_a_helper(model, path.distance);
            let (staged, unstaged, fetched) = Default::default();
            Box::new(AllRanges { quiet, staged, unstaged, fetched })
        });
        PeerChoices { ranges, model, path }
    }
}

/// Returns the maximum size, in bytes, up to which all patterns go eagerly.
fn sent_at_once(model: &CopyModel, path: PeerPath) -> usize {
    let every = |bytes: usize| {
        TransferPattern::ALL.iter().all(|&pattern| {
            choose(model, &MessageCase { bytes, pattern, path }) == MessageProtocol::Eager
        })
    };
    // A synchronous message also goes eagerly as long as the eager protocol is the cheapest.
    let mut high = 1;
    while high < LARGEST && every(high) {
        high *= 2;
    }
    let mut low = high / 2;
    while high - low > 1 {
        let middle = low + (high - low) / 2;
        match every(middle) {
            true => low = middle,
            false => high = middle,
        }
    }
    low
}

/// Returns the minimum payload, in bytes, whose copy takes so long that the receiver's helper is woken for it. The helper copies
/// while the program computes.
fn worth_a_helper(model: &CopyModel, distance: CacheDistance) -> usize {
    let time = SWITCHES * model.switch;
    (1..64)
        .map(|power| 1usize << power)
        .find(|&len| model.fetch(len, distance) > time)
        .unwrap_or(usize::MAX)
}

impl PeerChoices<'_> {
    /// Returns the path for which the choices hold.
    pub fn path(&self) -> &PeerPath {
        &self.path
    }

    /// Returns the maximum staged payload that does not wake the receiver's helper, in bytes.
    pub fn quiet(&self) -> usize {
        self.ranges.quiet
    }

    /// Returns the sender's choice.
    pub fn choose(&self, pattern: TransferPattern, bytes: usize) -> MessageProtocol {
        let ranges = &self.ranges.staged[pattern as usize];
        ranges.get_or_init(|| Ranges::of(self.model, self.path, pattern, choose)).at(bytes)
    }

    /// Returns the sender's choice while there is no place to stage the payload.
    pub fn choose_unstaged(&self, pattern: TransferPattern, bytes: usize) -> MessageProtocol {
        let path = PeerPath { staging: 0, ..self.path };
        let ranges = &self.ranges.unstaged[pattern as usize];
        ranges.get_or_init(|| Ranges::of(self.model, path, pattern, choose)).at(bytes)
    }

    /// Returns the receiver's choice for an offered payload that the receiver can read.
    pub fn choose_to_fetch(&self, pattern: TransferPattern, bytes: usize) -> MessageProtocol {
        let ranges = &self.ranges.fetched[pattern as usize];
        ranges.get_or_init(|| Ranges::of(self.model, self.path, pattern, choose_to_fetch)).at(bytes)
    }
}

/// Tables for one kind of path. Paths of the same kind differ at most in their distance.
#[derive(Debug)]
struct PathTables {
    path: PeerPath,
    shared: ProtocolTable,
    apart: ProtocolTable,
}

/// Tables of all kinds of peers with which this process has communicated.
#[derive(Debug, Default)]
pub(crate) struct Tables {
    made: Vec<PathTables>,
}

impl Tables {
    /// Returns the number of the tables for `path`, whatever its distance.
    pub fn number(&mut self, model: &CopyModel, path: PeerPath) -> u32 {
        let path = PeerPath { distance: CacheDistance::Shared, ..path };
        let known = self.made.iter().position(|kind| kind.path == path);
        let number = known.unwrap_or_else(|| {
            let table = |distance| ProtocolTable::new(model, PeerPath { distance, ..path });
            self.made.reserve_exact(1);
            let (shared, apart) = (table(CacheDistance::Shared), table(CacheDistance::Apart));
            self.made.push(PathTables { path, shared, apart });
            self.made.len() - 1
        });
        number as u32
    }

    /// Returns the maximum eager payload, in bytes, in table `number`.
    pub fn eager(&self, number: u32, distance: CacheDistance) -> u32 {
        self.at(number, distance).1.eager
    }

    /// Returns the choices of table `number`. `model` must be the argument of [`Tables::number`].
    pub fn get<'a>(
        &'a self,
        model: &'a CopyModel,
        number: u32,
        distance: CacheDistance,
    ) -> PeerChoices<'a> {
        let (path, table) = self.at(number, distance);
        table.choices(model, path)
    }

    fn at(&self, number: u32, distance: CacheDistance) -> (PeerPath, &ProtocolTable) {
        let kind = &self.made[number as usize];
        // The distance makes no difference if the peer is not on this node.
        match (kind.path.place, distance) {
            (Locality::SameNode, CacheDistance::Apart) => {
                (PeerPath { distance, ..kind.path }, &kind.apart)
            }
            _ => (kind.path, &kind.shared),
        }
    }
}
