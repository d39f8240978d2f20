//! Reductions on memory into which other processors also reduce at the same time. Each element is updated atomically (MPI 5.0,
//! section 12.7.1).
//!
//! Contract: all concurrent updates of an element use these functions, with elements of the same size at the same place. A reader
//! that does not use these functions sees either the complete old value or the complete new value.

use crate::number::Numeric;
use crate::{Basic, ElementSpacing, PredefinedOp, Repr};
use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};
use weft_fabric::Sge;

impl Basic {
    /// Returns true if the processor can update an element of this type at `address` atomically.
    #[inline]
    pub fn is_word_at(self, address: *const u8) -> bool {
        let plain = !matches!(self.repr(), Repr::Pair(..)) && self.size() == self.extent();
        plain && matches!(self.size(), 1 | 2 | 4 | 8) && address.addr().is_multiple_of(self.size())
    }
}

/// Atomic word that holds an element.
trait Atomic {
    type Word: Copy + PartialEq;
    fn read(&self) -> Self::Word;
    fn swap(&self, new: Self::Word) -> Self::Word;
    fn add(&self, operand: Self::Word) -> Self::Word;
    fn and(&self, operand: Self::Word) -> Self::Word;
    fn or(&self, operand: Self::Word) -> Self::Word;
    fn xor(&self, operand: Self::Word) -> Self::Word;
    /// Replaces `old` by `new`. Returns `Err` if the word had another value, or if the exchange failed spuriously.
    fn replace(&self, old: Self::Word, new: Self::Word) -> Result<Self::Word, Self::Word>;
}

macro_rules! atomic {
    ($($atomic:ty: $word:ty),*) => {$(
        impl Atomic for $atomic {
            type Word = $word;
            fn read(&self) -> $word {
                self.load(Ordering::Acquire)
            }
            fn swap(&self, new: $word) -> $word {
                self.swap(new, Ordering::AcqRel)
            }
            fn add(&self, operand: $word) -> $word {
                self.fetch_add(operand, Ordering::AcqRel)
            }
            fn and(&self, operand: $word) -> $word {
                self.fetch_and(operand, Ordering::AcqRel)
            }
            fn or(&self, operand: $word) -> $word {
                self.fetch_or(operand, Ordering::AcqRel)
            }
            fn xor(&self, operand: $word) -> $word {
                self.fetch_xor(operand, Ordering::AcqRel)
            }
            fn replace(&self, old: $word, new: $word) -> Result<$word, $word> {
                self.compare_exchange_weak(old, new, Ordering::AcqRel, Ordering::Acquire)
            }
        }
    )*};
}
atomic!(AtomicU8: u8, AtomicU16: u16, AtomicU32: u32, AtomicU64: u64);

/// Calls `$run::<AtomicWord>(..)` with the atomic word for elements of `$size` bytes.
macro_rules! by_size {
    ($size:expr, $run:ident($($arg:expr),*)) => {
        match $size {
            1 => $run::<AtomicU8>($($arg),*),
            2 => $run::<AtomicU16>($($arg),*),
            4 => $run::<AtomicU32>($($arg),*),
            _ => $run::<AtomicU64>($($arg),*),
        }
    };
}

/// Checked addresses of the arguments of a call. Each argument has `count` elements.
#[derive(Clone, Copy)]
struct Places {
    count: usize,
    /// Null for [`PredefinedOp::NoOp`].
    input: *const u8,
    target: *mut u8,
    /// Null if the caller does not want the former values.
    former: *mut u8,
}

impl PredefinedOp {
    /// Computes `target[i] = input[i] op target[i]` for `count` elements of `basic`, each atomically, and stores the former
    /// values in `former`. `input` is not read for [`PredefinedOp::NoOp`].
    ///
    /// # Panics
    /// If the operator is not allowed on the type ([`PredefinedOp::check`]), `target` is not
    /// [a word](Basic::is_word_at), or a piece of memory is shorter than the elements.
    pub fn try_apply(
        self,
        basic: Basic,
        count: usize,
        input: Sge,
        target: Sge,
        former: Option<Sge>,
    ) {
        let size = basic.size();
        let bytes = count.checked_mul(size).expect("the elements fit in memory");
        assert!(self.allowed(basic) && basic.is_word_at(target.ptr()), "no such atomic operation");
        assert!(bytes <= target.len() && (self == PredefinedOp::NoOp || bytes <= input.len()));
        assert!(former.is_none_or(|former| bytes <= former.len()));
        if bytes == 0 || target.is_phantom() {
            return;
        }
        let places = Places {
            count,
            input: if self == PredefinedOp::NoOp { std::ptr::null() } else { input.ptr() },
            target: target.ptr(),
            former: former.map_or(std::ptr::null_mut(), Sge::ptr),
        };
        // SAFETY: `reduce` needs `count` valid words at each place: the makers of the `Sge`s promised valid memory, and the memory
        // is long enough. `reduce` also needs an aligned target that is only updated atomically: alignment is checked above, and
        // the module's contract promises atomic updates.
        unsafe { by_size!(size, reduce(self, basic, places)) }
    }
}

/// Replaces the element of `basic` at `target` by `new` if it equals `compare`, byte for byte, and stores the former value in
/// `former` (MPI_Compare_and_swap).
///
/// # Panics
/// If `target` is not [a word](Basic::is_word_at), or a piece of memory is shorter than the element.
pub fn compare_and_swap(basic: Basic, compare: Sge, new: Sge, target: Sge, former: Sge) {
    let size = basic.size();
    assert!(basic.is_word_at(target.ptr()), "no such atomic operation");
    assert!([compare, new, target, former].iter().all(|piece| size <= piece.len()));
    if target.is_phantom() {
        return;
    }
    // SAFETY: `exchange` needs a valid word at each place: the makers of the `Sge`s promised valid memory, and the memory is long
    // enough. The target is aligned. By the module's contract the target is only updated atomically.
    unsafe { by_size!(size, exchange(compare.ptr(), new.ptr(), target.ptr(), former.ptr())) }
}

/// # Safety
/// All four hold a word. `target` is aligned and only updated atomically.
unsafe fn exchange<A: Atomic>(
    compare: *const u8,
    new: *const u8,
    target: *mut u8,
    former: *mut u8,
) {
    // SAFETY: the caller of `exchange` promises valid words. Only the access to `target` needs alignment, which the caller also
    // promises.
    unsafe {
        let (compare, new) = (compare.cast::<A::Word>(), new.cast::<A::Word>());
        let (compare, new) = (compare.read_unaligned(), new.read_unaligned());
        let target = &*target.cast::<A>();
        let found = loop {
            match target.replace(compare, new) {
                Err(found) if found == compare => {}
                Ok(found) | Err(found) => break found,
            }
        };
        former.cast::<A::Word>().write_unaligned(found);
    }
}

/// # Safety
/// The places hold `count` words. The target is aligned and only updated atomically.
unsafe fn reduce<A: Atomic>(op: PredefinedOp, basic: Basic, places: Places) {
    let integer = matches!(
        basic.repr(),
        Repr::I8 | Repr::I16 | Repr::I32 | Repr::I64 | Repr::U8 | Repr::U16 | Repr::U32 | Repr::U64
    );
    // SAFETY: `places` hold `count` words, and the target is aligned and only updated atomically, as `each` needs.
    unsafe {
        match op {
            PredefinedOp::Sum if integer => each::<A>(places, A::add),
            PredefinedOp::Sum if basic.repr() == Repr::F64 => {
                each::<A>(places, |target, operand| {
                    update(target, |old| bits(Numeric::add(bits::<_, f64>(operand), bits(old))))
                })
            }
            PredefinedOp::Replace => each::<A>(places, A::swap),
            PredefinedOp::NoOp => each::<A>(places, |target, _| target.read()),
            PredefinedOp::BitAnd => each::<A>(places, A::and),
            PredefinedOp::BitOr => each::<A>(places, A::or),
            PredefinedOp::BitXor => each::<A>(places, A::xor),
            _ => each::<A>(places, |target, operand| {
                update(target, |old| {
                    let (mut operand, mut new) = (operand, old);
                    let word = size_of::<A::Word>();
                    let [input, inout] = [&raw mut operand, &raw mut new]
                        .map(|word_at| Sge::new(word_at.cast(), word));
                    let applied = op.apply(basic, ElementSpacing::Packed, 1, input, inout);
                    debug_assert!(applied.is_ok(), "checked before");
                    new
                })
            }),
        }
    }
}

/// Returns a number with the same bits.
///
/// # Safety
/// `From` and `To` are numbers.
unsafe fn bits<From: Copy, To: Copy>(from: From) -> To {
    assert!(size_of::<From>() == size_of::<To>());
    // SAFETY: the read needs a valid `To` of the same size: the sizes are equal, and the caller promises numbers, for which
    // all bits are valid.
    unsafe { (&raw const from).cast::<To>().read_unaligned() }
}

/// Updates a word by `new`, and returns the former value. Tries again if another processor has updated the word meanwhile.
fn update<A: Atomic>(target: &A, new: impl Fn(A::Word) -> A::Word) -> A::Word {
    let mut old = target.read();
    loop {
        match target.replace(old, new(old)) {
            Ok(old) => return old,
            Err(found) => old = found,
        }
    }
}

/// # Safety
/// The places hold `count` words. The target is aligned and only updated atomically.
#[inline(always)]
unsafe fn each<A: Atomic>(places: Places, f: impl Fn(&A, A::Word) -> A::Word) {
    for i in 0..places.count {
        // SAFETY: the caller of `each` promises `count` valid words, and `i` is less than `count`. Without an input, `f` ignores
        // the operand.
        unsafe {
            let target = &*places.target.cast::<A>().add(i);
            let operand = match places.input.is_null() {
                true => target.read(),
                false => places.input.cast::<A::Word>().add(i).read_unaligned(),
            };
            let former = f(target, operand);
            if !places.former.is_null() {
                places.former.cast::<A::Word>().add(i).write_unaligned(former);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sge<T>(values: &mut [T]) -> Sge {
        // SAFETY: `Sge::new` needs memory that is valid while in use: the tests use it while `values` lives.
        unsafe { Sge::new(values.as_mut_ptr().cast(), size_of_val(values)) }
    }

    fn seed(i: usize) -> u8 {
        (i * 7 + 3) as u8 & 0x3f
    }

    #[test]
    fn equals_the_plain_reduction() {
        let mut tried = 0;
        for op in PredefinedOp::ALL {
            for basic in Basic::all() {
                let mut memory = [0u64; 12];
                let at = sge(&mut memory);
                if !op.allowed(basic) || !basic.is_word_at(at.ptr()) {
                    continue;
                }
                tried += 1;
                let bytes: Vec<u8> = (0..96).map(seed).collect();
                at.fill(&bytes);
                let (count, size) = (3, basic.size());
                let len = count * size;
                let input = at.part(0, len);
                let [mut plain, mut former] = [[0u64; 3]; 2];
                let (plain, former) = (sge(&mut plain).part(0, len), sge(&mut former).part(0, len));
                let target = at.part(48, len);
                let mut before = vec![0; len];
                target.read(&mut before);
                plain.fill(&before);
                op.apply(basic, ElementSpacing::Packed, count, input, plain).unwrap();
                op.try_apply(basic, count, input, target, Some(former));
                let bytes_of = |piece: Sge| {
                    let mut out = vec![0; len];
                    piece.read(&mut out);
                    out
                };
                assert_eq!(bytes_of(target), bytes_of(plain), "{} {}", op.name(), basic.name());
                assert_eq!(bytes_of(former), before, "{} {}", op.name(), basic.name());
            }
        }
        assert!(tried > 100, "{tried}");
    }

    #[test]
    fn swaps_what_equals() {
        let (mut new, mut target, mut former) = ([7u32], [5u32], [0u32]);
        for (compare, after) in [(4, 5), (5, 7)] {
            let mut compare = [compare];
            let basic = Basic::INT;
            let [c, n] = [sge(&mut compare), sge(&mut new)];
            compare_and_swap(basic, c, n, sge(&mut target), sge(&mut former));
            assert_eq!((former[0], target[0]), (5, after));
        }
    }

    #[test]
    fn updates_from_several_threads_are_exact() {
        const TIMES: usize = if cfg!(miri) { 50 } else { 20_000 };
        let sum = AtomicU64::new(0f64.to_bits());
        std::thread::scope(|scope| {
            for _ in 0..3 {
                scope.spawn(|| {
                    for _ in 0..TIMES {
                        let mut one = [1f64];
                        // SAFETY: `Sge::new` needs memory that is valid while in use: `sum` outlives the scope, and is only
                        // updated atomically.
                        let target = unsafe { Sge::new(sum.as_ptr().cast(), 8) };
                        PredefinedOp::Sum.try_apply(Basic::DOUBLE, 1, sge(&mut one), target, None);
                    }
                });
            }
        });
        assert_eq!(f64::from_bits(sum.into_inner()), 3.0 * TIMES as f64);
    }
}
