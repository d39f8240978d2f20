//! Consistency between hosts on NFS. The NFS client caches pages and the length of a file. The client asks the server whether
//! cached data are still valid when the file is opened, when a part of the file is locked, and otherwise only from time to time.
//! While no part of the file is locked, the client writes back whole pages, even if the program wrote only a part of a page. Then
//! old contents replace bytes that other hosts have written.
//!
//! Therefore all writing ranks hold a lock on a byte beyond the end of any file while the file is open. A second such byte is
//! locked for a moment to revalidate the cache.

use super::disk::FileSystemKind;
use super::{LockMode, Storage};
use std::io;

/// Last byte that can be locked. All writing ranks hold a shared lock on this byte while the file is open.
const HELD: u64 = i64::MAX as u64 - 1;
/// Offset of the byte before [`HELD`]. A lock on this byte is held only for a moment, to revalidate the cache.
pub(super) const REVALIDATED: u64 = HELD - 1;

impl FileSystemKind {
    /// Reports whether a host caches pages of files. Cached pages may be stale, and are written back as a whole.
    pub fn caches_pages(self) -> bool {
        self == FileSystemKind::Nfs
    }

    /// Prepares the host's cache for a file that is only read, or only written, once all ranks have opened it. Opening the file is
    /// not enough to see all writes. The server's timestamps may be equal for two consecutive writes, and a host that has just
    /// written may mistake another host's change for its own.
    pub fn begin_reading(self, storage: &dyn Storage) {
        self.revalidate(storage);
        self.drop_stale_pages(storage);
    }

    /// Prepares the host's cache for a file that is read and written, once all ranks have opened it. Has no effect if the file
    /// system has no locks.
    pub fn begin_writing(self, storage: &dyn Storage) {
        if self.caches_pages() {
            let _ = storage.lock(HELD, 1, LockMode::Shared);
        }
        self.drop_stale_pages(storage);
    }

    /// Drops cached pages. If the server has delegated the file to this host, a lock does not revalidate the pages that were cached
    /// before.
    fn drop_stale_pages(self, storage: &dyn Storage) {
        if self.caches_pages() {
            storage.drop_cached_pages();
        }
    }

    /// Makes written data visible to other hosts, where the file system does not do this by itself. Errors: failures of earlier
    /// writes.
    pub fn publish(self, storage: &dyn Storage) -> io::Result<()> {
        if self.caches_pages() { storage.sync() } else { Ok(()) }
    }

    /// Invalidates this host's cache of the file, so that the next access sees what other hosts have published.
    pub fn revalidate(self, storage: &dyn Storage) {
        if self.caches_pages() && storage.lock(REVALIDATED, 1, LockMode::Shared).is_ok() {
            let _ = storage.unlock(REVALIDATED, 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::OpenState;
    use std::sync::Mutex;

    /// Storage that records its calls.
    #[derive(Default)]
    struct Recorder {
        calls: Mutex<Vec<&'static str>>,
        state: OpenState,
    }

    impl Recorder {
        fn note(&self, call: &'static str) -> io::Result<()> {
            self.calls.lock().unwrap().push(call);
            Ok(())
        }
    }

    impl Storage for Recorder {
        fn read_at(&self, _: u64, _: &mut [u8]) -> io::Result<usize> {
            unreachable!("nothing is read")
        }
        fn write_at(&self, _: u64, _: &[u8]) -> io::Result<usize> {
            unreachable!("nothing is written")
        }
        fn length(&self) -> io::Result<u64> {
            Ok(0)
        }
        fn set_length(&self, _: u64) -> io::Result<()> {
            self.note("set_length")
        }
        fn allocate(&self, _: u64) -> io::Result<()> {
            self.note("allocate")
        }
        fn sync(&self) -> io::Result<()> {
            self.note("sync")
        }
        fn lock(&self, offset: u64, len: u64, mode: LockMode) -> io::Result<()> {
            assert!([HELD, REVALIDATED].contains(&offset) && (len, mode) == (1, LockMode::Shared));
            assert!(i64::try_from(offset + len).is_ok(), "the system counts with a sign");
            self.note(if offset == HELD { "hold" } else { "lock" })
        }
        fn unlock(&self, offset: u64, len: u64) -> io::Result<()> {
            assert_eq!((offset, len), (REVALIDATED, 1), "the other one is kept");
            self.note("unlock")
        }
        fn is_locked(&self, _: u64, _: u64) -> io::Result<bool> {
            unreachable!("the test asks for no locks")
        }
        fn drop_cached_pages(&self) {
            self.note("forget").unwrap();
        }
        fn state(&self) -> &OpenState {
            &self.state
        }
        fn kind(&self) -> FileSystemKind {
            unreachable!("the test names the kind")
        }
        fn preferred_size(&self) -> u64 {
            unreachable!("the test asks for no size")
        }
    }

    #[test]
    fn only_nfs_gets_locks_and_syncs() {
        let calls = |kind: FileSystemKind| {
            let file = Recorder::default();
            kind.begin_reading(&file);
            kind.begin_writing(&file);
            kind.publish(&file).unwrap();
            kind.revalidate(&file);
            file.calls.into_inner().unwrap()
        };
        assert_eq!(
            calls(FileSystemKind::Nfs),
            ["lock", "unlock", "forget", "hold", "forget", "sync", "lock", "unlock"]
        );
        for kind in [FileSystemKind::Local, FileSystemKind::Lustre, FileSystemKind::Network] {
            assert!(calls(kind).is_empty(), "{kind:?}");
        }
    }
}
