//! The numbers of MPI_Type_get_contents, some of which are constants (MPI 5.0, section 5.1.13).

use super::arguments::length;
use super::standard::{constants, standard};
use super::{LegacyAbi, from_standard};
use std::ffi::c_int;

/// Converts the constants among the numbers that the library has stored for a datatype.
///
/// # Safety
/// `numbers` is NULL or has `count` elements.
pub unsafe fn convert<A: LegacyAbi>(datatype: usize, count: c_int, numbers: *mut c_int) {
    let (mut counts, mut combiner) = ([0; 4], 0);
    let [a, b, large, c] = &mut counts;
    let envelope = standard().MPI_Type_get_envelope_c;
    // SAFETY: all results are local variables.
    let code = unsafe { envelope(datatype, a, b, large, c, &raw mut combiner) };
    let is_large = *large > 0;
    if code != 0 || numbers.is_null() || count <= 0 {
        return;
    }
    // SAFETY: `numbers` has `count` elements: the caller promises it.
    let numbers = unsafe { std::slice::from_raw_parts_mut(numbers, length(count)) };
    let order = |number: &mut c_int| *number = from_standard(A::ORDERS, *number);
    match i64::from(combiner) {
        // ndims, sizes, subsizes, starts, order; sizes of a large type are elsewhere
        constants::MPI_COMBINER_SUBARRAY => {
            let ndims = length(numbers[0]);
            numbers.get_mut(if is_large { 1 } else { 1 + 3 * ndims }).into_iter().for_each(order);
        }
        // size, rank, ndims, gsizes, distribs, dargs, psizes, order
        constants::MPI_COMBINER_DARRAY if numbers.len() > 2 => {
            let ndims = length(numbers[2]);
            let distributions = if is_large { 3 } else { 3 + ndims };
            for number in numbers.iter_mut().skip(distributions).take(ndims) {
                *number = from_standard(A::DISTRIBUTIONS, *number);
            }
            let default = constants::MPI_DISTRIBUTE_DFLT_DARG as c_int;
            for number in numbers.iter_mut().skip(distributions + ndims).take(ndims) {
                if *number == default {
                    *number = from_standard(A::DISTRIBUTIONS, default);
                }
            }
            numbers.get_mut(distributions + 3 * ndims).into_iter().for_each(order);
        }
        _ => {}
    }
}
