//! Recursive halving and doubling over any butterfly: the two parts of Rabenseifner's and Swing's
//! reductions.
//!
//! ```text
//!   halving, 4 ranks     step 0                      step 1
//!   0: blocks 0 1 2 3    keeps 0 1, gets 0 1 of 1    keeps 0, gets 0 of 2       doubling: backwards
//! ```
//! In each step a rank keeps one half of its blocks, and gives the other half to its peer, which has
//! the same blocks. So every block is combined in one place only, and all ranks get the same bits.

use crate::blocks::BlockList;
use crate::{CommView, ElementReduction, OperandSide, local_ops};
use std::ops::Range;
use weft_fabric::{Fabric, Fault, Sge, Staging};

/// A step of a butterfly: the peer (by rank in the communicator), and true if this rank keeps the upper half of the blocks that
/// both ranks have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ButterflyStep {
    pub peer: usize,
    pub upper: bool,
}

impl ButterflyStep {
    /// Returns the half of `range` to keep, and the half to give away.
    pub fn halves(&self, range: &Range<usize>) -> (Range<usize>, Range<usize>) {
        let middle = range.start.midpoint(range.end);
        let (low, high) = (range.start..middle, middle..range.end);
        if self.upper { (high, low) } else { (low, high) }
    }
}

/// Returns the steps of `group` in a butterfly of `groups` groups, a power of two. Neighbouring groups join: first pairs of groups,
/// then pairs of pairs, and so on. `lead` names the rank that acts for a group.
pub fn neighbors(group: usize, groups: usize, lead: impl Fn(usize) -> usize) -> Vec<ButterflyStep> {
    let step =
        |bit: u32| ButterflyStep { peer: lead(group ^ 1 << bit), upper: group >> bit & 1 == 1 };
    (0..groups.ilog2()).map(step).collect()
}

/// Returns the half of the blocks that a rank with these steps keeps in step `last`, and the half that the rank gives away in this
/// step. `count` is the total number of blocks.
pub fn parted(steps: &[ButterflyStep], last: usize, count: usize) -> (Range<usize>, Range<usize>) {
    let both = steps[..last].iter().fold(0..count, |range, step| step.halves(&range).0);
    steps[last].halves(&both)
}

/// The value of a reduction in progress: the caller's `data`, which stay unchanged, or one of two buffers.
pub struct PartialResult {
    now: Sge,
    ours: bool,
    kept: Option<Staging>,
    spare: Staging,
}

impl PartialResult {
    pub fn new<F: Fabric>(link: &CommView<F>, data: Sge) -> PartialResult {
        PartialResult {
            now: data,
            ours: false,
            kept: None,
            spare: local_ops::stage(link, data, data.len()),
        }
    }

    /// Returns the current value.
    pub fn now(&self) -> Sge {
        self.now
    }

    /// Returns the buffer into which the next operand must be received.
    pub fn operand(&self) -> Sge {
        self.spare.sge()
    }

    /// Combines the value with the operand's part `bytes`. The operand stands on `side` of the value. Only this part of the value
    /// is valid afterwards.
    pub fn take<F: Fabric>(
        &mut self,
        link: &CommView<F>,
        op: &dyn ElementReduction,
        side: OperandSide,
        bytes: Range<usize>,
    ) {
        let (at, len) = (bytes.start, bytes.len());
        let operand = self.spare.sge();
        if side == OperandSide::Left && (self.ours || !op.commutes()) {
            if !self.ours {
                let kept = local_ops::stage(link, self.now, self.now.len());
                local_ops::copy(link, self.now.part(at, len), kept.sge().part(at, len));
                (self.now, self.ours, self.kept) = (kept.sge(), true, Some(kept));
            }
            local_ops::combine(link, op, operand.part(at, len), self.now.part(at, len));
            return;
        }
        local_ops::combine(link, op, self.now.part(at, len), operand.part(at, len));
        let fresh = || local_ops::stage(link, operand, operand.len());
        let next = self.kept.take().unwrap_or_else(fresh);
        self.kept = Some(std::mem::replace(&mut self.spare, next));
        (self.now, self.ours) = (operand, true);
    }
}

/// Halves `value` through `steps`. Returns the range of blocks that this rank has combined. Operands
/// are combined in the order of ranks if the butterfly joins neighbouring groups of ranks.
pub async fn halve<F: Fabric>(
    link: &CommView<F>,
    blocks: &BlockList,
    value: &mut PartialResult,
    steps: impl IntoIterator<Item = ButterflyStep>,
    op: &dyn ElementReduction,
) -> Result<Range<usize>, Fault> {
    let mut mine = 0..blocks.count();
    for step in steps {
        let (keep, give) = step.halves(&mine);
        let out = blocks.range_in(value.now(), give.start, give.end);
        let into = blocks.range_in(value.operand(), keep.start, keep.end);
        link.exchange(step.peer, out, step.peer, into).await?;
        value.take(
            link,
            op,
            OperandSide::of(step.peer, link.rank),
            blocks.extent(keep.start, keep.end),
        );
        mine = keep;
    }
    Ok(mine)
}

/// Gathers at all ranks the blocks that [`halve`] left at each rank, backwards through the same steps.
pub async fn double<F: Fabric>(
    link: &CommView<F>,
    blocks: &BlockList,
    steps: &[ButterflyStep],
) -> Result<(), Fault> {
    for last in (0..steps.len()).rev() {
        let (mine, other) = parted(steps, last, blocks.count());
        let (out, into) =
            (blocks.range(mine.start, mine.end), blocks.range(other.start, other.end));
        link.exchange(steps[last].peer, out, steps[last].peer, into).await?;
    }
    Ok(())
}
