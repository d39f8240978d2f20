//! Failures of system calls on files, in a form that ranks exchange, and their error texts.

use std::io;
use weft_process::Error;

/// The error classes of files (MPI 5.0, section 14.8).
pub mod class {
    /// The process has no permission for the access.
    pub const ACCESS: i32 = 20;
    /// An access mode is invalid.
    pub const AMODE: i32 = 21;
    /// A file name is invalid.
    pub const BAD_FILE: i32 = 23;
    /// The file exists already.
    pub const FILE_EXISTS: i32 = 28;
    /// The file is open elsewhere.
    pub const FILE_IN_USE: i32 = 29;
    /// The device or the file system failed, or an access is invalid.
    pub const IO: i32 = 35;
    /// Ranks gave different arguments.
    pub const NOT_SAME: i32 = 40;
    /// The file system is full.
    pub const NO_SPACE: i32 = 41;
    /// The file does not exist.
    pub const NO_SUCH_FILE: i32 = 42;
    /// The user's quota is exhausted.
    pub const QUOTA: i32 = 44;
    /// The file or its file system is read-only.
    pub const READ_ONLY: i32 = 45;
}

/// Operation of the system on a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileAction {
    /// Reads bytes.
    Read,
    /// Writes bytes.
    Write,
    /// Opens the file.
    Open,
    /// Deletes the file.
    Delete,
    /// Queries or changes the length.
    Resize,
    /// Brings data to the device.
    Sync,
    /// Locks a range.
    Lock,
}

impl FileAction {
    const ALL: [FileAction; 7] = [
        FileAction::Read,
        FileAction::Write,
        FileAction::Open,
        FileAction::Delete,
        FileAction::Resize,
        FileAction::Sync,
        FileAction::Lock,
    ];

    fn word(self) -> &'static str {
        match self {
            FileAction::Read => "read",
            FileAction::Write => "write",
            FileAction::Open => "open",
            FileAction::Delete => "delete",
            FileAction::Resize => "change the length of",
            FileAction::Sync => "sync",
            FileAction::Lock => "lock a part of",
        }
    }
}

/// A failed system call on a file, encoded in few words so that ranks can exchange it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FileFailure {
    /// Failed operation.
    pub act: FileAction,
    /// Error number of the system.
    pub errno: i32,
    /// Byte of the file at which the operation failed; for a change of length, the new length.
    pub offset: u64,
    /// Number of bytes that were not moved.
    pub len: u64,
}

impl FileFailure {
    /// Number of words of an encoded failure.
    pub const WORDS: usize = 4;

    /// Creates a failure from a system call's error.
    #[cold]
    pub fn new(act: FileAction, error: &io::Error, offset: u64, len: u64) -> FileFailure {
        FileFailure { act, errno: error.raw_os_error().unwrap_or(libc::EIO), offset, len }
    }

    /// Encodes a failure. `None` is encoded as zeros.
    pub fn words(failure: Option<FileFailure>) -> [u64; FileFailure::WORDS] {
        match failure {
            None => [0; FileFailure::WORDS],
            Some(FileFailure { act, errno, offset, len }) => {
                [1 + act as u64, errno as u64, offset, len]
            }
        }
    }

    /// Decodes [`FileFailure::words`].
    pub fn from_words([act, errno, offset, len]: [u64; FileFailure::WORDS]) -> Option<FileFailure> {
        let act = *FileAction::ALL.get(usize::try_from(act).ok()?.checked_sub(1)?)?;
        Some(FileFailure { act, errno: errno as i32, offset, len })
    }

    /// Reports whether the failure means that the file system has no locks.
    pub fn is_without_locks(&self) -> bool {
        let none = [libc::ENOLCK, libc::EOPNOTSUPP, libc::ENOSYS, libc::EINVAL];
        self.act == FileAction::Lock && none.contains(&self.errno)
    }

    /// Returns the error class.
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
                "check the path, or open with MPI_MODE_CREATE; all ranks must see its directory"
            }
            libc::EEXIST => "open without MPI_MODE_EXCL, or delete it first",
            libc::EACCES | libc::EPERM => "check the owner and the mode of file and directory",
            libc::EBADF => "open with a mode that allows it",
            libc::EROFS => "choose another file system, or MPI_MODE_RDONLY",
            libc::ENOSPC => {
                "make room there, or write elsewhere; data that were written before are there"
            }
            libc::EDQUOT => "delete some of the user's files there, or ask for more space",
            libc::EFBIG => "ulimit -f or the file system allows no longer file",
            libc::EMFILE | libc::ENFILE => "close some files, or raise ulimit -n",
            libc::ENOLCK | libc::EOPNOTSUPP => {
                "this file system has no locks: mount it with locks, or do not use atomic mode"
            }
            libc::ESTALE => "the server has lost the file: was it deleted or replaced elsewhere?",
            libc::EIO => "the device or the server failed: the kernel's log may say more",
            _ => "the system's error is the reason",
        }
    }

    /// Makes an error that describes the failure on `file`. `whose` names the rank with the failure, if it is another rank.
    #[cold]
    pub fn error(&self, file: &str, whose: &str) -> Error {
        let system = io::Error::from_raw_os_error(self.errno);
        let place = match self.act {
            FileAction::Read | FileAction::Write | FileAction::Lock => {
                format!(" at byte {}, {} bytes left", self.offset, self.len)
            }
            FileAction::Resize => format!(" to {} bytes", self.offset),
            FileAction::Open | FileAction::Delete | FileAction::Sync => String::new(),
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
    fn failures_are_decoded_and_name_a_remedy() {
        for act in FileAction::ALL {
            let failure = FileFailure { act, errno: libc::ENOSPC, offset: 1 << 40, len: 7 };
            assert_eq!(FileFailure::from_words(FileFailure::words(Some(failure))), Some(failure));
        }
        assert_eq!(FileFailure::from_words(FileFailure::words(None)), None);
        let failure =
            FileFailure { act: FileAction::Write, errno: libc::ENOSPC, offset: 4096, len: 7 };
        let error = failure.error("data", "rank 3 ");
        assert_eq!(error.class(), class::NO_SPACE);
        for part in ["rank 3 cannot write \"data\"", "byte 4096, 7 bytes", "make room"] {
            assert!(error.text().contains(part), "{}", error.text());
        }
    }
}
