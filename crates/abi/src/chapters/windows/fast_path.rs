//! Fast path of operations that never wait: plain elements, in memory that this process can reach, in an open epoch. On a window with a
//! lock of its own, the fast path takes this lock alone ([`crate::lanes`]).

use crate::calls::{Accumulate, CompareAndSwap, FetchAndOp, Get, GetAccumulate, Put};
use crate::elements::{Elements, TargetArgs};
use crate::error::Error;
use crate::lane_calls::LaneCall;
use crate::lanes::on_window;
use crate::objects::{SENT, WindowOf};
use crate::state::known;
use crate::types::{Datatype, Op, Request, Win};
use weft_datatype::{Basic, OperandClass, PredefinedOp};
use weft_fabric::Sge;
use weft_rma::TargetBytes;

/// An operation that has a fast path.
pub(crate) trait FastAccess: Copy {
    /// Returns the window's handle.
    fn win(self) -> Win;

    /// Does the operation, and returns true. Returns false, and does nothing, if the operation may wait, or if an argument is unusual.
    fn on(self, window: &WindowOf) -> bool;

    /// Does the operation under the main lock.
    #[inline(always)]
    fn try_blocking(self) -> bool {
        // SAFETY: `on` reads and writes buffers; it adds and removes no window.
        let wins = known().map(|state| unsafe { state.wins.try_borrow_unguarded() });
        let Some(Ok(wins)) = wins else { return false };
        wins.get(self.win().0).is_some_and(|object| self.on(&object.window))
    }

    /// Does the operation under the window's own lock.
    #[inline(always)]
    fn lane_blocking(self) -> Result<LaneCall, Error> {
        Ok(on_window(self.win().0, |window| self.on(window)))
    }

    /// Does the operation under the window's own lock, and returns the request of an operation that is complete.
    ///
    /// # Safety
    /// `request` is NULL or may be written.
    #[inline(always)]
    unsafe fn lane_nonblocking(self, request: *mut Request) -> Result<LaneCall, Error> {
        if request.is_null() {
            return Ok(LaneCall::Declined);
        }
        let call = on_window(self.win().0, |window| self.on(window));
        if call == LaneCall::Done {
            // SAFETY: `request` is not NULL, so it may be written; the contract of this function says so.
            unsafe { request.write(SENT) };
        }
        Ok(call)
    }
}

/// Returns the local memory of an operation on plain bytes.
#[inline(always)]
fn plainly(given: Elements, target: TargetArgs) -> Option<Sge> {
    if given.ty != target.ty || given.count != target.count || target.rank < 0 {
        return None;
    }
    given.plain()
}

#[inline(always)]
fn operands(op: Op, ty: Datatype) -> Option<(PredefinedOp, Basic)> {
    Some((PredefinedOp::of_handle(op.0 as u32)?, Basic::of_handle(ty.0 as u32)?))
}

/// Returns the target's side of an operation on `len` plain bytes.
#[inline(always)]
fn bytes(target: TargetArgs, len: usize) -> TargetBytes {
    TargetBytes { rank: target.rank as usize, disp: target.disp as i64, len }
}

/// MPI_Put, MPI_Put_c, MPI_Rput, MPI_Rput_c.
impl FastAccess for Put {
    #[inline(always)]
    fn win(self) -> Win {
        self.win
    }

    #[inline(always)]
    fn on(self, window: &WindowOf) -> bool {
        let Some(origin) = plainly(self.origin_addr, self.target) else { return false };
        window.try_put(origin, self.target.rank as usize, self.target.disp as i64)
    }
}

/// MPI_Get, MPI_Get_c, MPI_Rget, MPI_Rget_c.
impl FastAccess for Get {
    #[inline(always)]
    fn win(self) -> Win {
        self.win
    }

    #[inline(always)]
    fn on(self, window: &WindowOf) -> bool {
        let Some(origin) = plainly(self.origin_addr, self.target) else { return false };
        window.try_get(origin, self.target.rank as usize, self.target.disp as i64)
    }
}

/// MPI_Accumulate, MPI_Accumulate_c, MPI_Raccumulate, MPI_Raccumulate_c.
impl FastAccess for Accumulate {
    #[inline(always)]
    fn win(self) -> Win {
        self.win
    }

    #[inline(always)]
    fn on(self, window: &WindowOf) -> bool {
        let Some(origin) = plainly(self.origin_addr, self.target) else { return false };
        let Some((op, basic)) = operands(self.op, self.target.ty) else { return false };
        let target = bytes(self.target, origin.len());
        op != PredefinedOp::NoOp && window.try_accumulate(op, basic, origin, None, target)
    }
}

/// MPI_Get_accumulate, MPI_Get_accumulate_c, MPI_Rget_accumulate, MPI_Rget_accumulate_c.
impl FastAccess for GetAccumulate {
    #[inline(always)]
    fn win(self) -> Win {
        self.win
    }

    #[inline(always)]
    fn on(self, window: &WindowOf) -> bool {
        let Some(result) = plainly(self.result_addr, self.target) else { return false };
        let Some((op, basic)) = operands(self.op, self.target.ty) else { return false };
        let given = self.origin_addr;
        let origin = if op == PredefinedOp::NoOp {
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
impl FastAccess for FetchAndOp {
    #[inline(always)]
    fn win(self) -> Win {
        self.win
    }

    #[inline(always)]
    fn on(self, window: &WindowOf) -> bool {
        let FetchAndOp { origin_addr, result_addr, target, op, win } = self;
        GetAccumulate { origin_addr, result_addr, target, op, win }.on(window)
    }
}

/// MPI_Compare_and_swap.
impl FastAccess for CompareAndSwap {
    #[inline(always)]
    fn win(self) -> Win {
        self.win
    }

    #[inline(always)]
    fn on(self, window: &WindowOf) -> bool {
        use OperandClass::*;
        let Some(basic) = Basic::of_handle(self.target.ty.0 as u32) else { return false };
        if !matches!(basic.class(), CInteger | FortranInteger | Logical | MultiLanguage | Byte) {
            return false;
        }
        let Some(result) = plainly(self.result_addr, self.target) else { return false };
        let (Some(compare), Some(new)) = (self.compare_addr.plain(), self.origin_addr.plain())
        else {
            return false;
        };
        window.try_swap(basic, compare, new, result, bytes(self.target, basic.size()))
    }
}
