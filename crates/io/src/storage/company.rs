//! Knowledge of a file's other openings. Without it, gaps between pieces must not be written back: the ranks of one opening lock
//! the range that they write, but openings do not know each other, and their plain writes take no lock.
//!
//! ```text
//!   an open to write    mark: a lock of one byte beyond the end of any file, another byte each time, as long as the opening
//! lasts
//!                       gate: waits for its lock, if another opening is writing gaps back
//!   writes gaps back    gate: a shared lock; allowed only if there is no mark of another opening
//! ```
//! An opening leaves its mark before it waits for the gate. So either another opening sees the mark, or this one waits for the
//! gate. The first rank does both for all ranks of an opening, before any rank uses the file. Plain writes cost nothing more.

use super::Storage;
use super::between_hosts::LOOKED;
use super::hold;
use crate::failure::Failure;
use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// Byte with a shared lock while gaps are written back.
const GATE: u64 = LOOKED - 1;
/// Number of bytes from which marks are chosen: large enough that two openings do not choose the same byte.
const PLACES: u64 = 1 << 48;
/// First byte of the marks.
const FIRST: u64 = GATE - PLACES;

/// The locked byte that marks an opening.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mark(u64);

impl Mark {
    /// Leaves a new mark, and waits until no opening that has not seen it writes gaps back. Returns `None` if the file system has
    /// no locks.
    pub fn leave(storage: &dyn Storage) -> Option<Mark> {
        let byte = FIRST + getrandom::u64().ok()? % PLACES;
        lock_alone(storage, byte).ok()?;
        if storage.is_locked(GATE, 1).ok()? {
            lock_alone(storage, GATE).and_then(|()| storage.unlock(GATE, 1)).ok()?;
        }
        Some(Mark(byte))
    }

    /// Encodes a mark for other ranks; 0 stands for none.
    pub fn word(mark: Option<Mark>) -> u64 {
        mark.map_or(0, |mark| mark.0)
    }

    /// Decodes a word of [`Mark::word`].
    pub fn from_word(word: u64) -> Option<Mark> {
        (FIRST..GATE).contains(&word).then_some(Mark(word))
    }

    /// Reports whether the file has no other mark. This mark itself is left out: other ranks of this opening would find it
    /// locked.
    fn is_alone(self, storage: &dyn Storage) -> io::Result<bool> {
        let parts = [(FIRST, self.0 - FIRST), (self.0 + 1, GATE - self.0 - 1)];
        for (from, len) in parts {
            if len > 0 && storage.is_locked(from, len)? {
                return Ok(false);
            }
        }
        Ok(true)
    }
}

fn lock_alone(storage: &dyn Storage, byte: u64) -> io::Result<()> {
    loop {
        match storage.lock(byte, 1, true) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

/// Knowledge of the file's other openings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Others {
    /// There are no other openings, as the program has stated by MPI_MODE_UNIQUE_OPEN.
    Excluded,
    /// Other openings leave marks, and this one has left its own.
    Marked(Mark),
    /// Nothing is known, so that gaps are not written back.
    Unknown,
}

/// A process's knowledge of the file's other openings.
#[derive(Default)]
pub struct Company {
    others: OnceLock<Others>,
    /// Another mark was there at the last look.
    seen: AtomicBool,
}

impl Company {
    /// Stores the common knowledge of the ranks of an opening.
    pub fn learn(&self, others: Others) {
        // The knowledge is stored only once, when the file is opened.
        let _ = self.others.set(others);
    }

    fn others(&self) -> Others {
        self.others.get().copied().unwrap_or(Others::Unknown)
    }

    /// Reports whether gaps may be written back as long as no other opening is seen.
    pub fn is_known(&self) -> bool {
        self.others() != Others::Unknown
    }

    /// Does `work`, which writes gaps back, while no other opening can write. Returns `None` and does nothing if one can.
    pub fn alone<T>(
        &self,
        storage: &dyn Storage,
        work: impl FnOnce() -> Result<T, Failure>,
    ) -> Result<Option<T>, Failure> {
        let mark = match self.others() {
            Others::Excluded => return work().map(Some),
            Others::Unknown => return Ok(None),
            Others::Marked(mark) => mark,
        };
        let is_alone = || mark.is_alone(storage).unwrap_or(false);
        // A new opening may be waiting for the gate. While there is one, the gate is not locked.
        if self.seen.load(Ordering::Relaxed) && !is_alone() {
            return Ok(None);
        }
        hold(storage, (GATE, 1), false, || {
            let alone = is_alone();
            self.seen.store(!alone, Ordering::Relaxed);
            if alone { work().map(Some) } else { Ok(None) }
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
        let mark = Mark::leave(&disk).expect("locks");
        assert_eq!(Mark::from_word(Mark::word(Some(mark))), Some(mark));
        disk.kept().company.learn(Others::Marked(mark));
        disk
    }

    /// Opens a file as another rank of the same opening.
    fn beside(path: &std::path::Path, first: &Disk) -> Disk {
        let disk = Disk::new(File::options().read(true).write(true).open(path).unwrap());
        disk.kept().company.learn(first.kept().company.others());
        disk
    }

    fn done(disk: &Disk) -> bool {
        disk.kept().company.alone(disk, || Ok(())).unwrap().is_some()
    }

    #[test]
    fn an_opening_is_alone_until_another_comes_and_when_it_has_gone() {
        let named = tempfile::NamedTempFile::new().unwrap();
        let first = opening(named.path());
        let its_second_rank = beside(named.path(), &first);
        for _ in 0..3 {
            assert!(done(&first) && done(&its_second_rank));
            let other = opening(named.path());
            assert!(!done(&first) && !done(&its_second_rank) && !done(&other));
            drop(other);
        }
        assert_eq!(Mark::from_word(0), None);
    }

    #[test]
    fn who_knows_nothing_writes_no_gaps_and_who_was_promised_asks_nobody() {
        let named = tempfile::NamedTempFile::new().unwrap();
        let (_first, second) =
            (opening(named.path()), beside(named.path(), &opening(named.path())));
        assert!(!done(&second));
        for (others, expected) in [(Others::Unknown, false), (Others::Excluded, true)] {
            let disk = Disk::new(File::open(named.path()).unwrap());
            assert!(!disk.kept().company.is_known());
            disk.kept().company.learn(others);
            assert_eq!((disk.kept().company.is_known(), done(&disk)), (expected, expected));
        }
    }

    #[test]
    fn who_opens_waits_until_gaps_are_written_back() {
        let named = tempfile::NamedTempFile::new().unwrap();
        let first = opening(named.path());
        let (told, heard) = mpsc::channel();
        std::thread::scope(|scope| {
            let inside = first.kept().company.alone(&first, || {
                scope.spawn(|| told.send(opening(named.path())).unwrap());
                assert!(heard.recv_timeout(Duration::from_millis(50)).is_err(), "it must wait");
                Ok(())
            });
            assert!(inside.unwrap().is_some());
            let _second = heard.recv_timeout(Duration::from_secs(10)).expect("it goes on");
            assert!(!done(&first));
        });
    }
}
