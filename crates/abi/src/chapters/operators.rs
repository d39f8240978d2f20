//! Reduction operators (MPI 5.0, section 6.9).

use crate::arguments::{committed, not_null, op, predefined_datatype, store, store_new};
use crate::callback::CallbackPointer;
use crate::calls::ReduceLocal;
use crate::chapter_state::ChapterState;
use crate::constants::*;
use crate::error::Error;
use crate::lock;
use crate::objects::{OpObject, TypeObject, UserReduction};
use crate::state::state;
use crate::table::PREDEFINED_END;
use crate::types::{Datatype, Op, UserFunction, UserFunctionC};
use std::cell::RefCell;
use std::ffi::c_int;
use std::rc::Rc;
use weft_collective::{ElementReduction, OperandOrder};
use weft_datatype::{Basic, ElementSpacing, OperandClass, PredefinedOp, ReductionArrays};
use weft_fabric::{Sge, StagingPool};
use weft_process::Executor;

/// MPI_Op_create.
pub(crate) unsafe fn op_create(
    user_fn: CallbackPointer<UserFunction>,
    commute: c_int,
    op: *mut Op,
) -> Result<(), Error> {
    // SAFETY: `op` is NULL or points to room for the result, as MPI requires of the program.
    unsafe { create(UserReduction::Int(user_fn), user_fn.address(), commute, op) }
}

/// MPI_Op_create_c.
pub(crate) unsafe fn op_create_c(
    user_fn: CallbackPointer<UserFunctionC>,
    commute: c_int,
    op: *mut Op,
) -> Result<(), Error> {
    // SAFETY: `op` is NULL or points to room for the result, as MPI requires of the program.
    unsafe { create(UserReduction::Count(user_fn), user_fn.address(), commute, op) }
}

/// # Safety
/// `op` is NULL or may be written.
pub(super) unsafe fn create(
    function: UserReduction,
    address: usize,
    commute: c_int,
    op: *mut Op,
) -> Result<(), Error> {
    if address == 0 {
        return Err(Error::new(MPI_ERR_ARG, "argument user_fn is NULL"));
    }
    let object = Rc::new(OpObject::User { function, commutes: commute != 0 });
    // SAFETY: `op` points to room for the result, as MPI requires of the program.
    unsafe { store_new(&state().ops, object, Op, op, "op") }
}

/// MPI_Op_free.
pub(crate) unsafe fn op_free(handle: *mut Op) -> Result<(), Error> {
    // SAFETY: `handle` is not NULL after the check, so it may be read and written, as MPI requires of the program.
    unsafe {
        not_null(handle, "op")?;
        if matches!(*op(*handle)?, OpObject::Predefined(_)) {
            return Err(Error::new(MPI_ERR_OP, "a predefined operator cannot be freed"));
        }
        state().ops.borrow_mut().remove((*handle).0);
        handle.write(MPI_OP_NULL);
    }
    Ok(())
}

/// MPI_Op_commutative.
pub(crate) unsafe fn op_commutative(handle: Op, commute: *mut c_int) -> Result<(), Error> {
    let yes = match &*op(handle)? {
        OpObject::Predefined(op) => op.commutative(),
        OpObject::User { commutes, .. } => *commutes,
    };
    // SAFETY: `commute` points to room for the result, as MPI requires of the program.
    unsafe { store(commute, c_int::from(yes), "commute") }
}

/// A predefined operator on packed elements of one predefined type.
struct PredefinedReduction {
    op: PredefinedOp,
    basic: Basic,
    order: OperandOrder,
}

impl PredefinedReduction {
    fn new(op: PredefinedOp, basic: Basic) -> PredefinedReduction {
        use PredefinedOp::*;
        let order = match (op, basic.class()) {
            (Replace | NoOp, _) => OperandOrder::Fixed,
            (Sum | Prod, OperandClass::Floating) => OperandOrder::Pairs,
            // The larger of two zeros of opposite signs depends on the order.
            (_, OperandClass::Floating | OperandClass::Complex | OperandClass::Pair) => {
                OperandOrder::Commutes
            }
            _ => OperandOrder::Any,
        };
        PredefinedReduction { op, basic, order }
    }
}

impl ElementReduction for PredefinedReduction {
    fn combine(&self, left: Sge, right: Sge) {
        let count = right.len() / self.basic.size();
        let done = self.op.apply(self.basic, ElementSpacing::Packed, count, left, right);
        debug_assert!(done.is_ok(), "checked when the operation was started");
    }

    fn combine_into(&self, left: Sge, right: Sge, result: Sge) {
        let count = result.len() / self.basic.size();
        let arrays = ReductionArrays { left, right, result };
        let done = self.op.combine(self.basic, count, arrays);
        debug_assert!(done.is_ok(), "checked when the operation was started");
    }

    fn commutes(&self) -> bool {
        self.op.commutative()
    }

    fn order(&self) -> OperandOrder {
        self.order
    }
}

/// A reduction by a function of the program, on packed elements of any type. The function gets the elements with the gaps that they
/// have in memory.
struct User {
    op: Rc<OpObject>,
    ty: Rc<TypeObject>,
    pool: StagingPool,
}

impl User {
    /// Calls the function. If the number of elements does not fit into an `int`, calls the function for several parts.
    fn call(&self, function: UserReduction, left: *mut u8, right: *mut u8, count: usize) {
        const MOST: usize = c_int::MAX as usize;
        if count > MOST && !matches!(function, UserReduction::Count(_)) {
            let step = (MOST as isize).wrapping_mul(self.ty.ty.extent() as isize);
            self.call(function, left, right, MOST);
            let (left, right) = (left.wrapping_offset(step), right.wrapping_offset(step));
            return self.call(function, left, right, count - MOST);
        }
        let mut ty: Datatype = self.ty.handle.get();
        lock::unlocked(|| {
            // SAFETY: the program made the operator with a function of this type, which takes `count` elements at both
            // addresses. The caller has laid out `count` elements at both addresses.
            unsafe {
                match function {
                    UserReduction::Int(f) => {
                        let mut len = count as c_int;
                        f.function()(left.cast(), right.cast(), &raw mut len, &raw mut ty);
                    }
                    UserReduction::Count(f) => {
                        let mut len = count as i64;
                        f.function()(left.cast(), right.cast(), &raw mut len, &raw mut ty);
                    }
                    UserReduction::Bridged(f) => {
                        (f.call)(f.state, left.cast(), right.cast(), count as i64, ty);
                    }
                }
            }
        });
    }
}

impl ElementReduction for User {
    fn combine(&self, left: Sge, right: Sge) {
        let OpObject::User { function, .. } = *self.op else { return };
        let ty = &self.ty.ty;
        if ty.size() == 0 || right.is_empty() {
            return;
        }
        let count = right.len() / ty.size();
        if ty.contiguous() {
            return self.call(function, left.ptr(), right.ptr(), count);
        }
        let Ok((low, len)) = ty.span(count) else { return };
        let (a, b) = (self.pool.take(len), self.pool.take(len));
        let base =
            |staging: &weft_fabric::Staging| staging.sge().ptr().wrapping_offset(-low as isize);
        // SAFETY: each staging buffer covers the span of the elements around its base.
        unsafe {
            ty.unpack(base(&a), count, left.ptr());
            ty.unpack(base(&b), count, right.ptr());
            self.call(function, base(&a), base(&b), count);
            ty.pack(base(&b), count, right.ptr());
        }
    }

    fn commutes(&self) -> bool {
        matches!(*self.op, OpObject::User { commutes: true, .. })
    }
}

/// A reduction of elements of a type, and the threads that may run it. The helper thread does not run functions of the program.
pub type Reduction = (Rc<dyn ElementReduction>, Executor);

static KNOWN: ChapterState<Known> =
    ChapterState::new(Known([const { RefCell::new(None) }; Known::PLACES]));

/// Cache of reductions of predefined types by predefined operators. Programs repeat their reductions, and a small reduction
/// takes less time than an allocation.
struct Known([RefCell<Option<OperatorUse>>; Known::PLACES]);

type OperatorUse = (Op, Datatype, Rc<dyn ElementReduction>);

impl Known {
    /// Number of places, a power of two. Reductions with the same place replace each other.
    const PLACES: usize = 32;

    fn place(&self, op: Op, ty: Datatype) -> &RefCell<Option<OperatorUse>> {
        // Handles of a kind differ in their lowest bits.
        &self.0[(op.0.wrapping_mul(5) ^ ty.0) % Known::PLACES]
    }
}

/// Returns the reduction of elements of the datatype by the operator behind a handle.
#[inline]
pub fn reduction(op: Op, ty: Datatype) -> Result<Reduction, Error> {
    let place = KNOWN.place(op, ty);
    if let Some((known, of, reduce)) = &*place.borrow()
        && (*known, *of) == (op, ty)
    {
        return Ok((reduce.clone(), Executor::Anybody));
    }
    let object = committed(ty, "datatype")?;
    let reduction = new_reduction(op, &object)?;
    if object.predefined && reduction.1 == Executor::Anybody {
        *place.borrow_mut() = Some((op, ty, reduction.0.clone()));
    }
    Ok(reduction)
}

fn new_reduction(handle: Op, ty: &Rc<TypeObject>) -> Result<Reduction, Error> {
    let object = op(handle)?;
    match &*object {
        OpObject::User { .. } => {
            // The pool belongs to the process, so that a reduction in a loop allocates only once.
            let engine = state().engine.get();
            let pool = engine.map_or_else(StagingPool::default, |e| e.endpoint().staging().clone());
            Ok((Rc::new(User { op: object, ty: ty.clone(), pool }), Executor::Program))
        }
        OpObject::Predefined(op) => {
            if let weft_datatype::PredefinedOp::Replace | weft_datatype::PredefinedOp::NoOp = op {
                let text = format!(
                    "{} is for accumulates in windows alone (MPI 5.0, section 12.3.4)",
                    op.name()
                );
                return Err(Error::new(MPI_ERR_OP, text));
            }
            let Some(basic) = ty.ty.equivalent() else {
                let text = format!(
                    "{} is defined on predefined datatypes; this one is made of others: \
                     MPI_Op_create makes an operator for it",
                    op.name()
                );
                return Err(Error::new(MPI_ERR_OP, text));
            };
            op.check(basic)?;
            Ok((Rc::new(PredefinedReduction::new(*op, basic)), Executor::Anybody))
        }
    }
}

/// MPI_Reduce_local, MPI_Reduce_local_c.
impl ReduceLocal {
    pub(crate) fn blocking(self) -> Result<(), Error> {
        let ReduceLocal { inbuf, inoutbuf, op } = self;
        let predefined = weft_datatype::PredefinedOp::of_handle(op.0 as u32);
        if let Some(op) = predefined.filter(|_| op.0 < PREDEFINED_END)
            && op.commutative()
            && let Some(basic) = predefined_datatype(inbuf.ty).and_then(|ty| ty.ty.equivalent())
            // If no element has to be packed, nothing is allocated, because the reduction of 16 doubles takes less time than an
            // allocation.
            && let (Some(input), Some(inout)) = (inbuf.plain(), inoutbuf.plain())
        {
            return Ok(op.apply(
                basic,
                ElementSpacing::Packed,
                inbuf.count as usize,
                input,
                inout,
            )?);
        }
        let (reduce, _) = reduction(op, inbuf.ty)?;
        let pool = StagingPool::default();
        let (input, inout) = (inbuf.buffer()?, inoutbuf.buffer()?);
        let (left, right) = (input.readable(&pool), inout.readable(&pool));
        reduce.combine(left.sge, right.sge);
        right.unpack(&inout, inout.len());
        Ok(())
    }
}
