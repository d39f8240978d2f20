//! Arithmetic for MPI's operators, on values as they lie in memory.
//!
//! Integers wrap. `min` and `max` of floating-point numbers are `minimum` and `maximum` of IEEE 754-2019: a NaN on either
//! side makes the result NaN, and -0 is less than +0, so the result does not depend on the order in which ranks are combined.
//! Products of complex numbers use the plain formula, without C's recovery of infinities.

/// A number as it lies in memory, at any alignment. Every bit pattern of the size of the type may be read as a number.
pub(crate) trait Numeric: Copy {
    fn add(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
    fn min(self, other: Self) -> Self;
    fn max(self, other: Self) -> Self;

    /// Returns true if `self` is less than `other`. Returns false if either number is NaN. The two zeros are equal.
    fn less(self, other: Self) -> bool;
    fn is_nan(self) -> bool;
}

/// A word for bitwise and logical operators.
pub(crate) trait BitWord: Copy + From<bool> {
    fn and(self, other: Self) -> Self;
    fn or(self, other: Self) -> Self;
    fn xor(self, other: Self) -> Self;
    fn truth(self) -> bool;
}

macro_rules! integers {
    ($($t:ty)*) => { $(
        impl Numeric for $t {
            #[inline(always)]
            fn add(self, other: Self) -> Self { self.wrapping_add(other) }
            #[inline(always)]
            fn mul(self, other: Self) -> Self { self.wrapping_mul(other) }
            #[inline(always)]
            fn min(self, other: Self) -> Self { if self < other { self } else { other } }
            #[inline(always)]
            fn max(self, other: Self) -> Self { if self > other { self } else { other } }
            #[inline(always)]
            fn less(self, other: Self) -> bool { self < other }
            #[inline(always)]
            fn is_nan(self) -> bool { false }
        }

        impl BitWord for $t {
            #[inline(always)]
            fn and(self, other: Self) -> Self { self & other }
            #[inline(always)]
            fn or(self, other: Self) -> Self { self | other }
            #[inline(always)]
            fn xor(self, other: Self) -> Self { self ^ other }
            #[inline(always)]
            fn truth(self) -> bool { self != 0 }
        }
    )* };
}

integers!(i8 i16 i32 i64 i128 u8 u16 u32 u64 u128);

macro_rules! floats {
    ($($t:ty)*) => { $(
        impl Numeric for $t {
            #[inline(always)]
            fn add(self, other: Self) -> Self { self + other }
            #[inline(always)]
            fn mul(self, other: Self) -> Self { self * other }
            // `min` and `max` have no branches. Both functions are based on the machine's min and max, which return their second
            // operand for NaNs and for zeros of unlike sign. For these operands the results of the two operand orders differ, and
            // the bitwise OR of the two results is a NaN or -0. `max` then subtracts the difference of the two results, which turns
            // -0 into +0.
            #[inline(always)]
            fn min(self, other: Self) -> Self {
                let one = if self < other { self } else { other };
                let two = if other < self { other } else { self };
                <$t>::from_bits(one.to_bits() | two.to_bits())
            }
            #[inline(always)]
            fn max(self, other: Self) -> Self {
                let one = if self > other { self } else { other };
                let two = if other > self { other } else { self };
                let differ = one.to_bits() ^ two.to_bits();
                <$t>::from_bits(one.to_bits() | differ) - <$t>::from_bits(differ)
            }
            #[inline(always)]
            fn less(self, other: Self) -> bool { self < other }
            #[inline(always)]
            fn is_nan(self) -> bool { self != self }
        }
    )* };
}

floats!(f32 f64);

/// A complex number: real and imaginary part.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Complex<T> {
    pub re: T,
    pub im: T,
}

impl<T: Numeric> Complex<T> {
    /// Returns the product. `negate` negates a `T`. The function is a parameter because no other operator needs negation, so
    /// [`Numeric`] has no negation.
    #[inline(always)]
    pub fn mul(self, other: Self, negate: impl Fn(T) -> T) -> Self {
        Complex {
            re: self.re.mul(other.re).add(negate(self.im.mul(other.im))),
            im: self.re.mul(other.im).add(self.im.mul(other.re)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn minimum_and_maximum_do_not_depend_on_order() {
        let values = [f64::NAN, -0.0, 0.0, 1.0, -1.0, f64::INFINITY, f64::NEG_INFINITY];
        for a in values {
            for b in values {
                let (low, high) = (Numeric::min(a, b), Numeric::max(a, b));
                assert_eq!(low.is_nan(), a.is_nan() || b.is_nan());
                assert_eq!(high.is_nan(), a.is_nan() || b.is_nan());
                if !low.is_nan() {
                    assert!(low <= high && (low == a || low == b));
                    assert_eq!(low.to_bits(), Numeric::min(b, a).to_bits(), "min {a} {b}");
                    assert_eq!(high.to_bits(), Numeric::max(b, a).to_bits(), "max {a} {b}");
                }
            }
        }
        assert!(Numeric::min(-0.0f32, 0.0).is_sign_negative());
        assert!(Numeric::max(-0.0f32, 0.0).is_sign_positive());
    }
}
