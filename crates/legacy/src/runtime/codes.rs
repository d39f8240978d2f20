//! Error codes. The library's codes are classes, codes with a description of the failure, and codes that the program added:
//!
//! ```text
//!   bit 30 | number (22) | class (8)     a code of the library, with its description
//!   above MPI_ERR_LASTCODE (16383)       a class or code of the program
//! ```
//! A code of the library keeps its number and gets the other class. A code of the program must lie above the older ABI's
//! MPI_ERR_LASTCODE, which for MPICH has bit 30: there it is a code of the library with class 0.

use super::standard::constants;
use super::{LegacyAbi, NumberMap, from_standard as map_from};
use std::ffi::{CStr, c_int};

const DESCRIBED: c_int = 1 << 30;
const CLASS: c_int = 0xff;
const LAST_CODE: c_int = 16383;
/// Upper bound of the numbers that either ABI has for its classes. Larger numbers are codes that the program invented.
const MOST_CLASSES: c_int = 127;

/// Converts a code of the library to the older ABI's.
#[inline(always)]
pub fn from_standard<A: LegacyAbi>(code: c_int) -> c_int {
    if code == 0 { 0 } else { slow_from::<A>(code) }
}

#[cold]
fn slow_from<A: LegacyAbi>(code: c_int) -> c_int {
    if code >= DESCRIBED {
        return code & !CLASS | map_from(A::CLASSES, code & CLASS);
    }
    if code <= LAST_CODE {
        return map_from(A::CLASSES, code);
    }
    if A::LAST_CODE < LAST_CODE { code } else { DESCRIBED | (code - LAST_CODE) << 8 }
}

/// Converts a code of the older ABI to the library's.
pub fn to_standard<A: LegacyAbi>(code: c_int) -> c_int {
    if code <= 0 {
        return code;
    }
    if code >= DESCRIBED {
        let class = code & CLASS;
        let added = class == 0 && A::LAST_CODE >= LAST_CODE;
        return match added {
            true => LAST_CODE + ((code ^ DESCRIBED) >> 8),
            false => code & !CLASS | class_to(A::CLASSES, class),
        };
    }
    if code > MOST_CLASSES { code } else { class_to(A::CLASSES, code) }
}

/// Texts of the classes that only older ABIs have, from [`LegacyAbi::FAILED_PROCESSES`] on.
const EXTRA: [&CStr; 3] = [
    c"MPIX_ERR_PROC_FAILED: a process has failed",
    c"MPIX_ERR_PROC_FAILED_PENDING: a process that may match has failed",
    c"MPIX_ERR_REVOKED: the communicator was revoked",
];

/// Returns the text of a class that only older ABIs have.
pub fn extra<A: LegacyAbi>(code: c_int) -> Option<&'static CStr> {
    EXTRA.get(usize::try_from(code - A::FAILED_PROCESSES).ok()?).copied()
}

/// Converts a class. A class that the standard does not have becomes MPI_ERR_UNKNOWN.
fn class_to(map: NumberMap, class: c_int) -> c_int {
    let unknown = constants::MPI_ERR_UNKNOWN as c_int;
    map.iter().find(|(legacy, _)| *legacy == class).map_or(unknown, |&(_, standard)| standard)
}
