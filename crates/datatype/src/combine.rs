//! Reductions into separate memory: `result[i] = left[i] op right[i]`.
//!
//! Compared with a copy and [`PredefinedOp::apply`], such a reduction saves a pass over memory. Such reductions exist only for the
//! operators and types that programs use in long reductions. The loops here are separate from the loops that work in place, because
//! compilers vectorise the loops here after a test that the arrays do not overlap.

#[cfg(target_arch = "x86_64")]
use crate::level::{AVX2, AVX512, level};
use crate::number::Numeric;
use crate::{Basic, DatatypeError, ElementSpacing, PredefinedOp, Repr};
use weft_fabric::Sge;

/// Operands and results of a reduction into separate memory.
#[derive(Debug, Clone, Copy)]
pub struct ReductionArrays {
    /// Left operands.
    pub left: Sge,
    /// Right operands.
    pub right: Sge,
    /// Results. Overlaps neither operand.
    pub result: Sge,
}

impl PredefinedOp {
    /// Computes `result[i] = left[i] op right[i]` for `count` elements of `basic`. The elements are packed, at any alignment. The
    /// results have the same bits as after a copy of `right` to `result` and [`PredefinedOp::apply`].
    ///
    /// Errors: as for [`PredefinedOp::apply`].
    ///
    /// # Panics
    /// If a piece of memory is too short for `count` elements.
    pub fn combine(
        self,
        basic: Basic,
        count: usize,
        arrays: ReductionArrays,
    ) -> Result<(), DatatypeError> {
        let ReductionArrays { left, right, result } = arrays;
        self.check(basic)?;
        let needed = count.checked_mul(basic.size()).expect("the elements do not fit in memory");
        let room = left.len().min(right.len()).min(result.len());
        assert!(needed <= room, "{count} elements of {} in {room} bytes", basic.name());
        let (left_at, right_at, result_at) = (left.ptr(), right.ptr(), result.ptr());
        let arrays = Apart { count, left: left_at, right: right_at, result: result_at };
        // SAFETY: `combine_wide` needs valid arrays of `count` elements: the makers of the `Sge`s promised valid memory, and the
        // memory is long enough.
        if unsafe { arrays.combine_wide(self, basic) } {
            return Ok(());
        }
        result.part(0, needed).copy_from(right.part(0, needed));
        self.apply(basic, ElementSpacing::Packed, count, left, result)
    }
}

/// Three arrays of `count` elements without gaps.
#[derive(Clone, Copy)]
struct Apart {
    count: usize,
    left: *const u8,
    right: *const u8,
    result: *mut u8,
}

impl Apart {
    /// Runs [`combine`](Apart::combine) in the version for this processor.
    ///
    /// # Safety
    /// The arrays must be valid for `count` elements of `basic`.
    unsafe fn combine_wide(self, op: PredefinedOp, basic: Basic) -> bool {
        // SAFETY: the caller promises what `combine` needs. A wider loop runs only if the processor has the features for
        // which it is compiled.
        unsafe {
            #[cfg(target_arch = "x86_64")]
            match level() {
                AVX512 => self.combine_avx512(op, basic),
                AVX2 => self.combine_avx2(op, basic),
                _ => self.combine(op, basic),
            }
            #[cfg(not(target_arch = "x86_64"))]
            self.combine(op, basic)
        }
    }

    /// Runs [`combine`](Apart::combine), compiled for the vectors of AVX2, with the same results.
    ///
    /// # Safety
    /// The arrays must be valid for `count` elements of `basic`, and the processor must have AVX2.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    unsafe fn combine_avx2(self, op: PredefinedOp, basic: Basic) -> bool {
        // SAFETY: `combine` has the same contract, without the condition on the processor.
        unsafe { self.combine(op, basic) }
    }

    /// Runs [`combine`](Apart::combine), compiled for the vectors of AVX-512, with the same results.
    ///
    /// # Safety
    /// The arrays must be valid for `count` elements of `basic`, and the processor must have these parts of AVX-512.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    unsafe fn combine_avx512(self, op: PredefinedOp, basic: Basic) -> bool {
        // SAFETY: `combine` has the same contract, without the condition on the processor.
        unsafe { self.combine(op, basic) }
    }

    /// Combines the arrays. Returns false, and does nothing, if there is no loop for the operator and type.
    ///
    /// # Safety
    /// The arrays must be valid for `count` elements of `basic`.
    #[inline(always)]
    unsafe fn combine(self, op: PredefinedOp, basic: Basic) -> bool {
        // SAFETY: `number` needs arrays of `T`: the caller promises elements of `basic`, and `T` is the machine's form of
        // `basic`.
        unsafe {
            match basic.repr() {
                Repr::I32 => self.number::<i32>(op),
                Repr::U32 => self.number::<u32>(op),
                Repr::I64 => self.number::<i64>(op),
                Repr::U64 => self.number::<u64>(op),
                Repr::F32 => self.number::<f32>(op),
                Repr::F64 => self.number::<f64>(op),
                // A sum of complex numbers is a sum of their real and imaginary parts, which are twice as many numbers.
                Repr::ComplexF32 if op == PredefinedOp::Sum => self.parts().number::<f32>(op),
                Repr::ComplexF64 if op == PredefinedOp::Sum => self.parts().number::<f64>(op),
                _ => false,
            }
        }
    }

    fn parts(self) -> Apart {
        Apart { count: 2 * self.count, ..self }
    }

    /// # Safety
    /// The arrays must hold numbers of type `T`.
    #[inline(always)]
    unsafe fn number<T: Numeric>(self, op: PredefinedOp) -> bool {
        // SAFETY: `each` needs arrays of numbers of type `T`, which the caller promises.
        unsafe {
            match op {
                PredefinedOp::Sum => self.each(T::add),
                PredefinedOp::Min => self.each(T::min),
                PredefinedOp::Max => self.each(T::max),
                PredefinedOp::Prod => self.each(T::mul),
                _ => return false,
            }
        }
        true
    }

    /// # Safety
    /// The arrays must hold values of type `T`.
    #[inline(always)]
    unsafe fn each<T: Copy>(self, f: impl Fn(T, T) -> T) {
        for i in 0..self.count {
            // SAFETY: the caller promises `count` values of `T` in each array, and `i` is less than `count`. All accesses are
            // unaligned.
            unsafe {
                let a = self.left.cast::<T>().add(i).read_unaligned();
                let b = self.right.cast::<T>().add(i).read_unaligned();
                self.result.cast::<T>().add(i).write_unaligned(f(a, b));
            }
        }
    }
}
