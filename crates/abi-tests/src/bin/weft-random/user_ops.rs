//! The program's own reduction operators, as the library calls them.

use crate::mpi::{CountWidth, Mpi};
use crate::reduce::{Spacing, UserOp};
use std::ffi::{c_int, c_void};

/// Applies an operator to `len` pairs of 32-bit numbers: `right` becomes `left` op `right`.
///
/// # Safety
/// Both point to `len` elements of `extent` bytes, whose second number is `second` bytes after the first.
unsafe fn apply(user: UserOp, left: *const u8, right: *mut u8, len: usize, spacing: Spacing) {
    let (extent, second) = match spacing {
        Spacing::Compact => (8, 4),
        Spacing::Apart => (24, 16),
    };
    for at in (0..len).map(|i| i * extent) {
        // SAFETY: all accesses are within the `len` elements at both addresses: the caller of `apply` promises them.
        unsafe {
            let word = |p: *const u8, d: usize| p.add(at + d).cast::<u32>().read_unaligned();
            let [a, b] = user.pairs([word(left, 0), word(left, second)], {
                [word(right, 0), word(right, second)]
            });
            right.add(at).cast::<u32>().write_unaligned(a);
            right.add(at + second).cast::<u32>().write_unaligned(b);
        }
    }
}

macro_rules! operators {
    ($($small:ident $large:ident: $user:ident $spacing:ident;)*) => {
        $(
            extern "C" fn $small(a: *const u8, b: *mut u8, n: *const c_int, _: *const c_void) {
                // SAFETY: `n` is valid, and both buffers hold `*n` elements of the operator's datatype: the library promises it to
                // operators (MPI 5.0, 6.9.5).
                unsafe { apply(UserOp::$user, a, b, *n as usize, Spacing::$spacing) }
            }
            extern "C" fn $large(a: *const u8, b: *mut u8, n: *const i64, _: *const c_void) {
                // SAFETY: `n` is valid, and both buffers hold `*n` elements of the operator's datatype: the library promises it to
                // operators (MPI 5.0, 6.9.5).
                unsafe { apply(UserOp::$user, a, b, *n as usize, Spacing::$spacing) }
            }
        )*
        fn address(user: UserOp, spacing: Spacing, width: CountWidth) -> usize {
            match (user, spacing, width) {
                $(
                    (UserOp::$user, Spacing::$spacing, CountWidth::Int) => $small as *const () as usize,
                    (UserOp::$user, Spacing::$spacing, CountWidth::Large) => $large as *const () as usize,
                )*
            }
        }
    };
}

operators! {
    affine_compact affine_compact_c: Affine Compact;
    affine_apart affine_apart_c: Affine Apart;
    mixed_compact mixed_compact_c: Mixed Compact;
    mixed_apart mixed_apart_c: Mixed Apart;
}

/// Makes an operator.
pub fn create(
    mpi: &Mpi,
    user: UserOp,
    spacing: Spacing,
    width: CountWidth,
) -> Result<usize, String> {
    let commutes = usize::from(user == UserOp::Mixed);
    mpi.make_c("MPI_Op_create", width, &[address(user, spacing, width), commutes])
}
