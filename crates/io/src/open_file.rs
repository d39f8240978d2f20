//! An open file as its operations see it: storage, communicator, hints and state.

use crate::amode::Amode;
use crate::atomic_mode::AtomicMode;
use crate::collective_access_state::CollectiveAccessState;
use crate::delete_on_close::DeleteOnClose;
use crate::failure::FileFailure;
use crate::file_costs::FileCosts;
use crate::hints::Hints;
use crate::storage::Storage;
use crate::storage::disk::FileSystemKind;
use crate::thread_pool::IoPool;
use std::cell::{Cell, OnceCell, RefCell};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::Arc;
use weft_datatype::Type;
use weft_fabric::{Fabric, StagingPool};
use weft_process::{Comm, Error, Info};

/// State of an open file that all its operations share.
pub struct OpenFile<F: Fabric> {
    /// The file's own communicator.
    pub comm: Rc<Comm<F>>,
    /// System interface to the file.
    pub storage: Arc<dyn Storage>,
    /// Path of the file.
    pub path: PathBuf,
    /// The file, if the first rank deletes it when it is closed.
    pub delete_on_close: Option<DeleteOnClose>,
    /// Access mode of the open.
    pub amode: Amode,
    /// Threads and kernel ring for transfers that the program's thread does not do itself.
    pub pool: Rc<IoPool<F>>,
    /// Costs on the first rank's machine.
    pub costs: FileCosts,
    /// Hints in force.
    pub hints: Cell<Hints>,
    /// Hints without an effect, which are only returned to the program.
    pub unused_hints: RefCell<Info>,
    /// Kind of the file system. Empty until the kind is needed for the first time.
    pub kind_cache: OnceCell<FileSystemKind>,
    /// Preferred size of a read or write, in bytes, on the first rank's host.
    pub preferred_size: u64,
    /// True if data sieving can read the old contents before a write.
    pub can_sieve_writes: bool,
    /// Atomic mode and its lock.
    pub atomic: AtomicMode<F>,
    /// True if the views of all ranks are contiguous. Then no rank writes back gaps that have bytes of other ranks.
    pub contiguous_views: Cell<bool>,
    /// State of collective accesses.
    pub collective: CollectiveAccessState,
    /// MPI_BYTE.
    pub byte: Type,
}

impl<F: Fabric> OpenFile<F> {
    /// Returns the name of the file for errors.
    pub fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// Lets the time of accesses pass, if time is simulated. Otherwise it would pass with the rank's next message only.
    #[inline]
    pub fn let_time_pass(&self) {
        if let Some(simulated) = self.comm.engine().endpoint().fabric().facets().simulated {
            simulated.now();
        }
    }

    /// Describes a failure on this rank.
    #[cold]
    pub fn error(&self, failure: &FileFailure) -> Error {
        failure.error(&self.name(), "")
    }

    /// Returns the kind of the file system on this rank's host. On the host of a file server, the file system is local.
    pub fn kind(&self) -> FileSystemKind {
        *self.kind_cache.get_or_init(|| self.storage.kind())
    }

    /// Reports whether another host's page cache may be stale after a write on this host.
    pub fn has_host_caches(&self) -> bool {
        self.collective.spans_hosts() && self.kind().caches_pages()
    }

    /// Returns the alignment of file domains in bytes.
    pub fn alignment(&self) -> u64 {
        match self.hints.get().striping_unit {
            0 => self.preferred_size.max(1),
            unit => unit,
        }
    }

    /// Lists the aggregators of collective operations by the hints in force.
    pub fn aggregators(&self) -> Vec<usize> {
        self.collective.aggregators(self.hints.get().cb_nodes)
    }

    /// Gathers words from all ranks.
    pub async fn gather<const N: usize>(&self, own: [u64; N]) -> Result<Vec<[u64; N]>, Error> {
        match self.comm.size() {
            1 => Ok(vec![own]),
            _ => weft_rma::gather(&self.comm, own).await,
        }
    }

    /// Waits for all ranks.
    pub async fn barrier(&self) -> Result<(), Error> {
        if self.comm.size() > 1 { self.comm.barrier().await } else { Ok(()) }
    }

    /// Returns the process's pool of staging buffers.
    pub fn staging(&self) -> &StagingPool {
        self.comm.engine().endpoint().staging()
    }
}
