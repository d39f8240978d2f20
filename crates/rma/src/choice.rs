//! How an operation reaches its data: one pure choice, of what all origins of an element find alike.
//!
//! ```text
//!   put, get      seen: copied ── direct: the fabric ── else served
//!   accumulate    the rank's own process alone reaches it: served
//!                 adapters update its words, and it is one of theirs: adapters
//!                 an exclusive lock is held: alone, as if there were no others
//!                 processors see it: one word: single ── else whole              both exclude each other (exclusion.rs)
//!                 else guarded
//! ```
//! Operator, count and origin choose only among ways that exclude each other.

use crate::place::Words;

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

/// What is done to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum What {
    Put,
    Get,
    Accumulate {
        /// Elements at the target.
        elements: usize,
        /// They have no gaps, as pair types may.
        solid: bool,
        /// The processor updates each of them at once: their size, and where they lie.
        word: bool,
        /// Adapters do, where they lie as they should.
        adapter: bool,
    },
}

/// An operation, as far as the choice depends on it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Case {
    pub what: What,
    pub sight: Sight,
    /// Who updates words of that memory.
    pub words: Words,
    /// The target is locked exclusively by this origin.
    pub alone: bool,
}

/// How it is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// This processor copies.
    Copied,
    /// The fabric writes or reads.
    Fabric,
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
    /// Why it is that one.
    pub fn why(self) -> &'static str {
        match self {
            Way::Copied => "this process sees the target's memory",
            Way::Fabric => "the fabric reaches the target's memory",
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
}

/// The one way for a case.
#[inline(always)]
pub fn way(case: &Case) -> Way {
    let What::Accumulate { elements, solid, word, adapter } = case.what else {
        return match case.sight {
            Sight::Seen => Way::Copied,
            Sight::Direct => Way::Fabric,
            Sight::Served => Way::Served,
        };
    };
    match (case.sight, case.words) {
        (Sight::Served, _) => Way::Served,
        (_, Words::Adapters) if adapter => Way::Adapters,
        _ if case.alone => Way::Alone,
        (Sight::Seen, Words::Processors) if solid => match elements == 1 && word {
            true => Way::Single,
            false => Way::Whole,
        },
        _ => Way::Guarded,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_choice_is_this_table() {
        use Sight::{Direct, Seen, Served};
        use Words::{Adapters, Guarded, Processors};
        let case = |what, sight, words, alone| Case { what, sight, words, alone };
        for words in [Guarded, Processors, Adapters] {
            for alone in [false, true] {
                for what in [What::Put, What::Get] {
                    let of = |sight| way(&case(what, sight, words, alone));
                    assert_eq!(
                        [Seen, Direct, Served].map(of),
                        [Way::Copied, Way::Fabric, Way::Served]
                    );
                }
            }
        }
        let acc =
            |elements, solid, word, adapter| What::Accumulate { elements, solid, word, adapter };
        let (int, long, odd) =
            (acc(1, true, true, false), acc(1, true, true, true), acc(1, true, false, true));
        let (ints, bytes, pair) =
            (acc(2, true, true, false), acc(16, true, true, false), acc(1, false, false, false));
        #[rustfmt::skip]
        let table = [
            // what, sight, words: to the rest of the window, and under an exclusive lock
            (int,   Seen,   Processors, Way::Single,   Way::Alone),
            (long,  Seen,   Processors, Way::Single,   Way::Alone),
            (odd,   Seen,   Processors, Way::Whole,    Way::Alone),
            (ints,  Seen,   Processors, Way::Whole,    Way::Alone),
            (bytes, Seen,   Processors, Way::Whole,    Way::Alone),
            (pair,  Seen,   Processors, Way::Guarded,  Way::Alone),
            (int,   Seen,   Guarded,    Way::Guarded,  Way::Alone),
            (bytes, Direct, Guarded,    Way::Guarded,  Way::Alone),
            (long,  Direct, Adapters,   Way::Adapters, Way::Adapters),
            (long,  Seen,   Adapters,   Way::Adapters, Way::Adapters),
            (int,   Direct, Adapters,   Way::Guarded,  Way::Alone),
            (long,  Served, Guarded,    Way::Served,   Way::Served),
            (bytes, Served, Processors, Way::Served,   Way::Served),
        ];
        for (what, sight, words, shared, exclusive) in table {
            let of = |alone| way(&case(what, sight, words, alone));
            assert_eq!((of(false), of(true)), (shared, exclusive), "{what:?} {sight:?} {words:?}");
            assert!(!shared.why().is_empty());
        }
    }

    #[test]
    fn ways_that_meet_at_an_element_exclude_each_other() {
        // An element is met by operations of any number of elements, by any origin that sees it as all others do.
        for words in [Words::Guarded, Words::Processors, Words::Adapters] {
            for (word, adapter) in [(false, false), (true, false), (true, true)] {
                let of = |sight, elements| {
                    let what = What::Accumulate { elements, solid: true, word, adapter };
                    way(&Case { what, sight, words, alone: false })
                };
                let domain = |way| match way {
                    Way::Single | Way::Whole => 0,
                    Way::Guarded => 1,
                    Way::Adapters => 2,
                    other => panic!("{other:?}"),
                };
                let sights: &[Sight] = match words {
                    // All see it, or it would not be theirs.
                    Words::Processors => &[Sight::Seen],
                    _ => &[Sight::Seen, Sight::Direct],
                };
                let mut found: Vec<_> = sights
                    .iter()
                    .flat_map(|&sight| [1, 2, 9].map(|n| domain(of(sight, n))))
                    .collect();
                found.dedup();
                assert_eq!(found.len(), 1, "{words:?} {word} {adapter}");
            }
        }
    }
}
