//! How an accumulate reaches its target's elements: for which cases each way is eligible, what it costs, and the one way for a
//! case. Puts and gets: [`crate::memory::protocol`].
//!
//! ```text
//!   the rank's own process alone reaches them: target-assisted
//!   adapters update the window's words, and it is one of theirs: adapters
//!   an exclusive lock is held: alone, as if there were no others
//!   processors see them: one word: single ── else whole                   both exclude each other (exclusion.rs)
//!   else guarded
//! ```
//! All origins of an element must find ways that exclude each other. So the window, the element's type and place say which of
//! these it is; operator, count and origin choose only among ways that do, and there the cheaper one is taken: an atomic for
//! one element, one exclusion for several.

use crate::memory::target_address::AtomicityDomain;
use weft_datatype::Basic;
use weft_fabric::{CacheDistance, CopyModel};

/// How this process reaches memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sight {
    /// It sees it.
    Mapped,
    /// The fabric reads and writes it.
    Direct,
    /// Only the owner does.
    TargetAssisted,
}

/// An accumulate, as far as the choice depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccumulateKey {
    /// Elements at the target.
    pub elements: usize,
    /// They have no gaps, as pair types may.
    pub solid: bool,
    /// The processor updates each of them at once: their size, and where they lie.
    pub word: bool,
    /// Adapters do, where they lie as they should.
    pub adapter: bool,
    /// Who can reach the target's memory at all.
    pub sight: Sight,
    /// Who updates words of that memory.
    pub domain: AtomicityDomain,
    /// The target is locked exclusively by this origin.
    pub alone: bool,
}

/// How it is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccumulateProtocol {
    /// The target's own process does it.
    TargetAssisted,
    /// Adapters' atomics, a word each.
    Adapters,
    /// Without regard to others.
    Alone,
    /// One processor atomic.
    Single,
    /// One exclusion for the whole operation, and a vectorised reduction.
    Whole,
    /// The target's guard, and the data read and written back.
    Guarded,
}

impl AccumulateProtocol {
    /// Each once, for reports that go through them.
    pub const ALL: [AccumulateProtocol; 6] = [
        AccumulateProtocol::TargetAssisted,
        AccumulateProtocol::Adapters,
        AccumulateProtocol::Alone,
        AccumulateProtocol::Single,
        AccumulateProtocol::Whole,
        AccumulateProtocol::Guarded,
    ];

    /// For reports, in lower case.
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

    /// Why it is that one.
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

    /// Why not, in words.
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

    /// Nanoseconds for `bytes` of a target at `distance` on the same node, nobody else at it; `None`: over a network, of which the
    /// model of copies knows nothing.
    pub fn cost(self, model: &CopyModel, bytes: usize, distance: CacheDistance) -> Option<f64> {
        let line = model.line.at(distance);
        let reduce = model.fetch(bytes, distance) + model.reduce * bytes as f64;
        match self {
            AccumulateProtocol::Single | AccumulateProtocol::Alone => Some(line.max(reduce)),
            // The origin's announcement stays in its own cache; the word of the holder comes and goes.
            AccumulateProtocol::Whole => Some(line + line.max(reduce)),
            // A ticket, its turn, and the data read, combined and written back.
            AccumulateProtocol::Guarded => {
                Some(3.0 * line + reduce + model.rewrite(bytes, distance))
            }
            AccumulateProtocol::Adapters | AccumulateProtocol::TargetAssisted => None,
        }
    }
}

/// Whether elements of this type have no gaps.
pub(crate) fn is_solid(basic: Basic) -> bool {
    basic.pair().is_none() && basic.size() == basic.extent()
}

/// The one way for a case.
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
            // what, sight, domain: to the rest of the window, and under an exclusive lock
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

    /// Of the ways that a case may go, the chosen one is the cheapest.
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
        // An element is met by operations of any number of elements, by any origin that sees it as all others do.
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
                    // All see it, or it would not be theirs.
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
