//! Hierarchy of a communicator whose ranks are on several nodes: the ranks of this node, one leader of each node
//! ([`crate::Members`] has the picture), and a group of all ranks. Compositions of whole operations use the hierarchy.
//!
//! Each level is a group with its own matching contexts, slots and areas. Every algorithm of the catalogue can run in a level.
//! Two-level algorithms are compositions, and each level selects its algorithms by itself.

use crate::algorithm::AlgorithmChoice;
use crate::members::{Layout, Members};
use crate::operation::CollectiveKind;
use crate::selection_key::{CallKey, RankPlacement};
use crate::{CollectiveState, CommView, Reception, Via};
use std::rc::Rc;
use weft_fabric::Fabric;
use weft_p2p::MatchingContext;

/// Bits that are only set in contexts of levels, not in contexts of communicators.
const NODE: u64 = 1 << 62;
const LEADERS: u64 = 1 << 61;
const WHOLE: u64 = 1 << 60;
/// All bits that contexts of levels have in addition to the bits of their communicator's context.
pub const LEVELS: u64 = NODE | LEADERS | WHOLE;

/// A level, as one of its ranks sees it.
pub struct Level<F: Fabric> {
    members: Rc<Members>,
    me: usize,
    bit: u64,
    site: RankPlacement,
    pub(crate) state: CollectiveState<F>,
}

/// All levels of a communicator.
pub struct Hierarchy<F: Fabric> {
    /// Nodes of the communicator, and their ranks.
    pub layout: Rc<Layout>,
    /// All ranks, in the order of the communicator.
    pub whole: Level<F>,
    /// The ranks of this rank's node.
    pub node: Level<F>,
    /// The leaders of all nodes; only a leader has this level.
    pub leaders: Option<Level<F>>,
}

impl<F: Fabric> Hierarchy<F> {
    pub(crate) fn new(link: &CommView<F>, state: &CollectiveState<F>) -> Hierarchy<F> {
        let fabric = link.endpoint.fabric();
        let layout = link.members.layout(fabric);
        let (node, place) = layout.places[link.rank];
        let level = |members: Rc<Members>, me, bit| {
            let mut site = state.placement(&members, fabric);
            // Within a node, shared memory is used instead of multicast, because datagrams would also reach other nodes.
            if bit == NODE {
                site.multicast = 0;
            }
            Level { members, me, bit, site, state: state.another() }
        };
        let own = level(layout.local(&link.members, node), place, NODE);
        let leaders = (place == 0).then(|| level(layout.leaders(&link.members), node, LEADERS));
        let whole = level(link.members.clone(), link.rank, WHOLE);
        Hierarchy { layout, whole, node: own, leaders }
    }

    /// Returns the states whose multicast groups must end.
    pub(crate) fn states(&self) -> impl Iterator<Item = &CollectiveState<F>> {
        [Some(&self.whole), Some(&self.node), self.leaders.as_ref()]
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
            context: MatchingContext(link.context.0 | self.bit),
            tag: link.tag,
            via: Via::Messages,
            reception: Reception::Marks,
        };
        // Steps of compositions may overlap, and the facts that ranks exchange may change between the selections of two ranks. So
        // `site` contains no such facts.
        let case = call.among(self.members.len(), self.site);
        let model = self.state.area.model(link.endpoint.fabric());
        let choice = self.state.selection().choose(operation, &case, model).choice;
        LevelView { link: view.carried(choice), choice }
    }
}
