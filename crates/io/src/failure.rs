//! What went wrong with a file, in a form that ranks tell each other, and its words.

use std::io;
use weft_process::Error;

/// The error classes of files (MPI 5.0, section 14.8).
pub mod class {
    /// The process may not do that with the file.
    pub const ACCESS: i32 = 20;
    /// An access mode makes no sense.
    pub const AMODE: i32 = 21;
    /// A name is too long, or names no file.
    pub const BAD_FILE: i32 = 23;
    /// A representation's name is taken.
    pub const DUP_DATAREP: i32 = 27;
    /// There is such a file, and a new one was asked for.
    pub const FILE_EXISTS: i32 = 28;
    /// Somebody has it open.
    pub const FILE_IN_USE: i32 = 29;
    /// The device or the file system failed, or the access makes no sense.
    pub const IO: i32 = 35;
    /// Ranks gave different arguments.
    pub const NOT_SAME: i32 = 40;
    /// The file system is full.
    pub const NO_SPACE: i32 = 41;
    /// There is no such file.
    pub const NO_SUCH_FILE: i32 = 42;
    /// The user may have no more on this file system.
    pub const QUOTA: i32 = 44;
    /// The file or its file system can only be read.
    pub const READ_ONLY: i32 = 45;
    /// There is no such representation.
    pub const UNSUPPORTED_DATAREP: i32 = 54;
}

/// What was done to a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// Bytes were read.
    Read,
    /// Bytes were written.
    Write,
    /// It was opened.
    Open,
    /// It was taken away.
    Delete,
    /// Its length was asked for, or changed.
    Resize,
    /// It was brought to the device.
    Sync,
    /// A range of it was locked.
    Lock,
}

impl Act {
    const ALL: [Act; 7] =
        [Act::Read, Act::Write, Act::Open, Act::Delete, Act::Resize, Act::Sync, Act::Lock];

    fn word(self) -> &'static str {
        match self {
            Act::Read => "read",
            Act::Write => "write",
            Act::Open => "open",
            Act::Delete => "delete",
            Act::Resize => "change the length of",
            Act::Sync => "sync",
            Act::Lock => "lock a part of",
        }
    }
}

/// A system call on a file that failed. A few words long, so that ranks can send it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failure {
    /// What was tried.
    pub act: Act,
    /// The system's number of the error.
    pub errno: i32,
    /// Byte of the file at which it failed; for a change of length, the length.
    pub offset: u64,
    /// Bytes that were still to be moved.
    pub len: u64,
}

impl Failure {
    /// Words that a failure takes.
    pub const WORDS: usize = 4;

    /// Of a system call's error.
    #[cold]
    pub fn new(act: Act, error: &io::Error, offset: u64, len: u64) -> Failure {
        Failure { act, errno: error.raw_os_error().unwrap_or(libc::EIO), offset, len }
    }

    /// As words; all zero: no failure.
    pub fn words(failure: Option<Failure>) -> [u64; Failure::WORDS] {
        match failure {
            None => [0; Failure::WORDS],
            Some(Failure { act, errno, offset, len }) => {
                [1 + act as u64, errno as u64, offset, len]
            }
        }
    }

    /// What [`Failure::words`] said.
    pub fn from_words([act, errno, offset, len]: [u64; Failure::WORDS]) -> Option<Failure> {
        let act = *Act::ALL.get(usize::try_from(act).ok()?.checked_sub(1)?)?;
        Some(Failure { act, errno: errno as i32, offset, len })
    }

    /// Whether the file system has no locks.
    pub fn is_without_locks(&self) -> bool {
        let none = [libc::ENOLCK, libc::EOPNOTSUPP, libc::ENOSYS, libc::EINVAL];
        self.act == Act::Lock && none.contains(&self.errno)
    }

    /// The class of the error.
    pub fn class(&self) -> i32 {
        match self.errno {
            libc::ENOENT => class::NO_SUCH_FILE,
            libc::EEXIST => class::FILE_EXISTS,
            libc::EACCES | libc::EPERM | libc::EBADF => class::ACCESS,
            libc::EROFS => class::READ_ONLY,
            libc::ENOSPC => class::NO_SPACE,
            libc::EDQUOT => class::QUOTA,
            libc::EISDIR | libc::ENAMETOOLONG | libc::ENOTDIR | libc::ELOOP => class::BAD_FILE,
            libc::ETXTBSY | libc::EBUSY => class::FILE_IN_USE,
            _ => class::IO,
        }
    }

    fn remedy(&self) -> &'static str {
        match self.errno {
            libc::ENOENT => {
                "look at the path, or open with MPI_MODE_CREATE; all ranks must see its directory"
            }
            libc::EEXIST => "open without MPI_MODE_EXCL, or delete it first",
            libc::EACCES | libc::EPERM => "look at the owner and the mode of file and directory",
            libc::EBADF => "open with a mode that allows it",
            libc::EROFS => "choose another file system, or MPI_MODE_RDONLY",
            libc::ENOSPC => "make room there, or write elsewhere; what was written before is there",
            libc::EDQUOT => "free some of the user's space there, or ask for more",
            libc::EFBIG => "ulimit -f or the file system allows no longer file",
            libc::EMFILE | libc::ENFILE => "close some files, or raise ulimit -n",
            libc::ENOLCK | libc::EOPNOTSUPP => {
                "this file system has no locks: mount it with locks, or do without atomic mode"
            }
            libc::ESTALE => "the server has lost the file: was it deleted or replaced elsewhere?",
            libc::EIO => "the device or the server failed: the kernel's log may say more",
            _ => "the system's error says why",
        }
    }

    /// The error of `file`, in words; `whose` says what rank had it, if it was not this one.
    #[cold]
    pub fn error(&self, file: &str, whose: &str) -> Error {
        let system = io::Error::from_raw_os_error(self.errno);
        let place = match self.act {
            Act::Read | Act::Write | Act::Lock => {
                format!(" at byte {}, {} bytes left", self.offset, self.len)
            }
            Act::Resize => format!(" to {} bytes", self.offset),
            Act::Open | Act::Delete | Act::Sync => String::new(),
        };
        let text = format!(
            "{whose}cannot {} {file:?}{place}: {system}; {}",
            self.act.word(),
            self.remedy()
        );
        Error::new(self.class(), text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_survives_as_words_and_says_what_to_do() {
        for act in Act::ALL {
            let failure = Failure { act, errno: libc::ENOSPC, offset: 1 << 40, len: 7 };
            assert_eq!(Failure::from_words(Failure::words(Some(failure))), Some(failure));
        }
        assert_eq!(Failure::from_words(Failure::words(None)), None);
        let failure = Failure { act: Act::Write, errno: libc::ENOSPC, offset: 4096, len: 7 };
        let error = failure.error("data", "rank 3 ");
        assert_eq!(error.class(), class::NO_SPACE);
        for part in ["rank 3 cannot write \"data\"", "byte 4096, 7 bytes", "make room"] {
            assert!(error.text().contains(part), "{}", error.text());
        }
    }
}
