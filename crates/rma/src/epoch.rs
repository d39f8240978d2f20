//! Which epochs are open, and what they allow.

use crate::Window;
use crate::target::Access;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use weft_fabric::Fabric;
use weft_process::Error;

/// Assertions of synchronization calls (MPI 5.0, section 12.5.5): bits of the ABI.
pub mod assert {
    /// The other side has made, or need not make, the matching call: nobody is waited for, and no
    /// lock is taken.
    pub const NOCHECK: i32 = 1024;
    /// To a fence: this process has issued no operation that it would end.
    pub const NOPRECEDE: i32 = 2048;
    /// No put or accumulate will reach this rank's part until the next synchronization; a hint that
    /// changes nothing here.
    pub const NOPUT: i32 = 4096;
    /// The program has stored nothing to this rank's part since the last synchronization; a hint
    /// that changes nothing here.
    pub const NOSTORE: i32 = 8192;
    /// To a fence: no operation follows, so that no epoch is opened.
    pub const NOSUCCEED: i32 = 16384;
}

/// How far the epochs of fences are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Fenced {
    #[default]
    Closed,
    /// A fence may have opened one: it has if an operation follows.
    Open,
    /// Operations were issued in it.
    Used,
}

/// The epochs of this process on one window.
#[derive(Default)]
pub struct Epochs {
    pub fence: Cell<Fenced>,
    /// Ranks of MPI_Win_start.
    pub started: RefCell<Option<Rc<[usize]>>>,
    /// Ranks of MPI_Win_post.
    pub posted: RefCell<Option<Rc<[usize]>>>,
    /// MPI_Win_lock_all, and whether with MPI_MODE_NOCHECK.
    pub all: Cell<Option<bool>>,
    /// Ranks whose locks were taken for it.
    pub joined: RefCell<Vec<usize>>,
    /// Ranks locked by MPI_Win_lock.
    pub locks: Cell<usize>,
    /// Ranks to which operations were issued since the last synchronization of all.
    pub touched: RefCell<Vec<usize>>,
}

impl<F: Fabric> Window<F> {
    /// An operation on `rank` is about to be issued. Where MPI_Win_lock_all has not yet asked for that
    /// rank's lock, it is taken now.
    #[inline]
    pub(crate) async fn enter(&self, rank: usize) -> Result<(), Error> {
        let target = &self.targets[rank];
        if target.access.get() == Access::None {
            match self.epochs.all.get() {
                Some(unchecked) => {
                    if !unchecked && !target.of_all.get() {
                        self.join_all(rank).await?;
                    }
                }
                None => match self.epochs.fence.get() {
                    Fenced::Closed => return Err(self.outside(rank)),
                    Fenced::Open => self.epochs.fence.set(Fenced::Used),
                    Fenced::Used => {}
                },
            }
        }
        Ok(())
    }

    /// [`Window::enter`] where nothing has to be awaited. False: that is to be called.
    #[inline(always)]
    pub(crate) fn try_enter(&self, rank: usize) -> bool {
        let target = &self.targets[rank];
        if target.access.get() != Access::None {
            return true;
        }
        if let Some(unchecked) = self.epochs.all.get() {
            return unchecked || target.of_all.get();
        }
        let fenced = self.epochs.fence.get();
        if fenced == Fenced::Open {
            self.epochs.fence.set(Fenced::Used);
        }
        fenced != Fenced::Closed
    }

    #[cold]
    fn outside(&self, rank: usize) -> Error {
        let started = self.epochs.started.borrow();
        let why = match (&*started, self.epochs.locks.get()) {
            (Some(ranks), _) => {
                format!("MPI_Win_start opened an access epoch to {} others, not to it", ranks.len())
            }
            (None, 0) => "MPI_Win_fence, MPI_Win_start or MPI_Win_lock opens one".to_owned(),
            (None, locks) => format!("{locks} other ranks are locked: MPI_Win_lock opens one"),
        };
        self.sync(format_args!("an operation on rank {rank} outside of an access epoch: {why}"))
    }

    /// The open epochs in words; `None`: there are none.
    pub(crate) fn open_epochs(&self) -> Option<String> {
        let epochs = &self.epochs;
        if epochs.started.borrow().is_some() {
            return Some(
                "an access epoch (MPI_Win_start) is open: MPI_Win_complete ends it".into(),
            );
        }
        if epochs.posted.borrow().is_some() {
            return Some("an exposure epoch (MPI_Win_post) is open: MPI_Win_wait ends it".into());
        }
        if epochs.all.get().is_some() {
            return Some("all ranks are locked: MPI_Win_unlock_all ends it".into());
        }
        if epochs.locks.get() > 0 {
            let held = |target: &crate::target::Target| {
                !matches!(target.access.get(), Access::None | Access::Started)
            };
            let rank = self.targets.iter().position(held).unwrap_or(0);
            return Some(format!("rank {rank} is locked: MPI_Win_unlock ends it"));
        }
        if epochs.fence.get() == Fenced::Used {
            return Some(
                "operations were issued after the last MPI_Win_fence: another ends them".into(),
            );
        }
        None
    }

    /// An access epoch other than of fences is about to be opened.
    pub(crate) fn may_open(&self, call: &str) -> Result<(), Error> {
        if self.epochs.fence.get() == Fenced::Used {
            let text = "while operations are under way that MPI_Win_fence must end";
            return Err(self.sync(format_args!("{call} {text}")));
        }
        if self.epochs.all.get().is_some() {
            return Err(
                self.sync(format_args!("{call} between MPI_Win_lock_all and MPI_Win_unlock_all"))
            );
        }
        Ok(())
    }
}
