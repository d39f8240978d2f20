//! How an accumulate reaches its target's elements: for which cases each way is eligible, what it costs, and the one way for a
//! case. Puts and gets: [`crate::memory::protocol`].
//!
//! ```text
//!   the rank's own process alone reaches them: served
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
use weft_fabric::{CopyModel, Distance};

/// How this process reaches memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sight {
    /// It sees it.
    Seen,
    /// The fabric reads and writes it.
    Direct,
    /// Only the owner does.
    Served,
}

/// An accumulate, as far as the choice depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Case {
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
pub enum Way {
    /// The target's own process does it.
    Served,
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

impl Way {
    /// Each once, for reports that go through them.
    pub const ALL: [Way; 6] =
        [Way::Served, Way::Adapters, Way::Alone, Way::Single, Way::Whole, Way::Guarded];

    /// For reports, in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Way::Served => "served",
            Way::Adapters => "adapters",
            Way::Alone => "alone",
            Way::Single => "single",
            Way::Whole => "whole",
            Way::Guarded => "guarded",
        }
    }

    /// Why it is that one.
    pub fn why(self) -> &'static str {
        match self {
            Way::Served => "only the target's own process reaches its memory",
            Way::Adapters => {
                "nodes share the memory, and adapters update integers of 8 bytes at once"
            }
            Way::Alone => "this origin holds the target's lock exclusively",
            Way::Single => "one element that the processor updates at once",
            Way::Whole => {
                "several elements: one exclusion is cheaper than an atomic for each, and keeps them together"
            }
            Way::Guarded => "not all origins see the memory, or its elements have gaps",
        }
    }

    /// Why not, in words.
    pub fn eligible(self, case: &Case) -> Result<(), &'static str> {
        let Case { elements, solid, word, adapter, sight, domain, alone } = *case;
        let adapters = domain == AtomicityDomain::Adapters && adapter;
        let processors = sight == Sight::Seen && domain == AtomicityDomain::Processors;
        match self {
            Way::Served if sight != Sight::Served => Err("the memory is reached from here"),
            Way::Adapters if !adapters => Err("no adapter updates these words"),
            _ if self != Way::Served && sight == Sight::Served => {
                Err("the memory cannot be reached from here")
            }
            Way::Alone | Way::Single | Way::Whole | Way::Guarded if adapters => {
                Err("adapters update these words, and processors would not exclude them")
            }
            Way::Alone if !alone => Err("the target is not locked exclusively"),
            Way::Single | Way::Whole if !processors => Err("not all origins see the memory"),
            Way::Single | Way::Whole if !solid => Err("the elements have gaps"),
            Way::Single if elements != 1 || !word => Err("it is more than one word"),
            Way::Guarded if processors && solid => {
                Err("the guard and the exclusion would not exclude each other")
            }
            _ => Ok(()),
        }
    }

    /// Nanoseconds for `bytes` of a target at `distance` on the same node, nobody else at it; `None`: over a network, of which the
    /// model of copies knows nothing.
    pub fn cost(self, model: &CopyModel, bytes: usize, distance: Distance) -> Option<f64> {
        let line = model.line.at(distance);
        let reduce = model.fetch(bytes, distance) + model.reduce * bytes as f64;
        match self {
            Way::Single | Way::Alone => Some(line.max(reduce)),
            // The origin's announcement stays in its own cache; the word of the holder comes and goes.
            Way::Whole => Some(line + line.max(reduce)),
            // A ticket, its turn, and the data read, combined and written back.
            Way::Guarded => Some(3.0 * line + reduce + model.rewrite(bytes, distance)),
            Way::Adapters | Way::Served => None,
        }
    }
}

/// Whether elements of this type have no gaps.
pub(crate) fn is_solid(basic: Basic) -> bool {
    basic.pair().is_none() && basic.size() == basic.extent()
}

/// The one way for a case.
#[inline(always)]
pub fn way(case: &Case) -> Way {
    let Case { elements, solid, word, adapter, sight, domain, alone } = *case;
    match (sight, domain) {
        (Sight::Served, _) => Way::Served,
        (_, AtomicityDomain::Adapters) if adapter => Way::Adapters,
        _ if alone => Way::Alone,
        (Sight::Seen, AtomicityDomain::Processors) if solid => match elements == 1 && word {
            true => Way::Single,
            false => Way::Whole,
        },
        _ => Way::Guarded,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const INT: Case = Case {
        elements: 1,
        solid: true,
        word: true,
        adapter: false,
        sight: Sight::Seen,
        domain: AtomicityDomain::Processors,
        alone: false,
    };

    #[test]
    fn the_choice_is_this_table() {
        use AtomicityDomain::{Adapters, Guarded, Processors};
        use Sight::{Direct, Seen, Served};
        let (long, odd) =
            (Case { adapter: true, ..INT }, Case { word: false, adapter: true, ..INT });
        let (ints, bytes) = (Case { elements: 2, ..INT }, Case { elements: 16, ..INT });
        let pair = Case { solid: false, word: false, ..INT };
        #[rustfmt::skip]
        let table = [
            // what, sight, domain: to the rest of the window, and under an exclusive lock
            (INT,   Seen,   Processors, Way::Single,   Way::Alone),
            (long,  Seen,   Processors, Way::Single,   Way::Alone),
            (odd,   Seen,   Processors, Way::Whole,    Way::Alone),
            (ints,  Seen,   Processors, Way::Whole,    Way::Alone),
            (bytes, Seen,   Processors, Way::Whole,    Way::Alone),
            (pair,  Seen,   Processors, Way::Guarded,  Way::Alone),
            (INT,   Seen,   Guarded,    Way::Guarded,  Way::Alone),
            (bytes, Direct, Guarded,    Way::Guarded,  Way::Alone),
            (long,  Direct, Adapters,   Way::Adapters, Way::Adapters),
            (long,  Seen,   Adapters,   Way::Adapters, Way::Adapters),
            (INT,   Direct, Adapters,   Way::Guarded,  Way::Alone),
            (long,  Served, Guarded,    Way::Served,   Way::Served),
            (bytes, Served, Processors, Way::Served,   Way::Served),
        ];
        for (what, sight, domain, shared, exclusive) in table {
            let case = |alone| Case { sight, domain, alone, ..what };
            let found = [false, true].map(|alone| way(&case(alone)));
            assert_eq!(found, [shared, exclusive], "{what:?} {sight:?} {domain:?}");
            for alone in [false, true] {
                let case = case(alone);
                let chosen = way(&case);
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
                let case = Case { elements, alone, ..INT };
                let cost = |way: Way| way.cost(&model, 8 * elements, Distance::Shared).unwrap();
                let able = Way::ALL.into_iter().filter(|way| way.eligible(&case).is_ok());
                let best = able.map(cost).fold(f64::INFINITY, f64::min);
                assert_eq!(cost(way(&case)), best, "{case:?}");
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
                let of =
                    |sight, elements| way(&Case { elements, word, adapter, sight, domain, ..INT });
                let excludes = |way| match way {
                    Way::Single | Way::Whole => 0,
                    Way::Guarded => 1,
                    Way::Adapters => 2,
                    other => panic!("{other:?}"),
                };
                let sights: &[Sight] = match domain {
                    // All see it, or it would not be theirs.
                    AtomicityDomain::Processors => &[Sight::Seen],
                    _ => &[Sight::Seen, Sight::Direct],
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
