//! What files need of the system, and how whole ranges are moved whatever the system does with one call.

mod between_hosts;
pub mod company;
pub mod disk;
pub mod faulty;

use crate::failure::{Act, Failure};
use crate::found::Found;
use company::Company;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::{Mutex, MutexGuard};

/// An open file: as much of it as the layers above need. Threads use it at once.
pub trait Storage: Send + Sync {
    /// Reads at most `to.len()` bytes at `offset`; 0 at the end of the file.
    fn read_at(&self, offset: u64, to: &mut [u8]) -> io::Result<usize>;

    /// Writes at most `from.len()` bytes at `offset`.
    fn write_at(&self, offset: u64, from: &[u8]) -> io::Result<usize>;

    /// Length in bytes.
    fn length(&self) -> io::Result<u64>;

    /// Cuts off, or adds zeros.
    fn set_length(&self, length: u64) -> io::Result<()>;

    /// Takes the space for `length` bytes from the beginning; the file is as long afterwards, at least.
    fn allocate(&self, length: u64) -> io::Result<()>;

    /// Brings what was written to the device.
    fn sync(&self) -> io::Result<()>;

    /// Waits for the bytes from `offset` on to be this file's alone (`alone`), or shared with those who read. Each opening
    /// of a file has its own locks, of this process or another.
    fn lock(&self, offset: u64, len: u64, alone: bool) -> io::Result<()>;

    /// Gives them back.
    fn unlock(&self, offset: u64, len: u64) -> io::Result<()>;

    /// Reports whether another opening has locked some of the `len` bytes from `offset` on.
    fn is_locked(&self, offset: u64, len: u64) -> io::Result<bool>;

    /// Drops the pages of it that the machine keeps, where nothing in them is still to be written.
    fn forget(&self);

    /// What kind of file system it lies on.
    fn kind(&self) -> disk::Kind;

    /// Bytes in which it is best read and written.
    fn block(&self) -> u64;

    /// What this process keeps of the opening.
    fn kept(&self) -> &Kept;

    /// The system's file that reads and writes go to as they are; none, where something else is done about them.
    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        None
    }
}

/// What a process keeps of a file that it has open.
#[derive(Default)]
pub struct Kept {
    /// Held by the thread that has a lock: the system does not tell threads with one opening apart.
    pub turn: Mutex<()>,
    /// What accesses were found to take: reads, and writes.
    pub found: [Found; 2],
    /// Knowledge of the file's other openings.
    pub company: Company,
    /// What was last moved with its gaps.
    buffer: Mutex<Vec<u8>>,
}

/// The most that is kept for the next access. In bytes.
const BUFFER: usize = 4 << 20;

impl Kept {
    /// Lends `f` the buffer, which has whatever it had; to two threads at once, a new one to one of them.
    pub fn with_buffer<T>(&self, f: impl FnOnce(&mut Vec<u8>) -> T) -> T {
        let place = || self.buffer.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let mut buffer = std::mem::take(&mut *place());
        let value = f(&mut buffer);
        if buffer.len() <= BUFFER {
            *place() = buffer;
        }
        value
    }
}

/// The first `len` bytes, which have whatever they had.
pub fn first_bytes(buffer: &mut Vec<u8>, len: usize) -> &mut [u8] {
    if buffer.len() < len {
        buffer.resize(len, 0);
    }
    &mut buffer[..len]
}

/// Writes all of `from`. Errors say where it stopped; what lies before is written.
pub fn write_whole(storage: &dyn Storage, offset: u64, from: &[u8]) -> Result<(), Failure> {
    let mut done = 0;
    while done < from.len() {
        match storage.write_at(offset + done as u64, &from[done..]) {
            // No file system should; else this would never end.
            Ok(0) => {
                let error = io::Error::from_raw_os_error(libc::EIO);
                return Err(failed(Act::Write, &error, offset, done, from.len()));
            }
            Ok(some) => done += some,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(failed(Act::Write, &error, offset, done, from.len())),
        }
    }
    Ok(())
}

/// Reads until `to` is full or the file ends; how many bytes came.
pub fn read_whole(storage: &dyn Storage, offset: u64, to: &mut [u8]) -> Result<usize, Failure> {
    let mut done = 0;
    while done < to.len() {
        match storage.read_at(offset + done as u64, &mut to[done..]) {
            Ok(0) => break,
            Ok(some) => done += some,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(failed(Act::Read, &error, offset, done, to.len())),
        }
    }
    Ok(done)
}

/// An access of `len` bytes at `offset` failed after `done` of them.
#[cold]
pub(crate) fn failed(act: Act, error: &io::Error, offset: u64, done: usize, len: usize) -> Failure {
    Failure::new(act, error, offset + done as u64, (len - done) as u64)
}

/// Who else may write between a read and a write of the same bytes, or while somebody does that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Guard {
    /// Nobody, or the caller has seen to it.
    Free,
    /// Other threads of this process.
    Threads,
    /// Other ranks, too.
    Ranks,
}

/// Does `work` on a range while no rank or thread writes gaps back there ([`with_gaps`]).
fn guarded<T>(
    storage: &dyn Storage,
    guard: Guard,
    range: (u64, u64),
    work: impl FnOnce() -> Result<T, Failure>,
) -> Result<T, Failure> {
    match guard {
        Guard::Free => work(),
        Guard::Threads => {
            let _turn = turn(storage);
            work()
        }
        Guard::Ranks => locked(storage, range, false, work),
    }
}

/// Does as `guarded`. If the file system has no locks, no rank writes gaps back, and the work needs no lock.
pub fn guarded_anyhow(
    storage: &dyn Storage,
    guard: Guard,
    range: (u64, u64),
    mut work: impl FnMut() -> Result<(), Failure>,
) -> Result<(), Failure> {
    match guarded(storage, guard, range, &mut work) {
        Err(failure) if failure.is_without_locks() => work(),
        done => done,
    }
}

/// Does `work`, which writes gaps of a range back, while no other writer is there. Returns `None` and does nothing if there may
/// be a writer that no lock keeps out.
pub fn with_gaps<T>(
    storage: &dyn Storage,
    guard: Guard,
    range: (u64, u64),
    work: impl FnOnce() -> Result<T, Failure>,
) -> Result<Option<T>, Failure> {
    let company = &storage.kept().company;
    // `Guard::Free` means that the caller already has the turn and the lock.
    let _turn = (guard != Guard::Free).then(|| turn(storage));
    let done = match guard {
        Guard::Free | Guard::Threads => company.alone(storage, work),
        Guard::Ranks => company.alone(storage, || hold(storage, range, true, work)),
    };
    match done {
        Err(failure) if failure.is_without_locks() => Ok(None),
        done => done,
    }
}

/// Does `work` while a range is locked.
pub fn locked<T>(
    storage: &dyn Storage,
    range: (u64, u64),
    alone: bool,
    work: impl FnOnce() -> Result<T, Failure>,
) -> Result<T, Failure> {
    let _turn = turn(storage);
    hold(storage, range, alone, work)
}

/// Takes the turn among the threads of this process.
fn turn(storage: &dyn Storage) -> MutexGuard<'_, ()> {
    storage.kept().turn.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Does as [`locked`], for the thread that has the turn.
fn hold<T>(
    storage: &dyn Storage,
    (offset, len): (u64, u64),
    alone: bool,
    work: impl FnOnce() -> Result<T, Failure>,
) -> Result<T, Failure> {
    loop {
        match storage.lock(offset, len, alone) {
            Ok(()) => break,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(Failure::new(Act::Lock, &error, offset, len)),
        }
    }
    let outcome = work();
    let freed = storage.unlock(offset, len);
    let value = outcome?;
    freed.map_err(|error| Failure::new(Act::Lock, &error, offset, len))?;
    Ok(value)
}
