//! What NFS needs where several hosts have a file open. Its client keeps pages and the length, and asks the server whether they are
//! still right only now and then, when the file is opened, and when a part of it is locked. And while no part of it is locked, it writes
//! a page back as a whole of which the program has written a part, with what other hosts have written as it was before.
//!
//! So a part that no file has is locked by all who write, as long as the file is open; and one beside it for a moment, to look anew.

use super::Storage;
use super::disk::Kind;
use std::io;

/// The last byte that can be locked: shared by all as long as they write.
const HELD: u64 = i64::MAX as u64 - 1;
/// The byte before it: locked for a moment.
pub(super) const LOOKED: u64 = HELD - 1;

impl Kind {
    /// Whether hosts keep what is no longer so, and write what they were not told to.
    pub fn keeps_pages(self) -> bool {
        self == Kind::Nfs
    }

    /// To be called once all have opened the file. `holds`: it is to be written, and can be read. Without locks on the file system
    /// nothing is gained.
    pub fn begin(self, storage: &dyn Storage, holds: bool) {
        // The server's times may not tell two writes apart that came one after the other, and a host takes a change of another one for
        // its own if it wrote itself meanwhile: so opening it is not enough to see both.
        if !holds {
            self.look_anew(storage);
        } else if self.keeps_pages() {
            let _ = storage.lock(HELD, 1, false);
        }
        // A lock changes nothing where the server has delegated the file to this host: what it keeps is right from then on, but not
        // what it kept before.
        if self.keeps_pages() {
            storage.forget();
        }
    }

    /// Brings what was written to where other hosts find it, if that is not so anyway. Errors: of writes that seemed to be done.
    pub fn hand_over(self, storage: &dyn Storage) -> io::Result<()> {
        if self.keeps_pages() { storage.sync() } else { Ok(()) }
    }

    /// Forgets what this host keeps of the file, so that the next look finds what other hosts have handed over.
    pub fn look_anew(self, storage: &dyn Storage) {
        if self.keeps_pages() && storage.lock(LOOKED, 1, false).is_ok() {
            let _ = storage.unlock(LOOKED, 1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::Kept;
    use std::sync::Mutex;

    /// Writes down what it is asked.
    #[derive(Default)]
    struct Recorder {
        calls: Mutex<Vec<&'static str>>,
        kept: Kept,
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
        fn lock(&self, offset: u64, len: u64, alone: bool) -> io::Result<()> {
            assert!(
                (offset, len, alone) == (HELD, 1, false)
                    || (offset, len, alone) == (LOOKED, 1, false)
            );
            assert!(i64::try_from(offset + len).is_ok(), "the system counts with a sign");
            self.note(if offset == HELD { "hold" } else { "lock" })
        }
        fn unlock(&self, offset: u64, len: u64) -> io::Result<()> {
            assert_eq!((offset, len), (LOOKED, 1), "the other one is kept");
            self.note("unlock")
        }
        fn is_locked(&self, _: u64, _: u64) -> io::Result<bool> {
            unreachable!("nobody is looked for")
        }
        fn forget(&self) {
            self.note("forget").unwrap();
        }
        fn kept(&self) -> &Kept {
            &self.kept
        }
        fn kind(&self) -> Kind {
            unreachable!("it is told")
        }
        fn block(&self) -> u64 {
            unreachable!("nothing is divided")
        }
    }

    #[test]
    fn nfs_alone_gets_locks_and_syncs() {
        let calls = |kind: Kind| {
            let file = Recorder::default();
            kind.begin(&file, false);
            kind.begin(&file, true);
            kind.hand_over(&file).unwrap();
            kind.look_anew(&file);
            file.calls.into_inner().unwrap()
        };
        assert_eq!(
            calls(Kind::Nfs),
            ["lock", "unlock", "forget", "hold", "forget", "sync", "lock", "unlock"]
        );
        for kind in [Kind::Local, Kind::Lustre, Kind::Network] {
            assert!(calls(kind).is_empty(), "{kind:?}");
        }
    }
}
