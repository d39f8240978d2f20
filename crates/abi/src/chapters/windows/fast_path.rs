//! Fast path of accumulates that never wait: plain elements, in memory that this process can reach, in an open epoch.

use super::access::plainly;
use crate::calls::{Accumulate, CompareAndSwap, FetchAndOp, GetAccumulate};
use crate::elements::TargetArgs;
use crate::types::{Datatype, Op};
use weft_datatype::{Basic, OperandClass};
use weft_fabric::Sge;
use weft_rma::TargetBytes;

#[inline(always)]
fn operands(op: Op, ty: Datatype) -> Option<(weft_datatype::PredefinedOp, Basic)> {
    let op = weft_datatype::PredefinedOp::of_handle(op.0 as u32)?;
    Some((op, Basic::of_handle(ty.0 as u32)?))
}

/// Returns the target's side of an operation on `len` plain bytes.
#[inline(always)]
fn bytes(target: TargetArgs, len: usize) -> TargetBytes {
    TargetBytes { rank: target.rank as usize, disp: target.disp as i64, len }
}

/// MPI_Accumulate, MPI_Accumulate_c.
impl Accumulate {
    #[inline(always)]
    pub(crate) fn try_blocking(self) -> bool {
        // SAFETY: `try_accumulate` reads the buffer; it adds and removes no window.
        let found = unsafe { plainly(self.origin_addr, self.target, self.win) };
        let Some((window, origin)) = found else { return false };
        let Some((op, basic)) = operands(self.op, self.target.ty) else { return false };
        let target = bytes(self.target, origin.len());
        op != weft_datatype::PredefinedOp::NoOp
            && window.try_accumulate(op, basic, origin, None, target)
    }
}

/// MPI_Get_accumulate, MPI_Get_accumulate_c.
impl GetAccumulate {
    #[inline(always)]
    pub(crate) fn try_blocking(self) -> bool {
        // SAFETY: `try_accumulate` reads and writes the buffers; it adds and removes no window.
        let found = unsafe { plainly(self.result_addr, self.target, self.win) };
        let Some((window, result)) = found else { return false };
        let Some((op, basic)) = operands(self.op, self.target.ty) else { return false };
        let given = self.origin_addr;
        let origin = if op == weft_datatype::PredefinedOp::NoOp {
            // If the operator is MPI_NO_OP, the origin buffer is ignored.
            Sge::EMPTY
        } else if (given.count, given.ty) != (self.target.count, self.target.ty) {
            return false;
        } else {
            match given.plain() {
                Some(origin) => origin,
                None => return false,
            }
        };
        let target = bytes(self.target, result.len());
        window.try_accumulate(op, basic, origin, Some(result), target)
    }
}

/// MPI_Fetch_and_op.
impl FetchAndOp {
    #[inline(always)]
    pub(crate) fn try_blocking(self) -> bool {
        let FetchAndOp { origin_addr, result_addr, target, op, win } = self;
        GetAccumulate { origin_addr, result_addr, target, op, win }.try_blocking()
    }
}

/// MPI_Compare_and_swap.
impl CompareAndSwap {
    #[inline(always)]
    pub(crate) fn try_blocking(self) -> bool {
        use OperandClass::*;
        let Some(basic) = Basic::of_handle(self.target.ty.0 as u32) else { return false };
        if !matches!(basic.class(), CInteger | FortranInteger | Logical | MultiLanguage | Byte) {
            return false;
        }
        // SAFETY: `try_swap` reads and writes the buffers; it adds and removes no window.
        let found = unsafe { plainly(self.result_addr, self.target, self.win) };
        let Some((window, result)) = found else { return false };
        let (Some(compare), Some(new)) = (self.compare_addr.plain(), self.origin_addr.plain())
        else {
            return false;
        };
        let target = bytes(self.target, basic.size());
        window.try_swap(basic, compare, new, result, target)
    }
}
