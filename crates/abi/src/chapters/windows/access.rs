//! Put, get and accumulate operations, with requests and without (MPI 5.0, section 12.3).

use super::{run, target, window};
use crate::arguments::{committed, count, op as op_of, room_for_request};
use crate::calls::{Accumulate, CompareAndSwap, FetchAndOp, Get, GetAccumulate, Put};
use crate::constants::*;
use crate::elements::{Arguments, Elements, TargetArgs};
use crate::error::Error;
use crate::lanes::hold_window;
use crate::objects::{Belongs, OpObject, RequestOrigin, WinObject, WindowOf};
use crate::requests::start_for;
use crate::types::{Op, Request, Win};
use std::rc::Rc;
use weft_datatype::Type;
use weft_process::{Active, Buffer, Executor, Status};
use weft_rma::{Issued, TargetChange, TargetLocation};

/// Checked target of an operation: window, rank, displacement, count and datatype.
struct Side {
    win: Win,
    object: Rc<WinObject>,
    /// Target rank; `None` for MPI_PROC_NULL.
    rank: Option<usize>,
    disp: i64,
    count: usize,
    ty: Type,
}

impl Side {
    fn new(win: Win, given: TargetArgs) -> Result<Side, Error> {
        let object = window(win)?;
        let rank = target(&object, given.rank, "target_rank")?;
        let count = count(given.count, "target_count")?;
        let ty = committed(given.ty, "target_datatype")?.ty.clone();
        Ok(Side { win, object, rank, disp: given.disp as i64, count, ty })
    }

    fn spot(&self) -> Option<TargetLocation<'_>> {
        Some(TargetLocation { rank: self.rank?, disp: self.disp, count: self.count, ty: &self.ty })
    }

    /// Runs the operation, and makes a request for it if the function has one.
    ///
    /// # Safety
    /// `request`, if there is one, is NULL or may be written.
    unsafe fn issue(
        &self,
        call: &'static str,
        request: Option<*mut Request>,
        operation: impl AsyncFnOnce(
            &WindowOf,
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
            Some(issued) if !hold_window(&self.object, || window.is_over(issued)) => {
                let again = window.clone();
                let end = async move { again.until_over(issued).await };
                Active::Task(window.comm().engine().spawn_by(Executor::Anybody, end))
            }
            _ => Active::Done(Status::default()),
        };
        // SAFETY: `request` is NULL or may be written; the contract of this function says so.
        unsafe {
            start_for(
                request,
                window.comm(),
                Belongs::Win(self.win),
                active,
                RequestOrigin::OneSided,
            )
        }
    }
}

/// A one-sided operation, which may have a form with a request.
pub(crate) trait OneSided: Arguments {
    /// C name of the form with a request, if there is such a form.
    const REQUESTED: &'static str = Self::NAME;

    /// # Safety
    /// `request`, if there is one, is NULL or may be written.
    unsafe fn issue(self, call: &'static str, request: Option<*mut Request>) -> Result<(), Error>;

    #[inline(always)]
    fn blocking(self) -> Result<(), Error> {
        // SAFETY: there is no request to write.
        unsafe { self.issue(Self::NAME, None) }
    }

    /// # Safety
    /// `request` is NULL or may be written.
    #[inline(always)]
    unsafe fn nonblocking(self, request: *mut Request) -> Result<(), Error> {
        // SAFETY: `issue` needs a `request` that is NULL or may be written; the contract of this function says so.
        unsafe { self.issue(Self::REQUESTED, Some(request)) }
    }
}

/// Returns a buffer, and checks its datatype even if the buffer has no elements. The datatype of the target, which some calls never
/// use, is checked in the same way.
fn typed(given: Elements) -> Result<Buffer, Error> {
    committed(given.ty, given.names[2])?;
    given.buffer()
}

/// MPI_Put, MPI_Put_c, MPI_Rput, MPI_Rput_c.
impl OneSided for Put {
    const REQUESTED: &'static str = "MPI_Rput";

    #[inline(never)]
    unsafe fn issue(self, call: &'static str, request: Option<*mut Request>) -> Result<(), Error> {
        let side = Side::new(self.win, self.target)?;
        let origin = typed(self.origin_addr)?;
        // SAFETY: `issue` needs a `request` that is NULL or may be written, if there is one; the contract of this function says so.
        unsafe { side.issue(call, request, async |window, spot| window.put(&origin, spot).await) }
    }
}

/// MPI_Get, MPI_Get_c, MPI_Rget, MPI_Rget_c.
impl OneSided for Get {
    const REQUESTED: &'static str = "MPI_Rget";

    #[inline(never)]
    unsafe fn issue(self, call: &'static str, request: Option<*mut Request>) -> Result<(), Error> {
        let side = Side::new(self.win, self.target)?;
        let origin = typed(self.origin_addr)?;
        // SAFETY: `issue` needs a `request` that is NULL or may be written, if there is one; the contract of this function says so.
        unsafe { side.issue(call, request, async |window, spot| window.get(&origin, spot).await) }
    }
}

/// Returns the predefined operator of a handle. Accumulates accept only predefined operators. `result` gets the old value, if the
/// operation fetches it.
fn operator(handle: Op, result: Option<&Elements>) -> Result<weft_datatype::PredefinedOp, Error> {
    let OpObject::Predefined(op) = *op_of(handle)? else {
        let text = "argument op is the program's own: one-sided operations take predefined ones";
        return Err(Error::new(MPI_ERR_OP, text));
    };
    if op == weft_datatype::PredefinedOp::NoOp && result.is_none() {
        let text = "argument op is MPI_NO_OP, which only operations that fetch take";
        return Err(Error::new(MPI_ERR_OP, text));
    }
    Ok(op)
}

/// Runs an accumulate. With `MPI_NO_OP`, the origin buffer is ignored.
///
/// # Safety
/// `request`, if there is one, is NULL or may be written.
unsafe fn change(
    call: &'static str,
    request: Option<*mut Request>,
    side: &Side,
    op: Op,
    origin: Elements,
    result: Option<Elements>,
) -> Result<(), Error> {
    let op = operator(op, result.as_ref())?;
    let result = result.map(typed).transpose()?;
    let looks = op != weft_datatype::PredefinedOp::NoOp;
    let origin = looks.then(|| typed(origin)).transpose()?;
    let operation = async |window: &WindowOf, spot: &TargetLocation<'_>| {
        let change = TargetChange::Reduce { op, origin: origin.as_ref() };
        window.accumulate(change, result.as_ref(), spot).await
    };
    // SAFETY: `issue` needs a `request` that is NULL or may be written, if there is one; the contract of this function says so.
    unsafe { side.issue(call, request, operation) }
}

/// MPI_Accumulate, MPI_Accumulate_c, MPI_Raccumulate, MPI_Raccumulate_c.
impl OneSided for Accumulate {
    const REQUESTED: &'static str = "MPI_Raccumulate";

    unsafe fn issue(self, call: &'static str, request: Option<*mut Request>) -> Result<(), Error> {
        let side = Side::new(self.win, self.target)?;
        // SAFETY: `change` needs a `request` that is NULL or may be written, if there is one (contract of this function).
        unsafe { change(call, request, &side, self.op, self.origin_addr, None) }
    }
}

/// MPI_Get_accumulate, MPI_Get_accumulate_c, MPI_Rget_accumulate, MPI_Rget_accumulate_c.
impl OneSided for GetAccumulate {
    const REQUESTED: &'static str = "MPI_Rget_accumulate";

    unsafe fn issue(self, call: &'static str, request: Option<*mut Request>) -> Result<(), Error> {
        let side = Side::new(self.win, self.target)?;
        // SAFETY: `change` needs a `request` that is NULL or may be written, if there is one (contract of this function).
        unsafe { change(call, request, &side, self.op, self.origin_addr, Some(self.result_addr)) }
    }
}

/// MPI_Fetch_and_op.
impl OneSided for FetchAndOp {
    unsafe fn issue(self, call: &'static str, request: Option<*mut Request>) -> Result<(), Error> {
        let side = Side::new(self.win, self.target)?;
        if !committed(self.target.ty, "datatype")?.predefined {
            let text = "argument datatype is not predefined, as this call needs";
            return Err(Error::new(MPI_ERR_TYPE, text));
        }
        // SAFETY: `change` needs a `request` that is NULL or may be written, if there is one (contract of this function).
        unsafe { change(call, request, &side, self.op, self.origin_addr, Some(self.result_addr)) }
    }
}

/// MPI_Compare_and_swap.
impl OneSided for CompareAndSwap {
    unsafe fn issue(self, call: &'static str, request: Option<*mut Request>) -> Result<(), Error> {
        use weft_datatype::OperandClass::*;
        let side = Side::new(self.win, self.target)?;
        let class = side.ty.basic().map(|basic| basic.class());
        if !matches!(class, Some(CInteger | FortranInteger | Logical | MultiLanguage | Byte)) {
            let text = "argument datatype: MPI_Compare_and_swap is for integers, logicals, bytes and the \
                        multi-language types";
            return Err(Error::new(MPI_ERR_TYPE, text));
        }
        let (new, compare) = (typed(self.origin_addr)?, typed(self.compare_addr)?);
        let result = typed(self.result_addr)?;
        // SAFETY: `issue` needs a `request` that is NULL or may be written, if there is one; the contract of this function says so.
        unsafe {
            side.issue(call, request, async |window, spot| {
                let change = TargetChange::Swap { compare: &compare, new: &new };
                window.accumulate(change, Some(&result), spot).await
            })
        }
    }
}
