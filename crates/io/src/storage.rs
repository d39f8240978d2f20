//! Interface to the system's files, and functions that move a complete range, even if a system call moves fewer bytes.

pub mod disk;
mod nfs_caching;
pub mod other_openings;
pub mod timed;

use crate::access_direction::AccessDirection;
use crate::access_memory::AccessMemory;
use crate::adaptive_cost::AdaptiveCost;
use crate::byte_range::ByteRange;
use crate::failure::{FileAction, FileFailure};
use other_openings::OtherOpenings;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::{Mutex, MutexGuard};

/// Kind of a lock on bytes of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockMode {
    /// Many openings can hold the lock.
    Shared,
    /// One opening holds the lock.
    Exclusive,
}

/// An open file of the system. Several threads may use it at the same time.
pub trait Storage: Send + Sync {
    /// Reads at most `to.len()` bytes at `offset`. Returns 0 at the end of the file.
    fn read_at(&self, offset: u64, to: &mut [u8]) -> io::Result<usize>;

    /// Writes at most `from.len()` bytes at `offset`.
    fn write_at(&self, offset: u64, from: &[u8]) -> io::Result<usize>;

    /// Returns the length in bytes.
    fn length(&self) -> io::Result<u64>;

    /// Truncates the file, or adds zeros.
    fn set_length(&self, length: u64) -> io::Result<()>;

    /// Allocates space for the first `length` bytes, and extends the file to this length if it is shorter.
    fn allocate(&self, length: u64) -> io::Result<()>;

    /// Brings written data to the device.
    fn sync(&self) -> io::Result<()>;

    /// Waits for a lock on `len` bytes from `offset` on. Each opening of a file has its own locks, also within a process.
    fn lock(&self, offset: u64, len: u64, mode: LockMode) -> io::Result<()>;

    /// Releases a lock.
    fn unlock(&self, offset: u64, len: u64) -> io::Result<()>;

    /// Reports whether another opening has locked some of the `len` bytes from `offset` on.
    fn is_locked(&self, offset: u64, len: u64) -> io::Result<bool>;

    /// Drops the file's clean pages from the page cache.
    fn drop_cached_pages(&self);

    /// Returns the kind of the file system.
    fn kind(&self) -> disk::FileSystemKind;

    /// Returns the preferred size of a read or write in bytes.
    fn preferred_size(&self) -> u64;

    /// Returns this process's state of the opening.
    fn state(&self) -> &OpenState;

    /// Returns the descriptor of the system's file, if the storage passes reads and writes to this file unchanged.
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// A process's state of an opening.
#[derive(Default)]
pub struct OpenState {
    /// Mutex that a thread holds while it has a lock of the system, because these locks do not exclude threads that use the same
    /// opening.
    pub turn: Mutex<()>,
    /// Measured costs of reads and writes.
    costs: [AdaptiveCost; 2],
    /// Knowledge of the file's other openings.
    pub other_openings: OtherOpenings,
    /// Buffer for data sieving.
    buffer: Mutex<Vec<u8>>,
}

/// Maximum size in bytes of a buffer that is kept for the next access.
const MAX_KEPT_BUFFER: usize = 4 << 20;

impl OpenState {
    /// Returns a state that ignores measured costs, because they are real times and not simulated times.
    pub fn without_measurements() -> OpenState {
        OpenState { costs: [AdaptiveCost::fixed(), AdaptiveCost::fixed()], ..OpenState::default() }
    }

    /// Returns the measured costs of independent accesses.
    pub fn adaptive_cost(&self, direction: AccessDirection) -> &AdaptiveCost {
        &self.costs[direction as usize]
    }

    /// Lends `f` the buffer with arbitrary content. If another thread uses the buffer, `f` gets a new buffer.
    pub fn with_buffer<T>(&self, f: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        let place = || self.buffer.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let mut buffer = std::mem::take(&mut *place());
        let value = f(&mut buffer);
        if buffer.len() <= MAX_KEPT_BUFFER {
            *place() = buffer;
        }
        value
    }
}

/// Returns the first `len` bytes of a buffer, with arbitrary content.
pub fn first_bytes(buffer: &mut Vec<u8>, len: usize) -> &mut [u8] {
    if buffer.len() < len {
        buffer.resize(len, 0);
    }
    &mut buffer[..len]
}

/// Writes all of `from`. If this fails, all bytes before the reported place have been written.
pub fn write_full(storage: &dyn Storage, offset: u64, from: &[u8]) -> Result<(), FileFailure> {
    let mut done = 0;
    while done < from.len() {
        match storage.write_at(offset + done as u64, &from[done..]) {
            // No file system should return 0. If a write returns 0 again and again, the loop would never end, so the write fails.
            Ok(0) => {
                let error = io::Error::from_raw_os_error(libc::EIO);
                return Err(access_failure(FileAction::Write, &error, offset, done, from.len()));
            }
            Ok(some) => done += some,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => {
                return Err(access_failure(FileAction::Write, &error, offset, done, from.len()));
            }
        }
    }
    Ok(())
}

/// Reads until `to` is full or the file ends. Returns the number of bytes read.
pub fn read_full(storage: &dyn Storage, offset: u64, to: &mut [u8]) -> Result<usize, FileFailure> {
    let mut done = 0;
    while done < to.len() {
        match storage.read_at(offset + done as u64, &mut to[done..]) {
            Ok(0) => break,
            Ok(some) => done += some,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => {
                return Err(access_failure(FileAction::Read, &error, offset, done, to.len()));
            }
        }
    }
    Ok(done)
}

/// Moves one piece of a file that needs no lock. Returns the number of bytes moved. A read stops at the end of the file.
#[inline]
pub fn move_piece(
    storage: &dyn Storage,
    direction: AccessDirection,
    at: u64,
    data: AccessMemory,
) -> Result<u64, FileFailure> {
    match direction {
        AccessDirection::Read => {
            data.write(|data| read_full(storage, at, data)).map(|bytes_read| bytes_read as u64)
        }
        AccessDirection::Write => {
            data.read(|data| write_full(storage, at, data)).map(|()| data.len() as u64)
        }
    }
}

/// Describes an access of `len` bytes at `offset` that failed after `done` bytes.
#[cold]
pub(crate) fn access_failure(
    act: FileAction,
    error: &io::Error,
    offset: u64,
    done: usize,
    len: usize,
) -> FileFailure {
    FileFailure::new(act, error, offset + done as u64, (len - done) as u64)
}

/// Writers of neighbouring bytes to guard against. Such a writer may read and write back gaps in which this rank's bytes lie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteGuard {
    /// No writers, because there are none or the caller excludes them.
    None,
    /// Other threads of this process.
    Threads,
    /// Other threads and other ranks.
    Ranks,
}

/// Does `work` on a range while no rank or thread writes gaps back there ([`with_exclusive_gaps`]). If the file system has no
/// locks, no rank writes gaps back, and `work` is done without a lock.
pub fn with_guard(
    storage: &dyn Storage,
    guard: WriteGuard,
    range: ByteRange,
    mut work: impl FnMut() -> Result<(), FileFailure>,
) -> Result<(), FileFailure> {
    match guard {
        WriteGuard::None => work(),
        WriteGuard::Threads => {
            let _turn = turn(storage);
            work()
        }
        WriteGuard::Ranks => match with_lock(storage, range, LockMode::Shared, &mut work) {
            Err(failure) if failure.is_without_locks() => work(),
            done => done,
        },
    }
}

/// Does `work`, which reads and writes back gaps of a range, while no other writer uses the range. Returns `None` and does nothing
/// if there may be a writer that no lock excludes.
pub fn with_exclusive_gaps<T>(
    storage: &dyn Storage,
    guard: WriteGuard,
    range: ByteRange,
    work: impl FnOnce() -> Result<T, FileFailure>,
) -> Result<Option<T>, FileFailure> {
    let others = &storage.state().other_openings;
    // `WriteGuard::None` means that the caller already has the turn and the lock.
    let _turn = (guard != WriteGuard::None).then(|| turn(storage));
    let done = match guard {
        WriteGuard::None | WriteGuard::Threads => others.exclude(storage, work),
        WriteGuard::Ranks => {
            others.exclude(storage, || hold(storage, range, LockMode::Exclusive, work))
        }
    };
    match done {
        Err(failure) if failure.is_without_locks() => Ok(None),
        done => done,
    }
}

/// Does `work` while a range is locked.
pub fn with_lock<T>(
    storage: &dyn Storage,
    range: ByteRange,
    mode: LockMode,
    work: impl FnOnce() -> Result<T, FileFailure>,
) -> Result<T, FileFailure> {
    let _turn = turn(storage);
    hold(storage, range, mode, work)
}

/// Takes the turn among the threads of this process.
fn turn(storage: &dyn Storage) -> MutexGuard<'_, ()> {
    storage.state().turn.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Does `work` while a range is locked, as [`with_lock`] does, for a thread that already has the turn.
fn hold<T>(
    storage: &dyn Storage,
    range: ByteRange,
    mode: LockMode,
    work: impl FnOnce() -> Result<T, FileFailure>,
) -> Result<T, FileFailure> {
    let failed = |error| FileFailure::new(FileAction::Lock, &error, range.first, range.len());
    lock_uninterrupted(storage, range, mode).map_err(failed)?;
    let outcome = work();
    let unlocked = storage.unlock(range.first, range.len());
    let value = outcome?;
    unlocked.map_err(failed)?;
    Ok(value)
}

/// Waits for a lock, and repeats the wait if a signal interrupts it.
fn lock_uninterrupted(storage: &dyn Storage, range: ByteRange, mode: LockMode) -> io::Result<()> {
    loop {
        match storage.lock(range.first, range.len(), mode) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}
