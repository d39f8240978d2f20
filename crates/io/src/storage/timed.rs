//! Files whose accesses take simulated time.

use super::disk::FileSystemKind;
use super::{LockMode, OpenState, Storage};
use std::io;
use std::sync::Arc;
use weft_fabric::FileClock;

/// A file whose reads and writes really happen, and take the time of the simulated machine.
pub struct TimedStorage {
    file: Arc<dyn Storage>,
    clock: Arc<dyn FileClock>,
    state: OpenState,
}

impl TimedStorage {
    /// Wraps a file that has just been opened. The opening takes the time of an access.
    pub fn new(file: Arc<dyn Storage>, clock: Arc<dyn FileClock>) -> TimedStorage {
        clock.pass(0);
        TimedStorage { file, clock, state: OpenState::without_measurements() }
    }

    /// Lets the time of an access pass that has moved so many bytes.
    fn timed(&self, moved: io::Result<usize>) -> io::Result<usize> {
        self.clock.pass(*moved.as_ref().unwrap_or(&0) as u64);
        moved
    }
}

impl Storage for TimedStorage {
    fn read_at(&self, offset: u64, to: &mut [u8]) -> io::Result<usize> {
        self.timed(self.file.read_at(offset, to))
    }

    fn write_at(&self, offset: u64, from: &[u8]) -> io::Result<usize> {
        self.timed(self.file.write_at(offset, from))
    }

    fn length(&self) -> io::Result<u64> {
        self.file.length()
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        self.file.set_length(length)
    }

    fn allocate(&self, length: u64) -> io::Result<()> {
        self.file.allocate(length)
    }

    fn sync(&self) -> io::Result<()> {
        self.clock.pass(0);
        self.file.sync()
    }

    fn lock(&self, offset: u64, len: u64, mode: LockMode) -> io::Result<()> {
        self.file.lock(offset, len, mode)
    }

    fn unlock(&self, offset: u64, len: u64) -> io::Result<()> {
        self.file.unlock(offset, len)
    }

    fn is_locked(&self, offset: u64, len: u64) -> io::Result<bool> {
        self.file.is_locked(offset, len)
    }

    fn drop_cached_pages(&self) {
        self.file.drop_cached_pages();
    }

    fn kind(&self) -> FileSystemKind {
        self.file.kind()
    }

    fn preferred_size(&self) -> u64 {
        self.file.preferred_size()
    }

    fn state(&self) -> &OpenState {
        &self.state
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::disk::Disk;
    use std::sync::Mutex;

    #[derive(Default)]
    struct PassedAccesses(Mutex<Vec<u64>>);

    impl FileClock for PassedAccesses {
        fn pass(&self, bytes: u64) {
            self.0.lock().unwrap().push(bytes);
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "files")]
    fn accesses_take_time_for_the_bytes_that_were_moved() {
        let passed = Arc::new(PassedAccesses::default());
        let disk = Arc::new(Disk::new(tempfile::tempfile().unwrap()));
        let file = TimedStorage::new(disk, passed.clone());
        let mut bytes = [0; 10];
        assert_eq!(file.write_at(0, b"abcdef").unwrap(), 6);
        assert_eq!(file.read_at(2, &mut bytes).unwrap(), 4);
        assert_eq!((&bytes[..4], file.length().unwrap()), (&b"cdef"[..], 6));
        file.sync().unwrap();
        assert_eq!(*passed.0.lock().unwrap(), [0, 6, 4, 0]);
    }
}
