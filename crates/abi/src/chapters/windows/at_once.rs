//! Accumulates that need no waiting: plain elements in memory that is seen, in an epoch that is open.

use super::access::plainly;
use crate::arguments::plain;
use crate::types::{Datatype, Op, Win};
use std::ffi::{c_int, c_void};
use weft_datatype::{Basic, Class};
use weft_fabric::Sge;

#[inline(always)]
fn operands(op: Op, ty: Datatype) -> Option<(weft_datatype::Op, Basic)> {
    let op = weft_datatype::Op::of_handle(op.0 as u32)?;
    Some((op, Basic::of_handle(ty.0 as u32)?))
}

#[allow(clippy::too_many_arguments)] // MPI's own
#[inline(always)]
pub(crate) unsafe fn try_accumulate(
    origin_addr: *const c_void,
    origin_count: i64,
    origin_datatype: Datatype,
    target_rank: c_int,
    target_disp: isize,
    target_count: i64,
    target_datatype: Datatype,
    op: Op,
    win: Win,
) -> bool {
    let origin = (origin_addr, origin_count, origin_datatype);
    let to = (target_rank, target_count, target_datatype, win);
    // SAFETY: the caller's buffer; the window reads it and does nothing else.
    let Some((window, origin)) = (unsafe { plainly(origin, to) }) else { return false };
    let Some((op, basic)) = operands(op, target_datatype) else { return false };
    let to = (target_rank as usize, target_disp as i64, origin.len());
    op != weft_datatype::Op::NoOp && window.try_accumulate((op, basic), origin, None, to)
}

#[allow(clippy::too_many_arguments)] // MPI's own
#[inline(always)]
pub(crate) unsafe fn try_get_accumulate(
    origin_addr: *const c_void,
    origin_count: i64,
    origin_datatype: Datatype,
    result_addr: *mut c_void,
    result_count: i64,
    result_datatype: Datatype,
    target_rank: c_int,
    target_disp: isize,
    target_count: i64,
    target_datatype: Datatype,
    op: Op,
    win: Win,
) -> bool {
    let result = (result_addr.cast_const(), result_count, result_datatype);
    let to = (target_rank, target_count, target_datatype, win);
    // SAFETY: the caller's buffers; the window reads and writes them and does nothing else.
    let Some((window, result)) = (unsafe { plainly(result, to) }) else { return false };
    let Some((op, basic)) = operands(op, target_datatype) else { return false };
    let origin = if op == weft_datatype::Op::NoOp {
        // Nobody looks at it.
        Sge::EMPTY
    } else if (origin_count, origin_datatype) != (target_count, target_datatype) {
        return false;
    } else {
        // SAFETY: as above.
        match unsafe { plain(origin_addr, origin_count, origin_datatype) } {
            Some(origin) => origin,
            None => return false,
        }
    };
    let to = (target_rank as usize, target_disp as i64, result.len());
    window.try_accumulate((op, basic), origin, Some(result), to)
}

#[inline(always)]
pub(crate) unsafe fn try_fetch_and_op(
    origin_addr: *const c_void,
    result_addr: *mut c_void,
    datatype: Datatype,
    target_rank: c_int,
    target_disp: isize,
    op: Op,
    win: Win,
) -> bool {
    // SAFETY: one element of each, as there.
    unsafe {
        try_get_accumulate(
            origin_addr,
            1,
            datatype,
            result_addr,
            1,
            datatype,
            target_rank,
            target_disp,
            1,
            datatype,
            op,
            win,
        )
    }
}

#[inline(always)]
pub(crate) unsafe fn try_compare_and_swap(
    origin_addr: *const c_void,
    compare_addr: *const c_void,
    result_addr: *mut c_void,
    datatype: Datatype,
    target_rank: c_int,
    target_disp: isize,
    win: Win,
) -> bool {
    use Class::*;
    let Some(basic) = Basic::of_handle(datatype.0 as u32) else { return false };
    if !matches!(basic.class(), CInteger | FortranInteger | Logical | MultiLanguage | Byte) {
        return false;
    }
    let result = (result_addr.cast_const(), 1, datatype);
    // SAFETY: the caller's buffers; the window reads and writes them and does nothing else.
    unsafe {
        let Some((window, result)) = plainly(result, (target_rank, 1, datatype, win)) else {
            return false;
        };
        let (Some(compare), Some(new)) =
            (plain(compare_addr, 1, datatype), plain(origin_addr, 1, datatype))
        else {
            return false;
        };
        let at = (target_rank as usize, target_disp as i64);
        window.try_swap(basic, (compare, new), result, at)
    }
}
