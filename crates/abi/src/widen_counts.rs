//! Conversion of arguments to their widest type, so that functions with and without large counts share an implementation.

use crate::constants::MPI_UNDEFINED;
use crate::error::Error;
use std::ffi::c_int;

// MPI_Aint and MPI_Count have the same size, so both are widened to `i64`.
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

            /// Returns the first `n` elements. NULL is an error that names the argument, unless `n` is 0.
            ///
            /// # Safety
            /// The array is NULL or has `n` elements.
            pub unsafe fn to_vec(self, n: usize, argument: &str) -> Result<Vec<i64>, Error> {
                if n > 0 && self.is_null() {
                    return Err(Error::null(argument));
                }
                // SAFETY: the array has more than `i` elements, since `i` < `n`: the caller of `to_vec` promises `n` elements.
                Ok((0..n).map(|i| unsafe { self.get(i) }).collect())
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

    /// Stores `value` as [`Out::set`] does. NULL is an error that names the argument.
    ///
    /// # Safety
    /// The pointer is NULL or may be written.
    pub unsafe fn store(self, value: i64, argument: &str) -> Result<(), Error> {
        if self.is_null() {
            return Err(Error::null(argument));
        }
        // SAFETY: the pointer is not NULL, so it is valid for writes: the caller of `store` promises it.
        unsafe { self.set(value) };
        Ok(())
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
        assert_eq!(unsafe { Counts::Int(narrow.as_ptr()).to_vec(3, "") }.unwrap(), wide);
        // SAFETY: NULL is allowed.
        unsafe {
            assert_eq!(Counts::Int(null()).to_vec(0, "").unwrap(), []);
            assert!(Displs::Aint(null()).to_vec(1, "").is_err());
        }
        assert!(Counts::Int(null()).is_null() && Displs::Aint(null()).is_null());
        assert!(!Counts::Count(wide.as_ptr()).is_null());
    }

    #[test]
    fn what_an_int_cannot_hold_becomes_undefined() {
        let (mut int, mut count) = (0, 0);
        let (narrow, wide) = (Out::Int(&raw mut int), Out::Count(&raw mut count));
        for value in [5, -5, i64::from(c_int::MAX), i64::from(c_int::MIN)] {
            // SAFETY: both pointers point to local variables, which hold values.
            unsafe {
                narrow.set(value);
                wide.set(value);
                assert_eq!((narrow.get(), wide.get()), (value, value));
            }
        }
        let big = i64::from(c_int::MAX) + 1;
        // SAFETY: both pointers point to local variables, which hold values.
        unsafe {
            narrow.set(big);
            wide.set(big);
            assert_eq!((narrow.get(), wide.get()), (i64::from(MPI_UNDEFINED), big));
            narrow.set(-big - 1);
            assert_eq!(narrow.get(), i64::from(MPI_UNDEFINED));
        }
    }
}
