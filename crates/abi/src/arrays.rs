//! Arrays of the program.

use crate::arguments::not_null;
use crate::error::Error;

/// Returns the first `n` elements of an array of the program.
///
/// # Safety
/// `from` is NULL or has `n` elements.
pub unsafe fn list<T: Copy>(from: *const T, n: usize, argument: &str) -> Result<Vec<T>, Error> {
    if n > 0 {
        not_null(from, argument)?;
    }
    // SAFETY: `i` is less than `n`, and `from` is not NULL and has `n` elements; the contract of this function says so.
    Ok((0..n).map(|i| unsafe { *from.add(i) }).collect())
}

/// Stores values in an array of the program.
///
/// # Safety
/// `to` is NULL or has an element for each value.
pub unsafe fn store_list<T>(
    to: *mut T,
    values: impl ExactSizeIterator<Item = T>,
    argument: &str,
) -> Result<(), Error> {
    if values.len() > 0 {
        not_null(to, argument)?;
    }
    for (i, value) in values.enumerate() {
        // SAFETY: `i` is less than the number of values, and `to` is not NULL; the contract of this function says so.
        unsafe { to.add(i).write(value) };
    }
    Ok(())
}
