//! List of the functions that are implemented, for `weft info --coverage`.

use crate::generated::COVERAGE;
use std::ffi::c_char;

/// Returns a text that lives as long as the library: `weft <version>`, then a line `MPI_X yes` or `MPI_X no` for each function of
/// the standard. The function needs no `MPI_Init`.
#[unsafe(no_mangle)]
pub extern "C" fn weft_coverage() -> *const c_char {
    COVERAGE.as_ptr()
}
