//! Arithmetic for values that all ranks must compute alike, even if the program has changed its own arithmetic.

/// Returns the value of `compute` in the usual floating-point arithmetic: rounded to nearest, with subnormal numbers. A program
/// may have set up another arithmetic on some of its ranks, as `-ffast-math` does. Then ranks would compute different costs from
/// equal numbers, and choose different algorithms. If the arithmetic is already usual, this function costs only a read of a
/// register.
pub fn in_usual_arithmetic<T>(compute: impl FnOnce() -> T) -> T {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    return in_usual_mxcsr(compute);
    #[cfg(any(not(target_arch = "x86_64"), miri))]
    return compute();
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
fn in_usual_mxcsr<T>(compute: impl FnOnce() -> T) -> T {
    use std::arch::asm;
    use std::hint::black_box;
    /// Control word for the usual arithmetic: all exceptions masked, rounded to nearest, subnormal numbers kept.
    const USUAL: u32 = 0x1f80;
    /// Bits that report exceptions.
    const RAISED: u32 = 0x3f;
    let mut own: u32 = 0;
    // SAFETY: writes the register's 32 bits to `own`.
    unsafe { asm!("stmxcsr [{}]", in(reg) &mut own, options(nostack, preserves_flags)) };
    if own & !RAISED == USUAL {
        return compute();
    }
    let (mut compute, mut value) = (Some(compute), None);
    let mut run = || value = compute.take().map(|compute| compute());
    // The call is opaque to the compiler, so that no operation moves out of it and past the changes of the register.
    let run: &mut dyn FnMut() = black_box(&mut run);
    // SAFETY: loads a valid value from memory, without reserved bits. Compiled code assumes this value.
    unsafe { asm!("ldmxcsr [{}]", in(reg) &USUAL, options(nostack, preserves_flags, readonly)) };
    run();
    // SAFETY: loads the register's former value, which the program's code expects.
    unsafe { asm!("ldmxcsr [{}]", in(reg) &own, options(nostack, preserves_flags, readonly)) };
    value.expect("the call above has set it")
}

#[cfg(all(test, target_arch = "x86_64", not(miri)))]
mod tests {
    use super::*;
    use std::arch::asm;
    use std::hint::black_box;

    #[test]
    fn programs_arithmetic_is_left_out_and_comes_back() {
        let quotient = || (black_box(1.0) / black_box(3.0f64)).to_bits();
        let usual = quotient();
        let (mut before, mut after) = (0u32, 0u32);
        // SAFETY: stores and loads the register, which is restored before other code runs.
        unsafe {
            asm!("stmxcsr [{}]", in(reg) &mut before);
            let up = before | 0x4000;
            asm!("ldmxcsr [{}]", in(reg) &up);
            let own = quotient();
            let inside = in_usual_arithmetic(quotient);
            asm!("stmxcsr [{}]", in(reg) &mut after);
            asm!("ldmxcsr [{}]", in(reg) &before);
            assert_ne!(own, usual);
            assert_eq!(inside, usual);
            assert_eq!(after & !0x3f, up & !0x3f);
        }
        assert_eq!(in_usual_arithmetic(quotient), usual);
    }
}
