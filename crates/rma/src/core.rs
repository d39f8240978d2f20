//! Facts that every part of a window shares: the window's communicator and fabric, the call that made the window, its options, and
//! the open epochs.
//!
//! ```text
//!   epoch_state.rs       state of the epochs, and all its transitions (MPI 5.0, section 12.5)
//!   assert.rs            assertions of synchronization calls (section 12.5.5)
//!   target_location.rs   the program's description of an operation's target (section 12.3)
//!   exchange.rs          collective exchanges while a window is made (section 12.2)
//! ```
//! Contract: this part knows no other part of a window. Each part keeps an `Rc` of [`WindowCore`], and changes nothing in it except
//! the state of the epochs.

pub mod assert;
pub mod epoch_state;
pub mod exchange;
pub mod target_location;

use self::epoch_state::{EpochState, WrongCall};
use self::target_location::TargetLocation;
use crate::options::WindowOptions;
use std::cell::RefCell;
use std::ffi::OsString;
use std::rc::Rc;
use weft_fabric::Fabric;
use weft_p2p::Endpoint;
use weft_process::{Comm, Error, class};

/// Call by which a window was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowFlavor {
    /// MPI_Win_create: each rank exposes memory that the program owns.
    Create,
    /// MPI_Win_allocate: the window owns its memory until it is freed.
    Allocate,
    /// MPI_Win_allocate_shared: the window owns memory that all its ranks see.
    Shared,
    /// MPI_Win_create_dynamic: memory is attached and detached later.
    Dynamic,
}

/// State that the parts of one window share.
pub struct WindowCore<F: Fabric> {
    comm: Rc<Comm<F>>,
    pub flavor: WindowFlavor,
    pub options: WindowOptions,
    /// True if all ranks are on one node, where every rank sees memory of the fabric and the processors' atomics are coherent.
    pub one_node: bool,
    /// True if the memory of some rank is accessed only by that rank's own process, which carries out the accesses of the other
    /// ranks.
    pub by_progress: bool,
    /// Name set by the program; empty until then.
    pub name: RefCell<OsString>,
    pub epochs: EpochState,
}

impl<F: Fabric> WindowCore<F> {
    /// Creates the core. `comm` is the window's own communicator.
    pub fn new(comm: Rc<Comm<F>>, flavor: WindowFlavor, options: WindowOptions) -> WindowCore<F> {
        let fabric = comm.engine().endpoint().fabric();
        let one_node = comm.group().ranks().iter().all(|&peer| {
            let able = fabric.capabilities(peer as usize);
            able.coherent_atomics && able.synchronous
        });
        let own = |&peer: &u32| fabric.capabilities(peer as usize).by_progress;
        let by_progress = comm.group().ranks().iter().any(own);
        let epochs = EpochState::new(comm.size());
        WindowCore {
            comm,
            flavor,
            options,
            one_node,
            by_progress,
            name: RefCell::default(),
            epochs,
        }
    }

    pub fn comm(&self) -> &Rc<Comm<F>> {
        &self.comm
    }

    pub fn endpoint(&self) -> &Rc<Endpoint<F>> {
        self.comm.engine().endpoint()
    }

    pub fn fabric(&self) -> &F {
        self.endpoint().fabric()
    }

    /// Returns this process's rank in the window's communicator.
    #[inline]
    pub fn rank(&self) -> usize {
        self.comm.rank()
    }

    /// Returns the number of ranks of the window.
    #[inline]
    pub fn size(&self) -> usize {
        self.epochs.ranks()
    }

    /// Converts a rank of the window to a rank of the fabric.
    #[inline]
    pub fn peer(&self, rank: usize) -> usize {
        self.comm.group().ranks()[rank] as usize
    }

    /// Returns the name of the window for reports.
    pub fn label(&self) -> String {
        let name = self.name.borrow();
        match name.is_empty() {
            true => format!("window {:#x}", self.comm.id()),
            false => name.display().to_string(),
        }
    }

    /// Converts the refusal of a call to an error of class RMA_SYNC.
    #[inline]
    pub fn allow<T>(&self, call: Result<T, WrongCall>) -> Result<T, Error> {
        call.map_err(|wrong| Error::new(class::RMA_SYNC, wrong))
    }

    /// Returns the error of an operation on a rank for which no epoch is open.
    #[cold]
    pub fn outside(&self, rank: usize) -> Error {
        Error::new(class::RMA_SYNC, self.epochs.outside(rank))
    }

    /// Returns true if operations on a rank are deferred now, until a fence issues them.
    pub fn is_for_fence(&self, rank: usize) -> bool {
        self.options.fence.defers() && self.epochs.is_of_fence(rank)
    }

    /// Checks that an operation's data have the same length at this side as at the target. The data have `origin` bytes at this
    /// side. `name` names the operation in the error. Error: TRUNCATE.
    pub fn same_length(
        &self,
        origin: usize,
        location: &TargetLocation,
        name: &str,
    ) -> Result<(), Error> {
        if origin == location.len() {
            return Ok(());
        }
        let text = format!(
            "the {name}'s data are {origin} bytes and the target's {}: both sides of an operation have as \
             many",
            location.len()
        );
        Err(Error::new(class::TRUNCATE, text))
    }
}
