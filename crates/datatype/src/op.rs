//! The predefined reduction operators and what they are defined on.

use crate::{Basic, Class, Error, Repr};

/// A predefined operator. Values are the ABI's handles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Op {
    Sum = 0x21,
    Min = 0x22,
    Max = 0x23,
    Prod = 0x24,
    BitAnd = 0x28,
    BitOr = 0x29,
    BitXor = 0x2a,
    LogicalAnd = 0x30,
    LogicalOr = 0x31,
    LogicalXor = 0x32,
    MinLoc = 0x38,
    MaxLoc = 0x39,
    Replace = 0x3c,
    NoOp = 0x3d,
}

impl Op {
    pub const ALL: [Op; 14] = [
        Op::Sum,
        Op::Min,
        Op::Max,
        Op::Prod,
        Op::BitAnd,
        Op::BitOr,
        Op::BitXor,
        Op::LogicalAnd,
        Op::LogicalOr,
        Op::LogicalXor,
        Op::MinLoc,
        Op::MaxLoc,
        Op::Replace,
        Op::NoOp,
    ];

    /// The operator of an ABI handle value; none for `MPI_OP_NULL` and for any other value.
    #[inline]
    pub fn of_handle(handle: u32) -> Option<Op> {
        Op::ALL.into_iter().find(|op| op.handle() == handle)
    }

    pub const fn handle(self) -> u32 {
        self as u32
    }

    pub const fn name(self) -> &'static str {
        match self {
            Op::Sum => "MPI_SUM",
            Op::Min => "MPI_MIN",
            Op::Max => "MPI_MAX",
            Op::Prod => "MPI_PROD",
            Op::BitAnd => "MPI_BAND",
            Op::BitOr => "MPI_BOR",
            Op::BitXor => "MPI_BXOR",
            Op::LogicalAnd => "MPI_LAND",
            Op::LogicalOr => "MPI_LOR",
            Op::LogicalXor => "MPI_LXOR",
            Op::MinLoc => "MPI_MINLOC",
            Op::MaxLoc => "MPI_MAXLOC",
            Op::Replace => "MPI_REPLACE",
            Op::NoOp => "MPI_NO_OP",
        }
    }

    /// `MPI_Op_commutative`. The two that keep one side alone (one-sided communication only) do
    /// not commute.
    pub const fn commutative(self) -> bool {
        !matches!(self, Op::Replace | Op::NoOp)
    }

    /// Whether MPI defines the operator on the type and this build computes it.
    #[inline]
    pub fn allowed(self, basic: Basic) -> bool {
        self.check(basic).is_ok()
    }

    /// The table of MPI 5.0, 6.9.2, with `MPI_CHAR` taken for an integer and the multi-language
    /// types allowed in logical operators, as the other libraries do. [`Error::Undefined`] or
    /// [`Error::Unsupported`].
    #[inline]
    pub fn check(self, basic: Basic) -> Result<(), Error> {
        use Class::*;
        let class = basic.class();
        let defined = match self {
            Op::Min | Op::Max => {
                matches!(class, CInteger | FortranInteger | Floating | MultiLanguage)
            }
            Op::Sum | Op::Prod => {
                matches!(class, CInteger | FortranInteger | Floating | Complex | MultiLanguage)
            }
            Op::BitAnd | Op::BitOr | Op::BitXor => {
                matches!(class, CInteger | FortranInteger | Byte | MultiLanguage)
            }
            Op::LogicalAnd | Op::LogicalOr | Op::LogicalXor => {
                matches!(class, CInteger | Logical | MultiLanguage)
            }
            Op::MinLoc | Op::MaxLoc => class == Pair,
            Op::Replace | Op::NoOp => return Ok(()),
        };
        let computed = |basic: Basic| match basic.repr() {
            Repr::F80 | Repr::ComplexF80 => cfg!(all(target_arch = "x86_64", not(miri))),
            _ => true,
        };
        if !defined {
            return Err(Error::Undefined { op: self, basic });
        }
        let value = basic.pair().map_or(basic, |(value, _)| value);
        if computed(value) { Ok(()) } else { Err(Error::Unsupported { op: self, basic }) }
    }
}
