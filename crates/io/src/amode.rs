//! Access modes (MPI 5.0, section 14.2.1): the ABI's bits, and what goes together.

use crate::failure::class;
use std::fs::OpenOptions;
use weft_process::Error;

/// What a file is opened for: MPI_MODE_RDONLY and the like, or'ed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Amode(i32);

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
    /// Errors: AMODE, with what is wrong.
    pub fn new(bits: i32) -> Result<Amode, Error> {
        let wrong =
            |why: &str| Err(Error::new(class::AMODE, format!("argument amode = {bits:#x}: {why}")));
        let ways = [RDONLY, RDWR, WRONLY].iter().filter(|&&way| bits & way != 0).count();
        if bits & !ALL != 0 {
            return wrong("it has bits that stand for nothing");
        }
        if ways != 1 {
            return wrong(
                "exactly one of MPI_MODE_RDONLY, MPI_MODE_RDWR and MPI_MODE_WRONLY must be in it",
            );
        }
        if bits & RDONLY != 0 && bits & (CREATE | EXCL) != 0 {
            return wrong(
                "MPI_MODE_CREATE and MPI_MODE_EXCL make a file, which MPI_MODE_RDONLY could not fill",
            );
        }
        if bits & RDWR != 0 && bits & SEQUENTIAL != 0 {
            return wrong("MPI_MODE_SEQUENTIAL goes with MPI_MODE_RDONLY or MPI_MODE_WRONLY");
        }
        Ok(Amode(bits))
    }

    /// The ABI's number.
    pub fn bits(self) -> i32 {
        self.0
    }

    fn has(self, bit: i32) -> bool {
        self.0 & bit != 0
    }

    /// Whether data may be read.
    pub fn reads(self) -> bool {
        !self.has(WRONLY)
    }

    /// Whether data may be written.
    pub fn writes(self) -> bool {
        !self.has(RDONLY)
    }

    /// Whether all pointers begin at the file's end.
    pub fn appends(self) -> bool {
        self.has(APPEND)
    }

    /// Whether only the shared pointer may be used.
    pub fn is_sequential(self) -> bool {
        self.has(SEQUENTIAL)
    }

    /// Whether the file is made, if there is none.
    pub fn creates(self) -> bool {
        self.has(CREATE)
    }

    /// Whether the file is deleted when it is closed.
    pub fn deletes(self) -> bool {
        self.has(DELETE_ON_CLOSE)
    }

    /// Whether nobody else has the file open.
    pub fn is_unique(self) -> bool {
        self.has(UNIQUE_OPEN)
    }

    /// How the system is to open it. Only the `first` rank makes it: the others find it. One that is written can be read, too,
    /// where the system lets it: sieving needs that.
    pub fn options(self, first: bool, reads: bool) -> OpenOptions {
        let mut options = OpenOptions::new();
        options.read(self.reads() || reads).write(self.writes());
        if first && self.writes() {
            options.create(self.has(CREATE));
            options.create_new(self.has(CREATE) && self.has(EXCL));
        }
        options
    }

    /// Whether an existing file is refused.
    pub fn is_exclusive(self) -> bool {
        self.has(EXCL) && self.has(CREATE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_that_make_no_sense_are_refused() {
        for bits in [0, RDONLY | RDWR, RDONLY | CREATE, RDWR | SEQUENTIAL, RDWR | 1024] {
            assert_eq!(Amode::new(bits).unwrap_err().class(), class::AMODE, "{bits:#x}");
        }
        let mode = Amode::new(RDWR | CREATE | EXCL | DELETE_ON_CLOSE).unwrap();
        assert!(mode.reads() && mode.writes() && mode.deletes() && mode.is_exclusive());
        assert!(!mode.appends() && !mode.is_unique() && !mode.is_sequential());
    }
}
