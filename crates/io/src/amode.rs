//! Access modes (MPI 5.0, section 14.2.1): the ABI's bits and their valid combinations.

use crate::access_direction::AccessDirection;
use crate::failure::class;
use crate::view::Overlaps;
use std::fs::OpenOptions;
use weft_process::Error;

/// Access mode of a file: MPI_MODE_RDONLY and the like, or'ed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Amode(i32);

/// Role of a rank in a collective open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenRole {
    /// The first rank, which creates the file.
    First,
    /// Any other rank, which opens the file after the first rank.
    Other,
}

const APPEND: i32 = 1;
const CREATE: i32 = 2;
const DELETE_ON_CLOSE: i32 = 4;
const EXCL: i32 = 8;
const RDONLY: i32 = 16;
const RDWR: i32 = 32;
const SEQUENTIAL: i32 = 64;
const UNIQUE_OPEN: i32 = 128;
const WRONLY: i32 = 256;
const ALL: i32 = 511;

impl Amode {
    /// Checks an access mode. Errors: AMODE.
    pub fn new(bits: i32) -> Result<Amode, Error> {
        let wrong =
            |why: &str| Err(Error::new(class::AMODE, format!("argument amode = {bits:#x}: {why}")));
        let directions = [RDONLY, RDWR, WRONLY].iter().filter(|&&bit| bits & bit != 0).count();
        if bits & !ALL != 0 {
            return wrong("it has unknown bits");
        }
        if directions != 1 {
            return wrong(
                "exactly one of MPI_MODE_RDONLY, MPI_MODE_RDWR and MPI_MODE_WRONLY must be in it",
            );
        }
        if bits & RDONLY != 0 && bits & (CREATE | EXCL) != 0 {
            return wrong(
                "MPI_MODE_CREATE and MPI_MODE_EXCL create a file, which MPI_MODE_RDONLY could not write",
            );
        }
        if bits & RDWR != 0 && bits & SEQUENTIAL != 0 {
            return wrong("MPI_MODE_SEQUENTIAL goes with MPI_MODE_RDONLY or MPI_MODE_WRONLY");
        }
        Ok(Amode(bits))
    }

    /// Returns the access mode as bits of the ABI.
    pub fn bits(self) -> i32 {
        self.0
    }

    fn has(self, bit: i32) -> bool {
        self.0 & bit != 0
    }

    /// Reports whether data may be moved in this direction.
    #[inline]
    pub fn allows(self, direction: AccessDirection) -> bool {
        match direction {
            AccessDirection::Read => self.reads(),
            AccessDirection::Write => self.writes(),
        }
    }

    /// Reports whether data may be read.
    pub fn reads(self) -> bool {
        !self.has(WRONLY)
    }

    /// Reports whether data may be written.
    pub fn writes(self) -> bool {
        !self.has(RDONLY)
    }

    /// Returns the treatment of file types that overlap themselves.
    pub fn overlaps(self) -> Overlaps {
        if self.writes() { Overlaps::Refused } else { Overlaps::Allowed }
    }

    /// Reports whether all pointers are at the file's end after the open (MPI_MODE_APPEND).
    pub fn appends(self) -> bool {
        self.has(APPEND)
    }

    /// Reports whether only the shared pointer may be used.
    pub fn is_sequential(self) -> bool {
        self.has(SEQUENTIAL)
    }

    /// Reports whether a missing file is created.
    pub fn creates(self) -> bool {
        self.has(CREATE)
    }

    /// Reports whether the file is deleted when it is closed.
    pub fn deletes(self) -> bool {
        self.has(DELETE_ON_CLOSE)
    }

    /// Reports whether the program promises that the file has no other opening (MPI_MODE_UNIQUE_OPEN).
    pub fn is_unique(self) -> bool {
        self.has(UNIQUE_OPEN)
    }

    /// Returns the options with which a rank in this role opens the file. Only the first rank creates the file.
    pub fn options(self, role: OpenRole) -> OpenOptions {
        let mut options = OpenOptions::new();
        options.read(self.reads()).write(self.writes());
        if role == OpenRole::First && self.writes() {
            options.create(self.has(CREATE));
            options.create_new(self.has(CREATE) && self.has(EXCL));
        }
        options
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_modes_are_refused() {
        for bits in [0, RDONLY | RDWR, RDONLY | CREATE, RDWR | SEQUENTIAL, RDWR | 1024] {
            assert_eq!(Amode::new(bits).unwrap_err().class(), class::AMODE, "{bits:#x}");
        }
        let mode = Amode::new(RDWR | CREATE | EXCL | DELETE_ON_CLOSE).unwrap();
        assert!(mode.reads() && mode.writes() && mode.deletes() && mode.bits() & EXCL != 0);
        assert!(!mode.appends() && !mode.is_unique() && !mode.is_sequential());
    }
}
