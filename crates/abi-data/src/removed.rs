//! Functions of C that the standard's ABI does not have, and that programs call: those that MPI 3.0 removed, and conversions of
//! statuses for Fortran.

use crate::{Param, params, rows};
use std::path::Path;

/// A function that the ABI does not have.
pub struct RemovedFunction {
    /// The name without `MPI_`.
    pub name: String,
    pub params: Vec<Param>,
    pub c_params: String,
    /// The call that does the same, without `MPI_`. Empty if a single call does not.
    pub call: String,
    /// Text after "removed in MPI 3.0; now it is ". Empty for functions that are not removed.
    pub replacement: String,
}

/// Reads `removed.csv` of the folder `dir`.
pub fn removed_functions(dir: &Path) -> Vec<RemovedFunction> {
    let rows = rows::<4>(&dir.join("removed.csv")).into_iter();
    rows.map(|[name, c_params, call, replacement]| {
        let (params, _) = params(&c_params);
        RemovedFunction { name, params, c_params, call, replacement }
    })
    .collect()
}
