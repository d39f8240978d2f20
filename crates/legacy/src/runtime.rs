//! Conversions that both older ABIs share. Each ABI implements [`LegacyAbi`], [`LegacyHandle`] and [`LegacyStatus`].

pub mod arguments;
pub mod attributes;
pub mod callbacks;
pub mod calls;
pub mod codes;
pub mod contents;
pub mod duplicates;
pub mod function_state;
pub mod generalized;
pub mod standard;
pub mod tool_object;
pub mod unsupported;

use std::ffi::c_int;

/// Number of elements that an array may have to be converted on the stack.
pub const INLINE: usize = 64;

/// Pairs of numbers: the older ABI's, and the standard's.
pub type NumberMap = &'static [(c_int, c_int)];

/// A number that no constant of the standard has. It stands for numbers that the older ABI does not define.
pub const UNKNOWN: c_int = -777_777;

/// An older ABI: its types and tables.
pub trait LegacyAbi: 'static {
    type Comm: LegacyHandle;
    type Datatype: LegacyHandle;
    type Win: LegacyHandle;
    type Session: LegacyHandle;
    type File: LegacyHandle;
    type Status: LegacyStatus;
    /// Error classes.
    const CLASSES: NumberMap;
    /// Keys of predefined attributes.
    const KEYVALS: NumberMap;
    /// MPI_ANY_SOURCE, MPI_PROC_NULL, MPI_ROOT.
    const RANKS: NumberMap;
    /// MPI_ANY_TAG.
    const TAGS: NumberMap;
    /// Flavors of windows.
    const FLAVORS: NumberMap;
    /// Memory models of windows.
    const MODELS: NumberMap;
    const ORDERS: NumberMap;
    const DISTRIBUTIONS: NumberMap;
    /// Version of MPI that the ABI has: version and subversion.
    const VERSION: (c_int, c_int);
    /// The first of the classes for a failed process, a pending one, and a revoked communicator, which only older ABIs have.
    const FAILED_PROCESSES: c_int;
    /// MPI_IN_PLACE, as an address.
    const IN_PLACE: isize;
    /// MPI_LB and MPI_UB, which functions of MPI 1 took as datatypes.
    fn bound(datatype: Self::Datatype) -> Option<TypeBound>;
    /// MPI_ERR_LASTCODE. Codes that the program adds are larger.
    const LAST_CODE: c_int;
}

/// A bound of a datatype, as MPI 1 described it by datatypes without size.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TypeBound {
    Lower,
    Upper,
}

/// An address in an exported object.
#[repr(transparent)]
pub struct ExportedAddress(pub *const c_int);

// SAFETY: nothing is written through the address.
unsafe impl Sync for ExportedAddress {}

/// A handle of an older ABI.
pub trait LegacyHandle: Copy {
    /// Returns the standard's handle. For a handle that the ABI does not define, returns 0, which is no object's handle.
    fn to_standard(self) -> usize;
    /// Returns the older ABI's handle.
    fn from_standard(standard: usize) -> Self;
}

/// A handle that Fortran has as a number.
pub trait FortranHandle: LegacyHandle {
    /// Returns Fortran's number.
    fn number(self) -> c_int;
}

/// A status of an older ABI.
pub trait LegacyStatus: Copy {
    /// The address that stands for `MPI_STATUS_IGNORE` and `MPI_STATUSES_IGNORE`.
    const IGNORE: usize;
    /// Returns source, tag, error, number of bytes, and the cancelled flag, as the older ABI has them.
    fn fields(&self) -> StatusFields;
    /// Stores all but the error.
    fn store(&mut self, fields: StatusFields);
    /// Stores the error.
    fn store_error(&mut self, error: c_int);
}

/// The contents of a status, in any ABI.
#[derive(Clone, Copy)]
pub struct StatusFields {
    pub source: c_int,
    pub tag: c_int,
    pub error: c_int,
    pub bytes: u64,
    pub cancelled: bool,
}

/// Converts a number of the older ABI. A number that the older ABI does not define stays, so that an error names it; it becomes
/// [`UNKNOWN`] if it would be another constant of the standard.
pub fn to_standard(map: NumberMap, number: c_int) -> c_int {
    match map.iter().find(|(legacy, _)| *legacy == number) {
        Some(&(_, standard)) => standard,
        None if map.iter().any(|(_, standard)| *standard == number) => UNKNOWN,
        None => number,
    }
}

/// Converts a number of the standard. A number that the map does not have stays.
pub fn from_standard(map: NumberMap, number: c_int) -> c_int {
    map.iter().find(|(_, standard)| *standard == number).map_or(number, |&(legacy, _)| legacy)
}

/// Converts a number of the older ABI that may be an ordinary number, such as a rank.
#[inline(always)]
pub fn special_to_standard(map: NumberMap, number: c_int) -> c_int {
    if number >= 0 { number } else { to_standard(map, number) }
}

/// Converts a number of the standard that may be an ordinary number.
#[inline(always)]
pub fn special_from_standard(map: NumberMap, number: c_int) -> c_int {
    if number >= 0 { number } else { from_standard(map, number) }
}

/// Converts a key of an attribute. Keys that the program made have the same number in all ABIs.
pub fn key_to_standard(map: NumberMap, key: c_int) -> c_int {
    map.iter().find(|(legacy, _)| *legacy == key).map_or(key, |&(_, standard)| standard)
}

/// Converts a set of flags. Flags that the map does not have stay, so that an error names them; they become a flag that the standard
/// does not have if they would be other flags of the standard.
pub fn flags_to_standard(map: NumberMap, flags: c_int) -> c_int {
    const NONE: c_int = 1 << 30;
    let known = map.iter().fold(0, |known, (legacy, _)| known | legacy);
    let set = map.iter().filter(|(legacy, _)| flags & legacy != 0);
    let unknown = flags & !known;
    let clashes = map.iter().any(|(_, standard)| unknown & standard != 0);
    set.fold(0, |all, (_, standard)| all | standard) | if clashes { NONE } else { unknown }
}

/// Converts a set of the standard's flags.
pub fn flags_from_standard(map: NumberMap, flags: c_int) -> c_int {
    let set = map.iter().filter(|(_, standard)| flags & standard != 0);
    set.fold(0, |all, (legacy, _)| all | legacy)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAP: NumberMap = &[(1, 0x10), (4, 0x20)];

    #[test]
    fn numbers_are_converted_both_ways() {
        assert_eq!(to_standard(MAP, 4), 0x20);
        assert_eq!((to_standard(MAP, 0x20), to_standard(MAP, 5)), (UNKNOWN, 5));
        assert_eq!(from_standard(MAP, 0x10), 1);
        assert_eq!(special_to_standard(&[(-2, -1)], -2), -1);
        assert_eq!(special_to_standard(&[(-2, -1)], 7), 7);
    }

    #[test]
    fn unknown_flags_stay_unknown() {
        assert_eq!(flags_to_standard(MAP, 5), 0x30);
        assert_eq!(flags_to_standard(MAP, 2), 2, "the library must refuse the flag");
        assert_eq!(flags_to_standard(MAP, 0x10) & 0x10, 0, "it is another flag of the standard");
        assert_eq!(flags_from_standard(MAP, 0x30), 5);
    }
}
