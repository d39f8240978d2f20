//! Protocols of accumulates: the cases for which each protocol is eligible, its cost, and the choice for a case. For the protocols
//! of puts and gets see [`crate::memory::protocol`].
//!
//! ```text
//!   only the target's own process reaches the elements:              target-assisted
//!   adapters update words of the window, and the element is a word:  adapters
//!   the origin holds an exclusive lock:                              alone, without exclusion
//!   processors see the elements:   one word: single ── else whole    both exclude each other (exclusion.rs)
//!   otherwise:                                                       guarded
//! ```
//! All origins of an element must choose protocols that exclude each other. So the choice depends on the window and on the
//! element's type and place. Operator, count and origin only affect the choice among protocols that exclude each other. The
//! cheapest of these protocols is chosen: an atomic for a single element, one exclusion for several elements.

use crate::memory::target_address::AtomicityDomain;
use weft_datatype::Basic;
use weft_fabric::{CacheDistance, CopyModel};

/// Way in which this process reaches memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sight {
    /// The memory is mapped in this process.
    Mapped,
    /// The fabric reads and writes the memory.
    Direct,
    /// Only the owner reaches the memory.
    TargetAssisted,
}

/// Properties of an accumulate on which the choice depends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccumulateKey {
    /// Number of elements at the target.
    pub elements: usize,
    /// True if the elements have no gaps. Pair types may have gaps.
    pub solid: bool,
    /// True if the size and the alignment of each element allow the processor to update the element atomically.
    pub word: bool,
    /// True if adapters can atomically update aligned elements of this type.
    pub adapter: bool,
    /// Way in which this process reaches the target's memory.
    pub sight: Sight,
    /// Agent that updates words of the target's memory: processors, adapters, or holders of the guard.
    pub domain: AtomicityDomain,
    /// True if this origin has locked the target exclusively.
    pub alone: bool,
}

/// Protocol of an accumulate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccumulateProtocol {
    /// The target's own process performs the operation.
    TargetAssisted,
    /// Atomics of adapters, one per word.
    Adapters,
    /// The elements are changed without an exclusion, because an exclusive lock keeps out other origins.
    Alone,
    /// One processor atomic.
    Single,
    /// One exclusion for the whole operation, and a vectorised reduction.
    Whole,
    /// The target's guard is held while the data are read, changed and written back.
    Guarded,
}

impl AccumulateProtocol {
    /// All protocols, for reports.
    pub const ALL: [AccumulateProtocol; 6] = [
        AccumulateProtocol::TargetAssisted,
        AccumulateProtocol::Adapters,
        AccumulateProtocol::Alone,
        AccumulateProtocol::Single,
        AccumulateProtocol::Whole,
        AccumulateProtocol::Guarded,
    ];

    /// Returns the name for reports, in lower case.
    pub fn name(self) -> &'static str {
        match self {
            AccumulateProtocol::TargetAssisted => "target-assisted",
            AccumulateProtocol::Adapters => "adapters",
            AccumulateProtocol::Alone => "alone",
            AccumulateProtocol::Single => "single",
            AccumulateProtocol::Whole => "whole",
            AccumulateProtocol::Guarded => "guarded",
        }
    }

    /// Returns the reason for the choice, in words.
    pub fn why(self) -> &'static str {
        match self {
            AccumulateProtocol::TargetAssisted => {
                "only the target's own process reaches its memory"
            }
            AccumulateProtocol::Adapters => {
                "nodes share the memory, and adapters update integers of 8 bytes at once"
            }
            AccumulateProtocol::Alone => "this origin holds the target's lock exclusively",
            AccumulateProtocol::Single => "one element that the processor updates at once",
            AccumulateProtocol::Whole => {
                "several elements: one exclusion is cheaper than an atomic for each, and keeps them together"
            }
            AccumulateProtocol::Guarded => {
                "not all origins see the memory, or its elements have gaps"
            }
        }
    }

    /// Tests whether the protocol is eligible for `case`. If not, the error gives the reason in words.
    pub fn eligible(self, case: &AccumulateKey) -> Result<(), &'static str> {
        let AccumulateKey { elements, solid, word, adapter, sight, domain, alone } = *case;
        let adapters = domain == AtomicityDomain::Adapters && adapter;
        let processors = sight == Sight::Mapped && domain == AtomicityDomain::Processors;
        match self {
            AccumulateProtocol::TargetAssisted if sight != Sight::TargetAssisted => {
                Err("the memory is reached from here")
            }
            AccumulateProtocol::Adapters if !adapters => Err("no adapter updates these words"),
            _ if self != AccumulateProtocol::TargetAssisted && sight == Sight::TargetAssisted => {
                Err("the memory cannot be reached from here")
            }
            AccumulateProtocol::Alone
            | AccumulateProtocol::Single
            | AccumulateProtocol::Whole
            | AccumulateProtocol::Guarded
                if adapters =>
            {
                Err("adapters update these words, and processors would not exclude them")
            }
            AccumulateProtocol::Alone if !alone => Err("the target is not locked exclusively"),
            AccumulateProtocol::Single | AccumulateProtocol::Whole if !processors => {
                Err("not all origins see the memory")
            }
            AccumulateProtocol::Single | AccumulateProtocol::Whole if !solid => {
                Err("the elements have gaps")
            }
            AccumulateProtocol::Single if elements != 1 || !word => Err("it is more than one word"),
            AccumulateProtocol::Guarded if processors && solid => {
                Err("the guard and the exclusion would not exclude each other")
            }
            _ => Ok(()),
        }
    }

    /// Returns the time in nanoseconds for `bytes` of a target on the same node, without contention. `distance` is the distance
    /// between the caches of the two processors. Returns `None` over a network, because the model covers only copies within a node.
    pub fn cost(self, model: &CopyModel, bytes: usize, distance: CacheDistance) -> Option<f64> {
        let line = model.line.at(distance);
        let reduce = model.fetch(bytes, distance) + model.reduce * bytes as f64;
        match self {
            AccumulateProtocol::Single | AccumulateProtocol::Alone => Some(line.max(reduce)),
            // The origin's announcement stays in the origin's cache. The cache line with the holder's word moves.
            AccumulateProtocol::Whole => Some(line + line.max(reduce)),
            // Three cache lines move: the ticket, its turn, and the data, which are read, combined and written back.
            AccumulateProtocol::Guarded => {
                Some(3.0 * line + reduce + model.rewrite(bytes, distance))
            }
            AccumulateProtocol::Adapters | AccumulateProtocol::TargetAssisted => None,
        }
    }
}

/// Returns true if elements of this type have no gaps.
pub(crate) fn is_solid(basic: Basic) -> bool {
    basic.pair().is_none() && basic.size() == basic.extent()
}

/// Returns the protocol for a case.
#[inline(always)]
pub fn choose(case: &AccumulateKey) -> AccumulateProtocol {
    let AccumulateKey { elements, solid, word, adapter, sight, domain, alone } = *case;
    match (sight, domain) {
        (Sight::TargetAssisted, _) => AccumulateProtocol::TargetAssisted,
        (_, AtomicityDomain::Adapters) if adapter => AccumulateProtocol::Adapters,
        _ if alone => AccumulateProtocol::Alone,
        (Sight::Mapped, AtomicityDomain::Processors) if solid => match elements == 1 && word {
            true => AccumulateProtocol::Single,
            false => AccumulateProtocol::Whole,
        },
        _ => AccumulateProtocol::Guarded,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INT: AccumulateKey = AccumulateKey {
        elements: 1,
        solid: true,
        word: true,
        adapter: false,
        sight: Sight::Mapped,
        domain: AtomicityDomain::Processors,
        alone: false,
    };

    #[test]
    fn the_choice_is_this_table() {
        use AtomicityDomain::{Adapters, Guarded, Processors};
        use Sight::{Direct, Mapped, TargetAssisted};
        let (long, odd) = (
            AccumulateKey { adapter: true, ..INT },
            AccumulateKey { word: false, adapter: true, ..INT },
        );
        let (ints, bytes) =
            (AccumulateKey { elements: 2, ..INT }, AccumulateKey { elements: 16, ..INT });
        let pair = AccumulateKey { solid: false, word: false, ..INT };
        #[rustfmt::skip]
        let table = [
            // columns: what, sight, domain; protocol if other origins share the window, and under an exclusive lock
            (INT,   Mapped,   Processors, AccumulateProtocol::Single,   AccumulateProtocol::Alone),
            (long,  Mapped,   Processors, AccumulateProtocol::Single,   AccumulateProtocol::Alone),
            (odd,   Mapped,   Processors, AccumulateProtocol::Whole,    AccumulateProtocol::Alone),
            (ints,  Mapped,   Processors, AccumulateProtocol::Whole,    AccumulateProtocol::Alone),
            (bytes, Mapped,   Processors, AccumulateProtocol::Whole,    AccumulateProtocol::Alone),
            (pair,  Mapped,   Processors, AccumulateProtocol::Guarded,  AccumulateProtocol::Alone),
            (INT,   Mapped,   Guarded,    AccumulateProtocol::Guarded,  AccumulateProtocol::Alone),
            (bytes, Direct, Guarded,    AccumulateProtocol::Guarded,  AccumulateProtocol::Alone),
            (long,  Direct, Adapters,   AccumulateProtocol::Adapters, AccumulateProtocol::Adapters),
            (long,  Mapped,   Adapters,   AccumulateProtocol::Adapters, AccumulateProtocol::Adapters),
            (INT,   Direct, Adapters,   AccumulateProtocol::Guarded,  AccumulateProtocol::Alone),
            (long,  TargetAssisted, Guarded,    AccumulateProtocol::TargetAssisted,   AccumulateProtocol::TargetAssisted),
            (bytes, TargetAssisted, Processors, AccumulateProtocol::TargetAssisted,   AccumulateProtocol::TargetAssisted),
        ];
        for (what, sight, domain, shared, exclusive) in table {
            let case = |alone| AccumulateKey { sight, domain, alone, ..what };
            let found = [false, true].map(|alone| choose(&case(alone)));
            assert_eq!(found, [shared, exclusive], "{what:?} {sight:?} {domain:?}");
            for alone in [false, true] {
                let case = case(alone);
                let chosen = choose(&case);
                assert_eq!(chosen.eligible(&case), Ok(()), "{chosen:?} {case:?}");
            }
        }
    }

    /// Checks that the chosen protocol is the cheapest of the eligible protocols of each case.
    #[test]
    fn the_choice_is_the_cheapest() {
        let model = CopyModel::GENERIC;
        for elements in [1, 2, 100, 1 << 20] {
            for alone in [false, true] {
                let case = AccumulateKey { elements, alone, ..INT };
                let cost = |way: AccumulateProtocol| {
                    way.cost(&model, 8 * elements, CacheDistance::Shared).unwrap()
                };
                let able =
                    AccumulateProtocol::ALL.into_iter().filter(|way| way.eligible(&case).is_ok());
                let best = able.map(cost).fold(f64::INFINITY, f64::min);
                assert_eq!(cost(choose(&case)), best, "{case:?}");
            }
        }
    }

    #[test]
    fn ways_that_meet_at_an_element_exclude_each_other() {
        // An element may be updated by operations of any number of elements, from any origin in the same domain.
        for domain in
            [AtomicityDomain::Guarded, AtomicityDomain::Processors, AtomicityDomain::Adapters]
        {
            for (word, adapter) in [(false, false), (true, false), (true, true)] {
                let of = |sight, elements| {
                    choose(&AccumulateKey { elements, word, adapter, sight, domain, ..INT })
                };
                let excludes = |way| match way {
                    AccumulateProtocol::Single | AccumulateProtocol::Whole => 0,
                    AccumulateProtocol::Guarded => 1,
                    AccumulateProtocol::Adapters => 2,
                    other => panic!("{other:?}"),
                };
                let sights: &[Sight] = match domain {
                    // Processors are the domain only if all ranks see the memory.
                    AtomicityDomain::Processors => &[Sight::Mapped],
                    _ => &[Sight::Mapped, Sight::Direct],
                };
                let mut found: Vec<_> = sights
                    .iter()
                    .flat_map(|&sight| [1, 2, 9].map(|n| excludes(of(sight, n))))
                    .collect();
                found.dedup();
                assert_eq!(found.len(), 1, "{domain:?} {word} {adapter}");
            }
        }
    }
}
