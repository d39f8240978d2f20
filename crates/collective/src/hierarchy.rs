//! Hierarchy of a communicator whose ranks are on several nodes: the ranks of this node, and one leader of
//! each node ([`crate::Members`] has the picture); and all ranks once more, for compositions of whole operations.
//!
//! A level is a group with matching spaces, slots and areas of its own, in which every algorithm of the
//! catalogue runs: two-level algorithms are compositions, and each level chooses for itself.

use crate::algorithm::AlgorithmChoice;
use crate::members::{Layout, Members};
use crate::operation::CollectiveKind;
use crate::selection_key::{RankPlacement, SelectionKey};
use crate::{CollectiveState, CommView, ElementReduction, Reception, Via};
use std::rc::Rc;
use weft_fabric::{Fabric, Fault, Sge};
use weft_p2p::MatchingContext;

/// Bits of a context beside those of a communicator.
const NODE: u64 = 1 << 62;
const LEADERS: u64 = 1 << 61;
const WHOLE: u64 = 1 << 60;
/// What contexts of levels have more than their communicator's.
pub const LEVELS: u64 = NODE | LEADERS | WHOLE;

/// One level, as one of its ranks sees it.
pub struct Level<F: Fabric> {
    members: Rc<Members>,
    me: usize,
    bit: u64,
    site: RankPlacement,
    pub(crate) state: CollectiveState<F>,
}

/// All levels.
pub struct Hierarchy<F: Fabric> {
    /// Which ranks are on which node.
    pub layout: Rc<Layout>,
    /// All ranks, as those of the communicator.
    pub whole: Level<F>,
    /// The ranks of this rank's node.
    pub node: Level<F>,
    /// At leaders.
    pub leaders: Option<Level<F>>,
}

impl<F: Fabric> Hierarchy<F> {
    pub(crate) fn new(link: &CommView<F>, state: &CollectiveState<F>) -> Hierarchy<F> {
        let fabric = link.endpoint.fabric();
        let layout = link.members.layout(fabric);
        let (node, place) = layout.places[link.rank];
        let level = |members: Rc<Members>, me, bit| {
            let mut site = members.topology(fabric);
            site.same_node &= !state.is_lean();
            site.same_arithmetic &= !state.is_unlike();
            // Within a node memory serves; datagrams would reach other nodes, too.
            if bit == NODE || !state.may_multicast() {
                site.multicast = 0;
            }
            Level { members, me, bit, site, state: state.another() }
        };
        let own = level(layout.local(&link.members, node), place, NODE);
        let leaders = (place == 0).then(|| level(layout.leaders(&link.members), node, LEADERS));
        let whole = level(link.members.clone(), link.rank, WHOLE);
        Hierarchy { layout, whole, node: own, leaders }
    }

    /// Grounds whose multicast groups must end.
    pub(crate) fn states(&self) -> impl Iterator<Item = &CollectiveState<F>> {
        [Some(&self.whole), Some(&self.node), self.leaders.as_ref()]
            .into_iter()
            .flatten()
            .map(|level| &level.state)
    }
}

/// What a call on a level depends on.
pub(crate) struct LevelCall {
    pub bytes: usize,
    pub element: usize,
    pub commutes: bool,
    pub equal: bool,
}

impl LevelCall {
    pub fn of(bytes: usize) -> LevelCall {
        LevelCall { bytes, element: 1, commutes: true, equal: true }
    }
}

impl<F: Fabric> Level<F> {
    fn size(&self) -> usize {
        self.members.len()
    }

    /// What serves a call here, and the view of the level that carries it.
    pub(crate) fn prepare(
        &self,
        link: &CommView<F>,
        operation: CollectiveKind,
        call: LevelCall,
    ) -> (CommView<F>, AlgorithmChoice) {
        let LevelCall { bytes, element, commutes, equal } = call;
        let view = CommView {
            endpoint: link.endpoint.clone(),
            members: self.members.clone(),
            rank: self.me,
            context: MatchingContext(link.context.0 | self.bit),
            tag: link.tag,
            via: Via::Messages,
            reception: Reception::Marks,
        };
        // Steps of compositions may be under way at once: what is known of each other changes between them.
        let (ranks, site) = (self.size(), self.site);
        let case = SelectionKey { ranks, bytes, element, commutes, equal, site };
        let model = link.endpoint.fabric().copies().model();
        let choice = self.state.selection().choose(operation, &case, model).choice;
        (view.carried(choice), choice)
    }
}

/// The steps of compositions: whole operations of one level, each by the algorithm that the level chooses. `link` is the
/// communicator's, everywhere. Who runs the catalogue ([`crate::run`]) gives them, so that compositions know no more than this.
#[expect(async_fn_in_trait, reason = "nothing here is sent to another thread")]
pub trait Steps<F: Fabric> {
    /// Ends on no rank of the level before all of them have come.
    async fn barrier(&self, link: &CommView<F>) -> Result<(), Fault>;

    /// `data` of the level's rank `root` to all others of it.
    async fn bcast(&self, link: &CommView<F>, root: usize, data: Sge) -> Result<(), Fault>;

    /// To the first rank of the level; all blocks of one length.
    async fn gather(&self, link: &CommView<F>, mine: Sge, blocks: &[Sge]) -> Result<(), Fault>;

    /// [`Steps::gather`] of blocks of any lengths.
    async fn gatherv(&self, link: &CommView<F>, mine: Sge, blocks: &[Sge]) -> Result<(), Fault>;

    /// From the first rank of the level, any lengths.
    async fn scatterv(&self, link: &CommView<F>, blocks: &[Sge], mine: Sge) -> Result<(), Fault>;

    /// The block of each rank to all of the level; `blocks` by rank there, of which the own one
    /// holds the data.
    async fn allgather(&self, link: &CommView<F>, blocks: &[Sge]) -> Result<(), Fault>;

    /// `out[r]` to rank r of the level, `into[r]` from it; the two ends of each pair agree on the
    /// length.
    async fn alltoallv(&self, link: &CommView<F>, out: &[Sge], into: &[Sge]) -> Result<(), Fault>;

    /// To the rank `root` of the level. `memory`: of reductions the data, the result, and bytes of one element.
    async fn reduce(
        &self,
        link: &CommView<F>,
        root: usize,
        memory: (Sge, Sge, usize),
        op: &(impl ElementReduction + ?Sized),
    ) -> Result<(), Fault>;

    /// Into everybody's result.
    async fn allreduce(
        &self,
        link: &CommView<F>,
        memory: (Sge, Sge, usize),
        op: &(impl ElementReduction + ?Sized),
    ) -> Result<(), Fault>;

    /// Combines data of all ranks of the level, blocks of so many bytes by rank there, and puts each rank's block into its
    /// `own`, whose elements have so many bytes.
    async fn reduce_scatter(
        &self,
        link: &CommView<F>,
        memory: (Sge, &[usize]),
        own: (Sge, usize),
        op: &(impl ElementReduction + ?Sized),
    ) -> Result<(), Fault>;

    /// A prefix reduction, inclusive or exclusive.
    async fn scan(
        &self,
        link: &CommView<F>,
        memory: (Sge, Sge, usize),
        exclusive: bool,
        op: &(impl ElementReduction + ?Sized),
    ) -> Result<(), Fault>;
}
