//! LEVEL-PIPELINE: segments up the tree of a node's levels, along a chain in each group. Compare xhc's reductions (Katevenis and others
//! 2022).
//!
//! ```text
//!   two caches of four ranks, segment k:     0 <- 1 <- 2 <- 3     4 <- 5 <- 6 <- 7     0 <- 4
//! ```
//! A rank combines its segment with those of its children, and sends the sum on while it receives the next segments. Cost: a segment
//! for each hop, and then each further segment takes as long as the work of the rank with the most children, one for each level.
//! Operands are combined in the order of ranks, if groups have consecutive ranks. Rank 0 gets the sums, and passes them to the root.

use super::reduce_binomial::binomial;
use crate::algorithm::DEFAULT_SEGMENT;
use crate::costs::CallCosts;
use crate::level_tree::{GroupShape, LevelNode};
use crate::segments::{overlap, piece};
use crate::{CommView, ElementReduction, ReductionBuffers, local_ops};
use weft_fabric::{Fabric, Fault, Sge, Staging};
use weft_p2p::RequestId;

/// Number of segments of each child for which there is memory.
const SLOTS: usize = 3;

/// Returns the predicted time among ranks in several caches, with the default length of a segment.
pub fn time(costs: &CallCosts, len: f64) -> f64 {
    let segment = len.min(DEFAULT_SEGMENT as f64);
    let later = (len / DEFAULT_SEGMENT as f64).ceil().max(1.0) - 1.0;
    let (mut first, mut busiest) = (0.0, 0.0);
    for stage in costs.stages() {
        let time = stage.costs.in_round(segment) + costs.reduce_whole(segment);
        first += (stage.members - 1.0) * time;
        busiest += time;
    }
    if first > 0.0 { first + later * busiest } else { f64::INFINITY }
}

/// The receives of a rank's children, by segment.
struct Operands<'l, F: Fabric> {
    link: &'l CommView<F>,
    data: Sge,
    segment: usize,
    children: Vec<usize>,
    /// By child, memory for [`SLOTS`] segments.
    rooms: Vec<Staging>,
    /// By slot, the receives of all children.
    asked: [Vec<RequestId>; SLOTS],
    /// The first fault. After a fault the operation goes on, because receives are under way.
    outcome: Result<(), Fault>,
}

impl<F: Fabric> Operands<'_, F> {
    /// Returns the memory for segment `k` of a child.
    fn room(&self, child: usize, k: usize) -> Sge {
        let len = piece(self.data, self.segment, k).len();
        self.rooms[child].sge().part(k % SLOTS * self.segment, len)
    }

    /// Starts to receive segment `k` of all children. Does nothing behind the last segment.
    fn ask(&mut self, k: usize) {
        if piece(self.data, self.segment, k).is_empty() {
            return;
        }
        let receive = |(at, &child): (usize, &usize)| self.link.irecv(child, self.room(at, k));
        let receives: Vec<RequestId> = self.children.iter().enumerate().map(receive).collect();
        self.asked[k % SLOTS] = receives;
    }

    /// Waits for segment `k` of all children, and combines them with this rank's own segment. Returns the memory of the sum.
    async fn sum(&mut self, k: usize, op: &dyn ElementReduction) -> Sge {
        let mut value = piece(self.data, self.segment, k);
        for (child, receive) in std::mem::take(&mut self.asked[k % SLOTS]).into_iter().enumerate() {
            let received = self.link.wait(receive).await;
            self.outcome = std::mem::replace(&mut self.outcome, Ok(())).and(received);
            let room = self.room(child, k);
            local_ops::combine(self.link, op, value, room);
            value = room;
        }
        value
    }
}

/// Combines `data` of all ranks into `result` of `root`, in segments of at most `segment` bytes and whole elements. On other ranks
/// `result` is ignored.
pub async fn level_pipeline<F: Fabric>(
    link: &CommView<F>,
    root: usize,
    buffers: ReductionBuffers,
    op: &dyn ElementReduction,
    segment: usize,
) -> Result<(), Fault> {
    let ReductionBuffers { data, result, element } = buffers;
    let steps = link.members.topology(link.endpoint.fabric()).levels;
    let in_order = op.commutes() || steps.iter().all(|step| step.contiguous);
    let node = LevelNode::of(link, 0, GroupShape::Chain).filter(|_| in_order);
    let Some(LevelNode { parent, children }) = node else {
        return binomial(link, root, buffers, op).await;
    };
    let segment = (segment / element.max(1)).max(1) * element.max(1);
    let count = data.len().div_ceil(segment);
    let segment = segment.min(data.len());
    let rooms = children.iter().map(|_| local_ops::stage(link, data, SLOTS * segment)).collect();
    let asked = Default::default();
    let mut operands = Operands { link, data, segment, children, rooms, asked, outcome: Ok(()) };
    (0..SLOTS).for_each(|k| operands.ask(k));
    // Rank 0 sends to the root, which is behind it in the order of the data's way.
    let to = parent.or((root != 0).then_some(root));
    let aside = (link.rank == root && overlap(data, result))
        .then(|| local_ops::stage(link, data, data.len()));
    let into = aside.as_ref().map_or(result, |aside| aside.sge());
    let (mut last, mut results, mut all) = (None, Vec::new(), Ok(()));
    for k in 0..count {
        if link.rank == root && root != 0 {
            results.push(link.irecv(0, piece(into, segment, k)));
        }
        let value = operands.sum(k, op).await;
        let sent = match to {
            Some(to) => link.isend(to, value),
            None => {
                local_ops::copy(link, value, piece(into, segment, k));
                None
            }
        };
        // The send before has left the slot of its segment, into which a later segment comes.
        if let Some(send) = std::mem::replace(&mut last, sent) {
            all = all.and(link.wait(send).await);
        }
        if k > 0 {
            operands.ask(k - 1 + SLOTS);
        }
    }
    all = operands.outcome.and(all).and(link.wait_all(last.into_iter().chain(results)).await);
    if let Some(aside) = &aside {
        local_ops::copy(link, aside.sge(), result);
    }
    all
}
