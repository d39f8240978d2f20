//! Storage that fails as planned, for tests: short reads and writes, interrupted calls, a full file system.

use std::io;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use weft_io::storage::disk::FileSystemKind;
use weft_io::storage::{LockMode, OpenState, Storage};

/// List of writes: first byte and length of each.
pub type WrittenPlaces = Vec<(u64, u64)>;

/// Faults of a storage.
#[derive(Debug, Clone, Default)]
pub struct FaultPlan {
    /// Maximum number of bytes that a call moves, or 0 for no maximum.
    pub most: usize,
    /// If this is n > 0, every nth call is interrupted before it does anything.
    pub interrupt: u64,
    /// Bytes whose writes fail, and the system's error number.
    pub writes: Option<(Range<u64>, i32)>,
    /// Bytes whose reads fail, and the system's error number.
    pub reads: Option<(Range<u64>, i32)>,
    /// The file system has no locks.
    pub no_locks: bool,
    /// The system's error number that each sync returns.
    pub sync: Option<i32>,
    /// List to which each write is added.
    pub written: Option<Arc<Mutex<WrittenPlaces>>>,
    /// Kind of file system that the storage claims to have; `None`: the real one.
    pub kind: Option<FileSystemKind>,
}

/// Storage with planned faults.
pub struct FaultyStorage<S> {
    inner: S,
    plan: FaultPlan,
    calls: AtomicU64,
}

impl<S: Storage> FaultyStorage<S> {
    /// Wraps `inner`, and fails as `plan` says.
    pub fn new(inner: S, plan: FaultPlan) -> FaultyStorage<S> {
        FaultyStorage { inner, plan, calls: AtomicU64::new(0) }
    }

    /// Returns how many of `len` bytes at `offset` a call moves.
    fn moves(&self, offset: u64, len: usize, bad: &Option<(Range<u64>, i32)>) -> io::Result<usize> {
        let call = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        if self.plan.interrupt > 0 && call.is_multiple_of(self.plan.interrupt) {
            return Err(io::Error::from_raw_os_error(libc::EINTR));
        }
        let most = if self.plan.most == 0 { len } else { len.min(self.plan.most) };
        match bad {
            Some((range, errno)) if range.contains(&offset) => {
                Err(io::Error::from_raw_os_error(*errno))
            }
            Some((range, _)) if offset < range.start => {
                Ok(most.min(usize::try_from(range.start - offset).unwrap_or(usize::MAX)))
            }
            _ => Ok(most),
        }
    }
}

impl<S: Storage> Storage for FaultyStorage<S> {
    fn read_at(&self, offset: u64, to: &mut [u8]) -> io::Result<usize> {
        let most = self.moves(offset, to.len(), &self.plan.reads)?;
        self.inner.read_at(offset, &mut to[..most])
    }

    fn write_at(&self, offset: u64, from: &[u8]) -> io::Result<usize> {
        let most = self.moves(offset, from.len(), &self.plan.writes)?;
        let done = self.inner.write_at(offset, &from[..most])?;
        if let Some(written) = &self.plan.written {
            let mut written = written.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            written.push((offset, done as u64));
        }
        Ok(done)
    }

    fn length(&self) -> io::Result<u64> {
        self.inner.length()
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        self.inner.set_length(length)
    }

    fn allocate(&self, length: u64) -> io::Result<()> {
        self.inner.allocate(length)
    }

    fn sync(&self) -> io::Result<()> {
        match self.plan.sync {
            Some(errno) => Err(io::Error::from_raw_os_error(errno)),
            None => self.inner.sync(),
        }
    }

    fn lock(&self, offset: u64, len: u64, mode: LockMode) -> io::Result<()> {
        if self.plan.no_locks {
            return Err(io::Error::from_raw_os_error(libc::ENOLCK));
        }
        self.inner.lock(offset, len, mode)
    }

    fn unlock(&self, offset: u64, len: u64) -> io::Result<()> {
        self.inner.unlock(offset, len)
    }

    fn is_locked(&self, offset: u64, len: u64) -> io::Result<bool> {
        if self.plan.no_locks {
            return Err(io::Error::from_raw_os_error(libc::ENOLCK));
        }
        self.inner.is_locked(offset, len)
    }

    fn drop_cached_pages(&self) {
        self.inner.drop_cached_pages();
    }

    fn kind(&self) -> FileSystemKind {
        self.plan.kind.unwrap_or_else(|| self.inner.kind())
    }

    fn preferred_size(&self) -> u64 {
        self.inner.preferred_size()
    }

    fn state(&self) -> &OpenState {
        self.inner.state()
    }
}
