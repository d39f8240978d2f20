//! Hierarchy of a communicator whose ranks are on several nodes: the ranks of this node, one leader of
//! each node ([`crate::Members`] has the picture), and all ranks once more, for compositions of whole operations.
//!
//! A level is a group with matching contexts, slots and areas of its own, in which every algorithm of the
//! catalogue runs. Two-level algorithms are compositions, and each level selects its algorithms by itself.

use crate::algorithm::AlgorithmChoice;
use crate::members::{Layout, Members};
use crate::operation::CollectiveKind;
use crate::selection_key::{RankPlacement, SelectionKey};
use crate::{
    CollectiveState, CommView, ElementReduction, Prefix, Reception, ReduceScatterBuffers,
    ReductionBuffers, Via,
};
use std::rc::Rc;
use weft_fabric::{Fabric, Fault, Sge};
use weft_p2p::MatchingContext;

/// Bits that only contexts of levels have, not contexts of communicators.
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
            let mut site = members.topology(fabric);
            site.same_node &= !state.is_lean();
            site.same_arithmetic &= !state.is_unlike();
            // Within a node, shared memory serves instead of multicast, because datagrams would also reach other nodes.
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

/// Inputs of the selection for a call on a level.
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

    pub fn reduction(
        buffers: ReductionBuffers,
        op: &(impl ElementReduction + ?Sized),
    ) -> LevelCall {
        let ReductionBuffers { data, element, .. } = buffers;
        LevelCall { element, commutes: op.commutes(), ..LevelCall::of(data.len()) }
    }
}

impl<F: Fabric> Level<F> {
    fn size(&self) -> usize {
        self.members.len()
    }

    /// Selects the algorithm of a call, and returns the view that carries the call.
    pub(crate) fn prepare(
        &self,
        link: &CommView<F>,
        operation: CollectiveKind,
        call: LevelCall,
    ) -> LevelView<F> {
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
        // Steps of compositions may overlap, and facts that the ranks exchange may change meanwhile. So `site` has no such facts.
        let (ranks, site) = (self.size(), self.site);
        let case = SelectionKey { ranks, bytes, element, commutes, equal, site };
        let model = link.endpoint.fabric().copies().model();
        let choice = self.state.selection().choose(operation, &case, model).choice;
        LevelView { link: view.carried(choice), choice }
    }
}

/// The steps of compositions: whole operations of one level, each by the algorithm that the level selects. `link` is always the
/// communicator's view. The module that runs the catalogue ([`crate::run`]) implements this trait, so that compositions depend
/// on the trait and not on that module.
#[expect(async_fn_in_trait, reason = "nothing here is sent to another thread")]
pub trait Steps<F: Fabric> {
    /// Runs a barrier: ends on no rank of the level before all of them have come.
    async fn barrier(&self, link: &CommView<F>) -> Result<(), Fault>;

    /// Broadcasts `data` of the level's rank `root` to all other ranks of the level.
    async fn bcast(&self, link: &CommView<F>, root: usize, data: Sge) -> Result<(), Fault>;

    /// Gathers blocks of one length at the first rank of the level.
    async fn gather(&self, link: &CommView<F>, mine: Sge, blocks: &[Sge]) -> Result<(), Fault>;

    /// Gathers, as [`Steps::gather`], blocks of any lengths.
    async fn gatherv(&self, link: &CommView<F>, mine: Sge, blocks: &[Sge]) -> Result<(), Fault>;

    /// Scatters blocks of any lengths from the first rank of the level.
    async fn scatterv(&self, link: &CommView<F>, blocks: &[Sge], mine: Sge) -> Result<(), Fault>;

    /// Gathers the block of each rank at all ranks of the level. `blocks` is indexed by rank in the level; this rank's
    /// entry holds its data.
    async fn allgather(&self, link: &CommView<F>, blocks: &[Sge]) -> Result<(), Fault>;

    /// Sends `out[r]` to rank r of the level and receives `into[r]` from it. The two ends of each pair agree on the length.
    async fn alltoallv(&self, link: &CommView<F>, out: &[Sge], into: &[Sge]) -> Result<(), Fault>;

    /// Reduces to the level's rank `root`.
    async fn reduce(
        &self,
        link: &CommView<F>,
        root: usize,
        buffers: ReductionBuffers,
        op: &(impl ElementReduction + ?Sized),
    ) -> Result<(), Fault>;

    /// Reduces into the result of all ranks of the level.
    async fn allreduce(
        &self,
        link: &CommView<F>,
        buffers: ReductionBuffers,
        op: &(impl ElementReduction + ?Sized),
    ) -> Result<(), Fault>;

    /// Combines the data of all ranks of the level, and puts each rank's block into its result.
    async fn reduce_scatter(
        &self,
        link: &CommView<F>,
        buffers: ReduceScatterBuffers<'_>,
        op: &(impl ElementReduction + ?Sized),
    ) -> Result<(), Fault>;

    /// Runs a prefix reduction.
    async fn scan(
        &self,
        link: &CommView<F>,
        prefix: Prefix,
        buffers: ReductionBuffers,
        op: &(impl ElementReduction + ?Sized),
    ) -> Result<(), Fault>;
}
