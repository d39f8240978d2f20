//! Pieces of files that the kernel moves by itself, all at once: io_uring(7). No thread of the process sleeps in a call for each.
//!
//! ```text
//!   program's thread   puts an entry into the ring, which is one call of the system, and goes on
//!   kernel             moves the bytes
//!   weft-io-ring       sleeps until entries are over; asks for what is left of a piece; tells who waits
//! ```
//! Containers often forbid it. There, and for what is more than one piece, are the threads of `pool`.

use crate::bytes::Memory;
use crate::core::{Direction, move_piece};
use crate::failure::{Act, Failure};
use crate::storage::{Storage, failed};
use io_uring::{EnterFlags, IoUring, Probe, opcode, squeue, types::Fd};
use slab::Slab;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::thread::JoinHandle;
use std::time::Duration;
use weft_bootstrap::calls::start_thread;

/// Pieces under way, at most.
const ENTRIES: u32 = 64;

/// Bytes that one entry moves at most: what a call moves is less than 2 GiB, and an entry's length has 32 bits.
const MOST: usize = 1 << 30;

/// The number of the entry that ends the thread. Pieces have those of their places in a list.
const OVER: u64 = u64::MAX;

/// One piece of a file to be read or written, under no lock.
pub struct Piece {
    /// The file.
    pub storage: Arc<dyn Storage>,
    /// Which way.
    pub direction: Direction,
    /// Its first byte in the file.
    pub offset: u64,
    /// Its memory, some bytes, which whoever waits for the piece keeps until then.
    pub data: Memory,
}

impl Piece {
    /// Moves what is left after `done` bytes by calls; how many bytes were moved altogether.
    pub fn move_rest(&self, done: usize) -> Result<u64, Failure> {
        let (at, rest) = (self.offset + done as u64, self.data.part(done, self.data.len() - done));
        let moved = move_piece(&*self.storage, self.direction, at, rest)?;
        Ok(done as u64 + moved)
    }
}

/// What is told of a piece's end: bytes that were moved, of a read those before the end of the file.
pub type Told = Box<dyn FnOnce(Result<u64, Failure>) + Send>;

/// A piece under way.
struct Moving {
    piece: Piece,
    done: usize,
    told: Told,
}

impl Moving {
    /// An entry for what is left. None: the storage is no file of the system.
    fn entry(&self, number: usize, most: usize) -> Option<squeue::Entry> {
        let Piece { storage, direction, offset, data } = &self.piece;
        let fd = Fd(storage.descriptor()?.as_raw_fd());
        let (at, rest) = (offset + self.done as u64, data.part(self.done, data.len() - self.done));
        let len = rest.len().min(most) as u32;
        let entry = match direction {
            Direction::Read => opcode::Read::new(fd, rest.ptr(), len).offset(at).build(),
            Direction::Write => opcode::Write::new(fd, rest.ptr(), len).offset(at).build(),
        };
        // Else what a page cache has would be copied here and now, while the program waits.
        Some(entry.flags(squeue::Flags::ASYNC).user_data(number as u64))
    }

    /// An entry ended with `result`, as calls of the system do. None: there is more to be moved.
    fn outcome(&mut self, result: i32) -> Option<Result<u64, Failure>> {
        let Piece { direction, offset, data, .. } = &self.piece;
        let act = match direction {
            Direction::Read => Act::Read,
            Direction::Write => Act::Write,
        };
        let all = data.len();
        let fails = |errno, done| {
            let error = io::Error::from_raw_os_error(errno);
            Some(Err(failed(act, &error, *offset, done, all)))
        };
        match (result, direction) {
            // Entries of a thread that ends are cancelled: whoever asks next, goes on.
            (result, _) if [libc::EINTR, libc::EAGAIN, libc::ECANCELED].contains(&-result) => None,
            (result, _) if result < 0 => fails(-result, self.done),
            // No file system should; else this would never end.
            (0, Direction::Write) => fails(libc::EIO, self.done),
            (0, Direction::Read) => Some(Ok(self.done as u64)),
            (some, _) => {
                self.done += some as usize;
                (self.done >= all).then_some(Ok(self.done as u64))
            }
        }
    }
}

/// What the program's threads and the ring's have in common.
struct Shared {
    ring: IoUring,
    /// Also held by whoever puts entries into the ring.
    moving: Mutex<Slab<Moving>>,
    /// The kernel took no entry: none is given to it any more.
    broken: AtomicBool,
    /// Bytes of an entry, at most.
    most: usize,
    /// Called after pieces were told of.
    after: Box<dyn Fn() + Send + Sync>,
}

/// The ring of one process.
pub struct Ring {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// Whether this system lets a process have one; else why not.
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

impl Ring {
    /// One whose thread calls `after` when it has told of pieces. Errors: the system's, which may forbid it.
    pub fn new(after: impl Fn() + Send + Sync + 'static) -> io::Result<Ring> {
        Ring::with_entries(MOST, Box::new(after))
    }

    /// Its entries move at most `most` bytes.
    fn with_entries(most: usize, after: Box<dyn Fn() + Send + Sync>) -> io::Result<Ring> {
        let (moving, broken) = (Mutex::default(), AtomicBool::new(false));
        let shared = Arc::new(Shared { ring: open()?, moving, broken, most, after });
        let theirs = shared.clone();
        let thread = start_thread("weft-io-ring", move || theirs.reap())?;
        Ok(Ring { shared, thread: Some(thread) })
    }

    /// Has the kernel move a piece, and tells of its end from another thread. Gives both back where it cannot: too many are under
    /// way, or the storage is no file of the system.
    pub fn start(&self, piece: Piece, told: Told) -> Result<(), (Piece, Told)> {
        let shared = &*self.shared;
        let mut moving = shared.lock();
        let one = Moving { piece, done: 0, told };
        if moving.len() >= ENTRIES as usize {
            return Err((one.piece, one.told));
        }
        let number = moving.insert(one);
        if shared.ask(&moving, number) {
            return Ok(());
        }
        let Moving { piece, told, .. } = moving.remove(number);
        Err((piece, told))
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Slab<Moving>> {
        self.moving.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Puts an entry for what is left of a piece into the ring; whether the kernel has it.
    fn ask(&self, moving: &MutexGuard<'_, Slab<Moving>>, number: usize) -> bool {
        let entry = moving.get(number).and_then(|one| one.entry(number, self.most));
        entry.is_some_and(|entry| self.submit(moving, &entry))
    }

    fn submit(&self, _lock: &MutexGuard<'_, Slab<Moving>>, entry: &squeue::Entry) -> bool {
        if self.broken.load(Ordering::Relaxed) {
            return false;
        }
        // SAFETY: whoever holds the lock is alone with this queue. The entry's memory and descriptor are a piece's in the list, which
        // stays there until the kernel has told of the entry's end.
        let mut queue = unsafe { self.ring.submission_shared() };
        // SAFETY: as before.
        let pushed = unsafe { queue.push(entry) };
        drop(queue);
        let asked = pushed.map_err(|_| io::Error::from_raw_os_error(libc::ENOSPC)).and_then(|()| {
            loop {
                match self.ring.submit() {
                    Ok(_) => return Ok(()),
                    // It has no memory now. Ends always have room: there are fewer pieces than places for them.
                    Err(error) if is_passing(&error) => std::thread::sleep(PAUSE),
                    Err(error) => return Err(error),
                }
            }
        });
        // An entry that lies there is never taken: nobody submits any more.
        self.broken.fetch_or(asked.is_err(), Ordering::Relaxed);
        asked.is_ok()
    }

    /// The ring's thread: waits for ends, until it is told to end and nothing is under way.
    fn reap(&self) {
        let mut is_over = false;
        let mut ends = Vec::new();
        loop {
            // SAFETY: this thread alone has that queue.
            let queue = unsafe { self.ring.completion_shared() };
            ends.extend(queue.map(|end| (end.user_data(), end.result())));
            if ends.is_empty() {
                if is_over && self.lock().is_empty() {
                    return;
                }
                self.sleep();
                continue;
            }
            for (number, result) in ends.drain(..) {
                match number {
                    OVER => is_over = true,
                    number => self.ended(number as usize, result),
                }
            }
            (self.after)();
        }
    }

    fn sleep(&self) {
        // SAFETY: no argument that the system would read.
        let slept = unsafe {
            let flags = EnterFlags::GETEVENTS.bits();
            self.ring.submitter().enter::<libc::sigset_t>(0, 1, flags, None)
        };
        if slept.is_err_and(|error| error.kind() != io::ErrorKind::Interrupted) {
            std::thread::sleep(PAUSE);
        }
    }

    fn ended(&self, number: usize, result: i32) {
        let mut moving = self.lock();
        let Some(one) = moving.get_mut(number) else { return };
        let outcome = one.outcome(result);
        if outcome.is_none() && self.ask(&moving, number) {
            return;
        }
        let Moving { piece, done, told } = moving.remove(number);
        drop(moving);
        let outcome = outcome.unwrap_or_else(|| piece.move_rest(done));
        // Who hears of it may close the file.
        drop(piece);
        told(outcome);
    }
}

/// From one try to the next, where the system has not what it needs.
const PAUSE: Duration = Duration::from_micros(50);

fn is_passing(error: &io::Error) -> bool {
    let passing = [libc::EINTR, libc::EAGAIN, libc::EBUSY, libc::ENOMEM];
    error.raw_os_error().is_some_and(|errno| passing.contains(&errno))
}

impl Drop for Ring {
    fn drop(&mut self) {
        let over = opcode::Nop::new().build().user_data(OVER);
        let ends = self.shared.submit(&self.shared.lock(), &over);
        // A thread that cannot be told goes with the process.
        if let Some(thread) = self.thread.take().filter(|_| ends) {
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

    /// Of entries of at most `most` bytes.
    fn ring(most: usize) -> Option<Ring> {
        if let Err(error) = available() {
            println!("NOT RUN: the system allows no io_uring: {error}");
            return None;
        }
        Some(Ring::with_entries(most, Box::new(|| {})).expect("allowed"))
    }

    type End = Receiver<Result<u64, Failure>>;

    /// A piece of `file`; what there was no room for is moved by calls, as a pool does it.
    fn start(
        ring: &Ring,
        file: &Arc<dyn Storage>,
        (direction, offset): (Direction, u64),
        data: &Staging,
    ) -> (End, bool) {
        let (tell, end) = channel();
        let piece = Piece { storage: file.clone(), direction, offset, data: data.sge().into() };
        let told = Box::new(move |outcome| tell.send(outcome).expect("somebody waits"));
        match ring.start(piece, told) {
            Ok(()) => (end, true),
            Err((piece, told)) => {
                told(piece.move_rest(0));
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
    fn pieces_at_once_and_in_parts_are_all_moved() {
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
        for direction in [Direction::Write, Direction::Read] {
            let begin = |(at, data): &(usize, Staging)| {
                if direction == Direction::Read {
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
        for (at, come) in [(50, 50), (70, 30), (99, 1), (100, 0), (1 << 40, 0)] {
            let (end, _) = start(&ring, &file, (Direction::Read, at), &data);
            assert_eq!(end.recv().unwrap(), Ok(come));
        }
    }

    #[test]
    fn errors_say_where() {
        let Some(ring) = ring(MOST) else { return };
        let pool = StagingPool::default();
        let full: Arc<dyn Storage> =
            Arc::new(Disk::new(File::options().write(true).open("/dev/full").unwrap()));
        let data = filled(&pool, &[1; 50]);
        let (end, by_ring) = start(&ring, &full, (Direction::Write, 10), &data);
        let failure = end.recv().unwrap().expect_err("full");
        assert_eq!((failure.errno, failure.offset, failure.len), (libc::ENOSPC, 10, 50));
        assert!(by_ring);
        let (end, _) = start(&ring, &full, (Direction::Read, 10), &data);
        assert_eq!(end.recv().unwrap().expect_err("not to be read").errno, libc::EBADF);
    }

    #[test]
    fn ends_are_understood_as_those_of_calls() {
        let pool = StagingPool::default();
        let data = filled(&pool, &[0; 100]);
        let moving = |direction| {
            let piece = Piece { storage: file(), direction, offset: 1000, data: data.sge().into() };
            Moving { piece, done: 0, told: Box::new(|_| ()) }
        };
        let mut write = moving(Direction::Write);
        assert_eq!(write.outcome(30), None);
        for again in [libc::EINTR, libc::EAGAIN, libc::ECANCELED] {
            assert_eq!(write.outcome(-again), None);
        }
        let failure = write.outcome(-libc::EDQUOT).unwrap().expect_err("a quota");
        assert_eq!((failure.errno, failure.offset, failure.len), (libc::EDQUOT, 1030, 70));
        assert_eq!(write.outcome(0).unwrap().expect_err("for ever").errno, libc::EIO);
        assert_eq!(write.outcome(70), Some(Ok(100)));
        let mut read = moving(Direction::Read);
        assert_eq!((read.outcome(30), read.outcome(0)), (None, Some(Ok(30))));
    }

    #[test]
    fn what_the_ring_does_not_take_comes_back() {
        let Some(ring) = ring(MOST) else { return };
        let (pool, file) = (StagingPool::default(), file());
        let data = filled(&pool, &[3; 10]);
        let plan = crate::storage::faulty::Plan::default();
        let other =
            crate::storage::faulty::Faulty::new(Disk::new(tempfile::tempfile().unwrap()), plan);
        let other: Arc<dyn Storage> = Arc::new(other);
        let (end, by_ring) = start(&ring, &other, (Direction::Write, 0), &data);
        assert_eq!((end.recv().unwrap(), by_ring), (Ok(10), false), "no file of the system");
        ring.shared.broken.store(true, Ordering::Relaxed);
        let (end, by_ring) = start(&ring, &file, (Direction::Write, 0), &data);
        assert_eq!((end.recv().unwrap(), by_ring), (Ok(10), false), "the kernel takes none");
        ring.shared.broken.store(false, Ordering::Relaxed);
    }

    #[test]
    fn the_end_of_a_ring_waits_for_pieces() {
        let Some(ring) = ring(4096) else { return };
        let (pool, file) = (StagingPool::default(), file());
        let data = filled(&pool, &vec![5; 1 << 20]);
        let (end, _) = start(&ring, &file, (Direction::Write, 0), &data);
        drop(ring);
        assert_eq!(end.try_recv().expect("told before"), Ok(1 << 20));
        assert_eq!(file.length().unwrap(), 1 << 20);
    }
}
