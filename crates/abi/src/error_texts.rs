//! Meanings of the error classes of the standard, in a few words (MPI 5.0, tables 9.5 and 15.8).

use crate::constants::*;
use std::ffi::c_int;

/// Class, name and meaning.
pub static TEXTS: &[(c_int, &str, &str)] = &[
    (MPI_SUCCESS, "MPI_SUCCESS", "no error"),
    (MPI_ERR_BUFFER, "MPI_ERR_BUFFER", "invalid buffer pointer"),
    (MPI_ERR_COUNT, "MPI_ERR_COUNT", "invalid count"),
    (MPI_ERR_TYPE, "MPI_ERR_TYPE", "invalid datatype"),
    (MPI_ERR_TAG, "MPI_ERR_TAG", "invalid tag"),
    (MPI_ERR_COMM, "MPI_ERR_COMM", "invalid communicator"),
    (MPI_ERR_RANK, "MPI_ERR_RANK", "invalid rank"),
    (MPI_ERR_REQUEST, "MPI_ERR_REQUEST", "invalid request"),
    (MPI_ERR_ROOT, "MPI_ERR_ROOT", "invalid root"),
    (MPI_ERR_GROUP, "MPI_ERR_GROUP", "invalid group"),
    (MPI_ERR_OP, "MPI_ERR_OP", "invalid operator"),
    (MPI_ERR_TOPOLOGY, "MPI_ERR_TOPOLOGY", "invalid topology"),
    (MPI_ERR_DIMS, "MPI_ERR_DIMS", "invalid dimensions"),
    (MPI_ERR_ARG, "MPI_ERR_ARG", "invalid argument"),
    (MPI_ERR_UNKNOWN, "MPI_ERR_UNKNOWN", "unknown error"),
    (MPI_ERR_TRUNCATE, "MPI_ERR_TRUNCATE", "message truncated by its receive"),
    (MPI_ERR_OTHER, "MPI_ERR_OTHER", "known error not in this list"),
    (MPI_ERR_INTERN, "MPI_ERR_INTERN", "internal error of the library"),
    (MPI_ERR_PENDING, "MPI_ERR_PENDING", "request not yet complete"),
    (MPI_ERR_IN_STATUS, "MPI_ERR_IN_STATUS", "error codes are in the statuses"),
    (MPI_ERR_ACCESS, "MPI_ERR_ACCESS", "permission denied"),
    (MPI_ERR_AMODE, "MPI_ERR_AMODE", "invalid access mode of a file"),
    (MPI_ERR_ASSERT, "MPI_ERR_ASSERT", "invalid assertion"),
    (MPI_ERR_BAD_FILE, "MPI_ERR_BAD_FILE", "invalid file name"),
    (MPI_ERR_BASE, "MPI_ERR_BASE", "invalid base address"),
    (MPI_ERR_CONVERSION, "MPI_ERR_CONVERSION", "error in a data conversion function"),
    (MPI_ERR_DISP, "MPI_ERR_DISP", "invalid displacement"),
    (MPI_ERR_DUP_DATAREP, "MPI_ERR_DUP_DATAREP", "data representation already defined"),
    (MPI_ERR_FILE_EXISTS, "MPI_ERR_FILE_EXISTS", "file exists"),
    (MPI_ERR_FILE_IN_USE, "MPI_ERR_FILE_IN_USE", "file in use"),
    (MPI_ERR_FILE, "MPI_ERR_FILE", "invalid file handle"),
    (MPI_ERR_INFO_KEY, "MPI_ERR_INFO_KEY", "info key too long or empty"),
    (MPI_ERR_INFO_NOKEY, "MPI_ERR_INFO_NOKEY", "no such info key"),
    (MPI_ERR_INFO_VALUE, "MPI_ERR_INFO_VALUE", "info value too long"),
    (MPI_ERR_INFO, "MPI_ERR_INFO", "invalid info object"),
    (MPI_ERR_IO, "MPI_ERR_IO", "input or output error"),
    (MPI_ERR_KEYVAL, "MPI_ERR_KEYVAL", "invalid attribute key"),
    (MPI_ERR_LOCKTYPE, "MPI_ERR_LOCKTYPE", "invalid lock type"),
    (MPI_ERR_NAME, "MPI_ERR_NAME", "service name not published"),
    (MPI_ERR_NO_MEM, "MPI_ERR_NO_MEM", "out of memory"),
    (MPI_ERR_NOT_SAME, "MPI_ERR_NOT_SAME", "arguments differ between processes"),
    (MPI_ERR_NO_SPACE, "MPI_ERR_NO_SPACE", "no space left"),
    (MPI_ERR_NO_SUCH_FILE, "MPI_ERR_NO_SUCH_FILE", "no such file"),
    (MPI_ERR_PORT, "MPI_ERR_PORT", "invalid port name"),
    (MPI_ERR_QUOTA, "MPI_ERR_QUOTA", "quota exceeded"),
    (MPI_ERR_READ_ONLY, "MPI_ERR_READ_ONLY", "read-only file or file system"),
    (MPI_ERR_RMA_ATTACH, "MPI_ERR_RMA_ATTACH", "memory cannot be attached"),
    (MPI_ERR_RMA_CONFLICT, "MPI_ERR_RMA_CONFLICT", "conflicting accesses to a window"),
    (MPI_ERR_RMA_RANGE, "MPI_ERR_RMA_RANGE", "memory outside of the window"),
    (MPI_ERR_RMA_SHARED, "MPI_ERR_RMA_SHARED", "memory cannot be shared"),
    (MPI_ERR_RMA_SYNC, "MPI_ERR_RMA_SYNC", "wrong synchronisation of a window"),
    (MPI_ERR_SERVICE, "MPI_ERR_SERVICE", "invalid service name"),
    (MPI_ERR_SIZE, "MPI_ERR_SIZE", "invalid size"),
    (MPI_ERR_SPAWN, "MPI_ERR_SPAWN", "processes cannot be spawned"),
    (MPI_ERR_UNSUPPORTED_DATAREP, "MPI_ERR_UNSUPPORTED_DATAREP", "unsupported data representation"),
    (MPI_ERR_UNSUPPORTED_OPERATION, "MPI_ERR_UNSUPPORTED_OPERATION", "unsupported operation"),
    (MPI_ERR_WIN, "MPI_ERR_WIN", "invalid window"),
    (MPI_ERR_RMA_FLAVOR, "MPI_ERR_RMA_FLAVOR", "wrong flavor of window"),
    (MPI_ERR_PROC_ABORTED, "MPI_ERR_PROC_ABORTED", "a peer process has ended"),
    (MPI_ERR_VALUE_TOO_LARGE, "MPI_ERR_VALUE_TOO_LARGE", "value too large for its variable"),
    (MPI_ERR_SESSION, "MPI_ERR_SESSION", "invalid session"),
    (MPI_ERR_ERRHANDLER, "MPI_ERR_ERRHANDLER", "invalid error handler"),
    (MPI_ERR_ABI, "MPI_ERR_ABI", "not possible in this ABI"),
    (MPI_T_ERR_CANNOT_INIT, "MPI_T_ERR_CANNOT_INIT", "tool interface cannot be initialised"),
    (
        MPI_T_ERR_NOT_ACCESSIBLE,
        "MPI_T_ERR_NOT_ACCESSIBLE",
        "the functionality cannot be reached now",
    ),
    (MPI_T_ERR_NOT_INITIALIZED, "MPI_T_ERR_NOT_INITIALIZED", "tool interface not initialised"),
    (MPI_T_ERR_NOT_SUPPORTED, "MPI_T_ERR_NOT_SUPPORTED", "functionality not supported"),
    (MPI_T_ERR_MEMORY, "MPI_T_ERR_MEMORY", "out of memory"),
    (MPI_T_ERR_INVALID, "MPI_T_ERR_INVALID", "invalid use of the interface"),
    (MPI_T_ERR_INVALID_INDEX, "MPI_T_ERR_INVALID_INDEX", "invalid index"),
    (MPI_T_ERR_INVALID_ITEM, "MPI_T_ERR_INVALID_ITEM", "item index out of range"),
    (MPI_T_ERR_INVALID_SESSION, "MPI_T_ERR_INVALID_SESSION", "invalid session"),
    (MPI_T_ERR_INVALID_HANDLE, "MPI_T_ERR_INVALID_HANDLE", "invalid handle"),
    (MPI_T_ERR_INVALID_NAME, "MPI_T_ERR_INVALID_NAME", "invalid name"),
    (MPI_T_ERR_OUT_OF_HANDLES, "MPI_T_ERR_OUT_OF_HANDLES", "no more handles"),
    (MPI_T_ERR_OUT_OF_SESSIONS, "MPI_T_ERR_OUT_OF_SESSIONS", "no more sessions"),
    (
        MPI_T_ERR_CVAR_SET_NOT_NOW,
        "MPI_T_ERR_CVAR_SET_NOT_NOW",
        "variable cannot be set at this moment",
    ),
    (MPI_T_ERR_CVAR_SET_NEVER, "MPI_T_ERR_CVAR_SET_NEVER", "variable cannot be set any more"),
    (MPI_T_ERR_PVAR_NO_WRITE, "MPI_T_ERR_PVAR_NO_WRITE", "variable cannot be written or reset"),
    (
        MPI_T_ERR_PVAR_NO_STARTSTOP,
        "MPI_T_ERR_PVAR_NO_STARTSTOP",
        "variable cannot be started or stopped",
    ),
    (MPI_T_ERR_PVAR_NO_ATOMIC, "MPI_T_ERR_PVAR_NO_ATOMIC", "variable has no atomic read and reset"),
];

/// Returns name and meaning of a class of the standard.
pub fn of_class(class: c_int) -> Option<(&'static str, &'static str)> {
    TEXTS.iter().find(|(c, ..)| *c == class).map(|&(_, name, text)| (name, text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_class_has_its_text() {
        let is_class = |name: &str| {
            (name.starts_with("MPI_ERR_") || name.starts_with("MPI_T_ERR_"))
                && name != "MPI_ERR_LASTCODE"
        };
        for (_, name, value) in crate::constants::ALL.iter().filter(|c| is_class(c.1)) {
            assert_eq!(of_class(*value as c_int).map(|t| t.0), Some(*name));
        }
        assert_eq!(of_class(MPI_ERR_LASTCODE), None);
    }
}
