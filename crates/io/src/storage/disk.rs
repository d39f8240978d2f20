//! Files of the machine's file systems.

use super::{Kept, Storage};
use nix::fcntl::{FallocateFlags, FcntlArg, PosixFadviseAdvice, fallocate, fcntl, posix_fadvise};
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

/// A file that is open.
pub struct Disk {
    file: File,
    /// Bytes in which it is best read and written, if they are known already.
    block: Option<u64>,
    kept: Kept,
}

/// The kind of a file system, as far as it matters: how it is called, and what it is known to get wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// One machine's own, with memory or a device behind it.
    Local,
    /// NFS: what one host wrote, another may not see before both have synced, and pages are written back whole.
    Nfs,
    /// Lustre, whose stripes have locks of their own.
    Lustre,
    /// Any other file system of several hosts (CIFS, 9p, FUSE, GPFS, BeeGFS, Ceph, OCFS2 and the like).
    Network,
}

impl Kind {
    /// That of the file system which `path` lies on; `Local` if nothing is known.
    pub fn of(path: &Path) -> Kind {
        let Ok(found) = nix::sys::statfs::statfs(path) else { return Kind::Local };
        Kind::by_number(found.filesystem_type().0 as u32)
    }

    fn by_number(magic: u32) -> Kind {
        match magic {
            0x6969 => Kind::Nfs,
            0x0bd0_0bd0 => Kind::Lustre,
            // CIFS, SMB2, 9p, FUSE, GPFS, BeeGFS, Ceph.
            0xff53_4d42 | 0xfe53_4d42 | 0x0102_1997 | 0x6573_5546 | 0x4750_4653 | 0x1983_0326
            | 0x00c3_6400 => Kind::Network,
            // AFS (two clients), Coda, GFS2, OCFS2, OrangeFS, PanFS, SMB, StorNext.
            0x5346_414f | 0x6b41_4653 | 0x7375_7245 | 0x0116_1970 | 0x7461_636f | 0x2003_0528
            | 0xaad7_aaea | 0x0000_517b | 0xbeef_dead => Kind::Network,
            // Folders that a virtual machine shares with its host: VirtualBox, VMware, Parallels.
            0x786f_4256 | 0xbacb_acbc | 0x7c7c_6673 => Kind::Network,
            _ => Kind::Local,
        }
    }

    /// What is to be known of it, and what is done about that.
    pub fn advice(self) -> &'static str {
        match self {
            Kind::Local => {
                "short accesses are done at once, long nonblocking ones beside the program"
            }
            Kind::Nfs => {
                "sync and a barrier before another host reads; writes are not sieved; atomic mode needs a mount with locks"
            }
            Kind::Lustre => {
                "the hint striping_unit should be the stripe's length; writes are sieved only if that is asked for"
            }
            Kind::Network => {
                "sync and a barrier before another host reads; whether locks work is the server's matter, so writes are sieved only if that is asked for"
            }
        }
    }

    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Local => "local",
            Kind::Nfs => "nfs",
            Kind::Lustre => "lustre",
            Kind::Network => "network",
        }
    }
}

fn block(about: &Metadata) -> u64 {
    about.blksize().clamp(1, 1 << 30)
}

/// Builds the description of a lock for fcntl(2).
fn lock_of(kind: i32, offset: u64, len: u64) -> io::Result<libc::flock> {
    let place = |at: u64| i64::try_from(at).map_err(|_| io::Error::from_raw_os_error(libc::EINVAL));
    Ok(libc::flock {
        l_type: kind as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: place(offset)?,
        l_len: place(len)?,
        l_pid: 0,
    })
}

impl Disk {
    /// Takes over an open file.
    pub fn new(file: File) -> Disk {
        Disk { file, block: None, kept: Kept::default() }
    }

    /// The same, of a file whose description the system has given.
    pub fn known(file: File, about: &Metadata) -> Disk {
        Disk { block: Some(block(about)), ..Disk::new(file) }
    }

    fn set_lock(&self, kind: i32, offset: u64, len: u64) -> io::Result<()> {
        let range = lock_of(kind, offset, len)?;
        // Locks of the opening, not of the process: threads and ranks of one process exclude each other, too, and another
        // file's close does not drop them.
        fcntl(&self.file, FcntlArg::F_OFD_SETLKW(&range))?;
        Ok(())
    }
}

impl Storage for Disk {
    fn read_at(&self, offset: u64, to: &mut [u8]) -> io::Result<usize> {
        self.file.read_at(to, offset)
    }

    fn write_at(&self, offset: u64, from: &[u8]) -> io::Result<usize> {
        self.file.write_at(from, offset)
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        self.file.set_len(length)
    }

    fn allocate(&self, length: u64) -> io::Result<()> {
        let len = i64::try_from(length).map_err(|_| io::Error::from_raw_os_error(libc::EFBIG))?;
        match fallocate(&self.file, FallocateFlags::empty(), 0, len) {
            Ok(()) => Ok(()),
            // NFS 3 and some others: the length is all that can be promised.
            Err(nix::Error::EOPNOTSUPP | nix::Error::ENOSYS) => {
                if self.length()? < length {
                    self.set_length(length)
                } else {
                    Ok(())
                }
            }
            Err(error) => Err(error.into()),
        }
    }

    fn sync(&self) -> io::Result<()> {
        self.file.sync_all()
    }

    fn lock(&self, offset: u64, len: u64, alone: bool) -> io::Result<()> {
        let shared = match alone {
            false => self.set_lock(libc::F_RDLCK, offset, len),
            true => return self.set_lock(libc::F_WRLCK, offset, len),
        };
        match shared {
            // It cannot be read, and then not be locked by readers either.
            Err(error) if error.raw_os_error() == Some(libc::EBADF) => {
                self.set_lock(libc::F_WRLCK, offset, len)
            }
            other => other,
        }
    }

    fn unlock(&self, offset: u64, len: u64) -> io::Result<()> {
        self.set_lock(libc::F_UNLCK, offset, len)
    }

    fn is_locked(&self, offset: u64, len: u64) -> io::Result<bool> {
        let mut found = lock_of(libc::F_WRLCK, offset, len)?;
        fcntl(&self.file, FcntlArg::F_OFD_GETLK(&mut found))?;
        Ok(i32::from(found.l_type) != libc::F_UNLCK)
    }

    fn forget(&self) {
        // 0 bytes are all. Where nobody takes the advice, there is nothing to be dropped.
        let _ = posix_fadvise(&self.file, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED);
    }

    fn kind(&self) -> Kind {
        let found = nix::sys::statfs::fstatfs(&self.file);
        found.map_or(Kind::Local, |found| Kind::by_number(found.filesystem_type().0 as u32))
    }

    fn block(&self) -> u64 {
        self.block.unwrap_or_else(|| self.file.metadata().map_or(4096, |about| block(&about)))
    }

    fn kept(&self) -> &Kept {
        &self.kept
    }

    fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        Some(self.file.as_fd())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc;
    use std::time::Duration;

    #[test]
    fn file_systems_are_recognised_by_number() {
        assert_eq!(Kind::by_number(0x6969), Kind::Nfs);
        assert_eq!(Kind::by_number(0x0bd0_0bd0), Kind::Lustre);
        assert_eq!(Kind::by_number(0x7461_636f), Kind::Network, "OCFS2");
        assert_eq!(Kind::by_number(0x0102_1994), Kind::Local, "tmpfs");
        assert_eq!(Kind::of(Path::new("/proc")), Kind::Local);
        let open = Disk::new(File::open("/proc/version").unwrap());
        assert_eq!(open.kind(), Kind::Local);
    }

    #[test]
    fn two_openings_in_one_process_exclude_each_other() {
        let named = tempfile::NamedTempFile::new().unwrap();
        let open = || Disk::new(File::options().read(true).write(true).open(named.path()).unwrap());
        let (first, second) = (open(), open());
        first.lock(10, 10, true).unwrap();
        second.lock(0, 10, true).unwrap();
        let (told, heard) = mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                second.lock(19, 1, true).unwrap();
                told.send(()).unwrap();
            });
            assert!(heard.recv_timeout(Duration::from_millis(50)).is_err(), "it must wait");
            first.unlock(10, 10).unwrap();
            heard.recv_timeout(Duration::from_secs(10)).expect("it goes on");
        });
    }

    #[test]
    fn space_is_taken_and_length_grows() {
        let disk = Disk::new(tempfile::tempfile().unwrap());
        disk.allocate(5000).unwrap();
        assert_eq!(disk.length().unwrap(), 5000);
        disk.allocate(100).unwrap();
        assert_eq!(disk.length().unwrap(), 5000);
        disk.set_length(3).unwrap();
        disk.sync().unwrap();
        assert!(disk.block().is_power_of_two());
        assert_eq!(disk.length().unwrap(), 3);
    }
}
