//! Reductions: the operator, a rank's buffers, and the value that an algorithm builds up.

use crate::{CallKey, CollectiveKind, CommView, OperandOrder, words};
use weft_fabric::{Fabric, FabricExt, Sge, Staging, Work};

/// Buffers of one rank in a reduction.
#[derive(Debug, Clone, Copy)]
pub struct ReductionBuffers {
    /// This rank's operand.
    pub data: Sge,
    /// Memory for the result. A rank that gets no result may pass empty memory.
    pub result: Sge,
    /// Size of an element in bytes.
    pub element: usize,
}

impl ReductionBuffers {
    /// Returns the properties of a reduction of these buffers by `op`.
    pub(crate) fn key(&self, op: &dyn ElementReduction) -> CallKey {
        let ReductionBuffers { data, element, .. } = *self;
        let order = op.order();
        CallKey { element, commutes: order.commutes(), order, ..CallKey::of(data.len()) }
    }
}

/// Buffers of one rank in a reduction whose result is scattered.
#[derive(Debug, Clone, Copy)]
pub struct ReduceScatterBuffers<'l> {
    /// This rank's operand: a block for each rank.
    pub data: Sge,
    /// Lengths of the blocks in bytes, by rank.
    pub lens: &'l [usize],
    /// Memory for this rank's block of the result.
    pub result: Sge,
    /// Size of an element in bytes.
    pub element: usize,
}

/// Ranks whose data a prefix reduction combines.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Prefix {
    /// The lower ranks and the rank itself (MPI_Scan).
    Inclusive,
    /// The lower ranks only (MPI_Exscan): the result of rank 0 does not change.
    Exclusive,
}

impl Prefix {
    /// Returns the operation whose algorithms compute this prefix reduction.
    pub fn operation(self) -> CollectiveKind {
        match self {
            Prefix::Inclusive => CollectiveKind::Scan,
            Prefix::Exclusive => CollectiveKind::Exscan,
        }
    }

    /// Returns the number of ranks whose data `rank` combines.
    pub(crate) fn count(self, rank: usize) -> usize {
        match self {
            Prefix::Inclusive => rank + 1,
            Prefix::Exclusive => rank,
        }
    }
}

/// Side of a value on which an operand stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OperandSide {
    /// The operand comes from lower ranks.
    Left,
    /// The operand comes from higher ranks.
    Right,
}

impl OperandSide {
    /// Returns the side of an operand of `peer` at `rank`.
    pub fn of(peer: usize, rank: usize) -> OperandSide {
        if peer < rank { OperandSide::Left } else { OperandSide::Right }
    }
}

/// A reduction over contiguous elements.
pub trait ElementReduction {
    /// Computes `right = left op right`, element by element. Both operands have the same length.
    fn combine(&self, left: Sge, right: Sge);

    /// Computes `result = left op right`. All operands have the same length, and `result` overlaps neither `left` nor `right`.
    fn combine_into(&self, left: Sge, right: Sge, result: Sge) {
        result.copy_from(right);
        self.combine(left, result);
    }

    /// Returns true if the operator commutes.
    fn commutes(&self) -> bool;

    /// Returns the influence of the order of operands on the result.
    fn order(&self) -> OperandOrder {
        if self.commutes() { OperandOrder::Commutes } else { OperandOrder::Fixed }
    }
}

/// Operator that returns the larger of two words.
pub struct Largest;

impl ElementReduction for Largest {
    fn combine(&self, left: Sge, right: Sge) {
        let larger = |i| words::read(left, i).max(words::read(right, i));
        words::write((0..right.len() / 8).map(larger), right);
    }

    fn commutes(&self) -> bool {
        true
    }
}

/// Value that is combined with operands of lower or higher ranks. The value alternates between two buffers, so that operands are
/// combined in the order of ranks and all ranks get the same bits.
pub struct Accumulator {
    value: Staging,
    spare: Staging,
}

impl Accumulator {
    /// Makes an accumulator with the value `data`.
    pub fn new<F: Fabric>(link: &CommView<F>, data: Sge) -> Accumulator {
        let pool = link.endpoint.staging();
        let (value, spare) = (pool.take_for(data), pool.take_for(data));
        value.sge().copy_from(data);
        link.endpoint.fabric().charge(Work::Copy(data.len()));
        Accumulator { value, spare }
    }

    /// Returns the current value.
    pub fn value(&self) -> Sge {
        self.value.sge()
    }

    /// Returns the buffer into which the next operand must be received.
    pub fn operand(&self) -> Sge {
        self.spare.sge()
    }

    /// Combines the value with the operand, which stands on `side` of the value.
    pub fn take<F: Fabric>(
        &mut self,
        link: &CommView<F>,
        reduce: &dyn ElementReduction,
        side: OperandSide,
    ) {
        link.endpoint.fabric().charge(Work::Reduce(self.value.len()));
        match side {
            OperandSide::Left => reduce.combine(self.spare.sge(), self.value.sge()),
            OperandSide::Right => {
                reduce.combine(self.value.sge(), self.spare.sge());
                std::mem::swap(&mut self.value, &mut self.spare);
            }
        }
    }
}
