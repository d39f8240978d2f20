//! The waits of each process, for the hang report that `mpiexec` prints on SIGQUIT or at a time-out.
//!
//! The reports are in a sealed memfd of `mpiexec`, with a slot for each rank. A process writes its slot only when a wait goes to
//! sleep and when it wakes, and from time to time in a long loop of tests. A wait that finds its message at once writes nothing.
//!
//! Contract: a slot has one writer at a time (the mutex in [`Report`]) and any number of readers. A slot is a seqlock of atomics.
//! The writer makes the sequence odd, writes, and makes the sequence even. A reader accepts only words that it has read between
//! two equal even values of the sequence. A reader checks all lengths, and reports a slot that keeps changing.

use std::ffi::{CString, c_void};
use std::io;
use std::num::NonZeroUsize;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering, fence};
use std::sync::{Arc, Mutex, PoisonError};

use nix::fcntl::{FcntlArg, SealFlag, fcntl};
use nix::sys::mman::{MapFlags, ProtFlags, mmap, munmap};
use nix::time::{ClockId, clock_gettime};

use crate::calls::repeat;
use crate::memory;
use serde::{Deserialize, Serialize};

/// Distance of two slots in bytes, a multiple of every page size. Untouched pages use no memory.
const STRIDE: usize = 64 * 1024;
/// Number of bytes of a slot that are used.
const USED: usize = 16 * 1024;
/// Number of words before the entries: sequence, phase, number of entries, length of the entries in bytes, progress of the wait.
const HEAD: usize = 5;
/// Number of bytes for entries.
const ROOM: usize = USED - 8 * HEAD;
/// Maximum length of the name of an operation or a communicator, in bytes. Longer names are cut.
const MAX_NAME: usize = 128;
/// Maximum number of attempts of a reader before it reports that the slot keeps changing.
const TURNS: usize = 1000;

/// An operation for which a process waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pending {
    /// Name of the call, such as `MPI_Recv`.
    pub operation: String,
    /// World rank of the peer; `None` for any source, or a complete communicator.
    pub peer: Option<usize>,
    /// Tag; `None` for any tag, or no tag.
    pub tag: Option<i32>,
    /// Size of the message or buffer, in bytes.
    pub bytes: u64,
    /// Name of the communicator.
    pub communicator: String,
    /// Time at which the wait began, on the clock of [`clock_millis`].
    pub since_millis: u64,
}

/// Phase of a process between MPI_Init and MPI_Finalize, or outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Phase {
    /// Before MPI_Init.
    Outside,
    /// Between MPI_Init and MPI_Finalize.
    Running,
    /// In MPI_Finalize.
    Finalizing,
    /// After MPI_Finalize.
    Finalized,
}

/// Progress of a wait.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitProgress {
    /// Number of times at which the process has made progress since the wait began.
    pub moves: u32,
    /// True if the process itself will act at a deadline, such as a request for an overdue message.
    pub has_deadline: bool,
    /// True if other threads of the program may call MPI meanwhile.
    pub threads: bool,
    /// Number of reports of a loop of tests or probes without a result, modulo 2^30; 0 if the process sleeps.
    pub loop_reports: u32,
}

impl WaitProgress {
    fn encode(self) -> u64 {
        u64::from(self.loop_reports) << 34
            | u64::from(self.moves) << 2
            | u64::from(self.has_deadline) << 1
            | u64::from(self.threads)
    }

    fn decode(word: u64) -> WaitProgress {
        let (has_deadline, threads) = (word >> 1 & 1 == 1, word & 1 == 1);
        let (moves, loop_reports) = ((word >> 2) as u32, (word >> 34) as u32);
        WaitProgress { moves, has_deadline, threads, loop_reports }
    }
}

/// Content of a slot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RankStatus {
    /// Phase of the process.
    pub phase: Phase,
    /// Operations for which the process sleeps, or that it tests in a loop; empty if it does neither.
    pub pending: Vec<Pending>,
    /// Number of further operations that did not fit into the slot.
    pub more: usize,
    /// Progress of the wait; the default value if the process does not sleep in MPI.
    pub progress: WaitProgress,
}

/// Returns the milliseconds of CLOCK_MONOTONIC, equal for all processes of a machine.
pub fn clock_millis() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC).expect("CLOCK_MONOTONIC exists");
    now.tv_sec() as u64 * 1000 + now.tv_nsec() as u64 / 1_000_000
}

/// Returns the processor time of the calling thread in nanoseconds.
pub fn thread_nanos() -> u64 {
    let now = clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).expect("each thread has this clock");
    now.tv_sec() as u64 * 1_000_000_000 + now.tv_nsec() as u64
}

/// Mapped shared memory. Dropping the value unmaps it.
struct Mapping {
    start: NonNull<c_void>,
    length: usize,
}

// SAFETY: the memory is only reached as atomics, and stays mapped as long as the value lives.
unsafe impl Send for Mapping {}
// SAFETY: every access to the memory is atomic, and the memory stays mapped as long as the value lives.
unsafe impl Sync for Mapping {}

impl Mapping {
    fn new(memory: &OwnedFd, offset: usize, length: usize) -> io::Result<Self> {
        let size = NonZeroUsize::new(length).expect("a mapping has a size");
        let protection = ProtFlags::PROT_READ | ProtFlags::PROT_WRITE;
        // SAFETY: `mmap` without an address chooses free addresses, and replaces no mapping.
        let start = unsafe {
            mmap(None, size, protection, MapFlags::MAP_SHARED, memory.as_fd(), offset as i64)
        }?;
        Ok(Mapping { start, length })
    }

    fn words(&self) -> &[AtomicU64] {
        // SAFETY: page-aligned, `length` bytes long, mapped until drop (the memfd is sealed against
        // shrinking), and every access in every process is atomic.
        unsafe { std::slice::from_raw_parts(self.start.as_ptr().cast(), self.length / 8) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: mapped by `new` with this length; no reference outlives the value.
        let _ = unsafe { munmap(self.start, self.length) };
    }
}

/// Writer of one process's slot. Clones write the same slot.
#[derive(Clone)]
pub struct Report(Arc<Slot>);

struct Slot {
    mapping: Mapping,
    /// Lock of the writer, with a buffer that is reused.
    scratch: Mutex<Vec<u8>>,
}

/// Maps the slot of `rank`.
pub(crate) fn slot(memory: &OwnedFd, rank: usize) -> io::Result<Report> {
    let mapping = Mapping::new(memory, rank * STRIDE, USED)?;
    let report = Report(Arc::new(Slot { mapping, scratch: Mutex::default() }));
    report.phase(Phase::Running);
    Ok(report)
}

impl Report {
    /// Reports that this process goes to sleep until the operations `entries` are complete, or tests them in a loop.
    pub fn publish(&self, entries: &[Pending], progress: WaitProgress) {
        let mut scratch = self.0.scratch.lock().unwrap_or_else(PoisonError::into_inner);
        scratch.clear();
        let mut fitting = 0;
        for entry in entries {
            let before = scratch.len();
            encode(entry, &mut scratch);
            if scratch.len() > ROOM {
                scratch.truncate(before);
                break;
            }
            fitting += 1;
        }
        // The upper half of the word is the number of entries that fit, and the lower half is the number of all entries.
        let count = (fitting << 32) | entries.len() as u64;
        self.write(|words| {
            words[2].store(count, Ordering::Relaxed);
            words[3].store(scratch.len() as u64, Ordering::Relaxed);
            words[4].store(progress.encode(), Ordering::Relaxed);
            for (word, bytes) in words[HEAD..].iter().zip(scratch.chunks(8)) {
                let mut eight = [0; 8];
                eight[..bytes.len()].copy_from_slice(bytes);
                word.store(u64::from_le_bytes(eight), Ordering::Relaxed);
            }
        });
    }

    /// Reports that this process is awake again.
    pub fn clear(&self) {
        let _turn = self.0.scratch.lock().unwrap_or_else(PoisonError::into_inner);
        self.write(|words| words[2..HEAD].iter().for_each(|word| word.store(0, Ordering::Relaxed)));
    }

    /// Reports the phase of this process.
    pub fn phase(&self, phase: Phase) {
        let _turn = self.0.scratch.lock().unwrap_or_else(PoisonError::into_inner);
        self.write(|words| {
            words[1].store(phase as u64, Ordering::Relaxed);
            words[2..HEAD].iter().for_each(|word| word.store(0, Ordering::Relaxed));
        });
    }

    /// Calls `body`, which writes the slot, between the two steps of the sequence. The caller holds the writer's lock.
    fn write(&self, body: impl FnOnce(&[AtomicU64])) {
        let words = self.0.mapping.words();
        // A rank that died while it was writing leaves an odd value to its successor, such as a second MPI program of the same
        // script. So the value is rounded up.
        let sequence = words[0].load(Ordering::Relaxed).next_multiple_of(2);
        words[0].store(sequence.wrapping_add(1), Ordering::Relaxed);
        fence(Ordering::Release);
        body(words);
        words[0].store(sequence.wrapping_add(2), Ordering::Release);
    }
}

/// Reader of the slots of all ranks, in `mpiexec`.
pub struct Board {
    memory: OwnedFd,
    mapping: Mapping,
    size: usize,
}

impl Board {
    /// Makes memory for `size` ranks. /proc shows the name of the job for the memory, which is in no file system.
    pub fn new(job: &str, size: usize) -> io::Result<Self> {
        let memory = memory::file(&CString::new(job)?)?;
        repeat(|| Ok(nix::unistd::ftruncate(&memory, (size * STRIDE) as i64)?))?;
        // The seals prevent processes from shrinking the memory while `mpiexec` reads it.
        let seals = SealFlag::F_SEAL_SHRINK | SealFlag::F_SEAL_GROW | SealFlag::F_SEAL_SEAL;
        fcntl(&memory, FcntlArg::F_ADD_SEALS(seals))?;
        let mapping = Mapping::new(&memory, 0, size * STRIDE)?;
        Ok(Board { memory, mapping, size })
    }

    /// Returns the memory, which is sent to the processes.
    pub fn memory(&self) -> &OwnedFd {
        &self.memory
    }

    /// Returns the number of ranks.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Returns true if `rank` sleeps in MPI, tests in a loop, or has just changed its slot. Reads two words, where [`Board::read`] copies the slot.
    pub fn may_sleep(&self, rank: usize) -> bool {
        let words = &self.mapping.words()[rank * STRIDE / 8..];
        words[0].load(Ordering::Relaxed) % 2 == 1 || words[2].load(Ordering::Relaxed) != 0
    }

    /// Returns the status of `rank`; `None` if its slot keeps changing or is malformed.
    pub fn read(&self, rank: usize) -> Option<RankStatus> {
        let start = rank * STRIDE / 8;
        let words = &self.mapping.words()[start..start + USED / 8];
        for _ in 0..TURNS {
            let sequence = words[0].load(Ordering::Acquire);
            if sequence % 2 == 1 {
                std::hint::spin_loop();
                continue;
            }
            let copy: Vec<u64> = words.iter().map(|word| word.load(Ordering::Relaxed)).collect();
            fence(Ordering::Acquire);
            if words[0].load(Ordering::Relaxed) == sequence {
                return decode(&copy);
            }
        }
        None
    }
}

fn cut(name: &str) -> &str {
    let end = (0..=name.len().min(MAX_NAME)).rev().find(|&at| name.is_char_boundary(at));
    &name[..end.unwrap_or(0)]
}

fn encode(entry: &Pending, out: &mut Vec<u8>) {
    out.extend(entry.peer.map_or(u64::MAX, |peer| peer as u64).to_le_bytes());
    out.extend(entry.tag.map_or(i64::MIN, i64::from).to_le_bytes());
    out.extend(entry.bytes.to_le_bytes());
    out.extend(entry.since_millis.to_le_bytes());
    for name in [&entry.operation, &entry.communicator] {
        let name = cut(name);
        out.push(name.len() as u8);
        out.extend(name.as_bytes());
    }
}

fn decode(words: &[u64]) -> Option<RankStatus> {
    let phase = [Phase::Outside, Phase::Running, Phase::Finalizing, Phase::Finalized]
        .into_iter()
        .find(|&phase| phase as u64 == words[1])?;
    let bytes: Vec<u8> = words[HEAD..].iter().flat_map(|word| word.to_le_bytes()).collect();
    let mut rest = bytes.get(..usize::try_from(words[3]).ok()?)?;
    let (written, all) = (words[2] >> 32, words[2] & 0xffff_ffff);
    let mut pending = Vec::new();
    for _ in 0..written {
        let mut word = || {
            let (head, tail) = rest.split_first_chunk::<8>()?;
            rest = tail;
            Some(u64::from_le_bytes(*head))
        };
        let (peer, tag, bytes, since_millis) = (word()?, word()? as i64, word()?, word()?);
        let mut name = || {
            let (&length, tail) = rest.split_first()?;
            let (text, tail) = tail.split_at_checked(length.into())?;
            rest = tail;
            Some(String::from_utf8_lossy(text).into_owned())
        };
        let (operation, communicator) = (name()?, name()?);
        pending.push(Pending {
            operation,
            peer: usize::try_from(peer).ok().filter(|&peer| peer as u64 != u64::MAX),
            tag: i32::try_from(tag).ok(),
            bytes,
            communicator,
            since_millis,
        });
    }
    let more = all.saturating_sub(written) as usize;
    Some(RankStatus { phase, pending, more, progress: WaitProgress::decode(words[4]) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(n: usize) -> Pending {
        Pending {
            operation: "MPI_Recv".into(),
            peer: (n > 0).then_some(n),
            tag: (n > 1).then_some(-(n as i32)),
            bytes: n as u64 * 1000,
            communicator: "MPI_COMM_WORLD".into(),
            since_millis: clock_millis(),
        }
    }

    #[test]
    fn a_reader_sees_what_was_published_last() {
        let board = Board::new("test", 3).unwrap();
        assert_eq!(board.read(1).unwrap().phase, Phase::Outside);
        let report = slot(board.memory(), 1).unwrap();
        let entries = vec![entry(0), entry(1), entry(2)];
        let progress =
            WaitProgress { moves: 7, has_deadline: true, threads: false, loop_reports: 9 };
        report.publish(&entries, progress);
        let status = RankStatus { phase: Phase::Running, pending: entries, more: 0, progress };
        assert_eq!(board.read(1).unwrap(), status);
        assert!(board.may_sleep(1) && !board.may_sleep(0));
        report.clear();
        assert_eq!(board.read(1).unwrap().pending, vec![]);
        report.phase(Phase::Finalizing);
        assert_eq!(board.read(1).unwrap().phase, Phase::Finalizing);
        assert_eq!(board.read(0).unwrap().phase, Phase::Outside);
    }

    #[test]
    fn what_does_not_fit_is_counted() {
        let board = Board::new("test", 1).unwrap();
        let report = slot(board.memory(), 0).unwrap();
        let long = Pending { communicator: "ü".repeat(1000), ..entry(5) };
        report.publish(&vec![long; 1000], WaitProgress::default());
        let status = board.read(0).unwrap();
        assert!(status.pending.len() > 50, "{}", status.pending.len());
        assert_eq!(status.pending.len() + status.more, 1000);
        assert_eq!(status.pending[0].communicator, "ü".repeat(MAX_NAME / 2));
    }

    #[test]
    fn a_damaged_or_changing_slot_is_no_status() {
        let board = Board::new("test", 1).unwrap();
        let words = board.mapping.words();
        words[2].store(u64::MAX, Ordering::Relaxed);
        words[3].store(u64::MAX, Ordering::Relaxed);
        assert_eq!(board.read(0), None);
        words[2].store(1 << 32, Ordering::Relaxed);
        words[3].store(9, Ordering::Relaxed);
        assert_eq!(board.read(0), None);
        words[0].store(1, Ordering::Relaxed);
        assert_eq!(board.read(0), None);
        // The next writer of the slot recovers it.
        let report = slot(board.memory(), 0).unwrap();
        report.publish(&[entry(1)], WaitProgress::default());
        assert_eq!(board.read(0).unwrap().pending.len(), 1);
    }

    #[test]
    fn a_reader_never_sees_half_a_write() {
        let board = Board::new("test", 1).unwrap();
        let report = slot(board.memory(), 0).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for n in 1..2000 {
                    let entries = vec![Pending { bytes: n, ..entry(n as usize) }; 3];
                    report.publish(&entries, WaitProgress::default());
                }
            });
            for _ in 0..2000 {
                for entry in board.read(0).map(|status| status.pending).unwrap_or_default() {
                    assert_eq!(entry.peer, Some(entry.bytes as usize));
                }
            }
        });
        assert_eq!(board.read(0).unwrap().pending[2].bytes, 1999);
    }
}
