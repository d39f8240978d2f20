//! Knowledge of a file's other openings. Without this knowledge, gaps between pieces must not be written back. The ranks of one
//! opening lock the range that they write. But plain writes of another opening take no lock, and a rank does not know whether there
//! are such writes.
//!
//! ```text
//!   an open to write    mark: a lock on a random byte beyond the end of any file, while the file is open
//!                       gate: waits for its lock if another opening is writing gaps back
//!   writes gaps back    gate: a shared lock; allowed only if there is no mark of another opening
//! ```
//! An opening leaves its mark before it waits for the gate. So an opening that writes gaps back sees the mark, or the new opening
//! waits for the gate. The first rank leaves the mark and waits for all ranks of an opening, before any rank uses the file. So
//! plain writes have no extra cost.

use super::nfs_caching::REVALIDATED;
use super::{LockMode, Storage, hold, lock_uninterrupted};
use crate::byte_range::ByteRange;
use crate::failure::FileFailure;
use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// Byte with a shared lock while gaps are written back.
const GATE: u64 = REVALIDATED - 1;
/// Number of bytes from which marks are chosen: large enough that two openings do not choose the same byte.
const PLACES: u64 = 1 << 48;
/// First byte of the marks.
const FIRST: u64 = GATE - PLACES;

/// The locked byte that marks an opening.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OpeningMark(u64);

impl OpeningMark {
    /// Leaves a new mark, and waits for openings that write gaps back and have not seen the mark. Returns `None` if the file system
    /// has no locks.
    pub fn leave(storage: &dyn Storage) -> Option<OpeningMark> {
        let byte = FIRST + getrandom::u64().ok()? % PLACES;
        let lock =
            |byte| lock_uninterrupted(storage, ByteRange::at(byte, 1), LockMode::Exclusive).ok();
        lock(byte)?;
        if storage.is_locked(GATE, 1).ok()? {
            lock(GATE)?;
            storage.unlock(GATE, 1).ok()?;
        }
        Some(OpeningMark(byte))
    }

    /// Encodes a mark for other ranks; 0 stands for no mark.
    pub fn word(mark: Option<OpeningMark>) -> u64 {
        mark.map_or(0, |mark| mark.0)
    }

    /// Decodes a word of [`OpeningMark::word`].
    pub fn from_word(word: u64) -> Option<OpeningMark> {
        (FIRST..GATE).contains(&word).then_some(OpeningMark(word))
    }

    /// Reports whether the file has no other mark. The byte of this mark is not checked, because it looks locked to the other ranks
    /// of this opening.
    fn is_only_mark(self, storage: &dyn Storage) -> io::Result<bool> {
        let parts = [(FIRST, self.0 - FIRST), (self.0 + 1, GATE - self.0 - 1)];
        for (from, len) in parts {
            if len > 0 && storage.is_locked(from, len)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

/// Knowledge of the file's other openings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpeningKnowledge {
    /// There are no other openings, as the program has stated by MPI_MODE_UNIQUE_OPEN.
    Unique,
    /// Other openings leave marks, and this opening has left its own mark.
    Marked(OpeningMark),
    /// Nothing is known about other openings, so gaps are not written back.
    Unknown,
}

/// A process's knowledge of the file's other openings.
#[derive(Default)]
pub struct OtherOpenings {
    knowledge: OnceLock<OpeningKnowledge>,
    /// True if the last check found another mark.
    saw_mark: AtomicBool,
}

impl OtherOpenings {
    /// Stores the common knowledge of the ranks of an opening. Only the first call, when the file is opened, has an effect.
    pub fn set(&self, knowledge: OpeningKnowledge) {
        let _ = self.knowledge.set(knowledge);
    }

    fn knowledge(&self) -> OpeningKnowledge {
        self.knowledge.get().copied().unwrap_or(OpeningKnowledge::Unknown)
    }

    /// Reports whether gaps may be written back as long as no other opening is seen.
    pub fn is_known(&self) -> bool {
        self.knowledge() != OpeningKnowledge::Unknown
    }

    /// Does `work`, which writes gaps back, while no other opening can write. Returns `None` and does nothing if another opening
    /// may write.
    pub fn exclude<T>(
        &self,
        storage: &dyn Storage,
        work: impl FnOnce() -> Result<T, FileFailure>,
    ) -> Result<Option<T>, FileFailure> {
        let mark = match self.knowledge() {
            OpeningKnowledge::Unique => return work().map(Some),
            OpeningKnowledge::Unknown => return Ok(None),
            OpeningKnowledge::Marked(mark) => mark,
        };
        let is_only_opening = || mark.is_only_mark(storage).unwrap_or(false);
        // If another opening was seen and still exists, the gate is not locked, because a new opening may be waiting for the gate.
        if self.saw_mark.load(Ordering::Relaxed) && !is_only_opening() {
            return Ok(None);
        }
        hold(storage, ByteRange::at(GATE, 1), LockMode::Shared, || {
            let only = is_only_opening();
            self.saw_mark.store(!only, Ordering::Relaxed);
            if only { work().map(Some) } else { Ok(None) }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::disk::Disk;
    use std::fs::File;
    use std::sync::mpsc;
    use std::time::Duration;

    /// Opens a file and leaves a mark.
    fn opening(path: &std::path::Path) -> Disk {
        let disk = Disk::new(File::options().read(true).write(true).open(path).unwrap());
        let mark = OpeningMark::leave(&disk).expect("locks");
        assert_eq!(OpeningMark::from_word(OpeningMark::word(Some(mark))), Some(mark));
        disk.state().other_openings.set(OpeningKnowledge::Marked(mark));
        disk
    }

    /// Opens a file as another rank of the same opening.
    fn other_rank(path: &std::path::Path, first: &Disk) -> Disk {
        let disk = Disk::new(File::options().read(true).write(true).open(path).unwrap());
        disk.state().other_openings.set(first.state().other_openings.knowledge());
        disk
    }

    fn done(disk: &Disk) -> bool {
        disk.state().other_openings.exclude(disk, || Ok(())).unwrap().is_some()
    }

    #[test]
    fn gaps_are_written_only_without_another_opening() {
        let named = tempfile::NamedTempFile::new().unwrap();
        let first = opening(named.path());
        let its_second_rank = other_rank(named.path(), &first);
        for _ in 0..3 {
            assert!(done(&first) && done(&its_second_rank));
            let other = opening(named.path());
            assert!(!done(&first) && !done(&its_second_rank) && !done(&other));
            drop(other);
        }
        assert_eq!(OpeningMark::from_word(0), None);
    }

    #[test]
    fn knowledge_of_openings_permits_or_forbids_gaps() {
        let named = tempfile::NamedTempFile::new().unwrap();
        let (_first, second) =
            (opening(named.path()), other_rank(named.path(), &opening(named.path())));
        assert!(!done(&second));
        for (others, expected) in
            [(OpeningKnowledge::Unknown, false), (OpeningKnowledge::Unique, true)]
        {
            let disk = Disk::new(File::open(named.path()).unwrap());
            assert!(!disk.state().other_openings.is_known());
            disk.state().other_openings.set(others);
            assert_eq!((disk.state().other_openings.is_known(), done(&disk)), (expected, expected));
        }
    }

    #[test]
    fn an_open_waits_until_gaps_are_written_back() {
        let named = tempfile::NamedTempFile::new().unwrap();
        let first = opening(named.path());
        let (sender, receiver) = mpsc::channel();
        std::thread::scope(|scope| {
            let inside = first.state().other_openings.exclude(&first, || {
                scope.spawn(|| sender.send(opening(named.path())).unwrap());
                assert!(receiver.recv_timeout(Duration::from_millis(50)).is_err(), "it must wait");
                Ok(())
            });
            assert!(inside.unwrap().is_some());
            let _second = receiver.recv_timeout(Duration::from_secs(10)).expect("it goes on");
            assert!(!done(&first));
        });
    }
}
