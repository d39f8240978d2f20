//! Put, get, accumulate and their like, with requests and without (MPI 5.0, section 12.3).

use super::{run, target, window};
use crate::arguments::{buffer, committed, count, op as op_of, plain, room_for_request};
use crate::chapters::messages::start_for;
use crate::constants::*;
use crate::error::Error;
use crate::objects::{Belongs, OpObject, RequestKind, WinObject};
use crate::state::known;
use crate::types::{Datatype, Op, Request, Win};
use std::ffi::{c_int, c_void};
use std::rc::Rc;
use weft_datatype::Type;
use weft_fabric::Sge;
use weft_process::{Active, Buffer, Executor, Status};
use weft_rma::{Change, Issued, TargetLocation};

const ORIGIN: [&str; 3] = ["origin_addr", "origin_count", "origin_datatype"];
const RESULT: [&str; 3] = ["result_addr", "result_count", "result_datatype"];

/// The target's side of an operation, checked.
struct Side {
    win: Win,
    object: Rc<WinObject>,
    /// `None`: MPI_PROC_NULL.
    rank: Option<usize>,
    disp: i64,
    count: usize,
    ty: Type,
}

impl Side {
    fn new(win: Win, rank: c_int, disp: isize, elements: i64, ty: Datatype) -> Result<Side, Error> {
        let object = window(win)?;
        let rank = target(&object, rank, "target_rank")?;
        let count = count(elements, "target_count")?;
        let ty = committed(ty, "target_datatype")?.ty.clone();
        Ok(Side { win, object, rank, disp: disp as i64, count, ty })
    }

    fn spot(&self) -> Option<TargetLocation<'_>> {
        Some(TargetLocation { rank: self.rank?, disp: self.disp, count: self.count, ty: &self.ty })
    }

    /// Runs the operation, and makes a request of it if somebody wants one.
    ///
    /// # Safety
    /// `request`, if there is one, is NULL or may be written.
    unsafe fn issue(
        &self,
        call: &'static str,
        request: Option<*mut Request>,
        operation: impl AsyncFnOnce(
            &super::WindowOf,
            &TargetLocation<'_>,
        ) -> Result<Issued, weft_process::Error>,
    ) -> Result<(), Error> {
        if let Some(request) = request {
            room_for_request(request)?;
        }
        let window = &self.object.window;
        let issued = match self.spot() {
            Some(spot) => Some(run(&self.object, call, operation(window, &spot))?),
            None => None,
        };
        let Some(request) = request else { return Ok(()) };
        let active = match issued {
            Some(issued) if !window.is_over(issued) => {
                let again = window.clone();
                let end = async move { again.until_over(issued).await };
                Active::Task(window.comm().engine().spawn_by(Executor::Anybody, end))
            }
            _ => Active::Done(Status::default()),
        };
        // SAFETY: by contract.
        unsafe {
            start_for(request, window.comm(), Belongs::Win(self.win), active, RequestKind::OneSided)
        }
    }
}

/// A buffer whose datatype is one also if it has no elements: as the target's, which is not looked at in every call.
///
/// # Safety
/// As for [`buffer`].
unsafe fn typed(
    address: *const c_void,
    elements: i64,
    ty: Datatype,
    names: [&'static str; 3],
) -> Result<Buffer, Error> {
    committed(ty, names[2])?;
    // SAFETY: by contract.
    unsafe { buffer(address, elements, ty, names) }
}

/// The window and the memory of an operation on plain bytes.
///
/// # Safety
/// As for [`plain`]; while the result is used, nothing adds or takes away a window.
#[inline(always)]
pub(super) unsafe fn plainly(
    (address, elements, ty): (*const c_void, i64, Datatype),
    (rank, target_count, target_type, win): (c_int, i64, Datatype, Win),
) -> Option<(&'static super::WindowOf, Sge)> {
    if ty != target_type || elements != target_count || rank < 0 {
        return None;
    }
    // SAFETY: by contract.
    let (origin, wins) =
        unsafe { (plain(address, elements, ty)?, known()?.wins.try_borrow_unguarded()) };
    Some((&wins.ok()?.get(win.0)?.window, origin))
}

#[allow(clippy::too_many_arguments)] // MPI's own
#[inline(always)]
pub(crate) unsafe fn try_put(
    origin_addr: *const c_void,
    origin_count: i64,
    origin_datatype: Datatype,
    target_rank: c_int,
    target_disp: isize,
    target_count: i64,
    target_datatype: Datatype,
    win: Win,
) -> bool {
    let origin = (origin_addr, origin_count, origin_datatype);
    let to = (target_rank, target_count, target_datatype, win);
    // SAFETY: the caller's buffer; the window copies and does nothing else.
    let Some((window, origin)) = (unsafe { plainly(origin, to) }) else { return false };
    window.try_put(origin, target_rank as usize, target_disp as i64)
}

#[allow(clippy::too_many_arguments)] // MPI's own
pub(crate) unsafe fn put(
    origin_addr: *const c_void,
    origin_count: i64,
    origin_datatype: Datatype,
    target_rank: c_int,
    target_disp: isize,
    target_count: i64,
    target_datatype: Datatype,
    win: Win,
) -> Result<(), Error> {
    let origin = (origin_addr, origin_count, origin_datatype);
    let to = (target_rank, target_disp, target_count, target_datatype, win);
    // SAFETY: the caller's buffer.
    unsafe { put_with("MPI_Put", origin, to, None) }
}

/// # Safety
/// As for [`buffer`] and [`Side::issue`].
#[inline(never)]
unsafe fn put_with(
    call: &'static str,
    (address, elements, ty): (*const c_void, i64, Datatype),
    (rank, disp, target_count, target_type, win): (c_int, isize, i64, Datatype, Win),
    request: Option<*mut Request>,
) -> Result<(), Error> {
    let side = Side::new(win, rank, disp, target_count, target_type)?;
    // SAFETY: by contract.
    unsafe {
        let origin = typed(address, elements, ty, ORIGIN)?;
        side.issue(call, request, async |window, spot| window.put(&origin, spot).await)
    }
}

#[allow(clippy::too_many_arguments)] // MPI's own
pub(crate) unsafe fn rput(
    origin_addr: *const c_void,
    origin_count: i64,
    origin_datatype: Datatype,
    target_rank: c_int,
    target_disp: isize,
    target_count: i64,
    target_datatype: Datatype,
    win: Win,
    request: *mut Request,
) -> Result<(), Error> {
    let origin = (origin_addr, origin_count, origin_datatype);
    let to = (target_rank, target_disp, target_count, target_datatype, win);
    // SAFETY: the caller's buffer and pointer.
    unsafe { put_with("MPI_Rput", origin, to, Some(request)) }
}

#[allow(clippy::too_many_arguments)] // MPI's own
#[inline(always)]
pub(crate) unsafe fn try_get(
    origin_addr: *mut c_void,
    origin_count: i64,
    origin_datatype: Datatype,
    target_rank: c_int,
    target_disp: isize,
    target_count: i64,
    target_datatype: Datatype,
    win: Win,
) -> bool {
    let origin = (origin_addr.cast_const(), origin_count, origin_datatype);
    let from = (target_rank, target_count, target_datatype, win);
    // SAFETY: the caller's buffer; the window copies and does nothing else.
    let Some((window, origin)) = (unsafe { plainly(origin, from) }) else { return false };
    window.try_get(origin, target_rank as usize, target_disp as i64)
}

#[allow(clippy::too_many_arguments)] // MPI's own
pub(crate) unsafe fn get(
    origin_addr: *mut c_void,
    origin_count: i64,
    origin_datatype: Datatype,
    target_rank: c_int,
    target_disp: isize,
    target_count: i64,
    target_datatype: Datatype,
    win: Win,
) -> Result<(), Error> {
    let origin = (origin_addr.cast_const(), origin_count, origin_datatype);
    let from = (target_rank, target_disp, target_count, target_datatype, win);
    // SAFETY: the caller's buffer.
    unsafe { get_with("MPI_Get", origin, from, None) }
}

/// # Safety
/// As for [`buffer`] and [`Side::issue`].
#[inline(never)]
unsafe fn get_with(
    call: &'static str,
    (address, elements, ty): (*const c_void, i64, Datatype),
    (rank, disp, target_count, target_type, win): (c_int, isize, i64, Datatype, Win),
    request: Option<*mut Request>,
) -> Result<(), Error> {
    let side = Side::new(win, rank, disp, target_count, target_type)?;
    // SAFETY: by contract.
    unsafe {
        let origin = typed(address, elements, ty, ORIGIN)?;
        side.issue(call, request, async |window, spot| window.get(&origin, spot).await)
    }
}

#[allow(clippy::too_many_arguments)] // MPI's own
pub(crate) unsafe fn rget(
    origin_addr: *mut c_void,
    origin_count: i64,
    origin_datatype: Datatype,
    target_rank: c_int,
    target_disp: isize,
    target_count: i64,
    target_datatype: Datatype,
    win: Win,
    request: *mut Request,
) -> Result<(), Error> {
    let origin = (origin_addr.cast_const(), origin_count, origin_datatype);
    let from = (target_rank, target_disp, target_count, target_datatype, win);
    // SAFETY: the caller's buffer and pointer.
    unsafe { get_with("MPI_Rget", origin, from, Some(request)) }
}

/// A predefined operator: the only ones that accumulates take.
fn operator(handle: Op) -> Result<weft_datatype::Op, Error> {
    match &*op_of(handle)? {
        OpObject::Predefined(op) => Ok(*op),
        OpObject::User { .. } => {
            let text =
                "argument op is the program's own: one-sided operations take predefined ones";
            Err(Error::new(MPI_ERR_OP, text))
        }
    }
}

/// An operator for an accumulate without a result, or (`fetches`) with one.
fn checked(handle: Op, fetches: bool) -> Result<weft_datatype::Op, Error> {
    let op = operator(handle)?;
    if op == weft_datatype::Op::NoOp && !fetches {
        let text = "argument op is MPI_NO_OP, which only operations that fetch take";
        return Err(Error::new(MPI_ERR_OP, text));
    }
    Ok(op)
}

/// # Safety
/// As for [`Side::issue`]; the buffers are the program's.
unsafe fn change(
    call: &'static str,
    side: &Side,
    op: weft_datatype::Op,
    origin: Option<Buffer>,
    result: Option<Buffer>,
    request: Option<*mut Request>,
) -> Result<(), Error> {
    let operation = async |window: &super::WindowOf, spot: &TargetLocation<'_>| {
        let change = Change::Reduce { op, origin: origin.as_ref() };
        window.accumulate(change, result.as_ref(), spot).await
    };
    // SAFETY: by contract.
    unsafe { side.issue(call, request, operation) }
}

#[allow(clippy::too_many_arguments)] // MPI's own
pub(crate) unsafe fn accumulate(
    origin_addr: *const c_void,
    origin_count: i64,
    origin_datatype: Datatype,
    target_rank: c_int,
    target_disp: isize,
    target_count: i64,
    target_datatype: Datatype,
    op: Op,
    win: Win,
) -> Result<(), Error> {
    let side = Side::new(win, target_rank, target_disp, target_count, target_datatype)?;
    let op = checked(op, false)?;
    // SAFETY: the caller's buffer.
    unsafe {
        let origin = typed(origin_addr, origin_count, origin_datatype, ORIGIN)?;
        change("MPI_Accumulate", &side, op, Some(origin), None, None)
    }
}

#[allow(clippy::too_many_arguments)] // MPI's own
pub(crate) unsafe fn raccumulate(
    origin_addr: *const c_void,
    origin_count: i64,
    origin_datatype: Datatype,
    target_rank: c_int,
    target_disp: isize,
    target_count: i64,
    target_datatype: Datatype,
    op: Op,
    win: Win,
    request: *mut Request,
) -> Result<(), Error> {
    let side = Side::new(win, target_rank, target_disp, target_count, target_datatype)?;
    let op = checked(op, false)?;
    // SAFETY: the caller's buffer and pointer.
    unsafe {
        let origin = typed(origin_addr, origin_count, origin_datatype, ORIGIN)?;
        change("MPI_Raccumulate", &side, op, Some(origin), None, Some(request))
    }
}

/// Origin and result of an operation that fetches; with `MPI_NO_OP` nobody looks at the origin.
///
/// # Safety
/// As for [`buffer`].
unsafe fn both(
    op: weft_datatype::Op,
    (address, elements, ty): (*const c_void, i64, Datatype),
    (to, result_elements, result_type): (*mut c_void, i64, Datatype),
) -> Result<(Option<Buffer>, Buffer), Error> {
    // SAFETY: by contract.
    unsafe {
        let result = typed(to, result_elements, result_type, RESULT)?;
        let origin = match op {
            weft_datatype::Op::NoOp => None,
            _ => Some(typed(address, elements, ty, ORIGIN)?),
        };
        Ok((origin, result))
    }
}

#[allow(clippy::too_many_arguments)] // MPI's own
pub(crate) unsafe fn get_accumulate(
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
) -> Result<(), Error> {
    let side = Side::new(win, target_rank, target_disp, target_count, target_datatype)?;
    let op = checked(op, true)?;
    let result = (result_addr, result_count, result_datatype);
    // SAFETY: the caller's buffers.
    unsafe {
        let (origin, result) = both(op, (origin_addr, origin_count, origin_datatype), result)?;
        change("MPI_Get_accumulate", &side, op, origin, Some(result), None)
    }
}

#[allow(clippy::too_many_arguments)] // MPI's own
pub(crate) unsafe fn rget_accumulate(
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
    request: *mut Request,
) -> Result<(), Error> {
    let side = Side::new(win, target_rank, target_disp, target_count, target_datatype)?;
    let op = checked(op, true)?;
    let result = (result_addr, result_count, result_datatype);
    // SAFETY: the caller's buffers and pointer.
    unsafe {
        let (origin, result) = both(op, (origin_addr, origin_count, origin_datatype), result)?;
        change("MPI_Rget_accumulate", &side, op, origin, Some(result), Some(request))
    }
}

/// The one element of a predefined type that some calls are for.
fn one_element(ty: Datatype) -> Result<(), Error> {
    if committed(ty, "datatype")?.predefined {
        return Ok(());
    }
    Err(Error::new(MPI_ERR_TYPE, "argument datatype is not predefined, as this call needs"))
}

pub(crate) unsafe fn fetch_and_op(
    origin_addr: *const c_void,
    result_addr: *mut c_void,
    datatype: Datatype,
    target_rank: c_int,
    target_disp: isize,
    op: Op,
    win: Win,
) -> Result<(), Error> {
    let side = Side::new(win, target_rank, target_disp, 1, datatype)?;
    one_element(datatype)?;
    let op = checked(op, true)?;
    // SAFETY: the caller's buffers.
    unsafe {
        let (origin, result) = both(op, (origin_addr, 1, datatype), (result_addr, 1, datatype))?;
        change("MPI_Fetch_and_op", &side, op, origin, Some(result), None)
    }
}

pub(crate) unsafe fn compare_and_swap(
    origin_addr: *const c_void,
    compare_addr: *const c_void,
    result_addr: *mut c_void,
    datatype: Datatype,
    target_rank: c_int,
    target_disp: isize,
    win: Win,
) -> Result<(), Error> {
    use weft_datatype::Class::*;
    let side = Side::new(win, target_rank, target_disp, 1, datatype)?;
    let class = side.ty.basic().map(|basic| basic.class());
    if !matches!(class, Some(CInteger | FortranInteger | Logical | MultiLanguage | Byte)) {
        let text = "argument datatype: MPI_Compare_and_swap is for integers, logicals, bytes and the \
                    multi-language types";
        return Err(Error::new(MPI_ERR_TYPE, text));
    }
    // SAFETY: the caller's buffers.
    unsafe {
        let new = typed(origin_addr, 1, datatype, ["origin_addr", "1", "datatype"])?;
        let compare = typed(compare_addr, 1, datatype, ["compare_addr", "1", "datatype"])?;
        let result = typed(result_addr, 1, datatype, ["result_addr", "1", "datatype"])?;
        side.issue("MPI_Compare_and_swap", None, async |window, spot| {
            let change = Change::Swap { compare: &compare, new: &new };
            window.accumulate(change, Some(&result), spot).await
        })
    }
}
