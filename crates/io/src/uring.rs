//! Pieces of files that the kernel moves in the background by io_uring(7). So no thread has to sleep in a system call for each
//! piece.
//!
//! ```text
//!   program's thread   puts an entry into the ring by one system call, and goes on
//!   kernel             moves the bytes
//!   weft-io-ring       sleeps until entries complete; submits the rest of an incomplete piece; reports the end of a piece
//! ```
//! Containers often forbid io_uring. In this case, and for accesses of several pieces, the threads of `thread_pool` move the bytes.

use crate::access_direction::AccessDirection;
use crate::access_memory::AccessMemory;
use crate::failure::{FileAction, FileFailure};
use crate::storage::{Storage, access_failure, move_piece};
use io_uring::{EnterFlags, IoUring, Probe, opcode, squeue, types::Fd};
use slab::Slab;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;
use weft_bootstrap::calls::start_thread;

/// Maximum number of pieces in the ring.
const ENTRIES: u32 = 64;

/// Maximum number of bytes that one entry moves. A system call moves less than 2 GiB, and an entry's length has 32 bits.
const MAX_BYTES: usize = 1 << 30;

/// Number of the entry that stops the thread. Entries of pieces have the pieces' indices.
const STOP: u64 = u64::MAX;

/// One piece of a file to be read or written without a lock.
pub struct FilePiece {
    /// The file.
    pub storage: Arc<dyn Storage>,
    /// Direction of the data.
    pub direction: AccessDirection,
    /// First byte in the file.
    pub offset: u64,
    /// Memory of the piece, at least one byte. The owner of the memory keeps it until the piece is complete.
    pub data: AccessMemory,
}

impl FilePiece {
    /// Moves the rest of the piece after `done` bytes by system calls. Returns the number of bytes of the piece that were moved.
    pub fn move_rest(&self, done: usize) -> Result<u64, FileFailure> {
        let (at, rest) = (self.offset + done as u64, self.data.part(done, self.data.len() - done));
        let moved = move_piece(&*self.storage, self.direction, at, rest)?;
        Ok(done as u64 + moved)
    }
}

/// Function that receives the result of a piece: the number of bytes moved. A read stops at the end of the file.
pub type OnComplete = Box<dyn FnOnce(Result<u64, FileFailure>) + Send>;

/// A piece that the kernel moves.
struct ActivePiece {
    piece: FilePiece,
    /// Number of bytes moved so far.
    done: usize,
    on_complete: OnComplete,
}

impl ActivePiece {
    /// Creates an entry for the rest of the piece. Returns `None` if the storage is not a file of the system.
    fn entry(&self, number: usize, max_bytes: usize) -> Option<squeue::Entry> {
        let FilePiece { storage, direction, offset, data } = &self.piece;
        let fd = Fd(storage.descriptor()?.as_raw_fd());
        let (at, rest) = (offset + self.done as u64, data.part(self.done, data.len() - self.done));
        let len = rest.len().min(max_bytes) as u32;
        let entry = match direction {
            AccessDirection::Read => opcode::Read::new(fd, rest.ptr(), len).offset(at).build(),
            AccessDirection::Write => opcode::Write::new(fd, rest.ptr(), len).offset(at).build(),
        };
        // Without this flag the kernel copies to or from the page cache within the submitting system call, in which the program
        // waits.
        Some(entry.flags(squeue::Flags::ASYNC).user_data(number as u64))
    }

    /// Takes the result of an entry. Returns the piece's result, or `None` if there is more to move.
    fn outcome(&mut self, result: i32) -> Option<Result<u64, FileFailure>> {
        let FilePiece { direction, offset, data, .. } = &self.piece;
        let act = match direction {
            AccessDirection::Read => FileAction::Read,
            AccessDirection::Write => FileAction::Write,
        };
        let all = data.len();
        let fails = |errno, done| {
            let error = io::Error::from_raw_os_error(errno);
            Some(Err(access_failure(act, &error, *offset, done, all)))
        };
        match (result, direction) {
            // When a thread ends, the kernel cancels the entries that it submitted. The ring's thread submits them again.
            (result, _) if [libc::EINTR, libc::EAGAIN, libc::ECANCELED].contains(&-result) => None,
            (result, _) if result < 0 => fails(-result, self.done),
            // No file system should return 0. If a write returned 0 again and again, the piece would never be complete, so the
            // piece fails.
            (0, AccessDirection::Write) => fails(libc::EIO, self.done),
            (0, AccessDirection::Read) => Some(Ok(self.done as u64)),
            (some, _) => {
                self.done += some as usize;
                (self.done >= all).then_some(Ok(self.done as u64))
            }
        }
    }
}

/// State that the program's threads and the ring's thread share.
struct RingState {
    ring: IoUring,
    /// Pieces that the kernel moves. The lock is also held to put entries into the ring.
    active: Mutex<Slab<ActivePiece>>,
    /// True if the kernel has refused an entry. Then no further entry is submitted.
    broken: AtomicBool,
    /// Maximum number of bytes of an entry.
    max_bytes: usize,
    /// Function that is called after results of pieces were reported.
    after: Box<dyn Fn() + Send + Sync>,
}

/// The ring of one process.
pub struct KernelRing {
    state: Arc<RingState>,
    thread: Option<JoinHandle<()>>,
}

/// Checks that the system permits io_uring.
pub fn available() -> io::Result<()> {
    open().map(drop)
}

fn open() -> io::Result<IoUring> {
    let ring = IoUring::builder().dontfork().build(ENTRIES)?;
    let mut probe = Probe::new();
    ring.submitter().register_probe(&mut probe)?;
    let wanted = [opcode::Read::CODE, opcode::Write::CODE, opcode::Nop::CODE];
    match wanted.iter().all(|&code| probe.is_supported(code)) {
        true => Ok(ring),
        false => Err(io::Error::from_raw_os_error(libc::EOPNOTSUPP)),
    }
}

impl KernelRing {
    /// Creates a ring. Its thread calls `after` whenever the thread has reported results. Errors: the system forbids io_uring.
    pub fn new(after: impl Fn() + Send + Sync + 'static) -> io::Result<KernelRing> {
        KernelRing::with_entries(MAX_BYTES, Box::new(after))
    }

    /// Creates a ring whose entries move at most `max_bytes` bytes.
    fn with_entries(
        max_bytes: usize,
        after: Box<dyn Fn() + Send + Sync>,
    ) -> io::Result<KernelRing> {
        let (active, broken) = (Mutex::default(), AtomicBool::new(false));
        let state = Arc::new(RingState { ring: open()?, active, broken, max_bytes, after });
        let theirs = state.clone();
        let thread = start_thread("weft-io-ring", move || theirs.reap())?;
        Ok(KernelRing { state, thread: Some(thread) })
    }

    /// Gives a piece to the kernel. The ring's thread later calls `on_complete` with the result. Returns both arguments if the ring
    /// is full, or if the storage is not a file of the system.
    pub fn start(
        &self,
        piece: FilePiece,
        on_complete: OnComplete,
    ) -> Result<(), (FilePiece, OnComplete)> {
        let state = &*self.state;
        let mut active = state.lock();
        if active.len() >= ENTRIES as usize {
            return Err((piece, on_complete));
        }
        let number = active.insert(ActivePiece { piece, done: 0, on_complete });
        if state.submit_rest(&active, number) {
            return Ok(());
        }
        let ActivePiece { piece, on_complete, .. } = active.remove(number);
        Err((piece, on_complete))
    }
}

impl RingState {
    fn lock(&self) -> MutexGuard<'_, Slab<ActivePiece>> {
        self.active.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Submits an entry for the rest of a piece. Returns true if the kernel has taken the entry.
    fn submit_rest(&self, active: &MutexGuard<'_, Slab<ActivePiece>>, number: usize) -> bool {
        let entry = active.get(number).and_then(|piece| piece.entry(number, self.max_bytes));
        entry.is_some_and(|entry| self.submit(active, &entry))
    }

    fn submit(&self, _lock: &MutexGuard<'_, Slab<ActivePiece>>, entry: &squeue::Entry) -> bool {
        if self.broken.load(Ordering::Relaxed) {
            return false;
        }
        // SAFETY: only the holder of the lock uses the submission queue.
        let mut queue = unsafe { self.ring.submission_shared() };
        // SAFETY: the entry's memory and descriptor belong to a piece in the list, which keeps them until the kernel has
        // completed the entry.
        let pushed = unsafe { queue.push(entry) };
        drop(queue);
        let pushed = pushed.map_err(|_| io::Error::from_raw_os_error(libc::ENOSPC));
        let submitted = pushed.and_then(|()| {
            loop {
                match self.ring.submit() {
                    Ok(_) => return Ok(()),
                    // The kernel lacks memory at the moment. The completion queue is not full, because it has a place for every
                    // piece.
                    Err(error) if is_transient(&error) => std::thread::sleep(PAUSE),
                    Err(error) => return Err(error),
                }
            }
        });
        // A refused entry stays in the queue. The kernel never takes it, because nothing is submitted any more.
        self.broken.fetch_or(submitted.is_err(), Ordering::Relaxed);
        submitted.is_ok()
    }

    /// Runs the ring's thread: takes completions until the ring is stopped and no piece is active.
    fn reap(&self) {
        let mut stopped = false;
        let mut completions = Vec::new();
        loop {
            // SAFETY: only this thread uses the completion queue.
            let queue = unsafe { self.ring.completion_shared() };
            completions.extend(queue.map(|entry| (entry.user_data(), entry.result())));
            if completions.is_empty() {
                if stopped && self.lock().is_empty() {
                    return;
                }
                self.sleep();
                continue;
            }
            for (number, result) in completions.drain(..) {
                match number {
                    STOP => stopped = true,
                    number => self.complete(number as usize, result),
                }
            }
            (self.after)();
        }
    }

    /// Sleeps until there is a completion.
    fn sleep(&self) {
        // SAFETY: without an argument the kernel reads no memory of the caller (io_uring_enter(2)).
        let slept = unsafe {
            let flags = EnterFlags::GETEVENTS.bits();
            self.ring.submitter().enter::<libc::sigset_t>(0, 1, flags, None)
        };
        if slept.is_err_and(|error| error.kind() != io::ErrorKind::Interrupted) {
            std::thread::sleep(PAUSE);
        }
    }

    /// Takes the result of an entry.
    fn complete(&self, number: usize, result: i32) {
        let mut active = self.lock();
        let Some(piece) = active.get_mut(number) else { return };
        let outcome = piece.outcome(result);
        if outcome.is_none() && self.submit_rest(&active, number) {
            return;
        }
        let ActivePiece { piece, done, on_complete } = active.remove(number);
        drop(active);
        let outcome = outcome.unwrap_or_else(|| piece.move_rest(done));
        // After the report the file may be closed, so the piece must not hold its storage.
        drop(piece);
        on_complete(outcome);
    }
}

/// Time between two tries while the system lacks resources.
const PAUSE: Duration = Duration::from_micros(50);

fn is_transient(error: &io::Error) -> bool {
    let transient = [libc::EINTR, libc::EAGAIN, libc::EBUSY, libc::ENOMEM];
    error.raw_os_error().is_some_and(|errno| transient.contains(&errno))
}

impl Drop for KernelRing {
    fn drop(&mut self) {
        let stop = opcode::Nop::new().build().user_data(STOP);
        let submitted = self.state.submit(&self.state.lock(), &stop);
        // A thread that cannot be stopped ends with the process.
        if let Some(thread) = self.thread.take().filter(|_| submitted) {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::disk::Disk;
    use std::fs::File;
    use std::sync::mpsc::{Receiver, channel};
    use weft_fabric::{Staging, StagingPool};

    /// Creates a ring with entries of at most `most` bytes, if the system permits rings.
    fn ring(most: usize) -> Option<KernelRing> {
        if let Err(error) = available() {
            println!("NOT RUN: the system allows no io_uring: {error}");
            return None;
        }
        Some(KernelRing::with_entries(most, Box::new(|| {})).expect("allowed"))
    }

    type End = Receiver<Result<u64, FileFailure>>;

    /// Starts to move a piece of `file`. A piece that the ring does not take is moved by system calls, as in the pool.
    fn start(
        ring: &KernelRing,
        file: &Arc<dyn Storage>,
        (direction, offset): (AccessDirection, u64),
        data: &Staging,
    ) -> (End, bool) {
        let (sender, end) = channel();
        let piece = FilePiece { storage: file.clone(), direction, offset, data: data.sge().into() };
        let on_complete = Box::new(move |outcome| sender.send(outcome).expect("the test waits"));
        match ring.start(piece, on_complete) {
            Ok(()) => (end, true),
            Err((piece, on_complete)) => {
                on_complete(piece.move_rest(0));
                (end, false)
            }
        }
    }

    fn file() -> Arc<dyn Storage> {
        Arc::new(Disk::new(tempfile::tempfile().unwrap()))
    }

    fn filled(pool: &StagingPool, bytes: &[u8]) -> Staging {
        let memory = pool.take(bytes.len());
        memory.sge().fill(bytes);
        memory
    }

    #[test]
    fn concurrent_and_partial_pieces_are_moved() {
        let Some(ring) = ring(7) else { return };
        let (pool, file, mut rng) = (StagingPool::default(), file(), fastrand::Rng::with_seed(5));
        let lens: Vec<usize> = (0..3 * ENTRIES as usize).map(|_| rng.usize(1..50)).collect();
        let all: Vec<u8> = (0..lens.iter().sum()).map(|_| rng.u8(..)).collect();
        let mut at = 0;
        let mut pieces = Vec::new();
        for &len in &lens {
            pieces.push((at, filled(&pool, &all[at..at + len])));
            at += len;
        }
        for direction in [AccessDirection::Write, AccessDirection::Read] {
            let begin = |(at, data): &(usize, Staging)| {
                if direction == AccessDirection::Read {
                    data.sge().fill(&vec![0; data.len()]);
                }
                start(&ring, &file, (direction, *at as u64), data)
            };
            let begun: Vec<_> = pieces.iter().map(begin).collect();
            assert!(begun.iter().any(|(_, by_ring)| *by_ring), "none by the ring");
            for ((end, _), &len) in begun.iter().zip(&lens) {
                assert_eq!(end.recv().unwrap(), Ok(len as u64), "{direction:?}");
            }
        }
        for (at, data) in &pieces {
            let mut found = vec![0; data.len()];
            data.sge().read(&mut found);
            assert_eq!(found, all[*at..at + found.len()]);
        }
    }

    #[test]
    fn a_read_ends_with_the_file() {
        let Some(ring) = ring(7) else { return };
        let (pool, file) = (StagingPool::default(), file());
        file.write_at(0, &[9; 100]).unwrap();
        let data = filled(&pool, &[1; 50]);
        for (at, bytes_read) in [(50, 50), (70, 30), (99, 1), (100, 0), (1 << 40, 0)] {
            let (end, _) = start(&ring, &file, (AccessDirection::Read, at), &data);
            assert_eq!(end.recv().unwrap(), Ok(bytes_read));
        }
    }

    #[test]
    fn errors_name_their_place() {
        let Some(ring) = ring(MAX_BYTES) else { return };
        let pool = StagingPool::default();
        let full: Arc<dyn Storage> =
            Arc::new(Disk::new(File::options().write(true).open("/dev/full").unwrap()));
        let data = filled(&pool, &[1; 50]);
        let (end, by_ring) = start(&ring, &full, (AccessDirection::Write, 10), &data);
        let failure = end.recv().unwrap().expect_err("full");
        assert_eq!((failure.errno, failure.offset, failure.len), (libc::ENOSPC, 10, 50));
        assert!(by_ring);
        let (end, _) = start(&ring, &full, (AccessDirection::Read, 10), &data);
        assert_eq!(end.recv().unwrap().expect_err("not to be read").errno, libc::EBADF);
    }

    #[test]
    fn results_of_entries_are_interpreted_as_of_calls() {
        let pool = StagingPool::default();
        let data = filled(&pool, &[0; 100]);
        let moving = |direction| {
            let piece =
                FilePiece { storage: file(), direction, offset: 1000, data: data.sge().into() };
            ActivePiece { piece, done: 0, on_complete: Box::new(|_| ()) }
        };
        let mut write = moving(AccessDirection::Write);
        assert_eq!(write.outcome(30), None);
        for again in [libc::EINTR, libc::EAGAIN, libc::ECANCELED] {
            assert_eq!(write.outcome(-again), None);
        }
        let failure = write.outcome(-libc::EDQUOT).unwrap().expect_err("a quota");
        assert_eq!((failure.errno, failure.offset, failure.len), (libc::EDQUOT, 1030, 70));
        assert_eq!(write.outcome(0).unwrap().expect_err("for ever").errno, libc::EIO);
        assert_eq!(write.outcome(70), Some(Ok(100)));
        let mut read = moving(AccessDirection::Read);
        assert_eq!((read.outcome(30), read.outcome(0)), (None, Some(Ok(30))));
    }

    #[test]
    fn refused_pieces_are_returned() {
        let Some(ring) = ring(MAX_BYTES) else { return };
        let (pool, file) = (StagingPool::default(), file());
        let data = filled(&pool, &[3; 10]);
        let plan = crate::faulty::FaultPlan::default();
        let other =
            crate::faulty::FaultyStorage::new(Disk::new(tempfile::tempfile().unwrap()), plan);
        let other: Arc<dyn Storage> = Arc::new(other);
        let (end, by_ring) = start(&ring, &other, (AccessDirection::Write, 0), &data);
        assert_eq!((end.recv().unwrap(), by_ring), (Ok(10), false), "no file of the system");
        ring.state.broken.store(true, Ordering::Relaxed);
        let (end, by_ring) = start(&ring, &file, (AccessDirection::Write, 0), &data);
        assert_eq!((end.recv().unwrap(), by_ring), (Ok(10), false), "the kernel takes none");
        ring.state.broken.store(false, Ordering::Relaxed);
    }

    #[test]
    fn dropping_a_ring_waits_for_pieces() {
        let Some(ring) = ring(4096) else { return };
        let (pool, file) = (StagingPool::default(), file());
        let data = filled(&pool, &vec![5; 1 << 20]);
        let (end, _) = start(&ring, &file, (AccessDirection::Write, 0), &data);
        drop(ring);
        assert_eq!(end.try_recv().expect("reported before"), Ok(1 << 20));
        assert_eq!(file.length().unwrap(), 1 << 20);
    }
}
