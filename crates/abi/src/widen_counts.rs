//! Conversion of arguments to their widest type, so that functions with and without large counts share an implementation.

use crate::constants::MPI_UNDEFINED;
use std::ffi::c_int;

// MPI_Aint and MPI_Count share the wide forms below.
const _: () = assert!(size_of::<isize>() == size_of::<i64>());

/// Defines the type of an array whose elements the caller passed as `int` or as a wider type.
macro_rules! array {
    ($(#[$doc:meta])* $name:ident, $wide:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        #[allow(dead_code)] // chapters use it
        pub enum $name {
            Int(*const c_int),
            $wide(*const i64),
        }

        #[allow(dead_code)] // chapters use it
        impl $name {
            /// Returns true if the caller gave NULL.
            pub fn is_null(self) -> bool {
                match self {
                    $name::Int(p) => p.is_null(),
                    $name::$wide(p) => p.is_null(),
                }
            }

            /// # Safety
            /// The array is not NULL and has more than `i` elements.
            #[inline]
            pub unsafe fn get(self, i: usize) -> i64 {
                // SAFETY: element `i` is inside the array: the caller of `get` promises it.
                unsafe {
                    match self {
                        $name::Int(p) => i64::from(*p.add(i)),
                        $name::$wide(p) => *p.add(i),
                    }
                }
            }

            /// Returns the first `n` elements.
            ///
            /// # Safety
            /// `n` is 0, or the array is not NULL and has `n` elements.
            pub unsafe fn to_vec(self, n: usize) -> Vec<i64> {
                // SAFETY: the array has more than `i` elements, since `i` < `n`: the caller of `to_vec` promises `n` elements.
                (0..n).map(|i| unsafe { self.get(i) }).collect()
            }
        }
    };
}

array!(
    /// `const int counts[]`, or `const MPI_Count counts[]` in the form with large counts.
    Counts,
    Count
);
array!(
    /// `const int displs[]`, or `const MPI_Aint displs[]` (for some functions `MPI_Count`).
    Displs,
    Aint
);

/// Address at which a function returns one integer: `int *`, `MPI_Count *` or `MPI_Aint *`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[allow(dead_code)] // chapters use it
pub enum Out {
    Int(*mut c_int),
    Count(*mut i64),
}

#[allow(dead_code)] // chapters use it
impl Out {
    /// Returns true if the caller gave NULL.
    pub fn is_null(self) -> bool {
        match self {
            Out::Int(p) => p.is_null(),
            Out::Count(p) => p.is_null(),
        }
    }

    /// Returns the largest value that fits.
    pub fn limit(self) -> i64 {
        match self {
            Out::Int(_) => i64::from(c_int::MAX),
            Out::Count(_) => i64::MAX,
        }
    }

    /// Stores `value`. If the value does not fit into an `int`, stores `MPI_UNDEFINED`, as the standard requires.
    ///
    /// # Safety
    /// The pointer is not NULL and may be written.
    #[inline]
    pub unsafe fn set(self, value: i64) {
        // SAFETY: the pointer is valid for writes: the caller of `set` promises it.
        unsafe {
            match self {
                Out::Int(p) => p.write(c_int::try_from(value).unwrap_or(MPI_UNDEFINED)),
                Out::Count(p) => p.write(value),
            }
        }
    }

    /// Returns the value at the address, for arguments such as `position` of `MPI_Pack`, which are read and written.
    ///
    /// # Safety
    /// The pointer is not NULL and holds a value.
    #[inline]
    pub unsafe fn get(self) -> i64 {
        // SAFETY: the pointer is valid for reads and holds a value: the caller of `get` promises it.
        unsafe {
            match self {
                Out::Int(p) => i64::from(*p),
                Out::Count(p) => *p,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::ptr::null;

    #[test]
    fn arrays_read_the_same_in_both_widths() {
        let (narrow, wide) = ([3, -7, c_int::MAX], [3, -7, i64::from(c_int::MAX)]);
        for i in 0..3 {
            // SAFETY: both arrays have 3 elements.
            unsafe {
                assert_eq!(Counts::Int(narrow.as_ptr()).get(i), wide[i]);
                assert_eq!(Counts::Count(wide.as_ptr()).get(i), wide[i]);
                assert_eq!(Displs::Int(narrow.as_ptr()).get(i), wide[i]);
                assert_eq!(Displs::Aint(wide.as_ptr()).get(i), wide[i]);
            }
        }
        // SAFETY: the array has 3 elements.
        assert_eq!(unsafe { Counts::Int(narrow.as_ptr()).to_vec(3) }, wide);
        // SAFETY: no element is read, since `n` is 0.
        assert_eq!(unsafe { Counts::Int(null()).to_vec(0) }, []);
        assert!(Counts::Int(null()).is_null() && Displs::Aint(null()).is_null());
        assert!(!Counts::Count(wide.as_ptr()).is_null());
    }

    #[test]
    fn what_an_int_cannot_hold_becomes_undefined() {
        let (mut int, mut count) = (0, 0);
        let (narrow, wide) = (Out::Int(&raw mut int), Out::Count(&raw mut count));
        for value in [5, -5, i64::from(c_int::MAX), i64::from(c_int::MIN)] {
            // SAFETY: both pointers are to local variables, which hold values.
            unsafe {
                narrow.set(value);
                wide.set(value);
                assert_eq!((narrow.get(), wide.get()), (value, value));
            }
        }
        let big = narrow.limit() + 1;
        // SAFETY: both pointers are to local variables, which hold values.
        unsafe {
            narrow.set(big);
            wide.set(big);
            assert_eq!((narrow.get(), wide.get()), (i64::from(MPI_UNDEFINED), big));
            narrow.set(-big - 1);
            assert_eq!(narrow.get(), i64::from(MPI_UNDEFINED));
        }
    }
}
