//! Order of the operands of a reduction.

/// Influence of the order of operands on the bits of a result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OperandOrder {
    /// Every order and every grouping give the same bits, as in sums of integers.
    Any,
    /// Two operands give the same bits in both orders. More operands do not, as in sums of real numbers.
    Pairs,
    /// The operator commutes, but the bits may depend on the order.
    Commutes,
    /// The operator does not commute.
    Fixed,
}

impl OperandOrder {
    /// Returns true if the operator commutes.
    pub fn commutes(self) -> bool {
        self != OperandOrder::Fixed
    }

    /// Returns true if `operands` operands give the same bits in every order.
    pub fn is_free(self, operands: usize) -> bool {
        self == OperandOrder::Any || self == OperandOrder::Pairs && operands == 2
    }
}
