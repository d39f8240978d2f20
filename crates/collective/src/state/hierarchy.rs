//! Hierarchy of a communicator: the ranks of this rank's group, the leaders of all groups ([`crate::Members`] has the picture), and
//! a group of all ranks. Groups are nodes or, among the ranks of one node, caches, NUMA domains or sockets. Compositions of whole
//! operations use the hierarchy.
//!
//! Each level has its own matching contexts, slots and areas. Every algorithm of the catalogue can run in a level, also a
//! composition: the leaders of caches form groups by their NUMA domains, and so on. Compositions are the same for all levels, and
//! each level selects its algorithms by itself.
//!
//! ```text
//!   context    communicator and operation | level and part (4 bits) | whole (1 bit)
//! ```
//! An operation has at most one part of each kind at each level of the machine, so level and part name it.

use crate::algorithm::AlgorithmChoice;
use crate::members::{Layout, Members};
use crate::operation::CollectiveKind;
use crate::selection_key::{CallKey, RankPlacement, SelectionKey};
use crate::{CollectiveState, CommView, Reception, Selection, Via};
use std::cell::{OnceCell, RefCell};
use std::rc::Rc;
use weft_fabric::copies::TopologyLevel;
use weft_fabric::{CopyModel, Fabric};
use weft_p2p::MatchingContext;

/// Lowest bit of the number of a level and its part. No context of a communicator has this bit or a higher one, except for the
/// highest bit.
pub const LEVEL_BITS_FROM: u32 = 58;
/// Bits of the number of a level and its part.
const PARTS: u64 = 0b1111 << LEVEL_BITS_FROM;
/// Bit in the contexts of all ranks of a communicator as a level.
const WHOLE: u64 = 1 << 62;
/// All bits that contexts of levels have in addition to the bits of their communicator's context.
pub const LEVELS: u64 = PARTS | WHOLE;

/// Part of a hierarchy that a level is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum HierarchyPart {
    Group,
    Leaders,
    /// The ranks at the same place in all groups.
    Column,
    Whole,
}

/// Returns the context of a part of a hierarchy whose groups are those of `level`. `context` is the context of all its ranks.
fn context(context: u64, level: TopologyLevel, part: HierarchyPart) -> u64 {
    let number = 1 + 3 * (level.index() - TopologyLevel::Cache.index()) as u64;
    let part = match part {
        HierarchyPart::Group => number,
        HierarchyPart::Leaders => number + 1,
        HierarchyPart::Column => number + 2,
        HierarchyPart::Whole => return context | WHOLE,
    };
    context & !PARTS | part << LEVEL_BITS_FROM
}

/// A choice, and the call for which it was made.
struct LevelChoice {
    call: LevelCall,
    /// `None`: no algorithm does the steps before and after other work in one.
    choice: Option<AlgorithmChoice>,
}

/// A call of a level, as far as choices depend on it.
#[derive(Clone, Copy, PartialEq, Eq)]
struct LevelCall {
    operation: CollectiveKind,
    key: CallKey,
    /// True if rank 0 does other work within the operation.
    is_around: bool,
}

/// A level, as one of its ranks sees it.
pub struct Level<F: Fabric> {
    members: Rc<Members>,
    me: usize,
    /// Level of the groups, and the part of their hierarchy.
    level: TopologyLevel,
    part: HierarchyPart,
    site: RankPlacement,
    /// The last choice for each operation. A program that repeats a call does not select again.
    recent: RefCell<Vec<LevelChoice>>,
    pub(crate) state: CollectiveState<F>,
}

/// All levels of a communicator.
pub struct Hierarchy<F: Fabric> {
    /// Groups of the communicator, and their ranks.
    pub layout: Rc<Layout>,
    /// All ranks, in the order of the communicator.
    pub whole: Level<F>,
    /// The ranks of this rank's group.
    pub group: Level<F>,
    /// The leaders of all groups; only a leader has this level.
    pub leaders: Option<Level<F>>,
    /// The ranks at this rank's place in all groups, made when first needed.
    column: OnceCell<Level<F>>,
}

impl<F: Fabric> Hierarchy<F> {
    pub(crate) fn new(link: &CommView<F>, state: &CollectiveState<F>) -> Hierarchy<F> {
        let fabric = link.endpoint.fabric();
        let layout = link.members.layout(fabric);
        let (group, place) = layout.places[link.rank];
        let level = |members, me, part| Level::new(fabric, state, layout.level, part, members, me);
        let own = level(layout.local(&link.members, group), place, HierarchyPart::Group);
        let leaders = || level(layout.leaders(&link.members), group, HierarchyPart::Leaders);
        let leaders = (place == 0).then(leaders);
        let whole = level(link.members.clone(), link.rank, HierarchyPart::Whole);
        Hierarchy { layout, whole, group: own, leaders, column: OnceCell::new() }
    }

    /// Returns the ranks at this rank's place in all groups, which have the same number of ranks.
    pub(crate) fn column(&self, link: &CommView<F>) -> &Level<F> {
        self.column.get_or_init(|| {
            let (group, place) = self.layout.places[link.rank];
            let members = self.layout.column(&link.members, place);
            let (fabric, state) = (link.endpoint.fabric(), &self.whole.state);
            Level::new(fabric, state, self.layout.level, HierarchyPart::Column, members, group)
        })
    }

    /// Returns the states whose multicast groups must end.
    pub(crate) fn states(&self) -> impl Iterator<Item = &CollectiveState<F>> {
        [Some(&self.whole), Some(&self.group), self.leaders.as_ref(), self.column.get()]
            .into_iter()
            .flatten()
            .map(|level| &level.state)
    }
}

/// View of a level for one call, and the algorithm that serves the call.
pub(crate) struct LevelView<F: Fabric> {
    pub link: CommView<F>,
    pub choice: AlgorithmChoice,
}

impl<F: Fabric> Level<F> {
    /// Makes a part of a hierarchy of the communicator with `state`. `me`: this rank's index among `members`.
    fn new(
        fabric: &F,
        state: &CollectiveState<F>,
        level: TopologyLevel,
        part: HierarchyPart,
        members: Rc<Members>,
        me: usize,
    ) -> Level<F> {
        let mut site = state.placement(&members, fabric);
        if part != HierarchyPart::Whole {
            site.levels = site.levels.as_part();
        }
        // Within a node, shared memory is used instead of multicast, because datagrams would also reach other nodes.
        if part == HierarchyPart::Group || level != TopologyLevel::Node {
            site.multicast = 0;
        }
        Level { members, me, level, part, site, recent: RefCell::default(), state: state.another() }
    }

    /// Selects the algorithm of a call, and returns the view that carries the call.
    pub(crate) fn prepare(
        &self,
        link: &CommView<F>,
        operation: CollectiveKind,
        call: CallKey,
    ) -> LevelView<F> {
        let view = CommView {
            endpoint: link.endpoint.clone(),
            members: self.members.clone(),
            rank: self.me,
            context: MatchingContext(context(link.context.0, self.level, self.part)),
            tag: link.tag,
            via: Via::Messages,
            reception: Reception::Marks,
        };
        let call = LevelCall { operation, key: call, is_around: false };
        let choice = self.choose(link, call, |selection, case, model| {
            Some(selection.choose_in_level(operation, case, model))
        });
        let choice = choice.expect("an algorithm serves every call");
        LevelView { link: view.carried(choice), choice }
    }

    /// Selects the algorithm of an operation in which rank 0 does other work, and returns the view that carries the call. Returns
    /// `None` if a step before and a step after the work are cheaper, or if the level is a node, whose ranks may take turns on
    /// processors.
    pub(crate) fn prepare_around(
        &self,
        link: &CommView<F>,
        operation: CollectiveKind,
        key: CallKey,
    ) -> Option<LevelView<F>> {
        if self.level == TopologyLevel::Node {
            return None;
        }
        let call = LevelCall { operation, key, is_around: true };
        let choice = self.choose(link, call, |selection, case, model| {
            selection.around(operation, case, model).map(|around| around.choice)
        });
        let view = self.prepare(link, operation, key);
        choice.map(|choice| LevelView { choice, ..view })
    }

    /// Returns true if the ranks of the level may use memory that they share.
    pub(crate) fn shares_memory(&self) -> bool {
        self.site.same_node
    }

    /// Returns the algorithm that `find` selects. The rules of a level do not change, so the last choice holds for the same call.
    fn choose(
        &self,
        link: &CommView<F>,
        call: LevelCall,
        find: impl FnOnce(&Selection, &SelectionKey, &CopyModel) -> Option<AlgorithmChoice>,
    ) -> Option<AlgorithmChoice> {
        let mut recent = self.recent.borrow_mut();
        let alike = |last: &LevelChoice| {
            last.call.operation == call.operation && last.call.is_around == call.is_around
        };
        let last = recent.iter().position(alike);
        if let Some(last) = last.map(|at| &recent[at]).filter(|last| last.call == call) {
            return last.choice;
        }
        // Steps of compositions may overlap, and the facts that ranks exchange may change between the selections of two ranks. So
        // `site` contains no such facts.
        let case = call.key.among(self.members.len(), self.site);
        let model = self.state.area.model(link.endpoint.fabric());
        let choice = find(&self.state.selection(), &case, model);
        let made = LevelChoice { call, choice };
        match last {
            Some(at) => recent[at] = made,
            None => recent.push(made),
        }
        choice
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn each_part_of_each_level_has_a_context_of_its_own() {
        let (mut all, own) = (HashSet::new(), 5 << 1 | 1);
        let whole = context(own, TopologyLevel::Node, HierarchyPart::Whole);
        for above in [own, whole] {
            assert!(all.insert(above));
            // From the outermost level to the innermost, and back over the leaders.
            let mut members = context(above, TopologyLevel::Node, HierarchyPart::Group);
            assert!(all.insert(members));
            assert!(all.insert(context(above, TopologyLevel::Node, HierarchyPart::Leaders)));
            for level in [TopologyLevel::Cache, TopologyLevel::Numa, TopologyLevel::Socket] {
                assert!(all.insert(context(members, level, HierarchyPart::Group)));
                assert!(all.insert(context(members, level, HierarchyPart::Column)));
                members = context(members, level, HierarchyPart::Leaders);
                assert!(all.insert(members));
            }
        }
        for context in all {
            assert_eq!(context & !LEVELS, own);
        }
    }
}
