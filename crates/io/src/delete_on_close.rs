//! Deletion of files at their close (MPI_MODE_DELETE_ON_CLOSE).

use nix::fcntl::{self, OFlag};
use nix::sys::stat::Mode;
use nix::unistd::{UnlinkatFlags, unlinkat};
use std::ffi::OsString;
use std::io;
use std::os::fd::OwnedFd;
use std::path::Path;

/// A file to delete when it is closed. The folder in which the file was opened stays open, so the program may change its working
/// directory.
pub struct DeleteOnClose {
    folder: OwnedFd,
    name: OsString,
}

impl DeleteOnClose {
    /// Opens the folder of a path, relative to the current working directory.
    pub fn of(path: &Path) -> io::Result<DeleteOnClose> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let flags = OFlag::O_PATH | OFlag::O_DIRECTORY | OFlag::O_CLOEXEC;
        let folder = fcntl::open(folder.unwrap_or(Path::new(".")), flags, Mode::empty())?;
        let name = path.file_name().ok_or(io::Error::from_raw_os_error(libc::EISDIR))?;
        Ok(DeleteOnClose { folder, name: name.to_owned() })
    }

    /// Deletes the file.
    pub fn remove(&self) -> io::Result<()> {
        Ok(unlinkat(&self.folder, &*self.name, UnlinkatFlags::NoRemoveDir)?)
    }
}
