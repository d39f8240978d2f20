//! Generalized active target: post, start, complete, wait (MPI 5.0, section 12.5.2).
//!
//! ```text
//!   target:  post ── flag posted[target] at each origin       wait ── until completed[origin] of each
//!   origin:  start ── until posted[target] of each  ... operations ...  complete ── flag completed[origin] behind them
//! ```
//! Cost: one flag in each direction per pair ([`super::flags`]); if several rails were used, one on each of them
//! ([`super::ordered_flag`]).

use super::Epochs;
use crate::core::assert;
use crate::core::open_epochs::{AccessEpoch, Fenced};
use smallvec::SmallVec;
use std::rc::Rc;
use weft_fabric::Fabric;
use weft_process::Error;

impl<F: Fabric> Epochs<F> {
    /// Opens an exposure epoch for `origins`.
    pub fn post(&self, origins: Rc<[usize]>, asserted: i32) -> Result<(), Error> {
        if self.core.open.posted.borrow().is_some() {
            return Err(self
                .core
                .sync("MPI_Win_post: an exposure epoch is open: MPI_Win_wait ends it"));
        }
        if self.core.open.fence.get() == Fenced::Used {
            let text = "MPI_Win_post while operations are under way that MPI_Win_fence must end";
            return Err(self.core.sync(text));
        }
        for &origin in &*origins {
            // With MPI_MODE_NOCHECK, both sides guarantee that the origin's start comes later, and does not wait.
            match asserted & assert::NOCHECK {
                0 => self.flags.tell_posted(origin)?,
                _ => self.flags.count_posted(origin),
            }
        }
        *self.core.open.posted.borrow_mut() = Some(origins);
        Ok(())
    }

    /// Opens an access epoch to `targets`, once they have posted theirs.
    pub async fn start(&self, targets: Rc<[usize]>, asserted: i32) -> Result<(), Error> {
        self.core.may_open_alone("MPI_Win_start")?;
        for &rank in &*targets {
            match asserted & assert::NOCHECK {
                0 => self.flags.hear_posted(rank).await?,
                _ => self.flags.count_started(rank),
            }
            self.core.open.set_access(rank, AccessEpoch::Started);
        }
        *self.core.open.started.borrow_mut() = Some(targets);
        Ok(())
    }

    /// Ends the access epoch: the issued operations are over at the targets.
    pub async fn complete(&self) -> Result<(), Error> {
        let Some(targets) = self.core.open.started.take() else {
            return Err(self.core.sync("MPI_Win_complete without MPI_Win_start"));
        };
        // Targets that were not told behind the data are told once the data are acknowledged.
        let behind = |&rank: &usize| self.flags.tell_behind(&self.memory, &self.access, rank);
        let told: SmallVec<[bool; 8]> = targets.iter().map(behind).collect::<Result<_, _>>()?;
        for (&rank, told) in targets.iter().zip(told) {
            self.access.drain(rank).await?;
            self.core.open.set_access(rank, AccessEpoch::None);
            if !told {
                self.flags.tell_completed(rank)?;
            }
        }
        Ok(())
    }

    /// Ends the exposure epoch, once all its origins have completed theirs.
    pub async fn wait(&self) -> Result<(), Error> {
        let Some(origins) = self.core.open.posted.take() else {
            return Err(self.core.sync("MPI_Win_wait without MPI_Win_post"));
        };
        for &origin in &*origins {
            self.flags.hear_completed(origin).await?;
        }
        Ok(())
    }

    /// Tests whether all origins have completed. If so, ends the exposure epoch.
    pub fn test(&self) -> Result<bool, Error> {
        let mut posted = self.core.open.posted.borrow_mut();
        let Some(origins) = &*posted else {
            return Err(self.core.sync("MPI_Win_test without MPI_Win_post"));
        };
        let over = self.flags.are_completed(origins);
        if over {
            *posted = None;
        }
        Ok(over)
    }
}
