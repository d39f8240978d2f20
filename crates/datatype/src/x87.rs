//! C's `long double` on x86-64: the 80-bit extended format, for which Rust has no type. The x87 unit computes it.

use crate::number::Numeric;
use std::arch::asm;
use std::cmp::Ordering;
use std::mem::MaybeUninit;

/// The ten bytes of a number: a mantissa of 64 bits, an exponent of 15 bits, and the sign.
#[derive(Debug, Clone, Copy)]
#[repr(transparent)]
pub(crate) struct F80(pub [u8; 10]);

/// A number in the compiler's layout: ten bytes, then six bytes of padding.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Spaced {
    pub number: F80,
    _gap: MaybeUninit<[u8; 6]>,
}

/// Computes with both operands on the x87 stack. The stack is empty before and after, and all its registers are declared clobbered.
macro_rules! compute {
    ($instruction:literal, $a:expr, $b:expr) => {{
        let mut result = F80([0; 10]);
        // SAFETY: the assembly reads ten bytes of each operand and writes ten bytes of `result`, which are valid, and balances the
        // x87 stack.
        unsafe {
            asm!(
                "fld tbyte ptr [{a}]",
                "fld tbyte ptr [{b}]",
                $instruction,
                "fstp tbyte ptr [{result}]",
                a = in(reg) &raw const $a,
                b = in(reg) &raw const $b,
                result = in(reg) &raw mut result,
                out("st(0)") _, out("st(1)") _, out("st(2)") _, out("st(3)") _,
                out("st(4)") _, out("st(5)") _, out("st(6)") _, out("st(7)") _,
                options(nostack),
            );
        }
        result
    }};
}

impl F80 {
    pub fn negated(mut self) -> F80 {
        self.0[9] ^= 0x80;
        self
    }

    /// Compares two numbers. Returns `None` if either number is NaN. The two zeros are equal.
    fn order(self, other: F80) -> Option<Ordering> {
        let (above, below, unordered): (u8, u8, u8);
        // SAFETY: the assembly reads ten bytes of each operand, which are valid; `fucomip` and `fstp` empty the x87 stack
        // again.
        unsafe {
            asm!(
                "fld tbyte ptr [{b}]",
                "fld tbyte ptr [{a}]",
                "fucomip st, st(1)",
                "seta {above}",
                "setb {below}",
                "setp {unordered}",
                "fstp st(0)",
                a = in(reg) &raw const self,
                b = in(reg) &raw const other,
                above = lateout(reg_byte) above,
                below = lateout(reg_byte) below,
                unordered = lateout(reg_byte) unordered,
                out("st(0)") _, out("st(1)") _, out("st(2)") _, out("st(3)") _,
                out("st(4)") _, out("st(5)") _, out("st(6)") _, out("st(7)") _,
                options(nostack, readonly),
            );
        }
        match (unordered, above, below) {
            (1, ..) => None,
            (_, 1, _) => Some(Ordering::Greater),
            (_, _, 1) => Some(Ordering::Less),
            _ => Some(Ordering::Equal),
        }
    }

    fn negative(self) -> bool {
        self.0[9] & 0x80 != 0
    }
}

impl Numeric for F80 {
    fn add(self, other: F80) -> F80 {
        compute!("faddp st(1), st", self, other)
    }

    fn mul(self, other: F80) -> F80 {
        compute!("fmulp st(1), st", self, other)
    }

    fn min(self, other: F80) -> F80 {
        match self.order(other) {
            Some(Ordering::Less) => self,
            Some(Ordering::Greater) => other,
            Some(Ordering::Equal) => {
                if self.negative() {
                    self
                } else {
                    other
                }
            }
            None => {
                if self.is_nan() {
                    self
                } else {
                    other
                }
            }
        }
    }

    fn max(self, other: F80) -> F80 {
        match self.order(other) {
            Some(Ordering::Greater) => self,
            Some(Ordering::Less) => other,
            Some(Ordering::Equal) => {
                if self.negative() {
                    other
                } else {
                    self
                }
            }
            None => {
                if self.is_nan() {
                    self
                } else {
                    other
                }
            }
        }
    }

    fn less(self, other: F80) -> bool {
        self.order(other) == Some(Ordering::Less)
    }

    fn is_nan(self) -> bool {
        self.order(self).is_none()
    }
}
