//! The predefined reduction operators.

/// A predefined operator. Values are the ABI's handles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum PredefinedOp {
    /// The sum of numbers. Integers wrap around.
    Sum = 0x21,
    /// The smaller number.
    Min = 0x22,
    /// The larger number.
    Max = 0x23,
    /// The product of numbers. Integers wrap around.
    Prod = 0x24,
    /// Bitwise AND: the bits that are set in both operands.
    BitAnd = 0x28,
    /// Bitwise OR: the bits that are set in either operand.
    BitOr = 0x29,
    /// Bitwise XOR: the bits that differ between the operands.
    BitXor = 0x2a,
    /// True if both operands are true. Any number except zero is true.
    LogicalAnd = 0x30,
    /// True if either operand is true. Any number except zero is true.
    LogicalOr = 0x31,
    /// True if exactly one operand is true. Any number except zero is true.
    LogicalXor = 0x32,
    /// The pair with the smaller value; if the values are equal, the pair with the smaller index.
    MinLoc = 0x38,
    /// The pair with the larger value; if the values are equal, the pair with the smaller index.
    MaxLoc = 0x39,
    /// The origin's operand replaces the target's; for one-sided operations only.
    Replace = 0x3c,
    /// The target's operand stays unchanged; for one-sided operations only.
    NoOp = 0x3d,
}

impl PredefinedOp {
    /// All operators, in the order of their handles.
    pub const ALL: [PredefinedOp; 14] = [
        PredefinedOp::Sum,
        PredefinedOp::Min,
        PredefinedOp::Max,
        PredefinedOp::Prod,
        PredefinedOp::BitAnd,
        PredefinedOp::BitOr,
        PredefinedOp::BitXor,
        PredefinedOp::LogicalAnd,
        PredefinedOp::LogicalOr,
        PredefinedOp::LogicalXor,
        PredefinedOp::MinLoc,
        PredefinedOp::MaxLoc,
        PredefinedOp::Replace,
        PredefinedOp::NoOp,
    ];

    /// Returns the operator of an ABI handle; `None` for `MPI_OP_NULL` and for any other value.
    #[inline]
    pub fn of_handle(handle: u32) -> Option<PredefinedOp> {
        PredefinedOp::ALL.into_iter().find(|op| op.handle() == handle)
    }

    /// Returns the ABI handle of the operator.
    pub const fn handle(self) -> u32 {
        self as u32
    }

    /// Returns the name of MPI's constant.
    pub const fn name(self) -> &'static str {
        match self {
            PredefinedOp::Sum => "MPI_SUM",
            PredefinedOp::Min => "MPI_MIN",
            PredefinedOp::Max => "MPI_MAX",
            PredefinedOp::Prod => "MPI_PROD",
            PredefinedOp::BitAnd => "MPI_BAND",
            PredefinedOp::BitOr => "MPI_BOR",
            PredefinedOp::BitXor => "MPI_BXOR",
            PredefinedOp::LogicalAnd => "MPI_LAND",
            PredefinedOp::LogicalOr => "MPI_LOR",
            PredefinedOp::LogicalXor => "MPI_LXOR",
            PredefinedOp::MinLoc => "MPI_MINLOC",
            PredefinedOp::MaxLoc => "MPI_MAXLOC",
            PredefinedOp::Replace => "MPI_REPLACE",
            PredefinedOp::NoOp => "MPI_NO_OP",
        }
    }

    /// Returns true if the operator commutes (`MPI_Op_commutative`). [`PredefinedOp::Replace`] and [`PredefinedOp::NoOp`], which
    /// keep only one operand, do not commute.
    pub const fn commutative(self) -> bool {
        !matches!(self, PredefinedOp::Replace | PredefinedOp::NoOp)
    }
}
