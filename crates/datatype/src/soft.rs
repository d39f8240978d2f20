//! IEEE binary16 and binary128, which few processors compute and for which stable Rust has no types: `MPI_REAL2`,
//! `MPI_REAL16` and their complex types.

use crate::number::Numeric;
use half::f16;
use rustc_apfloat::Float;
use rustc_apfloat::ieee::Quad;

/// A binary16 number. The sum or product of two such numbers is either exact in binary32, or rounded in binary32 so that a second
/// rounding gives the nearest binary16 number.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct F16(u16);

impl F16 {
    fn wide(self) -> f32 {
        f16::from_bits(self.0).to_f32()
    }

    fn of(wide: f32) -> F16 {
        F16(f16::from_f32(wide).to_bits())
    }

    pub fn negated(self) -> F16 {
        F16(self.0 ^ 1 << 15)
    }
}

impl Numeric for F16 {
    fn add(self, other: Self) -> Self {
        F16::of(self.wide() + other.wide())
    }

    fn mul(self, other: Self) -> Self {
        F16::of(self.wide() * other.wide())
    }

    fn min(self, other: Self) -> Self {
        F16::of(Numeric::min(self.wide(), other.wide()))
    }

    fn max(self, other: Self) -> Self {
        F16::of(Numeric::max(self.wide(), other.wide()))
    }

    fn less(self, other: Self) -> bool {
        self.wide() < other.wide()
    }

    fn is_nan(self) -> bool {
        self.wide().is_nan()
    }
}

/// A binary128 number.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct F128(u128);

impl F128 {
    fn quad(self) -> Quad {
        Quad::from_bits(self.0)
    }

    fn of(quad: Quad) -> F128 {
        F128(quad.to_bits())
    }

    pub fn negated(self) -> F128 {
        F128(self.0 ^ 1 << 127)
    }

    fn negative(self) -> bool {
        self.0 >> 127 == 1
    }

    /// Returns true if `self` comes first in the total order: NaNs before all numbers, and -0 before +0.
    fn first(self, other: Self) -> bool {
        let (nan, other_nan) = (self.is_nan(), other.is_nan());
        let zeros = self.0 << 1 == 0 && other.0 << 1 == 0;
        nan || !other_nan && (self.less(other) || zeros && self.negative())
    }
}

impl Numeric for F128 {
    fn add(self, other: Self) -> Self {
        F128::of((self.quad() + other.quad()).value)
    }

    fn mul(self, other: Self) -> Self {
        F128::of((self.quad() * other.quad()).value)
    }

    fn min(self, other: Self) -> Self {
        if self.first(other) { self } else { other }
    }

    fn max(self, other: Self) -> Self {
        // If `self` is a NaN, the maximum is also a NaN.
        let later = !self.first(other) || self.is_nan();
        if later && !other.is_nan() { self } else { other }
    }

    fn less(self, other: Self) -> bool {
        self.quad() < other.quad()
    }

    fn is_nan(self) -> bool {
        self.quad().is_nan()
    }
}
