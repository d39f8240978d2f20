//! One data access: the program's buffer on one side, bytes of the view on the other.

use crate::access_direction::AccessDirection;
use crate::access_extent::AccessExtent;
use crate::access_memory::AccessMemory;
use crate::access_policy::Synchronism;
use crate::failure::{FileFailure, class};
use crate::file_transfer::FileTransfer;
use crate::open_file::OpenFile;
use crate::representation::Convert;
use crate::storage::move_piece;
use crate::thread_pool::RunOn;
use crate::view::FileView;
use std::rc::Rc;
use weft_fabric::{Fabric, Sge, Staging, StagingPool};
use weft_process::{Buffer, BufferPiece, Error, WaitHooks};

/// The program's data of an access.
#[derive(Clone)]
pub struct AccessData {
    /// The program's memory.
    pub buffer: Buffer,
    /// Conversion between buffer and file. `None`: the bytes in the file are the same as in the buffer.
    pub convert: Option<Rc<dyn Convert>>,
}

impl From<Buffer> for AccessData {
    fn from(buffer: Buffer) -> AccessData {
        AccessData { buffer, convert: None }
    }
}

/// A data access of this rank.
#[derive(Clone)]
pub struct FileAccess {
    /// Direction of the data.
    pub direction: AccessDirection,
    /// The program's data.
    pub data: AccessData,
    /// View through which the file is seen.
    pub view: Rc<FileView>,
    /// Offset of the first byte in the view's stream.
    pub from: u64,
    /// Number of bytes of the access in the file.
    pub len: u64,
}

/// An access's data as contiguous bytes, in the file's representation.
pub struct ContiguousData {
    /// The bytes.
    pub sge: Sge,
    piece: Option<BufferPiece>,
    _staging: Option<Staging>,
}

impl FileAccess {
    /// Returns the length in elementary types of the view.
    pub fn elements(&self) -> i64 {
        (self.len / self.view.etype_size()) as i64
    }

    /// Returns the place and the size of the access.
    pub fn extent(&self) -> AccessExtent {
        let FileAccess { view, from, len: bytes, .. } = self;
        let bytes = *bytes;
        if bytes == 0 {
            return AccessExtent::default();
        }
        let (first, end) = (view.file_offset(*from), view.file_offset(from + bytes - 1) + 1);
        AccessExtent { first, end, bytes, pieces: view.pieces(bytes) }
    }

    /// Returns the bytes to write, or memory for the bytes to read.
    pub fn contiguous_data(&self, pool: &StagingPool) -> Result<ContiguousData, Error> {
        let AccessData { buffer, convert } = &self.data;
        if let Some(convert) = convert {
            let staging = pool.take(self.len as usize);
            if self.direction == AccessDirection::Write {
                convert.export(buffer, staging.sge())?;
            }
            return Ok(ContiguousData { sge: staging.sge(), piece: None, _staging: Some(staging) });
        }
        let piece = match self.direction {
            AccessDirection::Write => buffer.readable(pool),
            AccessDirection::Read => buffer.writable(pool),
        };
        Ok(ContiguousData { sge: piece.sge, piece: Some(piece), _staging: None })
    }

    /// Unpacks or converts the data that were read. `moved` is the number of bytes read from the file. Returns the number of bytes
    /// of the program's data.
    pub fn finish(&self, data: &ContiguousData, moved: u64) -> Result<u64, Error> {
        let AccessData { buffer, convert } = &self.data;
        match (convert, self.direction) {
            (None, AccessDirection::Write) => Ok(moved),
            (None, AccessDirection::Read) => {
                if let Some(piece) = &data.piece {
                    piece.unpack(buffer, moved as usize);
                }
                Ok(moved)
            }
            (Some(_), AccessDirection::Write) => Ok(buffer.len() as u64),
            (Some(convert), AccessDirection::Read) => {
                convert.import(data.sge.part(0, moved as usize), buffer)
            }
        }
    }

    /// Moves the data on the caller's thread, which releases the library's lock meanwhile. Returns the number of bytes of the
    /// program's data.
    pub fn run_blocking<F: Fabric>(
        &self,
        open: &OpenFile<F>,
        hooks: &dyn WaitHooks,
    ) -> Result<u64, Error> {
        let data = self.contiguous_data(open.staging())?;
        let memory = AccessMemory::from(data.sge);
        let mut outcome = Ok(0);
        if self.view.is_contiguous() && open.contiguous_views.get() && !open.atomic.is_enabled() {
            let at = self.view.file_offset(self.from);
            let mut transfer = || outcome = move_piece(&*open.storage, self.direction, at, memory);
            hooks.unlocked(&mut transfer);
        } else {
            let transfer = self.transfer(open, memory);
            hooks.unlocked(&mut || outcome = transfer.run());
        }
        self.finish(&data, outcome.map_err(|failure| open.error(&failure))?)
    }

    /// Moves the data, on a thread of the pool if the access is nonblocking. Returns the number of bytes of the program's data.
    pub async fn run<F: Fabric>(
        &self,
        open: &OpenFile<F>,
        synchronism: Synchronism,
    ) -> Result<u64, Error> {
        let data = self.contiguous_data(open.staging())?;
        let moved = self.move_contiguous(open, data.sge, synchronism).await?;
        let moved = moved.map_err(|failure| open.error(&failure))?;
        self.finish(&data, moved)
    }

    fn transfer<F: Fabric>(&self, open: &OpenFile<F>, data: AccessMemory) -> FileTransfer {
        FileTransfer {
            storage: open.storage.clone(),
            direction: self.direction,
            runs: self.view.runs(self.from, self.len),
            data,
            policy: open.access_policy(self.direction),
            locks_bytes: open.atomic.locks_bytes(),
        }
    }

    /// Moves contiguous `data` without other ranks. Returns the number of bytes of the file.
    pub async fn move_contiguous<F: Fabric>(
        &self,
        open: &OpenFile<F>,
        data: Sge,
        synchronism: Synchronism,
    ) -> Result<Result<u64, FileFailure>, Error> {
        if self.len == 0 {
            return Ok(Ok(0));
        }
        let transfer = self.transfer(open, AccessMemory::from(data));
        let nonblocking = synchronism == Synchronism::Nonblocking;
        // A write next to gaps may have to wait for another writer in the gaps, and must not block the program's thread.
        let waits =
            nonblocking && self.direction == AccessDirection::Write && !open.contiguous_views.get();
        let run_on = match waits {
            true => RunOn::Thread,
            false => open.run_on(transfer.cost(), synchronism),
        };
        let moved = open.pool.run_transfer(run_on, transfer);
        match open.atomic.lock() {
            Some(lock) => {
                // Without the helper, the lock would stay locked until the program calls MPI again.
                if nonblocking {
                    open.comm.engine().want_helper();
                }
                lock.during(self.direction, moved).await
            }
            None => moved.await,
        }
    }
}

/// Checks that the file was opened for this direction. Errors: READ_ONLY, ACCESS.
pub fn check_direction<F: Fabric>(
    open: &OpenFile<F>,
    direction: AccessDirection,
) -> Result<(), Error> {
    if open.amode.allows(direction) {
        return Ok(());
    }
    let (class, mode) = match direction {
        AccessDirection::Read => (class::ACCESS, "MPI_MODE_WRONLY"),
        AccessDirection::Write => (class::READ_ONLY, "MPI_MODE_RDONLY"),
    };
    let text = format!("{:?} was opened with {mode}: open it with MPI_MODE_RDWR", open.name());
    Err(Error::new(class, text))
}
