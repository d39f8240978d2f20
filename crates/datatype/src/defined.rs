//! Table of the types on which the predefined reduction operators are defined.

use crate::{Basic, DatatypeError, OperandClass, PredefinedOp, Repr};

impl PredefinedOp {
    /// Returns true if MPI defines the operator on the type and this build can compute it.
    #[inline]
    pub fn allowed(self, basic: Basic) -> bool {
        self.check(basic).is_ok()
    }

    /// Checks that the operator is defined on the type, by the table of MPI 5.0, 6.9.2. `MPI_CHAR` counts as an integer, and
    /// the multi-language types are allowed in logical operators, as in the other libraries. Errors:
    /// [`DatatypeError::Undefined`] or [`DatatypeError::Unsupported`].
    #[inline]
    pub fn check(self, basic: Basic) -> Result<(), DatatypeError> {
        use OperandClass::*;
        let class = basic.class();
        let defined = match self {
            PredefinedOp::Min | PredefinedOp::Max => {
                matches!(class, CInteger | FortranInteger | Floating | MultiLanguage)
            }
            PredefinedOp::Sum | PredefinedOp::Prod => {
                matches!(class, CInteger | FortranInteger | Floating | Complex | MultiLanguage)
            }
            PredefinedOp::BitAnd | PredefinedOp::BitOr | PredefinedOp::BitXor => {
                matches!(class, CInteger | FortranInteger | Byte | MultiLanguage)
            }
            PredefinedOp::LogicalAnd | PredefinedOp::LogicalOr | PredefinedOp::LogicalXor => {
                matches!(class, CInteger | Logical | MultiLanguage)
            }
            PredefinedOp::MinLoc | PredefinedOp::MaxLoc => class == Pair,
            PredefinedOp::Replace | PredefinedOp::NoOp => return Ok(()),
        };
        let computed = |basic: Basic| match basic.repr() {
            Repr::F80 | Repr::ComplexF80 => cfg!(all(target_arch = "x86_64", not(miri))),
            _ => true,
        };
        if !defined {
            return Err(DatatypeError::Undefined { op: self, basic });
        }
        let value = basic.pair().map_or(basic, |(value, _)| value);
        if computed(value) { Ok(()) } else { Err(DatatypeError::Unsupported { op: self, basic }) }
    }
}
