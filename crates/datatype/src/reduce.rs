//! Reductions on memory: `inout[i] = input[i] op inout[i]`.

#[cfg(target_arch = "x86_64")]
use crate::level::{AVX2, AVX512, level};
use crate::number::{BitWord, Complex, Numeric};
use crate::soft::{F16, F128};
use crate::{Basic, DatatypeError, PredefinedOp, Repr};
use weft_fabric::Sge;

/// Distance between elements. The variants differ only for pair types with gaps, such as `MPI_DOUBLE_INT`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ElementSpacing {
    /// Extent of the type, as in arrays of the program.
    Memory,
    /// Size of the type, as in the packed form of [`crate::Datatype::pack`].
    Packed,
}

impl PredefinedOp {
    /// Computes `inout[i] = input[i] op inout[i]` for `count` elements of `basic`, at any alignment. Gaps of pair types are
    /// not touched. [`PredefinedOp::Replace`] copies `input`, [`PredefinedOp::NoOp`] does nothing. Logical results are 0 or
    /// 1. If values are equal, `MPI_MINLOC` and `MPI_MAXLOC` keep the lower index. A NaN wins over every number.
    ///
    /// Errors: [`DatatypeError::Undefined`] and [`DatatypeError::Unsupported`], before anything is changed.
    ///
    /// # Panics
    /// If a piece of memory is too short for `count` elements.
    pub fn apply(
        self,
        basic: Basic,
        form: ElementSpacing,
        count: usize,
        input: Sge,
        inout: Sge,
    ) -> Result<(), DatatypeError> {
        self.check(basic)?;
        if count == 0 {
            return Ok(());
        }
        let (stride, last, index) = match form {
            ElementSpacing::Memory => {
                let index = basic.index_offset().map_or(0, |x| x.0);
                (basic.extent(), basic.true_extent(), index)
            }
            ElementSpacing::Packed => {
                let index = basic.pair().map_or(0, |(value, _)| value.size());
                (basic.size(), basic.size(), index)
            }
        };
        let needed = (count - 1).checked_mul(stride).and_then(|n| n.checked_add(last));
        let needed = needed.expect("the elements do not fit in memory");
        assert!(
            needed <= input.len() && needed <= inout.len(),
            "{count} elements of {} need {needed} bytes, not {} and {}",
            basic.name(),
            input.len(),
            inout.len()
        );
        let arrays = OperandArrays { count, stride, index, input: input.ptr(), inout: inout.ptr() };
        // SAFETY: `reduce` needs valid arrays: the makers of the `Sge`s promised valid memory, and the memory is long enough for
        // the elements of `OperandArrays`. A wider loop runs only if the processor has the features for which it is compiled.
        unsafe {
            #[cfg(target_arch = "x86_64")]
            match level() {
                AVX512 if needed >= WIDE_MIN => arrays.reduce_avx512(self, basic),
                AVX2 if needed >= WIDE_MIN => arrays.reduce_avx2(self, basic),
                _ => arrays.reduce(self, basic),
            }
            #[cfg(not(target_arch = "x86_64"))]
            arrays.reduce(self, basic);
        }
        Ok(())
    }
}

/// Minimum length in bytes of arrays for which wider vectors save more time than the query of the processor's features takes.
#[cfg(target_arch = "x86_64")]
const WIDE_MIN: usize = 256;

/// Two arrays of `count` elements, which lie `stride` bytes apart. The index of a pair lies `index` bytes from the element's start.
#[derive(Clone, Copy)]
struct OperandArrays {
    count: usize,
    stride: usize,
    index: usize,
    input: *const u8,
    inout: *mut u8,
}

impl OperandArrays {
    /// Runs [`reduce`](OperandArrays::reduce), compiled for the vectors of AVX2. The results are the same, because no operation is
    /// fused or reordered.
    ///
    /// # Safety
    /// The arrays must be valid for the elements of `self`, of type `basic`, and the processor must have AVX2.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx2")]
    unsafe fn reduce_avx2(self, op: PredefinedOp, basic: Basic) {
        // SAFETY: `reduce` has the same contract, without the condition on the processor.
        unsafe { self.reduce(op, basic) }
    }

    /// Runs [`reduce`](OperandArrays::reduce), compiled for AVX-512, which also multiplies and compares 64-bit integers.
    ///
    /// # Safety
    /// The arrays must be valid for the elements of `self`, of type `basic`, and the processor must have these parts of
    /// AVX-512.
    #[cfg(target_arch = "x86_64")]
    #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
    unsafe fn reduce_avx512(self, op: PredefinedOp, basic: Basic) {
        // SAFETY: `reduce` has the same contract, without the condition on the processor.
        unsafe { self.reduce(op, basic) }
    }

    /// # Safety
    /// The arrays must be valid for the elements of `self`, of type `basic`.
    #[inline(always)]
    unsafe fn reduce(self, op: PredefinedOp, basic: Basic) {
        // SAFETY: each arm needs arrays of `T`: the caller promises elements of `basic`, and `T` is the machine's form of
        // `basic`.
        unsafe {
            match (op, basic.repr()) {
                (PredefinedOp::NoOp, _) => {}
                (PredefinedOp::Replace, Repr::Pair(..)) => {
                    let (value, index) = basic.pair().expect("matched");
                    self.replace(0, value.size());
                    self.replace(self.index, index.size());
                }
                (PredefinedOp::Replace, _) => {
                    std::ptr::copy(self.input, self.inout, self.count * basic.size());
                }
                (PredefinedOp::MinLoc | PredefinedOp::MaxLoc, _) => {
                    let (value, index) = basic.pair().expect("checked");
                    match (value.repr(), index.repr()) {
                        (Repr::I16, _) => self.locations::<i16, i32>(op),
                        (Repr::I32, _) => self.locations::<i32, i32>(op),
                        (Repr::I64, _) => self.locations::<i64, i32>(op),
                        (Repr::F32, Repr::F32) => self.locations::<f32, f32>(op),
                        (Repr::F32, _) => self.locations::<f32, i32>(op),
                        (Repr::F64, Repr::F64) => self.locations::<f64, f64>(op),
                        (Repr::F64, _) => self.locations::<f64, i32>(op),
                        #[cfg(all(target_arch = "x86_64", not(miri)))]
                        (Repr::F80, _) => self.locations::<crate::x87::F80, i32>(op),
                        _ => unreachable!("refused by check"),
                    }
                }
                (_, Repr::I8) => self.integer::<i8>(op),
                (_, Repr::I16) => self.integer::<i16>(op),
                (_, Repr::I32) => self.integer::<i32>(op),
                (_, Repr::I64) => self.integer::<i64>(op),
                (_, Repr::I128) => self.integer::<i128>(op),
                (_, Repr::U8) => self.integer::<u8>(op),
                (_, Repr::U16) => self.integer::<u16>(op),
                (_, Repr::U32) => self.integer::<u32>(op),
                (_, Repr::U64) => self.integer::<u64>(op),
                (_, Repr::Bool8) => self.word::<u8>(op),
                (_, Repr::Bool16) => self.word::<u16>(op),
                (_, Repr::Bool32) => self.word::<u32>(op),
                (_, Repr::Bool64) => self.word::<u64>(op),
                (_, Repr::Bool128) => self.word::<u128>(op),
                (_, Repr::F32) => self.number::<f32>(op),
                (_, Repr::F64) => self.number::<f64>(op),
                (_, Repr::F16) => self.number::<F16>(op),
                (_, Repr::F128) => self.number::<F128>(op),
                (_, Repr::ComplexF16) => self.complex::<F16>(op, F16::negated),
                (_, Repr::ComplexF128) => self.complex::<F128>(op, F128::negated),
                (_, Repr::ComplexF32) => self.complex::<f32>(op, |x| -x),
                (_, Repr::ComplexF64) => self.complex::<f64>(op, |x| -x),
                #[cfg(all(target_arch = "x86_64", not(miri)))]
                (_, Repr::F80) => self.spaced::<crate::x87::F80>(op),
                #[cfg(all(target_arch = "x86_64", not(miri)))]
                (_, Repr::ComplexF80) => self.spaced_complex(op),
                _ => unreachable!("refused by check"),
            }
        }
    }

    /// Computes `inout = f(input, inout)` for `count` values of `T`. In each array, the first value lies `offset` bytes from the
    /// start, and the values lie `stride` bytes apart.
    ///
    /// # Safety
    /// The arrays must hold these values.
    #[inline(always)]
    unsafe fn each<T: Copy>(self, offset: usize, stride: usize, f: impl Fn(T, T) -> T) {
        for i in 0..self.count {
            // SAFETY: the caller promises a value of `T` in each array at this place. All accesses are unaligned.
            unsafe {
                let a = self.input.add(i * stride + offset).cast::<T>().read_unaligned();
                let place = self.inout.add(i * stride + offset).cast::<T>();
                place.write_unaligned(f(a, place.read_unaligned()));
            }
        }
    }

    /// Runs [`each`](OperandArrays::each) for values without gaps.
    ///
    /// # Safety
    /// The arrays must hold `count` values of `T` without gaps.
    #[inline(always)]
    unsafe fn dense<T: Copy>(self, f: impl Fn(T, T) -> T) {
        // SAFETY: `each` has the same contract; values without gaps are `size_of::<T>()` bytes apart.
        unsafe { self.each(0, size_of::<T>(), f) }
    }

    /// # Safety
    /// The arrays must hold integers of type `T`.
    #[inline(always)]
    unsafe fn integer<T: Numeric + BitWord>(self, op: PredefinedOp) {
        // SAFETY: `number` and `word` need arrays of integers of type `T`, which the caller promises.
        unsafe {
            match op {
                PredefinedOp::Sum | PredefinedOp::Min | PredefinedOp::Max | PredefinedOp::Prod => {
                    self.number::<T>(op)
                }
                _ => self.word::<T>(op),
            }
        }
    }

    /// # Safety
    /// The arrays must hold numbers of type `T`.
    #[inline(always)]
    unsafe fn number<T: Numeric>(self, op: PredefinedOp) {
        // SAFETY: `dense` needs arrays of numbers of type `T`, which the caller promises.
        unsafe {
            match op {
                PredefinedOp::Sum => self.dense(T::add),
                PredefinedOp::Min => self.dense(T::min),
                PredefinedOp::Max => self.dense(T::max),
                PredefinedOp::Prod => self.dense(T::mul),
                _ => unreachable!("refused by check"),
            }
        }
    }

    /// # Safety
    /// The arrays must hold words of type `T`.
    #[inline(always)]
    unsafe fn word<T: BitWord>(self, op: PredefinedOp) {
        // SAFETY: `dense` needs arrays of words of type `T`, which the caller promises.
        unsafe {
            match op {
                PredefinedOp::BitAnd => self.dense(T::and),
                PredefinedOp::BitOr => self.dense(T::or),
                PredefinedOp::BitXor => self.dense(T::xor),
                PredefinedOp::LogicalAnd => self.dense(|a: T, b| T::from(a.truth() & b.truth())),
                PredefinedOp::LogicalOr => self.dense(|a: T, b| T::from(a.truth() | b.truth())),
                PredefinedOp::LogicalXor => self.dense(|a: T, b| T::from(a.truth() ^ b.truth())),
                _ => unreachable!("refused by check"),
            }
        }
    }

    /// # Safety
    /// The arrays must hold pairs of `T`.
    #[inline(always)]
    unsafe fn complex<T: Numeric>(self, op: PredefinedOp, negate: impl Fn(T) -> T) {
        // SAFETY: `dense` needs arrays of `T` or `Complex<T>`, which the caller promises. A sum of complex numbers is a sum of
        // their real and imaginary parts, which are twice as many numbers.
        unsafe {
            match op {
                PredefinedOp::Sum => OperandArrays { count: 2 * self.count, ..self }.dense(T::add),
                PredefinedOp::Prod => self.dense(|a: Complex<T>, b| a.mul(b, &negate)),
                _ => unreachable!("refused by check"),
            }
        }
    }

    /// # Safety
    /// The arrays must hold values of type `V` with an index of type `I`, at the places in `self`.
    #[inline(always)]
    unsafe fn locations<V: Numeric, I: Numeric>(self, op: PredefinedOp) {
        // SAFETY: `locate` needs arrays of values with an index, of these types, which the caller promises.
        unsafe {
            if op == PredefinedOp::MinLoc {
                self.locate::<V, I>(|a, b| a.less(b));
            } else {
                self.locate::<V, I>(|a, b| b.less(a));
            }
        }
    }

    /// # Safety
    /// The arrays must hold values of type `V` with an index of type `I`, at the places in `self`.
    #[inline(always)]
    unsafe fn locate<V: Numeric, I: Numeric>(self, wins: impl Fn(V, V) -> bool) {
        let word = size_of::<V>().max(size_of::<I>());
        let two = self.index == word && self.stride == 2 * word && cfg!(target_endian = "little");
        // SAFETY: both functions need arrays of such pairs, which the caller promises. The elements must consist of two words,
        // which `two` has tested.
        unsafe {
            match word {
                4 if two => return self.locate_halves::<V, I>(wins),
                8 if two => return self.locate_words::<V, I>(wins),
                _ => {}
            }
        }
        for i in 0..self.count {
            // SAFETY: the caller promises a value and an index in each element of both arrays. All accesses are unaligned.
            unsafe {
                let (a, b) = (self.input.add(i * self.stride), self.inout.add(i * self.stride));
                let value = a.cast::<V>().read_unaligned();
                let index = a.add(self.index).cast::<I>().read_unaligned();
                let (to_value, to_index) = (b.cast::<V>(), b.add(self.index).cast::<I>());
                let other = IndexedValue {
                    value: to_value.read_unaligned(),
                    index: to_index.read_unaligned(),
                };
                if takes(IndexedValue { value, index }, other, &wins) {
                    to_value.write_unaligned(value);
                    to_index.write_unaligned(index);
                }
            }
        }
    }

    /// Runs [`locate`](OperandArrays::locate) for elements of two 64-bit words. The low bytes of the first word are the value, and
    /// the low bytes of the second word are the index. The loop is vectorised. The loop has no branches, because the processor
    /// would mispredict them.
    ///
    /// # Safety
    /// The arrays must hold such pairs, in elements of two 64-bit words.
    #[inline(always)]
    unsafe fn locate_words<V: Numeric, I: Numeric>(self, wins: impl Fn(V, V) -> bool) {
        let (values, indices) = (low::<V>(), low::<I>());
        for i in 0..self.count {
            // SAFETY: the caller promises elements of two 64-bit words. `start` needs a number that is no longer than the word, as
            // `V` and `I` are.
            unsafe {
                let a = self.input.cast::<[u64; 2]>().add(i).read_unaligned();
                let place = self.inout.cast::<[u64; 2]>().add(i);
                let b = place.read_unaligned();
                let pair = |x: [u64; 2]| -> IndexedValue<V, I> {
                    IndexedValue { value: start(x[0]), index: start(x[1]) }
                };
                // Mask: all bits if `a` replaces `b`, else none.
                let taken = u64::from(takes(pair(a), pair(b), &wins)).wrapping_neg();
                let merge = |a: u64, b: u64, part: u64| b ^ ((a ^ b) & taken & part);
                place.write_unaligned([merge(a[0], b[0], values), merge(a[1], b[1], indices)]);
            }
        }
    }

    /// Runs [`locate`](OperandArrays::locate) for elements of two 32-bit words.
    ///
    /// # Safety
    /// The arrays must hold such pairs, in elements of two 32-bit words.
    #[inline(always)]
    unsafe fn locate_halves<V: Numeric, I: Numeric>(self, wins: impl Fn(V, V) -> bool) {
        let part = low::<V>() | low::<I>() << 32;
        for i in 0..self.count {
            // SAFETY: the caller promises elements of two 32-bit words. `start` needs a number that is no longer than the word, as
            // `V` and `I` are.
            unsafe {
                let a = self.input.cast::<u64>().add(i).read_unaligned();
                let place = self.inout.cast::<u64>().add(i);
                let b = place.read_unaligned();
                let pair = |x: u64| -> IndexedValue<V, I> {
                    IndexedValue { value: start(x as u32), index: start((x >> 32) as u32) }
                };
                // Mask: all bits if `a` replaces `b`, else none.
                let taken = u64::from(takes(pair(a), pair(b), &wins)).wrapping_neg();
                place.write_unaligned(b ^ ((a ^ b) & taken & part));
            }
        }
    }

    /// # Safety
    /// The arrays must hold `len` bytes at `offset` in each element.
    unsafe fn replace(self, offset: usize, len: usize) {
        for i in 0..self.count {
            let place = i * self.stride + offset;
            // SAFETY: the caller promises `len` bytes at this place in both arrays; `copy` allows the arrays to overlap.
            unsafe { std::ptr::copy(self.input.add(place), self.inout.add(place), len) }
        }
    }
}

/// Returns the mask of the bits that a `T` has at the start of a little-endian word.
const fn low<T>() -> u64 {
    u64::MAX >> (64 - 8 * size_of::<T>())
}

/// Returns the number at the start of a word.
///
/// # Safety
/// `T` must be a number, no longer than the word.
#[inline(always)]
unsafe fn start<W, T: Numeric>(word: W) -> T {
    // SAFETY: the read needs a valid `T` inside the word: the caller promises a number no longer than the word, and all bits
    // are valid for numbers.
    unsafe { (&raw const word).cast::<T>().read_unaligned() }
}

/// A value and its index: an operand of MPI_MINLOC and MPI_MAXLOC.
#[derive(Clone, Copy)]
struct IndexedValue<V, I> {
    value: V,
    index: I,
}

/// Returns true if `a` replaces `b`. A NaN wins over every number. Among equal values, and among NaNs, the lower
/// index wins.
#[inline(always)]
fn takes<V: Numeric, I: Numeric>(
    a: IndexedValue<V, I>,
    b: IndexedValue<V, I>,
    wins: impl Fn(V, V) -> bool,
) -> bool {
    let alike = !a.value.less(b.value) & !b.value.less(a.value);
    let (nan, other) = (a.value.is_nan(), b.value.is_nan());
    wins(a.value, b.value) | (nan & !other) | (alike & (nan == other) & a.index.less(b.index))
}

/// Reductions of x87 numbers, which use 10 of their 16 bytes.
#[cfg(all(target_arch = "x86_64", not(miri)))]
impl OperandArrays {
    /// # Safety
    /// The arrays must hold numbers of type `T`, 16 bytes apart.
    unsafe fn spaced<T: Numeric>(self, op: PredefinedOp) {
        // SAFETY: `each` needs numbers of type `T` that are 16 bytes apart, which the caller promises.
        unsafe {
            match op {
                PredefinedOp::Sum => self.each(0, 16, T::add),
                PredefinedOp::Min => self.each(0, 16, T::min),
                PredefinedOp::Max => self.each(0, 16, T::max),
                PredefinedOp::Prod => self.each(0, 16, T::mul),
                _ => unreachable!("refused by check"),
            }
        }
    }

    /// # Safety
    /// The arrays must hold pairs of x87 numbers, each in 16 bytes.
    unsafe fn spaced_complex(self, op: PredefinedOp) {
        use crate::x87::{F80, Spaced};
        // SAFETY: the caller promises pairs of x87 numbers in 16 bytes each, and `Spaced` has the layout of a C `long
        // double`.
        unsafe {
            match op {
                PredefinedOp::Sum => {
                    OperandArrays { count: 2 * self.count, ..self }.spaced::<F80>(PredefinedOp::Sum)
                }
                PredefinedOp::Prod => {
                    for i in 0..self.count {
                        let a = self.input.add(32 * i).cast::<[Spaced; 2]>().read_unaligned();
                        let place = self.inout.add(32 * i).cast::<[Spaced; 2]>();
                        let b = place.read_unaligned();
                        let a = Complex { re: a[0].number, im: a[1].number };
                        let product =
                            a.mul(Complex { re: b[0].number, im: b[1].number }, F80::negated);
                        let start = place.cast::<u8>();
                        start.cast::<F80>().write_unaligned(product.re);
                        start.add(16).cast::<F80>().write_unaligned(product.im);
                    }
                }
                _ => unreachable!("refused by check"),
            }
        }
    }
}
