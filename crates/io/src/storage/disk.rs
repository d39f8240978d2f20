//! Files of the system's file systems.

use super::{LockMode, OpenState, Storage};
use nix::fcntl::{FallocateFlags, FcntlArg, PosixFadviseAdvice, fallocate, fcntl, posix_fadvise};
use std::fs::{File, Metadata};
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;

/// An open file of the system.
pub struct Disk {
    file: File,
    /// Preferred size of a read or write in bytes, if it is known.
    preferred_size: Option<u64>,
    state: OpenState,
}

/// Kind of a file system, which decides on locks, caches and data sieving.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileSystemKind {
    /// A file system of one host, on a device or in memory.
    Local,
    /// NFS: a host may see another host's writes only after both have synchronised, and pages are written back as a whole.
    Nfs,
    /// Lustre, which locks each stripe separately.
    Lustre,
    /// Any other file system with several hosts (CIFS, 9p, FUSE, GPFS, BeeGFS, Ceph, OCFS2 and the like).
    Network,
}

impl FileSystemKind {
    /// Returns the kind of the file system of `path`, or `Local` if the kind is unknown.
    pub fn of(path: &Path) -> FileSystemKind {
        let Ok(found) = nix::sys::statfs::statfs(path) else { return FileSystemKind::Local };
        FileSystemKind::by_number(found.filesystem_type().0 as u32)
    }

    fn by_number(magic: u32) -> FileSystemKind {
        match magic {
            0x6969 => FileSystemKind::Nfs,
            0x0bd0_0bd0 => FileSystemKind::Lustre,
            // CIFS, SMB2, 9p, FUSE, GPFS, BeeGFS, Ceph.
            0xff53_4d42 | 0xfe53_4d42 | 0x0102_1997 | 0x6573_5546 | 0x4750_4653 | 0x1983_0326
            | 0x00c3_6400 => FileSystemKind::Network,
            // AFS (two clients), Coda, GFS2, OCFS2, OrangeFS, PanFS, SMB, StorNext.
            0x5346_414f | 0x6b41_4653 | 0x7375_7245 | 0x0116_1970 | 0x7461_636f | 0x2003_0528
            | 0xaad7_aaea | 0x0000_517b | 0xbeef_dead => FileSystemKind::Network,
            // Folders that a virtual machine shares with its host: VirtualBox, VMware, Parallels.
            0x786f_4256 | 0xbacb_acbc | 0x7c7c_6673 => FileSystemKind::Network,
            _ => FileSystemKind::Local,
        }
    }

    /// Returns advice for programs whose files are in this kind of file system.
    pub fn advice(self) -> &'static str {
        match self {
            FileSystemKind::Local => {
                "short accesses run on the calling thread, long nonblocking ones in the background"
            }
            FileSystemKind::Nfs => {
                "sync and a barrier before another host reads; no data sieving of writes; atomic mode needs a mount with locks"
            }
            FileSystemKind::Lustre => {
                "set the hint striping_unit to the stripe's length; data sieving of writes only if a hint asks for it"
            }
            FileSystemKind::Network => {
                "sync and a barrier before another host reads; data sieving of writes only if a hint asks for it, as locks may not work"
            }
        }
    }

    /// Returns the name in reports.
    pub fn name(self) -> &'static str {
        match self {
            FileSystemKind::Local => "local",
            FileSystemKind::Nfs => "nfs",
            FileSystemKind::Lustre => "lustre",
            FileSystemKind::Network => "network",
        }
    }
}

fn preferred_size(metadata: &Metadata) -> u64 {
    metadata.blksize().clamp(1, 1 << 30)
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
    /// Wraps an open file.
    pub fn new(file: File) -> Disk {
        Disk { file, preferred_size: None, state: OpenState::default() }
    }

    /// Wraps an open file whose metadata are known.
    pub fn with_metadata(file: File, metadata: &Metadata) -> Disk {
        Disk { preferred_size: Some(preferred_size(metadata)), ..Disk::new(file) }
    }

    fn set_lock(&self, kind: i32, offset: u64, len: u64) -> io::Result<()> {
        let range = lock_of(kind, offset, len)?;
        // These locks belong to the opening. Locks of the process would not exclude other ranks of the same process, and would
        // be dropped when another opening of the file is closed.
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
            // NFS 3 and some other file systems cannot allocate. Then only the length is set.
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

    fn lock(&self, offset: u64, len: u64, mode: LockMode) -> io::Result<()> {
        if mode == LockMode::Shared {
            match self.set_lock(libc::F_RDLCK, offset, len) {
                // A file that was opened only for writing permits no shared locks.
                Err(error) if error.raw_os_error() == Some(libc::EBADF) => {}
                other => return other,
            }
        }
        self.set_lock(libc::F_WRLCK, offset, len)
    }

    fn unlock(&self, offset: u64, len: u64) -> io::Result<()> {
        self.set_lock(libc::F_UNLCK, offset, len)
    }

    fn is_locked(&self, offset: u64, len: u64) -> io::Result<bool> {
        let mut found = lock_of(libc::F_WRLCK, offset, len)?;
        fcntl(&self.file, FcntlArg::F_OFD_GETLK(&mut found))?;
        Ok(i32::from(found.l_type) != libc::F_UNLCK)
    }

    fn drop_cached_pages(&self) {
        // A length of 0 stands for the whole file. File systems that ignore the advice have no stale pages.
        let _ = posix_fadvise(&self.file, 0, 0, PosixFadviseAdvice::POSIX_FADV_DONTNEED);
    }

    fn kind(&self) -> FileSystemKind {
        let found = nix::sys::statfs::fstatfs(&self.file);
        found.map_or(FileSystemKind::Local, |found| {
            FileSystemKind::by_number(found.filesystem_type().0 as u32)
        })
    }

    fn preferred_size(&self) -> u64 {
        let ask = || self.file.metadata().map_or(4096, |metadata| preferred_size(&metadata));
        self.preferred_size.unwrap_or_else(ask)
    }

    fn state(&self) -> &OpenState {
        &self.state
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
        assert_eq!(FileSystemKind::by_number(0x6969), FileSystemKind::Nfs);
        assert_eq!(FileSystemKind::by_number(0x0bd0_0bd0), FileSystemKind::Lustre);
        assert_eq!(FileSystemKind::by_number(0x7461_636f), FileSystemKind::Network, "OCFS2");
        assert_eq!(FileSystemKind::by_number(0x0102_1994), FileSystemKind::Local, "tmpfs");
        assert_eq!(FileSystemKind::of(Path::new("/proc")), FileSystemKind::Local);
        let open = Disk::new(File::open("/proc/version").unwrap());
        assert_eq!(open.kind(), FileSystemKind::Local);
    }

    #[test]
    fn two_openings_in_one_process_exclude_each_other() {
        let named = tempfile::NamedTempFile::new().unwrap();
        let open = || Disk::new(File::options().read(true).write(true).open(named.path()).unwrap());
        let (first, second) = (open(), open());
        first.lock(10, 10, LockMode::Exclusive).unwrap();
        second.lock(0, 10, LockMode::Exclusive).unwrap();
        let (sender, receiver) = mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                second.lock(19, 1, LockMode::Exclusive).unwrap();
                sender.send(()).unwrap();
            });
            assert!(receiver.recv_timeout(Duration::from_millis(50)).is_err(), "it must wait");
            first.unlock(10, 10).unwrap();
            receiver.recv_timeout(Duration::from_secs(10)).expect("it goes on");
        });
    }

    #[test]
    fn allocation_never_shortens_a_file() {
        let disk = Disk::new(tempfile::tempfile().unwrap());
        disk.allocate(5000).unwrap();
        assert_eq!(disk.length().unwrap(), 5000);
        disk.allocate(100).unwrap();
        assert_eq!(disk.length().unwrap(), 5000);
        disk.set_length(3).unwrap();
        disk.sync().unwrap();
        assert!(disk.preferred_size().is_power_of_two());
        assert_eq!(disk.length().unwrap(), 3);
    }
}
